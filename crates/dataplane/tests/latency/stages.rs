//! Datagrams: what is counted in which stage, and what is not.

use crate::rig::ip;
use crate::wire::{Wire, comes, count, hooks, in_one_turn, of, tc, wait_for};
use linkbraid_api::Rule;
use linkbraid_dataplane::{LatencyMeter, RuleRow, Stage};
use std::{
    fs,
    net::UdpSocket,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// What the meter rounds every time to.
const TICK: Duration = Duration::from_nanos(16);

/// Tests that look at what this process holds open take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn send(from: &str, to: &str, frames: usize, bytes: usize) {
    let socket = UdpSocket::bind(from).unwrap();
    for _ in 0..frames {
        socket.send_to(&vec![7; bytes], to).unwrap();
    }
}

#[test]
fn every_datagram_counts_once_in_each_stage() {
    let _turn = alone();
    for &hook in hooks() {
        let wire = Wire::new(2);
        let meter = LatencyMeter::start_by(&wire.rig.path, hook).unwrap();
        let before = wire.sent();
        send("198.18.9.1:0", "198.18.9.2:9", 150, 100);
        send("[2001:db8::1]:0", "[2001:db8::2]:9", 50, 100);
        let application = of(&meter, Stage::Application).unwrap();
        assert_eq!(application.count, 200, "{hook:?}");
        // The kernel's own frames (MLD, say) have no send call and count in the other stage only.
        assert_eq!(count(&meter, Stage::Driver), wire.sent() - before, "{hook:?}");
        assert_eq!(count(&meter, Stage::Total), 200, "{hook:?}");
        for stage in Stage::ALL {
            let row = of(&meter, stage).unwrap();
            assert!(!row.max.is_zero() && row.max < Duration::from_secs(5), "{hook:?}: {row:?}");
            let order = [row.min, row.p50, row.p90, row.p99, row.p999, row.max];
            assert!(order.is_sorted(), "{hook:?}: {row:?}");
            assert!(row.min <= row.mean && row.mean <= row.max && row.stddev <= row.max, "{hook:?}: {row:?}");
        }
    }
}

#[test]
fn fragments_count_each() {
    let _turn = alone();
    let wire = Wire::new(1);
    let meter = LatencyMeter::start(&wire.rig.path).unwrap();
    let before = wire.sent();
    // 4000 bytes are three frames of 1500.
    send("198.18.9.1:0", "198.18.9.2:9", 10, 4000);
    assert_eq!(count(&meter, Stage::Application), 30);
    assert_eq!(count(&meter, Stage::Driver), wire.sent() - before);
}

#[test]
fn what_waits_in_the_members_queue_is_told_by_the_driver_stage() {
    let _turn = alone();
    for &hook in hooks() {
        in_one_turn(|| {
            let wire = Wire::new(1);
            // 1 Mbit/s: a frame of 1042 bytes takes 8.3 ms, and the bucket holds two.
            tc("qdisc add dev member0 root tbf rate 1mbit burst 2100 limit 100000");
            // In a class of their own, apart from the kernel's own frames (MLD, IGMP), which come when they like.
            wire.rig.path.set_rules(&[rule(3, 2003)]).unwrap();
            let meter = LatencyMeter::start_by(&wire.rig.path, hook).unwrap();
            let of = |stage| {
                let all = meter.read().unwrap();
                all.into_iter().find(|row| (row.class, row.stage) == (3, stage))
            };
            send("198.18.9.1:0", "198.18.9.2:2003", 21, 1000);
            if !comes(|| of(Stage::Driver).is_some_and(|row| row.count == 21)) {
                eprintln!("{:?}", meter.read());
                return false;
            }
            let driver = of(Stage::Driver).unwrap();
            assert!(driver.max > Duration::from_millis(50), "{hook:?}: {driver:?}");
            assert!(driver.min < Duration::from_millis(8), "{hook:?}: {driver:?}");
            // They wait 8.3 ms longer each.
            let near = |reported: Duration, share: f64| {
                let is = driver.max.as_secs_f64() * share;
                (reported.as_secs_f64() - is).abs() < is / 4.0
            };
            assert!(near(driver.p50, 0.5) && near(driver.mean, 0.5) && near(driver.p90, 0.9), "{driver:?}");
            // The standard deviation of what is spread evenly.
            assert!(near(driver.stddev, 0.29), "{driver:?}");
            let application = of(Stage::Application).unwrap();
            assert_eq!(application.count, 21);
            assert!(application.max < driver.max, "{hook:?}: {application:?}");
            // Of each frame, so its deviation is not that of either part; every time is rounded to a tick.
            let total = of(Stage::Total).unwrap();
            assert_eq!(total.count, 21);
            let most = application.max + driver.max + TICK;
            assert!(driver.max <= total.max && total.max <= most, "{hook:?}: {total:?} {driver:?}");
            let apart = total.mean.abs_diff(application.mean + driver.mean);
            assert!(apart <= 3 * TICK, "{hook:?}: {total:?} {driver:?}");
            true
        });
    }
}

