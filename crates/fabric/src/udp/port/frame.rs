//! A frame that is cut into datagrams.

use crate::{
    limits::{FRAME_MAX, PIECES_MAX},
    udp::{
        cipher::{NAME, OVERHEAD, TAG},
        piece::{ENCRYPTED, HEAD, VERSION_AT, head},
    },
};

/// Fewest bytes of a frame in a datagram that is not the last.
pub const PIECE_MIN: usize = FRAME_MAX.div_ceil(PIECES_MAX);

/// Most bytes of the datagrams of an encrypted frame.
pub const SCRATCH: usize = FRAME_MAX + PIECES_MAX * (HEAD + OVERHEAD);

/// A frame, and how it is cut.
pub struct Frame<'a> {
    /// Its bytes, in two parts that follow each other.
    parts: [&'a [u8]; 2],
    /// The sender's start, and which of its frames this is.
    instance: u32,
    number: u32,
    /// Bytes of it in every datagram but the last.
    size: usize,
    encrypted: bool,
}

impl<'a> Frame<'a> {
    /// A frame of which a plain datagram takes `size` bytes.
    pub fn new(parts: [&'a [u8]; 2], (instance, number): (u32, u32), size: usize, encrypted: bool) -> Self {
        let size = if encrypted { size.saturating_sub(OVERHEAD).max(PIECE_MIN) } else { size };
        Self { parts, instance, number, size, encrypted }
    }

    pub fn parts(&self) -> [&'a [u8]; 2] {
        self.parts
    }

    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    fn total(&self) -> usize {
        self.parts[0].len() + self.parts[1].len()
    }

    /// The number of its datagrams.
    pub fn pieces(&self) -> usize {
        self.total().div_ceil(self.size)
    }

    /// Bytes of every datagram but the last.
    pub fn segment(&self) -> usize {
        HEAD + self.size + if self.encrypted { OVERHEAD } else { 0 }
    }

    /// Bytes of this datagram.
    pub fn len(&self, at: usize) -> usize {
        self.segment() - self.size + self.size.min(self.total() - at * self.size)
    }

    /// The head of this datagram.
    pub fn head(&self, at: usize) -> [u8; HEAD] {
        let mut head = head(self.instance, self.number, self.total(), self.size, at);
        if self.encrypted {
            head[VERSION_AT] = ENCRYPTED;
        }
        head
    }

    /// The bytes of the frame in this datagram.
    pub fn bytes(&self, at: usize) -> [&'a [u8]; 2] {
        let (begin, end) = (at * self.size, (at + 1) * self.size);
        let [first, second] = self.parts;
        let beyond = |at: usize| at.saturating_sub(first.len()).min(second.len());
        let within = |at: usize| at.min(first.len());
        [&first[within(begin)..within(end)], &second[beyond(begin)..beyond(end)]]
    }

    /// The room before those bytes and behind them that encryption takes.
    pub fn room(&self) -> (&'static [u8], &'static [u8]) {
        if self.encrypted { (&[0; NAME], &[0; TAG]) } else { (&[], &[]) }
    }

    /// Writes this datagram, not encrypted yet; as much of the memory as it takes.
    pub fn fill<'b>(&self, at: usize, into: &'b mut [u8]) -> &'b mut [u8] {
        let (head, [first, second]) = (self.head(at), self.bytes(at));
        let (before, after) = self.room();
        let mut end = 0;
        for part in [&head[..], before, first, second, after] {
            into[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        &mut into[..end]
    }
}
