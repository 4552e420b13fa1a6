//! How many hosts may enter the table in a short time: [`limits::JOINS_AT_ONCE`], and [`limits::JOIN_RATE`] a second.

use crate::{Time, limits};
use std::time::Duration;

/// A token bucket.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Joins {
    /// The bucket is full again at that time.
    full_at: Time,
}

impl Joins {
    const TOKEN: Duration = Duration::from_nanos(1_000_000_000 / limits::JOIN_RATE as u64);

    /// Whether one more may enter.
    pub fn has_room(&self, now: Time) -> bool {
        now.until(self.full_at.max(now) + Self::TOKEN) <= Self::TOKEN * limits::JOINS_AT_ONCE
    }

    /// One has entered.
    pub fn one(&mut self, now: Time) {
        self.full_at = self.full_at.max(now) + Self::TOKEN;
    }
}
