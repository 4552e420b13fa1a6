//! The keys that frames are encrypted with (`docs/fabric.md`, section 9). The session only makes them; who carries frames works with them.

use super::Session;
use crate::auth::Key;

/// What the keys are made for, so that they are keys of nothing else.
const CONTEXT: &[u8] = b"linkbraid fabric DATA 1";

/// The keys of the frames between this node and a start of a peer. Each has the id of the key that it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameKeys {
    /// The peer's epoch.
    pub epoch: u64,
    /// The one that frames to the peer are encrypted with; none where there is no key that signs, and so no frame leaves.
    pub send: Option<Key>,
    /// Those that frames of the peer may be encrypted with.
    pub receive: Vec<Key>,
}

impl Session {
    /// The keys of frames from and to a start of a peer; none where frames are not encrypted.
    pub fn frame_keys(&self, there: (u16, u64)) -> Option<FrameKeys> {
        if !self.own.offer.encrypts() {
            return None;
        }
        //= docs/fabric.md#9.2
        let make = |key: &Key, from: (u16, u64), to: (u16, u64)| {
            let numbers = [from.0.to_be_bytes(), to.0.to_be_bytes()];
            let epochs = [from.1.to_be_bytes(), to.1.to_be_bytes()];
            key.derive(&[CONTEXT, &numbers[0], &epochs[0], &numbers[1], &epochs[1]])
        };
        let (here, ring) = ((self.node, self.own.epoch), &self.auth.ring);
        //= docs/fabric.md#9.3
        Some(FrameKeys {
            epoch: there.1,
            send: ring.signing().map(|key| make(key, here, there)),
            receive: ring.all().iter().map(|key| make(key, there, here)).collect(),
        })
    }
}
