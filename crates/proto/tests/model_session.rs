//! Every course of events that a few nodes of a fabric can take, explored by a model checker (stateright).
//!
//! The machine is the one that runs ([`linkbraid_proto::session::link::Link`], [`linkbraid_proto::session::Gate`],
//! [`linkbraid_proto::session::Window`]). The network keeps every message for ever and may deliver it at any time and as often as
//! it likes, or never: loss, delay, reordering and duplication without bound. Timers may run out at any time; epochs of later
//! starts are lower, so nothing can rest on their order. What is bounded is how often nodes crash or stop, how often a live
//! peer is presumed failed, and how many frames a start sends to a peer.
//!
//! So whoever repeats and holds back what he hears is in it, with keys and without. With keys he can do no more: what he makes up is refused
//! before it comes to this machine (`sim_session`). Without keys somebody who hears nothing makes up messages in one of the models.

#[path = "model_session/settle.rs"]
mod settle;
#[path = "model_session/world.rs"]
mod world;

use stateright::{Checker, HasDiscoveries, Model};
use std::time::Instant;
use world::Fabric;

/// States before something is wrong: the machine is finite.
const STATES_MAX: usize = 600_000;

/// States that are looked at where there are too many.
const STATES_SAMPLED: usize = 40_000;

/// Explores all of it; how many states there were.
fn explore(name: &str, fabric: Fabric) -> usize {
    let began = Instant::now();
    let checker = fabric
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .target_state_count(STATES_MAX)
        .spawn_bfs()
        .join();
    let states = checker.unique_state_count();
    let generated = checker.state_count();
    println!(
        "{name}: {states} states of {generated} to depth {}, {:?}",
        checker.max_depth(),
        began.elapsed()
    );
    assert!(generated < STATES_MAX, "{name}: not all of it was seen");
    checker.assert_properties();
    states
}

/// Two nodes, with so many ends and false deaths.
fn two_nodes(fast_path: bool) {
    for (ends, expiries, asks) in [(1, 0, 0), (0, 2, 0), (1, 1, 0), (2, 0, 0), (1, 0, 1), (0, 1, 2)] {
        let fabric = Fabric {
            numbers: 2,
            twins: false,
            ends,
            enders: 2,
            // A goodbye beside two crashes, and frames by the queues beside the fast path, would only take longer.
            stops: !fast_path || ends < 2,
            expiries,
            asks,
            frames: if fast_path { 0 } else { 2 },
            streams: 1,
            fast_path,
            forger: false,
        };
        let name = format!(
            "two nodes, fast path {fast_path}, {ends} end, {expiries} are presumed failed, {asks} ask"
        );
        assert!(explore(&name, fabric) > 10);
    }
}

//= docs/fabric.md#4.9 type=test
//= docs/fabric.md#6.2 type=test
//= docs/fabric.md#6.6 type=test
#[test]
fn two_nodes_that_crash_stop_and_doubt_each_other() {
    two_nodes(false);
}

//= docs/fabric.md#7.3 type=test
//= docs/fabric.md#7.6 type=test
#[test]
fn two_nodes_with_a_fast_path_that_crash_stop_and_doubt_each_other() {
    two_nodes(true);
}

//= docs/fabric.md#4.4 type=test
//= docs/fabric.md#6.6 type=test
#[test]
fn two_nodes_without_keys_in_whose_names_somebody_speaks_who_sees_nothing() {
    for (ends, expiries) in [(1, 0), (0, 1)] {
        let [without, with] = [false, true].map(|forger| {
            let fabric = Fabric {
                numbers: 2,
                twins: false,
                ends,
                enders: 2,
                stops: true,
                expiries,
                asks: 0,
                frames: 1,
                streams: 1,
                fast_path: false,
                forger,
            };
            explore(&format!("forger {forger}, {ends} end, {expiries} are presumed failed"), fabric)
        });
        assert_eq!(without, with, "he gets them into no state that they would not be in without him");
    }
}

//= docs/fabric.md#6.3 type=test
//= docs/fabric.md#6.6 type=test
#[test]
fn three_nodes_that_connect_in_any_order() {
    let fabric = Fabric {
        numbers: 3,
        twins: false,
        ends: 0,
        enders: 0,
        stops: false,
        expiries: 0,
        asks: 0,
        frames: 1,
        streams: 2,
        fast_path: false,
        forger: false,
    };
    assert!(explore("three nodes", fabric) > 100);
}

//= docs/fabric.md#5.6 type=test
#[test]
fn two_live_nodes_with_one_number_beside_another() {
    let fabric = Fabric {
        numbers: 2,
        twins: true,
        ends: 0,
        enders: 0,
        stops: false,
        expiries: 0,
        asks: 0,
        frames: 1,
        streams: 2,
        fast_path: false,
        forger: false,
    };
    assert!(explore("twins", fabric) > 100);
}

//= docs/fabric.md#6.6 type=test
#[test]
fn one_of_three_nodes_crashes() {
    let fabric = Fabric {
        numbers: 3,
        twins: false,
        ends: 1,
        enders: 1,
        stops: false,
        expiries: 0,
        asks: 0,
        frames: 1,
        streams: 2,
        fast_path: false,
        forger: false,
    };
    // Each pair is a course of its own, so there are more states than two nodes have, cubed: deep courses are followed first, and as many as
    // fit into some seconds.
    let began = Instant::now();
    let checker = fabric
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .target_state_count(STATES_SAMPLED)
        .spawn_dfs()
        .join();
    println!("three nodes, one crashes: {} states, {:?}", checker.unique_state_count(), began.elapsed());
    checker.assert_properties();
}
