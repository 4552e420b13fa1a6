//! Mirrored frames: two copies leave, the first one that arrives passes.

use crate::class::row;
use crate::frames::{Tcp, V4, ethernet, sum, tagged};
use crate::rig::{BROADCAST, GUEST, PLAIN, Ran, Rig, own, peer, plan};
use crate::steer::udp;
use linkbraid_api::Rule;
use linkbraid_dataplane::{Beside, Lane, PeerMac, PeerMacKind, Plan, Policy, Verdict};

const MIRROR: [u8; 2] = [0x88, 0xb6];
const TRAILER: usize = 16;

/// The trailer of a frame with this EtherType.
pub fn trailer(epoch: u32, sequence: u32, class: u8, protocol: [u8; 2]) -> Vec<u8> {
    let mut trailer = [epoch.to_be_bytes(), sequence.to_be_bytes()].concat();
    trailer.extend([protocol[0], protocol[1], class, 1, 0, 0, 0, 0]);
    let balance = !sum(&trailer);
    trailer[12..14].copy_from_slice(&balance.to_be_bytes());
    trailer
}

/// A mirrored frame as it is on the wire.
fn wrapped(frame: &[u8], epoch: u32, sequence: u32, class: u8) -> Vec<u8> {
    let mut copy = frame.to_vec();
    copy.resize(copy.len().max(60), 0);
    copy.extend(trailer(epoch, sequence, class, [frame[12], frame[13]]));
    copy[12..14].copy_from_slice(&MIRROR);
    copy
}

/// All lanes to the peer mirror.
fn mirroring(members: u8) -> Rig {
    let mut rig = Rig::new(members);
    rig.set_policy(Policy::Mirror);
    rig.change(|bond| bond.epoch = 0xcafe_f00d);
    rig
}

#[track_caller]
fn assert_mirrored(rig: &Rig, frame: &[u8], sequence: u32, slots: [u8; 2]) {
    let sent = |slot: u8| rig.path.member_counts(slot).unwrap().tx.frames;
    let before = slots.map(sent);
    let ran = rig.out(frame);
    assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["tx_mirror", "tx_mirror_copy"][..]));
    assert_eq!((ran.source(), ran.destination()), (own(slots[0]), peer(slots[0])));
    assert_eq!(ran.frame[12..], wrapped(frame, 0xcafe_f00d, sequence, 0)[12..]);
    assert_eq!(sum(&ran.frame[ran.frame.len() - TRAILER..]), 0xffff);
    assert_eq!(slots.map(sent), before.map(|frames| frames + 1));
}

#[track_caller]
fn assert_once(ran: &Ran, frame: &[u8]) {
    assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["tx_mirror_once"][..]));
    assert_eq!(ran.frame[12..], frame[12..]);
}

#[test]
fn two_copies_leave_by_different_members() {
    let rig = mirroring(3);
    for sequence in 1..5 {
        assert_mirrored(&rig, &udp(peer(0), own(0), sequence as u16, 100), sequence, [0, 1]);
    }
    let counts = rig.path.lane_counts(1).unwrap();
    assert_eq!(counts.iter().map(|lane| lane.frames).collect::<Vec<_>>(), [4, 4, 0]);
    rig.path.set_failed_slots(0b001).unwrap();
    assert_mirrored(&rig, &udp(peer(0), own(0), 0, 100), 5, [1, 2]);
    rig.path.set_failed_slots(0b010).unwrap();
    assert_mirrored(&rig, &udp(peer(0), own(0), 0, 100), 6, [0, 2]);
    // All failed: as if none had.
    rig.path.set_failed_slots(0b111).unwrap();
    assert_mirrored(&rig, &udp(peer(0), own(0), 0, 100), 7, [0, 1]);
    rig.path.set_failed_slots(0b110).unwrap();
    let frame = udp(peer(0), own(0), 0, 100);
    assert_once(&rig.out(&frame), &frame);
}

