//! A message: what one node sends another in one go. It has a head, and then frames, each after its length.
//!
//! ```text
//!    0               4       6   7   8       10      12
//!   +---------------+-------+---+---+-------+-------+
//!   | "LBO", 1      | node  |knd|flg| nodes | queue |
//!   +---------------+-------+---+---+-------+-------+--------------- - -
//!   | sender's life | receiver's life | number | taken | window | 0  | frames
//!   +---------------+-----------------+--------+-------+--------+----+- - -
//!    12              16                20       24      28       30   32
//! ```
//!
//! All numbers are big-endian. A *life* is a stretch of a sender's time in which nothing is lost; both sides draw theirs
//! at random and count them up. *Number* counts the messages with frames of one life to one life, from 0. *Taken* says
//! how many of the receiver's messages the sender is done with, and *window* how many more than that it has room for.

use linkbraid_fabric::limits::FRAME_MAX;

/// Bytes of a head.
pub const HEAD: usize = 32;

/// Bytes of a frame's length.
pub const LENGTH: usize = 4;

/// Bytes of the longest message: any frame fits, in whole pages.
pub const MESSAGE_MAX: usize = (HEAD + LENGTH + FRAME_MAX).next_multiple_of(4096);

/// Largest window that is believed.
pub const WINDOW_MAX: u16 = 1024;

/// Changes whenever anything here does.
const MAGIC: [u8; 4] = [b'L', b'B', b'O', 1];

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Here I am; what life have you?
    Hello = 1,
    /// It holds frames.
    Data = 2,
    /// Only to say what was taken.
    Credit = 3,
}

/// The head of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The number of the sending node.
    pub node: u16,
    /// What the message is for.
    pub kind: Kind,
    /// The sender has heard that the receiver knows its life.
    pub known: bool,
    /// How many nodes the sender counts.
    pub nodes: u16,
    /// Which queue of its it is.
    pub queue: u16,
    /// The sender's life; never 0.
    pub life: u32,
    /// The receiver's, as far as the sender knows; 0: it does not.
    pub peer_life: u32,
    /// Which message with frames this is, or would be.
    pub number: u32,
    /// How many of the receiver's are done with.
    pub taken: u32,
    /// How many more than that there is room for.
    pub window: u16,
}

impl Head {
    /// The bytes of the head.
    #[must_use]
    pub fn emit(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.node.to_be_bytes());
        bytes[6] = self.kind as u8;
        bytes[7] = u8::from(self.known);
        bytes[8..10].copy_from_slice(&self.nodes.to_be_bytes());
        bytes[10..12].copy_from_slice(&self.queue.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.life.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.peer_life.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.number.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.taken.to_be_bytes());
        bytes[28..30].copy_from_slice(&self.window.to_be_bytes());
        bytes
    }

    /// Reads a message's. None if it is none of ours.
    #[must_use]
    pub fn parse(message: &[u8]) -> Option<Self> {
        let (head, frames) = message.split_first_chunk::<HEAD>()?;
        let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let kind = match head[6] {
            1 => Kind::Hello,
            2 => Kind::Data,
            3 => Kind::Credit,
            _ => return None,
        };
        let parsed = Self {
            node: half(4),
            kind,
            known: head[7] == 1,
            nodes: half(8),
            queue: half(10),
            life: word(12),
            peer_life: word(16),
            number: word(20),
            taken: word(24),
            window: half(28),
        };
        let sound = head[..4] == MAGIC
            && head[7] <= 1
            && half(30) == 0
            && parsed.life != 0
            && (1..=WINDOW_MAX).contains(&parsed.window)
            && frames.is_empty() == (kind != Kind::Data);
        sound.then_some(parsed)
    }
}

/// The frame whose length is at `at`: where it begins and ends. None: what is there is no frame.
#[must_use]
pub fn frame_at(message: &[u8], at: usize) -> Option<(usize, usize)> {
    let length = message.get(at..)?.first_chunk::<LENGTH>()?;
    let len = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let start = at + LENGTH;
    let fits = (1..=FRAME_MAX).contains(&len) && len <= message.len() - start;
    fits.then_some((start, start + len))
}
