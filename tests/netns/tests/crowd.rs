//! Crowds, real and forged, and what changes under them: nothing that is not concerned is lost, doubled or late.

use linkbraid_lab::{LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::packet::{self, Tap};
use linkbraid_netns_tests::{BOND, Net, Over, SOON};
use linkbraid_wire::{Extension, HostId, Kind, MacAddr, Member, Message, emit_frame};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::IpAddr,
    os::unix::net::UnixStream,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread::park_timeout,
    time::{Duration, Instant},
};

/// Hosts that a stranger makes up...
const FORGED: u16 = 3000;
/// ...and how many of them speak each [`PAUSE`].
const AT_ONCE: usize = 25;
const PAUSE: Duration = Duration::from_millis(10);
/// How long they do.
const FLOOD: Duration = Duration::from_secs(5);
/// The pause for a thousand hosts that each speak every 700 ms, a little more often than real ones.
const CROWD_PAUSE: Duration = Duration::from_micros(17_500);

/// What a host that does not exist says of itself, as a whole frame.
pub(crate) fn forged(number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let mac = MacAddr([2, 0xf0, 0, 0, high, low]);
    let mut host = [0xf0; 16];
    host[..2].copy_from_slice(&[high, low]);
    let extension = Extension {
        host: HostId(host),
        epoch: 1,
        sequence: 1,
        members: vec![Member { index: 0, up: true, weight_mbit: 1000, class: 0 }],
        ..Extension::default()
    };
    let address = Some(IpAddr::from([198, 19, high, low]));
    let message = Message { kind: Kind::Change, address, hardware: vec![mac], extension: Some(extension) };
    emit_frame(MacAddr::BROADCAST, mac, &message).expect("keeps the rules")
}

/// Sends these frames again and again, [`AT_ONCE`] of them each `pause`.
fn speak(tap: &Tap, frames: &[Vec<u8>], pause: Duration, enough: impl Fn() -> bool) {
    let mut due = Instant::now();
    for frames in frames.chunks(AT_ONCE).cycle() {
        if enough() {
            return;
        }
        frames.iter().for_each(|frame| tap.send(frame).expect("sends"));
        due += pause;
        // The pace of the crowd; nothing is waited for.
        park_timeout(due.saturating_duration_since(Instant::now()));
    }
}

/// Two real hosts, and one from which a stranger sends.
fn with_stranger() -> Net {
    let links = |n| std::iter::repeat_n(LinkSpec::switch(0, None), n);
    Net::bonded(Topology::empty("lab", 1).host(links(2)).host(links(2)).plain_host(links(1)))
}

#[test]
fn forged_joins_take_no_lane_and_little_time() {
    let net = with_stranger();
    let proven = || net.lanes("a").iter().filter(|lane| lane.state == "up").count();
    wait_until(SOON, "proven lanes", proven, |up| *up == 4).unwrap_or_else(|e| panic!("{e}"));
    let frames: Vec<Vec<u8>> = (0..FORGED).map(forged).collect();
    let tap = Tap::open(net.host("c"), "eth0", packet::ALL);
    let before = net.processor("a");
    let began = Instant::now();
    let (slowest, requests) = std::thread::scope(|scope| {
        scope.spawn(|| speak(&tap, &frames, PAUSE, || began.elapsed() > FLOOD));
        let (mut slowest, mut requests) = (Duration::ZERO, 0);
        while began.elapsed() < FLOOD {
            let asked = Instant::now();
            net.ok("a", &format!("stats {BOND}"));
            slowest = slowest.max(asked.elapsed());
            requests += 1;
            park_timeout(Duration::from_millis(100));
        }
        (slowest, requests)
    });
    let took = net.processor("a").saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64();
    // Hosts that are made up answer nothing, so that no lane of theirs is ever lost.
    let lost = net.counter("a", "probe_lane_lost") + net.counter("b", "probe_lane_lost");
    let full = net.counter("a", "rx_arp_plus_full");
    let said = format!(
        "{requests} requests, the slowest took {slowest:?}; {:.0} % of a core; {lost} lanes lost; {full} frames dropped",
        100.0 * took,
    );
    println!("{said}");
    assert_eq!(lost, 0, "{said}");
    // Each frame comes in on two members. What a busy machine cannot take in is dropped, but most is looked at.
    let sent = FLOOD.as_millis() / PAUSE.as_millis() * 2 * AT_ONCE as u128;
    assert!(u128::from(full) * 2 < sent, "{said}");
    assert!(slowest < Duration::from_secs(1), "{said}");
    net.host("a").wait_ping(net.host("b").ipv4(), SOON).expect("reaches");
}

