//! What inspectors of several hosts do together: silent and loud failures, recovery, flapping, topologies, cost.

#[path = "sim_inspector/cost.rs"]
mod cost;
mod events;
#[path = "sim_inspector/look.rs"]
mod look;
#[path = "sim_inspector/plain.rs"]
mod plain;
#[path = "sim_inspector/sound.rs"]
mod sound;
#[path = "sim_inspector/world.rs"]
mod world;

use events::millis;
use linkbraid_proto::{Time, inspector::*};
use std::{collections::BTreeSet, time::Duration};
use world::{Fault, World, key};

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
            let dead = |(slot, index): &(u8, u8)| [*slot, *index][host] == 0;
            assert!(!world.lanes(host, 1 - host).iter().any(dead), "seed {seed}");
            assert!(!world.lanes(host, 1 - host).is_empty(), "seed {seed}");
            assert_eq!(world.hosts[host].changed[&(1 - host, 0, 0)], began);
        }
        assert!(world.losses(0, began).iter().all(|(.., reason, _)| *reason == LaneReason::MemberDown));
        assert!(world.losses(1, began).iter().all(|(.., reason, _)| *reason == LaneReason::PeerMemberDown));
        assert_eq!(world.hosts[0].inspector.lane_alive(&key(1), 0, 0), Verdict::Dead);
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
    world.hosts.iter_mut().for_each(|host| host.busy = false);
    (0..2).for_each(|host| world.tell_plan(host));
    world.faults.insert(Fault::Switch(0));
    world.run(Duration::from_secs(3600));
    assert_eq!(world.lanes(0, 1), [(1, 1)]);
    world.faults.clear();
    let took =
        world.until(millis(1000), |world| world.lanes(0, 1).len() == 2 && world.lanes(1, 0).len() == 2);
    println!("back after {took:?}");
}

#[test]
fn lanes_found_are_the_lanes_that_exist() {
    let topologies: [(&str, &[u8], &[u8]); 8] = [
        ("one switch", &[0, 0, 0, 0], &[0, 0, 0, 0]),
        ("four switches", &[0, 1, 2, 3], &[0, 1, 2, 3]),
        ("crossed cables", &[0, 1, 2], &[2, 0, 1]),
        ("two switches of two", &[0, 0, 1, 1], &[0, 0, 1, 1]),
        ("a switch and a cable", &[0, 0, 1], &[0, 0, 1]),
        ("one to many", &[0], &[0, 0, 0, 0, 0, 0, 0, 0]),
        ("eight switches", &[0, 1, 2, 3, 4, 5, 6, 7], &[0, 1, 2, 3, 4, 5, 6, 7]),
        ("without the first here and the second there", &[1, 2], &[0, 2]),
    ];
    for (name, one, other) in topologies {
        let world = World::pair(3, one, other);
        for host in 0..2 {
            assert_eq!(world.proven(host, 1 - host), world.existing(host, 1 - host), "{name}");
            let existing = world.existing(host, 1 - host);
            assert!(!world.lanes(host, 1 - host).is_empty(), "{name}");
            assert!(world.lanes(host, 1 - host).iter().all(|lane| existing.contains(lane)), "{name}");
        }
    }
}

/// Where bonding's round robin breaks: one switch for each number of NIC, and hosts that lack different ones.
#[test]
fn host_without_its_first_nic_and_host_without_its_second_still_talk() {
    for silent in [false, true] {
        let mut world = World::pair(5, &[0, 1, 2], &[0, 1, 2]);
        assert_eq!(world.lanes(0, 1).len(), 3);
        if silent {
            world.faults.extend([Fault::From(0, 0), Fault::From(1, 1)]);
        } else {
            world.carrier(0, 0, false);
            world.carrier(1, 1, false);
        }
        world.run(millis(300));
        assert_eq!((world.lanes(0, 1), world.lanes(1, 0)), (vec![(2, 2)], vec![(2, 2)]));
    }
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
    println!("the dead one of two suspects is dropped {took:?} after the other is back");
    world.faults.clear();
    world.until(millis(1000), |world| world.lanes(0, 1).len() == 2);
}

