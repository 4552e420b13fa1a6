//! The addresses that guests here are seen to use.

use crate::frames::{V4, V6, arp, ethernet, neighbour, tagged};
use crate::pairs::{ARP, FAR, alias, assert_by_lane, assert_ran, guest_address, packet, with_guests};
use crate::rig::{BROADCAST, GUEST, PLAIN, Rig, own, peer};
use libbpf_rs::{MapCore as _, MapFlags};
use linkbraid_dataplane::{GUESTS_SEEN_MAX, GuestAddress, Verdict, Way};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// What guests here were seen to use.
fn seen(rig: &Rig) -> Vec<(GuestAddress, [u8; 6])> {
    let seen = rig.path.guests_seen().unwrap();
    assert!(seen.iter().all(|seen| seen.age < MINUTE));
    seen.into_iter().map(|seen| (seen.address, seen.mac)).collect()
}

#[test]
fn addresses_are_learned_from_what_guests_say_of_themselves() {
    let rig = Rig::new(2);
    let none = ([0; 6], 0);
    let asks = ethernet(BROADCAST, GUEST, ARP, &arp(1, (GUEST, 3), ([0; 6], 9)));
    let answers = ethernet(peer(0), GUEST, ARP, &arp(2, (GUEST, 4), (peer(0), 9)));
    let announces = ethernet(BROADCAST, GUEST, ARP, &arp(1, (GUEST, 5), ([0; 6], 5)));
    let mac_option = |kind: u8| [&[kind, 1][..], &GUEST].concat();
    let solicits = ethernet([0x33, 0x33, 0xff, 0, 0, 9], GUEST, V6, &neighbour(135, &mac_option(1)));
    let advertises = ethernet(PLAIN, GUEST, V6, &neighbour(136, &mac_option(2)));
    let mut expected = Vec::new();
    for (frame, protocol, host) in
        [(asks, V4, 3), (answers, V4, 4), (announces, V4, 5), (solicits, V6, 1), (advertises, V6, 9)]
    {
        for (vlan, frame) in [(0, frame.clone()), (5, tagged(&frame, 0x6005))] {
            let before = rig.path.guests_seen_changes().unwrap();
            rig.out(&frame);
            expected.push((guest_address(protocol, vlan, host), GUEST));
            expected.sort_unstable();
            assert_eq!(seen(&rig), expected);
            rig.out(&frame);
            assert_eq!(rig.path.guests_seen_changes().unwrap(), before + 1, "the second time nothing is new");
        }
    }
    // Another guest has the address now.
    let other = [2, 0, 0, 0, 4, 2];
    let changes = rig.path.guests_seen_changes().unwrap();
    rig.out(&ethernet(BROADCAST, other, ARP, &arp(1, (other, 3), none)));
    assert!(seen(&rig).contains(&(guest_address(V4, 0, 3), other)));
    assert_eq!(rig.path.guests_seen_changes().unwrap(), changes + 1);
    // It may have been elsewhere meanwhile.
    let map = rig.path.maps().find(|map| map.name() == "lb_guests_seen").unwrap();
    // An update of an LRU map puts its row before the others of a bucket, so keys that are asked for meanwhile may have no end.
    for key in map.keys().collect::<Vec<_>>() {
        let mut row = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        row[..8].copy_from_slice(&1u64.to_ne_bytes());
        map.update(&key, &row, MapFlags::ANY).unwrap();
    }
    rig.out(&ethernet(BROADCAST, other, ARP, &arp(1, (other, 3), none)));
    assert_eq!(rig.path.guests_seen_changes().unwrap(), changes + 2);
    // Nothing of that is believed before the daemon says so.
    assert_eq!(rig.path.guest_pairs().unwrap(), []);
    assert_ran(&rig.out(&packet(V4, peer(0), GUEST)), Verdict::Redirect, "tx_guest");
}

#[test]
fn nothing_is_learned_from_what_proves_nothing() {
    let rig = with_guests(2);
    let none = ([0; 6], 0);
    let from_guest = |protocol, payload: &[u8]| ethernet(BROADCAST, GUEST, protocol, payload);
    let of = |mac: [u8; 6], kind: u8| [&[kind, 1][..], &mac].concat();
    let mut detects = neighbour(135, &of(GUEST, 1));
    detects[8..24].fill(0);
    let mut forwarded = neighbour(136, &of(GUEST, 2));
    forwarded[7] = 64;
    let cases = [
        ("an ARP probe", from_guest(ARP, &arp(1, (GUEST, 0), ([0; 6], 3)))),
        ("another one's MAC", from_guest(ARP, &arp(1, (PLAIN, 3), none))),
        ("the host's MAC", from_guest(ARP, &arp(2, (own(0), 3), none))),
        ("no request and no reply", from_guest(ARP, &arp(9, (GUEST, 3), none))),
        ("cut", from_guest(ARP, &arp(1, (GUEST, 3), none)[..27])),
        ("duplicate detection", from_guest(V6, &detects)),
        ("another one's MAC", from_guest(V6, &neighbour(136, &of(PLAIN, 2)))),
        ("an option of another kind", from_guest(V6, &neighbour(136, &of(GUEST, 1)))),
        ("no option", from_guest(V6, &neighbour(135, &[]))),
        ("through a router", from_guest(V6, &forwarded)),
        ("no discovery", packet(V4, BROADCAST, GUEST)),
        ("RARP", from_guest(0x8035, &arp(1, (GUEST, 3), none))),
        ("two tags", tagged(&tagged(&from_guest(ARP, &arp(1, (GUEST, 3), none)), 5), 5)),
        ("the host's own", ethernet(BROADCAST, own(0), ARP, &arp(1, (own(0), 3), none))),
    ];
    for (what, frame) in cases {
        assert_eq!(rig.out(&frame).verdict, Verdict::Redirect, "{what}");
        assert_eq!(seen(&rig), [], "{what}");
    }
    // What arrives is somebody else's word.
    rig.arrives(0, &ethernet(BROADCAST, FAR, ARP, &arp(1, (FAR, 3), none)));
    assert_eq!(seen(&rig), []);
    assert_eq!(rig.path.guests_seen_changes().unwrap(), 0);
}

#[test]
fn a_flood_of_addresses_takes_no_more_room_than_there_is() {
    let rig = with_guests(1);
    let mut message = arp(1, (GUEST, 3), ([0; 6], 0));
    for number in 0..2 * GUESTS_SEEN_MAX as u32 {
        message[14..18].copy_from_slice(&(0xc613_0000 | number).to_be_bytes());
        rig.path.trial(Way::Out, &ethernet(BROADCAST, GUEST, ARP, &message), rig.bond.ifindex).unwrap();
    }
    assert!(seen(&rig).len() <= GUESTS_SEEN_MAX);
    // What the daemon wrote stays, and the newest is there.
    assert_by_lane(&rig, &packet(V4, FAR, GUEST), "tx_for_guest", alias);
    rig.out(&ethernet(BROADCAST, GUEST, ARP, &arp(1, (GUEST, 3), ([0; 6], 0))));
    assert!(seen(&rig).contains(&(guest_address(V4, 0, 3), GUEST)));
}
