//! A bond is a bridge: what leaves by it is seen on it, and machines and containers live behind it.

use linkbraid_api::Health;
use linkbraid_lab::{Fault, LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::packet::{self, Tap};
use linkbraid_netns_tests::{BOND, GUEST_NIC, Net, SOON, sh, until};
use serde_json::Value;

/// Frames and bytes that an interface of host `a` says it has sent.
fn sent(net: &Net, interface: &str) -> (u64, u64) {
    let said = net.host("a").sh(&format!("ip -s -j link show dev {interface}")).expect("shows");
    let shown: Value = serde_json::from_str(&said).expect("JSON");
    let tx = |name: &str| shown[0]["stats64"]["tx"][name].as_u64().expect("a number");
    (tx("packets"), tx("bytes"))
}

#[test]
fn what_the_host_sends_is_seen_and_counted_on_the_bond() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    let tap = Tap::open(a, BOND, packet::ALL);
    let before = sent(&net, BOND);
    a.sh(&format!("ping -q -c 100 -i 0.002 {}", b.ipv4())).expect("reaches");
    let after = sent(&net, BOND);
    assert!((100..130).contains(&(after.0 - before.0)), "{before:?} {after:?}");
    // As tcpdump sees them.
    let is_request = |frame: &Vec<u8>| frame[12..14] == [8, 0] && frame[23] == 1 && frame[34] == 8;
    assert_eq!(tap.take_sent().iter().filter(|frame| is_request(frame)).count(), 100);
}

/// Two bonded hosts, a plain one, and two guests: `d` behind `a`, and `e` behind `b`.
fn with_guests() -> Net {
    let switch = || LinkSpec::switch(0, None);
    let lab =
        Topology::symmetric(2, 4, None).plain_host([switch()]).plain_host([switch()]).plain_host([switch()]);
    let net = Net::bonded(lab);
    net.move_in("a", "d", 201);
    net.move_in("b", "e", 202);
    net
}

/// The addresses of all that a guest speaks with: its own host, a peer, a plain host, another guest.
fn others(net: &Net) -> Vec<String> {
    let hosts = ["a", "b", "c"].map(|name| net.host(name));
    let mut all: Vec<String> =
        hosts.iter().flat_map(|host| [host.ipv4().to_owned(), host.ipv6().to_owned()]).collect();
    all.extend(["198.18.0.202".to_owned(), "2001:db8::202".to_owned()]);
    all
}