//= docs/arp-plus.md#16.1 type=test
#[test]
fn any_frame_for_a_peer_is_mirrored_and_short_ones_are_padded() {
    let rig = mirroring(2);
    let frames = [
        ethernet(peer(0), own(0), 0x88f7, &[7; 10]),
        ethernet(peer(1), own(0), 0x0806, &[7; 28]),
        ethernet(peer(0), own(0), 0x0600, &[7; 45]),
        ethernet(peer(0), own(0), 0x0600, &[7; 46]),
        ethernet(peer(0), own(0), 0x0600, &[7; 47]),
        Tcp::data(1, 0).frame(peer(0), own(0)),
        Tcp::data(1, 999).frame(peer(0), own(0)),
    ];
    for (sequence, frame) in (1..).zip(frames) {
        assert_mirrored(&rig, &frame, sequence, [0, 1]);
    }
}

#[test]
fn what_has_no_room_for_the_trailer_leaves_once() {
    let rig = mirroring(2);
    let of = |bytes: usize| ethernet(peer(0), own(0), V4, &vec![0x45; bytes - 14]);
    assert_mirrored(&rig, &of(1514 - TRAILER), 1, [0, 1]);
    for bytes in [1514 - TRAILER + 1, 1514] {
        assert_once(&rig.out(&of(bytes)), &of(bytes));
    }
    // The MTU of the second lane's member counts as much.
    crate::rig::ip("link set member1 mtu 1000");
    assert_mirrored(&rig, &of(1014 - TRAILER), 2, [0, 1]);
    assert_once(&rig.out(&of(1014 - TRAILER + 1)), &of(1014 - TRAILER + 1));
    // A buffer of several segments.
    let frame = Tcp::data(1, 900).frame(peer(0), own(0));
    let beside = Beside { gso_size: 300, gso_segs: 3, ..Beside::default() };
    let ran = rig.path.trial_with(linkbraid_dataplane::Way::Out, &frame, rig.bond.ifindex, beside).unwrap();
    assert_eq!(ran.frame[12..], frame[12..]);
    assert_eq!(rig.path.reason("tx_mirror_once").unwrap().frames, 3 + 3, "counted by segments");
    // It never mirrors what its receiver could not tell from something else.
    for protocol in [0x88b5, 0x88b6, 0x88a8] {
        let frame = ethernet(peer(0), own(0), protocol, &[0; 60]);
        assert_once(&rig.out(&frame), &frame);
    }
    // Nor what is in a VLAN.
    let frame = tagged(&udp(peer(0), own(0), 1, 33), 5);
    assert_once(&rig.out(&frame), &frame);
}

