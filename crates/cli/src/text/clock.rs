//! Moments in the local time of the machine.

use nix::libc;
use std::mem::MaybeUninit;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY_S: i64 = 86_400;

/// What "now" and "here" mean.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Milliseconds since 1970 (UTC).
    now_ms: u64,
    /// Seconds that local time is ahead of UTC at a time given in seconds since 1970.
    ahead: fn(i64) -> i64,
}

impl Clock {
    /// This moment, in the time zone of this process (`TZ`, or /etc/localtime).
    pub fn local() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { now_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX), ahead: local_ahead }
    }

    /// Another moment and place, for tests.
    #[cfg(test)]
    pub fn fixed(now_ms: u64, ahead: fn(i64) -> i64) -> Self {
        Self { now_ms, ahead }
    }

    /// `12:00:01.234`.
    pub fn time(&self, time_ms: u64) -> String {
        let second = self.local_second(time_ms).rem_euclid(DAY_S);
        let (hour, minute, ms) = (second / 3600, second / 60 % 60, time_ms % 1000);
        format!("{hour:02}:{minute:02}:{:02}.{ms:03}", second % 60)
    }

    /// The time alone for a moment of this day, `2026-11-20 12:00:01.234` for others.
    pub fn moment(&self, time_ms: u64) -> String {
        let day = |ms| self.local_second(ms).div_euclid(DAY_S);
        if day(time_ms) == day(self.now_ms) {
            return self.time(time_ms);
        }
        let (year, month, date) = date(day(time_ms));
        format!("{year:04}-{month:02}-{date:02} {}", self.time(time_ms))
    }

    fn local_second(&self, time_ms: u64) -> i64 {
        // A u64 of milliseconds is an i64 of seconds always.
        let second = (time_ms / 1000) as i64;
        second + (self.ahead)(second)
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Days are counted from 0000-03-01, so that a leap day ends its year, in eras of 400 years, which are all alike.
fn date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // 153 days are the five months from March to July, and again from August to December.
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

/// Seconds that local time is ahead of UTC then; 0 where the C library cannot tell.
fn local_ahead(second: i64) -> i64 {
    let mut local = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid for the call, and all-zero bytes are a `tm` (numbers and a pointer that may be
    // null). The C library alone knows the time zone, and nothing here sets the environment while other threads run.
    let local = unsafe {
        if libc::localtime_r(&second, local.as_mut_ptr()).is_null() {
            return 0;
        }
        local.assume_init()
    };
    local.tm_gmtoff
}

#[cfg(test)]
mod tests;
