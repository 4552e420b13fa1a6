//! Plain hosts while the members are on separate switches: where they are heard, and how they are reached.

use crate::frames::{Tcp, V4, ethernet};
use crate::rig::{BROADCAST, GUEST, PLAIN, Rig, own, peer, plan};
use crate::steer::{slots, udp};
use linkbraid_dataplane::{Plan, Verdict, plain_plan};

/// Slots 0 and 1 on one switch, 2 and 3 on another; each segment's plan is over its own members.
pub fn two_switches() -> Rig {
    let mut rig = Rig::new(4);
    for (slot, elected) in [(0, 0), (1, 0), (2, 2), (3, 2)] {
        rig.set_member(slot, elected);
    }
    rig.change(|bond| bond.elected = vec![0, 2]);
    for (elected, members) in [(0, [0, 1]), (2, [2, 3])] {
        rig.path.set_plan(plain_plan(elected), &lanes(&members)).unwrap();
    }
    rig
}

fn lanes(slots: &[u8]) -> Plan {
    plan(&slots.iter().map(|slot| (*slot, 1)).collect::<Vec<_>>(), |_| None)
}

pub fn hear(rig: &Rig, slot: u8, to: [u8; 6], from: [u8; 6]) {
    rig.arrives(slot, &ethernet(to, from, V4, &[0x45; 60]));
}

fn to_plain(rig: &Rig, frames: usize, reason: &str) -> Vec<u8> {
    slots(rig, (0..frames).map(|_| udp(PLAIN, own(0), 0, 100)), reason)
}

#[test]
fn a_plain_host_is_reached_over_the_members_of_its_segment() {
    let rig = two_switches();
    hear(&rig, 3, own(3), PLAIN);
    assert_eq!(rig.path.plain_hosts().unwrap(), [(PLAIN, 3)]);
    assert_eq!(to_plain(&rig, 4, "tx_plain_segment"), [2, 3, 2, 3]);
    assert_eq!(rig.out(&udp(PLAIN, own(0), 0, 100)).destination(), PLAIN);
    let counts = rig.path.lane_counts(plain_plan(2)).unwrap();
    assert_eq!(counts.iter().map(|lane| lane.frames).sum::<u64>(), 5);
    // It moves to the other switch.
    hear(&rig, 1, BROADCAST, PLAIN);
    assert_eq!(rig.path.plain_hosts().unwrap(), [(PLAIN, 1)]);
    assert_eq!(to_plain(&rig, 4, "tx_plain_segment"), [0, 1, 0, 1]);
}

#[test]
fn whatever_arrives_tells_where_its_sender_is() {
    // Even what is dropped: a copy of a broadcast, and what is flooded or for a stranger.
    for (to, reason) in [
        (BROADCAST, "rx_copy"),
        (own(2), "rx_flooded"),
        ([2, 0, 0, 0, 9, 9], "rx_stranger"),
        (own(3), "rx_plain"),
        (own(0), "rx_flooded"),
    ] {
        let rig = two_switches();
        // A stranger's MAC may be that of a guest that this member speaks for.
        let ran = rig.arrives(3, &ethernet(to, PLAIN, V4, &[0x45; 60]));
        assert!(ran.reasons == [reason] || ran.reasons == ["rx_guest"], "{:?}", ran.reasons);
        assert_eq!(rig.path.plain_hosts().unwrap(), [(PLAIN, 3)], "{reason}");
    }
}

#[test]
fn within_a_segment_nothing_is_written_again() {
    let rig = two_switches();
    hear(&rig, 2, BROADCAST, PLAIN);
    hear(&rig, 3, BROADCAST, PLAIN);
    hear(&rig, 2, BROADCAST, PLAIN);
    assert_eq!(rig.path.plain_hosts().unwrap(), [(PLAIN, 2)], "slot 3 is in the same segment");
    // The member it was heard on leaves the bond: where it is next heard is written.
    rig.path.set_member(2, None).unwrap();
    rig.set_member(3, 3);
    hear(&rig, 3, BROADCAST, PLAIN);
    assert_eq!(rig.path.plain_hosts().unwrap(), [(PLAIN, 3)]);
}

