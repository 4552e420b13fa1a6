//! The VXLAN fast path of nodes.

use super::Nodes;
use linkbraid_api::{CounterRecord, FabricPeerVxlanRecord};
use linkbraid_lab::wait_until;
use linkbraid_netns_tests::SOON;

/// `fabric add` on one host; `more` follows the file in the transport.
#[track_caller]
pub fn add(nodes: &Nodes, node: usize, more: &str, options: &str) {
    let (transport, count) = (nodes.transport("udp"), nodes.names.len());
    let line =
        format!("fabric add fab0 --node {node} --nodes {count} --transport {transport}{more} {options}");
    nodes.net.ok(&nodes.names[node], line.trim());
    let host = nodes.net.host(&nodes.names[node]);
    host.sh(&format!("ip addr add {}/24 dev fab0", Nodes::ip(node))).expect("adds");
}

/// Whether frames of a node go by VXLAN, for each other node.
#[track_caller]
pub fn ways(nodes: &Nodes, node: usize) -> Vec<FabricPeerVxlanRecord> {
    nodes.show(node).peers.into_iter().map(|peer| peer.vxlan.expect("it was asked for")).collect()
}

/// Waits until frames to every other node go by VXLAN.
#[track_caller]
pub fn wait_taken(nodes: &Nodes, node: usize) {
    let all = |ways: &Vec<FabricPeerVxlanRecord>| ways.iter().all(|way| way.taken);
    wait_until(SOON, "frames by VXLAN", || ways(nodes, node), all)
        .unwrap_or_else(|error| panic!("{node}: {error}"));
}

/// Waits until frames to the first other node do not, for this reason.
#[track_caller]
pub fn wait_not_taken(nodes: &Nodes, node: usize, reason: &str) {
    let same = |way: &FabricPeerVxlanRecord| !way.taken && way.reason == reason;
    wait_until(SOON, "frames by the queues", || ways(nodes, node).remove(0), same)
        .unwrap_or_else(|error| panic!("{node}: {error}"));
}

/// A counter by name.
pub fn counter(counters: &[CounterRecord], name: &str) -> u64 {
    counters.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.frames)
}

/// VXLAN devices of a host.
pub fn devices(nodes: &Nodes, node: usize) -> Vec<String> {
    let shown = nodes.net.host(&nodes.names[node]).sh("ip -o link show type vxlan").expect("shows");
    shown.lines().filter_map(|line| Some(line.split(": ").nth(1)?.to_owned())).collect()
}
