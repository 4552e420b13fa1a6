//! The daemon's clock: the only place where the protocols' time comes from.

use linkbraid_proto::Time;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time since the daemon started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// When the runtime is to wake for `time`.
    pub(crate) fn instant(self, time: Time) -> tokio::time::Instant {
        (self.start + Duration::from_nanos(time.0)).into()
    }
}

/// A number that grows with each start of a host: milliseconds since 1970, or more where `last` was: somebody may have set the clock
/// back since, and peers refuse an epoch that is not later than the one they know.
pub(crate) fn epoch(last: u64, now: SystemTime) -> u64 {
    //= docs/arp-plus.md#6.4
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX).max(last.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::epoch;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    //= docs/arp-plus.md#6.4 type=test
    #[test]
    fn an_epoch_is_later_than_the_last_one_whatever_the_clock_says() {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let now = SystemTime::now();
        let first = epoch(0, now);
        let since = now.duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
        assert_eq!(u128::from(first), since);
        assert_eq!(epoch(first, now), first + 1);
        let back = epoch(first, now - YEAR);
        assert_eq!(back, first + 1);
        assert_eq!(epoch(back, UNIX_EPOCH - YEAR), back + 1);
        assert!(epoch(back, now + Duration::from_secs(1)) > first + 900);
        assert_eq!(epoch(u64::MAX, now), u64::MAX);
    }
}
