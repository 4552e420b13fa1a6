//! What the session says of one peer, where the queues read it: its epoch, and the keys of its frames.
//!
//! One thread writes it, and several read. A reader that meets a writer half way gives up; the writer then announces a change.

use crate::{
    keys::{FrameKey, FrameKeys, KEYS_MAX, SECRET_LEN},
    ring::Shareable,
};
use std::sync::atomic::{AtomicU64, Ordering::*, fence};
use zeroize::Zeroizing;

/// Words of a secret.
const WORDS: usize = SECRET_LEN / size_of::<u64>();

/// A key in atomics.
#[derive(Debug)]
#[repr(C)]
struct Slot {
    /// Its id and 1; 0 where there is none.
    id: AtomicU64,
    secret: [AtomicU64; WORDS],
}

impl Slot {
    fn set(&self, key: Option<&FrameKey>) {
        self.id.store(key.map_or(0, |key| u64::from(key.id) + 1), Relaxed);
        for (at, word) in self.secret.iter().enumerate() {
            let bytes =
                key.and_then(|key| key.secret.chunks_exact(size_of::<u64>()).nth(at)?.try_into().ok());
            word.store(bytes.map_or(0, u64::from_ne_bytes), Relaxed);
        }
    }

    fn get(&self) -> Option<FrameKey> {
        let id = self.id.load(Relaxed).checked_sub(1)?;
        let mut secret = Zeroizing::new([0; SECRET_LEN]);
        for (bytes, word) in secret.chunks_exact_mut(size_of::<u64>()).zip(&self.secret) {
            bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        Some(FrameKey { id: id as u32, secret })
    }
}

/// What the session says of one peer.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Link {
    /// Grows by two with each change; odd while one is under way.
    version: AtomicU64,
    /// The peer's epoch; 0 while it is not connected.
    epoch: AtomicU64,
    /// How often all that waits for the peer or from it was to be forgotten.
    resets: AtomicU64,
    /// 1 where frames are encrypted.
    encrypted: AtomicU64,
    /// The key of what is sent, and those of what is received.
    send: Slot,
    receive: [Slot; KEYS_MAX],
}

// SAFETY: atomics.
unsafe impl Shareable for Link {}

/// The same, as it was at one moment.
#[derive(Debug)]
pub(super) struct Linked {
    pub version: u64,
    pub epoch: u64,
    pub resets: u64,
    /// None where frames are not encrypted.
    pub keys: Option<FrameKeys>,
}

impl Link {
    /// Only the session's thread does this.
    pub fn set(&self, epoch: u64, keys: Option<&FrameKeys>) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), Relaxed);
        fence(Release);
        self.epoch.store(epoch, Relaxed);
        if epoch == 0 {
            self.resets.fetch_add(1, Relaxed);
        }
        self.encrypted.store(keys.is_some().into(), Relaxed);
        self.send.set(keys.and_then(|keys| keys.send.as_ref()));
        for (at, slot) in self.receive.iter().enumerate() {
            slot.set(keys.and_then(|keys| keys.receive[at].as_ref()));
        }
        self.version.store(version.wrapping_add(2), Release);
    }

    /// What it says, if that is another version.
    pub fn get(&self, known: u64) -> Option<Linked> {
        let version = self.version.load(Acquire);
        if version == known || version % 2 == 1 {
            return None;
        }
        let epoch = self.epoch.load(Relaxed);
        let keys = (self.encrypted.load(Relaxed) != 0).then(|| FrameKeys {
            epoch,
            send: self.send.get(),
            receive: std::array::from_fn(|at| self.receive[at].get()),
        });
        let linked = Linked { version, epoch, resets: self.resets.load(Relaxed), keys };
        fence(Acquire);
        (self.version.load(Relaxed) == version).then_some(linked)
    }
}

#[cfg(test)]
mod tests;
