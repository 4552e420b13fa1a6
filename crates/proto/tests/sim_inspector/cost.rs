//! What probing costs, and what that buys.

use super::{
    fault::Fault,
    network::millis,
    spread,
    world::{World, key},
};
use linkbraid_proto::{inspector::*, limits};
use linkbraid_wire::ProbeKind;
use std::time::Duration;

/// Lanes given up in five minutes although both work, for frames lost on each crossing and a multiplier.
fn false_losses(loss: u64, multiplier: u8) -> u64 {
    let mut world = World::pair(13, &[0, 1], &[0, 1]);
    for host in 0..2 {
        let timing = Timing { multiplier, ..Timing::default() };
        world.input(host, Input::Timing(timing));
    }
    world.network.weather.loss = loss;
    world.run(Duration::from_secs(300));
    (0..2).map(|host| world.count(host, Counter::LaneLost)).sum()
}

#[test]
fn lost_probes_do_not_flap() {
    let lost: Vec<(u64, u8, u64)> = [(20, 2), (20, 3), (20, 4), (5, 3), (40, 3), (40, 6)]
        .map(|(loss, multiplier)| (loss, multiplier, false_losses(loss, multiplier)))
        .to_vec();
    for (loss, multiplier, count) in &lost {
        println!(
            "{loss} % lost each way, multiplier {multiplier}: {count} lanes given up in 5 min x 2 lanes x 2 ends"
        );
    }
    let of = |loss, multiplier| lost.iter().find(|row| (row.0, row.1) == (loss, multiplier)).expect("run").2;
    assert!(of(20, 3) <= 4, "at most one in 5 minutes for each lane and end");
    assert_eq!((of(20, 4), of(5, 3)), (0, 0));
    assert!(of(20, 2) > of(20, 3) && of(40, 3) > of(40, 6), "the multiplier buys something");
}

#[test]
fn idle_lanes_are_found_once_data_flows() {
    let mut world = World::pair(19, &[0, 1], &[0, 1]);
    let idle = |world: &mut World, idle: bool| {
        (0..2).for_each(|host| {
            world.hosts[host].usage = if idle { Usage::Idle } else { Usage::Busy };
            world.report_plan(host);
        });
    };
    let rate = |world: &mut World| {
        world.sent.clear();
        world.run(millis(10_000));
        world.total_sent(0) as f64 / 10.0
    };
    let busy_rate = rate(&mut world);
    idle(&mut world, true);
    world.run(millis(1000));
    let idle_rate = rate(&mut world);
    println!("two lanes: {busy_rate} frames/s a host while data flows, {idle_rate} while idle");
    assert!(busy_rate < 60.0 && idle_rate < 14.0);
    world.faults.insert(Fault::Switch(0));
    world.run(millis(10));
    idle(&mut world, false);
    let took = world.until(millis(300), |world| world.lanes(0, 1) == [(1, 1)]);
    println!("failed lane found {took:?} after data began to flow");
    assert!(took <= millis(200));
}

//= docs/arp-plus.md#11.10 type=test
#[test]
fn published_only_peers_are_not_probed_and_silent_ones_hardly() {
    let mut world = World::new(23);
    world.add(&[0, 1]);
    world.add(&[0, 1]);
    world.hosts[0].probes = false;
    world.hosts[1].running = false;
    world.meet(0, 1);
    world.run(millis(5000));
    assert_eq!(world.total_sent(0), 0);
    assert_eq!(world.lanes(0, 1), [(0, 0), (1, 1)], "what is heard decides");
    assert_eq!(world.hosts[0].inspector.lane_alive(&key(1), 0, 0), Verdict::Unknown);
    world.hosts[0].probes = true;
    world.report_peers(0);
    world.run(millis(10_000));
    let sent = world.total_sent(0);
    assert_eq!(world.lanes(0, 1), [(0, 0), (1, 1)], "knows no probes: still what is heard");
    assert!(
        (12..=40).contains(&sent),
        "three for each pair, then one a second for the two that are heard: {sent}"
    );
}

/// One host of 8 members and 100 of 8, all on one switch, all lanes of all plans busy: what the one sends and how
/// quickly it finds a failed lane.
//= docs/arp-plus.md#11.9 type=test
#[test]
fn hundred_peers_of_eight_members_stay_within_the_limit() {
    let mut world = World::new(29);
    world.add(&[0; 8]);
    for _ in 0..100 {
        let peer = world.add(&[0; 8]);
        world.hosts[0].knows_of(peer);
        world.hosts[peer].knows_of(0);
    }
    (0..=100).for_each(|host| world.report_peers(host));
    let mut worst = 0;
    let mut took = None;
    for second in 1..=12 {
        let before = (world.total_sent(0), world.sent.get(&(0, ProbeKind::Probe)).copied().unwrap_or(0));
        world.run(millis(1000));
        let sent = world.total_sent(0) - before.0;
        worst = worst.max(sent);
        let lanes = world.hosts[0].inspector.snapshot(world.now()).lanes;
        let proven = lanes.iter().filter(|lane| lane.state == LaneState::Up).count();
        if took.is_none() && proven == 6400 {
            took = Some(second);
        }
        assert!(sent <= 2 * (limits::PROBE_RATE_MAX + limits::PROBE_BURST), "{sent} in second {second}");
    }
    let snapshot = world.hosts[0].inspector.snapshot(world.now());
    world.sent.clear();
    world.run(millis(3000));
    let of = |kind| world.sent.get(&(0, kind)).copied().unwrap_or(0) / 3;
    let (probes, replies) = (of(ProbeKind::Probe), of(ProbeKind::Reply));
    println!(
        "wanted {} PROBEs/s, stretch {} and {}; sent {probes} PROBEs and {replies} REPLYs a second; worst second {worst}; \
         all 6400 lanes proven after {took:?} s; lanes lost {}",
        snapshot.probes_wanted,
        snapshot.stretch_in_use,
        snapshot.stretch_other,
        world.count(0, Counter::LaneLost),
    );
    assert!(took.is_some());
    assert!(probes + replies <= 2 * limits::PROBE_RATE);
    assert_eq!(world.count(0, Counter::LaneLost) + world.count(0, Counter::LaneSuspect), 0);
    let began = world.now();
    world.faults.insert(Fault::From(0, 3));
    world.run(millis(5000));
    let mut times = Vec::new();
    for peer in 1..=100 {
        let lane = world.lanes(0, peer);
        assert!(!lane.iter().any(|(slot, _)| *slot == 3), "peer {peer}: {lane:?}");
        times.push(world.hosts[0].changed[&(peer, 3, 3)].since(began));
    }
    let detection = snapshot.lanes.iter().filter_map(|lane| lane.detection).min().expect("lanes");
    println!("detection time told: {detection:?}");
    assert!(spread("failed member of 100 peers", times) <= detection * 4 / 3);
}
