//! A thousand hosts on one segment: what a host does follows what it talks to, and not what exists.

use linkbraid_lab::{LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::packet::Tap;
use linkbraid_netns_tests::{BOND, Net, Over, SOON, sh, until};
use linkbraid_wire::{
    ETHERTYPE_ARP_PLUS, Extension, FEATURE_INTERVALS, HostId, INTERVAL_DOUBLINGS_MAX, Kind, MacAddr, Member,
    Message, Probe, ProbeKind, View, emit_frame, emit_probe, parse_probe, with_interval,
};
use std::{
    fs,
    net::{IpAddr, UdpSocket},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    thread::park_timeout,
    time::{Duration, Instant},
};

const HOSTS: u16 = 1000;
const MEMBERS: u8 = 4;
/// Hosts of these that something is sent to.
const TALKED_TO: u16 = 10;
/// While they are not all known, each host speaks that often.
const YOUNG: Duration = Duration::from_millis(700);
/// Then each of its members does, as real hosts would among so many.
const OLD: Duration = Duration::from_millis(1000 * (1 << INTERVAL_DOUBLINGS_MAX) * 85 / 100);
/// How long it is looked at what a host does.
const LOOK: Duration = Duration::from_secs(10);
/// ARP+ frames that a host may hear in a second while nothing is sent: announcements, and PROBEs of a few neighbours.
const HEARD_MAX: f64 = 240.0;
/// Who answers later than that may be taken for failed (docs/arp-plus.md, 11.6): half of what is allowed.
const LATE: Duration = Duration::from_millis(75);
/// Of a kilobyte each: what its daemon may take, with its programs and libraries.
const MEMORY_MAX: u64 = 48 << 10;

fn mac(number: u16, member: u8) -> MacAddr {
    let [high, low] = number.to_be_bytes();
    MacAddr([2, 0xf1, member, 0, high, low])
}

fn id(number: u16) -> HostId {
    let mut id = [0xf1; 16];
    id[..2].copy_from_slice(&number.wrapping_mul(0x6487).to_be_bytes());
    HostId(id)
}

fn ip(number: u16) -> [u8; 4] {
    let [high, low] = number.to_be_bytes();
    [198, 19, high, low]
}

/// What a host says by one of its members.
fn says(number: u16, member: u8) -> Vec<u8> {
    let up = |index| Member { index, up: true, weight_mbit: 1000, class: 0 };
    let extension = Extension {
        host: id(number),
        epoch: 1,
        sequence: 1,
        features: with_interval(FEATURE_INTERVALS, INTERVAL_DOUBLINGS_MAX),
        members: (0..MEMBERS).map(up).collect(),
        ..Extension::default()
    };
    let hardware = (0..MEMBERS).map(|member| mac(number, member)).collect();
    let address = Some(IpAddr::from(ip(number)));
    let message = Message { kind: Kind::Change, address, hardware, extension: Some(extension) };
    emit_frame(MacAddr::BROADCAST, mac(number, member), &message).expect("keeps the rules")
}

/// Answers for all hosts what is sent to one of them.
struct Answering<'a> {
    number: u32,
    probes: &'a AtomicU64,
    /// When it last looked for some.
    looked: Instant,
    /// The longest time between two looks, in milliseconds: a busy machine makes it long.
    late: &'a AtomicU64,
}

impl Answering<'_> {
    fn answer(&mut self, tap: &Tap) {
        self.late.fetch_max(self.looked.elapsed().as_millis() as u64, SeqCst);
        self.looked = Instant::now();
        for frame in tap.take() {
            let Some(&[2, 0xf1, member, 0, high, low]) = frame.first_chunk() else { continue };
            let Ok(asked) = parse_probe(&frame) else {
                // Who is missed is asked whether it is there (docs/arp-plus.md, 5.15).
                _ = tap.send(&says(u16::from_be_bytes([high, low]), member));
                continue;
            };
            if asked.probe.kind == ProbeKind::Reply {
                continue;
            }
            self.number += 1;
            self.probes.fetch_add(1, SeqCst);
            let reply = Probe {
                kind: ProbeKind::Reply,
                host: id(u16::from_be_bytes([high, low])),
                epoch: 1,
                nonce: u64::from(self.number) << 32 | 7,
                echo: asked.probe.nonce,
                number: self.number,
                view: View::Unjudged,
                ..Probe::default()
            };
            let reply = emit_probe(asked.src, asked.dst, &reply).expect("keeps the rules");
            // A full queue loses one now and then, as any switch does.
            _ = tap.send(&reply);
        }
    }
}

/// All hosts live until it is over: they speak as often as real ones, and answer.
fn live(tap: &Tap, known: &AtomicBool, over: &AtomicBool, probes: &AtomicU64, late: &AtomicU64) {
    let mut answering = Answering { number: 0, probes, looked: Instant::now(), late };
    let mut old_from = u64::MAX;
    let mut due = Instant::now();
    for turn in 0_u64.. {
        let number = (turn % u64::from(HOSTS)) as u16;
        // Who is new is heard again and again by the same member (docs/arp-plus.md, 7.13), then once by each.
        if known.load(SeqCst) && old_from == u64::MAX {
            old_from = turn + u64::from(HOSTS) * u64::from(MEMBERS);
        }
        let is_old = turn >= old_from;
        let round_of = (turn / u64::from(HOSTS) % u64::from(MEMBERS)) as u8;
        let member = if old_from == u64::MAX { 0 } else { round_of };
        _ = tap.send(&says(number, member));
        let round = if is_old { OLD / u32::from(MEMBERS) } else { YOUNG };
        due += round / u32::from(HOSTS);
        loop {
            if over.load(SeqCst) {
                return;
            }
            answering.answer(tap);
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // The pace of the crowd; nothing is waited for.
            park_timeout(left.min(Duration::from_millis(1)));
        }
    }
}