#[test]
fn the_second_lane_shares_as_little_as_can_be() {
    let rig = mirroring(3);
    let sent = |slot: u8| rig.path.member_counts(slot).unwrap().tx.frames;
    let lane = |slot, to: u8| Lane { slot, peer_mac: Some(peer(to)), weight: 1, rate: None, class: 0 };
    // Our members and the peer's; the second lane expected, or none.
    type Case = (&'static [(u8, u8)], Option<usize>);
    let cases: [Case; 6] = [
        (&[(0, 0), (0, 1), (1, 0), (1, 1)], Some(3)),
        (&[(0, 0), (0, 1), (1, 0)], Some(2)),
        (&[(0, 0), (0, 1)], Some(1)),
        (&[(0, 0), (1, 0), (2, 0)], Some(1)),
        (&[(0, 0), (1, 1), (2, 2)], Some(1)),
        (&[(0, 0)], None),
    ];
    for (lanes, second) in cases {
        let lanes: Vec<Lane> = lanes.iter().map(|(slot, to)| lane(*slot, *to)).collect();
        let plan = Plan { lanes: lanes.clone(), policy: Policy::Mirror, shares: false };
        rig.path.set_plan(1, &plan).unwrap();
        let before = [0, 1, 2].map(sent);
        let frame = udp(peer(0), own(0), 0, 100);
        let ran = rig.out(&frame);
        let Some(second) = second else {
            assert_once(&ran, &frame);
            continue;
        };
        assert_eq!((ran.source(), ran.destination()), (own(0), peer(0)));
        let mut expected = before;
        expected[0] += 1;
        expected[usize::from(lanes[second].slot)] += 1;
        assert_eq!([0, 1, 2].map(sent), expected, "{lanes:?}");
        let counts: Vec<u64> = rig.path.lane_counts(1).unwrap().iter().map(|lane| lane.frames).collect();
        assert_eq!((counts[0], counts[second], counts.iter().sum()), (1, 1, 2));
    }
}

#[test]
fn plain_hosts_groups_and_guests_get_no_mirrored_frames() {
    let rig = mirroring(2);
    for (to, from, reason) in
        [(PLAIN, own(0), "tx_plain"), (BROADCAST, own(0), "tx_multicast"), (peer(0), GUEST, "tx_guest")]
    {
        for _ in 0..3 {
            let frame = udp(to, from, 0, 100);
            let ran = rig.out(&frame);
            assert_eq!((&ran.reasons[..], &ran.frame[12..]), (&[reason][..], &frame[12..]));
        }
    }
}

//= docs/arp-plus.md#16.5 type=test
#[test]
fn each_class_counts_its_own_frames() {
    let rig = mirroring(4);
    let mirror = Plan { policy: Policy::Mirror, ..plan(&[(2, 1), (3, 1)], |slot| Some(peer(slot))) };
    rig.path.set_plan(9, &mirror).unwrap();
    rig.path.set_class_plan(1, 5, Some(9)).unwrap();
    rig.path.set_rules(&[row(5, &Rule { ethertype: Some(0x88f7), ..Rule::default() })]).unwrap();
    let urgent = ethernet(peer(0), own(0), 0x88f7, &[0; 60]);
    for sequence in 1..4 {
        assert_eq!(rig.out(&urgent).frame[12..], wrapped(&urgent, 0xcafe_f00d, sequence, 5)[12..]);
        assert_mirrored(&rig, &udp(peer(0), own(0), 0, 100), sequence, [0, 1]);
    }
    // By another plan its numbers go on.
    rig.path.set_class_plan(1, 5, None).unwrap();
    assert_eq!(rig.out(&urgent).frame[12..], wrapped(&urgent, 0xcafe_f00d, 4, 5)[12..]);
}

/// A frame of the peer for our member `slot`.
fn from_peer(slot: u8, bytes: usize) -> Vec<u8> {
    ethernet(own(slot), peer(slot), V4, &vec![0x45; bytes])
}

#[track_caller]
fn assert_passes(rig: &Rig, slot: u8, copy: &[u8], frame: &[u8]) {
    let ran = rig.arrives(slot, copy);
    assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["rx_mirror"][..]));
    // As it was, but for padding: so it arrives once more.
    assert_eq!(ran.frame[..frame.len()], *frame);
    assert!(ran.frame.len() == frame.len().max(60) && ran.frame[frame.len()..].iter().all(|byte| *byte == 0));
    assert_eq!(rig.arrives(slot, &ran.frame).reasons, ["rx_peer"]);
}

#[track_caller]
fn assert_dropped(rig: &Rig, slot: u8, copy: &[u8], reason: &str) {
    let ran = rig.arrives(slot, copy);
    assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Drop, &[reason][..]));
}

#[test]
fn the_first_copy_passes_and_the_second_one_does_not() {
    let rig = Rig::new(2);
    for sequence in 1..10 {
        let (first, second) = ((sequence % 2) as u8, 1 - (sequence % 2) as u8);
        let bytes = 10 * sequence as usize;
        assert_passes(
            &rig,
            first,
            &wrapped(&from_peer(first, bytes), 7, sequence, 2),
            &from_peer(first, bytes),
        );
        assert_dropped(&rig, second, &wrapped(&from_peer(second, bytes), 7, sequence, 2), "rx_mirror_copy");
        assert_dropped(&rig, first, &wrapped(&from_peer(first, bytes), 7, sequence, 2), "rx_mirror_copy");
    }
    let counts = [0, 1].map(|slot| rig.path.member_counts(slot).unwrap().rx.frames);
    assert_eq!(counts.iter().sum::<u64>(), 3 * 9, "each copy came in by a member");
}

