//! The memory that two sides share, and what lies in it. Under `cfg(loom)` it is loom's, which then checks every order
//! in which the two sides can run.

#[cfg(loom)]
pub use checked::{Data, Place};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub use plain::{Data, Map, Place};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
mod checked;
#[cfg(not(loom))]
mod plain;

/// What the producer tells the consumer; lies in the consumer's memory. Two cache lines, because processors fetch them
/// in pairs.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ToConsumer {
    /// Bytes written since the ring was made.
    pub head: AtomicU64,
    /// Not 0: the producer waits for room and is to be woken.
    pub wants_room: AtomicU32,
}

/// What the consumer tells the producer; lies in the producer's memory.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ToProducer {
    /// Bytes done with since the ring was made.
    pub tail: AtomicU64,
    /// Not 0: the consumer sleeps and is to be woken.
    pub sleeps: AtomicU32,
}

/// Orders what was stored before against what is loaded after: between telling the other side something and looking
/// whether it sleeps, and between saying that one sleeps and the last look.
pub fn full_fence() {
    fence(Ordering::SeqCst);
}

/// Takes a wish to be woken: true for the one who has to wake.
pub(super) fn take_wish(wish: &AtomicU32) -> bool {
    // The plain load keeps the line shared while nobody sleeps.
    wish.load(Ordering::Relaxed) != 0 && wish.swap(0, Ordering::Relaxed) != 0
}
