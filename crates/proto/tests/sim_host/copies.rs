//! Two copies of one machine: the same id, other MACs.

use super::{
    hosts::id,
    network::millis,
    world::{Setup, World},
};
use linkbraid_proto::{arp_plus::Conflict, auth::Mode};

/// The original, its copy, and the host that talks to both.
const HOSTS: [usize; 3] = [0, 1, 2];

/// What a host tells of others that have one id.
fn told(world: &World, host: usize) -> Vec<String> {
    let daemon = world.machines[host].daemon.as_ref().expect("it runs");
    let conflicts = daemon.arp_plus().conflicts().into_iter().map(|open| open.conflict);
    let of_ids =
        conflicts.filter(|it| matches!(it, Conflict::OwnHostId { .. } | Conflict::PeerHostId { .. }));
    of_ids.map(|conflict| conflict.to_string()).collect()
}

//= docs/arp-plus.md#8.7 type=test
#[test]
fn of_two_hosts_with_one_id_both_are_reached_and_all_are_told() {
    for seed in 0..40 {
        let hosts = vec![(vec![0; 4], None); HOSTS.len()];
        let setup = Setup {
            hosts,
            plain: Vec::new(),
            guests: Vec::new(),
            hostile: (seed % 2 == 0).then_some(Mode::Require),
        };
        let mut world = World::new(seed, &setup);
        world.run(millis(4000));
        world.check_known().expect("nothing has failed");
        world.kill(1);
        world.machines[1].host_id = id(0);
        // A copy that runs on has the epoch of its original, one that was started since has a later one.
        world.machines[1].epoch = seed % 3;
        world.start(1);
        world.run(millis(15_000));
        for from in HOSTS {
            for to in HOSTS.into_iter().filter(|to| *to != from) {
                for _ in 0..32 {
                    world.send(from, Some(to), 0);
                    let number = world.last_sent();
                    world.run(millis(1));
                    assert!(world.has_come(number, to), "{seed}: {from} to {to}: {}", world.describe());
                }
            }
        }
        let (of_copy, of_first) =
            ("198.18.0.2 has the same host id as this host", "198.18.0.1 has the same host id as this host");
        assert_eq!([told(&world, 0), told(&world, 1)], [[of_copy], [of_first]], "{seed}");
        let both = told(&world, 2);
        let names_both = both.iter().any(|text| text == "198.18.0.1 and 198.18.0.2 have the same host id");
        let names_both =
            names_both || both.contains(&"198.18.0.2 and 198.18.0.1 have the same host id".into());
        assert!(names_both, "{seed}: {both:?}");
    }
}
