//! Nodes that are killed and come back while the others talk.

use crate::nodes::Nodes;
use linkbraid_lab::{iperf, wait_for};
use linkbraid_netns_tests::{SOON, flow::Flow};
use std::time::{Duration, Instant};

/// How often a node is killed. `linkbraid bench run fabric` does it a hundred times.
const CRASHES: usize = 20;
const NODES: usize = 4;

/// Waits for an answer without ever waiting long for one; since `begin`.
fn answered(nodes: &Nodes, from: usize, to: usize, begin: Instant) -> Duration {
    let host = nodes.net.host(&nodes.names[from]);
    wait_for(SOON, "an answer", || {
        host.sh(&format!("ping -c 1 -W 0.1 {}", Nodes::ip(to))).map_err(|error| error.cause)
    })
    .unwrap_or_else(|error| panic!("{error}"));
    begin.elapsed()
}

#[test]
fn survivors_of_crashes_lose_nothing_of_their_own() {
    let nodes = Nodes::up(NODES, "shm", "");
    nodes.ping_all();
    // Another order each time would make a failure hard to see again.
    let mut random = 1_u64;
    let mut took = Vec::with_capacity(CRASHES);
    for round in 0..CRASHES {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let victim = (random >> 33) as usize % NODES;
        let round_began = Instant::now();
        let alive: Vec<usize> = (0..NODES).filter(|node| *node != victim).collect();
        let ends = |node: usize| (nodes.net.host(&nodes.names[node]), Nodes::ip(node));
        let pairs = [(alive[0], alive[1]), (alive[1], alive[2]), (alive[2], alive[0])];
        let flows = pairs.map(|(from, to)| {
            let [(from, near), (to, far)] = [ends(from), ends(to)];
            Flow::between([(from, &near), (to, &far)])
        });
        let [(from, _), (to, address)] = [ends(alive[0]), ends(alive[2])];
        let load = iperf::Traffic::tcp(iperf::Cc::Cubic, 1).to(&address);
        let load = iperf::start(from, to, &load).expect("starts");
        flows.iter().for_each(|flow| flow.wait_received(50));
        nodes.net.kill(&nodes.names[victim]);
        let begin = Instant::now();
        nodes.net.start(&nodes.names[victim], &[]);
        took.push((begin.elapsed(), answered(&nodes, alive[round % 3], victim, begin)));
        alive.iter().for_each(|node| nodes.wait_all_up(*node));
        nodes.wait_all_up(victim);
        alive.iter().for_each(|node| nodes.ping(*node, victim));
        load.finish().expect("the load of survivors goes on");
        let ended = flows.map(Flow::end);
        let fell = alive.iter().any(|node| {
            let peers = nodes.show(*node).peers;
            let mut others = peers.iter().filter(|peer| usize::from(peer.node) != victim);
            others.any(|peer| u128::from(peer.since_ms) < round_began.elapsed().as_millis())
        });
        assert!(!fell, "round {round}, node {victim} killed: survivors took each other for dead");
        for (ended, (from, to)) in ended.into_iter().zip(pairs) {
            assert_eq!(
                ended,
                (0, 0),
                "round {round}, node {victim} killed: lost and repeated, {from} to {to}"
            );
        }
    }
    took.sort_by_key(|(_, answer)| *answer);
    let (ready, answer) = took[took.len() / 2];
    eprintln!(
        "{CRASHES} crashes: an answer {answer:?} after the start of the daemon (median; it was ready after {ready:?}), {:?} at most",
        took[took.len() - 1].1
    );
}
