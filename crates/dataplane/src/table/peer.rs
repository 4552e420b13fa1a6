//! The rows of peers' MACs.

use super::{PeerMac, key, within};
use crate::{
    Tables,
    error::Result,
    intf::{LB_NEAR_PEERS, PLAIN_PLAN_FIRST, lb_near_peer, lb_peer_mac},
};
use bytemuck::Zeroable as _;

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
            pad: 0,
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
