//! Several datagrams that a program hands over at once (UDP_SEGMENT) are spread one by one.

use linkbraid_api::ClassRecord;
use linkbraid_lab::{Topology, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON};
use nix::sys::socket::{setsockopt, sockopt};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

/// Datagrams of a buffer, their bytes, and how many buffers are sent.
const SEGMENTS: u64 = 10;
const BYTES: usize = 1200;
const BUFFERS: u64 = 20;
const ALL: u64 = BUFFERS * SEGMENTS;

/// The interface that cuts on host `a`: its index and its name.
fn find_cutter(net: &Net) -> Option<(u32, String)> {
    let said = net.host("a").sh("ip -o link show type macvlan").expect("shows");
    let (index, rest) = said.split_once(':')?;
    let name = rest.trim().split('@').next()?;
    name.starts_with("lbc").then(|| (index.parse().expect("an index"), name.to_owned()))
}

/// Waits for one that has another index.
#[track_caller]
fn wait_cutter(net: &Net, not: u32) -> (u32, String) {
    let is_new = |found: &Option<(u32, String)>| found.as_ref().is_some_and(|(index, _)| *index != not);
    let found = wait_until(SOON, "an interface that cuts", || find_cutter(net), is_new);
    found.unwrap_or_else(|e| panic!("{e}")).expect("is there")
}

/// Sends buffers and receives every datagram.
fn deliver(net: &Net, to: &str) {
    let (a, b) = (net.host("a"), net.host("b"));
    let to: IpAddr = to.parse().expect("an address");
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let receiver = b.make("a socket", || UdpSocket::bind(any)).expect("binds");
    receiver.set_read_timeout(Some(Duration::from_secs(5))).expect("sets");
    let port = receiver.local_addr().expect("has one").port();
    let sender = a.make("a socket", || UdpSocket::bind(any)).expect("binds");
    setsockopt(&sender, sockopt::UdpGsoSegment, &(BYTES as i32)).expect("the kernel has UDP_SEGMENT");
    for _ in 0..BUFFERS {
        sender.send_to(&vec![7; BYTES * SEGMENTS as usize], (to, port)).expect("sends");
        for i in 0..SEGMENTS {
            let mut datagram = [0; 2 * BYTES];
            assert_eq!(receiver.recv(&mut datagram).expect("arrives"), BYTES, "datagram {i}");
        }
    }
}

/// The same. How many frames each member of the sender carried, and how many datagrams were cut.
fn send(net: &Net, to: &str) -> (Vec<u64>, u64) {
    let (cut, before) = (net.counter("a", "tx_cut"), net.show("a").members);
    deliver(net, to);
    let after = net.show("a").members;
    let carried = after.iter().zip(&before).map(|(after, before)| after.tx_frames - before.tx_frames);
    (carried.collect(), net.counter("a", "tx_cut") - cut)
}

/// Over IPv4 and IPv6 each buffer is cut once, and each datagram is counted once, on all members alike.
#[track_caller]
fn check(net: &Net) {
    let (a, b) = (net.host("a"), net.host("b"));
    let cut = || send(net, b.ipv4()).1;
    wait_until(SOON, "buffers to be cut", cut, |cut| *cut == ALL).unwrap_or_else(|e| panic!("{e}"));
    for to in [b.ipv4(), b.ipv6()] {
        a.wait_ping(to, SOON).expect("reaches");
        let by_reason = net.counter("a", "tx_peer");
        let (carried, cut) = send(net, to);
        assert_eq!(cut, ALL, "{to}");
        assert!(carried.iter().all(|frames| *frames >= ALL / 4 * 9 / 10), "{to}: {carried:?}");
        // Some for neighbour discovery and the like, not once more for each datagram.
        let by_reason = net.counter("a", "tx_peer") - by_reason;
        assert!((ALL..ALL * 3 / 2).contains(&by_reason), "{to}: {by_reason}");
    }
}

