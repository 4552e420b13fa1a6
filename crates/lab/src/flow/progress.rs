//! When how much had arrived.

use std::time::Duration;

/// Arrivals closer than this to the first of a group are kept as one, which bounds the memory of a flow.
const RESOLUTION: Duration = Duration::from_micros(200);

/// What had arrived in all, by time since the flow began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// When a group of arrivals began, and all that had arrived by its end. Both never fall.
    points: Vec<(Duration, u64)>,
}

impl Progress {
    /// Something arrived: bytes of TCP, or datagrams.
    pub fn add(&mut self, at: Duration, amount: u64) {
        let total = self.total() + amount;
        match self.points.last_mut() {
            Some((began, last)) if at.saturating_sub(*began) < RESOLUTION => *last = total,
            _ => self.points.push((at, total)),
        }
    }

    /// All that has arrived.
    pub fn total(&self) -> u64 {
        self.points.last().map_or(0, |(_, total)| *total)
    }

    /// What arrived from one time up to another, that one left out.
    pub fn between(&self, from: Duration, to: Duration) -> u64 {
        self.before(to).saturating_sub(self.before(from))
    }

    fn before(&self, time: Duration) -> u64 {
        let count = self.points.partition_point(|(at, _)| *at < time);
        count.checked_sub(1).map_or(0, |last| self.points[last].1)
    }

    /// The longest time without an arrival inside a window. One that reaches over an end of the window counts as far
    /// as it is inside; a window without any arrival is one gap.
    pub fn longest_gap(&self, from: Duration, to: Duration) -> Duration {
        let first = self.points.partition_point(|(at, _)| *at < from);
        let inside = self.points[first..].iter().map(|(at, _)| *at).take_while(|at| *at < to);
        let (mut longest, mut last) = (Duration::ZERO, from);
        for at in inside.chain([to]) {
            longest = longest.max(at.saturating_sub(last));
            last = at;
        }
        longest
    }

    /// How long after `from` the first time begins that brings at least `amount` within `window`; looked at for each
    /// millisecond, up to `to`.
    pub fn reaches(&self, from: Duration, to: Duration, window: Duration, amount: u64) -> Option<Duration> {
        let step = Duration::from_millis(1);
        let mut at = from;
        while at + window <= to {
            if self.between(at, at + window) >= amount {
                return Some(at.saturating_sub(from));
            }
            at += step;
        }
        None
    }

    /// What arrived in each of `count` times of length `width`, one after the other.
    pub fn bins(&self, from: Duration, width: Duration, count: u32) -> Vec<u64> {
        (0..count).map(|bin| self.between(from + width * bin, from + width * (bin + 1))).collect()
    }
}

#[cfg(test)]
mod tests;
