//! Receive balancing for plain hosts: what goes to one of them alone names the member that it is to send to.

use crate::frames::{V4, V6, arp, ethernet, is_neighbour_right, neighbour, tagged};
use crate::plain::{hear, two_switches};
use crate::rig::{BROADCAST, PLAIN, Rig, own, peer};
use linkbraid_dataplane::{ANSWERS_MAX, Answer, Member, Verdict};

const ARP: u16 = 0x0806;
const REQUEST: u16 = 1;
const REPLY: u16 = 2;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_MAC: u8 = 1;
const TARGET_MAC: u8 = 2;

/// The link-layer option of neighbour discovery.
fn option(kind: u8, mac: [u8; 6]) -> Vec<u8> {
    [&[kind, 1][..], &mac].concat()
}

/// ARP of ours to a plain host; names `mac`.
fn our_arp(operation: u16, mac: [u8; 6]) -> Vec<u8> {
    ethernet(PLAIN, own(0), ARP, &arp(operation, (mac, 1), (PLAIN, 2)))
}

/// Neighbour discovery of ours to a plain host; names `mac`.
fn our_neighbour(kind: u8, mac: [u8; 6]) -> Vec<u8> {
    let named = option(if kind == SOLICITATION { SOURCE_MAC } else { TARGET_MAC }, mac);
    ethernet(PLAIN, own(0), V6, &neighbour(kind, &named))
}

/// What names the bond's MAC, and where in the frame.
fn namings() -> [(Vec<u8>, usize); 8] {
    let plain = [
        (our_arp(REQUEST, own(0)), 14 + 8),
        (our_arp(REPLY, own(0)), 14 + 8),
        (our_neighbour(SOLICITATION, own(0)), 14 + 40 + 26),
        (our_neighbour(ADVERTISEMENT, own(0)), 14 + 40 + 26),
    ];
    let [a, b, c, d] = plain.clone().map(|(frame, at)| (tagged(&frame, 7), at + 4));
    let [e, f, g, h] = plain;
    [a, b, c, d, e, f, g, h]
}

/// Everything that can be sent: the frame leaves as one for a plain host does, naming what it named.
#[track_caller]
fn assert_untouched(rig: &Rig, frame: &[u8]) {
    let ran = rig.out(frame);
    assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["tx_plain"][..]));
    assert_eq!(ran.frame[12..], frame[12..]);
}

#[test]
fn an_answer_names_the_member_it_leaves_by() {
    let rig = Rig::new(4);
    for slot in [3, 1, 0] {
        rig.path.set_answer(PLAIN, slot, false).unwrap();
        for (frame, at) in namings() {
            let ran = rig.out(&frame);
            assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["tx_answer"][..]));
            assert_eq!((ran.destination(), ran.source()), (PLAIN, own(slot)));
            assert_eq!(ran.frame[at..at + 6], own(slot));
            // Behind the MACs nothing else changes but ICMPv6's checksum, which is right.
            let mut rest = ran.frame.clone();
            rest[at..at + 6].copy_from_slice(&own(0));
            if at > 14 + 40 {
                assert!(is_neighbour_right(&ran.frame[at - 66..]), "slot {slot}");
                rest[at - 24..at - 22].copy_from_slice(&frame[at - 24..at - 22]);
            }
            assert_eq!(rest[12..], frame[12..]);
        }
    }
    let counts = [0, 1, 2, 3].map(|slot| rig.path.member_counts(slot).unwrap().tx.frames);
    assert_eq!(counts, [8, 8, 0, 8]);
    assert!(rig.path.lane_counts(0).unwrap().iter().all(|lane| lane.frames == 0));
}

#[test]
fn without_an_answer_the_bonds_mac_is_named() {
    let rig = Rig::new(2);
    rig.path.set_answer([2, 0, 0, 0, 3, 2], 1, true).unwrap();
    for (frame, _) in namings() {
        assert_untouched(&rig, &frame);
    }
    rig.path.set_answer(PLAIN, 1, false).unwrap();
    rig.path.delete_answer(PLAIN).unwrap();
    rig.path.delete_answer(PLAIN).unwrap();
    for (frame, _) in namings() {
        assert_untouched(&rig, &frame);
    }
}

