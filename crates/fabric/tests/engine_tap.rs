//! Engines between TAP devices in network namespaces.
#![cfg(not(loom))]

#[path = "../../link/tests/namespace/mod.rs"]
mod namespace;
mod node;
mod toy;

use std::time::{Duration, Instant};

use linkbraid_fabric::engine::{Config, Counter, End, Poll};
use namespace::Namespace;
use node::{Node, Place, connect, fabric, transfer};
use toy::Net;

const DEADLINE: Duration = Duration::from_secs(20);
const MTU_MAX: u32 = 65_521;

/// Value of a counter of TCP's in a namespace (`TcpExt` in /proc/net/netstat).
fn tcp_counter(space: &Namespace, name: &str) -> u64 {
    let text = space.run("cat /proc/thread-self/net/netstat");
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let found = names.split_whitespace().zip(values.split_whitespace()).find(|(known, _)| *known == name);
    found.unwrap().1.parse().unwrap()
}

#[test]
fn over_the_toy_frames_cross_between_kernels() {
    let net = Net::new(2, 64);
    let start = |number: u16| {
        let transports = vec![net.node(number)];
        Node::start(Namespace::new(), transports, 1 + u64::from(number), 1500, Config::default())
    };
    let nodes = [start(0), start(1)];
    connect(&nodes);
    nodes[0].space.run("ping -c 1 -W 5 -s 5000 198.18.0.2");
    transfer(&nodes[0].space, &nodes[1].space, "198.18.0.2:5000", 16 << 20);
}

#[test]
fn over_shared_memory_everything_crosses_at_every_mtu() {
    for mtu in [1500, 9000, MTU_MAX] {
        let place = Place::new();
        let nodes = fabric(&place, 3, 1, mtu, Config::default());
        for (from, node) in nodes.iter().enumerate() {
            for to in (0..3).filter(|to| *to != from) {
                for size in [0, 1400, 65_507] {
                    node.space.run(&format!("ping -c 1 -W 5 -s {size} 198.18.0.{}", to + 1));
                }
                node.space.run(&format!("ping -6 -c 1 -W 5 -s 1400 2001:db8::{}", to + 1));
            }
        }
        transfer(&nodes[0].space, &nodes[2].space, "198.18.0.3:5000", 32 << 20);
        transfer(&nodes[2].space, &nodes[1].space, "[2001:db8::2]:5000", 32 << 20);
        let shared = nodes[0].control.shared();
        let (frames, bytes) = (shared.total(2, Counter::TxFrames), shared.total(2, Counter::TxBytes));
        assert!(bytes / frames > 10_000, "buffers cross whole: {bytes} bytes in {frames} frames");
        for node in &nodes {
            for counter in
                [Counter::RxDropVirtio, Counter::RxDropKernel, Counter::RxDropTwice, Counter::TxDropFull]
            {
                let total: u64 = (0..3).map(|peer| node.control.shared().total(peer, counter)).sum();
                assert_eq!(total, 0, "{counter:?}");
            }
        }
    }
}

#[test]
fn over_udp_on_a_cable_frames_cross_larger_than_its_datagrams() {
    let spaces = [Namespace::new(), Namespace::new()];
    let other = format!("/proc/{}/fd/{}", std::process::id(), spaces[1].fd());
    spaces[0].run(&format!("ip link add veth0 type veth peer name veth0 netns {other}"));
    let directory = Place::new();
    directory.write("0 198.18.1.1:7000\n1 198.18.1.2:7000\n");
    for (number, space) in (1..).zip(&spaces) {
        space.run(&format!("ip addr add 198.18.1.{number}/24 dev veth0"));
        space.run("ip link set veth0 up");
    }
    let mut nodes = Vec::new();
    for (number, space) in (0..).zip(spaces) {
        let transports = space.enter(|| directory.open("udp", number, 2, 1));
        nodes.push(Node::start(space, transports, 1 + u64::from(number), 9000, Config::default()));
    }
    connect(&nodes);
    for size in [0, 8000, 65_507] {
        nodes[0].space.run(&format!("ping -c 1 -W 5 -s {size} 198.18.0.2"));
    }
    transfer(&nodes[0].space, &nodes[1].space, "198.18.0.2:5000", 8 << 20);
    let shared = nodes[0].control.shared();
    let (frames, bytes) = (shared.total(1, Counter::TxFrames), shared.total(1, Counter::TxBytes));
    println!("udp: {bytes} bytes in {frames} frames");
    assert!(bytes / frames > 3_000, "buffers cross whole: {bytes} bytes in {frames} frames");
}