#[test]
fn whatever_was_mirrored_arrives_as_it_was() {
    let rig = Rig::new(1);
    let tcp = Tcp { is_ours: false, ..Tcp::data(1, 777) }.frame(own(0), peer(0));
    for (sequence, frame) in
        (1..).zip([ethernet(own(0), peer(0), 0x88f7, &[7; 10]), tcp, ethernet(own(0), peer(0), 46, &[7; 46])])
    {
        assert_passes(&rig, 0, &wrapped(&frame, 1, sequence, 0), &frame);
    }
}

//= docs/arp-plus.md#16.5 type=test
#[test]
fn order_does_not_matter_within_the_window() {
    let rig = Rig::new(1);
    let arrives = |sequence: u32| rig.arrives(0, &wrapped(&from_peer(0, 50), 7, sequence, 0)).reasons;
    for sequence in [5, 3, 1026, 4, 1025, 6, 1024] {
        assert_eq!(arrives(sequence), ["rx_mirror"], "{sequence}");
        assert_eq!(arrives(sequence), ["rx_mirror_copy"], "{sequence}");
    }
    // Their places have been taken by 1026 and 1025.
    assert_eq!(arrives(2), ["rx_mirror_late"]);
    assert_eq!(arrives(1), ["rx_mirror_late"]);
    assert_eq!(arrives(7), ["rx_mirror"], "its place is free");
    assert_eq!(arrives(7 + 1024), ["rx_mirror"]);
}

#[test]
fn sequence_numbers_wrap() {
    let rig = Rig::new(1);
    let arrives = |sequence: u32| rig.arrives(0, &wrapped(&from_peer(0, 50), 7, sequence, 0)).reasons;
    // Whatever a sender begins with.
    for sequence in [u32::MAX - 1, u32::MAX, 1, 2, u32::MAX - 1000] {
        assert_eq!(arrives(sequence), ["rx_mirror"], "{sequence}");
        assert_eq!(arrives(sequence), ["rx_mirror_copy"], "{sequence}");
    }
    assert_eq!(arrives(1024 + 2), ["rx_mirror"]);
    assert_eq!(arrives(u32::MAX - 1024), ["rx_mirror_late"]);
    // So many frames went to others meanwhile that this looks like an earlier number.
    assert_eq!(arrives(2 + (1 << 31) + 2048), ["rx_mirror"]);
}

#[test]
fn senders_classes_and_lives_are_kept_apart() {
    let rig = Rig::new(1);
    let other = [2, 0, 0, 0, 5, 1];
    rig.path
        .set_peer_mac(
            other,
            &PeerMac { plan: 2, primary: other, broadcast_slot: 0, kind: PeerMacKind::default() },
        )
        .unwrap();
    let arrives = |from, epoch, sequence, class| {
        let frame = ethernet(own(0), from, V4, &[0x45; 60]);
        rig.arrives(0, &wrapped(&frame, epoch, sequence, class)).reasons
    };
    for (from, epoch, class) in [(peer(0), 1, 0), (other, 1, 0), (peer(0), 1, 7), (peer(0), 2, 0)] {
        assert_eq!(arrives(from, epoch, 1, class), ["rx_mirror"]);
        assert_eq!(arrives(from, epoch, 1, class), ["rx_mirror_copy"]);
        assert_eq!(arrives(from, epoch, 9000, class), ["rx_mirror"]);
    }
    // A sender that starts again counts from 1 again; what is left of its former life is known still.
    assert_eq!(arrives(peer(0), 3, 1, 0), ["rx_mirror"]);
    assert_eq!(arrives(peer(0), 2, 9000, 0), ["rx_mirror_copy"]);
    assert_eq!(arrives(peer(0), 2, 9001, 0), ["rx_mirror"]);
}

