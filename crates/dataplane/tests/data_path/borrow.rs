//! Lanes that all other traffic borrows of a class, while that sends nothing.

use crate::class::{PEER_PLAN, any, between, port, slot_of, to_peer, with_class};
use crate::frames::{Tcp, V4};
use crate::rig::{PLAIN, Rig, own, peer, plan};
use crate::steer::udp;
use linkbraid_dataplane::{Lane, Plan, Policy};
use std::time::{Duration, Instant};

/// All other traffic has slots 0 and 1, and borrows 2 and 3 of class 1.
fn lending(policy: Policy) -> Rig {
    let rig = with_class(&[2, 3]);
    rig.path.set_rules(&[port(1, 2000)]).unwrap();
    let mut lanes = plan(&[(0, 1), (1, 1), (2, 1), (3, 1)], to_peer).lanes;
    for lane in &mut lanes[2..] {
        lane.class = 1;
    }
    rig.path.set_plan(1, &Plan { lanes, policy, shares: false }).unwrap();
    rig.path.set_class(1, 0b1100, true).unwrap();
    rig
}

/// The slots that frames of no class left by, each once.
fn rest_slots(rig: &Rig, frames: u16) -> Vec<u8> {
    let mut used: Vec<u8> =
        (0..frames).map(|flow| slot_of(&rig.out(&between(V4, 17, 1, 3000 + flow)))).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// What `look` sees while the class has sent a moment ago, and when it had not sent yet.
fn while_busy<T>(rig: &Rig, look: impl Fn() -> T) -> (Instant, T) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let begun = Instant::now();
        assert!([2, 3].contains(&slot_of(&rig.out(&any()))));
        let seen = look();
        // On a busy machine that may have taken too long; the class's time is that of its last frame but for 6.25 ms.
        if begun.elapsed() < Duration::from_millis(90) {
            return (begun, seen);
        }
        assert!(begun < deadline, "this machine is too busy");
    }
}

#[test]
fn idle_members_are_borrowed_and_busy_ones_are_not() {
    let rig = lending(Policy::Spread);
    assert_eq!(rest_slots(&rig, 8), [0, 1, 2, 3]);
    for _ in 0..2 {
        let (begun, used) = while_busy(&rig, || rest_slots(&rig, 8));
        assert_eq!(used, [0, 1]);
        while rest_slots(&rig, 8) != [0, 1, 2, 3] {
            assert!(begun.elapsed() < Duration::from_secs(20), "they are never borrowed again");
        }
        let waited = begun.elapsed();
        assert!(waited >= Duration::from_millis(90), "borrowed after {waited:?}");
    }
    // Nobody owes for the time without them.
    let used: Vec<u8> = (0..400).map(|_| slot_of(&rig.out(&between(V4, 17, 1, 3000)))).collect();
    for slot in 0..4 {
        assert_eq!(used.iter().filter(|used| **used == slot).count(), 100, "slot {slot}");
    }
}

#[test]
fn only_what_a_class_sends_by_its_own_members_makes_them_busy() {
    let rig = lending(Policy::Spread);
    rig.path.set_class(1, 0b1100, false).unwrap();
    rig.out(&any());
    assert_eq!(rest_slots(&rig, 8), [0, 1, 2, 3], "a class that lends to nobody takes no notes");
    rig.path.set_class(1, 0b1100, true).unwrap();
    // It has moved to those of all other traffic, for its own are gone.
    rig.path.set_plan(PEER_PLAN, &plan(&[(0, 1), (1, 1)], to_peer)).unwrap();
    rig.out(&any());
    assert_eq!(rest_slots(&rig, 8), [0, 1, 2, 3]);
}

#[test]
fn better_a_busy_member_than_a_failed_one() {
    let rig = lending(Policy::Spread);
    for (failed, expected) in [(0b0011, &[2, 3][..]), (0b0001, &[1])] {
        rig.path.set_failed_slots(failed).unwrap();
        assert_eq!(while_busy(&rig, || rest_slots(&rig, 8)).1, expected);
    }
}

#[test]
fn what_keeps_to_one_lane_borrows_none() {
    let rig = lending(Policy::Flow);
    assert_eq!(rest_slots(&rig, 64), [0, 1]);
    let rig = lending(Policy::ActiveBackup);
    assert_eq!(rest_slots(&rig, 8), [0]);
    let rig = lending(Policy::Spread);
    let mut acks: Vec<u8> = (0..16)
        .map(|i| slot_of(&rig.out(&Tcp { is_ours: i % 2 == 0, ..Tcp::data(i, 0) }.frame(peer(0), own(0)))))
        .collect();
    acks.dedup();
    assert!(acks.iter().all(|slot| *slot < 2), "{acks:?}");
    // A guest is heard on one port of the switch only.
    let lanes = rig_lanes();
    rig.path.set_plan(0, &Plan { lanes, ..Plan::default() }).unwrap();
    let speakers = rig.path.speakers().unwrap();
    for guest in 0..64 {
        rig.out(&udp(PLAIN, [2, 0, 0, 0, 4, guest], 0, 100));
        assert!(matches!(speakers.of([2, 0, 0, 0, 4, guest])[..], [0 | 1]));
    }
    let sent = |slot| rig.path.member_counts(slot).unwrap().tx.frames;
    assert_eq!([2, 3].map(sent), [0, 0]);
}

/// Lanes to plain hosts over 0 and 1, and those that are borrowed before and behind them.
fn rig_lanes() -> Vec<Lane> {
    let lane = |(slot, class)| Lane { slot, peer_mac: None, weight: 1, rate: None, class };
    [(2, 1), (0, 0), (1, 0), (3, 1)].map(lane).to_vec()
}
