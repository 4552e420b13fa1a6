//! Percentiles of many times, from a histogram: HdrHistogram, exact to a thousandth.

use hdrhistogram::Histogram;
use linkbraid_api::Error;
use std::ops::Deref;
use std::time::Duration;

/// The longest time that differs from longer ones.
const LONGEST: Duration = Duration::from_secs(60);
const DIGITS: u8 = 3;
/// Bars for people: the first ends at 1 us, each next one a tenth later.
const FIRST_BIN_NS: u64 = 1000;
const BIN_GROWTH: f64 = 1.1;

#[derive(Debug, Clone)]
pub struct Percentiles(Histogram<u64>);

impl Deref for Percentiles {
    type Target = Histogram<u64>;

    fn deref(&self) -> &Histogram<u64> {
        &self.0
    }
}

impl Percentiles {
    pub fn new() -> Result<Self, Error> {
        let longest = u64::try_from(LONGEST.as_nanos()).unwrap_or(u64::MAX);
        Histogram::new_with_bounds(1, longest, DIGITS)
            .map(Self)
            .map_err(|e| Error::new("percentiles", "cannot make a histogram", e.to_string()))
    }

    pub fn of(times: impl IntoIterator<Item = Duration>) -> Result<Self, Error> {
        let mut percentiles = Self::new()?;
        times.into_iter().for_each(|time| percentiles.add(time));
        Ok(percentiles)
    }

    pub fn add(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Takes all of another one in.
    pub fn join(&mut self, other: &Self) -> Result<(), Error> {
        let joined = self.0.add(&other.0);
        joined.map_err(|e| Error::new("percentiles", "cannot join two histograms", e.to_string()))
    }

    /// The time that this share of them is at most, in microseconds; 0 of none.
    pub fn at_us(&self, share: f64) -> f64 {
        us(self.0.value_at_quantile(share))
    }

    /// All of them as bars, empty ones left out: the longest time that each has, in microseconds, and how many it has. The
    /// next bar ends a tenth later.
    pub fn bins(&self) -> Vec<(f64, f64)> {
        let bars = self.0.iter_log(FIRST_BIN_NS, BIN_GROWTH);
        let bars = bars.filter(|bar| bar.count_since_last_iteration() > 0);
        bars.map(|bar| (us(bar.value_iterated_to()), bar.count_since_last_iteration() as f64)).collect()
    }
}

/// Microseconds of what a histogram holds.
pub fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests;
