//! Medians and ratios of repeated runs.

use serde::{Deserialize, Serialize};

/// Repeated values: their median, and the smallest and the largest of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle value; of an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl Spread {
    /// Of some values; `None` if there are none, or if one is not a finite number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        if sorted.iter().any(|value| !value.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        };
        Some(Self { median, min, max })
    }

    /// Of a value that was taken once.
    pub fn one(value: f64) -> Self {
        Self { median: value, min: value, max: value }
    }

    /// All three divided by a number.
    #[must_use]
    pub fn over(self, divisor: f64) -> Self {
        Self { median: self.median / divisor, min: self.min / divisor, max: self.max / divisor }
    }
}

/// Parts of a whole; empty if the whole is nothing.
pub fn shares(parts: &[u64]) -> Vec<f64> {
    let whole: u64 = parts.iter().sum();
    if whole == 0 {
        return Vec::new();
    }
    parts.iter().map(|part| *part as f64 / whole as f64).collect()
}

/// How far shares are from those that rates call for: each is divided by its rate's part of all rates, and of the
/// quotients it is the largest less the smallest. 0 is a perfect spread. `None` for fewer than two, or where the numbers
/// of shares and rates differ.
pub fn imbalance(shares: &[f64], rates: &[u32]) -> Option<f64> {
    if shares.len() < 2 || shares.len() != rates.len() {
        return None;
    }
    let all: f64 = rates.iter().map(|rate| f64::from(*rate)).sum();
    let spread = Spread::of(shares.iter().zip(rates).map(|(share, rate)| share * all / f64::from(*rate)))?;
    Some(spread.max - spread.min)
}

#[cfg(test)]
mod tests;
