//! Hosts that have never heard of linkbraid.

use linkbraid_lab::{LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::packet::{self, Tap, arp_request};
use linkbraid_netns_tests::{BOND, Net, SOON, traffic};

/// Link rate of the bonded host, Mbit/s; a plain host's link is several times as fast.
const RATE: u32 = 20;

/// A bonded host `a` with `members` links, its peer `b` with as many, and the plain host `c`.
fn with_plain(members: usize) -> Topology {
    let links = || std::iter::repeat_n(LinkSpec::switch(0, Some(RATE)), members);
    Topology::empty("lab", 1).host(links()).host(links()).plain_host([LinkSpec::switch(0, Some(100))])
}

#[test]
fn arp_of_a_plain_host_is_answered_exactly_once() {
    let net = Net::bonded(with_plain(4));
    let (a, c) = (net.host("a"), net.host("c"));
    // What the plain host knows for good, it does not ask for by itself.
    c.sh(&format!("ip neigh replace {} lladdr {} dev eth0", a.ipv4(), net.show("a").mac)).expect("sets");
    let tap = Tap::open(c, "eth0", packet::ARP);
    let request = arp_request(packet::mac(&c.mac(0)), c.ipv4(), a.ipv4());
    let count = 50;
    for _ in 0..count {
        tap.send(&request).expect("sends");
    }
    let from: std::net::Ipv4Addr = a.ipv4().parse().expect("an address");
    let is_answer = |frame: &Vec<u8>| frame.len() >= 42 && frame[21] == 2 && frame[28..32] == from.octets();
    let mut answers = Vec::new();
    let mut look = || {
        answers.extend(tap.take().into_iter().filter(is_answer));
        answers.len()
    };
    wait_until(SOON, "an answer to each", &mut look, |got| *got >= count).unwrap_or_else(|e| panic!("{e}"));
    // What comes after a further exchange comes after every second answer.
    c.sh(&format!("ping -c 20 -i 0.01 {}", a.ipv4())).expect("reaches");
    assert_eq!(look(), count, "answered more than once");
    let primary = packet::mac(&net.show("a").mac);
    for answer in &answers {
        assert_eq!((&answer[..6], &answer[22..28]), (&packet::mac(&c.mac(0))[..], &primary[..]));
    }
}

#[test]
fn members_answer_for_the_bond_alone() {
    let net = Net::bonded(with_plain(3));
    let (a, c) = (net.host("a"), net.host("c"));
    c.sh(&format!("ip neigh replace {} lladdr {} dev eth0", a.ipv4(), net.show("a").mac)).expect("sets");
    let tap = Tap::open(c, "eth0", packet::ARP);
    let primary = packet::mac(&net.show("a").mac);
    for link in 0..3 {
        // Asked at each member's own MAC, the one answer names the bond's.
        let mut request = arp_request(packet::mac(&c.mac(0)), c.ipv4(), a.ipv4());
        request[..6].copy_from_slice(&packet::mac(&a.mac(link)));
        tap.send(&request).expect("sends");
        let mut answers = Vec::new();
        let mut look = || {
            answers.extend(tap.take().into_iter().filter(|f| f.len() >= 42 && f[21] == 2));
            answers.len()
        };
        wait_until(SOON, "an answer", &mut look, |got| *got > 0).unwrap_or_else(|e| panic!("{e}"));
        c.sh(&format!("ping -c 5 -i 0.01 {}", a.ipv4())).expect("reaches");
        assert_eq!(look(), 1, "{answers:02x?}");
        assert_eq!(answers[0][22..28], primary);
    }
}

#[test]
fn a_plain_host_hears_one_question_for_each_asked() {
    let net = Net::bonded(with_plain(4));
    let (a, c) = (net.host("a"), net.host("c"));
    let tap = Tap::open(c, "eth0", packet::ARP);
    let rounds = 8;
    for _ in 0..rounds {
        a.sh(&format!("ip neigh flush dev {BOND}")).expect("flushes");
        a.wait_ping(c.ipv4(), SOON).expect("reaches");
    }
    let asked = |frame: &Vec<u8>| frame.len() >= 42 && frame[..6] == [0xff; 6] && frame[21] == 1;
    let questions = tap.take().into_iter().filter(asked).count();
    assert_eq!(questions, rounds);
}

#[test]
fn both_ways_work_with_a_plain_host_and_towards_it_all_members_send() {
    let net = Net::up(with_plain(2));
    let (a, c) = (net.host("a"), net.host("c"));
    let single = traffic::measure(a, c);
    net.bond_all();
    for address in [c.ipv4(), c.ipv6()] {
        a.wait_ping(address, SOON).expect("reaches");
    }
    for address in [a.ipv4(), a.ipv6()] {
        c.wait_ping(address, SOON).expect("reaches");
    }
    let before: Vec<u64> = net.show("a").members.iter().map(|m| m.tx_bytes).collect();
    traffic::reaches(a, c, &traffic::tcp(), |o| o.mbit() / single > 1.8);
    let after: Vec<u64> = net.show("a").members.iter().map(|m| m.tx_bytes).collect();
    let sent: Vec<f64> = after.iter().zip(&before).map(|(a, b)| (a - b) as f64).collect();
    let share = sent[0] / sent.iter().sum::<f64>();
    assert!((0.48..0.52).contains(&share), "{sent:?}");
    // It sends to one MAC, so one link is all it can have; and that it has.
    traffic::reaches(c, a, &traffic::tcp(), |o| (0.9..1.1).contains(&(o.mbit() / single)));
    // The plain host has one entry for the bond, and it stays.
    let neighbours = c.sh(&format!("ip neigh show {}", a.ipv4())).expect("reads");
    assert!(neighbours.contains(&net.show("a").mac), "{neighbours}");
}

#[test]
fn a_plain_host_follows_the_bond_to_another_mac() {
    let net = Net::bonded(with_plain(2));
    let (a, c) = (net.host("a"), net.host("c"));
    c.wait_ping(a.ipv4(), SOON).expect("reaches");
    c.wait_ping(a.ipv6(), SOON).expect("reaches");
    let before = net.show("a").mac;
    net.ok("a", &format!("member del {BOND} eth0"));
    let mac = net.show("a").mac;
    assert_ne!(mac, before);
    // The announcements say so at once: no entry of the plain host has to time out.
    for address in [a.ipv4(), a.ipv6()] {
        let entry = || c.sh(&format!("ip neigh show {address}")).unwrap_or_default();
        wait_until(SOON, "the new MAC", entry, |text| text.contains(&mac)).unwrap_or_else(|e| panic!("{e}"));
        c.sh(&format!("ping -c 1 -W 1 {address}")).expect("reaches at once");
    }
}

#[test]
fn a_bond_of_one_plain_neighbour_less_works_alone() {
    // No peer at all: every other host is plain.
    let mut topology = with_plain(2);
    topology.hosts[1].plain = true;
    let net = Net::bonded(topology);
    let [a, b, c] = ["a", "b", "c"].map(|name| net.host(name));
    for host in [b, c] {
        host.wait_ping(a.ipv4(), SOON).expect("reaches");
        a.wait_ping(host.ipv4(), SOON).expect("reaches");
    }
    assert!(net.peers("a").is_empty());
    assert_eq!(net.lanes("a").len(), 2);
}
