//! The way in: what passes, what is dropped, what goes to the daemon.

use crate::frames::{ethernet, tagged};
use crate::lent::Lent;
use crate::rig::{BROADCAST, GUEST, PLAIN, Ran, Rig, ip, new_namespace, own, peer};
use linkbraid_dataplane::{ArpPlusFrame, Member, PeerMac, PeerMacKind, Verdict, Way};
use nix::poll::{PollFd, PollFlags, poll};
use std::os::fd::{AsRawFd, BorrowedFd};

const ARP_PLUS: u16 = 0x88b5;

fn frame(to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    ethernet(to, from, 0x0800, &[0x45; 60])
}

#[track_caller]
fn assert_ran(ran: &Ran, verdict: Verdict, reason: &str) {
    assert_eq!((ran.verdict, &ran.reasons[..]), (verdict, &[reason][..]));
}

/// A frame for `GUEST` on the member that speaks for it.
fn guest_slot(rig: &Rig) -> u8 {
    rig.out(&frame(PLAIN, GUEST));
    (0..rig.members.len() as u8)
        .find(|slot| rig.path.member_counts(*slot).unwrap().tx.frames == 1)
        .expect("the guest's frame left by a member")
}

#[test]
fn unicast_by_who_sent_it_and_whom_it_is_for() {
    let rig = Rig::new(3);
    let strange = [2, 0, 0, 0, 9, 9];
    // What, arrives on, to, from; verdict, reason; the MACs afterwards.
    type Case = (&'static str, u8, [u8; 6], [u8; 6], Verdict, &'static str, [u8; 6], [u8; 6]);
    let cases: [Case; 10] = [
        ("first lane", 0, own(0), peer(0), Verdict::Pass, "rx_peer", own(0), peer(0)),
        ("straight lane", 2, own(2), peer(2), Verdict::Pass, "rx_peer", own(0), peer(0)),
        ("crossed lane", 1, own(1), peer(2), Verdict::Pass, "rx_peer", own(0), peer(0)),
        ("plain host, bond's MAC", 0, own(0), PLAIN, Verdict::Pass, "rx_plain", own(0), PLAIN),
        ("plain host, member's MAC", 1, own(1), PLAIN, Verdict::Pass, "rx_plain", own(0), PLAIN),
        ("flooded: another member's", 1, own(2), peer(0), Verdict::Drop, "rx_flooded", own(2), peer(0)),
        ("flooded: the bond's", 2, own(0), PLAIN, Verdict::Drop, "rx_flooded", own(0), PLAIN),
        ("own frame", 1, own(1), own(2), Verdict::Drop, "rx_own", own(1), own(2)),
        ("own broadcast", 1, BROADCAST, own(0), Verdict::Drop, "rx_own", BROADCAST, own(0)),
        ("own, for a stranger", 0, strange, own(1), Verdict::Drop, "rx_own", strange, own(1)),
    ];
    for (what, slot, to, from, verdict, reason, new_to, new_from) in cases {
        let sent = frame(to, from);
        let ran = rig.arrives(slot, &sent);
        assert_eq!((ran.verdict, &ran.reasons[..]), (verdict, &[reason][..]), "{what}");
        assert_eq!((ran.destination(), ran.source()), (new_to, new_from), "{what}");
        assert_eq!(ran.frame[12..], sent[12..], "{what}");
    }
}

#[test]
fn a_guests_frames_come_in_by_its_member_only() {
    let rig = Rig::new(3);
    let speaker = guest_slot(&rig);
    for slot in 0..3 {
        let sent = frame(GUEST, peer(0));
        let ran = rig.arrives(slot, &sent);
        if slot == speaker {
            assert_ran(&ran, Verdict::Pass, "rx_guest");
        } else {
            assert_ran(&ran, Verdict::Drop, "rx_stranger");
        }
        assert_eq!(ran.frame, sent);
    }
}

