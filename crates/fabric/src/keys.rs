//! The keys that frames are encrypted with, as the session hands them to whoever carries frames.

use std::fmt;
use zeroize::Zeroizing;

/// Bytes of a secret.
pub const SECRET_LEN: usize = 32;

/// Most keys that frames of one peer may be encrypted with: the one in use, and the one before or after it.
pub const KEYS_MAX: usize = 2;

/// A key of one direction between two starts. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct FrameKey {
    /// The number by which the receiver finds it.
    pub id: u32,
    /// Its bytes.
    pub secret: Zeroizing<[u8; SECRET_LEN]>,
}

impl fmt::Debug for FrameKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameKey({:08x})", self.id)
    }
}

/// The keys of the frames between this node and a peer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameKeys {
    /// The peer's epoch: what is remembered of its numbers lasts as long.
    pub epoch: u64,
    /// The one that frames to the peer are encrypted with; with none, none leaves.
    pub send: Option<FrameKey>,
    /// Those that frames of the peer may be encrypted with.
    pub receive: [Option<FrameKey>; KEYS_MAX],
}
