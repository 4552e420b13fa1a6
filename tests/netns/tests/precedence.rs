//! Classes without members of their own: what they send leaves before what waits in the same NIC.

use linkbraid_api::{ClassRecord, QueueRecord};
use linkbraid_lab::iperf::{self, Cc, Traffic};
use linkbraid_lab::{Options, Order, Topology};
use linkbraid_netns_tests::{BOND, Net, SOON, flow::Flow, machine, sh, until};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Mbit/s of each link: so little that queues, and not the processors, are what frames wait for.
const RATE: u32 = 20;
/// By so much switch ports are faster than NICs, in percent: what waits, waits in the NIC.
const PORT_MARGIN: u32 = 10;
const VOICE: u16 = 7000;
/// How long messages are sent, while bulk traffic goes on for longer.
const MEASURED: Duration = Duration::from_millis(1500);
const BULK_SECONDS: u32 = 4;
/// The time between two messages: in a burst they would fill the queue themselves.
const PERIOD: Duration = Duration::from_millis(5);
/// With precedence a round trip takes at most this part of what it takes without.
const PART: u32 = 3;
/// A machine that stands still for a moment looks like a queue.
const TRIES: usize = 5;

fn net(members: usize) -> Net {
    let options = Options { port_margin_percent: PORT_MARGIN, ..Options::default() };
    let net = Net::bonded(Topology::symmetric(2, members, Some(RATE)).with(options));
    for link in net.host("a").links().expect("links") {
        link.set_order(Order::Priority).expect("has bands");
    }
    for member in 0..members {
        net.ok("a", &format!("member set {BOND} eth{member} --weight {RATE} --weight-fixed on"));
    }
    net
}

fn classes(net: &Net) -> Vec<ClassRecord> {
    serde_json::from_str(&net.ok("a", "class show --json")).expect("records")
}

/// The median time of a message to b and back, from a socket without a priority, while TCP fills the links.
fn round_trip(net: &Net) -> Duration {
    let (a, b) = (net.host("a"), net.host("b"));
    let bulk = iperf::start(a, b, &Traffic::tcp(Cc::Cubic, BULK_SECONDS)).expect("starts");
    let server = b.run(|| UdpSocket::bind((b.ipv4(), VOICE))).expect("enters").expect("binds");
    let client = a.run(|| UdpSocket::bind((a.ipv4(), 0))).expect("enters").expect("binds");
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(SOON)).expect("sets");
    }
    let sent = || net.show("a").members[0].tx_bytes;
    let before = sent();
    until("bulk traffic", sent, |now| *now > before + 500_000);
    let (begun, mut took) = (Instant::now(), Vec::new());
    while begun.elapsed() < MEASURED {
        thread::park_timeout(PERIOD);
        let sent = Instant::now();
        client.send_to(&[1; 64], (b.ipv4(), VOICE)).expect("sends");
        let (_, from) = server.recv_from(&mut [0; 64]).expect("arrives");
        server.send_to(&[2; 64], from).expect("answers");
        client.recv(&mut [0; 64]).expect("comes back");
        took.push(sent.elapsed());
    }
    bulk.finish().expect("the flow runs");
    took.sort_unstable();
    took[took.len() / 2]
}

#[test]
fn what_a_class_sends_leaves_before_bulk_on_the_same_links() {
    for members in [1, 2] {
        let net = net(members);
        net.ok("a", &format!("class add {BOND} voice --match udp-port={VOICE}"));
        let with = |precedence: &str| {
            net.ok("a", &format!("class set {BOND} voice --precedence {precedence}"));
            round_trip(&net)
        };
        let mut seen = Vec::new();
        let is_better = (0..TRIES).any(|_| {
            let (without, with) = (with("off"), with("auto"));
            seen.push((without, with));
            with * PART < without
        });
        assert!(is_better, "{members} members, without precedence and with it: {seen:?}");
        eprintln!("{members} members, without precedence and with it: {seen:?}");
        let flow = format!("udp {} > {}:{VOICE}", net.host("a").ipv4(), net.host("b").ipv4());
        let told = net.say_words("a", &["explain", BOND, &flow]).out;
        assert!(told.contains("; with priority 6, as its tbf decides"), "{told}");
        let [class] = &classes(&net)[..] else { panic!("one class") };
        assert!(class.queues.iter().all(|queue| queue.kind == "tbf" && !queue.ours), "{class:?}");
    }
}

