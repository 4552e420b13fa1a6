//! What all simulators share: a fake clock, a queue of what is due, and random numbers from a seed.

use linkbraid_proto::Time;
use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

/// What is due, by time and then in the order in which it was put in.
pub struct Queue<D> {
    pub now: Time,
    due: BinaryHeap<Reverse<(Time, u64, D)>>,
    order: u64,
    seed: u64,
}

impl<D: Ord> Queue<D> {
    pub fn new(seed: u64) -> Queue<D> {
        Queue { now: Time::ZERO, due: BinaryHeap::new(), order: 0, seed }
    }

    /// A number below `limit`.
    pub fn random(&mut self, limit: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % limit.max(1)
    }

    pub fn at(&mut self, at: Time, due: D) {
        self.order += 1;
        self.due.push(Reverse((at, self.order, due)));
    }

    pub fn after(&mut self, delay: Duration, due: D) {
        self.at(self.now + delay, due);
    }

    /// The next that is due until `end`, at whose time it is then; none: it is `end`.
    pub fn next(&mut self, end: Time) -> Option<D> {
        if self.due.peek().is_none_or(|Reverse((at, ..))| *at > end) {
            self.now = end;
            return None;
        }
        let Reverse((at, _, due)) = self.due.pop()?;
        self.now = at;
        Some(due)
    }
}

pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
