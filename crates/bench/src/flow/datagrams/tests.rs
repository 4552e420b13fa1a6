use super::*;

fn arrived(numbers: impl IntoIterator<Item = u64>) -> Datagrams {
    let mut datagrams = Datagrams::default();
    numbers.into_iter().for_each(|number| datagrams.arrived(number));
    datagrams
}

#[test]
fn lost_doubled_and_late_ones_are_told_apart() {
    let datagrams = arrived([0, 1, 3, 2, 3, 6, 6, 6]);
    let all = Count { sent: 8, lost: 3, duplicated: 2, reordered: 1 };
    assert_eq!(datagrams.count(0..8), all, "4, 5 and 7 never came; 3 and 6 came again; 2 came late");
    assert_eq!(datagrams.count(0..3), Count { sent: 3, lost: 0, duplicated: 0, reordered: 1 });
    assert_eq!(datagrams.count(3..6), Count { sent: 3, lost: 2, duplicated: 1, reordered: 0 });
    assert_eq!(datagrams.count(7..20), Count { sent: 13, lost: 13, duplicated: 0, reordered: 0 });
    assert_eq!(datagrams.count(5..5), Count::default());
}

#[test]
fn the_last_one_that_is_lost_is_found() {
    let datagrams = arrived([0, 1, 3, 4]);
    assert_eq!(datagrams.last_lost(0..5), Some(2));
    assert_eq!(datagrams.last_lost(0..7), Some(6));
    assert_eq!(datagrams.last_lost(3..5), None);
    assert_eq!(datagrams.last_lost(5..5), None);
}

#[test]
fn a_datagram_that_came_in_order_and_again_later_is_doubled_and_not_late() {
    assert_eq!(arrived([0, 1, 0]).count(0..2), Count { sent: 2, lost: 0, duplicated: 1, reordered: 0 });
    assert_eq!(arrived([1, 0, 0]).count(0..2), Count { sent: 2, lost: 0, duplicated: 1, reordered: 1 });
}

#[test]
fn neither_a_number_nor_copies_beyond_the_limit_are_taken_in() {
    let datagrams = arrived([NUMBERS_MAX, u64::MAX, 0]);
    assert_eq!(datagrams.marks.len(), 1);
    let many = arrived(std::iter::repeat_n(0, 1000));
    assert_eq!(many.count(0..1), Count { sent: 1, lost: 0, duplicated: 1, reordered: 0 });
}
