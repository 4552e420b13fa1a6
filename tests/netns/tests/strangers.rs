//! What a stranger on the switch cannot do with ARP+: take a gateway's frames, unsettle lanes, or drown who is known.

use linkbraid_lab::{Host, LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::packet::{self, Tap};
use linkbraid_netns_tests::{BOND, Net, SOON};
use linkbraid_wire::{
    Extension, HostId, Kind, MacAddr, Member, Message, Probe, ProbeKind, View, emit_frame, emit_probe,
};
use std::{net::IpAddr, process::Command};

/// Bonded hosts `a` and `b`; a gateway `c` and a stranger `d`, all on one switch.
fn with_gateway() -> Net {
    let links = |n| std::iter::repeat_n(LinkSpec::switch(0, None), n);
    let topology = Topology::empty("lab", 1).host(links(2)).host(links(2));
    Net::bonded(topology.plain_host(links(1)).plain_host(links(1)))
}

fn nic(host: Host<'_>, link: usize) -> MacAddr {
    MacAddr(packet::mac(&host.mac(link)))
}

/// What an invented host says of itself.
fn message(kind: Kind, number: u8, sequence: u32, hardware: Vec<MacAddr>) -> Message {
    let member = |index| Member { index, up: true, weight_mbit: 1000, class: 0 };
    Message {
        kind,
        address: Some(IpAddr::from([198, 18, 200, number])),
        extension: Some(Extension {
            host: HostId([number; 16]),
            epoch: 1,
            sequence,
            members: (0..hardware.len() as u8).map(member).collect(),
            ..Extension::default()
        }),
        hardware,
    }
}

/// How many of so many pings are answered.
fn answered(host: Host<'_>, address: &str, pings: u32) -> u32 {
    let ping = || {
        let count = pings.to_string();
        Command::new("ping").args(["-n", "-c", &count, "-i", "0.01", "-W", "2", address]).output()
    };
    let output = host.run(ping).expect("enters the namespace").expect("ping runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let received = text.split(", ").find_map(|part| part.strip_suffix(" received"));
    received.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// How many lanes of `a` to a peer are proven.
fn lanes_to(net: &Net, peer: Host<'_>) -> usize {
    net.lanes("a").iter().filter(|lane| lane.peer == peer.ipv4() && lane.state == "up").count()
}

#[test]
fn a_gateway_answers_though_a_stranger_lists_its_mac() {
    let net = with_gateway();
    let (a, c, d) = (net.host("a"), net.host("c"), net.host("d"));
    a.wait_ping(c.ipv4(), SOON).expect("the gateway is there");
    let tap = Tap::open(d, "eth0", packet::ALL);
    let (gateway, stranger) = (nic(c, 0), nic(d, 0));
    let say = |message: &Message| {
        let frame = emit_frame(MacAddr::BROADCAST, stranger, message).expect("keeps the rules");
        tap.send(&frame).expect("sends");
    };
    // Without an id, as a host that only lists it, and as one whose primary MAC it is.
    let mut published = message(Kind::Broadcast, 77, 1, vec![stranger, gateway]);
    published.extension = None;
    say(&published);
    let refused = || net.counter("a", "published_only");
    wait_until(SOON, "the refusal", refused, |n| *n > 0).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(answered(a, c.ipv4(), 100), 100, "{:?}", net.ok("a", "stats"));
    for (number, hardware) in [(78, vec![stranger, gateway]), (79, vec![gateway, stranger])] {
        say(&message(Kind::Broadcast, number, 1, hardware));
        let joined = || net.table("a").len();
        wait_until(SOON, "the stranger in the table", joined, |n| *n == 2).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(answered(a, c.ipv4(), 100), 100, "{:?}", net.ok("a", "stats"));
        let mut clear = message(Kind::Clear, number, 2, vec![stranger]);
        clear.extension.as_mut().expect("has one").members.truncate(1);
        say(&clear);
        wait_until(SOON, "it is gone", joined, |n| *n == 1).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn frames_in_a_vlan_are_no_arp_plus() {
    let net = with_gateway();
    let (before, d) = (net.table("a"), net.host("d"));
    let tap = Tap::open(d, "eth0", packet::ALL);
    let said = emit_frame(MacAddr::BROADCAST, nic(d, 0), &message(Kind::Broadcast, 77, 1, vec![nic(d, 0)]));
    let said = said.expect("keeps the rules");
    let tagged = |vlan: u16| [&said[..12], &[0x81, 0], &vlan.to_be_bytes(), &said[12..]].concat();
    tap.send(&tagged(7)).expect("sends");
    // Both members are on that switch.
    let refused = || net.counter("a", "rx_tagged");
    wait_until(SOON, "the refusals", refused, |n| *n == 2).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(net.table("a"), before);
    // A priority is no VLAN.
    tap.send(&tagged(0xe000)).expect("sends");
    let joined = || net.table("a").len();
    wait_until(SOON, "a peer", joined, |n| *n == before.len() + 1).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn probes_in_a_peers_name_unsettle_no_lane() {
    let net = with_gateway();
    let (a, b, d) = (net.host("a"), net.host("b"), net.host("d"));
    wait_until(SOON, "all lanes are up", || lanes_to(&net, b), |n| *n == 4).unwrap_or_else(|e| panic!("{e}"));
    let id: String = net.peers("a").into_iter().find_map(|peer| peer.host_id).expect("b has an id");
    let mut host = [0; 16];
    for (at, byte) in host.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&id[2 * at..2 * at + 2], 16).expect("hexadecimal");
    }
    let tap = Tap::open(d, "eth0", packet::ALL);
    let proofs = || net.counter("a", "probe_rx_proof");
    for number in [u32::MAX, 1 << 31, 1 << 30] {
        for (own, theirs) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let probe = Probe {
                kind: ProbeKind::Probe,
                host: HostId(host),
                epoch: u64::MAX,
                nonce: 9,
                number,
                view: View::Lost,
                interval_us: u32::MAX,
                ..Probe::default()
            };
            let frame = emit_probe(nic(a, own), nic(b, theirs), &probe).expect("keeps the rules");
            tap.send(&frame).expect("sends");
        }
    }
    let seen = || net.counter("a", "probe_rx_early_epoch");
    wait_until(SOON, "they have come", seen, |n| *n >= 12).unwrap_or_else(|e| panic!("{e}"));
    let before = proofs();
    wait_until(SOON, "further proofs", proofs, |n| *n > before + 50).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(lanes_to(&net, b), 4);
    assert_eq!(net.counter("a", "probe_lane_lost"), 0, "{:?}", net.ok("a", &format!("show {BOND}")));
}

#[test]
fn a_flood_of_changes_of_invented_hosts_drowns_nobody() {
    let net = with_gateway();
    let (a, b, d) = (net.host("a"), net.host("b"), net.host("d"));
    wait_until(SOON, "all lanes are up", || lanes_to(&net, b), |n| *n == 4).unwrap_or_else(|e| panic!("{e}"));
    let of_b = || net.show("a").events.iter().filter(|event| event.object == b.ipv4()).count();
    assert!(of_b() > 0, "it has joined");
    let (before, lines) = (of_b(), net.log("a").lines().count());
    let tap = Tap::open(d, "eth0", packet::ALL);
    for sequence in 1..=1200 {
        for number in 1..=50 {
            let mac = MacAddr([6, 0, 0, 0, 0, number]);
            let frame =
                emit_frame(MacAddr::BROADCAST, mac, &message(Kind::Change, number, sequence, vec![mac]));
            // A queue on the way may be full.
            let _ = tap.send(&frame.expect("keeps the rules"));
        }
    }
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    let gone = || net.table("a").len();
    wait_until(3 * SOON, "they are forgotten", gone, |n| *n == 1).unwrap_or_else(|e| panic!("{e}"));
    // Where the flood was short, with the next event that may be told: when they are deleted.
    let left_out = || net.show("a").events.iter().any(|event| event.reason == "left_out");
    wait_until(SOON, "how much was not told", left_out, |told| *told).unwrap_or_else(|e| panic!("{e}"));
    let log = net.log("a");
    let lines = log.lines().count() - lines;
    assert!(lines < 200, "{lines} lines: {log}");
    assert!(of_b() >= before, "{:?}", net.show("a").events);
    assert_eq!(net.counter("a", "probe_lane_lost"), 0);
}