#[test]
fn one_copy_of_a_broadcast_passes() {
    let rig = Rig::new(4);
    for slot in 0..4 {
        rig.set_member(slot, 2);
    }
    let row = PeerMac { plan: 1, primary: peer(0), broadcast_slot: 3, kind: PeerMacKind::default() };
    rig.path.set_peer_mac(peer(1), &row).unwrap();
    for to in [BROADCAST, [1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]] {
        // A plain host's passes on the elected member, a peer's where its row says; and the sender is put right.
        for (from, accepts, source) in [(PLAIN, 2, PLAIN), (peer(1), 3, peer(0))] {
            for slot in 0..4 {
                let ran = rig.arrives(slot, &frame(to, from));
                if slot == accepts {
                    assert_ran(&ran, Verdict::Pass, "rx_multicast");
                    assert_eq!((ran.destination(), ran.source()), (to, source));
                } else {
                    assert_ran(&ran, Verdict::Drop, "rx_copy");
                }
            }
        }
    }
}

#[test]
fn an_interface_that_is_no_member_is_left_alone() {
    let mut rig = Rig::new(2);
    let sent = frame(own(1), peer(1));
    // What is for it alone passes; the rest could go round by it.
    assert_ran(&rig.arrives_on(rig.bond.ifindex, &sent), Verdict::Drop, "rx_not_yet");
    ip("link set bond address 02:00:00:00:01:01");
    let ran = rig.arrives_on(rig.bond.ifindex, &sent);
    assert_ran(&ran, Verdict::Pass, "rx_not_ours");
    assert_eq!(ran.frame, sent);
    rig.path.set_member(1, None).unwrap();
    assert_ran(&rig.arrives(1, &sent), Verdict::Drop, "rx_not_yet");
    rig.members.pop();
    // It may be a guest's by now.
    let ran = rig.arrives(0, &frame(own(1), peer(1)));
    assert!(ran.reasons == ["rx_stranger"] || ran.reasons == ["rx_guest"], "{:?}", ran.reasons);
}

#[test]
fn a_members_interface_may_have_any_index() {
    let rig = Rig::new(2);
    let sent = frame(own(1), peer(1));
    let mut before = rig.members[1];
    for ifindex in [4095, 4096, 70_000, 77] {
        ip(&format!("link add any{ifindex} index {ifindex} type bridge"));
        assert_ran(&rig.arrives_on(ifindex, &sent), Verdict::Drop, "rx_not_yet");
        let member = Member { ifindex, mac: own(1), live: true, elected: 0 };
        rig.path.set_member(1, Some(&member)).unwrap();
        assert_ran(&rig.arrives_on(ifindex, &sent), Verdict::Pass, "rx_peer");
        assert_ran(&rig.arrives_on(before, &sent), Verdict::Drop, "rx_not_yet");
        before = ifindex;
    }
    rig.path.set_member(1, None).unwrap();
    assert_ran(&rig.arrives_on(before, &sent), Verdict::Drop, "rx_not_yet");
}

#[test]
fn a_peer_that_left_is_a_plain_host() {
    let rig = Rig::new(2);
    rig.path.delete_peer_mac(peer(1)).unwrap();
    rig.path.delete_peer_mac(peer(1)).unwrap();
    let ran = rig.arrives(1, &frame(own(1), peer(1)));
    assert_ran(&ran, Verdict::Pass, "rx_plain");
    assert_eq!((ran.destination(), ran.source()), (own(0), peer(1)));
}

#[test]
fn peers_whose_macs_end_alike_are_told_apart() {
    let rig = Rig::new(2);
    let [first, second] = [0x41, 0x42].map(|byte| [2, byte, 0, 0, 7, 9]);
    let arrives = |from| {
        let ran = rig.arrives(1, &frame(own(1), from));
        assert_eq!(ran.verdict, Verdict::Pass);
        (ran.reasons[0], ran.source())
    };
    // Each in turn has the place to itself, comes second, or has lost it.
    for [first, second] in [[first, second], [second, first]] {
        let set = |mac, primary| {
            rig.path
                .set_peer_mac(
                    mac,
                    &PeerMac { plan: 1, primary, broadcast_slot: 0, kind: PeerMacKind::default() },
                )
                .unwrap();
        };
        set(first, peer(2));
        assert_eq!([arrives(first), arrives(second)], [("rx_peer", peer(2)), ("rx_plain", second)]);
        set(second, peer(3));
        assert_eq!([arrives(first), arrives(second)], [("rx_peer", peer(2)), ("rx_peer", peer(3))]);
        set(first, peer(3));
        set(second, peer(2));
        assert_eq!([arrives(first), arrives(second)], [("rx_peer", peer(3)), ("rx_peer", peer(2))]);
        rig.path.delete_peer_mac(first).unwrap();
        assert_eq!([arrives(first), arrives(second)], [("rx_plain", first), ("rx_peer", peer(2))]);
        set(second, peer(3));
        assert_eq!(arrives(second), ("rx_peer", peer(3)));
        rig.path.delete_peer_mac(second).unwrap();
        assert_eq!([arrives(first), arrives(second)], [("rx_plain", first), ("rx_plain", second)]);
    }
}

