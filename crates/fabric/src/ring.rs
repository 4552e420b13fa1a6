//! A queue of frames in shared memory: one producer, one consumer, a ring of bytes with records of any length.
//!
//! Each side writes only into the memory of the other and reads only its own, so the same ring works where remote
//! writes are cheap and remote reads are not (NTB, CXL), and no cache line is written by both:
//!
//! ```text
//!   in the consumer's memory, written by the producer: ToConsumer (head, wants room), the records
//!   in the producer's memory, written by the consumer: ToProducer (tail, sleeps)
//! ```
//!
//! `head` and `tail` count bytes since the ring was made and never wrap in practice; both are multiples of [`ALIGN`]. A
//! record is one word with the length, the bytes, and padding to [`ALIGN`], so that two records never share a cache
//! line. Where a record does not fit before the end of the ring, the word [`SKIP`] says that it starts again at the
//! beginning.
//!
//! The other side is hostile: a position or a length is read once, checked, and used from the copy. What makes no sense
//! costs that peer what it has in the queue, is counted, and nothing else. A side that restarts continues from the
//! positions it finds; the consumer drops what waits.

mod consumer;
mod memory;
#[cfg(all(test, loom))]
mod orders;
mod producer;
#[cfg(all(test, not(loom)))]
mod tests;

pub use consumer::Consumer;
pub use memory::{Data, Place, ToConsumer, ToProducer, full_fence};
#[cfg(not(loom))]
pub use memory::{Map, Shareable};
pub use producer::Producer;

/// What records and positions are multiples of, in bytes: a cache line.
pub const ALIGN: u64 = 64;

/// Bytes before those of the frame: the word with its length.
pub const WORD: u64 = 8;

/// The word that says: go on at the beginning of the ring.
pub const SKIP: u64 = u64::MAX;

/// Bytes that a frame of `len` bytes takes in the ring.
#[must_use]
pub const fn record_bytes(len: usize) -> u64 {
    (WORD + len as u64).next_multiple_of(ALIGN)
}

/// Whether a ring of `size` bytes can carry frames of up to `frame_max` bytes wherever it stands: the record and, at
/// worst, nearly as much before the end of the ring.
#[must_use]
pub const fn size_fits(size: u64, frame_max: usize) -> bool {
    size.is_power_of_two() && size >= 2 * record_bytes(frame_max)
}
