//! What many nodes of a fabric do together: starts in any order, crashes, restarts, departures and growth, under loss,
//! reordering and duplication.

mod network;
#[path = "sim_session/world.rs"]
mod world;

use linkbraid_proto::session::{Counter, Down, Event, Input, Mismatch, Settings, Side, Verdict};
use network::{Weather, millis};
use std::{ops::Range, time::Duration};
use world::{BAD, FAIR, World};

fn together(seed: u64, weather: Weather, nodes: u16) -> World {
    let mut world = World::new(seed, weather, Settings::new(nodes, 9000));
    (0..nodes).for_each(|number| _ = world.start(number));
    world.run_until_true(millis(2000));
    world
}

/// A life of 12 nodes in bad weather: each step one of them starts, stops, crashes, or crashes and starts again.
fn troubled_life(seed: u64) -> World {
    troubled(World::new(seed, BAD, Settings::new(12, 9000)))
}

/// The same with somebody on the network who forges and repeats, where nodes have a key.
fn attacked_life(seed: u64) -> World {
    let mut world = World::new(seed, BAD, Settings::new(12, 9000));
    world.protect();
    troubled(world)
}

fn troubled(mut world: World) -> World {
    (0..12).step_by(2).for_each(|number| _ = world.start(number));
    for _ in 0..60 {
        let number = world.random(12) as u16;
        match (world.of(number).first().copied(), world.random(3)) {
            (None, _) => _ = world.start(number),
            (Some(epoch), 0) => world.stop(epoch),
            (Some(epoch), 1) => world.kill(epoch),
            (Some(epoch), _) => {
                world.kill(epoch);
                world.start(number);
            }
        }
        let pause = world.random(300);
        world.run(millis(pause));
    }
    world
}

#[test]
fn who_lives_connects_after_any_life_in_bad_weather() {
    let mut slowest = Duration::ZERO;
    for seed in 0..12 {
        let mut world = troubled_life(seed);
        slowest = slowest.max(world.run_until_true(millis(3000)));
        world.network.weather.loss = 0;
        world.run(millis(600));
        assert_eq!(world.check(), Ok(()), "seed {seed}: and it stays so");
        assert!(world.taken > 1000, "seed {seed}: frames flow");
        for node in world.live.values() {
            assert_eq!(
                node.session.counters().get(Counter::Duplicates),
                0,
                "seed {seed}: nobody is there twice"
            );
            assert!(node.events.is_empty(), "seed {seed}: {:?}", node.events);
        }
    }
    println!("the slowest needed {slowest:?} while one message in five was lost");
}

/// So long at most does a node that died live by what somebody repeats of it (5.11).
const LIVES_BY_SIGNS: Duration = millis(12_000);

//= docs/fabric.md#8.3 type=test
#[test]
fn with_keys_who_lives_connects_while_somebody_forges_and_repeats() {
    let mut slowest = Duration::ZERO;
    for seed in 0..24 {
        let mut world = attacked_life(seed);
        slowest = slowest.max(world.run_until_true(LIVES_BY_SIGNS));
        world.network.weather.loss = 0;
        world.run(millis(600));
        // What he held back may bring a dead one up once more.
        slowest = slowest.max(world.run_until_true(LIVES_BY_SIGNS));
        assert!(world.taken > 1000, "seed {seed}: frames flow");
        let count =
            |counter| world.live.values().map(|node| node.session.counters().get(counter)).sum::<u64>();
        assert_eq!(count(Counter::Duplicates), 0, "seed {seed}: nobody is there twice");
        let refused = count(Counter::AuthBadCode) + count(Counter::AuthMissing);
        assert!(refused > 20, "seed {seed}: {refused} refused of {}", world.hostile.map_or(0, |he| he.sent));
    }
    println!("the slowest needed {slowest:?} while somebody forged and repeated");
}

