//! Links whose queues are longer than the detection time.

use super::{Fault, RUNS, World, millis, network::Weather, spread};
use linkbraid_proto::Time;
use std::time::Duration;

/// A link of host 0 is full from now on: frames wait in its queue for so long, and some are dropped.
fn fill(world: &mut World, queue: u64) {
    let most = queue * 1000;
    world.queues.insert((0, 0), Weather::new(10, 0, [most * 9 / 10, most]));
}

fn losses(world: &World, since: Time) -> usize {
    (0..2).map(|host| world.losses(host, since).len()).sum()
}

/// Two hosts with two links, of which one is full and has been for two seconds.
fn full(seed: u64, queue: u64) -> World {
    let mut world = World::pair(seed, &[0, 0], &[0, 0]);
    fill(&mut world, queue);
    world.run(millis(2000));
    world
}

//= docs/arp-plus.md#11.20 type=test
#[test]
fn a_full_link_is_slow_and_not_lost() {
    for queue in [121, 240, 450] {
        let (mut first, mut later) = (0, 0);
        for seed in 0..RUNS {
            let mut world = World::pair(seed, &[0, 0], &[0, 0]);
            let began = world.now();
            fill(&mut world, queue);
            // Nobody knows of the queue before it is there: a lane may be given up once, and is back with the first answer.
            world.run(millis(5000));
            first += losses(&world, began);
            for host in 0..2 {
                assert!(
                    world.lanes(host, 1 - host).contains(&(0, 0)),
                    "{queue} ms, seed {seed}: {}",
                    world.describe()
                );
            }
            let began = world.now();
            world.run(millis(20_000));
            later += losses(&world, began);
        }
        println!(
            "{queue} ms: {first} lanes lost when the queue came, {later} in the 20 s after it, of {RUNS} runs"
        );
        assert!(later <= RUNS as usize / 20, "{queue} ms: {later}");
    }
}

//= docs/arp-plus.md#11.20 type=test
#[test]
fn a_full_link_that_fails_is_found_after_three_intervals_and_what_its_queue_takes() {
    let mut times: Vec<Duration> = Vec::new();
    for seed in 0..RUNS {
        let mut world = full(seed, 121);
        let began = world.now();
        world.faults.extend([Fault::From(0, 0), Fault::To(0, 0)]);
        world.run(millis(1000));
        for host in 0..2 {
            assert!(!world.lanes(host, 1 - host).contains(&(0, 0)), "seed {seed}");
            times.push(world.hosts[host].changed[&(1 - host, 0, 0)].since(began));
        }
    }
    // What is in the queue when the link fails still arrives.
    assert!(spread("full, 121 ms", times) <= millis(121 + 121 + 150 + 50));
}

//= docs/arp-plus.md#11.20 type=test
#[test]
fn a_queue_that_is_gone_is_forgotten() {
    let mut times: Vec<Duration> = Vec::new();
    for seed in 0..RUNS {
        let mut world = full(seed, 240);
        world.queues.clear();
        world.run(millis(20_000));
        let began = world.now();
        world.faults.extend([Fault::From(0, 0), Fault::To(0, 0)]);
        world.run(millis(1000));
        times.extend((0..2).map(|host| world.hosts[host].changed[&(1 - host, 0, 0)].since(began)));
    }
    assert!(spread("full before", times) <= millis(200));
}