/// What a host's daemon has used, and what came in on its members.
#[derive(Debug, Clone, Copy)]
struct Used {
    at: Instant,
    processor: Duration,
    frames: u64,
    memory: u64,
}

fn used(net: &Net) -> Used {
    let status = fs::read_to_string(format!("/proc/{}/status", net.pid("a"))).expect("it runs");
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("told").trim();
    // The second number of a line is that of packets that came in.
    let devices = sh(net.host("a"), "cat /proc/net/dev");
    let members = devices.lines().filter_map(|line| line.trim().strip_prefix("eth")?.split_once(':'));
    let frames = members.map(|(_, line)| line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()));
    Used {
        at: Instant::now(),
        processor: net.processor("a"),
        frames: frames.map(|frames| frames.expect("a number")).sum(),
        memory: memory.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number"),
    }
}

/// The time over which something is counted; nothing is waited for.
fn pause(duration: Duration) {
    let began = Instant::now();
    while began.elapsed() < duration {
        park_timeout(duration - began.elapsed().min(duration));
    }
}

/// What it uses in a second: the part of a processor in percent, and frames; what it has of memory in KiB.
fn look_once(net: &Net, what: &str) -> (f64, f64, u64) {
    let before = used(net);
    pause(LOOK);
    let after = used(net);
    let seconds = (after.at - before.at).as_secs_f64();
    let percent = 100.0 * (after.processor - before.processor).as_secs_f64() / seconds;
    let heard = (after.frames - before.frames) as f64 / seconds;
    println!("{what}: {percent:.2} % of a core, {heard:.0} frames heard a second, {} KiB", after.memory);
    (percent, heard, after.memory)
}

#[test]
fn what_a_host_does_follows_what_it_talks_to_and_not_what_exists() {
    let links = |n: u8| std::iter::repeat_n(LinkSpec::switch(0, None), usize::from(n));
    let net = Net::up(Topology::empty("lab", 1).host(links(MEMBERS)).plain_host(links(1)));
    net.start("a", &[]);
    net.bond("a");
    look_once(&net, "alone");
    let tap = Tap::open(net.host("b"), "eth0", ETHERTYPE_ARP_PLUS);
    let (known, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (probes, late) = (AtomicU64::new(0), AtomicU64::new(0));
    let to = |number: u16| IpAddr::from(ip(number * 7));
    let socket = net.host("a").make("make a socket", || UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    let send = || (0..TALKED_TO).for_each(|number| _ = socket.send_to(&[0; 100], (to(number), 9)));
    std::thread::scope(|scope| {
        let _over = Over(&over);
        scope.spawn(|| live(&tap, &known, &over, &probes, &late));
        let probed = || net.lanes("a").iter().filter(|lane| lane.state != "heard").count();
        // None is lost, unless the clock shows that the hosts here were too late.
        let none_lost = || {
            let late = Duration::from_millis(late.load(SeqCst));
            let lost = net.counter("a", "probe_lane_lost");
            assert!(lost == 0 || late > LATE, "{lost} lanes lost, and answers were {late:?} late at most");
        };
        let began = Instant::now();
        wait_until(SOON, "all of them", || net.peers("a").len(), |peers| *peers == usize::from(HOSTS))
            .unwrap_or_else(|e| panic!("{e}"));
        known.store(true, SeqCst);
        println!("all known after {:?}", began.elapsed());
        // Each is tested once, at the rate that probes may have.
        let lanes = usize::from(MEMBERS) * usize::from(MEMBERS);
        let asked = || {
            let before = probes.load(SeqCst);
            pause(Duration::from_secs(1));
            probes.load(SeqCst) - before
        };
        wait_until(SOON * 3, "few PROBEs", asked, |asked| *asked < 100).unwrap_or_else(|e| panic!("{e}"));
        println!("all tested after {:?}", began.elapsed());
        // Who was taken for failed, because the machine was busy, is tested again: then there are more for a while.
        let look =
            |what| wait_until(LOOK * 3, what, || look_once(&net, what), |(_, heard, _)| *heard <= HEARD_MAX);
        let (_, _, memory) = look("quiet").unwrap_or_else(|e| panic!("{e}"));
        assert!(memory <= MEMORY_MAX, "{memory} KiB");
        none_lost();
        until("only the nearest are probed", probed, |probed| *probed == 2 * lanes);
        // Those that are sent something are probed, and no others.
        for number in 0..TALKED_TO {
            let lladdr = mac(number * 7, 0);
            sh(net.host("a"), &format!("ip neigh replace {} lladdr {lladdr} dev {BOND}", to(number)));
            sh(net.host("a"), &format!("ip route replace {} dev {BOND}", to(number)));
        }
        scope.spawn(|| {
            while !over.load(SeqCst) {
                send();
                park_timeout(Duration::from_millis(100));
            }
        });
        until("those in use are probed", probed, |probed| *probed >= usize::from(TALKED_TO) * lanes);
        until("no others", probed, |probed| *probed <= (usize::from(TALKED_TO) + 2) * lanes);
        look_once(&net, "10 talked to");
        none_lost();
        assert_eq!(net.peers("a").len(), usize::from(HOSTS));
    });
}