#[test]
fn one_seed_is_one_course_of_events() {
    let (one, again, other) = (troubled_life(5), troubled_life(5), troubled_life(6));
    assert_eq!((one.network.trace, one.said, one.taken), (again.network.trace, again.said, again.taken));
    assert_ne!(one.network.trace, other.network.trace);
    for (node, same) in one.live.values().zip(again.live.values()) {
        assert_eq!(node.session.snapshot(one.now()), same.session.snapshot(again.now()));
        assert_eq!(node.links, same.links);
    }
}

#[test]
fn nodes_that_start_together_or_late_connect_within_milliseconds() {
    for nodes in [2, 3, 16, 32] {
        let mut world = World::new(1, FAIR, Settings::new(nodes, 1500));
        (0..nodes - 1).for_each(|number| _ = world.start(number));
        let took = world.run_until_true(millis(20));
        world.run(millis(1500));
        world.start(nodes - 1);
        let late = world.run_until_true(millis(5));
        println!("{nodes} nodes: together {took:?}, the last one {late:?} after its start");
    }
}

//= docs/fabric.md#5.1 type=test
#[test]
fn a_dead_node_is_found_within_the_detection_time_and_nobody_else_is() {
    let mut world = together(3, FAIR, 8);
    world.run(millis(1000));
    let victim = world.of(5)[0];
    world.kill(victim);
    let took = world.run_until_true(millis(401));
    assert!(took > millis(290), "a lost message proves nothing: {took:?}");
    for node in world.live.values() {
        let down: Vec<u16> =
            node.links.iter().filter(|(.., verdict)| !verdict.is_up()).map(|(_, peer, _)| *peer).collect();
        assert_eq!(down, [5]);
        assert_eq!(node.links.last().map(|link| link.2), Some(Verdict::Down(Down::Silent)));
    }
}

/// The first nodes send frames to the second ones.
fn uses(world: &mut World, first: Range<u16>, second: Range<u16>) {
    for number in first {
        let epoch = world.of(number)[0];
        second.clone().for_each(|node| world.input(epoch, Input::Used { node }));
    }
}

/// Messages in a second over all links.
fn said_a_second(world: &mut World) -> u64 {
    let before = world.said;
    world.run(millis(5000));
    (world.said - before) / 5
}

//= docs/fabric.md#5.12 type=test
#[test]
fn many_nodes_that_do_not_use_their_links_say_little_and_lose_none() {
    const NODES: u16 = 32;
    let weather = Weather::new(2, 2, [5, 500]);
    let mut world = World::new(7, weather, Settings::new(NODES, 1500));
    (0..NODES).for_each(|number| _ = world.start(number));
    world.run_until_true(millis(3000));
    world.run(millis(5000));
    let idle = said_a_second(&mut world);
    println!("{NODES} nodes: {} messages of each in a second", idle / u64::from(NODES));
    assert!(idle / u64::from(NODES) <= 200, "{idle}");
    let downs = |world: &World| -> usize {
        world
            .live
            .values()
            .map(|node| node.links.iter().filter(|(.., verdict)| !verdict.is_up()).count())
            .sum()
    };
    assert_eq!(downs(&world), 0, "two messages of a hundred are lost");
    // Half of the nodes use their links to the others, and stop.
    for _ in 0..3 {
        uses(&mut world, 0..NODES / 2, NODES / 2..NODES);
        world.run(millis(900));
    }
    let used = said_a_second(&mut world);
    assert!(used > 2 * idle, "{used} messages, {idle} while idle");
    world.run(millis(20_000));
    let after = said_a_second(&mut world);
    assert!(after < idle * 5 / 4, "{after} messages, {idle} before");
    assert_eq!((downs(&world), world.check()), (0, Ok(())));
}

/// How many nodes there are, where a person wants to know of more: `LINKBRAID_FABRIC_NODES="8 64 256"`.
fn sizes() -> Vec<u16> {
    let asked = std::env::var("LINKBRAID_FABRIC_NODES").unwrap_or_else(|_| "8 24".to_owned());
    asked.split_whitespace().map(|nodes| nodes.parse().expect("a number")).collect()
}

