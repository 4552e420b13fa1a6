//! All that can be seen of a session, as one plain value.

use super::{Counter, Queues, Session, Settings, Verdict, timing::detection};
use crate::{Time, auth::Why};
use linkbraid_wire::fabric::Offer;
use std::time::Duration;

/// A session at one moment; what `show`, metrics and tests read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The moment.
    pub at: Time,
    /// Number of this node.
    pub node: u16,
    /// Its epoch.
    pub epoch: u64,
    /// Whether it runs.
    pub running: bool,
    /// What is set.
    pub settings: Settings,
    /// Time between two ALIVEs to a peer, longer than set where there are many peers.
    pub interval: Duration,
    /// Every peer, ascending by number.
    pub peers: Vec<PeerSnapshot>,
    /// Every counter.
    pub counters: Vec<(Counter, u64)>,
}

/// A peer at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerSnapshot {
    /// Its number.
    pub node: u16,
    /// The published numbers of the queues between it and this node.
    pub queues: Queues,
    /// What is held of the link.
    pub verdict: Verdict,
    /// Since when.
    pub since: Time,
    /// What it says of itself, while it is up.
    pub offer: Option<Offer>,
    /// After what time without proof it is presumed failed, while it is up.
    pub detection: Option<Duration>,
    /// When the last good message of it came.
    pub heard: Option<Time>,
    /// When it last proved that it lives and hears this node.
    pub proven: Option<Time>,
    /// Another start of it that claims its number and has proven that it lives.
    pub rival: Option<u64>,
    /// Why its messages do not count, if some did not lately.
    pub unkeyed: Option<Why>,
}

impl Session {
    /// All that can be seen, at `now`.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let peer = |(node, peer): (&u16, &super::peer::Peer)| {
            let known = peer.link.peer();
            PeerSnapshot {
                node: *node,
                queues: Queues::of(self.settings.nodes, self.node, *node),
                verdict: peer.link.verdict(),
                since: peer.since,
                offer: known.map(|known| known.offer),
                detection: known.map(|known| detection(&known.offer)),
                heard: peer.heard,
                proven: peer.proven,
                rival: peer.link.rival().map(|rival| rival.epoch),
                //= docs/fabric.md#8.6
                // What others say in the name of one that is believed does not matter.
                unkeyed: peer.keyed.refused(now).filter(|_| known.is_none() || self.frames_prove()),
            }
        };
        Snapshot {
            at: now,
            node: self.node,
            epoch: self.own.epoch,
            running: self.is_running(),
            settings: self.settings,
            interval: self.settings.interval(),
            peers: self.peers.iter().map(peer).collect(),
            counters: self.counters.iter().collect(),
        }
    }
}