#[test]
fn a_class_that_sends_all_it_can_starves_nobody() {
    let net = net(1);
    net.ok("a", &format!("class add {BOND} voice --match udp-port={VOICE}"));
    let (a, b) = (net.host("a"), net.host("b"));
    let socket = a.run(|| UdpSocket::bind((a.ipv4(), 0))).expect("enters").expect("binds");
    let _server = b.run(|| UdpSocket::bind((b.ipv4(), VOICE))).expect("enters").expect("binds");
    socket.connect((b.ipv4(), VOICE)).expect("a way");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // All that the link takes: it waits where its socket's buffer is full.
        scope.spawn(|| {
            while !over.load(Relaxed) {
                let _ = socket.send(&[0; 1000]);
            }
        });
        let _ends = Ends(&over);
        until("more than its part", || classes(&net)[0].tx_over, |over| *over > 100);
        let flow = Flow::start(&net, "a", "b");
        flow.wait_received(flow.received() + 100);
    });
}

/// Ends a thread, also where a test fails.
struct Ends<'t>(&'t AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn queues_that_the_kernel_chose_are_replaced_while_a_class_has_precedence() {
    let net = Net::up(Topology::symmetric(2, 2, None));
    let a = net.host("a");
    // An interface with a queue, as NICs have; veths have none.
    sh(a, "ip tuntap add dev tap0 mode tap");
    sh(a, "ip tuntap add dev tap1 mode tap");
    sh(a, "ip link set tap0 up");
    sh(a, "ip link set tap1 up");
    sh(a, "tc qdisc add dev tap1 root pfifo limit 10");
    let before = machine::settled(&net, "a");
    let shown = |tap: &str| sh(a, &format!("tc qdisc show dev {tap}"));
    let [chosen, theirs] =
        ["tap0", "tap1"].map(|tap| shown(tap).lines().next().unwrap_or_default().to_owned());
    let is_ours = |tap: &str| shown(tap).contains("pfifo_fast 1b0d: root");
    net.start("a", &[]);
    net.ok("a", &format!("bond add {BOND} --member eth0,tap0,tap1"));
    net.ok("a", &format!("class add {BOND} own --member eth0 --match priority=5"));
    assert!(!is_ours("tap0"), "a class with members of its own needs none");
    net.ok("a", &format!("class add {BOND} voice --match priority=6"));
    assert!(is_ours("tap0") && shown("tap1").starts_with(&theirs), "{}{}", shown("tap0"), shown("tap1"));
    let record =
        |member: &str, kind: &str, ours| QueueRecord { member: member.into(), kind: kind.into(), ours };
    assert_eq!(classes(&net)[1].queues, [record("tap0", "pfifo_fast", true), record("tap1", "pfifo", false)]);
    assert_eq!(classes(&net)[0].queues, []);
    let said = net.ok("a", "class show");
    let ahead = "ahead     of others in the queues of tap0; on tap1 as its pfifo decides";
    assert!(said.contains(ahead), "{said}");

    // A daemon that is started again finds it, and somebody else's is told of.
    net.kill("a");
    net.start("a", &[]);
    assert!(is_ours("tap0"));
    sh(a, "tc qdisc replace dev tap0 root handle 7: pfifo limit 20");
    assert_eq!(classes(&net)[1].queues[0], record("tap0", "pfifo", false));
    sh(a, "tc qdisc del dev tap0 root");
    net.ok("a", &format!("class set {BOND} voice --precedence on"));
    assert!(is_ours("tap0"));

    // It goes with the precedence, with the class, and with the bond.
    for (with, without) in [
        ("class set bond0 voice --precedence on", "class set bond0 voice --precedence off"),
        ("class set bond0 voice --precedence auto", "class del bond0 voice"),
        ("class add bond0 voice --match priority=6", "bond del bond0"),
    ] {
        net.ok("a", with);
        assert!(is_ours("tap0"), "{with}: {}", shown("tap0"));
        net.ok("a", without);
        assert!(shown("tap0").starts_with(&chosen) && shown("tap1").starts_with(&theirs), "{without}");
    }
    net.stop("a");
    machine::as_it_was(&net, "a", &before);
}