#[test]
fn one_dead_after_the_other_leaves_the_last() {
    let mut world = World::pair(9, &[0, 0, 0], &[0, 0, 0]);
    for slot in 0..3 {
        world.faults.insert(Fault::To(0, slot));
        world.run(millis(1000));
    }
    assert!(!world.lanes(0, 1).is_empty(), "{}", world.describe());
    assert!(world.lanes(0, 1).iter().all(|(slot, _)| *slot == 2), "{}", world.describe());
    world.carrier(0, 2, false);
    let lanes = world.lanes(0, 1);
    assert!(lanes.iter().all(|(slot, _)| *slot != 2), "carrier loss is final even for the last: {lanes:?}");
}

#[test]
fn daemon_that_dies_and_starts_anew_costs_its_peers_no_lane() {
    for seed in 0..20 {
        let mut world = World::pair(seed, &[0, 0], &[0, 0]);
        let before = world.now();
        world.hosts[1].running = false;
        world.run(millis(3000));
        assert_eq!(world.lanes(0, 1), [(0, 0), (1, 1)], "a dead daemon is no dead lane");
        world.restart(1);
        world.tell_peers(0);
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
fn host_that_was_late_itself_gives_nothing_up() {
    let mut world = World::pair(17, &[0, 0], &[0, 0]);
    let began = world.now();
    world.lateness = millis(120);
    world.run(millis(120));
    world.lateness = Duration::ZERO;
    world.run(millis(2000));
    (0..2).for_each(|host| assert_eq!(world.losses(host, began), [], "{}", world.describe()));
}

#[test]
fn one_seed_is_one_course_of_events() {
    let life = |seed| {
        let mut world = World::pair(seed, &[0, 0, 1], &[0, 1, 1]);
        world.loss = 10;
        for _ in 0..40 {
            let (host, slot) = (world.random(2) as usize, world.random(3) as u8);
            match world.random(5) {
                0 => _ = world.faults.insert(Fault::From(host, slot)),
                1 => _ = world.faults.insert(Fault::To(host, slot)),
                2 => world.faults.clear(),
                carrier => world.carrier(host, slot, carrier == 3),
            }
            let pause = world.random(700);
            world.run(millis(pause));
        }
        world
    };
    let (one, again, other) = (life(31), life(31), life(32));
    assert_eq!(one.trace, again.trace);
    assert_ne!(one.trace, other.trace);
    for (host, same) in one.hosts.iter().zip(&again.hosts) {
        assert_eq!(host.inspector.snapshot(one.now()), same.inspector.snapshot(again.now()));
        assert_eq!(host.events, same.events);
    }
}

/// Whatever happened, seconds after the last fault every lane that exists is proven, and none else.
#[test]
fn any_life_ends_with_all_lanes_proven() {
    for seed in 0..25 {
        let mut world = World::pair(seed, &[0, 0, 1, 2], &[0, 1, 1, 3]);
        world.loss = 10;
        for _ in 0..60 {
            let (host, slot) = (world.random(2) as usize, world.random(4) as u8);
            match world.random(8) {
                0 => _ = world.faults.insert(Fault::From(host, slot)),
                1 => _ = world.faults.insert(Fault::To(host, slot)),
                2 => world.faults.clear(),
                3 => world.restart(host),
                carrier => world.carrier(host, slot, carrier % 2 == 0),
            }
            let pause = world.random(1000);
            world.run(millis(pause));
            for host in 0..2 {
                let up: BTreeSet<u8> =
                    world.hosts[host].reports.iter().filter(|r| r.carrier).map(|r| r.slot).collect();
                let sound = world.lanes(host, 1 - host).iter().all(|(slot, _)| up.contains(slot));
                assert!(sound, "seed {seed}: no lane leaves by a member without carrier");
            }
        }
        world.faults.clear();
        world.loss = 0;
        (0..2).for_each(|host| (0..4).for_each(|slot| world.carrier(host, slot, true)));
        let all =
            |world: &World| (0..2).all(|host| world.proven(host, 1 - host) == world.existing(host, 1 - host));
        let took = world.until(Duration::from_secs(65), all);
        assert!(took <= Duration::from_secs(63), "seed {seed}: hold-down is bounded: {took:?}");
    }
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
    assert_eq!(verdict(&world, 0), Verdict::Dead);
    world.carrier(0, 0, true);
    assert_eq!(verdict(&world, 0), Verdict::Dead, "up-delay");
    world.carrier(0, 1, false);
    assert_eq!(verdict(&world, 0), Verdict::Alive, "no up-delay for the only one");
    world.run(millis(50));
    assert_eq!(world.now().since(Time::ZERO), millis(2050));
}
