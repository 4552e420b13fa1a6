//! The time of day as a name: `20250102T030405Z`.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, UTC.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    name(since.as_secs())
}

/// A time in seconds since 1970.
fn name(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_the_calendar() {
        // Reference values of `date -u -d @N +%Y%m%dT%H%M%SZ`.
        assert_eq!(name(0), "19700101T000000Z");
        assert_eq!(name(951_782_399), "20000228T235959Z");
        assert_eq!(name(951_782_400), "20000229T000000Z");
        assert_eq!(name(1_735_689_599), "20241231T235959Z");
        assert_eq!(name(4_107_542_400), "21000301T000000Z");
    }
}
