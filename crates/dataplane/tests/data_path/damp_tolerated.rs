//! Damping where TCP waits by itself: flows whose round trip is long against what lanes differ by.

use crate::damp::{ack, at, block, send_some, sent};
use crate::frames::Tcp;
use crate::rig::Rig;
use crate::undisturbed::{pass, undisturbed};
use std::time::Duration;

/// RACK's quarter of it is longer than a hole that is not late takes to fill.
const LONG_TRIP: Duration = Duration::from_millis(26);
/// A quarter of it is less.
const SHORT_TRIP: Duration = Duration::from_millis(20);

/// Stripes 0 to 4 were acknowledged after `trip`, and 5 to 15 have left.
fn acknowledged_after(trip: Duration) -> Rig {
    let rig = sent(4, 8);
    pass(trip);
    // It counts when the ACK before it is not long ago.
    for n in [1, 5] {
        assert_eq!(ack(&rig, &Tcp::ack(at(n), &[])).0, "rx_peer");
    }
    send_some(&rig, at(8), 8);
    rig
}

/// A hole at `n` fills after `time`.
fn fills_after(rig: &Rig, n: u32, time: Duration) {
    ack(rig, &Tcp::ack(at(n), &[block(n + 1, n + 2)]));
    pass(time);
    assert_eq!(ack(rig, &Tcp::ack(at(n + 2), &[])).0, "rx_peer");
}

#[test]
fn tcp_hears_all_where_its_round_trip_is_long() {
    undisturbed(|| {
        let rig = acknowledged_after(LONG_TRIP);
        for arrived in [block(6, 7), block(6, 8)] {
            assert_eq!(ack(&rig, &Tcp::ack(at(5), &[arrived])), ("rx_ack_tolerated", Some(vec![arrived])));
        }
        // With a new window, too.
        let arrived = block(9, 10);
        assert_eq!(ack(&rig, &Tcp::ack(at(8), &[arrived])), ("rx_ack_tolerated", Some(vec![arrived])));
    });
}

#[test]
fn a_proven_loss_is_counted_as_one_where_the_round_trip_is_long() {
    undisturbed(|| {
        let rig = acknowledged_after(LONG_TRIP);
        // 9 proves that 5 is lost; 7 is on its way, and TCP knows better than to send it again.
        let blocks = [block(9, 10), block(6, 7)];
        assert_eq!(ack(&rig, &Tcp::ack(at(5), &blocks)), ("rx_ack_lost", Some(blocks.to_vec())));
    });
}

#[test]
fn tcp_is_protected_where_its_round_trip_is_short() {
    undisturbed(|| {
        let rig = acknowledged_after(SHORT_TRIP);
        assert_eq!(ack(&rig, &Tcp::ack(at(5), &[block(6, 7)])), ("rx_ack_masked", Some(vec![])));
    });
}

#[test]
fn tcp_is_protected_where_lanes_differ_by_more_than_it_waits() {
    undisturbed(|| {
        let rig = acknowledged_after(LONG_TRIP);
        fills_after(&rig, 5, LONG_TRIP / 3);
        assert_eq!(ack(&rig, &Tcp::ack(at(7), &[block(8, 9)])).0, "rx_ack_tolerated");
        assert_eq!(ack(&rig, &Tcp::ack(at(9), &[])).0, "rx_peer");
        fills_after(&rig, 9, LONG_TRIP * 2 / 3);
        assert_eq!(ack(&rig, &Tcp::ack(at(11), &[block(12, 13)])), ("rx_ack_masked", Some(vec![])));
    });
}

#[test]
fn one_duplicate_changes_nothing_and_many_say_that_the_least_round_trip_was_wrong() {
    undisturbed(|| {
        let rig = acknowledged_after(LONG_TRIP);
        let (duplicate, arrived) = ((at(3), at(4)), block(6, 7));
        let reports = |times| {
            for _ in 0..times {
                assert_eq!(ack(&rig, &Tcp::ack(at(5), &[duplicate, arrived])).0, "rx_ack_dsack");
            }
            ack(&rig, &Tcp::ack(at(5), &[block(6, 8)])).0
        };
        assert_eq!(reports(1), "rx_ack_tolerated");
        // Each takes a 32nd off it, and it is at most twice as long as it was asked for.
        assert_eq!(reports(32), "rx_ack_damped");
    });
}
