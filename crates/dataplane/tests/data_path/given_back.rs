//! What peers send for guests here and from guests there: whose MACs it gets.

use crate::damp::{STRIPE, at, block};
use crate::frames::{Tcp, V4, arp, ethernet, ip_packet, read_sack};
use crate::mirror::trailer;
use crate::pairs::{
    ARP, FAR, FAR_HOST, NEAR_HOST, alias, answer, assert_by_lane, assert_ran, guest_address, kinds,
    know_guests, others, pair, set_peer_mac, with_guests,
};
use crate::rig::{BROADCAST, GUEST, own, peer};
use crate::steer::udp;
use linkbraid_dataplane::{GuestPair, PeerMacKind, Policy, Verdict};

//= docs/arp-plus.md#14.9 type=test
#[test]
fn what_comes_for_a_guest_gets_both_macs() {
    let rig = with_guests(4);
    for (i, frame) in (0u8..).zip(kinds(answer, own(0), alias(peer(0)))) {
        let (slot, from) = (i % 4, (i + 1) % 4);
        let frame = [&own(slot)[..], &alias(peer(from)), &frame[12..]].concat();
        let ran = rig.arrives(slot, &frame);
        assert_ran(&ran, Verdict::Pass, "rx_for_guest");
        assert_eq!((ran.destination(), ran.source()), (GUEST, FAR));
        assert_eq!(ran.frame[12..], frame[12..]);
    }
    // From the peer itself, or from a host behind it.
    let frame = ethernet(own(1), alias(peer(1)), V4, &ip_packet(V4, 17, 77, NEAR_HOST, &[0; 40]));
    let ran = rig.arrives(1, &frame);
    assert_ran(&ran, Verdict::Pass, "rx_for_guest");
    assert_eq!((ran.destination(), ran.source()), (GUEST, peer(0)));
}

#[test]
fn what_comes_for_a_guest_by_another_members_way_is_taken_in_once() {
    let rig = with_guests(2);
    let frame = answer(V4, own(1), alias(peer(1)));
    assert_ran(&rig.arrives(0, &frame), Verdict::Drop, "rx_flooded");
    rig.path.set_failed_slots(0b10).unwrap();
    let ran = rig.arrives(0, &frame);
    assert_ran(&ran, Verdict::Pass, "rx_for_guest");
    assert_eq!((ran.destination(), ran.source()), (GUEST, FAR));
}

#[test]
fn what_a_peer_sends_to_be_routed_is_not_taken_for_the_guest() {
    let rig = with_guests(2);
    for frame in kinds(answer, own(1), peer(1)) {
        let ran = rig.arrives(1, &frame);
        assert_ran(&ran, Verdict::Pass, "rx_peer");
        assert_eq!((ran.destination(), ran.source()), (own(0), FAR), "the guest's MAC is given back");
        assert_eq!(ran.frame[12..], frame[12..]);
    }
}

#[test]
fn only_that_peers_own_guests_get_their_macs_back() {
    let rig = with_guests(2);
    let source = |frame: &[u8]| {
        let ran = rig.arrives(1, frame);
        assert_ran(&ran, Verdict::Pass, "rx_peer");
        assert_eq!(ran.destination(), own(0));
        ran.source()
    };
    let frame = answer(V4, own(1), peer(1));
    assert_eq!(source(&frame), FAR);
    for wrong in [Some(GuestPair { mac: FAR, plan: 2 }), Some(GuestPair { mac: FAR, plan: 0 }), None] {
        rig.path.set_guest_pair(guest_address(V4, 0, FAR_HOST), wrong).unwrap();
        assert_eq!(source(&frame), peer(0));
    }
    for (_, frame) in others(own(1), peer(1)) {
        assert_eq!(source(&frame), peer(0));
    }
    know_guests(&rig);
    set_peer_mac(&rig, peer(1), 1, PeerMacKind::default());
    assert_eq!(source(&frame), peer(0), "it has no guests");
}

#[test]
fn a_host_whose_mac_is_like_an_alias_is_a_plain_host() {
    let rig = with_guests(2);
    let like = alias(peer(1));
    for (what, frame) in others(own(1), like) {
        let ran = rig.arrives(1, &frame);
        let reason = match what {
            "an unknown destination" | "another VLAN" | "cut behind the tag" | "cut in the header" => {
                "rx_no_guest"
            }
            // It is for a guest behind the peer.
            "neighbour discovery" => continue,
            _ => "rx_plain",
        };
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Pass, &[reason][..]), "{what}");
        assert_eq!((ran.destination(), ran.source()), (own(0), like), "{what}");
    }
    let arrives = |slot, to| rig.arrives(slot, &ethernet(to, like, ARP, &[0; 46]));
    let ran = arrives(0, BROADCAST);
    assert_ran(&ran, Verdict::Pass, "rx_multicast");
    assert_eq!(ran.source(), like);
    assert_ran(&arrives(1, BROADCAST), Verdict::Drop, "rx_copy");
}

//= docs/arp-plus.md#14.9 type=test
#[test]
fn what_is_for_a_guest_that_went_to_a_peer_is_not_routed_there() {
    let rig = with_guests(2);
    for plan in [1, 2] {
        pair(&rig, guest_address(V4, 0, NEAR_HOST), GUEST, plan);
        let ran = rig.arrives(1, &answer(V4, own(1), alias(peer(1))));
        assert_ran(&ran, Verdict::Drop, "rx_guest_away");
    }
}

