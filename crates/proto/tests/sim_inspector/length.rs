//! Ports that pass only frames shorter than the MTU.

use super::*;

const MTU: u32 = 9000;
/// Both ends have found out by then, and plans have changed.
const FOUND: Duration = millis(6000);

fn pair(seed: u64, short: &[(usize, u8)]) -> World {
    let mut world = World::pair(seed, &[0, 0, 0], &[0, 0, 0]);
    world.short.extend(short);
    for host in 0..2 {
        world.input(host, Input::Mtu(MTU));
    }
    world
}

fn events(world: &World, host: usize) -> usize {
    world.hosts[host].events.iter().filter(|(_, event)| matches!(event, Event::Length { .. })).count()
}

/// Whether a plan of that host uses that member of host 0.
fn uses(world: &World, host: usize, slot: u8) -> bool {
    world.lanes(host, 1 - host).iter().any(|lane| [lane.0, lane.1][host] == slot)
}

//= docs/arp-plus.md#11.18 type=test
#[test]
fn a_port_with_a_smaller_mtu_is_left_out_by_both_ends_until_it_is_mended() {
    for seed in 0..RUNS {
        let mut world = pair(seed, &[(0, 1)]);
        world.network.weather.loss = seed % 3;
        world.run(FOUND);
        for host in 0..2 {
            assert!(!uses(&world, host, 1), "seed {seed}: host {host}: {}", world.describe());
            assert!(uses(&world, host, 0) && uses(&world, host, 2), "seed {seed}: {}", world.describe());
            assert_eq!(world.hosts[host].inspector.member_sound(1), Verdict::Alive, "seed {seed}");
        }
        world.short.clear();
        world.run(FOUND);
        for host in 0..2 {
            assert!(uses(&world, host, 1), "seed {seed}: host {host}: {}", world.describe());
        }
    }
}

//= docs/arp-plus.md#11.18 type=test
#[test]
fn a_peer_with_a_smaller_mtu_keeps_all_its_lanes() {
    for seed in 0..RUNS {
        let mut world = pair(seed, &[(1, 0), (1, 1), (1, 2)]);
        let before = [0, 1].map(|host| world.hosts[host].planned.clone());
        world.run(FOUND * 5);
        for (host, before) in before.iter().enumerate() {
            assert_eq!(world.hosts[host].planned, *before, "seed {seed}");
            assert!(events(&world, host) >= 3, "seed {seed}: it is reported");
        }
    }
}

//= docs/arp-plus.md#11.18 type=test
#[test]
fn loss_makes_no_lane_short() {
    for seed in 0..RUNS / 4 {
        let mut world = pair(seed, &[]);
        world.network.weather.loss = 10;
        world.run(Duration::from_secs(300));
        assert_eq!([events(&world, 0), events(&world, 1)], [0, 0], "seed {seed}");
    }
}
