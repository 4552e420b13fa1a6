use super::Clock;
use jiff::tz::TimeZone;

/// 2026-11-20 12:00:01.234 UTC.
const NOON_MS: u64 = 1_795_176_001_234;

const UTC: TimeZone = TimeZone::UTC;

fn kathmandu() -> TimeZone {
    TimeZone::posix("<+0545>-5:45").unwrap()
}

fn new_york() -> TimeZone {
    TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap()
}

#[test]
fn times_are_local_with_milliseconds() {
    assert_eq!(Clock::fixed(NOON_MS, UTC).time(NOON_MS), "12:00:01.234");
    assert_eq!(Clock::fixed(NOON_MS, kathmandu()).time(NOON_MS), "17:45:01.234");
    assert_eq!(Clock::fixed(NOON_MS, new_york()).time(NOON_MS), "07:00:01.234");
    assert_eq!(Clock::fixed(NOON_MS, new_york()).time(0), "19:00:00.000");
}

#[test]
fn only_other_days_are_dated_and_the_day_is_the_local_one() {
    let half_a_day = 12 * 3600 * 1000;
    let clock = Clock::fixed(NOON_MS, UTC);
    assert_eq!(clock.moment(NOON_MS - half_a_day), "00:00:01.234");
    assert_eq!(clock.moment(NOON_MS - half_a_day - 2000), "2026-11-19 23:59:59.234");
    assert_eq!(clock.moment(NOON_MS + half_a_day), "2026-11-21 00:00:01.234");
    // In Kathmandu that day is over 5:45 hours earlier.
    assert_eq!(Clock::fixed(NOON_MS, kathmandu()).moment(NOON_MS + half_a_day), "2026-11-21 05:45:01.234");
    assert_eq!(Clock::fixed(NOON_MS, new_york()).moment(NOON_MS + half_a_day), "19:00:01.234");
}

#[test]
fn summer_time_counts_where_it_is_kept() {
    // 2026-07-20 12:00 UTC.
    assert_eq!(Clock::fixed(NOON_MS, new_york()).moment(1_784_548_800_000), "2026-07-20 08:00:00.000");
}

#[test]
fn no_time_that_a_daemon_can_tell_is_too_large() {
    for ms in [0, 1, u64::MAX / 2, u64::MAX] {
        let clock = Clock::local();
        assert_eq!(clock.time(ms).len(), 12);
        assert!(clock.moment(ms).ends_with(&clock.time(ms)));
    }
}