//= docs/fabric.md#5.12 type=test
#[test]
fn messages_of_quiet_links_do_not_follow_the_number_of_nodes() {
    println!("| nodes | all know all after | messages of each a second, quiet | a dead one is found after |");
    for nodes in sizes() {
        let mut world = World::new(3, Weather::new(1, 0, [5, 500]), Settings::new(nodes, 1500));
        let began = world.now();
        for number in 0..nodes {
            world.start(number);
            world.run(millis(2000) / u32::from(nodes));
        }
        world.run_until_true(millis(3000));
        let joined = world.now().since(began).as_secs_f64();
        world.run(millis(8000));
        let quiet = said_a_second(&mut world) / u64::from(nodes);
        let victim = world.of(1)[0];
        world.kill(victim);
        let missed = world.run_until_true(millis(21_000)).as_secs_f64();
        println!("| {nodes} | {joined:.1} s | {quiet} | {missed:.1} s |");
        assert!(quiet <= 300, "{nodes} nodes: {quiet} messages");
    }
}

//= docs/fabric.md#5.13 type=test
#[test]
fn a_dead_node_is_found_soon_where_it_is_used() {
    let mut world = together(5, FAIR, 64);
    world.run(millis(5000));
    let (user, victim) = (world.of(3)[0], world.of(9)[0]);
    world.input(user, Input::Used { node: 9 });
    world.run(millis(3000));
    world.kill(victim);
    let verdict = |world: &World, epoch: u64| world.live[&epoch].session.verdict(9);
    world.run(millis(401));
    assert_eq!(verdict(&world, user), Some(Verdict::Down(Down::Silent)), "it was in use");
    let late = world.of(4)[0];
    assert_eq!(verdict(&world, late), Some(Verdict::Up { epoch: victim }), "nobody asked");
    world.input(late, Input::Used { node: 9 });
    world.run(millis(401));
    assert_eq!(verdict(&world, late), Some(Verdict::Down(Down::Silent)), "asked, and did not answer");
    let took = world.run_until_true(millis(2560));
    println!("all others find it after {took:?} more");
}

/// How long after its start every peer had frames of the last node, and it of them.
fn exchange(world: &World, epoch: u64) -> Option<Duration> {
    let newcomer = &world.live[&epoch];
    let mut last = Duration::ZERO;
    for node in world.live.values().filter(|node| node.number != newcomer.number) {
        let began = newcomer.started;
        last = last.max(newcomer.first_frame.get(&node.number)?.since(began));
        let there = node
            .links
            .iter()
            .find(|(_, peer, verdict)| *peer == newcomer.number && *verdict == Verdict::Up { epoch })?;
        last = last.max(there.0.since(began));
    }
    Some(last)
}

//= docs/fabric.md#4.10 type=test
#[test]
fn a_killed_and_restarted_node_exchanges_frames_within_half_a_second() {
    let mut worst = Duration::ZERO;
    for (seed, pause) in [(1, 0), (2, 50), (3, 150), (4, 350), (5, 390), (6, 410), (7, 3000), (8, 30_000)] {
        let mut world = together(seed, FAIR, 8);
        world.run(millis(777));
        let victim = world.of(2)[0];
        world.kill(victim);
        world.run(millis(pause));
        let epoch = world.start(2);
        while exchange(&world, epoch).is_none() {
            assert!(
                world.now().since(world.live[&epoch].started) < millis(500),
                "after a pause of {pause} ms"
            );
            world.run(millis(1));
        }
        let took = exchange(&world, epoch).expect("just now");
        println!("down for {pause} ms: frames both ways with all {took:?} after the start");
        worst = worst.max(took);
        assert_eq!(world.check(), Ok(()));
    }
    assert!(worst < millis(150), "{worst:?}");
}