#[test]
fn more_streams_than_fit_cost_copies_and_no_frame() {
    let rig = Rig::new(1);
    let arrives = |epoch| rig.arrives(0, &wrapped(&from_peer(0, 50), epoch, 1, 0)).reasons;
    for epoch in 0..2000 {
        assert_eq!(arrives(epoch), ["rx_mirror"]);
        assert_eq!(arrives(epoch), ["rx_mirror_copy"]);
    }
}

//= docs/arp-plus.md#16.1 type=test
//= docs/arp-plus.md#16.2 type=test
//= docs/arp-plus.md#16.3 type=test
//= docs/arp-plus.md#16.4 type=test
#[test]
fn forged_and_broken_frames_are_dropped_and_counted() {
    let rig = Rig::new(2);
    let frame = from_peer(0, 60);
    let good = wrapped(&frame, 7, 1, 0);
    let with = |at: usize, value: u8| {
        let mut copy = good.clone();
        let at = copy.len() - TRAILER + at;
        copy[at] ^= value;
        copy
    };
    // The sum right again after a change.
    let balanced = |at: usize, value: u8| {
        let mut copy = with(at, value);
        let start = copy.len() - TRAILER;
        copy[start + 12..start + 14].copy_from_slice(&[0, 0]);
        let balance = !sum(&copy[start..]);
        copy[start + 12..start + 14].copy_from_slice(&balance.to_be_bytes());
        copy
    };
    let macs = |to: [u8; 6], from: [u8; 6]| [&to[..], &from[..], &good[12..]].concat();
    let cases = [
        ("a bit in the epoch", 0, with(0, 1), "rx_mirror_bad"),
        ("in the sequence", 0, with(7, 4), "rx_mirror_bad"),
        ("in the balance", 0, with(12, 1), "rx_mirror_bad"),
        ("another version", 0, balanced(11, 3), "rx_mirror_bad"),
        ("no such class", 0, balanced(10, 8), "rx_mirror_bad"),
        ("no sequence", 0, balanced(7, 1), "rx_mirror_bad"),
        ("not zero", 0, balanced(15, 1), "rx_mirror_bad"),
        ("mirrored twice", 0, wrapped(&good, 7, 2, 0), "rx_mirror_bad"),
        ("ARP+ in it", 0, wrapped(&ethernet(own(0), peer(0), 0x88b5, &[0; 60]), 7, 1, 0), "rx_mirror_bad"),
        ("a VLAN in it", 0, wrapped(&tagged(&frame, 5), 7, 1, 0), "rx_mirror_bad"),
        ("another one", 0, wrapped(&ethernet(own(0), peer(0), 0x88a8, &[0; 60]), 7, 1, 0), "rx_mirror_bad"),
        ("in a VLAN", 0, tagged(&good, 5), "rx_tagged"),
        ("cut", 0, good[..good.len() - 1].to_vec(), "rx_mirror_bad"),
        ("too short", 0, [&good[..59], &good[good.len() - TRAILER..]].concat(), "rx_mirror_bad"),
        ("nothing but a header", 0, good[..14].to_vec(), "rx_mirror_bad"),
        ("for all", 0, macs(BROADCAST, peer(0)), "rx_mirror_bad"),
        ("for a group", 0, macs([1, 0, 0x5e, 0, 0, 1], peer(0)), "rx_mirror_bad"),
        ("of a stranger", 0, macs(own(0), PLAIN), "rx_mirror_stranger"),
        ("of ourselves", 0, macs(own(0), own(1)), "rx_own"),
        ("flooded", 1, macs(own(0), peer(0)), "rx_flooded"),
    ];
    for (what, slot, copy, reason) in cases {
        let ran = rig.arrives(slot, &copy);
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Drop, &[reason][..]), "{what}");
    }
    // Nothing of that was taken for the first copy.
    assert_passes(&rig, 0, &good, &frame);
}
