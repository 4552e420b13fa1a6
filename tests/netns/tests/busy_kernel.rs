//! Probes leave at their times while the daemon waits for something: the kernel's network lock, the verifier, a full pipe.

use linkbraid_lab::{Topology, wait_until};
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::packet::Tap;
use linkbraid_netns_tests::{BOND, HeldRtnl, Net, Over, SOON, packet};
use linkbraid_wire::is_probe;
use nix::fcntl::{FcntlArg, fcntl};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// From here on peers take a lane that is silent for failed: three probes were not answered.
const SILENT: Duration = Duration::from_millis(150);
/// How long the kernel's network lock is held: a NIC that resets holds it for a second.
const HELD: Duration = Duration::from_secs(1);
/// Rounds at most.
const ROUNDS: usize = 3;
/// Datagrams after which a lane is known to carry data.
const BUSY: u64 = 1000;

#[track_caller]
fn wait_proven(net: &Net, lanes: usize) {
    for name in ["a", "b"] {
        let up = || net.lanes(name).iter().filter(|lane| lane.state == "up").count();
        wait_until(SOON, &format!("{lanes} proven lanes of {name}"), up, |up| *up == lanes)
            .unwrap_or_else(|e| panic!("{e}"));
    }
}

/// The longest time without a probe of a's on one link of b while `work` is done and data flows, so that probes are sent every
/// 50 ms.
fn longest_pause(net: &Net, work: impl FnOnce()) -> Duration {
    let flow = Flow::start(net, "a", "b");
    flow.wait_received(BUSY);
    let of_a: Vec<[u8; 6]> = net.own_view("a").2.iter().map(|(mac, ..)| packet::mac(mac)).collect();
    // Before the data path takes it.
    let taps = ["eth0", "eth1"].map(|link| Tap::open(net.host("b"), link, packet::ALL));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = Over(&over);
        let listener = scope.spawn(|| {
            let mut last = [Instant::now(); 2];
            let mut longest = Duration::ZERO;
            while !over.load(Relaxed) {
                for (tap, last) in taps.iter().zip(&mut last) {
                    let is_ours =
                        |frame: &Vec<u8>| is_probe(frame) && of_a.iter().any(|mac| frame[6..12] == *mac);
                    if tap.take().iter().any(is_ours) {
                        *last = Instant::now();
                    }
                    longest = longest.max(last.elapsed());
                }
                thread::sleep(Duration::from_millis(1));
            }
            longest
        });
        work();
        over.store(true, Relaxed);
        listener.join().expect("listens")
    })
}

/// How often a lane was taken for failed, at either end.
fn given_up(net: &Net) -> u64 {
    ["a", "b"].into_iter().map(|name| net.counter(name, "probe_lane_lost")).sum()
}

/// Does `work` until probes went on at their times meanwhile, and no lane was taken for failed: a machine that has other work may
/// delay them too, but not each time.
#[track_caller]
fn delays_no_probe(net: &Net, mut work: impl FnMut()) {
    let mut pauses = Vec::new();
    for _ in 0..ROUNDS {
        let before = given_up(net);
        let pause = longest_pause(net, &mut work);
        println!("the longest pause between probes: {pause:?}");
        if pause < SILENT && given_up(net) == before {
            return;
        }
        pauses.push(pause);
    }
    panic!("no probe for {pauses:?}");
}

#[test]
fn a_driver_that_holds_the_network_lock_delays_no_probe() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    wait_proven(&net, 4);
    let mut mtus = [1400, 1300, 1400].into_iter();
    delays_no_probe(&net, || {
        let mtu = mtus.next().expect("one a round");
        let held = HeldRtnl::take();
        thread::scope(|scope| {
            let set = scope.spawn(|| net.ok("a", &format!("bond set {BOND} --mtu {mtu}")));
            thread::sleep(HELD);
            assert!(!set.is_finished(), "the kernel did not want the lock for it");
            drop(held);
            set.join().expect("is set");
        });
        assert_eq!(net.show("a").mtu, mtu);
    });
}

#[test]
fn programs_that_are_loaded_delay_no_probe() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    wait_proven(&net, 4);
    delays_no_probe(&net, || {
        net.ok("a", &format!("bond set {BOND} --latency on"));
        net.ok("a", &format!("bond set {BOND} --latency off"));
    });
}

#[test]
fn a_log_that_nobody_reads_delays_no_probe() {
    let (mut reader, mut writer) = io::pipe().expect("a pipe");
    let room = fcntl(&writer, FcntlArg::F_GETPIPE_SZ).expect("a pipe has a size");
    let fill = vec![b'-'; usize::try_from(room).expect("a size")];
    writer.write_all(&fill).expect("fills it");
    let net = Net::up(Topology::symmetric(2, 2, None));
    net.start_logging_to("a", &["--log", "debug"], File::from(OwnedFd::from(writer)));
    net.start("b", &[]);
    net.bond("a");
    net.bond("b");
    wait_proven(&net, 4);
    delays_no_probe(&net, || {
        for damping in ["off", "on"] {
            net.ok("a", &format!("bond set {BOND} --damping {damping}"));
        }
        thread::sleep(HELD);
    });
    // What waited is not lost: whoever reads it later reads all.
    net.kill("b");
    let reader = thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).map(|_| text)
    });
    net.stop("a");
    let text = reader.join().expect("no panic").expect("reads");
    for line in ["added with eth0, eth1", "stopping"] {
        assert!(text.contains(line), "{line}: {}", text.trim_start_matches('-'));
    }
}
