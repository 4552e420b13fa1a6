use super::*;

const PERIOD: Duration = Duration::from_millis(10);

#[test]
fn a_slow_driver_is_left_alone_for_ten_times_as_long() {
    let now = Instant::now();
    let mut pace = Pace::new(PERIOD, now);
    let millis = Duration::from_millis;
    let mut after = |took| {
        pace.took(took);
        pace.pause(now)
    };
    assert_eq!(after(Duration::from_micros(25)), PERIOD);
    // Once slow is no slow driver: somebody else held the lock.
    assert_eq!([after(millis(900)), after(millis(20)), after(millis(20))], [PERIOD; 3]);
    assert_eq!([after(millis(20)), after(millis(30))], [millis(200); 2], "slow each time");
    assert_eq!(after(Duration::from_micros(25)), PERIOD, "and quick again");
    (0..ROUNDS).for_each(|_| _ = after(Duration::from_secs(5)));
    assert_eq!(after(Duration::from_secs(5)), PAUSE_MAX);
}

#[test]
fn it_is_asked_often_after_a_change_and_seldom_otherwise() {
    let start = Instant::now();
    let mut pace = Pace::new(PERIOD, start);
    let tick = Duration::from_nanos(1);
    assert_eq!([pace.pause(start), pace.pause(start + ALERT - tick)], [PERIOD; 2]);
    assert_eq!(pace.pause(start + ALERT), PERIOD * CALM_FACTOR);
    pace.changed = start + ALERT;
    assert_eq!(pace.pause(start + ALERT), PERIOD);
}