#[test]
fn arp_plus_goes_to_the_daemon_whole() {
    let rig = Rig::new(2);
    let mut ring = rig.path.arp_plus_ring().unwrap();
    let sent: Vec<Vec<u8>> = [0usize, 46, 1499, 1500]
        .iter()
        .map(|bytes| ethernet(BROADCAST, peer(0), ARP_PLUS, &vec![*bytes as u8; *bytes]))
        .collect();
    for frame in &sent {
        assert_ran(&rig.arrives(1, frame), Verdict::Drop, "rx_arp_plus");
    }
    let long = ethernet(BROADCAST, peer(0), ARP_PLUS, &[0; 1501]);
    assert_ran(&rig.arrives(1, &long), Verdict::Drop, "rx_arp_plus_long");
    for frame in sent {
        assert_eq!(ring.next_frame(), handed(1, frame));
    }
    assert_eq!(ring.next_frame(), None);
}

//= docs/arp-plus.md#10.4 type=test
#[test]
fn of_a_padded_request_the_daemon_gets_the_head() {
    let rig = Rig::new(2);
    let mut ring = rig.path.arp_plus_ring().unwrap();
    let of = |kind: u8, bytes: usize| {
        let message = [&[6, 0, 1, kind][..], &vec![7; bytes - 4]].concat();
        ethernet(BROADCAST, peer(0), ARP_PLUS, &message)
    };
    for bytes in [234, 235, 1500, 1501, 3000] {
        let frame = of(5, bytes);
        assert_ran(&rig.arrives(1, &frame), Verdict::Drop, "rx_arp_plus");
        assert_eq!(ring.next_frame(), handed(1, frame[..248].to_vec()), "{bytes}");
    }
    // Nothing else is cut.
    let answer = of(6, 1500);
    assert_ran(&rig.arrives(1, &answer), Verdict::Drop, "rx_arp_plus");
    assert_eq!(ring.next_frame(), handed(1, answer));
    assert_ran(&rig.arrives(1, &of(6, 1501)), Verdict::Drop, "rx_arp_plus_long");
}

//= docs/arp-plus.md#1.1 type=test
#[test]
fn arp_plus_in_a_vlan_is_refused() {
    let rig = Rig::new(1);
    let mut ring = rig.path.arp_plus_ring().unwrap();
    let sent = ethernet(BROADCAST, peer(0), ARP_PLUS, &[0; 46]);
    for tag in [1, 5, 4095, 0xe001] {
        assert_ran(&rig.arrives(0, &tagged(&sent, tag)), Verdict::Drop, "rx_tagged");
    }
    assert_eq!(ring.next_frame(), None);
    // What else is in a VLAN is none of our business.
    assert_ran(&rig.arrives(0, &tagged(&frame(own(0), peer(0)), 5)), Verdict::Pass, "rx_peer");
}

/// What the daemon gets of a frame whose sender is known, or was not heard before.
pub fn handed(slot: u8, bytes: Vec<u8>) -> Option<ArpPlusFrame> {
    Some(ArpPlusFrame { slot, heard_again: false, bytes })
}

/// These frames arrive one after the other, as fast as they can. Nobody looks what becomes of each.
fn flood(rig: &Rig, frames: impl Iterator<Item = Vec<u8>>) {
    frames.for_each(|frame| _ = rig.path.trial(Way::In, &frame, rig.members[0]).unwrap());
}

/// How many of these frames the rings take before one is dropped, and for what reason.
fn fill(rig: &Rig, sent: &[u8]) -> (usize, &'static str) {
    for taken in 0..10_000 {
        match rig.arrives(0, sent).reasons[..] {
            ["rx_arp_plus"] => {}
            [reason] => return (taken, reason),
            _ => panic!("one reason a frame"),
        }
    }
    panic!("the ring never fills");
}

