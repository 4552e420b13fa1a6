//! The records of a scrape by their kind, and which peers have series of their own.

use linkbraid_api::{
    BondRecord, ClassRecord, FabricRecord, FabricStatsRecord, LaneRecord, LatencyRecord, PeerRecord, Records,
    StatsRecord,
};
use std::collections::HashSet;

/// What `lanes` calls the plan for all hosts that are no peers.
pub(crate) const PLAIN_HOSTS: &str = "plain hosts";

#[derive(Default)]
pub(crate) struct View<'a> {
    pub bonds: Vec<&'a BondRecord>,
    /// Those that have series of their own.
    pub peers: Vec<&'a PeerRecord>,
    /// All.
    pub table: Vec<&'a PeerRecord>,
    /// Those to peers that have series of their own, and those to plain hosts.
    pub lanes: Vec<&'a LaneRecord>,
    pub stats: Vec<&'a StatsRecord>,
    pub classes: Vec<&'a ClassRecord>,
    pub latency: Vec<&'a LatencyRecord>,
    pub fabrics: Vec<&'a FabricRecord>,
    pub fabric_stats: Vec<&'a FabricStatsRecord>,
}

impl<'a> View<'a> {
    pub(crate) fn new(records: &'a [Records]) -> Self {
        let mut view = Self::default();
        for part in records {
            match part {
                Records::Bonds(part) => view.bonds.extend(part),
                Records::Peers(part) => view.table.extend(part),
                Records::Lanes(part) => view.lanes.extend(part),
                Records::Stats(part) => view.stats.extend(part),
                Records::Classes(part) => view.classes.extend(part),
                Records::Latency(part) => view.latency.extend(part),
                Records::Fabrics(part) => view.fabrics.extend(part),
                Records::FabricStats(part) => view.fabric_stats.extend(part),
                Records::Findings(_) | Records::Applied(_) | Records::Changes(_) | Records::Explained(_) => {}
            }
        }
        // Without probes no host can prove anything; the ARP+ table bounds how many there are at a time.
        let unprobed = view.bonds.iter().filter(|bond| !bond.settings.inspector.probes);
        let unprobed: HashSet<&str> = unprobed.map(|bond| bond.name.as_str()).collect();
        let counts = |peer: &&&PeerRecord| peer.proven || unprobed.contains(peer.bond.as_str());
        view.peers = view.table.iter().filter(counts).copied().collect();
        let known: HashSet<(&str, &str)> =
            view.peers.iter().map(|peer| (peer.bond.as_str(), name(peer))).collect();
        view.lanes.retain(|lane| {
            lane.peer == PLAIN_HOSTS || known.contains(&(lane.bond.as_str(), lane.peer.as_str()))
        });
        view
    }
}

/// What a peer is called, here and by `lanes`: its address, or its MAC if it has none.
pub(crate) fn name(peer: &PeerRecord) -> &str {
    peer.address.as_ref().unwrap_or(&peer.mac)
}