#[test]
fn survivors_of_a_hundred_crashes_lose_nothing_of_their_own() {
    let mut world = together(11, FAIR, 8);
    for _ in 0..100 {
        // Nodes 0 to 3 survive.
        let number = 4 + world.random(4) as u16;
        for epoch in world.of(number) {
            world.kill(epoch);
        }
        let pause = world.random(500);
        world.run(millis(pause));
        world.start(number);
        let pause = world.random(300);
        world.run(millis(pause));
    }
    for node in world.live.values().filter(|node| node.number < 4) {
        let among = node.links.iter().filter(|(_, peer, _)| *peer < 4);
        assert_eq!(among.count(), 3, "each came up once and stayed");
        let ups = node.links.iter().filter(|(.., verdict)| verdict.is_up()).count();
        assert!(ups > 100, "and the others came and went: {ups}");
    }
    world.run_until_true(millis(500));
}

//= docs/fabric.md#5.3 type=test
#[test]
fn a_link_that_works_one_way_goes_down_at_both_ends() {
    let mut world = together(4, FAIR, 3);
    world.cut.insert((0, 1));
    world.run(millis(1000));
    let verdict = |world: &World, at: u16, of: u16| world.live[&world.of(at)[0]].session.verdict(of);
    assert_eq!(verdict(&world, 1, 0), Some(Verdict::Down(Down::Silent)));
    assert_eq!(verdict(&world, 0, 1), Some(Verdict::Down(Down::Deaf)));
    assert!(world.live.values().all(|node| node.session.any_up()), "the third one hears both");
    world.cut.clear();
    world.run_until_true(millis(1100));
}

//= docs/fabric.md#5.6 type=test
#[test]
fn a_second_node_with_one_number_is_refused_by_all_and_told() {
    let mut world = together(9, FAIR, 4);
    let first = world.of(1)[0];
    world.run(millis(300));
    let second = world.start(1);
    world.run(millis(1500));
    let taken = Verdict::Refused { by: Side::Peer, why: Mismatch::Taken };
    for number in [0, 2, 3] {
        let node = &world.live[&world.of(number)[0]];
        assert_eq!(node.session.verdict(1), Some(Verdict::Up { epoch: first }));
        assert_eq!(node.events, [Event::Duplicate { node: 1, epoch: first, rival: second }], "told once");
        assert_eq!(node.links.len(), 3, "nothing went down");
        assert_eq!(world.live[&second].session.verdict(number), Some(taken));
        assert!(world.live[&first].session.verdict(number).is_some_and(|verdict| verdict.is_up()));
    }
    world.kill(first);
    let took = world.run_until_true(millis(1500));
    println!("the second one is taken {took:?} after the first one's death");
}

//= docs/fabric.md#4.6 type=test
#[test]
fn a_fabric_grows_node_by_node_and_nobody_loses_a_link() {
    let mut world = together(12, FAIR, 3);
    let before: Vec<u64> = world.live.keys().copied().collect();
    world.settings.nodes = 5;
    let settings = world.settings;
    let late = world.start(3);
    world.run(millis(100));
    let why = Mismatch::Nodes { ours: 5, theirs: 3 };
    let refused = world.live[&late].session.verdict(0);
    // Node 0 has no queue to a node 3 and says nothing.
    assert_eq!(refused, Some(Verdict::Down(Down::Unheard)), "not even {why}");
    for epoch in &before {
        world.set(*epoch, settings);
        world.run(millis(500));
    }
    world.start(4);
    world.run_until_true(millis(1100));
    for epoch in &before {
        let lost = world.live[epoch].links.iter().any(|(.., verdict)| !verdict.is_up());
        assert!(!lost, "{:?}", world.live[epoch].links);
    }
}

//= docs/fabric.md#5.2 type=test
#[test]
fn heartbeats_are_bounded() {
    for (nodes, least, most) in [(2, 19, 28), (16, 290, 410)] {
        let mut world = together(1, FAIR, nodes);
        uses(&mut world, 0..nodes, 0..nodes);
        world.run(millis(500));
        world.said = 0;
        world.run(millis(2000));
        let each = world.said / 2 / u64::from(nodes);
        println!("{nodes} nodes: {each} messages a node and second");
        assert!((least..=most).contains(&each), "{nodes} nodes: {each}");
    }
}
