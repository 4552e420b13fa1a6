//! Members that failed leave every plan by one write, before the plans are written again.

use crate::frames::{ACK, Tcp, V4, ethernet, ip_packet};
use crate::rig::{BROADCAST, GUEST, PLAIN, Rig, own, peer};
use crate::steer::{slots, udp};
use linkbraid_dataplane::{Policy, Verdict};

/// How many of the frames left by each slot.
fn shares(rig: &Rig, frames: usize, to: [u8; 6], reason: &str) -> Vec<usize> {
    let used = slots(rig, (0..frames).map(|_| udp(to, own(0), 0, 1000)), reason);
    (0..rig.members.len()).map(|slot| used.iter().filter(|u| usize::from(**u) == slot).count()).collect()
}

#[test]
fn spread_shares_among_the_living_and_nobody_owes_afterwards() {
    let rig = Rig::new(4);
    for (to, reason) in [(peer(0), "tx_peer"), (PLAIN, "tx_plain")] {
        assert_eq!(shares(&rig, 8, to, reason), [2, 2, 2, 2]);
        rig.path.set_failed_slots(0b0101).unwrap();
        assert_eq!(shares(&rig, 400, to, reason), [0, 200, 0, 200], "{reason}");
        rig.path.set_failed_slots(0b0001).unwrap();
        let three = shares(&rig, 300, to, reason);
        assert!(three[0] == 0 && three[1..].iter().all(|frames| frames.abs_diff(100) <= 1), "{three:?}");
        rig.path.set_failed_slots(0).unwrap();
        let four = shares(&rig, 400, to, reason);
        assert!(four.iter().all(|frames| frames.abs_diff(100) <= 2), "{four:?}");
    }
}

#[test]
fn unequal_lanes_keep_their_shares() {
    let rig = Rig::new(3);
    rig.weights(&[1000, 500, 500]);
    rig.path.set_failed_slots(0b010).unwrap();
    let shares = shares(&rig, 300, peer(0), "tx_peer");
    assert!(shares[0].abs_diff(200) <= 2 && shares[1] == 0, "{shares:?}");
}

#[test]
fn acks_move_together_and_only_those_of_failed_members() {
    let rig = Rig::new(4);
    let ack = |i| Tcp { flags: ACK, ..Tcp::data(i, 0) }.frame(peer(0), own(0));
    let before = slots(&rig, (0..1).map(ack), "tx_peer")[0];
    rig.path.set_failed_slots(1 << ((before + 1) % 4)).unwrap();
    assert_eq!(slots(&rig, (0..4).map(ack), "tx_peer"), [before; 4]);
    rig.path.set_failed_slots(1 << before).unwrap();
    let after = slots(&rig, (0..4).map(ack), "tx_peer");
    assert_eq!(after, [(before + 1) % 4; 4], "the next lane takes them all");
}

#[test]
fn policy_flow_moves_the_flows_of_failed_members_only() {
    let mut rig = Rig::new(4);
    rig.set_policy(Policy::Flow);
    let where_are = |rig: &Rig| slots(rig, (0..64).map(|flow| udp(peer(0), own(0), flow, 100)), "tx_peer");
    let before = where_are(&rig);
    rig.change(|bond| bond.failed_slots = 0b1100);
    for (was, is) in before.into_iter().zip(where_are(&rig)) {
        assert_eq!(is, if was < 2 { was } else { 0 }, "flow of slot {was}");
    }
}

#[test]
fn policy_active_backup_takes_the_first_that_lives() {
    let mut rig = Rig::new(3);
    rig.set_policy(Policy::ActiveBackup);
    for (failed, used) in [(0b000, 0), (0b010, 0), (0b001, 1), (0b011, 2)] {
        rig.path.set_failed_slots(failed).unwrap();
        assert_eq!(slots(&rig, (0..3).map(|flow| udp(peer(0), own(0), flow, 100)), "tx_peer"), [used; 3]);
    }
}

#[test]
fn broadcasts_and_reports_leave_by_the_living() {
    let rig = Rig::new(3);
    rig.path.set_failed_slots(0b001).unwrap();
    let arp = |_| ethernet(BROADCAST, own(0), 0x0806, &[0; 46]);
    let used = slots(&rig, (0..6).map(arp), "tx_multicast");
    assert!(!used.contains(&0) && used.contains(&1) && used.contains(&2), "{used:?}");
    let igmp = ethernet([1, 0, 0x5e, 0, 0, 22], own(0), V4, &ip_packet(V4, 2, 1, 9, &[0x22; 8]));
    assert_ne!(slots(&rig, std::iter::once(igmp), "tx_multicast"), [0]);
}

#[test]
fn a_plan_whose_lanes_have_all_failed_is_used_as_it_is() {
    for policy in Policy::all().iter().copied() {
        let mut rig = Rig::new(2);
        rig.set_policy(policy);
        rig.change(|bond| bond.failed_slots = 0b1111);
        for (to, from) in [(peer(0), own(0)), (PLAIN, own(0)), (BROADCAST, own(0)), (PLAIN, GUEST)] {
            assert_eq!(rig.out(&udp(to, from, 0, 100)).verdict, Verdict::Redirect, "{policy:?}");
        }
    }
    // A single lane as well.
    let rig = Rig::new(1);
    rig.path.set_failed_slots(1).unwrap();
    assert_eq!(shares(&rig, 3, peer(0), "tx_peer"), [3]);
}

#[test]
fn what_is_flooded_for_a_failed_member_is_taken_in() {
    let rig = Rig::new(2);
    let sent = ethernet(own(1), peer(1), V4, &[0x45; 60]);
    assert_eq!(rig.arrives(0, &sent).reasons, ["rx_flooded"]);
    rig.path.set_failed_slots(0b10).unwrap();
    let ran = rig.arrives(0, &sent);
    assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Pass, &["rx_peer"][..]));
    assert_eq!((ran.destination(), ran.source()), (own(0), peer(0)));
}
