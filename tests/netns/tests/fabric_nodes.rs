//! Fabrics of two to twenty nodes: that all reach each other, what they take, and how they wait.

use crate::nodes::Nodes;
use linkbraid_api::{CounterRecord, NodeState};
use linkbraid_lab::wait_until;
use linkbraid_netns_tests::SOON;
use std::{fs, time::Duration};

#[test]
fn two_to_sixteen_nodes_all_reach_each_other() {
    for (count, kind) in [(2, "udp"), (5, "shm"), (16, "shm"), (16, "udp")] {
        Nodes::up(count, kind, "").ping_all();
    }
}

/// Among so many a link that nobody uses has three times the usual interval (docs/fabric.md, 5.12).
#[test]
fn who_uses_a_link_finds_the_death_of_its_peer_sooner_than_others() {
    let nodes = Nodes::up(20, "udp", "");
    let user = nodes.net.host("a");
    nodes.ping(0, 2);
    user.sh(&format!("ping -q -i 0.1 -c 10 {}", Nodes::ip(2))).expect("is answered");
    nodes.net.kill(&nodes.names[2]);
    let since = |node: usize| {
        let seen = || nodes.show(node).peers.into_iter().find(|peer| peer.node == 2).expect("a peer");
        let seen = wait_until(SOON, "the death", seen, |peer| peer.state == NodeState::Down);
        seen.unwrap_or_else(|e| panic!("{e}")).since_ms
    };
    // Once all have found it. Who is read later would seem to have found it longer ago.
    for node in [1, 3] {
        since(node);
    }
    let user = since(0);
    let others = [1, 3].map(since);
    println!("{user} ms ago, by others {others:?} ms ago");
    assert!(others.iter().all(|other| user > *other + 200), "{user}, {others:?}");
}

#[test]
fn the_memory_of_a_fabric_is_what_the_formula_says() {
    for (count, queues, ring) in [(2_u64, 1_u64, 512_u64 << 10), (3, 2, 1 << 20)] {
        let nodes = Nodes::hosts(count as usize);
        let file = nodes.net.lab().folder().join("memory");
        let rings = format!("shm:{},ring={}k", file.display(), ring >> 10);
        for (node, name) in nodes.names.iter().enumerate() {
            let line = format!(
                "fabric add fab0 --node {node} --nodes {count} --queues {queues} --transport {rings}"
            );
            nodes.net.ok(name, &line);
        }
        // docs/fabrics.md: rings and 256 bytes for each pair and queue, those rounded up to a page; a page for all.
        let pairs = queues * (count - 1);
        let node = pairs * ring + (pairs * 256).next_multiple_of(4096);
        let total = 4096 + count * node;
        assert_eq!(fs::metadata(&file).expect("is there").len(), total);
        for number in 0..nodes.names.len() {
            let record = nodes.show(number);
            assert_eq!((record.node_memory_bytes, record.memory_bytes), (Some(node), Some(total)));
        }
        let text = nodes.net.ok("a", "fabric show fab0");
        assert!(text.contains(&format!("for each node, {total} bytes in total")), "{text}");
    }
}

#[test]
fn ways_to_wait_change_while_it_runs() {
    let nodes = Nodes::up(2, "shm", "--poll sleep");
    let cpu = |good: &dyn Fn(u32) -> bool| {
        let share = || nodes.show(0).cpu_ppm;
        wait_until(SOON, "its share of a processor", share, |ppm| good(*ppm))
            .unwrap_or_else(|e| panic!("{e}"));
    };
    cpu(&|ppm| (1..50_000).contains(&ppm));
    nodes.net.ok("a", "fabric set fab0 --poll busy");
    // As much as a busy machine gives to one that never sleeps.
    cpu(&|ppm| ppm > 200_000);
    nodes.ping(0, 1);
    nodes.net.ok("a", "fabric set fab0 --poll adaptive");
    cpu(&|ppm| (1..50_000).contains(&ppm));
    nodes.ping(1, 0);
    assert_eq!(nodes.show(0).settings.poll, linkbraid_api::Poll::Adaptive);
}

