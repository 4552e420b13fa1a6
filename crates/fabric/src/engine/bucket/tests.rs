use super::*;

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_burst_passes_then_the_rate() {
    let mut bucket = Bucket::new(1_000, 50);
    let at = 5 * SECOND;
    assert_eq!((0..100).filter(|_| bucket.take(at)).count(), 50);
    let passed = (0..SECOND).step_by(10_000).filter(|later| bucket.take(at + later)).count();
    assert!((999..=1_000).contains(&passed), "{passed}");
}

#[test]
fn a_rate_of_nothing_is_no_limit() {
    let mut bucket = Bucket::new(0, 0);
    assert!((0..1_000_000).all(|_| bucket.take(0)));
}

#[test]
fn a_long_silence_saves_no_more_than_a_burst() {
    let mut bucket = Bucket::new(10, 3);
    for at in [0, u64::MAX / 2, u64::MAX] {
        assert_eq!((0..10).filter(|_| bucket.take(at)).count(), 3);
    }
}
