//! Plain hosts' answers to the daemon's probes: of ARP a copy for the daemon, the frame itself as ever; of neighbour discovery
//! the frame itself, since the kernel has no such address.

use crate::frames::{V6, arp, ethernet, neighbour};
use crate::rig::{BROADCAST, PLAIN, Rig, own, peer};
use crate::take::handed;
use linkbraid_dataplane::Verdict;

const ARP: u16 = 0x0806;
const REQUEST: u16 = 1;
const REPLY: u16 = 2;

/// A plain host's reply to a probe that the member `slot` sent, as long as the wire makes it.
fn reply(slot: u8) -> Vec<u8> {
    let mut frame = ethernet(own(slot), PLAIN, ARP, &arp(REPLY, (PLAIN, 2), (own(slot), 0)));
    frame.resize(60, 0);
    frame
}

#[test]
fn a_reply_is_copied_whole_as_it_arrived_and_passes() {
    let rig = Rig::new(3);
    rig.path.set_answer(PLAIN, 1, true).unwrap();
    let mut ring = rig.path.arp_plus_ring().unwrap();
    // Whichever member it was told to send to: the probe named the one that asks.
    for slot in 0..3 {
        let ran = rig.arrives(slot, &reply(slot));
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Pass, &["rx_plain", "rx_probed"][..]));
        assert_eq!((ran.destination(), ran.source()), (own(0), PLAIN));
        assert_eq!(ran.frame[12..], reply(slot)[12..]);
        assert_eq!(ring.next_frame(), handed(slot, reply(slot)));
    }
    assert_eq!(ring.next_frame(), None);
}

#[test]
fn nothing_else_is_copied() {
    let rig = Rig::new(2);
    rig.path.set_answer(PLAIN, 1, true).unwrap();
    let mut ring = rig.path.arp_plus_ring().unwrap();
    let unknown = [2, 0, 0, 0, 3, 2];
    let with = |at: usize, value: u8| {
        let mut frame = reply(1);
        frame[at] = value;
        frame
    };
    let cases = [
        ("no ARP", ethernet(own(1), PLAIN, V6, &reply(1)[14..]), "rx_plain"),
        ("a request", ethernet(own(1), PLAIN, ARP, &arp(REQUEST, (PLAIN, 2), (own(1), 0))), "rx_plain"),
        (
            "a reply to an address",
            ethernet(own(1), PLAIN, ARP, &arp(REPLY, (PLAIN, 2), (own(1), 1))),
            "rx_plain",
        ),
        ("an address with zeros", with(14 + 27, 1), "rx_plain"),
        ("no Ethernet", with(15, 6), "rx_plain"),
        ("cut short", reply(1)[..41].to_vec(), "rx_plain"),
        ("for all", ethernet(BROADCAST, PLAIN, ARP, &reply(1)[14..]), "rx_copy"),
        ("flooded", reply(0), "rx_flooded"),
        ("no answer", ethernet(own(1), unknown, ARP, &reply(1)[14..]), "rx_plain"),
        ("a peer's", ethernet(own(1), peer(0), ARP, &reply(1)[14..]), "rx_peer"),
        ("ourselves", ethernet(own(1), own(0), ARP, &reply(1)[14..]), "rx_own"),
    ];
    for (what, frame, reason) in cases {
        assert_eq!(rig.arrives(1, &frame).reasons, [reason], "{what}");
    }
    rig.path.set_answer(PLAIN, 1, false).unwrap();
    assert_eq!(rig.arrives(1, &reply(1)).reasons, ["rx_plain"], "not probed");
    assert_eq!(ring.next_frame(), None);
}

#[test]
fn a_reply_from_a_mac_that_a_peer_claims_is_copied() {
    let rig = Rig::new(2);
    rig.path.set_answer(peer(1), 1, true).unwrap();
    let mut ring = rig.path.arp_plus_ring().unwrap();
    let frame = ethernet(own(1), peer(1), ARP, &reply(1)[14..]);
    assert_eq!(rig.arrives(1, &frame).reasons, ["rx_peer", "rx_probed"]);
    assert_eq!(ring.next_frame(), handed(1, frame));
}

