//! How long messages take to other nodes and back.

use hdrhistogram::Histogram;
use linkbraid_api::{LatencyBucket, RoundTripRecord};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

/// The longest time that is distinguished from longer ones: a question is given up when the next one leaves.
const LONGEST: Duration = Duration::from_secs(10);
/// Digits that are kept of each.
const DIGITS: u8 = 2;

/// A histogram for each node that answered once, some 20 KB, and the sum of what is in it.
#[derive(Debug, Default)]
pub(super) struct Trips(BTreeMap<u16, (Histogram<u64>, u64)>);

impl Trips {
    /// One more.
    pub(super) fn add(&mut self, node: u16, took: Duration) {
        let longest = LONGEST.as_nanos() as u64;
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(longest).clamp(1, longest);
        let (histogram, sum) = match self.0.entry(node) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                // Bounds and digits are good ones.
                let Ok(made) = Histogram::new_with_bounds(1, longest, DIGITS) else { return };
                new.insert((made, 0))
            }
        };
        histogram.saturating_record(nanos);
        *sum += nanos;
    }

    /// What is known of a node; none before its first answer.
    pub(super) fn of(&self, node: u16) -> Option<RoundTripRecord> {
        let (histogram, sum) = self.0.get(&node)?;
        Some(RoundTripRecord {
            count: histogram.len(),
            min_ns: histogram.min(),
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
            sum_ns: *sum,
            histogram: buckets(histogram),
        })
    }
}

/// By powers of two, which no cell of the histogram crosses.
fn buckets(histogram: &Histogram<u64>) -> Vec<LatencyBucket> {
    let mut buckets: Vec<LatencyBucket> = Vec::new();
    for cell in histogram.iter_recorded() {
        let below_ns = (cell.value_iterated_to() + 1).next_power_of_two();
        let count = cell.count_at_value();
        match buckets.last_mut() {
            Some(last) if last.below_ns == below_ns => last.count += count,
            _ => buckets.push(LatencyBucket { below_ns, count }),
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_measured() {
        let mut trips = Trips::default();
        assert_eq!(trips.of(1), None);
        (1..=100).for_each(|micros| trips.add(1, Duration::from_micros(micros)));
        trips.add(2, Duration::from_secs(1000));
        let record = trips.of(1).expect("measured");
        let near = |nanos: u64, micros: u64| nanos.abs_diff(micros * 1000) <= micros * 10;
        assert_eq!((record.count, record.sum_ns), (100, 5_050_000));
        assert!(near(record.min_ns, 1) && near(record.p50_ns, 50) && near(record.p90_ns, 90), "{record:?}");
        assert!(near(record.p99_ns, 99) && near(record.max_ns, 100), "{record:?}");
        assert!(near(record.p999_ns, 100), "{record:?}");
        assert!(near(trips.of(2).expect("measured").max_ns, 10_000_000));
    }
    #[test]
    fn buckets_end_below_powers_of_two_and_leave_nothing_out() {
        let mut trips = Trips::default();
        let took = [1, 1023, 1024, 1025, 2047, 2048, 65_535, 65_536, 3_000_000_000];
        took.iter().for_each(|nanos| trips.add(1, Duration::from_nanos(*nanos)));
        let buckets = trips.of(1).expect("measured").histogram;
        let buckets: Vec<_> = buckets.iter().map(|bucket| (bucket.below_ns, bucket.count)).collect();
        let last = (1 << 32, 1);
        assert_eq!(buckets, [(2, 1), (1024, 1), (2048, 3), (4096, 1), (65_536, 1), (131_072, 1), last]);
    }
}
