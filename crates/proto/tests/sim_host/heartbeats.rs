//! A little traffic, and members that fail silently one after the other.

use super::{
    fault::Fault,
    network::millis,
    world::{OwnClass, Setup, World},
};
use linkbraid_proto::inspector::{LaneState, Usage};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const MEMBERS: u8 = 4;
/// 2.5 heartbeats a second.
const PERIOD: Duration = millis(400);
/// What an answer takes at most.
const PATIENCE: Duration = millis(10);

/// One heartbeat and its answer; whether both came.
fn beat(world: &mut World) -> bool {
    let mut came = true;
    for (from, to) in [(0, 1), (1, 0)] {
        world.send(from, Some(to), 0);
        let number = world.last_sent();
        world.run(PATIENCE / 2);
        came &= world.has_come(number, to);
    }
    world.run(PERIOD - PATIENCE);
    came
}

/// Heartbeats for that long: the longest row of them that got no answer.
fn longest_silence(world: &mut World, duration: Duration) -> u32 {
    let end = world.now() + duration;
    let (mut row, mut longest) = (0, 0);
    while world.now() < end {
        row = if beat(world) { 0 } else { row + 1 };
        longest = longest.max(row);
    }
    longest
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn of_heartbeats_no_two_in_a_row_are_lost_while_members_fail_silently() {
    let mut lost = 0;
    for seed in 0..40 {
        let hosts = vec![(vec![0; usize::from(MEMBERS)], None); 2];
        let mut world =
            World::new(seed, &Setup { hosts, plain: Vec::new(), guests: Vec::new(), hostile: None });
        world.carried = Some(BTreeMap::new());
        assert_eq!(
            longest_silence(&mut world, Duration::from_secs(12)),
            0,
            "seed {seed}: nothing failed yet"
        );
        let first = world.random(u64::from(MEMBERS)) as u8;
        for slot in (0..MEMBERS - 1).map(|turn| (first + turn) % MEMBERS) {
            let pause = world.random(PERIOD.as_millis() as u64);
            world.run(millis(pause));
            world.fail(Fault::From(0, slot));
            world.fail(Fault::To(0, slot));
            let silence = longest_silence(&mut world, Duration::from_secs(4));
            assert!(silence < 2, "seed {seed}: {silence} in a row: {}", world.describe());
            lost += silence;
        }
    }
    println!("{lost} heartbeats lost in 120 failures, never two in a row");
    assert!(lost > 0, "failures do cost something, or this test shows nothing");
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn lanes_of_a_class_are_probed_at_the_full_rate_though_nothing_is_sent() {
    let class = Some(OwnClass { slots: BTreeSet::from([1]), lends: false });
    let setup =
        Setup { hosts: vec![(vec![0, 0], class); 2], plain: Vec::new(), guests: Vec::new(), hostile: None };
    let mut world = World::new(7, &setup);
    world.carried = Some(BTreeMap::new());
    world.run(Duration::from_secs(12));
    for machine in &world.machines {
        let inspector = machine.daemon.as_ref().expect("it runs").inspector();
        let lanes = inspector.snapshot(world.now()).lanes.into_iter();
        let proven = lanes.filter(|lane| lane.state == LaneState::Up);
        let seen: Vec<_> =
            proven.map(|lane| (lane.lane.slot, lane.lane.index, lane.usage, lane.interval)).collect();
        assert!(seen.contains(&(1, 1, Usage::Light, Some(millis(50)))), "{seen:?}");
        assert!(seen.contains(&(0, 0, Usage::Idle, Some(millis(250)))), "{seen:?}");
    }
}
