//! A fabric over UDP whose directory changes while it runs: nodes join, move and leave, and nobody is restarted for it.

use crate::nodes::Nodes;
use linkbraid_api::{Health, NodeState};
use linkbraid_lab::wait_until;
use linkbraid_netns_tests::{SOON, flow::Flow, until};
use std::fs;

/// Most nodes that there may be.
const NODES: usize = 5;

/// Writes the directory anew, as `mv` does.
fn write(nodes: &Nodes, lines: &[(usize, String)]) -> String {
    let file = nodes.net.lab().folder().join("directory");
    let beside = file.with_extension("new");
    let text: String = lines.iter().map(|(node, address)| format!("{node} {address}:7000\n")).collect();
    fs::write(&beside, text).expect("writes");
    fs::rename(&beside, &file).expect("renames");
    format!("udp:{}", file.display())
}

/// Where the first so many hosts are.
fn at(nodes: &Nodes, count: usize) -> Vec<(usize, String)> {
    nodes.net.lab().hosts().take(count).map(|host| host.ipv4().to_string()).enumerate().collect()
}

#[track_caller]
fn add(nodes: &Nodes, node: usize, transport: &str) {
    let line = format!("fabric add fab0 --node {node} --nodes {NODES} --transport {transport} --mtu 1450");
    nodes.net.ok(&nodes.names[node], &format!("{line} --address {}/24", Nodes::ip(node)));
}

#[track_caller]
fn wait_state(nodes: &Nodes, node: usize, other: u16, state: NodeState) {
    let seen = || nodes.show(node).peers.into_iter().find(|peer| peer.node == other).map(|peer| peer.state);
    wait_until(SOON, "the other node", seen, |seen| *seen == Some(state)).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn nodes_join_move_and_leave_while_others_speak() {
    let nodes = Nodes::hosts(4);
    let transport = write(&nodes, &at(&nodes, 2));
    (0..2).for_each(|node| add(&nodes, node, &transport));
    wait_state(&nodes, 0, 1, NodeState::Up);
    // Who is in no line is not missed.
    until("all that there are", || nodes.show(0), |record| record.health == Health::Ok);
    let absent = nodes.show(0).peers.pop().expect("there may be more");
    assert_eq!(
        (absent.state, absent.reason.as_str()),
        (NodeState::Absent, "it has no address in the directory")
    );
    let text = nodes.net.ok("a", "fabric show fab0");
    assert!(text.starts_with("fab0: ok, node 0, 1 of 1 other node up\n"), "{text}");
    assert!(text.contains("\n  absent    2 to 4: not in the directory\n"), "{text}");
    nodes.ping(0, 1);
    let ends = [0, 1].map(|node| (nodes.net.host(&nodes.names[node]), Nodes::ip(node)));
    let flow = Flow::between([(ends[0].0, &ends[0].1), (ends[1].0, &ends[1].1)]);

    // One more, of which nobody knew.
    let epoch = nodes.show(0).epoch;
    write(&nodes, &at(&nodes, 3));
    add(&nodes, 2, &transport);
    wait_state(&nodes, 0, 2, NodeState::Up);
    nodes.ping(0, 2);
    nodes.ping(2, 1);
    let event = |reason: &str| nodes.show(0).events.iter().any(|event| event.reason == reason);
    assert!(event("directory"), "{:?}", nodes.show(0).events);

    // It moves: it begins anew at the other address, and the others follow, by VXLAN too.
    let c = nodes.net.host("c");
    let (old, new) = (c.ipv4().to_string(), "198.18.0.77".to_owned());
    c.sh("sysctl -q net.ipv4.conf.eth0.promote_secondaries=1").expect("sets");
    c.sh(&format!("ip addr add {new}/24 dev eth0")).expect("adds");
    let started = nodes.show(2).epoch;
    let mut lines = at(&nodes, 3);
    lines[2].1.clone_from(&new);
    write(&nodes, &lines);
    until("a new start", || nodes.show(2).epoch, |epoch| epoch.is_some() && *epoch != started);
    let seen = || nodes.show(0).peers.into_iter().find(|peer| peer.node == 2).and_then(|peer| peer.epoch);
    until("it is known there", seen, |epoch| *epoch == nodes.show(2).epoch);
    // Nothing is sent from, or to, the address of before.
    c.sh(&format!("ip addr del {old}/24 dev eth0")).expect("removes");
    nodes.ping(0, 2);
    nodes.ping(2, 0);
    let taken = || nodes.show(0).peers.into_iter().find(|peer| peer.node == 2).and_then(|peer| peer.vxlan);
    until("frames by VXLAN", taken, |way| way.as_ref().is_some_and(|way| way.taken));

    // A line that goes while its node is there takes nothing from anybody; one that makes no sense is said.
    write(&nodes, &at(&nodes, 2));
    nodes.ping(0, 2);
    assert_eq!(nodes.show(0).health, Health::Ok);
    let mut lines = at(&nodes, 2);
    lines[1].1.push('x');
    write(&nodes, &lines);
    until(
        "it is said",
        || nodes.show(0),
        |record| {
            record.health == Health::Degraded
                && record.reason.starts_with("cannot read the directory: line 2: ")
        },
    );
    nodes.ping(0, 2);
    write(&nodes, &at(&nodes, 2));
    until("it is good", || nodes.show(0).health, |health| *health == Health::Ok);
    nodes.net.ok("c", "fabric del fab0");
    wait_state(&nodes, 0, 2, NodeState::Absent);
    let reason = || nodes.show(0).peers.into_iter().find(|peer| peer.node == 2).map(|peer| peer.reason);
    until("it has gone", reason, |reason| reason.as_deref() == Some("it has no address in the directory"));
    assert_eq!((nodes.show(0).health, nodes.show(0).epoch), (Health::Ok, epoch));
    flow.loses_nothing_more();
}