#[test]
fn classes_are_told_apart() {
    let _turn = alone();
    for &hook in hooks() {
        let wire = Wire::new(1);
        wire.rig.path.set_rules(&[rule(3, 2003), rule(7, 2007)]).unwrap();
        let meter = LatencyMeter::start_by(&wire.rig.path, hook).unwrap();
        for (port, frames) in [(2003, 5), (2007, 6), (2000, 7)] {
            send("198.18.9.1:0", &format!("198.18.9.2:{port}"), frames, 100);
        }
        let reported: Vec<(u8, u64)> = meter
            .read()
            .unwrap()
            .iter()
            .filter(|row| row.stage == Stage::Application)
            .map(|row| (row.class, row.count))
            .collect();
        assert_eq!(reported, [(0, 7), (3, 5), (7, 6)], "{hook:?}");
        let driver =
            meter.read().unwrap().into_iter().filter(|row| row.stage == Stage::Driver && row.class > 0);
        assert_eq!(
            driver.map(|row| (row.class, row.count)).collect::<Vec<_>>(),
            [(3, 5), (7, 6)],
            "{hook:?}"
        );
    }
}

/// UDP to this port is of the class.
fn rule(class: u8, port: u16) -> RuleRow {
    let rule = Rule { udp_port: Some(port..=port), ..Rule::default() };
    RuleRow::new(class, &rule, |_| None).unwrap().unwrap()
}

#[test]
fn other_traffic_of_the_machine_is_not_counted() {
    let _turn = alone();
    for &hook in hooks() {
        let wire = Wire::new(1);
        ip("link add other type veth peer name nobody");
        ip("link set nobody up");
        ip("link set other up");
        ip("address add 198.18.10.1/24 dev other");
        ip("neighbour add 198.18.10.2 lladdr 02:00:00:00:09:09 dev other nud permanent");
        let meter = LatencyMeter::start_by(&wire.rig.path, hook).unwrap();
        let before = wire.sent();
        // Another interface of this namespace, and another namespace with the same names.
        send("198.18.10.1:0", "198.18.10.2:9", 20, 100);
        let elsewhere = std::thread::spawn(|| {
            let second = Wire::new(1);
            second.rig.path.set_latency(true).unwrap();
            send("198.18.9.1:0", "198.18.9.2:9", 20, 100);
            assert!(second.sent() >= 20);
        });
        elsewhere.join().expect("the other namespace's frames leave");
        assert_eq!(count(&meter, Stage::Application), 0, "{hook:?}");
        assert_eq!(count(&meter, Stage::Driver), wire.sent() - before, "{hook:?}");
    }
}

#[test]
fn frames_without_a_send_call_count_in_the_driver_stage_only() {
    let _turn = alone();
    let wire = Wire::new(1);
    let meter = LatencyMeter::start(&wire.rig.path).unwrap();
    let before = wire.sent();
    // The kernel answers these: nobody listens, so an ICMP error leaves for each, as far as its rate limit lets it.
    wire.at_far(|| send("198.18.9.2:0", "198.18.9.1:9", 5, 10));
    wait_for("an ICMP error to leave", || wire.sent() > before);
    wait_for("it to be counted", || count(&meter, Stage::Driver) == wire.sent() - before);
    assert_eq!(count(&meter, Stage::Application), 0);
}

#[test]
fn a_meter_begins_at_zero() {
    let _turn = alone();
    let wire = Wire::new(1);
    let first = LatencyMeter::start(&wire.rig.path).unwrap();
    send("198.18.9.1:0", "198.18.9.2:9", 5, 100);
    assert_eq!(count(&first, Stage::Application), 5);
    first.stop(&wire.rig.path).unwrap();
    let second = LatencyMeter::start(&wire.rig.path).unwrap();
    assert_eq!(count(&second, Stage::Application), 0);
    send("198.18.9.1:0", "198.18.9.2:9", 3, 100);
    assert_eq!(count(&second, Stage::Application), 3);
    // The bond's row may be written at any time.
    wire.rig.path.set_bond(&wire.rig.bond).unwrap();
    send("198.18.9.1:0", "198.18.9.2:9", 3, 100);
    assert_eq!(count(&second, Stage::Application), 6);
    // Without stamps nothing is measured.
    wire.rig.path.set_latency(false).unwrap();
    send("198.18.9.1:0", "198.18.9.2:9", 3, 100);
    assert_eq!(count(&second, Stage::Application), 6);
}

/// Programs and links that this process holds, hence that exist: the meter leaves none anywhere else.
fn held() -> usize {
    fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| {
            ["anon_inode:bpf-prog", "anon_inode:bpf_link"].iter().any(|kind| target.ends_with(kind))
        })
        .count()
}

#[test]
fn nothing_is_left_when_it_ends() {
    let _turn = alone();
    let wire = Wire::new(1);
    let before = held();
    for _ in 0..2 {
        let meter = LatencyMeter::start(&wire.rig.path).unwrap();
        // The two tracepoints and at least one place for send calls, each a program and a link.
        assert!(held() >= before + 6, "{} were {before}", held());
        meter.stop(&wire.rig.path).unwrap();
        assert_eq!(held(), before);
    }
    let sent = wire.sent();
    send("198.18.9.1:0", "198.18.9.2:9", 5, 100);
    assert!(wire.sent() >= sent + 5, "frames leave as ever");
}
