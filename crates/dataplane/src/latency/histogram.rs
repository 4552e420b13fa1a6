//! `struct lb_latency` of all CPUs together, and what it says.

use super::{Latency, Stage};
use crate::intf::{LB_BUCKET_BITS, LB_BUCKETS, LB_TICK_SHIFT, lb_latency, lb_wide};
use std::time::Duration;

const BUCKETS: usize = LB_BUCKETS as usize;
/// Buckets for each power of two.
const BUCKETS_PER_OCTAVE: usize = 1 << LB_BUCKET_BITS;

/// What one stage of one class took, in ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
    squares: u128,
    buckets: [u64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { count: 0, min: u64::MAX, max: 0, sum: 0, squares: 0, buckets: [0; BUCKETS] }
    }
}

impl Histogram {
    /// Adds what one CPU counted.
    pub fn add(&mut self, row: &lb_latency) {
        if row.count == 0 {
            return;
        }
        self.count += row.count;
        self.min = self.min.min(row.min_ticks);
        self.max = self.max.max(row.max_ticks);
        self.sum = self.sum.saturating_add(wide(row.ticks));
        self.squares = self.squares.saturating_add(wide(row.square_ticks));
        for (sum, bucket) in self.buckets.iter_mut().zip(row.buckets) {
            *sum += bucket;
        }
    }

    /// What it says; `None` if it counted nothing.
    pub fn latency(&self, class: u8, stage: Stage) -> Option<Latency> {
        if self.count == 0 {
            return None;
        }
        let count = self.count as f64;
        let mean = self.sum as f64 / count;
        // Rows are read while they change, so the sums need not fit each other to the last frame.
        let variance = (self.squares as f64 / count - mean * mean).max(0.0);
        Some(Latency {
            class,
            stage,
            count: self.count,
            min: duration(self.min as f64),
            mean: duration(mean),
            stddev: duration(variance.sqrt()),
            p50: duration(self.percentile(0.5)),
            p90: duration(self.percentile(0.9)),
            p99: duration(self.percentile(0.99)),
            p999: duration(self.percentile(0.999)),
            max: duration(self.max as f64),
        })
    }

    /// The value that this share of all values does not exceed, by rank; within its bucket as if the values there were
    /// spread evenly.
    fn percentile(&self, share: f64) -> f64 {
        let all: u64 = self.buckets.iter().sum();
        let rank = ((share * all as f64).ceil() as u64).clamp(1, all.max(1));
        let mut before = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            if before + count >= rank {
                let (low, width) = bounds(index);
                let part = ((rank - before) as f64 - 0.5) / *count as f64;
                return (low as f64 + (width - 1) as f64 * part).clamp(self.min as f64, self.max as f64);
            }
            before += count;
        }
        self.max as f64
    }
}

fn wide(sum: lb_wide) -> u128 {
    u128::from(sum.high) << 64 | u128::from(sum.low)
}

/// The least value of a bucket, and how many values it holds: the inverse of `bucket_of()` in `bpf/latency.bpf.c`.
fn bounds(index: usize) -> (u64, u64) {
    let octave = index / BUCKETS_PER_OCTAVE;
    if octave < 2 {
        return (index as u64, 1);
    }
    let exponent = octave - 1;
    let mantissa = (index - exponent * BUCKETS_PER_OCTAVE) as u64;
    (mantissa << exponent, 1 << exponent)
}

fn duration(ticks: f64) -> Duration {
    Duration::from_nanos((ticks * f64::from(1u32 << LB_TICK_SHIFT)) as u64)
}

#[cfg(test)]
mod tests;
