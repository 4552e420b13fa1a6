//! Lanes that deliver late, ACK by ACK.

use crate::damp::{LATE, ack, at, block, send_anywhere, sent};
use crate::frames::Tcp;
use crate::rig::Rig;
use crate::undisturbed::{pass, undisturbed};
use std::time::{Duration, Instant};

/// Any penalty of these tests is over by then.
const PAUSE: Duration = Duration::from_secs(5);

/// Acknowledges stripes `from` to `to` with a hole at the first of them on lane 0, which fills when it is `late`.
/// `is_lost`: everything behind the hole arrives, later data of lane 0 too, so the hole is a proven loss.
fn fill_late(rig: &Rig, from: u32, lanes: &[usize], late: Duration, is_lost: bool) {
    let to = from + lanes.len() as u32;
    let hole = from + lanes.iter().position(|lane| *lane == 0).expect("lane 0 took part") as u32;
    let next = lanes[(hole - from) as usize + 1..].iter().position(|lane| *lane == 0);
    let end = if is_lost { to } else { next.map_or(to, |next| hole + 1 + next as u32) };
    ack(rig, &Tcp::ack(at(hole), &[block(hole + 1, end)]));
    pass(late);
    ack(rig, &Tcp::ack(at(to), &[]));
}

/// How many of 400 stripes leave over lane 0, from stripe `from` on.
fn share_of_lane_0(rig: &Rig, from: u32) -> usize {
    send_anywhere(rig, at(from), 400).iter().filter(|lane| **lane == 0).count()
}

/// Four lanes, of which lane 0 was late four times and gets less for that; the next stripe.
fn late() -> (Rig, u32) {
    let rig = sent(4, 12);
    // Its way is as short as the others'. The first ACK alone would not say so.
    let mut next = 12;
    ack(&rig, &Tcp::ack(at(4), &[]));
    ack(&rig, &Tcp::ack(at(next), &[]));
    for _ in 0..4 {
        let lanes = send_anywhere(&rig, at(next), 12);
        fill_late(&rig, next, &lanes, 2 * LATE, false);
        next += 12;
    }
    let share = share_of_lane_0(&rig, next);
    assert!(share < 80, "{share} of 400 went over the late lane");
    assert!(share > 8, "{share} of 400: the late lane must still be tried");
    (rig, next + 400)
}

#[test]
fn a_lane_that_is_late_gets_less_and_in_time_as_much_as_before() {
    undisturbed(|| {
        let (rig, mut next) = late();
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            ack(&rig, &Tcp::ack(at(next), &[]));
            let share = share_of_lane_0(&rig, next);
            next += 400;
            if (98..=102).contains(&share) {
                break;
            }
            assert!(Instant::now() < deadline, "{share} of 400 after 20 s");
        }
    });
}

#[test]
fn a_pause_ends_what_lateness_cost() {
    undisturbed(|| {
        let (rig, next) = late();
        // It is charged what its penalty says, and the penalty is over before the others have caught up.
        ack(&rig, &Tcp::ack(at(next), &[]));
        pass(PAUSE);
        ack(&rig, &Tcp::ack(at(next), &[]));
        let share = share_of_lane_0(&rig, next);
        assert!(share > 90, "{share} of 400 after {PAUSE:?}");
    });
}

#[test]
fn a_lane_whose_way_is_longer_is_late_only_beyond_that() {
    undisturbed(|| {
        let rig = sent(4, 0);
        let mut next = 0;
        let mut share = |late| {
            for _ in 0..4 {
                let lanes = send_anywhere(&rig, at(next), 12);
                fill_late(&rig, next, &lanes, late, false);
                next += 12;
            }
            let share = share_of_lane_0(&rig, next);
            next += 400;
            ack(&rig, &Tcp::ack(at(next), &[]));
            share
        };
        let usual = share(LATE);
        assert!(usual > 80, "{usual} of 400");
        let late = share(4 * LATE);
        assert!(late < 80, "{late} of 400");
    });
}

#[test]
fn a_lane_with_losses_is_not_late() {
    undisturbed(|| {
        let rig = sent(4, 0);
        for round in 0..4 {
            let lanes = send_anywhere(&rig, at(12 * round), 12);
            fill_late(&rig, 12 * round, &lanes, LATE, true);
        }
        let share = share_of_lane_0(&rig, 48);
        assert!((97..=103).contains(&share), "{share} of 400");
    });
}
