use super::{Clock, date};

/// 2026-11-20 12:00:01.234 UTC.
const NOON_MS: u64 = 1_795_176_001_234;

fn utc(_: i64) -> i64 {
    0
}

fn kathmandu(_: i64) -> i64 {
    (5 * 60 + 45) * 60
}

fn new_york(_: i64) -> i64 {
    -5 * 3600
}

#[test]
fn times_are_local_with_milliseconds() {
    assert_eq!(Clock::fixed(NOON_MS, utc).time(NOON_MS), "12:00:01.234");
    assert_eq!(Clock::fixed(NOON_MS, kathmandu).time(NOON_MS), "17:45:01.234");
    assert_eq!(Clock::fixed(NOON_MS, new_york).time(NOON_MS), "07:00:01.234");
    assert_eq!(Clock::fixed(NOON_MS, new_york).time(0), "19:00:00.000");
}

#[test]
fn only_other_days_are_dated_and_the_day_is_the_local_one() {
    let half_a_day = 12 * 3600 * 1000;
    let clock = Clock::fixed(NOON_MS, utc);
    assert_eq!(clock.moment(NOON_MS - half_a_day), "00:00:01.234");
    assert_eq!(clock.moment(NOON_MS - half_a_day - 2000), "2026-11-19 23:59:59.234");
    assert_eq!(clock.moment(NOON_MS + half_a_day), "2026-11-21 00:00:01.234");
    // In Kathmandu that day is over 5:45 hours earlier.
    assert_eq!(Clock::fixed(NOON_MS, kathmandu).moment(NOON_MS + half_a_day), "2026-11-21 05:45:01.234");
    assert_eq!(Clock::fixed(NOON_MS, new_york).moment(NOON_MS + half_a_day), "19:00:01.234");
}

#[test]
fn dates_follow_the_calendar() {
    for (day, expected) in [
        (0, (1970, 1, 1)),
        (-1, (1969, 12, 31)),
        (58, (1970, 2, 28)),
        (59, (1970, 3, 1)),
        (11_016, (2000, 2, 29)),
        (11_017, (2000, 3, 1)),
        (20_777, (2026, 11, 20)),
        (47_540, (2100, 2, 28)),
        (47_541, (2100, 3, 1)),
    ] {
        assert_eq!(date(day), expected, "{day}");
    }
}

#[test]
fn the_days_of_a_century_follow_each_other() {
    let (mut year, mut month, mut day) = (1970, 1, 1);
    for count in 0..40_000 {
        assert_eq!(date(count), (year, month, day));
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        day += 1;
        if day > days {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
}

#[test]
fn no_time_that_a_daemon_can_tell_is_too_large() {
    for ms in [0, 1, u64::MAX / 2, u64::MAX] {
        let clock = Clock::local();
        assert_eq!(clock.time(ms).len(), 12);
        assert!(clock.moment(ms).ends_with(&clock.time(ms)));
    }
}