#[test]
fn a_full_ring_costs_the_copy_only() {
    let rig = Rig::new(1);
    rig.path.set_answer(PLAIN, 0, true).unwrap();
    let mut ring = rig.path.arp_plus_ring().unwrap();
    let sent = reply(0);
    let mut taken = 0;
    let full = loop {
        let ran = rig.arrives(0, &sent);
        assert_eq!(ran.verdict, Verdict::Pass);
        if ran.reasons != ["rx_plain", "rx_probed"] {
            break ran;
        }
        taken += 1;
        assert!(taken < 10_000, "the ring never fills");
    };
    assert_eq!(full.reasons, ["rx_plain", "rx_probed_lost"]);
    assert_eq!(full.frame[12..], sent[12..]);
    assert_eq!(std::iter::from_fn(|| ring.next_frame()).count(), taken);
    // So does one that no record can hold.
    let long = [&sent[..], &[0; 1500]].concat();
    assert_eq!(rig.arrives(0, &long).reasons, ["rx_plain", "rx_probed_lost"]);
    assert_eq!(rig.arrives(0, &sent).reasons, ["rx_plain", "rx_probed"]);
}

/// A neighbour solicitation (135) or advertisement (136) to the address that probes of the member `slot` come from.
fn to_probe(slot: u8, kind: u8) -> Vec<u8> {
    let mut packet = neighbour(kind, &[]);
    packet[24..34].copy_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0, b'L', b'B']);
    packet[34..40].copy_from_slice(&own(slot));
    ethernet(own(slot), PLAIN, V6, &packet)
}

#[test]
fn an_answer_to_a_solicitation_is_the_daemons_and_not_the_kernels() {
    let rig = Rig::new(3);
    rig.path.set_answer(PLAIN, 1, true).unwrap();
    let mut ring = rig.path.arp_plus_ring().unwrap();
    for slot in 0..3 {
        let ran = rig.arrives(slot, &to_probe(slot, 136));
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Drop, &["rx_solicited"][..]));
        assert_eq!(ring.next_frame(), handed(slot, to_probe(slot, 136)));
        // The host makes sure of what it has cached.
        let ran = rig.arrives(slot, &to_probe(slot, 135));
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Drop, &["rx_to_probe"][..]));
    }
    let unknown = [2, 0, 0, 0, 3, 2];
    let with = |at: usize, value: u8| {
        let mut frame = to_probe(1, 136);
        frame[at] = value;
        frame
    };
    let cases = [
        ("another prefix", with(14 + 25, 0x81), "rx_plain"),
        ("another mark", with(14 + 33, 0x43), "rx_plain"),
        ("another member's address", with(14 + 39, own(0)[5]), "rx_plain"),
        ("no IPv6", with(12, 0x87), "rx_plain"),
        ("cut short", to_probe(1, 136)[..61].to_vec(), "rx_plain"),
        ("long", [&to_probe(1, 136)[..], &[0; 51]].concat(), "rx_plain"),
        ("an unknown host", ethernet(own(1), unknown, V6, &to_probe(1, 136)[14..]), "rx_to_probe"),
        ("a peer", ethernet(own(1), peer(1), V6, &to_probe(1, 136)[14..]), "rx_peer"),
        ("for all", ethernet(BROADCAST, PLAIN, V6, &to_probe(1, 136)[14..]), "rx_copy"),
        ("flooded", to_probe(0, 136), "rx_flooded"),
        ("the kernel's", ethernet(own(1), PLAIN, V6, &neighbour(136, &[])), "rx_plain"),
    ];
    for (what, frame, reason) in cases {
        assert_eq!(rig.arrives(1, &frame).reasons, [reason], "{what}");
    }
    rig.path.set_answer(PLAIN, 1, false).unwrap();
    assert_eq!(rig.arrives(1, &to_probe(1, 136)).reasons, ["rx_to_probe"], "not probed");
    assert_eq!(ring.next_frame(), None);
}