#[test]
fn peers_ourselves_and_impossible_senders_are_no_plain_hosts() {
    let rig = two_switches();
    for from in [peer(0), peer(3), own(0), own(2), BROADCAST, [1, 0, 0x5e, 0, 0, 1], [0; 6]] {
        for slot in 0..4 {
            hear(&rig, slot, BROADCAST, from);
            hear(&rig, slot, own(slot), from);
        }
    }
    assert_eq!(rig.path.plain_hosts().unwrap(), []);
}

#[test]
fn on_one_segment_nothing_is_learned_or_looked_up() {
    let mut rig = two_switches();
    hear(&rig, 3, own(3), PLAIN);
    rig.change(|bond| bond.elected = vec![0]);
    assert_eq!(to_plain(&rig, 4, "tx_plain"), [0, 1, 2, 3]);
    hear(&rig, 3, own(3), GUEST);
    assert_eq!(rig.path.plain_hosts().unwrap(), [(PLAIN, 3)]);
}

#[test]
fn a_host_that_was_not_heard_gets_a_copy_in_each_segment() {
    let rig = two_switches();
    let frame = udp(PLAIN, own(0), 0, 100);
    let ran = rig.out(&frame);
    assert_eq!((ran.verdict, ran.source(), ran.destination()), (Verdict::Redirect, own(0), PLAIN));
    assert_eq!(ran.reasons, ["tx_multicast_copy", "tx_plain_unknown"]);
    let sent = |slot| rig.path.member_counts(slot).unwrap().tx;
    assert_eq!([0, 1, 2, 3].map(|slot| sent(slot).frames), [1, 0, 1, 0]);
    assert_eq!(sent(2).bytes, frame.len() as u64);
    // So does one that was heard by a member that is gone.
    hear(&rig, 3, own(3), PLAIN);
    rig.path.set_member(3, None).unwrap();
    assert_eq!(rig.out(&frame).reasons, ["tx_multicast_copy", "tx_plain_unknown"]);
}

#[test]
fn a_segment_without_a_plan_is_served_by_all_members() {
    let rig = two_switches();
    hear(&rig, 3, own(3), PLAIN);
    rig.path.set_plan(plain_plan(2), &Plan::default()).unwrap();
    assert_eq!(to_plain(&rig, 4, "tx_plain"), [0, 1, 2, 3]);
    rig.path.set_plan(0, &Plan::default()).unwrap();
    assert_eq!(rig.out(&udp(PLAIN, own(0), 0, 100)).reasons, ["tx_no_lane"]);
}

#[test]
fn failed_members_of_its_segment_are_left_out() {
    let rig = two_switches();
    hear(&rig, 3, own(3), PLAIN);
    rig.path.set_failed_slots(0b0100).unwrap();
    assert_eq!(to_plain(&rig, 3, "tx_plain_segment"), [3; 3]);
}

#[test]
fn peers_are_reached_as_ever() {
    let rig = two_switches();
    let ran = rig.out(&udp(peer(0), own(0), 0, 100));
    assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["tx_peer"][..]));
}

#[test]
fn damping_follows_the_segments_plan() {
    let rig = two_switches();
    let ack = |rig: &Rig, slot| {
        let frame = Tcp::ack(1000, &[(2000, 3000)]).frame(own(slot), PLAIN);
        rig.arrives(slot, &frame).reasons
    };
    hear(&rig, 3, own(3), PLAIN);
    for i in 0..4 {
        let frame = Tcp::data(1000 + i * 1000, 1000).frame(PLAIN, own(0));
        assert_eq!(rig.out(&frame).reasons, ["tx_plain_segment"]);
    }
    assert_eq!(ack(&rig, 2), ["rx_ack_masked"]);
    assert_eq!(ack(&rig, 2), ["rx_ack_damped"]);
    // One lane: nothing is striped, so nothing is damped.
    rig.path.set_plan(plain_plan(2), &lanes(&[3])).unwrap();
    assert_eq!(ack(&rig, 3), ["rx_plain"]);
}
