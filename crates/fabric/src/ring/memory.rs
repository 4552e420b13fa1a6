//! The memory that two sides share, and what lies in it. Under `cfg(loom)` it is loom's, which then checks every order
//! in which the two sides can run.

#[cfg(loom)]
pub use checked::{Data, Place};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub use plain::{Data, Map, Place, Shareable};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
mod checked;
#[cfg(not(loom))]
mod fault;
#[cfg(not(loom))]
mod plain;

/// What the producer writes for the consumer; in the consumer's memory. Two cache lines, because processors fetch them
/// in pairs.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ToConsumer {
    /// Bytes written since the ring was made.
    pub head: AtomicU64,
    /// Odd: the producer waits for room and is to be woken.
    pub wants_room: AtomicU32,
}

/// What the consumer writes for the producer; in the producer's memory.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ToProducer {
    /// Bytes done with since the ring was made.
    pub tail: AtomicU64,
    /// Odd: the consumer sleeps and is to be woken.
    pub sleeps: AtomicU32,
}

/// Orders what was stored before against what is loaded after: between writing something for the other side and looking
/// whether it sleeps, and between saying that one sleeps and the last look.
pub fn full_fence() {
    fence(Ordering::SeqCst);
}

/// The wish of this side to be woken, as a number that only this side writes: odd while it is wished. Every wish has a
/// number of its own, so that the other side can distinguish one that it fulfilled from the next one.
#[derive(Debug)]
pub(super) struct Wish(u32);

impl Wish {
    /// Goes on after what is there from a life before; nothing is wished.
    pub(super) fn attach(word: &AtomicU32) -> Self {
        let mut wish = Self(word.load(Ordering::Relaxed));
        wish.end(word);
        wish
    }

    /// Begins a new request.
    pub(super) fn begin(&mut self, word: &AtomicU32) {
        self.0 = self.0.wrapping_add(1) | 1;
        word.store(self.0, Ordering::Relaxed);
    }

    /// Ends the request.
    pub(super) fn end(&mut self, word: &AtomicU32) {
        self.0 = (self.0 | 1).wrapping_add(1);
        word.store(self.0, Ordering::Relaxed);
    }
}

/// Which wish of the other side was fulfilled last.
#[derive(Debug, Default)]
pub(super) struct Fulfilled(u32);

impl Fulfilled {
    /// Whether there is a wish that was not fulfilled; it is then.
    pub(super) fn take(&mut self, word: &AtomicU32) -> bool {
        let wish = word.load(Ordering::Relaxed);
        let new = wish % 2 == 1 && wish != self.0;
        if new {
            self.0 = wish;
        }
        new
    }
}
