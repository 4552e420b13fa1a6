//! Damping where TCP waits by itself: flows whose round trip is long against what lanes differ by.

use crate::damp::{STRIPE, ack, at, block, send_some, sent};
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
fn tcp_is_protected_after_a_duplicate_that_its_waiting_did_not_prevent() {
    undisturbed(|| {
        let rig = acknowledged_after(LONG_TRIP);
        fills_after(&rig, 5, LONG_TRIP / 3);
        let arrived = block(8, 9);
        assert_eq!(ack(&rig, &Tcp::ack(at(7), &[arrived])).0, "rx_ack_tolerated");
        let duplicate = (at(6), at(6) + STRIPE);
        assert_eq!(ack(&rig, &Tcp::ack(at(7), &[duplicate, arrived])).0, "rx_ack_dsack");
        assert_eq!(ack(&rig, &Tcp::ack(at(7), &[block(8, 10)])), ("rx_ack_damped", None));
    });
}

#[test]
fn a_duplicate_says_that_the_least_round_trip_may_be_less() {
    undisturbed(|| {
        let rig = acknowledged_after(LONG_TRIP);
        let arrived = block(6, 7);
        assert_eq!(ack(&rig, &Tcp::ack(at(5), &[arrived])).0, "rx_ack_tolerated");
        // Twice, as a busy machine makes the round trip longer than it was asked for.
        for _ in 0..2 {
            assert_eq!(ack(&rig, &Tcp::ack(at(5), &[(at(3), at(4)), arrived])).0, "rx_ack_dsack");
            ack(&rig, &Tcp::ack(at(5), &[arrived]));
        }
        // What lanes differ by would be a third of it.
        assert_eq!(ack(&rig, &Tcp::ack(at(5), &[block(6, 8)])), ("rx_ack_damped", None));
    });
}
