//! Nodes of a fabric: hosts of a lab, each with a daemon and `fab0`.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod control;
pub mod keys;
pub mod vxlan;

use linkbraid_api::{FabricRecord, FabricStatsRecord, NodeState};
use linkbraid_lab::{Topology, wait_until};
use linkbraid_netns_tests::{Net, SOON};
use std::fs;

/// A fabric of as many nodes as there are hosts.
pub struct Nodes {
    pub net: Net,
    pub names: Vec<String>,
}

impl Nodes {
    /// Hosts with daemons, and no fabric yet.
    #[track_caller]
    pub fn hosts(count: usize) -> Self {
        let net = Net::up(Topology::symmetric(count, 1, None));
        let names: Vec<String> = net.lab().hosts().map(|host| host.name().to_owned()).collect();
        names.iter().for_each(|name| net.start(name, &[]));
        Self { net, names }
    }

    /// The same with a fabric over `kind`, whose nodes are all up.
    #[track_caller]
    pub fn up(count: usize, kind: &str, options: &str) -> Self {
        let nodes = Self::hosts(count);
        nodes.add(kind, options);
        nodes.wait_up();
        nodes
    }

    /// Memory that the hosts share, or a file that says where they are.
    pub fn transport(&self, kind: &str) -> String {
        let file = self.net.lab().folder().join(kind);
        if kind == "udp" {
            let hosts = self.net.lab().hosts().enumerate();
            let lines = hosts.map(|(node, host)| format!("{node} {}:7000\n", host.ipv4()));
            fs::write(&file, lines.collect::<String>()).expect("writes");
        }
        format!("{kind}:{}", file.display())
    }

    /// `fabric add` on every host, with an address each.
    #[track_caller]
    pub fn add(&self, kind: &str, options: &str) {
        let (transport, nodes) = (self.transport(kind), self.names.len());
        for (node, name) in self.names.iter().enumerate() {
            let line =
                format!("fabric add fab0 --node {node} --nodes {nodes} --transport {transport} {options}");
            self.net.ok(name, line.trim());
            let line = format!("ip addr add {}/24 dev fab0", Self::ip(node));
            self.net.host(name).sh(&line).expect("adds");
        }
    }

    /// The address of a node on the fabric.
    pub fn ip(node: usize) -> String {
        format!("198.19.0.{}", node + 1)
    }

    #[track_caller]
    pub fn show(&self, node: usize) -> FabricRecord {
        let text = self.net.ok(&self.names[node], "fabric show fab0 --json");
        let mut all: Vec<FabricRecord> = serde_json::from_str(&text).expect("records");
        all.pop().expect("one")
    }

    #[track_caller]
    pub fn stats(&self, node: usize) -> FabricStatsRecord {
        let text = self.net.ok(&self.names[node], "stats fab0 --json");
        let mut all: Vec<FabricStatsRecord> = serde_json::from_str(&text).expect("records");
        all.pop().expect("one")
    }

    /// Waits until every node holds all others as up.
    #[track_caller]
    pub fn wait_up(&self) {
        (0..self.names.len()).for_each(|node| self.wait_all_up(node));
    }

    /// Waits until this node does.
    #[track_caller]
    pub fn wait_all_up(&self, node: usize) {
        let all = |record: &FabricRecord| record.peers.iter().all(|peer| peer.state == NodeState::Up);
        wait_until(SOON, "all other nodes", || self.show(node), all)
            .unwrap_or_else(|error| panic!("node {node}: {error}"));
    }

    #[track_caller]
    pub fn ping(&self, from: usize, to: usize) {
        let host = self.net.host(&self.names[from]);
        host.wait_ping(&Self::ip(to), SOON).unwrap_or_else(|error| panic!("{from} to {to}: {error}"));
    }

    /// Every pair in both directions.
    #[track_caller]
    pub fn ping_all(&self) {
        let count = self.names.len();
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            if from != to {
                self.ping(from, to);
            }
        }
    }
}
