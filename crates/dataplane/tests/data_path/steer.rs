//! The way out: which member a frame leaves by, with which MACs, and the reason counted for it.

use crate::frames::{ACK, SYN, Tcp, V4, V6, ethernet, ip_packet};
use crate::rig::{BROADCAST, GUEST, PLAIN, Rig, own, peer};
use linkbraid_dataplane::{Plan, Policy, Verdict};

/// UDP from our host's port 1000 on, so that flows differ by `flow`.
pub fn udp(to: [u8; 6], from: [u8; 6], flow: u16, bytes: usize) -> Vec<u8> {
    let mut packet = (1000 + flow).to_be_bytes().to_vec();
    packet.extend(2000u16.to_be_bytes());
    packet.extend((8 + bytes as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(vec![0; bytes]);
    ethernet(to, from, V4, &ip_packet(V4, 17, 1, 2, &packet))
}

/// The slots that the frames left by, with the reason checked.
pub fn slots(rig: &Rig, frames: impl Iterator<Item = Vec<u8>>, reason: &str) -> Vec<u8> {
    frames
        .map(|frame| {
            let ran = rig.out(&frame);
            assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &[reason][..]));
            assert_eq!(ran.source()[..5], own(0)[..5]);
            ran.source()[5]
        })
        .collect()
}

#[test]
fn a_frame_for_a_peer_gets_the_macs_of_its_lane() {
    let rig = Rig::new(4);
    for _ in 0..8 {
        let frame = udp(peer(0), own(0), 0, 100);
        let ran = rig.out(&frame);
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["tx_peer"][..]));
        let slot = ran.source()[5];
        assert_eq!((ran.source(), ran.destination()), (own(slot), peer(slot)));
        assert_eq!(ran.frame[12..], frame[12..], "nothing behind the MACs changes");
    }
    let lanes = rig.path.lane_counts(1).unwrap();
    assert!(lanes.iter().all(|lane| lane.frames == 2), "{lanes:?}");
}

#[test]
fn plans_that_were_used_since_the_last_look_are_known() {
    let rig = Rig::new(2);
    let look = || rig.path.look_at_used().unwrap();
    assert_eq!(look(), [0; 0], "none was ever used");
    let both = [udp(peer(0), own(0), 0, 100), udp(PLAIN, own(0), 0, 100)];
    both.iter().for_each(|frame| _ = rig.out(frame));
    assert_eq!(look(), [0, 1], "plan 0 is that of plain hosts");
    _ = rig.out(&both[0]);
    _ = look();
    assert_eq!(look(), [1], "once more, for those that left during the look");
    assert_eq!(look(), [0; 0]);
    // The number of the look comes round.
    for _ in 0..3 * 256 {
        assert!(look().len() <= 2);
    }
    _ = rig.out(&both[1]);
    assert!(look().contains(&0));
}

#[test]
fn a_peer_is_known_by_any_of_its_macs() {
    let rig = Rig::new(2);
    let ran = rig.out(&udp(peer(1), own(0), 0, 100));
    assert_eq!(ran.reasons, ["tx_peer"]);
}

#[test]
fn towards_a_plain_host_only_the_source_changes() {
    let rig = Rig::new(3);
    let used = slots(&rig, (0..6).map(|_| udp(PLAIN, own(0), 0, 100)), "tx_plain");
    assert_eq!(used, [0, 1, 2, 0, 1, 2]);
    assert_eq!(rig.out(&udp(PLAIN, own(0), 0, 100)).destination(), PLAIN);
}

#[test]
fn bytes_are_shared_by_weight() {
    for weights in [&[1000, 1000, 1000][..], &[500, 100], &[1000, 500, 100, 100]] {
        let rig = Rig::new(weights.len() as u8);
        rig.weights(weights);
        let mut bytes = vec![0u64; weights.len()];
        let mut longest = 0;
        for i in 0..3000usize {
            // Lengths that no round robin of frames would share fairly.
            let frame = udp(peer(0), own(0), 0, 60 + (i * 7919) % 1300);
            longest = longest.max(frame.len() as u64);
            let ran = rig.out(&frame);
            bytes[usize::from(ran.source()[5])] += frame.len() as u64;
        }
        let total: u64 = bytes.iter().sum();
        let sum: u32 = weights.iter().sum();
        for (carried, weight) in bytes.iter().zip(weights) {
            let fair = total * u64::from(*weight) / u64::from(sum);
            assert!(carried.abs_diff(fair) <= 2 * longest, "{weights:?}: {bytes:?}");
        }
    }
}

#[test]
fn a_new_lane_does_not_have_to_catch_up() {
    let rig = Rig::new(3);
    rig.weights(&[1000, 1000]);
    slots(&rig, (0..100).map(|_| udp(peer(0), own(0), 0, 1000)), "tx_peer");
    rig.weights(&[1000, 1000, 1000]);
    let used = slots(&rig, (0..9).map(|_| udp(peer(0), own(0), 0, 1000)), "tx_peer");
    assert_eq!(used.iter().filter(|slot| **slot == 2).count(), 3, "{used:?}");
}

