//! What inspectors of several hosts do together: silent and loud failures, recovery, flapping, topologies, cost.

#[path = "network/answer.rs"]
mod answer;
#[path = "sim_inspector/cost.rs"]
mod cost;
#[path = "network/fault.rs"]
mod fault;
#[path = "network/hosts.rs"]
mod hosts;
#[path = "sim_inspector/length.rs"]
mod length;
#[path = "sim_inspector/look.rs"]
mod look;
mod network;
#[path = "sim_inspector/plain.rs"]
mod plain;
#[path = "sim_inspector/slow.rs"]
mod slow;
#[path = "sim_inspector/sound.rs"]
mod sound;
#[path = "sim_inspector/world.rs"]
mod world;

use fault::Fault;
use linkbraid_proto::{Time, inspector::*};
use network::millis;
use std::{collections::BTreeSet, time::Duration};
use world::{World, key};

/// How long each end keeps the lane 0-0 in its plan after the faults set in.
fn detection(seed: u64, faults: &[Fault]) -> [Duration; 2] {
    let mut world = World::pair(seed, &[0, 0], &[0, 0]);
    assert_eq!(world.lanes(0, 1), [(0, 0), (1, 1)]);
    let pause = world.random(100);
    world.run(millis(pause));
    let began = world.now();
    world.faults.extend(faults);
    world.run(millis(1000));
    for host in 0..2 {
        assert!(!world.lanes(host, 1 - host).contains(&(0, 0)), "seed {seed}: {}", world.describe());
        assert!(world.lanes(host, 1 - host).contains(&(1, 1)), "seed {seed}: {}", world.describe());
        for (lane, state, ..) in world.losses(host, began) {
            assert_eq!(state, LaneState::Down, "seed {seed}: no doubt about {lane}");
            assert!(lane.slot == 0 || lane.index == 0, "seed {seed}: {lane} is sound");
        }
    }
    [0, 1].map(|host| world.hosts[host].changed[&(1 - host, 0, 0)].since(began))
}

/// Median and most of many runs.
fn spread(name: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{name}: median {median:?}, most {most:?} of {}", times.len());
    most
}

const RUNS: u64 = 100;

//= docs/arp-plus.md#11.5 type=test
#[test]
fn silent_failure_is_found_within_three_intervals_and_one_at_both_ends() {
    for (name, faults) in [
        ("both ways", &[Fault::From(0, 0), Fault::To(0, 0)][..]),
        ("from the leading host only", &[Fault::From(0, 0)]),
        ("to the leading host only", &[Fault::To(0, 0)]),
    ] {
        let times: Vec<Duration> = (0..RUNS).flat_map(|seed| detection(seed, faults)).collect();
        assert!(times.iter().all(|time| *time >= millis(50)), "{name}: too soon to know");
        assert!(spread(name, times) <= millis(200), "{name}");
    }
}

//= docs/arp-plus.md#11.1 type=test
#[test]
fn carrier_loss_counts_at_once_here_and_as_soon_as_told_there() {
    for seed in 0..RUNS {
        let mut world = World::pair(seed, &[0, 0], &[0, 0]);
        let began = world.now();
        world.carrier(0, 0, false);
        for host in 0..2 {
            let failed = |(slot, index): &(u8, u8)| [*slot, *index][host] == 0;
            assert!(!world.lanes(host, 1 - host).iter().any(failed), "seed {seed}");
            assert!(!world.lanes(host, 1 - host).is_empty(), "seed {seed}");
            assert_eq!(world.hosts[host].changed[&(1 - host, 0, 0)], began);
        }
        assert!(world.losses(0, began).iter().all(|(.., reason, _)| *reason == LaneReason::MemberDown));
        assert!(world.losses(1, began).iter().all(|(.., reason, _)| *reason == LaneReason::PeerMemberDown));
        assert_eq!(world.hosts[0].inspector.lane_alive(&key(1), 0, 0), Verdict::Failed);
    }
}

//= docs/arp-plus.md#11.3 type=test
#[test]
fn what_is_restored_is_back_within_a_second_and_proven_first() {
    let mut silent = Vec::new();
    let mut loud = Vec::new();
    for seed in 0..RUNS {
        let mut world = World::pair(seed, &[0, 0], &[0, 0]);
        let back = |world: &World| [0, 1].map(|host| world.lanes(host, 1 - host).contains(&(0, 0)));
        let outage = 500 + world.random(5000);
        world.faults.insert(Fault::To(0, 0));
        world.run(millis(outage));
        assert_eq!(back(&world), [false, false]);
        world.faults.clear();
        let began = world.now();
        silent.push(world.until(millis(1000), |world| back(world) == [true, true]));
        for host in 0..2 {
            let took = world.hosts[host].events.iter().rev().find_map(|(at, event)| match event {
                Event::Lane { new: LaneState::Up, took, .. } if *at >= began => Some(*took),
                _ => None,
            });
            assert!(took.expect("an event") >= millis(20), "three answered probes take a while");
        }
        let mut world = World::pair(seed, &[0, 0], &[0, 0]);
        world.carrier(0, 0, false);
        world.run(millis(outage));
        world.carrier(0, 0, true);
        loud.push(world.until(millis(1000), |world| back(world) == [true, true]));
    }
    spread("silent failure ends, back in both plans", silent);
    spread("carrier is back, back in both plans", loud);
}

