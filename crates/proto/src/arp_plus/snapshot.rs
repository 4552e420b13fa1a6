//! All that can be seen of a machine, as one plain value.

use super::{ArpPlus, Counter, OpenConflict, OwnMember, Peer, Segment, State};
use crate::Time;
use linkbraid_wire::{Class, Guest, HostId};
use std::net::IpAddr;

/// The machine at one moment; what `show`, metrics and tests read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The moment.
    pub at: Time,
    /// The state.
    pub state: State,
    /// Identity of this host.
    pub host_id: HostId,
    /// Its epoch.
    pub epoch: u64,
    /// The number of its mapping.
    pub sequence: u32,
    /// Its members, the primary one first.
    pub members: Vec<OwnMember>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Its classes, ascending by number.
    pub classes: Vec<Class>,
    /// What it is capable of.
    pub features: u32,
    /// Its guests that are announced.
    pub guests: Vec<Guest>,
    /// The table, in the order of keys.
    pub peers: Vec<Peer>,
    /// Which own members hear each other.
    pub segments: Vec<Segment>,
    /// Conflicts seen lately.
    pub conflicts: Vec<OpenConflict>,
    /// Every counter.
    pub counters: Vec<(Counter, u64)>,
}

impl ArpPlus {
    /// All that can be seen, at `now`.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            at: now,
            state: self.state,
            host_id: self.own.host,
            epoch: self.own.epoch,
            sequence: self.own.sequence,
            members: self.own.members.clone(),
            addresses: self.own.addresses.clone(),
            classes: self.own.classes.clone(),
            features: self.own.features,
            guests: self.own.guests.clone(),
            peers: self.peers().cloned().collect(),
            segments: self.segments().to_vec(),
            conflicts: self.conflicts(),
            counters: self.counters().iter().collect(),
        }
    }
}