/// Hundreds of hosts say again and again what is known of them.
#[test]
fn what_says_nothing_new_wakes_nobody_and_is_handed_over_all_the_same() {
    let rig = Rig::new(2);
    let mut ring = rig.path.arp_plus_ring().unwrap();
    let says = |kind: u8, from: [u8; 6], sequence: u8| {
        let head = [&[6, 0, 1, kind][..], &from, &[1, 1, 1, 2, 24], &[9; 24], &[3, 4, 0, 0, 0, sequence]];
        ethernet(BROADCAST, from, ARP_PLUS, &head.concat())
    };
    let mut wakes = |slot: u8, frame: Vec<u8>| {
        assert_ran(&rig.arrives(slot, &frame), Verdict::Drop, "rx_arp_plus");
        // SAFETY: the ring lives as long as the test.
        let fd = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) };
        let woken = poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], 50u8).unwrap() > 0;
        assert_eq!(ring.next_frame(), handed(slot, frame));
        assert_eq!(ring.next_frame(), None);
        // What was read is ready no more.
        assert_eq!(poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], 0u8).unwrap(), 0);
        woken
    };
    assert!(wakes(0, says(3, peer(0), 1)), "its first word");
    assert!(!wakes(0, says(3, peer(0), 1)), "the same again");
    assert!(wakes(1, says(3, peer(0), 1)), "another pair of members");
    assert!(!wakes(1, says(3, peer(0), 1)) && !wakes(0, says(3, peer(0), 1)), "both again");
    assert!(wakes(0, says(1, peer(0), 1)), "a question");
    assert!(wakes(0, says(3, peer(0), 2)) && wakes(1, says(3, peer(0), 2)), "another mapping");
    assert!(!wakes(0, says(3, peer(0), 2)), "that one again");
    assert!(wakes(0, says(5, peer(0), 2)) && wakes(0, says(5, peer(0), 2)), "each PROBE");
    assert!(wakes(0, says(3, PLAIN, 1)) && wakes(0, says(3, PLAIN, 1)), "a stranger");
}

#[test]
fn a_full_ring_drops_arp_plus_and_works_again_once_read() {
    let rig = Rig::new(1);
    let mut ring = rig.path.arp_plus_ring().unwrap();
    // What is left of a budget comes back with time; the ring does not.
    let sent = ethernet(BROADCAST, PLAIN, ARP_PLUS, &[0; 1500]);
    let mut taken = 0;
    let began = std::time::Instant::now();
    loop {
        let (more, reason) = fill(&rig, &sent);
        taken += more;
        if reason == "rx_arp_plus_full" {
            break;
        }
        assert_eq!(reason, "rx_arp_plus_rate");
        assert!(began.elapsed().as_secs() < 10, "the ring never fills");
    }
    assert_eq!(std::iter::from_fn(|| ring.next_frame()).count(), taken);
    assert_ran(&rig.arrives(0, &sent), Verdict::Drop, "rx_arp_plus");
}

#[test]
fn strangers_take_no_room_of_those_who_are_known() {
    let rig = Rig::new(1);
    let mut ring = rig.path.arp_plus_ring().unwrap();
    while fill(&rig, &ethernet(BROADCAST, PLAIN, ARP_PLUS, &[0; 1500])).1 != "rx_arp_plus_full" {}
    let announced = [peer(0), own(0)].map(|from| ethernet(BROADCAST, from, ARP_PLUS, &[7; 100]));
    for frame in &announced {
        assert_ran(&rig.arrives(0, frame), Verdict::Drop, "rx_arp_plus");
    }
    // And they come first.
    for frame in announced {
        assert_eq!(ring.next_frame(), handed(0, frame));
    }
    // One peer cannot fill it: whoever takes its name takes nobody else's share.
    let in_its_name = ethernet(BROADCAST, peer(0), ARP_PLUS, &[0; 1500]);
    let began = std::time::Instant::now();
    while rig.arrives(0, &in_its_name).reasons != ["rx_arp_plus_rate"] {
        assert!(began.elapsed().as_secs() < 20, "nobody limits it");
        flood(&rig, std::iter::repeat_n(in_its_name.clone(), 100));
        while ring.next_frame().is_some() {}
    }
    assert_ran(
        &rig.arrives(0, &ethernet(BROADCAST, own(0), ARP_PLUS, &[7; 100])),
        Verdict::Drop,
        "rx_arp_plus",
    );
}