#[test]
fn stats_tell_how_long_messages_take_and_what_waits() {
    let nodes = Nodes::up(3, "udp", "");
    let trips = || nodes.stats(0).peers.into_iter().map(|peer| peer.round_trip).collect::<Vec<_>>();
    let measured = |trips: &Vec<Option<linkbraid_api::RoundTripRecord>>| {
        trips.iter().all(|trip| trip.as_ref().is_some_and(|trip| trip.count > 9))
    };
    wait_until(SOON, "ten round trips to each", trips, measured).unwrap_or_else(|error| panic!("{error}"));
    for trip in trips().into_iter().flatten() {
        assert_eq!(trip.histogram.iter().map(|bucket| bucket.count).sum::<u64>(), trip.count, "{trip:?}");
        assert!(trip.p99_ns <= trip.p999_ns && trip.p999_ns <= trip.max_ns, "{trip:?}");
        assert!(trip.min_ns > 1_000 && trip.min_ns <= trip.p50_ns && trip.p50_ns <= trip.p99_ns, "{trip:?}");
        assert!(trip.p99_ns <= trip.max_ns && trip.max_ns < 1_000_000_000, "{trip:?}");
    }
    let text = nodes.net.ok("a", "stats fab0");
    for word in ["  cpu ", "  waiting ", "  round trip  p50 "] {
        assert!(text.contains(word), "{text}");
    }
    let stats = nodes.stats(0);
    assert!(stats.cpu_ms > 0, "{stats:?}");
}

#[test]
fn a_storm_of_broadcasts_is_cut_off_and_counted() {
    let nodes = Nodes::up(2, "shm", "");
    let count = |name: &str| {
        let of =
            |counters: &[CounterRecord]| counters.iter().find(|c| c.name == name).map_or(0, |c| c.frames);
        of(&nodes.stats(0).counters)
    };
    let host = nodes.net.host("a");
    let sender = host.run(|| std::net::UdpSocket::bind("198.19.0.1:0")).expect("enters").expect("binds");
    sender.set_broadcast(true).expect("sets");
    let target = "198.19.0.255:9";
    let begin = std::time::Instant::now();
    // More than 50,000 a second, and 5,000 at once.
    while count("tx_drop_storm") == 0 {
        for _ in 0..20_000 {
            let _ = sender.send_to(&[0; 18], target);
        }
        assert!(begin.elapsed() < SOON, "{} copies went out", count("tx_copies"));
    }
    // What is for one node alone passes.
    nodes.ping(0, 1);
    assert!(count("tx_copies") > 0);
}

#[test]
fn nodes_that_refuse_each_other_say_little() {
    let nodes = Nodes::hosts(2);
    let transport = nodes.transport("udp");
    for (node, mtu) in [(0, 1500), (1, 9000)] {
        let line = format!("fabric add fab0 --node {node} --nodes 2 --transport {transport} --mtu {mtu}");
        nodes.net.ok(&nodes.names[node], &line);
    }
    let said = || {
        let counters = nodes.stats(0).counters;
        counters.iter().find(|counter| counter.name == "control_out").map_or(0, |counter| counter.frames)
    };
    let quiet = || {
        let before = said();
        // The second over which is counted.
        std::thread::park_timeout(Duration::from_secs(1));
        said() - before
    };
    wait_until(SOON, "silence", quiet, |said| *said <= 5).unwrap_or_else(|error| panic!("{error}"));
    nodes.net.ok("b", "fabric set fab0 --mtu 1500");
    nodes.wait_up();
    for host in &nodes.names {
        nodes.net.ok(host, "fabric show fab0");
    }
}

#[test]
fn nodes_with_other_queues_are_refused_and_both_ends_name_both() {
    let nodes = Nodes::hosts(2);
    let transport = nodes.transport("udp");
    for (node, queues) in [4, 1].into_iter().enumerate() {
        let line =
            format!("fabric add fab0 --node {node} --nodes 2 --transport {transport} --queues {queues}");
        nodes.net.ok(&nodes.names[node], &line);
    }
    for (node, ours, theirs) in [(0, 4, 1), (1, 1, 4)] {
        let words = format!("its queues are {theirs}, this node's {ours}");
        let show = || nodes.net.ok(&nodes.names[node], "fabric show fab0");
        wait_until(SOON, &words, show, |text| text.contains(&words))
            .unwrap_or_else(|error| panic!("{error}"));
    }
}
