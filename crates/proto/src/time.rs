//! Time as the state machines see it.

use serde::{Deserialize, Serialize};
use std::{ops::Add, time::Duration};

/// Nanoseconds since some start that all inputs of one machine share; never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Time(pub u64);

impl Time {
    /// The start.
    pub const ZERO: Time = Time(0);

    /// That many milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1_000_000))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// That much earlier, but not before the start.
    pub const fn minus(self, duration: Duration) -> Time {
        Time((self.0 as u128).saturating_sub(duration.as_nanos()) as u64)
    }

    /// How long until `later`; zero if it has passed.
    pub const fn until(self, later: Time) -> Duration {
        later.since(self)
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Later by that much; stops at the end of time (584 years) instead of wrapping.
    fn add(self, duration: Duration) -> Time {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::Time;
    use std::time::Duration;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let (early, late) = (Time::from_millis(2), Time::from_millis(5));
        assert_eq!(late.since(early), Duration::from_millis(3));
        assert_eq!(early.until(late), Duration::from_millis(3));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(late.minus(Duration::from_millis(3)), early);
        assert_eq!(early.minus(Duration::MAX), Time::ZERO);
        assert_eq!(Time(u64::MAX) + Duration::from_secs(1), Time(u64::MAX));
        assert_eq!(Time::ZERO + Duration::MAX, Time(u64::MAX));
    }
}