#[test]
fn what_names_another_mac_or_nothing_stays_as_it_is() {
    let rig = Rig::new(2);
    rig.path.set_answer(PLAIN, 1, false).unwrap();
    let strange = [2, 0, 0, 0, 9, 9];
    let arp_with = |at: usize, value: u8| {
        let mut frame = our_arp(REPLY, own(0));
        frame[14 + at] = value;
        frame
    };
    let nd_with = |kind, options: &[u8]| ethernet(PLAIN, own(0), V6, &neighbour(kind, options));
    let nd_byte = |at: usize, value: u8| {
        let mut frame = our_neighbour(ADVERTISEMENT, own(0));
        frame[14 + at] = value;
        frame
    };
    let long = [option(TARGET_MAC, own(0)), vec![14; 80]].concat();
    let cases = [
        ("another MAC in ARP", our_arp(REPLY, strange)),
        ("a member's MAC in ARP", our_arp(REPLY, own(1))),
        ("no Ethernet", arp_with(1, 6)),
        ("no IPv4", arp_with(3, 1)),
        ("long hardware addresses", arp_with(4, 8)),
        ("long protocol addresses", arp_with(5, 16)),
        ("reverse ARP", arp_with(7, 3)),
        ("ARP cut short", our_arp(REPLY, own(0))[..41].to_vec()),
        ("another MAC in ND", our_neighbour(ADVERTISEMENT, strange)),
        ("no option", nd_with(ADVERTISEMENT, &[])),
        ("the other option", nd_with(ADVERTISEMENT, &option(SOURCE_MAC, own(0)))),
        ("the other option too", nd_with(SOLICITATION, &option(TARGET_MAC, own(0)))),
        (
            "another first option",
            nd_with(SOLICITATION, &[option(14, own(0)), option(SOURCE_MAC, own(0))].concat()),
        ),
        ("a long option", nd_with(ADVERTISEMENT, &[&[TARGET_MAC, 2][..], &own(0), &[0; 8]].concat())),
        ("a router's advertisement", nd_with(134, &option(SOURCE_MAC, own(0)))),
        ("through a router", nd_byte(7, 254)),
        ("a code", nd_byte(41, 1)),
        ("not ICMPv6", nd_byte(6, 17)),
        ("longer than ND is", nd_with(ADVERTISEMENT, &long)),
        ("IPv4", ethernet(PLAIN, own(0), V4, &arp(REPLY, (own(0), 1), (PLAIN, 2)))),
    ];
    for (what, frame) in cases {
        let ran = rig.out(&frame);
        assert_eq!(ran.reasons, ["tx_plain"], "{what}");
        assert_eq!(ran.frame[12..], frame[12..], "{what}");
    }
}

#[test]
fn peers_are_told_nothing_else() {
    let rig = Rig::new(2);
    rig.path.set_answer(peer(0), 1, false).unwrap();
    let frame = ethernet(peer(0), own(0), ARP, &arp(REPLY, (own(0), 1), (peer(0), 2)));
    let ran = rig.out(&frame);
    assert_eq!(ran.reasons, ["tx_peer"]);
    assert_eq!(ran.frame[12..], frame[12..]);
}

#[test]
fn a_member_that_cannot_be_used_is_not_named() {
    let rig = Rig::new(3);
    rig.path.set_answer(PLAIN, 2, false).unwrap();
    let frame = our_arp(REPLY, own(0));
    assert_eq!(rig.out(&frame).reasons, ["tx_answer"]);
    rig.path.set_failed_slots(0b100).unwrap();
    assert_untouched(&rig, &frame);
    rig.path.set_failed_slots(0b001).unwrap();
    assert_eq!(rig.out(&frame).reasons, ["tx_answer"]);
    rig.path.set_failed_slots(0).unwrap();
    let member = Member { ifindex: rig.members[2], mac: own(2), live: false, elected: 0 };
    rig.path.set_member(2, Some(&member)).unwrap();
    assert_untouched(&rig, &frame);
    rig.weights(&[1000, 1000]);
    rig.path.set_member(2, None).unwrap();
    assert_untouched(&rig, &frame);
}

