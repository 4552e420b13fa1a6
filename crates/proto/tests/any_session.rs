//! Random courses through the steps of the fuzz target `session`, on an ordinary toolchain.

#[path = "../../../fuzz/steps/session.rs"]
mod steps;

use proptest::prelude::*;

proptest! {
    #[test]
    fn any_course_breaks_no_rule(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        steps::run(&bytes);
    }
}

#[test]
fn courses_bring_links_up_and_down() {
    // Time, then ACCEPTs that echo what was said last, of two epochs of node 0: up, in doubt, up with the other.
    let course = [0, 1, 4, 1, 4, 64, 4, 65, 0, 255, 4, 1, 4, 65];
    assert!(steps::run(&course) >= 2, "came up {} times", steps::run(&course));
}

#[test]
fn an_answer_that_no_longer_fits_breaks_no_rule() {
    // Up with node 3, asked, and answered by one whose number of queues is another one by then.
    let course = [0xd4, 0x01, 0x00, 0xcd, 0xa1, 0xa1, 0xf7, 0x01, 0x00, 0xcd, 0xa1, 0xa1, 0xf7, 0x00];
    assert_eq!(steps::run(&course), 1);
}
