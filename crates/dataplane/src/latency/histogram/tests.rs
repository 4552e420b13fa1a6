//! The histogram against the values themselves.

use super::{BUCKETS, Histogram, bounds};
use crate::{
    intf::{lb_latency, lb_wide},
    latency::{Latency, Stage},
};
use bytemuck::Zeroable as _;
use proptest::prelude::*;

/// `bucket_of()` of `bpf/latency.bpf.c`.
fn bucket(ticks: u64) -> usize {
    let Some(exponent) = ticks.max(1).ilog2().checked_sub(4) else { return ticks as usize };
    ((u64::from(exponent) << 4) + (ticks >> exponent)) as usize
}

/// The row that a CPU would have written.
fn row(values: &[u64]) -> lb_latency {
    let wide = |sum: u128| lb_wide { low: sum as u64, high: (sum >> 64) as u64 };
    let mut row = lb_latency {
        count: values.len() as u64,
        min_ticks: values.iter().min().copied().unwrap_or(0),
        max_ticks: values.iter().max().copied().unwrap_or(0),
        ticks: wide(values.iter().map(|v| u128::from(*v)).sum()),
        square_ticks: wide(values.iter().map(|v| u128::from(*v).pow(2)).sum()),
        ..lb_latency::zeroed()
    };
    for value in values {
        row.buckets[bucket(*value)] += 1;
    }
    row
}

fn latency(rows: &[lb_latency]) -> Option<Latency> {
    let mut all = Histogram::default();
    for row in rows {
        all.add(row);
    }
    all.latency(3, Stage::Driver)
}

fn ticks(duration: std::time::Duration) -> f64 {
    duration.as_nanos() as f64 / 16.0
}

#[test]
fn buckets_are_dense_up_to_the_longest_time() {
    let mut next = 0;
    for i in 0..BUCKETS {
        let (low, width) = bounds(i);
        assert_eq!(low, next, "bucket {i}");
        assert!(width == 1 || width * 16 <= low, "bucket {i} is too wide");
        assert_eq!((bucket(low), bucket(low + width - 1)), (i, i));
        next = low + width;
    }
    assert_eq!(next, 1 << 32);
}

#[test]
fn nothing_measured_says_nothing() {
    assert_eq!(latency(&[row(&[]), row(&[])]), None);
}

#[test]
fn an_idle_cpu_does_not_lower_the_minimum() {
    let both = latency(&[row(&[]), row(&[100, 300])]).unwrap();
    assert_eq!((both.class, both.stage, both.count), (3, Stage::Driver, 2));
    assert_eq!((both.min.as_nanos(), both.max.as_nanos()), (1600, 4800));
    assert_eq!((both.mean.as_nanos(), both.stddev.as_nanos()), (3200, 1600));
}

proptest! {
    #[test]
    fn what_is_told_fits_the_values(
        cpus in prop::collection::vec(
            prop::collection::vec(prop_oneof![0..64u64, 0..100_000u64, 0..1u64 << 32], 0..200), 1..4),
    ) {
        let reported = latency(&cpus.iter().map(|values| row(values)).collect::<Vec<_>>());
        let mut all = cpus.concat();
        all.sort_unstable();
        let Some(reported) = reported else {
            prop_assert!(all.is_empty());
            return Ok(());
        };
        let n = all.len() as f64;
        prop_assert_eq!(reported.count, all.len() as u64);
        prop_assert_eq!(ticks(reported.min), all[0] as f64);
        prop_assert_eq!(ticks(reported.max), all[all.len() - 1] as f64);
        let mean = all.iter().sum::<u64>() as f64 / n;
        let stddev = (all.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / n).sqrt();
        prop_assert!((ticks(reported.mean) - mean).abs() <= 1.0 + mean * 1e-9);
        prop_assert!((ticks(reported.stddev) - stddev).abs() <= 1.0 + stddev.max(mean) * 1e-6);
        let percentiles = [(0.5, reported.p50), (0.9, reported.p90), (0.99, reported.p99), (0.999, reported.p999)];
        for (share, reported) in percentiles {
            let exact = all[((share * n).ceil() as usize).clamp(1, all.len()) - 1] as f64;
            prop_assert!((ticks(reported) - exact).abs() <= 1.0 + exact / 16.0, "{share}: {reported:?}, is {exact}");
        }
    }
}