//= docs/arp-plus.md#7.13 type=test
#[test]
fn a_flood_of_others_leaves_room_for_a_stranger_who_speaks_again() {
    let rig = Rig::new(1);
    let mut ring = rig.path.arp_plus_ring().unwrap();
    let mut made_up = (1u32..).map(|number| {
        let [.., a, b, c] = number.to_be_bytes();
        let broadcast = [6, 4, 1, 1].into_iter().chain([0; 1400]).collect::<Vec<_>>();
        ethernet(BROADCAST, [6, 0, 9, a, b, c], ARP_PLUS, &broadcast)
    });
    let speaks = |message: u8| {
        let head = [6, 4, 1, message].into_iter().chain([0; 46]).collect::<Vec<_>>();
        rig.arrives(0, &ethernet(BROADCAST, [6, 0, 8, 0, 0, 1], ARP_PLUS, &head)).reasons == ["rx_arp_plus"]
    };
    let began = std::time::Instant::now();
    let (change, probe) = (3, 5);
    // Who has not said who it is has no PROBEs of its own.
    while speaks(probe) {
        assert!(began.elapsed().as_secs() < 20, "PROBEs of anybody have room");
        flood(&rig, made_up.by_ref().take(100));
        while ring.next_frame().is_some() {}
    }
    for _ in 0..2 {
        loop {
            assert!(began.elapsed().as_secs() < 20, "the flood takes all the room");
            flood(&rig, made_up.by_ref().take(100));
            while ring.next_frame().is_some() {}
            // Nothing is left of what strangers have together.
            let another = made_up.next().unwrap();
            if speaks(change) && rig.arrives(0, &another).reasons == ["rx_arp_plus_rate"] {
                break;
            }
        }
        assert!(ring.next_frame().is_some_and(|frame| frame.heard_again));
        // A challenge, or its answer; once in a while.
        assert!(speaks(probe), "it is asked, and cannot answer");
        while speaks(probe) {
            assert!(began.elapsed().as_secs() < 20, "one stranger's PROBEs take all the room");
        }
        while ring.next_frame().is_some() {}
    }
}

#[test]
fn a_ring_that_nobody_read_is_emptied_at_once() {
    let rig = Rig::new(1);
    let old = ethernet(BROADCAST, peer(0), ARP_PLUS, &[1; 46]);
    let new = ethernet(BROADCAST, peer(0), ARP_PLUS, &[2; 46]);
    let (taken, _) = fill(&rig, &old);
    // Opened as the daemon does that comes after one that died.
    let mut ring = rig.path.arp_plus_ring().unwrap();
    assert_eq!(ring.discard(), taken);
    assert_eq!(ring.discard(), 0);
    assert_ran(&rig.arrives(0, &new), Verdict::Drop, "rx_arp_plus");
    assert_eq!(ring.next_frame(), handed(0, new));
    assert_eq!(ring.next_frame(), None);
}

#[test]
fn member_counters_count_what_passed() {
    let rig = Rig::new(2);
    let sent = frame(own(1), peer(1));
    for _ in 0..3 {
        rig.arrives(1, &sent);
    }
    rig.arrives(0, &sent);
    let counts = [0, 1].map(|slot| rig.path.member_counts(slot).unwrap());
    assert_eq!((counts[0].rx.frames, counts[1].rx.frames), (0, 3));
    assert_eq!(counts[1].rx.bytes, 3 * sent.len() as u64);
    rig.path.clear_member_counts(1).unwrap();
    assert_eq!(rig.path.member_counts(1).unwrap().rx.frames, 0);
}

#[test]
fn without_a_bond_everything_passes_untouched() {
    new_namespace();
    let path = Lent::take();
    let sent = frame(own(0), peer(0));
    let ran = path.trial(linkbraid_dataplane::Way::In, &sent, 1).unwrap();
    assert_eq!((ran.verdict, ran.frame), (Verdict::Pass, sent));
}
