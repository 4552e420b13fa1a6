//! The records of a scrape by their kind, and which peers have series of their own.

use linkbraid_api::{
    BondRecord, ClassRecord, FabricRecord, FabricStatsRecord, LaneRecord, LatencyRecord, PeerRecord, Records,
    StatsRecord,
};
use std::collections::{HashMap, HashSet};

/// What `lanes` calls the plan for all hosts that are no peers.
pub(crate) const PLAIN_HOSTS: &str = "plain hosts";
/// The most peers of one bond that have series of their own; of the others it is said how many there are.
pub const PEERS_MAX: usize = 256;

/// Whether a host of the ARP+ table may have series of its own. Without probes no host can prove anything; the table bounds how many
/// there are at a time.
pub const fn may_have_series(proven: bool, probes: bool) -> bool {
    proven || !probes
}

#[derive(Default)]
pub(crate) struct View<'a> {
    pub bonds: Vec<&'a BondRecord>,
    /// Those that have series of their own.
    pub peers: Vec<&'a PeerRecord>,
    /// How many of each bond have none because there are too many.
    pub left_out: HashMap<&'a str, usize>,
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
        let unprobed = view.bonds.iter().filter(|bond| !bond.settings.inspector.probes);
        let unprobed: HashSet<&str> = unprobed.map(|bond| bond.name.as_str()).collect();
        let may = |peer: &PeerRecord| may_have_series(peer.proven, !unprobed.contains(peer.bond.as_str()));
        let mut shown: HashMap<&str, usize> = HashMap::new();
        for peer in view.table.iter().copied().filter(|peer| may(peer)) {
            let shown = shown.entry(&peer.bond).or_default();
            if *shown < PEERS_MAX {
                *shown += 1;
                view.peers.push(peer);
            } else {
                *view.left_out.entry(&peer.bond).or_default() += 1;
            }
        }
        // Another host may claim a peer's address, so its name alone does not say whose lane it is.
        let ends = view.peers.iter().flat_map(|peer| {
            peer.members.iter().map(move |member| (peer.bond.as_str(), name(peer), member.mac.as_str()))
        });
        let ends: HashSet<(&str, &str, &str)> = ends.collect();
        view.lanes.retain(|lane| match &lane.peer_mac {
            Some(mac) => ends.contains(&(lane.bond.as_str(), lane.peer.as_str(), mac.as_str())),
            None => lane.peer == PLAIN_HOSTS,
        });
        view
    }
}

/// What a peer is called, here and by `lanes`: its address, or its MAC if it has none.
pub(crate) fn name(peer: &PeerRecord) -> &str {
    peer.address.as_ref().unwrap_or(&peer.mac)
}
