use super::*;

const MS: Duration = Duration::from_millis(1);

fn trips() -> Trips {
    let mut trips = Trips::default();
    (0..6).for_each(|i| trips.leaves(MS * i));
    for (number, at) in [(0, 1), (2, 3), (3, 9), (5, 6), (5, 7), (6, 7)] {
        trips.is_back(number, MS * at);
    }
    trips
}

#[test]
fn a_message_is_back_once() {
    let trips = trips();
    assert_eq!((trips.sent(), trips.outstanding(), trips.twice), (6, 2, 1));
    let took: Vec<_> = trips.between(Duration::ZERO, MS * 9).iter().map(|trip| trip.took).collect();
    assert_eq!(took, [Some(MS), None, Some(MS), Some(MS * 6), None, Some(MS)]);
}

#[test]
fn lost_and_late_are_counted_by_when_they_were_sent() {
    let trips = trips();
    let all = trips.count(Duration::ZERO, MS * 9, MS * 2);
    assert_eq!(all, Count { sent: 6, lost: 2, late: 1, max_us: 6000.0, last_bad_ms: Some(4.0) });
    let none = trips.count(MS * 2, MS * 3, MS);
    assert_eq!(none, Count { sent: 1, max_us: 1000.0, ..Count::default() });
    assert_eq!(trips.count(MS * 5, MS * 2, MS), Count::default(), "a window that ends before it begins");
}