#[test]
fn policy_flow_keeps_a_flow_on_one_lane_and_spreads_flows() {
    let mut rig = Rig::new(4);
    rig.set_policy(Policy::Flow);
    let mut seen = [0; 4];
    for flow in 0..64 {
        let used = slots(&rig, (0..3).map(|_| udp(peer(0), own(0), flow, 100)), "tx_peer");
        assert!(used.iter().all(|slot| *slot == used[0]), "flow {flow}: {used:?}");
        seen[usize::from(used[0])] += 1;
    }
    assert!(seen.iter().all(|flows| *flows > 4), "{seen:?}");
}

#[test]
fn policy_active_backup_uses_the_first_lane_only() {
    let mut rig = Rig::new(3);
    rig.set_policy(Policy::ActiveBackup);
    assert_eq!(slots(&rig, (0..5).map(|flow| udp(peer(0), own(0), flow, 100)), "tx_peer"), [0; 5]);
}

#[test]
fn acks_without_data_stay_on_one_lane() {
    let rig = Rig::new(4);
    let ack = |i| Tcp { flags: ACK, ..Tcp::data(i, 0) }.frame(peer(0), own(0));
    let used = slots(&rig, (0..10).map(ack), "tx_peer");
    assert!(used.iter().all(|slot| *slot == used[0]), "{used:?}");
    let syn = Tcp { flags: SYN, ..Tcp::data(7, 0) }.frame(peer(0), own(0));
    assert_eq!(slots(&rig, std::iter::once(syn), "tx_peer"), used[..1]);
}

#[test]
fn lanes_that_idled_do_not_owe_for_the_past() {
    let rig = Rig::new(2);
    // Ten thousand ACKs, all on one lane by their hash.
    let ack = Tcp::data(1, 0).frame(peer(0), own(0));
    let hashed = rig.out(&ack).source()[5];
    for _ in 0..10_000 {
        rig.out(&ack);
    }
    let used = slots(&rig, (0..400).map(|_| udp(peer(0), own(0), 0, 1000)), "tx_peer");
    let there = used.iter().filter(|slot| **slot == hashed).count();
    assert!(there >= 100, "the lane of the ACKs was used for {there} of 400 frames");
}

#[test]
fn broadcasts_take_turns_on_one_switch() {
    let rig = Rig::new(3);
    let arp = |_| ethernet(BROADCAST, own(0), 0x0806, &[0; 46]);
    assert_eq!(slots(&rig, (0..6).map(arp), "tx_multicast"), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn every_segment_gets_a_copy() {
    let mut rig = Rig::new(3);
    rig.change(|bond| bond.elected = vec![0, 2]);
    let frame = ethernet(BROADCAST, own(0), 0x0806, &[0; 46]);
    let ran = rig.out(&frame);
    assert_eq!((ran.verdict, ran.source()), (Verdict::Redirect, own(0)));
    assert_eq!(ran.reasons, ["tx_multicast", "tx_multicast_copy"]);
    let sent = |slot| rig.path.member_counts(slot).unwrap().tx;
    assert_eq!([0, 1, 2].map(|slot| sent(slot).frames), [1, 0, 1]);
    assert_eq!(sent(2).bytes, frame.len() as u64);
}

#[test]
fn group_reports_leave_by_the_elected_member() {
    let mut rig = Rig::new(3);
    rig.change(|bond| bond.elected = vec![1]);
    let igmp = ethernet([1, 0, 0x5e, 0, 0, 22], own(0), V4, &ip_packet(V4, 2, 1, 9, &[0x22; 8]));
    // Hop-by-hop options with a router alert, then an MLDv2 report.
    let mld = [[58, 0, 5, 2, 0, 0, 1, 0], [143, 0, 0, 0, 0, 0, 0, 0]].concat();
    let mld = ethernet([0x33, 0x33, 0, 0, 0, 22], own(0), V6, &ip_packet(V6, 0, 1, 9, &mld));
    for report in [igmp, mld] {
        assert_eq!(slots(&rig, std::iter::repeat_n(report, 3), "tx_report"), [1; 3]);
    }
}

#[test]
fn what_the_bond_sends_under_another_members_mac_is_no_guests() {
    let rig = Rig::new(4);
    // As just after the first member left: the kernel's bond has the MAC of another one already.
    let sent = || [0, 1, 2, 3].map(|slot| rig.path.member_counts(slot).unwrap().tx.frames);
    for (to, reason) in [(peer(0), "tx_peer"), (PLAIN, "tx_plain"), (BROADCAST, "tx_multicast")] {
        for _ in 0..8 {
            let before = sent();
            let used = slots(&rig, [udp(to, own(2), 0, 100)].into_iter(), reason);
            let by: Vec<u8> =
                (0..4).filter(|slot| sent()[usize::from(*slot)] > before[usize::from(*slot)]).collect();
            assert_eq!(used, by, "each member sends under its own MAC");
        }
    }
}

#[test]
fn without_a_live_lane_frames_are_dropped_and_counted() {
    let rig = Rig::new(2);
    for number in [0, 1] {
        rig.path.set_plan(number, &Plan::default()).unwrap();
    }
    for (to, from) in [(peer(0), own(0)), (PLAIN, own(0)), (BROADCAST, own(0)), (PLAIN, GUEST)] {
        let ran = rig.out(&udp(to, from, 0, 100));
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Drop, &["tx_no_lane"][..]));
    }
}
