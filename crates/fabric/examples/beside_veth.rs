//! A fabric of two nodes over shared memory, beside a veth pair between the same namespaces: one run, in turns.
//!
//! Throughput: `iperf3`, one flow and four. Latency: half a round trip of 64 bytes over UDP, and over TCP, between applications that
//! block.
//! Usage: `beside_veth [SECONDS [ROUNDS [QUEUES [WAYS]]]]`,
//! as root; 0 seconds leave throughput out, WAYS is how many of adaptive, busy and sleeping are measured.

#[path = "../../link/tests/namespace/mod.rs"]
mod namespace;
#[path = "../tests/node/mod.rs"]
mod node;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use linkbraid_fabric::engine::{Config, Counter, Poll};
use namespace::Namespace;
use node::{Node, Place, fabric};

/// Round trips of one measurement.
const TRIPS: usize = 5_000;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().expect("a number"));
    let seconds = arguments.next().unwrap_or(3);
    let rounds = arguments.next().unwrap_or(3);
    let queues = arguments.next().unwrap_or(1) as u16;
    let ways = arguments.next().unwrap_or(3) as usize;
    for mtu in [1500, 65_521] {
        for poll in [Poll::Adaptive, Poll::Busy, Poll::Sleep].into_iter().take(ways) {
            println!(
                "fabric over shm, MTU {mtu}, {queues} queues, {poll:?}; veth with the same MTU (65,535 at most)"
            );
            let place = Place::new();
            let nodes = fabric(&place, 2, queues, mtu, Config { poll, ..Config::default() });
            let spaces = [&nodes[0].space, &nodes[1].space];
            cable(&nodes, mtu);
            for _ in 0..rounds {
                for (name, net) in [("veth", "198.18.1"), ("fabric", "198.18.0")] {
                    let cpu = cpu_of_engines(&nodes);
                    let start = Instant::now();
                    let one = iperf(spaces, net, 1, seconds);
                    let busy = (cpu_of_engines(&nodes) - cpu).as_secs_f64() / start.elapsed().as_secs_f64();
                    let four = iperf(spaces, net, 4, seconds);
                    let back = iperf(spaces, net, 16, seconds);
                    let (udp, tcp) = (udp_trips(spaces, net), tcp_trips(spaces, net));
                    println!(
                        "  {name:6} 1 flow {one:5.1}  4 flows {four:5.1}  16 flows {back:5.1} Gbit/s   64 B RTT/2 p50 (p10): UDP {}, TCP {} us   engines {:3.0} %",
                        show(udp),
                        show(tcp),
                        busy * 100.0
                    );
                }
            }
            for node in &nodes {
                let shared = node.control.shared();
                let peer = 1 - shared.node();
                let nonzero = Counter::ALL.iter().map(|counter| (counter, shared.total(peer, *counter)));
                let text: Vec<String> = nonzero
                    .filter(|(_, count)| *count > 0)
                    .map(|(counter, count)| format!("{}={count}", counter.name()))
                    .collect();
                let own = |counter| shared.total(shared.node(), counter);
                let (sleeps, wakes) = (own(Counter::Sleeps), own(Counter::Wakes));
                println!("  node {}: {} sleeps={sleeps} wakes={wakes}", shared.node(), text.join(" "));
                println!(
                    "    {}",
                    node.space
                        .run("ip -s -s link show dev fab0")
                        .lines()
                        .skip(2)
                        .map(str::trim)
                        .collect::<Vec<_>>()
                        .join(" | ")
                );
            }
        }
    }
}

fn show((half, tenth): (Duration, Duration)) -> String {
    format!("{:5.1} ({:4.1})", half.as_secs_f64() * 1e6, tenth.as_secs_f64() * 1e6)
}

/// A veth pair between the nodes' namespaces, with 198.18.1.1 and 198.18.1.2.
fn cable(nodes: &[Node], mtu: u32) {
    let file = format!("/proc/{}/fd/{}", std::process::id(), nodes[1].space.fd());
    nodes[0]
        .space
        .run(&format!("ip link add veth0 mtu {mtu} type veth peer name veth0 mtu {mtu} netns {file}"));
    for (number, node) in (1..).zip(nodes) {
        node.space.run(&format!("ip addr add 198.18.1.{number}/24 dev veth0"));
        node.space.run("ip link set veth0 up");
    }
}

fn spawn(space: &Namespace, command: &str) -> Child {
    space.enter(|| {
        let mut words = command.split_whitespace();
        let mut made = Command::new(words.next().unwrap());
        made.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    })
}

/// Gbit/s of TCP from the first to the second.
fn iperf([from, to]: [&Namespace; 2], net: &str, flows: u32, seconds: u64) -> f64 {
    if seconds == 0 {
        return 0.0;
    }
    let mut server = spawn(to, &format!("iperf3 -s -1 -B {net}.2"));
    to.until("ss -Hltn", |listening| listening.contains(":5201"));
    let answer = from.run(&format!("iperf3 -J -c {net}.2 -P {flows} -t {seconds}"));
    server.wait().unwrap();
    let sum = answer.split("\"sum_received\"").nth(1).unwrap();
    let number = sum.split("\"bits_per_second\":").nth(1).unwrap();
    number.split([',', '}']).next().unwrap().trim().parse::<f64>().unwrap() / 1e9
}

fn udp_trips([from, to]: [&Namespace; 2], net: &str) -> (Duration, Duration) {
    let (here, there) = (format!("{net}.1:7000"), format!("{net}.2:7000"));
    let near = from.enter(|| UdpSocket::bind(&here).unwrap());
    let far = to.enter(|| UdpSocket::bind(&there).unwrap());
    near.connect(&there).unwrap();
    far.connect(&here).unwrap();
    near.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 64];
            while let Ok(64) = far.recv(&mut bytes) {
                far.send(&bytes).unwrap();
            }
        });
        let mut bytes = [0; 64];
        let times = trips(|| {
            near.send(&bytes.clone()).unwrap();
            near.recv(&mut bytes).unwrap();
        });
        near.send(&[0]).unwrap();
        times
    })
}

fn tcp_trips([from, to]: [&Namespace; 2], net: &str) -> (Duration, Duration) {
    let listener = to.enter(|| TcpListener::bind(format!("{net}.2:7001")).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut far, _) = listener.accept().unwrap();
            far.set_nodelay(true).unwrap();
            let mut bytes = [0; 64];
            while far.read_exact(&mut bytes).is_ok() {
                far.write_all(&bytes).unwrap();
            }
        });
        let mut near = from.enter(|| TcpStream::connect(format!("{net}.2:7001")).unwrap());
        near.set_nodelay(true).unwrap();
        let mut bytes = [0; 64];
        trips(|| {
            near.write_all(&bytes).unwrap();
            near.read_exact(&mut bytes).unwrap();
        })
    })
}

/// Median and first decile of half the time that a round trip takes.
fn trips(mut trip: impl FnMut()) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..TRIPS)
        .map(|_| {
            let start = Instant::now();
            trip();
            start.elapsed() / 2
        })
        .collect();
    times.sort_unstable();
    (times[TRIPS / 2], times[TRIPS / 10])
}

fn cpu_of_engines(nodes: &[Node]) -> Duration {
    nodes.iter().map(Node::cpu_time).sum()
}
