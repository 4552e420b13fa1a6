//! Machines and containers behind the bond, with MACs of their own.

use crate::frames::{V4, ethernet, ip_packet};
use crate::plain::{hear, two_switches};
use crate::rig::{BROADCAST, GUEST, PLAIN, Rig, own, peer};
use crate::steer::udp;
use libbpf_rs::{MapCore as _, MapFlags};
use linkbraid_dataplane::{Beside, Plan, Verdict, plain_plan};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const RARP: u16 = 0x8035;

fn guest(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 4, number]
}

/// The slots that a guest's frame leaves by, a copy by each.
fn leaves(rig: &Rig, frame: &[u8]) -> Vec<u8> {
    let sent = || (0..rig.members.len() as u8).map(|slot| rig.path.member_counts(slot).unwrap().tx.frames);
    let before: Vec<u64> = sent().collect();
    assert_eq!(rig.out(frame).verdict, Verdict::Redirect);
    (0u8..)
        .zip(sent())
        .zip(before)
        .filter(|((_, after), before)| after > before)
        .map(|((slot, _), _)| slot)
        .collect()
}

/// The slots of these guests, which the tables name, too.
fn speakers(rig: &Rig, guests: u8) -> Vec<u8> {
    let named = rig.path.speakers().unwrap();
    (0..guests)
        .map(|number| match leaves(rig, &udp(PLAIN, guest(number), 0, 100))[..] {
            [slot] => {
                assert_eq!(named.of(guest(number)), [slot], "guest {number}");
                slot
            }
            ref slots => panic!("guest {number} left by {slots:?}"),
        })
        .collect()
}

/// The guests that sent within this time.
fn here(rig: &Rig, age: Duration) -> Vec<[u8; 6]> {
    rig.path.guests(age).unwrap().into_iter().map(|(mac, _)| mac).collect()
}

/// A guest sent last when this machine started, as far as the data path knows.
fn make_old(rig: &Rig, guest: [u8; 6]) {
    let map = rig.path.maps().find(|map| map.name() == "lb_guests").unwrap();
    let key = [&guest[..], &[0; 2]].concat();
    assert!(map.lookup(&key, MapFlags::ANY).unwrap().is_some());
    let row = [1u64.to_ne_bytes(), [0; 8]].concat();
    map.update(&key, &row, MapFlags::ANY).unwrap();
}

#[test]
fn a_guest_keeps_its_addresses_and_its_member() {
    let rig = Rig::new(4);
    let by: Vec<Vec<u8>> = [PLAIN, BROADCAST]
        .map(|to| {
            let frame = udp(to, GUEST, 0, 100);
            let ran = rig.out(&frame);
            assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["tx_guest"][..]));
            assert_eq!(ran.frame, frame, "unchanged");
            leaves(&rig, &frame)
        })
        .into();
    assert_eq!(by[0], by[1]);
    // It is answered there, and nowhere else.
    for slot in 0..4 {
        let ran = rig.arrives(slot, &ethernet(GUEST, PLAIN, V4, &[0x45; 60]));
        assert_eq!(ran.reasons, [if by[0] == [slot] { "rx_guest" } else { "rx_stranger" }]);
    }
}

#[test]
fn guests_share_the_members_and_only_those_of_a_failed_one_move() {
    let rig = Rig::new(4);
    let before = speakers(&rig, 200);
    for slot in 0..4 {
        let guests = before.iter().filter(|speaker| **speaker == slot).count();
        assert!((20..=80).contains(&guests), "{guests} of 200 by member {slot}");
    }
    rig.path.set_failed_slots(0b0010).unwrap();
    let after = speakers(&rig, 200);
    for (before, after) in before.iter().zip(&after) {
        assert!(*after != 1 && (before == after || *before == 1), "from {before} to {after}");
    }
    for (failed, speakers_then) in [(0b1111, &before), (0, &before)] {
        rig.path.set_failed_slots(failed).unwrap();
        assert_eq!(&speakers(&rig, 200), speakers_then);
    }
    // Another weight of all is no reason to move.
    rig.weights(&[500; 4]);
    assert_eq!(speakers(&rig, 200), before);
    rig.weights(&[1000, 10, 10, 10]);
    assert!(speakers(&rig, 200).iter().filter(|slot| **slot == 0).count() > 180);
}

#[test]
fn a_guests_frame_to_a_peer_goes_to_the_member_that_answers_its_own() {
    let rig = Rig::new(4);
    let frame = udp(peer(0), GUEST, 0, 100);
    let ran = rig.out(&frame);
    let by = leaves(&rig, &frame);
    assert_eq!((ran.source(), ran.destination()), (GUEST, peer(by[0])));
    assert_eq!(by, leaves(&rig, &udp(PLAIN, GUEST, 0, 100)));
}

