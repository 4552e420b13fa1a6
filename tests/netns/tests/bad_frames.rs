//! Bad ARP+ frames from the wire: counted by reason, conflicts told, the table unharmed, the daemon alive.

use linkbraid_lab::{Host, LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::packet::{self, Tap};
use linkbraid_netns_tests::{BOND, Net, SOON, View};
use linkbraid_wire::{Extension, HostId, Kind, MacAddr, Member, Message, Probe, emit_frame, emit_probe};
use std::net::IpAddr;

/// Bonded hosts `a` and `b`, and `c`, which sends what it likes. Jumbo links, so that too long is possible.
fn with_stranger() -> Net {
    let links = |n| std::iter::repeat_n(LinkSpec::switch(0, None).mtu(9000), n);
    Net::bonded(Topology::empty("lab", 1).host(links(2)).host(links(2)).plain_host(links(1)))
}

/// What a stranger that speaks ARP+ would say of itself, from `mac`.
fn message(mac: MacAddr, address: &str) -> Message {
    Message {
        kind: Kind::Change,
        address: Some(address.parse::<IpAddr>().expect("an address")),
        hardware: vec![mac],
        extension: Some(Extension {
            host: HostId([0x5a; 16]),
            epoch: 1,
            sequence: 1,
            members: vec![Member { index: 0, up: true, weight_mbit: 1000, class: 0 }],
            ..Extension::default()
        }),
    }
}

fn nic(host: Host<'_>, link: usize) -> MacAddr {
    MacAddr(packet::mac(&host.mac(link)))
}

/// The daemon still does all it did: the table is `before`, and traffic flows.
#[track_caller]
fn unharmed(net: &Net, before: &[View]) {
    assert!(net.runs("a"));
    assert_eq!(net.table("a"), before);
    net.wait_tables(&["a", "b"]);
    net.host("a").wait_ping(net.host("b").ipv4(), SOON).expect("reaches");
}

#[test]
fn probes_that_break_a_rule_are_counted_by_reason() {
    let net = with_stranger();
    let (a, c) = (net.host("a"), net.host("c"));
    let tap = Tap::open(c, "eth0", packet::ALL);
    let probe = Probe { host: HostId([0x5a; 16]), nonce: 1, number: 1, ..Probe::default() };
    let mut to_all = emit_probe(nic(a, 0), nic(c, 0), &probe).expect("keeps the rules");
    to_all[..6].fill(0xff);
    let refused = || net.counter("a", "refused_probe_not_unicast");
    assert_eq!(refused(), 0);
    tap.send(&to_all).expect("sends");
    // Both of its members are on that switch.
    wait_until(SOON, "the refusals", refused, |n| *n == 2).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn frames_that_break_a_rule_are_counted_by_reason() {
    let net = with_stranger();
    let (a, c) = (net.host("a"), net.host("c"));
    let before = net.table("a");
    let tap = Tap::open(c, "eth0", packet::ALL);
    let (from, to) = (nic(c, 0), nic(a, 0));
    let good = emit_frame(to, from, &message(from, c.ipv4())).expect("keeps the rules");
    let cut = |length: usize| good[..length].to_vec();
    let with = |at: usize, byte: u8| {
        let mut frame = good.clone();
        frame[at] = byte;
        frame
    };
    // HLEN, PLEN, COUNT and TYPE follow the Ethernet header; after them 4 bytes of address, 6 of hardware, TLVs.
    let long = |bytes: usize| [&good[..], &vec![0; bytes - good.len()]].concat();
    let cases = [
        ("refused_truncated", cut(17)),
        ("refused_truncated", cut(14)),
        ("refused_truncated", cut(27)),
        ("refused_hardware_length", with(14, 8)),
        ("refused_protocol_length", with(15, 5)),
        ("refused_no_hardware", with(16, 0)),
        ("refused_too_many_hardware", with(16, 17)),
        ("refused_unknown_type", with(17, 9)),
        ("refused_hardware_not_host", with(22, 0xff)),
        ("refused_address_not_host", with(18, 0xe0)),
        ("refused_tlv_truncated", cut(good.len() - 1)),
        ("refused_version_zero", with(30, 0)),
        ("rx_arp_plus_long", long(1515)),
        ("rx_arp_plus_long", long(9014)),
    ];
    let mut wanted = std::collections::BTreeMap::<&str, u64>::new();
    for (counter, frame) in &cases {
        tap.send(frame).unwrap_or_else(|e| panic!("{counter}: {e}"));
        *wanted.entry(counter).or_default() += 1;
        let (counter, count) = (*counter, wanted[counter]);
        wait_until(SOON, counter, || net.counter("a", counter), |seen| *seen == count)
            .unwrap_or_else(|e| panic!("{e}; {frame:02x?}; {:?}", net.ok("a", "stats")));
    }
    unharmed(&net, &before);
    // The same frame unbroken is taken: what was refused was refused for its fault alone.
    tap.send(&good).expect("sends");
    wait_until(SOON, "a new peer", || net.table("a").len(), |peers| *peers == 2)
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn a_storm_of_nonsense_harms_nothing() {
    let net = with_stranger();
    let (a, c) = (net.host("a"), net.host("c"));
    let before = net.table("a");
    let tap = Tap::open(c, "eth0", packet::ALL);
    // A small generator with a fixed seed (xorshift64): bytes that are not random to a debugger, but are to a parser.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for destination in [[0xff; 6], nic(a, 0).0, nic(a, 1).0] {
        for _ in 0..2000 {
            let length = usize::try_from(next() % 1486).expect("small");
            let mut frame = [&destination[..], &nic(c, 0).0, &0x88b5_u16.to_be_bytes()].concat();
            // Half of them start like a message that is right.
            if next() % 2 == 0 {
                frame.extend([6, 4, 1, u8::try_from(1 + next() % 4).expect("small")]);
            }
            frame.extend((0..length).map(|_| next().to_le_bytes()[0]));
            tap.send(&frame).expect("sends");
        }
    }
    // What strangers send faster than a host looks at it is refused in the data path.
    let refused = || {
        let count = |is: fn(&str) -> bool| -> u64 {
            net.stats("a").iter().filter(|c| is(&c.name)).map(|c| c.frames).sum()
        };
        (count(|name| name.starts_with("refused_")), count(|name| name == "rx_arp_plus_rate"))
    };
    let many = |(by_parser, by_rate): &(u64, u64)| *by_parser > 100 && *by_rate > 500;
    let refused = wait_until(SOON, "refusals", refused, many).unwrap_or_else(|e| panic!("{e}"));
    eprintln!("refused by the parser, and for their rate: {refused:?}");
    // It stays an answer away, and forgets what nonsense happened to be right in form.
    assert_eq!(net.show("a").members.len(), 2);
    net.host("a").wait_ping(net.host("b").ipv4(), SOON).expect("reaches");
    let table = || net.table("a");
    wait_until(SOON, "the table that was", table, |now| *now == before).unwrap_or_else(|e| panic!("{e}"));
    unharmed(&net, &before);
}

#[test]
fn claims_of_our_address_or_mac_are_told_as_conflicts_and_change_nothing() {
    let net = with_stranger();
    let (a, b, c) = (net.host("a"), net.host("b"), net.host("c"));
    let before = net.table("a");
    let tap = Tap::open(c, "eth0", packet::ALL);
    let mine = nic(c, 0);
    assert_eq!(net.show("a").conflicts, Vec::<String>::new());
    let mut two = message(mine, c.ipv4());
    two.hardware.push(nic(a, 1));
    let extension = two.extension.as_mut().expect("has one");
    extension.members.push(Member { index: 1, up: true, weight_mbit: 1000, class: 0 });
    let mut published = message(mine, a.ipv4());
    published.extension = None;
    let mut further = message(mine, c.ipv4());
    further.extension.as_mut().expect("has one").addresses.push(a.ipv6().parse().expect("an address"));
    let claims = [
        (
            "conflict_own_address",
            message(mine, a.ipv4()),
            format!("{mine} claims this host's address {}", a.ipv4()),
        ),
        ("conflict_own_address", published, format!("{mine} claims this host's address {}", a.ipv4())),
        ("conflict_own_address", further, format!("{mine} claims this host's address {}", a.ipv6())),
        ("conflict_own_mac", two, format!("{mine} claims this host's MAC {}", nic(a, 1))),
    ];
    for (counter, claim, sentence) in claims {
        let seen = net.counter("a", counter);
        let frame = emit_frame(nic(a, 0), mine, &claim).expect("keeps the rules");
        tap.send(&frame).expect("sends");
        wait_until(SOON, counter, || net.counter("a", counter), |now| *now == seen + 1)
            .unwrap_or_else(|e| panic!("{e}; {claim:?}"));
        let conflicts = net.show("a").conflicts;
        assert!(conflicts.contains(&sentence), "'{sentence}' is not in {conflicts:?}");
        assert!(net.ok("a", &format!("show {BOND}")).contains(&sentence), "people see it too");
        assert_eq!(net.table("a"), before, "{sentence}");
    }
    // A frame that also comes from our MAC: the switch now sends ours to the stranger, until we speak next.
    let forged = emit_frame(nic(a, 0), nic(a, 1), &message(nic(a, 1), c.ipv4())).expect("keeps the rules");
    tap.send(&forged).expect("sends");
    let by_own = format!("{} claims this host's MAC {}", nic(a, 1), nic(a, 1));
    wait_until(SOON, "a conflict", || net.show("a").conflicts, |all| all.contains(&by_own))
        .unwrap_or_else(|e| panic!("{e}"));
    // Claims of what a peer has do not move it, and a CLEAR in its name does not remove it.
    let mut clear = message(mine, b.ipv4());
    clear.kind = Kind::Clear;
    for claim in [message(mine, b.ipv4()), clear] {
        let frame = emit_frame(nic(a, 0), mine, &claim).expect("keeps the rules");
        tap.send(&frame).expect("sends");
        a.wait_ping(b.ipv4(), SOON).expect("reaches");
    }
    let own: Vec<View> = vec![net.own_view("b")];
    let table = || net.table("a").into_iter().filter(|view| own.contains(view)).count();
    assert_eq!(table(), 1, "{:?}", net.table("a"));
}
