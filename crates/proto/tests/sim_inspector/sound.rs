//! What a failure without loss of carrier makes of a member at each end.

use super::{fault::Fault, network::millis, spread, world::World};
use linkbraid_proto::inspector::*;
use std::{collections::BTreeSet, time::Duration};

fn sound(world: &World, host: usize) -> Vec<Verdict> {
    let slots = 0..world.hosts[host].reports.len() as u8;
    slots.map(|slot| world.hosts[host].inspector.member_sound(slot)).collect()
}

//= docs/arp-plus.md#11.11 type=test
#[test]
fn silent_failure_condemns_the_member_that_failed_and_no_other() {
    for fault in [Fault::From(0, 0), Fault::To(0, 0)] {
        let mut times = Vec::new();
        for seed in 0..50 {
            let mut world = World::pair(seed, &[0, 0], &[0, 0]);
            assert_eq!([0, 1].map(|host| sound(&world, host)), [[Verdict::Alive; 2]; 2]);
            let pause = world.random(100);
            world.run(millis(pause));
            world.faults.insert(fault);
            times.push(world.until(millis(4000), |world| sound(world, 0)[0] == Verdict::Failed));
            world.run(millis(5000));
            assert_eq!(sound(&world, 0), [Verdict::Failed, Verdict::Alive], "seed {seed}");
            assert_eq!(sound(&world, 1), [Verdict::Alive; 2], "seed {seed}: both of its own reach the other");
            assert_eq!(world.hosts[0].inspector.member_alive(0), Verdict::Alive, "it has carrier");
            world.faults.clear();
            world.until(millis(1000), |world| sound(world, 0) == [Verdict::Alive; 2]);
        }
        // The crossed lane of the member is in no plan: once the one in use is late, it is probed, too.
        spread("a member that fails silently is presumed failed", times);
    }
}

#[test]
fn members_are_suspects_when_nothing_is_left_and_cleared_by_other_peers() {
    let mut world = World::new(3);
    (0..3).for_each(|_| _ = world.add(&[0, 1]));
    [(0, 1), (0, 2)].into_iter().for_each(|(one, other)| world.meet(one, other));
    world.run(millis(2000));
    assert_eq!(sound(&world, 0), [Verdict::Alive; 2]);
    // The first peer's own port fails: the other peer vouches for our member.
    world.faults.insert(Fault::To(1, 0));
    world.run(millis(5000));
    assert_eq!(world.lanes(0, 1), [(1, 1)]);
    assert_eq!(sound(&world, 0), [Verdict::Alive; 2]);
    assert_eq!(sound(&world, 1), [Verdict::Failed, Verdict::Alive]);
    // Now nothing works at all: nothing better is left, and nobody is condemned for it.
    world.faults = BTreeSet::from([Fault::Switch(0), Fault::Switch(1)]);
    world.run(millis(5000));
    assert_eq!(sound(&world, 0), [Verdict::Suspect; 2]);
    assert_eq!(sound(&world, 2), [Verdict::Suspect; 2]);
    world.faults.remove(&Fault::Switch(1));
    world.until(millis(2000), |world| sound(world, 0) == [Verdict::Failed, Verdict::Alive]);
    world.faults.clear();
    world.until(Duration::from_secs(3), |world| sound(world, 0) == [Verdict::Alive; 2]);
    world.carrier(0, 0, false);
    assert_eq!(sound(&world, 0), [Verdict::Unknown, Verdict::Alive], "carrier is told by member_alive");
}
