//! Moments in the local time of the machine.

#[cfg(test)]
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// What "now" and "here" mean.
#[derive(Debug, Clone)]
pub struct Clock {
    now: Zoned,
}

impl Clock {
    /// This moment, in the time zone of this process (`TZ`, or /etc/localtime).
    pub fn local() -> Self {
        Self { now: Zoned::now() }
    }

    /// Another moment and place, for tests.
    #[cfg(test)]
    pub fn fixed(now_ms: u64, zone: TimeZone) -> Self {
        Self { now: timestamp(now_ms).to_zoned(zone) }
    }

    /// `12:00:01.234`.
    pub fn time(&self, time_ms: u64) -> String {
        self.here(time_ms).strftime("%H:%M:%S%.3f").to_string()
    }

    /// `12:00:01`, now.
    pub fn now(&self) -> String {
        self.now.strftime("%H:%M:%S").to_string()
    }

    /// The time alone for a moment of this day, `2026-11-20 12:00:01.234` for others.
    pub fn moment(&self, time_ms: u64) -> String {
        let moment = self.here(time_ms);
        let format = if moment.date() == self.now.date() { "%H:%M:%S%.3f" } else { "%Y-%m-%d %H:%M:%S%.3f" };
        moment.strftime(format).to_string()
    }

    fn here(&self, time_ms: u64) -> Zoned {
        timestamp(time_ms).to_zoned(self.now.time_zone().clone())
    }
}

/// A time beyond the year 9999 is shown as the last moment of that.
fn timestamp(ms: u64) -> Timestamp {
    i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