#[test]
fn datagrams_handed_over_at_once_are_spread_one_by_one() {
    let net = Net::bonded(Topology::symmetric(2, 4, None));
    let a = net.host("a");
    let (first, name) = wait_cutter(&net, 0);
    check(&net);
    // The rule of a class counts them once, too.
    net.ok("a", &format!("class add {BOND} one --match udp-port=1-65535"));
    let class = || {
        let all: Vec<ClassRecord> = serde_json::from_str(&net.ok("a", "class show --json")).expect("records");
        all.into_iter().next().expect("is there")
    };
    let before = class();
    send(&net, net.host("b").ipv4());
    let after = class();
    assert_eq!(after.rules[1].frames - before.rules[1].frames, ALL);
    assert_eq!(after.tx_frames - before.tx_frames, ALL);
    net.ok("a", &format!("class del {BOND} one"));
    // Somebody sets it down: it is made anew.
    a.sh(&format!("ip link set {name} down")).expect("sets");
    let (second, _) = wait_cutter(&net, first);
    check(&net);
    // A new daemon takes it over.
    let cut = net.counter("a", "tx_cut");
    net.kill("a");
    deliver(&net, net.host("b").ipv4());
    net.start("a", &[]);
    assert_eq!(net.counter("a", "tx_cut") - cut, ALL);
    check(&net);
    assert_eq!(wait_cutter(&net, 0).0, second);
    // What comes back uncut is sent as it is, until the next daemon puts that right.
    a.sh(&format!("ip link set {name} gso_max_segs 64")).expect("sets");
    let (carried, cut) = send(&net, net.host("b").ipv4());
    assert!(cut == ALL && carried.iter().sum::<u64>() >= ALL, "{carried:?}, {cut}");
    net.kill("a");
    net.start("a", &[]);
    wait_cutter(&net, second);
    check(&net);
    // Somebody deletes it: the buffers leave as they are, and what it stood in the way of has its place.
    a.sh(&format!("ip link del {name}")).expect("deletes");
    assert_eq!(send(&net, net.host("b").ipv4()).1, 0);
    a.sh(&format!("ip link add other link {BOND} type macvlan mode passthru")).expect("is not refused");
    assert_eq!(find_cutter(&net), None);
    a.sh("ip link del other").expect("deletes");
    // All goes on without it where its name is taken.
    a.sh(&format!("ip link add {name} type veth peer name other")).expect("is not taken");
    net.kill("a");
    net.start("a", &[]);
    assert_eq!(send(&net, net.host("b").ipv4()).1, 0);
    a.sh("ip link del other").expect("deletes");
    // The next daemon makes it, and it goes with the bond.
    net.kill("a");
    net.start("a", &[]);
    wait_cutter(&net, 0);
    check(&net);
    net.ok("a", &format!("bond del {BOND}"));
    assert_eq!(find_cutter(&net), None);
}

#[test]
fn a_broadcast_arrives_once() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    wait_cutter(&net, 0);
    let (a, b) = (net.host("a"), net.host("b"));
    // What comes in on any interface is taken, as on hosts that route.
    a.sh("sysctl -qw net.ipv4.conf.all.rp_filter=0").expect("sets");
    let receiver = a.make("a socket", || UdpSocket::bind("0.0.0.0:0")).expect("binds");
    receiver.set_read_timeout(Some(SOON)).expect("sets");
    let port = receiver.local_addr().expect("has one").port();
    let sender = b.make("a socket", || UdpSocket::bind((b.ipv4(), 0))).expect("binds");
    sender.set_broadcast(true).expect("sets");
    let mut seen = [0; 8];
    for number in 0..8_u8 {
        sender.send_to(&[number], ("198.18.0.255", port)).expect("sends");
    }
    sender.send_to(&[8], (a.ipv4(), port)).expect("sends");
    let mut datagram = [0];
    while receiver.recv(&mut datagram).is_ok() && datagram[0] != 8 {
        seen[usize::from(datagram[0])] += 1;
    }
    assert_eq!(seen, [1; 8]);
}