#[test]
fn a_stranger_cannot_speak_as_an_alias_of_nobody() {
    let rig = with_guests(2);
    // The alias of a host that is no peer: as from any plain host, and so is our own.
    for like in [[0, 0, 0, 0, 9, 9], alias(own(0))] {
        let ran = rig.arrives(1, &answer(V4, own(1), like));
        assert_ran(&ran, Verdict::Pass, "rx_plain");
        assert_eq!((ran.destination(), ran.source()), (own(0), like));
    }
    // A peer that has no lanes any more.
    set_peer_mac(&rig, alias(peer(1)), 0, PeerMacKind::Alias { has_guests: true });
    let ran = rig.arrives(1, &answer(V4, own(1), alias(peer(1))));
    assert_ran(&ran, Verdict::Pass, "rx_plain");
}

#[test]
fn what_a_peers_guest_sends_by_its_own_mac_is_a_plain_hosts() {
    let rig = with_guests(2);
    rig.set_member(0, 1);
    rig.set_member(1, 1);
    let frame = ethernet(BROADCAST, FAR, ARP, &arp(1, (FAR, FAR_HOST), ([0; 6], NEAR_HOST)));
    // Not where the peer's broadcasts are taken in, and not as the peer's.
    assert_ran(&rig.arrives(0, &frame), Verdict::Drop, "rx_copy");
    let ran = rig.arrives(1, &frame);
    assert_ran(&ran, Verdict::Pass, "rx_multicast");
    assert_eq!(ran.frame, frame);
    let ran = rig.arrives(1, &answer(V4, own(1), FAR));
    assert_ran(&ran, Verdict::Pass, "rx_plain");
    assert_eq!((ran.destination(), ran.source()), (own(0), FAR));
    let arrived: Vec<_> = (0..2).map(|slot| rig.arrives(slot, &answer(V4, GUEST, FAR)).reasons[0]).collect();
    assert!(arrived.contains(&"rx_guest") && arrived.contains(&"rx_stranger"), "{arrived:?}");
}

#[test]
fn what_is_mirrored_comes_from_two_aliases() {
    let mut rig = with_guests(2);
    rig.set_policy(Policy::Mirror);
    for (to, from) in [(FAR, GUEST), (FAR, own(0)), (peer(0), GUEST)] {
        let ran = rig.out(&udp(to, from, 0, 100));
        assert_eq!(
            (ran.verdict, &ran.reasons[..]),
            (Verdict::Redirect, &["tx_mirror", "tx_mirror_copy"][..])
        );
        let source = if to == FAR { alias(own(0)) } else { own(0) };
        assert_eq!((ran.source(), ran.destination()), (source, peer(0)));
    }
    let frame = udp(FAR, GUEST, 0, 1480);
    let ran = rig.out(&frame);
    assert_ran(&ran, Verdict::Redirect, "tx_mirror_once");
    assert_eq!((ran.source(), ran.destination()), (alias(own(0)), peer(0)), "it has no room for the trailer");
    // The first copy comes again as the frame that it was.
    let sent = answer(V4, own(0), alias(peer(0)));
    let mut copy = sent.clone();
    copy.extend(trailer(7, 1, 0, [8, 0]));
    copy[12..14].copy_from_slice(&[0x88, 0xb6]);
    let ran = rig.arrives(0, &copy);
    assert_ran(&ran, Verdict::Redirect, "rx_mirror");
    assert_eq!(ran.frame, sent);
    assert_ran(&rig.arrives(0, &ran.frame), Verdict::Pass, "rx_for_guest");
    let second = [&own(1)[..], &alias(peer(1)), &copy[12..]].concat();
    assert_ran(&rig.arrives(1, &second), Verdict::Drop, "rx_mirror_copy");
}

#[test]
fn holes_in_a_guests_flow_are_damped() {
    let rig = with_guests(4);
    for i in 0..8 {
        let slot =
            assert_by_lane(&rig, &Tcp::data(at(i), STRIPE as usize).frame(FAR, GUEST), "tx_for_guest", alias);
        assert_eq!(u32::from(slot), i % 4);
    }
    let ack = |blocks: &[(u32, u32)]| {
        let ran = rig.arrives(0, &Tcp::ack(at(1), blocks).frame(own(0), alias(peer(0))));
        let (blocks, is_right) = read_sack(&ran.frame);
        assert!(is_right, "the checksum is wrong");
        (ran.reasons[0], (ran.verdict == Verdict::Pass).then_some((ran.destination(), ran.source(), blocks)))
    };
    assert_eq!(ack(&[]), ("rx_for_guest", Some((GUEST, FAR, vec![]))));
    assert_eq!(ack(&[block(2, 3)]), ("rx_ack_masked", Some((GUEST, FAR, vec![]))));
    assert_eq!(ack(&[block(2, 4)]), ("rx_ack_damped", None));
    // Later data on the hole's own lane.
    assert_eq!(ack(&[block(2, 6)]), ("rx_ack_lost", Some((GUEST, FAR, vec![block(2, 6)]))));
}