#[test]
fn flows_over_several_queues_are_not_reordered() {
    let place = Place::new();
    let nodes = fabric(&place, 2, 4, 1500, Config::default());
    std::thread::scope(|scope| {
        for port in 5000..5012 {
            let (from, to) = (&nodes[0].space, &nodes[1].space);
            scope.spawn(move || transfer(from, to, &format!("198.18.0.2:{port}"), 4 << 20));
        }
    });
    assert_eq!(tcp_counter(&nodes[1].space, "TCPOFOQueue"), 0);
    let shared = nodes[0].control.shared();
    let used = (0..4).filter(|queue| shared.counters(*queue, 1).unwrap().get(Counter::TxFrames) > 10).count();
    assert!(used > 1, "{used}");
}

#[test]
fn a_node_that_starts_again_is_heard_again_and_the_others_never_stop() {
    let place = Place::new();
    let mut nodes = fabric(&place, 3, 1, 1500, Config::default());
    for round in 1..6 {
        let space = nodes.remove(1).crash();
        for node in &nodes {
            node.control.set_link(1, None);
        }
        nodes[0].space.run("ping -c 1 -W 5 198.18.0.3");
        let start = Instant::now();
        let epoch = 100 + round;
        let again = Node::start(space, place.join(1, 3, 1), epoch, 1500, Config::default());
        again.control.set_link(0, Some(1));
        again.control.set_link(2, Some(3));
        nodes.insert(1, again);
        for node in [0, 2] {
            nodes[node].control.set_link(1, Some(epoch));
        }
        nodes[0].space.run("ping -c 1 -W 5 198.18.0.2");
        println!("round {round}: heard {:?} after its start", start.elapsed());
        transfer(&nodes[2].space, &nodes[1].space, "198.18.0.2:5000", 1 << 20);
    }
}

#[test]
fn an_idle_fabric_sleeps() {
    let place = Place::new();
    let mut nodes = fabric(&place, 2, 1, 1500, Config::default());
    nodes[0].space.run("ping -c 3 -i 0.1 -W 5 198.18.0.2");
    // What IPv6 says of itself when an interface comes up has to be over.
    let quiet = |nodes: &[Node]| nodes[0].control.shared().total(1, Counter::RxFrames);
    let sleeps = |nodes: &[Node]| nodes[0].control.shared().total(0, Counter::Sleeps);
    let start = Instant::now();
    let (busy, passed) = loop {
        let (frames, from) = (quiet(&nodes), sleeps(&nodes));
        let (began, cpu) = (Instant::now(), nodes[0].cpu_time());
        while sleeps(&nodes) < from + 50 {
            assert!(start.elapsed() < DEADLINE);
            std::thread::yield_now();
        }
        if quiet(&nodes) == frames {
            break (nodes[0].cpu_time() - cpu, began.elapsed());
        }
    };
    println!("idle: {busy:?} of {passed:?}");
    assert!(busy < passed / 100, "{busy:?} of {passed:?}");
    // And somebody removes an interface.
    nodes[1].space.run("ip link del fab0");
    let ended = nodes[1].threads.pop().unwrap().join().unwrap();
    assert_eq!(ended, End::PortGone);
}

#[test]
fn all_ways_of_waiting_carry_frames() {
    for poll in [Poll::Busy, Poll::Adaptive, Poll::Sleep] {
        let place = Place::new();
        let nodes = fabric(&place, 2, 1, 1500, Config { poll, ..Config::default() });
        transfer(&nodes[0].space, &nodes[1].space, "198.18.0.2:5000", 8 << 20);
        let out = nodes[0].space.run("ping -c 50 -i 0.002 -q 198.18.0.2");
        println!("{poll:?}: {}", out.lines().last().unwrap());
        let slept = nodes[0].control.shared().total(0, Counter::Sleeps);
        assert_eq!(slept == 0, poll == Poll::Busy, "{poll:?} slept {slept} times");
    }
}
