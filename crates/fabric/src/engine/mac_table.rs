//! Which node has which MAC: derived from the address, or learned from the frames that nodes send.
//!
//! All queues of a node share one table. An entry is one atomic word, so a reader sees an old or a new one and never a
//! mixture, and nobody waits. Two queues that learn at the same moment may overwrite each other; the next frame puts
//! that right.

use crate::ring::{Place, Shareable};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Entries of the table; a power of two.
pub const MACS_MAX: usize = 4096;
/// Places that one address can be at.
const PLACES: usize = 8;
/// A learned address that has not been seen for so many seconds counts as unknown, as in a bridge (IEEE 802.1Q, 8.8.3).
pub const MAC_AGE_SECONDS: u32 = 300;
/// First bytes of a derived address: locally administered, then "lb".
const DERIVED: [u8; 3] = [0x02, 0x6c, 0x62];

/// An Ethernet address as it stands in a frame.
pub type Mac = [u8; 6];

/// The address of node `node` on the fabric with number `fabric`: `02:6c:62`, the fabric, the node in two bytes. Fabrics
/// that meet in one bridge need different numbers.
#[must_use]
pub const fn derive_mac(fabric: u8, node: u16) -> Mac {
    let [high, low] = node.to_be_bytes();
    [DERIVED[0], DERIVED[1], DERIVED[2], fabric, high, low]
}

/// The node whose address on the fabric with number `fabric` was derived as `mac`.
#[must_use]
pub fn derived_node(fabric: u8, mac: Mac) -> Option<u16> {
    let [a, b, c, number, high, low] = mac;
    ([a, b, c] == DERIVED && number == fabric).then_some(u16::from_be_bytes([high, low]))
}

/// Whether an address names a group.
#[must_use]
pub const fn is_group(mac: Mac) -> bool {
    mac[0] & 1 == 1
}

/// What became of an address that was to be learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// It was known to be there.
    Known,
    /// It is new.
    New,
    /// It was at another node.
    Moved,
    /// The places for it are taken by others that are still in use.
    Full,
}

#[derive(Debug)]
#[repr(C)]
pub(super) struct Entry {
    /// The address in the upper 48 bits, the node in the lower 16; 0 where there is none.
    key: AtomicU64,
    /// When it was last seen, in seconds.
    seen: AtomicU32,
}

// SAFETY: atomics and padding.
unsafe impl Shareable for Entry {}

/// The table. Time is in seconds since some start.
#[derive(Debug)]
pub struct MacTable(Place<[Entry]>);

impl MacTable {
    /// The table in this memory, of [`MACS_MAX`] entries.
    pub(super) fn new(entries: Place<[Entry]>) -> Self {
        Self(entries)
    }

    /// The node that has `mac`.
    #[must_use]
    pub fn node_of(&self, mac: Mac, now: u32) -> Option<u16> {
        let (entry, key) = self.find(number(mac))?;
        fresh(entry, now).then_some(key as u16)
    }

    /// Notes that `node` sent from `mac`, which is the address of one interface.
    pub fn learn(&self, mac: Mac, node: u16, now: u32) -> Learned {
        let mac = number(mac);
        let new = (mac << 16) | u64::from(node);
        if let Some((entry, key)) = self.find(mac) {
            let was_fresh = fresh(entry, now);
            // Written only when it changes: the line stays shared between the queues.
            if entry.seen.load(Relaxed) != now {
                entry.seen.store(now, Relaxed);
            }
            if key == new {
                return if was_fresh { Learned::Known } else { Learned::New };
            }
            entry.key.store(new, Relaxed);
            return if was_fresh { Learned::Moved } else { Learned::New };
        }
        let free = self.places(mac).find(|entry| entry.key.load(Relaxed) == 0 || !fresh(entry, now));
        let Some(entry) = free else { return Learned::Full };
        entry.seen.store(now, Relaxed);
        entry.key.store(new, Relaxed);
        Learned::New
    }

    /// Forgets `mac`: it was seen on this side.
    pub fn forget(&self, mac: Mac) {
        if let Some((entry, key)) = self.find(number(mac)) {
            // A queue that has learned it again meanwhile keeps it.
            let _ = entry.key.compare_exchange(key, 0, Relaxed, Relaxed);
        }
    }

    /// Forgets everything learned from `node`.
    pub fn forget_node(&self, node: u16) {
        for entry in self.0.iter() {
            let key = entry.key.load(Relaxed);
            if key != 0 && key as u16 == node {
                let _ = entry.key.compare_exchange(key, 0, Relaxed, Relaxed);
            }
        }
    }

    /// Every learned address that has not aged, with its node.
    pub fn iter(&self, now: u32) -> impl Iterator<Item = (Mac, u16)> + '_ {
        let live = move |entry: &&Entry| entry.key.load(Relaxed) != 0 && fresh(entry, now);
        self.0.iter().filter(live).map(|entry| {
            let key = entry.key.load(Relaxed);
            let [_, _, a, b, c, d, e, f] = (key >> 16).to_be_bytes();
            ([a, b, c, d, e, f], key as u16)
        })
    }

    fn find(&self, mac: u64) -> Option<(&Entry, u64)> {
        self.places(mac).find_map(|entry| {
            let key = entry.key.load(Relaxed);
            (key >> 16 == mac && key != 0).then_some((entry, key))
        })
    }

    fn places(&self, mac: u64) -> impl Iterator<Item = &Entry> {
        // Fibonacci hashing: the upper bits of the product depend on all of the address.
        let start = (mac.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
        (0..PLACES).map(move |place| &self.0[(start + place) % MACS_MAX])
    }
}

fn fresh(entry: &Entry, now: u32) -> bool {
    // A clock of another queue may be a moment ahead of this one.
    now.saturating_sub(entry.seen.load(Relaxed)) < MAC_AGE_SECONDS
}

pub(super) fn number([a, b, c, d, e, f]: Mac) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

#[cfg(test)]
mod tests;