#[test]
fn on_separate_switches_only_a_member_on_the_hosts_own_is_named() {
    let rig = two_switches();
    let frame = our_arp(REPLY, own(0));
    rig.path.set_answer(PLAIN, 1, false).unwrap();
    assert_eq!(rig.out(&frame).reasons, ["tx_multicast_copy", "tx_plain_unknown"], "not heard yet");
    hear(&rig, 2, own(2), PLAIN);
    assert_eq!(rig.out(&frame).reasons, ["tx_plain_segment"], "slot 1 is on the other switch");
    rig.path.set_answer(PLAIN, 3, false).unwrap();
    let ran = rig.out(&frame);
    assert_eq!((&ran.reasons[..], ran.source()), (&["tx_answer"][..], own(3)));
}

#[test]
fn telling_all_the_bonds_mac_is_counted() {
    let rig = Rig::new(2);
    let all_nodes = [0x33, 0x33, 0, 0, 0, 1];
    let request = |mac| ethernet(BROADCAST, own(0), ARP, &arp(REQUEST, (mac, 1), ([0; 6], 2)));
    let solicitation =
        |mac| ethernet(all_nodes, own(0), V6, &neighbour(SOLICITATION, &option(SOURCE_MAC, mac)));
    let sent = [
        request(own(0)),
        tagged(&request(own(0)), 7),
        solicitation(own(0)),
        ethernet(all_nodes, own(0), V6, &neighbour(ADVERTISEMENT, &option(TARGET_MAC, own(0)))),
        ethernet(BROADCAST, own(0), ARP, &arp(REPLY, (own(0), 1), (own(0), 1))),
    ];
    for frame in &sent {
        let ran = rig.out(frame);
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["tx_asked_all"][..]));
        assert_eq!(ran.frame[12..], frame[12..]);
    }
    // Duplicate address detection names nobody.
    let silent = ethernet(all_nodes, own(0), V6, &neighbour(SOLICITATION, &[]));
    for frame in [request(own(1)), solicitation(own(1)), silent] {
        assert_eq!(rig.out(&frame).reasons, ["tx_multicast"]);
    }
    let rig = two_switches();
    assert_eq!(rig.out(&sent[0]).reasons, ["tx_multicast_copy", "tx_asked_all"]);
}

#[test]
fn the_table_has_a_limit_and_can_be_read() {
    let rig = Rig::new(2);
    let host = |i: usize| [2, 0, 0, 5, (i >> 8) as u8, i as u8];
    for i in 0..ANSWERS_MAX {
        rig.path.set_answer(host(i), (i % 2) as u8, i % 3 == 0).unwrap();
    }
    let error = rig.path.set_answer(host(ANSWERS_MAX), 0, false).unwrap_err().to_string();
    assert!(error.contains("lb_answers"), "{error}");
    // A change is no new entry.
    rig.path.set_answer(host(7), 0, true).unwrap();
    let rows = rig.path.answers().unwrap();
    assert_eq!(rows.len(), ANSWERS_MAX);
    assert_eq!(rows[7], (host(7), Answer { slot: 0, probed: true }));
    assert_eq!(rows[8], (host(8), Answer { slot: 0, probed: false }));
    assert_eq!(rows[9], (host(9), Answer { slot: 1, probed: true }));
    let error = rig.path.set_answer(PLAIN, 16, false).unwrap_err();
    assert_eq!(error.to_string(), "slot: 16 is outside the allowed range 0 to 15");
}

#[test]
fn a_plain_host_may_send_to_each_members_mac() {
    let rig = Rig::new(4);
    for slot in 0..4 {
        rig.path.set_answer(PLAIN, slot, true).unwrap();
        for payload in
            [ethernet(own(slot), PLAIN, V4, &[0x45; 60]), ethernet(own(slot), PLAIN, V6, &[0x60; 60])]
        {
            let ran = rig.arrives(slot, &payload);
            assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Pass, &["rx_plain"][..]));
            assert_eq!((ran.destination(), ran.source()), (own(0), PLAIN));
            assert_eq!(ran.frame[12..], payload[12..]);
        }
    }
}
