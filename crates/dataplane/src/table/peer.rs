//! The rows of peers' MACs.

use super::{key, within};
use crate::{
    Tables,
    error::Result,
    intf::{
        LB_NEAR_PEERS, LB_PEER_ALIAS, LB_PEER_GUEST, LB_PEER_HAS_GUESTS, LB_PEER_TAKES_GUESTS,
        PLAIN_PLAN_FIRST, lb_near_peer, lb_peer_mac,
    },
};
use bytemuck::Zeroable as _;

/// A MAC that leads to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerMac {
    /// The number of the peer's plan, from 1.
    pub plan: u32,
    /// The MAC that neighbours know it by.
    pub primary: [u8; 6],
    /// The slot that takes in its broadcasts.
    pub broadcast_slot: u8,
    /// What has this MAC.
    pub kind: PeerMacKind,
}

/// What has a MAC that leads to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerMacKind {
    /// A member of the peer.
    Member {
        /// The peer has guests: the source addresses of its frames are looked up.
        has_guests: bool,
        /// It gives guests' frames their MACs back: guests here send to it over all lanes.
        takes_guests: bool,
    },
    /// A guest behind the peer, which gives guests' frames their MACs back. What it sends by its own MAC counts as a plain
    /// host's.
    Guest,
    /// Nothing: it is the MAC of a member with the bit [`ALIAS_BIT`](crate::ALIAS_BIT) the other way round. By it the peer
    /// sends what is for guests here. What is sent to it counts as sent to a plain host.
    Alias {
        /// As of a member.
        has_guests: bool,
    },
}

/// A member of a peer without guests.
impl Default for PeerMacKind {
    fn default() -> Self {
        Self::Member { has_guests: false, takes_guests: false }
    }
}

impl Tables {
    /// Writes one MAC of a peer; with plan 0 it counts as a plain host's.
    ///
    /// # Errors
    /// The kernel refuses, the table is full, or there is no such plan.
    pub fn set_peer_mac(&self, mac: [u8; 6], peer: &PeerMac) -> Result<()> {
        within("plan", peer.plan.into(), u64::from(PLAIN_PLAN_FIRST) - 1)?;
        let raw = lb_peer_mac {
            plan: peer.plan,
            primary: peer.primary,
            broadcast_slot: peer.broadcast_slot,
            flags: if peer.plan == 0 { 0 } else { to_flags(peer.kind) },
        };
        let near = self.near_peer(mac)?;
        // Who came first keeps the place: a reader in the middle of a change must not take one MAC for another.
        let is_free = near.peer.plan == 0;
        if is_free || near.mac == mac {
            self.set_near_peer(mac, &lb_near_peer { peer: raw, mac, pad: [0; 2] })?;
        }
        // The table after the place: whoever adopts them reads the table, and does again what was not done in full.
        let written = self.write("lb_peer_macs", &key(mac), &raw);
        if written.is_err() && is_free {
            self.set_near_peer(mac, &lb_near_peer::zeroed())?;
        }
        written
    }

    /// Removes one MAC of a peer.
    ///
    /// # Errors
    /// The kernel refuses; a MAC that is not there is no error.
    pub fn delete_peer_mac(&self, mac: [u8; 6]) -> Result<()> {
        if self.near_peer(mac)?.mac == mac {
            self.set_near_peer(mac, &lb_near_peer::zeroed())?;
        }
        self.delete("lb_peer_macs", &key(mac))
    }

    /// All MACs of peers, for a daemon that adopts the table of an earlier one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn peer_macs(&self) -> Result<Vec<([u8; 6], PeerMac)>> {
        let rows = self.mac_rows::<lb_peer_mac>("lb_peer_macs")?;
        let row = |raw: lb_peer_mac| PeerMac {
            plan: raw.plan,
            primary: raw.primary,
            broadcast_slot: raw.broadcast_slot,
            kind: to_kind(raw.flags),
        };
        Ok(rows.into_iter().map(|(mac, raw)| (mac, row(raw))).collect())
    }

    fn near_peer(&self, mac: [u8; 6]) -> Result<lb_near_peer> {
        self.read("lb_near_peers", &near_place(mac))
    }

    fn set_near_peer(&self, mac: [u8; 6], near: &lb_near_peer) -> Result<()> {
        self.write("lb_near_peers", &near_place(mac), near)
    }
}

/// The place of a peer's MAC: its last bits, as `find_peer()` takes them.
fn near_place(mac: [u8; 6]) -> u32 {
    (u32::from(mac[4]) << 8 | u32::from(mac[5])) & (LB_NEAR_PEERS - 1)
}

fn to_flags(kind: PeerMacKind) -> u8 {
    let flag = |is: bool, flag: u32| if is { flag as u8 } else { 0 };
    match kind {
        PeerMacKind::Member { has_guests, takes_guests } => {
            flag(has_guests, LB_PEER_HAS_GUESTS) | flag(takes_guests, LB_PEER_TAKES_GUESTS)
        }
        PeerMacKind::Guest => flag(true, LB_PEER_GUEST),
        PeerMacKind::Alias { has_guests } => flag(true, LB_PEER_ALIAS) | flag(has_guests, LB_PEER_HAS_GUESTS),
    }
}

fn to_kind(flags: u8) -> PeerMacKind {
    let is = |flag: u32| u32::from(flags) & flag != 0;
    if is(LB_PEER_GUEST) {
        PeerMacKind::Guest
    } else if is(LB_PEER_ALIAS) {
        PeerMacKind::Alias { has_guests: is(LB_PEER_HAS_GUESTS) }
    } else {
        PeerMacKind::Member { has_guests: is(LB_PEER_HAS_GUESTS), takes_guests: is(LB_PEER_TAKES_GUESTS) }
    }
}

#[cfg(test)]
mod tests {
    use super::{PeerMacKind, to_flags, to_kind};

    #[test]
    fn flags_say_what_has_a_mac() {
        let kinds = [false, true].into_iter().flat_map(|has_guests| {
            let member = |takes_guests| PeerMacKind::Member { has_guests, takes_guests };
            [member(false), member(true), PeerMacKind::Alias { has_guests }, PeerMacKind::Guest]
        });
        for kind in kinds {
            assert_eq!(to_kind(to_flags(kind)), kind);
        }
        assert_eq!(to_kind(0), PeerMacKind::default(), "as an earlier build wrote it");
    }
}
