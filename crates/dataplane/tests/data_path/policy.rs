//! The policies that kernel bonding has as well: what a frame's lane follows, and what it does not.

use crate::frames::{ACK, Tcp, V4, V6, ethernet, fragment, ip_packet, tagged};
use crate::pairs::{NEAR_HOST, guest_address, packet, pair, with_guests};
use crate::rig::{GUEST, PLAIN, Rig, own, peer};
use crate::steer::{slots, udp};
use linkbraid_dataplane::{Beside, Policy, Verdict};
use std::collections::BTreeSet;

const FLOWS: u8 = 64;

/// UDP to a plain host, from one port on.
fn datagram(protocol: u16, from: u8, to: u8, port: u8) -> Vec<u8> {
    let datagram = [&[9, port, 0, 9, 0, 108, 0, 0], &[0; 100][..]].concat();
    ethernet(PLAIN, own(0), protocol, &ip_packet(protocol, 17, from, to, &datagram))
}

/// The members that these leave by, each the same one three times.
fn members(rig: &Rig, frames: impl Iterator<Item = Vec<u8>>) -> BTreeSet<u32> {
    let member = |frame: Vec<u8>| {
        let ran: Vec<_> = (0..3).map(|_| rig.out(&frame)).collect();
        assert!(ran.iter().all(|ran| ran.verdict == Verdict::Redirect), "{ran:?}");
        let slots: BTreeSet<u8> = ran.iter().map(|ran| ran.source()[5]).collect();
        assert_eq!(slots.len(), 1, "a frame that goes by its hash has taken several lanes");
        slots.into_iter().next().map(u32::from).unwrap()
    };
    frames.map(member).collect()
}

#[test]
fn what_a_hash_names_chooses_the_lane_and_nothing_else_does() {
    let all = || 0..FLOWS;
    for (policy, by_protocol, by_host, by_port, by_vlan) in [
        (Policy::HashLayer2, true, false, false, false),
        (Policy::HashLayer23, true, true, false, false),
        (Policy::HashLayer34, false, true, true, false),
        (Policy::HashVlanSrcmac, false, false, false, true),
    ] {
        let mut rig = Rig::new(4);
        rig.set_policy(policy);
        let some = |what: &str, is: bool, lanes: BTreeSet<u32>| {
            // By chance 64 flows leave one lane of four out in one of ten million runs; the hash is the same in all.
            assert_eq!(lanes.len(), if is { 4 } else { 1 }, "{policy:?}: {what}: {lanes:?}");
        };
        for version in [V4, V6] {
            some("sender", by_host, members(&rig, all().map(|host| datagram(version, host, 9, 1))));
            some("receiver", by_host, members(&rig, all().map(|host| datagram(version, 9, host, 1))));
            some("port", by_port, members(&rig, all().map(|port| datagram(version, 1, 2, port))));
            let vlan = |vlan: u8| tagged(&datagram(version, 1, 2, 1), 100 + u16::from(vlan));
            some("VLAN", by_vlan, members(&rig, all().map(vlan)));
            let priority =
                |priority: u8| tagged(&datagram(version, 1, 2, 1), 7 | u16::from(priority & 7) << 13);
            some("priority of the VLAN", false, members(&rig, all().map(priority)));
            let pieces = |port| fragment(&datagram(version, 1, 2, port), 0);
            some("port of a fragment", false, members(&rig, all().map(pieces)));
        }
        let other = |kind: u8| ethernet(PLAIN, own(0), 0x8900 | u16::from(kind), &[kind; 60]);
        let by_type = by_protocol || policy == Policy::HashLayer34;
        some("EtherType", by_type, members(&rig, all().map(other)));
        let to = |host: u8| ethernet([2, 0, 0, 9, 9, host], own(0), 0x88f7, &[0; 60]);
        some("receiver's MAC", by_type, members(&rig, all().map(to)));
    }
}

#[test]
fn each_guest_has_a_lane() {
    let mut rig = with_guests(4);
    rig.set_policy(Policy::HashVlanSrcmac);
    let lane = |guest: u8| {
        let mac = [GUEST[0], GUEST[1], GUEST[2], GUEST[3], GUEST[4], guest];
        pair(&rig, guest_address(V4, 0, NEAR_HOST), mac, 0);
        let told = rig.path.explain(&packet(V4, peer(0), mac), rig.bond.ifindex, Beside::default()).unwrap();
        assert_eq!(told.reason.name, "tx_from_guest");
        told.lane.unwrap()
    };
    let lanes: BTreeSet<usize> = (0..FLOWS).map(|guest| lane(guest).0).collect();
    assert_eq!((lanes.len(), lane(9)), (4, lane(9)), "{lanes:?}");
}

#[test]
fn a_hash_moves_only_the_flows_of_failed_members() {
    for policy in [Policy::HashLayer23, Policy::HashLayer34] {
        let mut rig = Rig::new(4);
        rig.set_policy(policy);
        let each = |rig: &Rig| -> Vec<u8> {
            slots(rig, (0..FLOWS).map(|host| datagram(V4, host, 9, host)), "tx_plain")
        };
        let before = each(&rig);
        rig.path.set_failed_slots(0b0100).unwrap();
        for (before, after) in before.into_iter().zip(each(&rig)) {
            assert!(after != 2 && (before == 2 || after == before), "{policy:?}: {before} -> {after}");
        }
    }
}

#[test]
fn round_robin_counts_frames_and_not_bytes() {
    let mut rig = Rig::new(3);
    rig.set_policy(Policy::RoundRobin);
    for (to, reason) in [(peer(0), "tx_peer"), (PLAIN, "tx_plain")] {
        let sizes = [1000, 10, 10, 400, 1400, 30, 10, 10, 10];
        let frames = sizes.map(|bytes| udp(to, own(0), 0, bytes)).into_iter();
        assert_eq!(slots(&rig, frames, reason), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }
    // ACKs without data, too: nothing is kept in order.
    let ack = |i| Tcp { flags: ACK, ..Tcp::data(i, 0) };
    let used = slots(&rig, (0..6).map(|i| ack(i).frame(peer(0), own(0))), "tx_peer");
    assert_eq!(used, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn round_robin_keeps_weights_and_leaves_failed_members_out() {
    let mut rig = Rig::new(3);
    rig.set_policy(Policy::RoundRobin);
    rig.weights(&[2000, 1000, 1000]);
    let shares = |frames: usize| {
        let used = slots(&rig, (0..frames).map(|at| udp(peer(0), own(0), 0, 10 + at % 1000)), "tx_peer");
        [0, 1, 2].map(|slot| used.iter().filter(|used| **used == slot).count())
    };
    assert_eq!(shares(400), [200, 100, 100]);
    rig.path.set_failed_slots(0b010).unwrap();
    assert_eq!(shares(300), [200, 0, 100]);
    // Back again it owes nothing.
    rig.path.set_failed_slots(0).unwrap();
    assert_eq!(shares(400), [200, 100, 100]);
}
