//! Hosts that sleep, and wake with links that come back one after the other.

use super::{
    fault::Fault,
    network::millis,
    world::{Setup, World},
};
use std::time::Duration;

const MEMBERS: u8 = 4;
/// How long after the last link is back all lanes are proven again, at both ends.
const WHOLE: Duration = millis(2000);

fn pair(seed: u64) -> World {
    let hosts = vec![(vec![0; usize::from(MEMBERS)], None); 2];
    let mut world = World::new(seed, &Setup { hosts, plain: Vec::new(), guests: Vec::new(), hostile: None });
    world.run(millis(4000));
    world.check_known().expect("nothing has failed");
    world
}

/// Until both ends have all lanes again: how long that took.
fn whole(world: &mut World, about: &str) -> Duration {
    let from = world.now();
    while let Err(wrong) = world.check_known() {
        assert!(world.now().since(from) < WHOLE, "{about}: {wrong}: {}", world.describe());
        world.run(millis(20));
    }
    world.now().since(from)
}

//= docs/arp-plus.md#11.13 type=test
//= docs/arp-plus.md#11.14 type=test
#[test]
fn who_sleeps_again_and_again_has_all_lanes_within_two_seconds_each_time() {
    let mut longest = Duration::ZERO;
    for seed in 0..20 {
        let mut world = pair(seed);
        for turn in 0..6 {
            // A peer that is silent for long is forgotten by others; one that sleeps shortly is a suspect.
            let asleep = millis(300 + world.random(12_000));
            world.sleep(0, asleep);
            for slot in 0..MEMBERS {
                world.plug((0, slot), false);
            }
            world.run(millis(500));
            for slot in 0..MEMBERS {
                world.plug((0, slot), true);
                let pause = millis(world.random(700));
                world.run(pause);
            }
            let about = format!("seed {seed}, {asleep:?} asleep, turn {turn}");
            longest = longest.max(whole(&mut world, &about));
            let pause = millis(world.random(3000));
            world.run(pause);
        }
    }
    println!("whole again at most {longest:?} after the last link");
}

//= docs/arp-plus.md#11.14 type=test
#[test]
fn hold_downs_end_with_a_sleep() {
    let mut world = pair(3);
    for _ in 0..5 {
        world.plug((0, 1), false);
        world.run(millis(300));
        world.plug((0, 1), true);
        world.fail(Fault::From(0, 2));
        world.run(millis(900));
        world.repair();
        world.run(millis(900));
    }
    world.run(millis(1000));
    world.check_known().expect_err("what flaps is held down");
    world.sleep(0, millis(1000));
    // The other end has not slept, and has counted the lane's failures.
    let member = |world: &World, slot| {
        let daemon = world.machines[0].daemon.as_ref().expect("it runs");
        daemon.member(slot).is_some_and(|member| member.alive)
    };
    world.run(millis(500));
    assert!(member(&world, 1), "{}", world.describe());
}
