//! Keys of fabrics: their files, and how they are exchanged.

use super::Nodes;
use linkbraid_netns_tests::{flow::Flow, until};
use std::fs;

/// The key file of a host.
#[track_caller]
pub fn key_file(nodes: &Nodes, node: usize) -> String {
    nodes.net.lab().folder().join(format!("{}.key", nodes.names[node])).display().to_string()
}

/// One new key for the first hosts.
#[track_caller]
pub fn new_key(nodes: &Nodes, count: usize) {
    let first = key_file(nodes, 0);
    nodes.net.ok(&nodes.names[0], &format!("key new {first}"));
    for node in 1..count {
        fs::copy(&first, key_file(nodes, node)).expect("copies, with the mode");
    }
}

#[track_caller]
pub fn set(nodes: &Nodes, node: usize, options: &str) {
    nodes.net.ok(&nodes.names[node], &format!("fabric set fab0 {options}"));
}

#[track_caller]
pub fn headline(nodes: &Nodes, node: usize) -> String {
    let text = nodes.net.ok(&nodes.names[node], "fabric show fab0");
    text.lines().next().unwrap_or_default().to_owned()
}

#[track_caller]
pub fn counter(nodes: &Nodes, node: usize, name: &str) -> u64 {
    let counters = nodes.stats(node).counters;
    counters.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.frames)
}

/// Two nodes on the first two of three hosts, with these options after those of keys.
#[track_caller]
pub fn two_nodes(nodes: &Nodes, transport: &str, options: &str) {
    for node in 0..2 {
        let keys = format!("--key {} --auth require", key_file(nodes, node));
        let address = Nodes::ip(node);
        let line =
            format!("fabric add fab0 --node {node} --nodes 2 --transport {transport} {keys} {options}");
        nodes.net.ok(&nodes.names[node], &format!("{line} --address {address}/24"));
    }
    (0..2).for_each(|node| nodes.wait_all_up(node));
}

/// A file that says where those two are.
#[track_caller]
pub fn two_of(nodes: &Nodes) -> String {
    let file = nodes.net.lab().folder().join("two");
    let ends = [nodes.net.host("a").ipv4(), nodes.net.host("b").ipv4()];
    fs::write(&file, format!("0 {}:7000\n1 {}:7000\n", ends[0], ends[1])).expect("writes");
    format!("udp:{}", file.display())
}

/// Another key takes the place of the one that two nodes have, step by step, while a flow loses nothing.
#[track_caller]
pub fn exchange_keys(nodes: &Nodes, flow: &Flow) {
    let both = |step: &dyn Fn(usize)| {
        for node in 0..2 {
            step(node);
            flow.loses_nothing_more();
        }
    };
    let old = nodes.show(0).keys[0].id.to_string();
    let next = nodes.net.lab().folder().join("next.key").display().to_string();
    nodes.net.ok("a", &format!("key new {next}"));
    both(&|node| {
        nodes.net.ok("a", &format!("key add {} {next}", key_file(nodes, node)));
        until("both keys", || nodes.show(node).keys.len(), |count| *count == 2);
    });
    let new = nodes.show(0).keys.iter().map(|key| key.id.to_string()).find(|id| *id != old).expect("another");
    both(&|node| {
        nodes.net.ok("a", &format!("key use {} {new}", key_file(nodes, node)));
        until(
            "the key that signs",
            || nodes.show(node).keys,
            |keys| keys.iter().any(|key| key.signs && key.id.to_string() == new),
        );
    });
    both(&|node| {
        nodes.net.ok("a", &format!("key del {} {old}", key_file(nodes, node)));
        until("one key", || nodes.show(node).keys.len(), |count| *count == 1);
    });
}
