//! A datagram: one piece of a frame, or a whole one (`docs/fabric.md`, section 10).
//!
//! A frame that is longer than a datagram may be on the path is cut into pieces of one size; the last may be shorter. They
//! are numbered rather than left to the IP layer, because pieces of one size can go to the kernel in one call (UDP GSO)
//! and come from it in one call (UDP GRO), and because a router may drop IP fragments.
//!
//! ```text
//!    0               4               8 9             12      14      16
//!   +---------------+---------------+-+-------------+-------+-------+------- - -
//!   | instance      | frame number  |v| frame bytes | size  | index | bytes
//!   +---------------+---------------+-+-------------+-------+-------+------- - -
//! ```
//!
//! All numbers are big-endian. `instance` is drawn when the sender opens, `frame number` counts its frames to this peer,
//! `size` is that of all pieces but the last, `index` says which this is.

use crate::limits::{FRAME_MAX, PIECES_MAX};

/// Bytes before those of the frame.
pub const HEAD: usize = 16;

/// Changes whenever anything here does.
const VERSION: u8 = 1;
/// Stands in its place in a datagram that is encrypted.
pub const ENCRYPTED: u8 = 2;
/// Where they stand.
pub const VERSION_AT: usize = 8;

/// One piece, as it was read; its numbers fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The number of the sender's start.
    pub instance: u32,
    /// The number of the frame among those of that start.
    pub number: u32,
    /// Bytes of the frame.
    pub total: usize,
    /// Bytes of every piece but the last.
    pub size: usize,
    /// The index of the piece in the frame.
    pub index: usize,
    /// The bytes of the frame from `index x size`.
    pub bytes: &'a [u8],
}

/// The head of piece `index` of a frame of `total` bytes, in pieces of `size`.
#[must_use]
pub fn head(instance: u32, number: u32, total: usize, size: usize, index: usize) -> [u8; HEAD] {
    //= docs/fabric.md#10.2
    let mut head = [0; HEAD];
    head[0..4].copy_from_slice(&instance.to_be_bytes());
    head[4..8].copy_from_slice(&number.to_be_bytes());
    head[8..12].copy_from_slice(&(total as u32).to_be_bytes());
    head[VERSION_AT] = VERSION;
    head[12..14].copy_from_slice(&(size as u16).to_be_bytes());
    head[14..16].copy_from_slice(&(index as u16).to_be_bytes());
    head
}

impl<'a> Piece<'a> {
    /// Reads a datagram. None if it is none of ours, or its numbers do not fit together.
    #[must_use]
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        let (head, bytes) = datagram.split_first_chunk::<HEAD>()?;
        //= docs/fabric.md#10.2
        if head[VERSION_AT] == VERSION { Self::of(head, bytes) } else { None }
    }

    /// The piece of that head with these bytes. None if its numbers do not fit together.
    pub(super) fn of(head: &[u8; HEAD], bytes: &'a [u8]) -> Option<Self> {
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let half = |at: usize| usize::from(u16::from_be_bytes([head[at], head[at + 1]]));
        let (total, size, index) = ((word(8) & 0xff_ffff) as usize, half(12), half(14));
        //= docs/fabric.md#10.3
        let sound = (1..=FRAME_MAX).contains(&total) && size > 0;
        if !sound || total.div_ceil(size) > PIECES_MAX {
            return None;
        }
        let left = total.checked_sub(index * size)?;
        if left == 0 || bytes.len() != left.min(size) {
            return None;
        }
        Some(Self { instance: word(0), number: word(4), total, size, index, bytes })
    }

    /// Whether it is all of the frame.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.total
    }
}