/// Waits until `name` has so many proven lanes.
#[track_caller]
fn wait_proven(net: &Net, name: &str, lanes: usize) {
    let up = || net.lanes(name).iter().filter(|lane| lane.state == "up").count();
    wait_until(SOON, &format!("{lanes} proven lanes of {name}"), up, |up| *up == lanes)
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn a_slot_is_reused_on_another_switch_and_plain_hosts_lose_nothing() {
    let link = |switch| LinkSpec::switch(switch, None);
    let topology = Topology::empty("lab", 2)
        .host([link(0), link(1), link(1), link(0)])
        .host([link(0), link(1)])
        .plain_host([link(0)]);
    let net = Net::up(topology);
    net.start("a", &[]);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1,eth2"));
    net.start("b", &[]);
    net.bond("b");
    net.wait_tables(&["a", "b"]);
    wait_proven(&net, "a", 3);
    let flow = Flow::start(&net, "a", "c");
    flow.wait_received(100);
    net.ok("a", &format!("member del {BOND} eth2"));
    net.ok("a", &format!("member add {BOND} eth3"));
    let seen = flow.received();
    // Longer than a pair stays heard.
    flow.wait_received(seen + 8000);
    assert_eq!(flow.end().0, 0, "lost");
}

#[test]
fn a_restart_and_a_new_member_double_nothing_for_plain_hosts() {
    let links = |n| std::iter::repeat_n(LinkSpec::switch(0, Some(1000)), n);
    let topology = Topology::empty("lab", 1).host(links(3)).host(links(2)).plain_host(links(1));
    let net = Net::bonded(topology);
    wait_proven(&net, "a", 6);
    let flows = [Flow::start(&net, "a", "c"), Flow::start(&net, "c", "a")];
    let go_on = || {
        flows.iter().for_each(|flow| {
            let seen = flow.received();
            flow.wait_received(seen + 400);
        });
    };
    for _ in 0..3 {
        go_on();
        net.kill("a");
        net.start("a", &[]);
        wait_proven(&net, "a", 6);
    }
    net.ok("a", &format!("member del {BOND} eth2"));
    go_on();
    net.ok("a", &format!("member add {BOND} eth2"));
    go_on();
    let ends = flows.map(Flow::end);
    assert_eq!(ends, [(0, 0), (0, 0)], "lost and doubled, each way");
}

#[test]
fn a_crowd_of_monitors_keeps_nobody_from_asking() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let monitor = || {
        let mut stream = UnixStream::connect(net.host("a").socket()).expect("it listens");
        stream.set_read_timeout(Some(SOON)).expect("sets");
        stream
            .write_all(b"{\"method\":\"org.linkbraid.Daemon.Monitor\",\"more\":true}\0")
            .expect("a small call");
        let mut answer = Vec::new();
        BufReader::new(&stream).read_until(0, &mut answer).expect("an answer");
        (stream, String::from_utf8(answer).expect("text"))
    };
    let open: Vec<(UnixStream, String)> = (0..70).map(|_| monitor()).collect();
    let refused = open.iter().filter(|(_, answer)| answer.contains("clients listen already")).count();
    assert_eq!(refused, 6, "{:?}", open.last());
    assert_eq!(net.show("a").members.len(), 2);
    net.ok("a", &format!("bond del {BOND}"));
}

#[test]
fn a_thousand_hosts_that_start_together_are_known_within_seconds() {
    let net = with_stranger();
    let frames: Vec<Vec<u8>> = (0..1000).map(forged).collect();
    let tap = Tap::open(net.host("c"), "eth0", packet::ALL);
    let (began, before) = (Instant::now(), net.processor("a"));
    let known = AtomicBool::new(false);
    let waited = std::thread::scope(|scope| {
        let _over = Over(&known);
        scope.spawn(|| speak(&tap, &frames, CROWD_PAUSE, || known.load(SeqCst)));
        let peers = || net.peers("a").len();
        wait_until(SOON, "all of them", peers, |peers| *peers == 1001)
    });
    let took = (began.elapsed(), net.processor("a").saturating_sub(before));
    let full = net.counter("a", "rx_arp_plus_full");
    println!("all known after {:?}, {:?} of the processor; {full} frames dropped", took.0, took.1);
    waited.unwrap_or_else(|e| panic!("{e}"));
    assert!(took.0 < Duration::from_secs(10), "{took:?}");
    assert_eq!(net.counter("a", "probe_lane_lost"), 0);
}
