//! What the transport of a queue knows, where others can read it.

use super::{Engine, Port};
use crate::{Stats, Transport, ring::Shareable};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Nanoseconds between two looks at the transport; longer while the queue sleeps, up to
/// [`SLEEP_MAX`](crate::limits::SLEEP_MAX).
const EVERY: u64 = 10_000_000;
/// Numbers of [`Stats`].
const NUMBERS: usize = 13;

/// The counters that one queue's transport has of one peer. One thread writes them, any thread reads them.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Published([AtomicU64; NUMBERS]);

// SAFETY: atomics.
unsafe impl Shareable for Published {}

impl Published {
    pub fn set(&self, stats: Stats) {
        for (to, value) in self.0.iter().zip(stats.numbers()) {
            to.store(value, Relaxed);
        }
    }

    pub fn get(&self) -> Stats {
        Stats::of_numbers(std::array::from_fn(|number| self.0[number].load(Relaxed)))
    }
}

impl Stats {
    fn numbers(self) -> [u64; NUMBERS] {
        let Self { sent, full, received, wakes, bad_position, bad_record, incomplete, lost, .. } = self;
        let Self { plain, other_key, bad_tag, repeated, queued, .. } = self;
        let first = [sent, full, received, wakes, bad_position, bad_record, incomplete, lost];
        let [a, b, c, d, e, f, g, h] = first;
        [a, b, c, d, e, f, g, h, plain, other_key, bad_tag, repeated, queued]
    }

    fn of_numbers(numbers: [u64; NUMBERS]) -> Self {
        let [sent, full, received, wakes, bad_position, bad_record, rest @ ..] = numbers;
        let [incomplete, lost, plain, other_key, bad_tag, repeated, queued] = rest;
        let first = Self { sent, full, received, wakes, bad_position, bad_record, ..Self::default() };
        Self { incomplete, lost, plain, other_key, bad_tag, repeated, queued, ..first }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (one, two) = (self.numbers(), other.numbers());
        Self::of_numbers(std::array::from_fn(|number| one[number].wrapping_add(two[number])))
    }
}

impl<T: Transport, P: Port> Engine<T, P> {
    /// Publishes what the transport knows.
    pub(super) fn publish(&mut self, now: u64) {
        self.publish_at = now + EVERY;
        for peer in 0..self.shape.nodes {
            if let Some(published) = self.shared.published(self.row, peer) {
                published.set(self.transport.stats(peer));
            }
        }
        // The session's thread ends the node, which says goodbye where that is still heard.
        if let Some(loss) = self.transport.lost()
            && self.shared.set_loss(loss)
        {
            self.outlet.session.raise();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_back_and_adds_up() {
        let numbers = std::array::from_fn(|number| number as u64 + 1);
        let published = Published::default();
        published.set(Stats::of_numbers(numbers));
        assert_eq!(published.get(), Stats::of_numbers(numbers));
        assert_eq!(published.get().and(published.get()).numbers(), numbers.map(|number| 2 * number));
        assert_eq!((published.get().sent, published.get().queued), (1, NUMBERS as u64));
    }
}