#[test]
fn outage_of_an_hour_ends_as_quickly() {
    let mut world = World::pair(1, &[0, 1], &[0, 1]);
    world.hosts.iter_mut().for_each(|host| host.usage = Usage::Idle);
    (0..2).for_each(|host| world.report_plan(host));
    world.faults.insert(Fault::Switch(0));
    world.run(Duration::from_secs(3600));
    assert_eq!(world.lanes(0, 1), [(1, 1)]);
    world.faults.clear();
    let took =
        world.until(millis(1000), |world| world.lanes(0, 1).len() == 2 && world.lanes(1, 0).len() == 2);
    println!("back after {took:?}");
}

//= docs/arp-plus.md#11.6 type=test
#[test]
fn last_lanes_are_suspects_and_stay_in_use() {
    let mut world = World::pair(7, &[0, 1], &[0, 1]);
    let began = world.now();
    world.faults.extend([Fault::Switch(0), Fault::Switch(1)]);
    world.run(millis(5000));
    for host in 0..2 {
        assert_eq!(world.lanes(host, 1 - host), [(0, 0), (1, 1)], "nothing better is left");
        let verdict = |slot| world.hosts[host].inspector.lane_alive(&key(1 - host), slot, slot);
        assert_eq!([0, 1].map(verdict), [Verdict::Suspect; 2]);
        let told = world.losses(host, began);
        assert_eq!(told.len(), 2, "each is told once: {told:?}");
        assert!(told.iter().all(|(_, _, reason, _)| *reason == LaneReason::NoneAnswers));
    }
    // One of them is better again: the other is given up.
    world.faults.remove(&Fault::Switch(1));
    let took =
        world.until(millis(500), |world| world.lanes(0, 1) == [(1, 1)] && world.lanes(1, 0) == [(1, 1)]);
    println!("the failed one of two suspects is dropped {took:?} after the other is back");
    world.faults.clear();
    world.until(millis(1000), |world| world.lanes(0, 1).len() == 2);
}

#[test]
fn daemon_that_dies_and_starts_anew_costs_its_peers_no_lane() {
    for seed in 0..20 {
        let mut world = World::pair(seed, &[0, 0], &[0, 0]);
        let before = world.now();
        world.hosts[1].running = false;
        world.run(millis(3000));
        assert_eq!(world.lanes(0, 1), [(0, 0), (1, 1)], "a failed daemon is no failed lane");
        world.restart(1);
        world.report_peers(0);
        world.run(millis(2000));
        for host in 0..2 {
            assert_eq!(world.lanes(host, 1 - host), [(0, 0), (1, 1)], "seed {seed}");
            let planned = [(1 - host, 0, 0), (1 - host, 1, 1)];
            assert!(
                planned.iter().all(|lane| world.hosts[host].changed[lane] <= before),
                "seed {seed}, {host}"
            );
            assert_eq!(world.proven(host, 1 - host).len(), 4, "and all are proven again");
        }
        assert_eq!(world.count(0, Counter::LaneLost), 0);
    }
}

//= docs/arp-plus.md#11.2 type=test
#[test]
fn flapping_lane_is_held_down_longer_each_time() {
    let mut world = World::pair(11, &[0, 1], &[0, 1]);
    let mut waits = Vec::new();
    for _ in 0..8 {
        world.faults.insert(Fault::Switch(0));
        world.until(millis(500), |world| world.lanes(0, 1) == [(1, 1)]);
        world.faults.clear();
        let took = world.until(Duration::from_secs(65), |world| world.lanes(0, 1).len() == 2);
        waits.push(took.as_millis());
        world.until(Duration::from_secs(65), |world| world.lanes(1, 0).len() == 2);
    }
    println!("back after {waits:?} ms");
    assert!(waits[0] < 1000, "the first time is no flapping");
    for (wait, least) in waits[1..7].iter().zip([900, 1900, 3900, 7900, 15_900, 31_900]) {
        assert!((least..least + 1100).contains(wait), "{waits:?}");
    }
    assert!(waits[7] <= 61_000, "bounded");
    // But not if nothing else is left.
    world.faults.insert(Fault::Switch(0));
    world.run(millis(500));
    world.faults = BTreeSet::from([Fault::Switch(1)]);
    let took =
        world.until(millis(1000), |world| world.lanes(0, 1) == [(0, 0)] && world.lanes(1, 0) == [(0, 0)]);
    println!("held down, but the only one: in use after {took:?}");
}

#[test]
fn member_verdicts_follow_reports() {
    let mut world = World::pair(37, &[0, 1], &[0, 1]);
    let verdict = |world: &World, slot| world.hosts[0].inspector.member_alive(slot);
    assert_eq!(
        [verdict(&world, 0), verdict(&world, 1), verdict(&world, 2)],
        [Verdict::Alive, Verdict::Alive, Verdict::Unknown]
    );
    world.carrier(0, 0, false);
    assert_eq!(verdict(&world, 0), Verdict::Failed);
    world.carrier(0, 0, true);
    assert_eq!(verdict(&world, 0), Verdict::Failed, "up-delay");
    world.carrier(0, 1, false);
    assert_eq!(verdict(&world, 0), Verdict::Alive, "no up-delay for the only one");
    world.run(millis(50));
    assert_eq!(world.now().since(Time::ZERO), millis(2050));
}
