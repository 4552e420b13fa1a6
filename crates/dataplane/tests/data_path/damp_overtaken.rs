//! Frames of one lane that swapped: later data of a hole's lane has arrived, and the hole is filled a moment later.

use crate::damp::{STRIPE, ack, at, block, sent};
use crate::frames::Tcp;
use crate::rig::{LONG, Rig, damping};
use crate::undisturbed::undisturbed;
use linkbraid_dataplane::Damping;
use std::time::Duration;

/// As [`sent`]; what later data of its lane has overtaken may arrive for so long.
fn sent_where_frames_swap(lanes: u8, stripes: u32, overtaking: Duration) -> Rig {
    let mut rig = sent(lanes, stripes);
    rig.change(|bond| bond.damping = Some(Damping { overtaking, ..damping(LONG, LONG) }));
    rig
}

/// So short that it has passed when the next frame comes.
const PASSED: Duration = Duration::from_micros(1);

#[test]
fn what_its_lane_has_overtaken_is_a_loss_only_after_a_while() {
    undisturbed(|| {
        let lost = Tcp::ack(at(0), &[block(1, 5)]);
        let rig = sent_where_frames_swap(4, 12, LONG);
        assert_eq!(ack(&rig, &lost), ("rx_ack_masked", Some(vec![])));
        assert_eq!(ack(&rig, &lost), ("rx_ack_damped", None));
        assert_eq!(ack(&rig, &Tcp::ack(at(5), &[])), ("rx_peer", Some(vec![])), "filled");
        let rig = sent_where_frames_swap(4, 12, PASSED);
        assert_eq!(ack(&rig, &lost), ("rx_ack_masked", Some(vec![])));
        assert_eq!(ack(&rig, &lost), ("rx_ack_lost", Some(vec![block(1, 5)])));
    });
}

#[test]
fn a_stripes_beginning_may_arrive_after_its_end() {
    undisturbed(|| {
        let end = (at(0) + STRIPE / 2, at(1));
        let swapped = Tcp::ack(at(0), &[end]);
        let rig = sent_where_frames_swap(4, 8, PASSED);
        assert_eq!(ack(&rig, &swapped), ("rx_ack_masked", Some(vec![])));
        assert_eq!(ack(&rig, &swapped), ("rx_ack_lost", Some(vec![end])));
        // The same where its beginning has arrived before, and a part in the middle is missing.
        let rig = sent_where_frames_swap(4, 8, PASSED);
        let inside = Tcp::ack(at(0) + STRIPE / 4, &[end]);
        assert_eq!(ack(&rig, &inside), ("rx_ack_masked", Some(vec![])));
        assert_eq!(ack(&rig, &inside), ("rx_ack_lost", Some(vec![end])));
    });
}

#[test]
fn a_hole_inside_a_stripe_that_goes_on_hides_what_is_above_it() {
    undisturbed(|| {
        // Stripe 0 is a loss. Of stripe 5 a part is missing between its beginning and what has arrived last.
        let rig = sent_where_frames_swap(4, 12, Duration::ZERO);
        let begun = (at(1), at(5) + STRIPE / 4);
        let beyond = (at(5) + STRIPE / 2, at(5) + 3 * STRIPE / 4);
        assert_eq!(ack(&rig, &Tcp::ack(at(0), &[beyond, begun])), ("rx_ack_lost", Some(vec![begun])));
    });
}

#[test]
fn the_wait_begins_anew_once_everything_overtaken_has_arrived() {
    undisturbed(|| {
        let rig = sent_where_frames_swap(4, 20, PASSED);
        assert_eq!(ack(&rig, &Tcp::ack(at(0), &[block(1, 5)])), ("rx_ack_masked", Some(vec![])));
        assert_eq!(ack(&rig, &Tcp::ack(at(5), &[block(6, 7)])), ("rx_ack_masked", Some(vec![])), "filled");
        let later = Tcp::ack(at(5), &[block(6, 10)]);
        assert_eq!(ack(&rig, &later), ("rx_ack_damped", None));
        assert_eq!(ack(&rig, &later), ("rx_ack_lost", Some(vec![block(6, 10)])));
    });
}

#[test]
fn with_little_still_to_arrive_nobody_waits() {
    undisturbed(|| {
        let told = |end| ("rx_ack_lost", Some(vec![block(1, end)]));
        // Stripe 0 is missing, and five, four, or none that left later.
        for (stripes, end, expected) in
            [(10, 5, ("rx_ack_masked", Some(vec![]))), (9, 5, told(5)), (20, 20, told(20))]
        {
            let rig = sent_where_frames_swap(4, stripes, LONG);
            assert_eq!(ack(&rig, &Tcp::ack(at(0), &[block(1, end)])), expected, "{end} of {stripes}");
        }
    });
}
