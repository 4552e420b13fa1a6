use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// One sender that sent a datagram each ten milliseconds, and what of it came at another one, a millisecond later.
fn record(sent: u64, came: impl IntoIterator<Item = u64>) -> DatagramRecord {
    let mut arrivals = Arrivals::default();
    came.into_iter().for_each(|number| arrivals.add(number, MS(number * 10 + 1)));
    let sent = Sent { bursts: (0..sent).map(|number| MS(number * 10)).collect(), ..Sent::default() };
    let heard = Heard { from: vec![arrivals, Arrivals::default()], ..Heard::default() };
    let silent = Heard { from: vec![Arrivals::default(); 2], ..Heard::default() };
    DatagramRecord {
        zero: Instant::now(),
        burst: 1,
        sent: vec![sent, Sent::default()],
        heard: vec![silent, heard],
    }
}

/// What became of those with these numbers: sent, lost, duplicated, reordered.
fn count(record: &DatagramRecord, numbers: Range<u64>) -> [u64; 4] {
    let count = record.way(0, 1).between(MS(numbers.start * 10)..MS(numbers.end * 10));
    [count.sent, count.lost, count.duplicated, count.reordered]
}

#[test]
fn lost_doubled_and_late_ones_are_told_apart() {
    let record = record(20, [0, 1, 3, 2, 3, 6, 6, 6]);
    assert_eq!(count(&record, 0..8), [8, 3, 2, 1], "4, 5 and 7 never came; 3 and 6 came again; 2 came late");
    assert_eq!(count(&record, 0..3), [3, 0, 0, 1]);
    assert_eq!(count(&record, 3..6), [3, 2, 1, 0]);
    assert_eq!(count(&record, 7..20), [13, 13, 0, 0]);
    assert_eq!(count(&record, 5..5), [0; 4]);
    assert_eq!(record.twice(), 3, "each copy counts");
}

#[test]
fn the_last_one_that_is_lost_is_found() {
    let record = record(7, [0, 1, 3, 4]);
    let last = |numbers: Range<u64>| {
        let window = MS(numbers.start * 10)..MS(numbers.end * 10);
        record.way(0, 1).lost(true, |left| window.contains(&left)).last()
    };
    assert_eq!([last(0..5), last(0..7), last(3..5), last(5..5)], [Some(MS(20)), Some(MS(60)), None, None]);
}

#[test]
fn a_datagram_that_came_in_order_and_again_later_is_doubled_and_not_late() {
    assert_eq!(count(&record(2, [0, 1, 0]), 0..2), [2, 0, 1, 0]);
    assert_eq!(count(&record(2, [1, 0, 0]), 0..2), [2, 0, 1, 1]);
}

#[test]
fn what_the_kernel_refused_is_lost_and_said() {
    let mut record = record(4, [0, 2]);
    record.sent[0].refused.insert((3, 1));
    let all = record.way(0, 1).count(|_| true);
    assert_eq!((all.sent, all.lost, all.refused), (4, 2, 1));
    assert_eq!(record.way(0, 1).lost(false, |_| true).collect::<Vec<_>>(), [MS(10)], "it was under way");
    assert_eq!(record.longest_stall(), MS(10));
    assert_eq!(record.way(0, 1).sender_gap(MS(11)..MS(12)), MS(10));
}

#[test]
fn an_old_datagram_is_one_that_left_before_and_came_after() {
    let record = record(4, [0, 1, 2]);
    assert_eq!(record.straddling([0, 1], MS(15), MS(10)), 1);
    assert_eq!(record.straddling([1, 0], MS(25), MS(10)), 2, "either way");
    assert_eq!(record.straddling([0, 1], MS(15), MS(100)), 0);
    assert_eq!(record.way(0, 1).first(MS(5)), Some(MS(11)));
}

#[test]
fn delays_vary_from_that_of_the_fastest_one() {
    let mut record = record(4, [0, 1, 3]);
    record.heard[1].from[0].all[1].at = Some(MS(15));
    let way = record.way(0, 1);
    assert_eq!(way.variations(MS(0)..MS(40)), [MS(0), MS(4), MS(0)], "what is lost has no delay");
    assert_eq!(way.variations(MS(10)..MS(20)), [MS(0)]);
}