#[test]
fn guests_reach_everybody_and_are_reached() {
    let net = with_guests();
    let guest = net.host("d");
    for address in others(&net) {
        guest.wait_ping(&address, SOON).unwrap_or_else(|e| panic!("{address}: {e}"));
        let said = guest.sh(&format!("ping -q -c 20 -i 0.01 {address}")).unwrap_or_else(|e| panic!("{e}"));
        assert!(said.contains(" 20 received") && !said.contains("duplicates"), "{address}: {said}");
    }
    for name in ["a", "b", "c", "e"] {
        for address in ["198.18.0.201", "2001:db8::201"] {
            net.host(name).wait_ping(address, SOON).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
    // Nobody hears itself, or IPv6 would take the address for another's.
    let addresses = sh(guest, &format!("ip -6 address show dev {GUEST_NIC} -tentative"));
    assert!(addresses.contains("2001:db8::201") && !addresses.contains("dadfailed"), "{addresses}");
}

/// Waits until the switch has the MAC of the guest of a on the port of the one member that `show` names for it.
#[track_caller]
fn switch_has_it_where_show_says(net: &Net) {
    let switch = net.lab().switch(0).expect("a switch").name().to_owned();
    let places = || {
        let members = net.show("a").guests.into_iter().flat_map(|guest| guest.members);
        let learned = sh(net.host("a"), &format!("bridge -n {switch} fdb show br br0"));
        let of_guest = learned.lines().filter(|line| line.starts_with("02:00:00:00:77:c9 "));
        let ports = of_guest.filter_map(|line| line.split_whitespace().nth(2)?.strip_prefix("a-"));
        (members.collect::<Vec<_>>(), ports.map(str::to_owned).collect::<Vec<_>>())
    };
    until("one place of the guest", places, |(shown, learned)| shown == learned && shown.len() == 1);
}

#[test]
fn a_guest_is_reached_again_when_its_member_dies() {
    let net = with_guests();
    let (guest, plain) = (net.host("d"), net.host("c"));
    guest.wait_ping(plain.ipv4(), SOON).expect("reaches");
    // A member that was never proven may as well be on a switch of its own.
    let proven = || net.lanes("a").iter().filter(|lane| lane.state == "up").count();
    let is_whole = || {
        until("a whole bond", || net.show("a").health, |is| *is == Health::Ok);
        until("proven lanes", proven, |lanes| *lanes >= 4 * 4);
    };
    is_whole();
    switch_has_it_where_show_says(&net);
    // Whichever member speaks for it, each dies once, silently; the guest itself says nothing.
    for index in 0..4 {
        let link = net.host("a").link(index).expect("there");
        link.fail(Fault::Silent).expect("sets");
        let reaches = || plain.sh("ping -q -c 1 -W 1 198.18.0.201").is_ok();
        wait_until(SOON, "the guest", reaches, |is| *is).unwrap_or_else(|e| panic!("link {index}: {e}"));
        switch_has_it_where_show_says(&net);
        link.mend().expect("sets");
        is_whole();
    }
}

#[test]
fn a_port_that_somebody_changed_is_put_right() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    let links = || a.sh("ip -o link show type veth").expect("shows");
    let named = |prefix: &str| {
        let said = links();
        let mut names = said.split([' ', '@', ':']).filter(|word| word.starts_with(prefix));
        names.next().unwrap_or_else(|| panic!("no {prefix}: {said}")).to_owned()
    };
    for change in [
        "set PORT down",
        "set END down",
        "set PORT nomaster",
        "del PORT",
        "del END",
        "set PORT name moved0 netns SW",
        "set END name other0",
    ] {
        let line = change.replace("PORT", &named("lbint")).replace("END", &named("lbend"));
        let line = line.replace("SW", net.host("b").netns().name());
        a.sh(&format!("ip link {line}")).expect("is taken");
        a.wait_ping(b.ipv4(), SOON).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    // While no daemon runs, too: the next one makes it.
    let port = named("lbint");
    net.kill("a");
    a.sh(&format!("ip link del {port}")).expect("is taken");
    net.start("a", &[]);
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    // Something else has its name: that is said as long as it is so.
    net.kill("a");
    a.sh(&format!("ip link del {port}")).expect("is taken");
    a.sh(&format!("ip link add {port} type bridge")).expect("is taken");
    net.start("a", &[]);
    let health = || net.show("a").health;
    assert_ne!(health(), Health::Ok);
    a.sh(&format!("ip link del {port}")).expect("is taken");
    wait_until(SOON, "its health", health, |is| *is == Health::Ok).unwrap_or_else(|e| panic!("{e}"));
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    net.ok("a", &format!("bond del {BOND}"));
    assert!(!links().contains("lbint") && !links().contains("lbend"));
}

#[test]
fn a_member_that_was_put_back_makes_no_loop() {
    const TYPE: u16 = 0x9a9a;
    let net = Net::bonded(Topology::symmetric(2, 2, None).plain_host([LinkSpec::switch(0, None)]));
    let (a, plain) = (net.host("a"), net.host("c"));
    let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 9, 1], &TYPE.to_be_bytes(), &[0; 50]].concat();
    // With a daemon, without one when it is put back, and without one at all.
    for kill_before in ["", "ip link set eth1 master bond0", "ip link set eth1 nomaster"] {
        let (here, there) = (Tap::open(a, BOND, TYPE), Tap::open(plain, "eth0", TYPE));
        for line in ["ip link set eth1 nomaster", "ip link set eth1 master bond0"] {
            if line == kill_before {
                net.kill("a");
            }
            a.sh(line).expect("is taken");
        }
        let mut arrived = 0;
        let arrives = || {
            there.send(&frame).expect("sends");
            arrived += here.take().len();
            arrived
        };
        wait_until(SOON, "broadcasts", arrives, |arrived| *arrived >= 20).expect("arrive");
        assert_eq!(there.take().len(), 0, "its own broadcasts came back");
        if !kill_before.is_empty() {
            net.start("a", &[]);
        }
        net.wait_tables(&["a", "b"]);
    }
}
