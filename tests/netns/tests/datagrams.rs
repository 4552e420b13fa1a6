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

/// The same. How many frames each member of the sender carried.
fn send(net: &Net, to: &str) -> Vec<u64> {
    let before = net.show("a").members;
    deliver(net, to);
    let after = net.show("a").members;
    after.iter().zip(&before).map(|(after, before)| after.tx_frames - before.tx_frames).collect()
}

/// Over IPv4 and IPv6 each buffer is cut, and each datagram is counted once, on all members alike.
#[track_caller]
fn check(net: &Net) {
    let (a, b) = (net.host("a"), net.host("b"));
    let is_even = |carried: &Vec<u64>| carried.iter().all(|frames| *frames >= ALL / 4 * 9 / 10);
    // Lanes are admitted one by one.
    let proven =
        || net.lanes("a").iter().filter(|lane| lane.share_ppm > 0 && lane.peer_mac.is_some()).count();
    wait_until(SOON, "all lanes in use", proven, |lanes| *lanes == 4).unwrap_or_else(|e| panic!("{e}"));
    for to in [b.ipv4(), b.ipv6()] {
        a.wait_ping(to, SOON).expect("reaches");
        let by_reason = net.counter("a", "tx_peer");
        let carried = send(net, to);
        assert!(is_even(&carried), "{to}: {carried:?}");
        // Some for neighbour discovery and the like, not once more for each datagram.
        let by_reason = net.counter("a", "tx_peer") - by_reason;
        assert!((ALL..ALL * 3 / 2).contains(&by_reason), "{to}: {by_reason}");
    }
}

/// Whether the bond's interface is handed buffers of several datagrams.
fn takes_buffers(net: &Net) -> bool {
    let said = net.host("a").sh(&format!("ethtool -k {BOND}")).expect("shows");
    said.lines().any(|line| line.trim() == "tx-udp-segmentation: on")
}

#[test]
fn datagrams_handed_over_at_once_are_spread_one_by_one() {
    let net = Net::bonded(Topology::symmetric(2, 4, None));
    let a = net.host("a");
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
    // It goes on without a daemon, and with the next one.
    net.kill("a");
    deliver(&net, net.host("b").ipv4());
    net.start("a", &[]);
    check(&net);
    // Where nothing is spread, nothing is cut.
    assert!(!takes_buffers(&net));
    net.ok("a", &format!("bond set {BOND} --policy flow"));
    assert!(takes_buffers(&net));
    deliver(&net, net.host("b").ipv4());
    net.ok("a", &format!("bond set {BOND} --policy spread"));
    check(&net);
    // Nothing stands in the way of what else takes an interface for itself.
    a.sh(&format!("ip link add other link {BOND} type macvlan mode passthru")).expect("is not refused");
    a.sh("ip link del other").expect("deletes");
}

#[test]
fn a_broadcast_arrives_once() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
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