#[test]
fn what_a_switch_sends_back_of_a_guest_is_dropped() {
    let rig = Rig::new(4);
    let frame = ethernet(BROADCAST, GUEST, 0x0806, &[0; 46]);
    assert_eq!(rig.arrives(0, &frame).reasons, ["rx_multicast"], "a host that lives elsewhere");
    rig.out(&frame);
    assert_eq!(here(&rig, MINUTE), [GUEST]);
    assert_eq!(rig.arrives(0, &frame).reasons, ["rx_own"]);
    // Long after it sent here it is heard elsewhere: it moved.
    make_old(&rig, GUEST);
    assert_eq!(here(&rig, MINUTE), [] as [[u8; 6]; 0]);
    assert_eq!(rig.arrives(0, &frame).reasons, ["rx_multicast"]);
    assert_eq!(here(&rig, Duration::MAX), [] as [[u8; 6]; 0]);
}

#[test]
fn who_shares_a_guests_mac_is_heard_while_the_guest_speaks() {
    let rig = Rig::new(4);
    // VRRP (RFC 5798): both routers say so from the MAC that they share, each with its own address and priority.
    let says = |host: u8, priority: u8| {
        let said = [&[0x21, 51, priority, 1, 0, 100][..], &[0; 6]].concat();
        ethernet([1, 0, 0x5e, 0, 0, 18], GUEST, V4, &ip_packet(V4, 112, 1, host, &said))
    };
    let (ours, theirs) = (says(1, 100), says(1, 150));
    for _ in 0..3 {
        rig.out(&ours);
        assert_eq!(rig.arrives(0, &ours).reasons, ["rx_own"]);
        assert_eq!(rig.arrives(0, &theirs).reasons, ["rx_multicast"]);
    }
    assert_eq!(here(&rig, MINUTE), [GUEST], "it has not moved");
    // A frame is sent back as long as Ethernet asks for.
    let short = ethernet(BROADCAST, GUEST, 0x0806, &[7; 28]);
    for sent in [&short[..], &short[..30]] {
        rig.out(sent);
        assert_eq!(rig.arrives(0, &padded_to(sent, 60)).reasons, ["rx_own"], "{} bytes", sent.len());
    }
}

#[test]
fn a_guests_buffer_of_several_frames_stands_for_whatever_comes_back() {
    let rig = Rig::new(4);
    let to = [1, 0, 0x5e, 1, 2, 3];
    let several = Beside { gso_size: 300, gso_segs: 3, ..Beside::default() };
    rig.out_with(&udp(to, GUEST, 0, 900), several);
    assert_eq!(rig.arrives(0, &udp(to, GUEST, 7, 300)).reasons, ["rx_own"]);
}

fn padded_to(frame: &[u8], bytes: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame.resize(bytes, 0);
    frame
}

#[test]
fn what_is_said_in_a_guests_name_is_no_sign_of_its_life() {
    let rig = Rig::new(4);
    let said = ethernet(BROADCAST, GUEST, RARP, &[0; 46]);
    rig.out(&said);
    assert_eq!(here(&rig, MINUTE), [GUEST], "one that just moved here says so itself");
    make_old(&rig, GUEST);
    rig.out(&said);
    assert_eq!(here(&rig, MINUTE), [] as [[u8; 6]; 0]);
}

#[test]
fn a_guests_reports_of_groups_leave_as_the_bonds_own() {
    let mut rig = Rig::new(4);
    rig.change(|bond| bond.elected = vec![2]);
    let igmp = ethernet([1, 0, 0x5e, 0, 0, 22], GUEST, V4, &ip_packet(V4, 2, 1, 9, &[0x22; 8]));
    let ran = rig.out(&igmp);
    assert_eq!((&ran.reasons[..], ran.source()), (&["tx_report"][..], own(2)));
    assert_eq!(leaves(&rig, &igmp), [2]);
}

#[test]
fn on_several_switches_a_guest_has_a_member_on_each() {
    let rig = two_switches();
    let all = leaves(&rig, &udp(BROADCAST, GUEST, 0, 100));
    assert!(matches!(all[..], [0 | 1, 2 | 3]), "{all:?}");
    assert_eq!(leaves(&rig, &udp(PLAIN, GUEST, 0, 100)), all, "it was not heard yet");
    assert_eq!(rig.path.speakers().unwrap().of(GUEST), all);
    for (slot, by) in [(0, all[0]), (2, all[1])] {
        hear(&rig, slot, own(slot), PLAIN);
        assert_eq!(leaves(&rig, &udp(PLAIN, GUEST, 0, 100)), [by]);
    }
    for slot in 0..4 {
        let ran = rig.arrives(slot, &ethernet(GUEST, PLAIN, V4, &[0x45; 60]));
        assert_eq!(ran.reasons, [if all.contains(&slot) { "rx_guest" } else { "rx_stranger" }]);
    } // A segment without a plan of its own has the one over all members.
    rig.path.set_plan(plain_plan(2), &Plan::default()).unwrap();
    let named = rig.path.speakers().unwrap().of(GUEST);
    assert_eq!(leaves(&rig, &udp(BROADCAST, GUEST, 0, 100)), {
        let mut slots = named.clone();
        slots.sort_unstable();
        slots.dedup();
        slots
    });
    assert_eq!(named[0], all[0]);
}
