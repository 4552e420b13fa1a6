//! Precedence: which frames get the priority that makes them leave before others, and for how much of a member.

use crate::class::{any, between, port, slot_of, with_class};
use crate::frames::V4;
use crate::rig::Rig;
use linkbraid_dataplane::{Beside, MEMBERS_MAX};
use std::time::{Duration, Instant};

/// What the kernel calls interactive, and what has no priority.
const FIRST: u32 = 6;
const NONE: u32 = 0;

/// Class 1 has slot 3, and what goes to port 2000.
fn rig(classes: u32, kbit: u32) -> Rig {
    let rig = with_class(&[3]);
    rig.path.set_rules(&[port(1, 2000)]).unwrap();
    rig.path.set_precedence(classes, [kbit; MEMBERS_MAX]).unwrap();
    rig
}

fn of_others() -> Vec<u8> {
    between(V4, 17, 1000, 3000)
}

#[test]
fn frames_of_a_class_with_precedence_get_the_priority_and_others_keep_theirs() {
    let rig = rig(0b10, 0);
    for priority in [NONE, 3, FIRST, 7, 0x10001] {
        let beside = Beside { priority, ..Beside::default() };
        let ran = rig.out_with(&any(), beside);
        assert_eq!((slot_of(&ran), ran.priority), (3, FIRST), "{priority}");
        assert_eq!(rig.out_with(&of_others(), beside).priority, priority);
    }
    for classes in [0, 0b100] {
        rig.path.set_precedence(classes, [0; MEMBERS_MAX]).unwrap();
        assert_eq!(rig.out_with(&any(), Beside { priority: 3, ..Beside::default() }).priority, 3);
    }
    assert_eq!(rig.path.class_over(1).unwrap().frames, 0);
}

#[test]
fn whoever_sends_more_than_its_share_of_a_member_waits_like_others_for_a_while() {
    // A frame of 46 bytes takes 8.2 ms of nine tenths of 50 kbit/s, and 20 ms may be taken at once.
    let rig = rig(0b10, 50);
    let begun = Instant::now();
    let sends = || rig.out_with(&any(), Beside { priority: FIRST, ..Beside::default() }).priority;
    let mut first = 0;
    while sends() == FIRST {
        first += 1;
        assert!(first < 10_000, "it never ends");
    }
    let most = 2 + begun.elapsed().as_micros() / 8000;
    assert!((1..=most).contains(&first), "{first} of {most}");
    let over = Instant::now();
    // What its socket asks for does not count then.
    let mut later = 1;
    while sends() != FIRST {
        later += 1;
        assert!(over.elapsed() < Duration::from_secs(20), "never again");
    }
    assert!(over.elapsed() > Duration::from_millis(90), "again after {:?}", over.elapsed());
    assert_eq!(rig.path.class_over(1).unwrap().frames, later);
    rig.path.clear_class_counts(1).unwrap();
    assert_eq!(rig.path.class_over(1).unwrap().frames, 0);
    // Others are none of this.
    assert_eq!(rig.out_with(&of_others(), Beside { priority: 7, ..Beside::default() }).priority, 7);
}
