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

/// A number that grows with each start of a host: milliseconds since 1970.
pub(crate) fn epoch() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
