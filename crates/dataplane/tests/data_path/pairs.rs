//! Guests' frames over all lanes: when they take them, and with which MACs.

use crate::class::{PEER_PLAN, port, with_class};
use crate::frames::{Tcp, V4, V6, address, arp, ethernet, ip_packet, neighbour, tagged};
use crate::rig::{GUEST, PLAIN, Ran, Rig, own, peer};
use crate::steer::udp;
use linkbraid_dataplane::{ALIAS_BIT, Beside, GuestAddress, GuestPair, PeerMac, PeerMacKind, Verdict};
use std::{net::IpAddr, time::Duration};

/// A guest behind the peer.
pub const FAR: [u8; 6] = [2, 0, 0, 0, 6, 1];
pub const ARP: u16 = 0x0806;
const QINQ: u16 = 0x88a8;
pub const HOUR: Duration = Duration::from_secs(3600);
/// The host numbers of addresses: of the guest here, and of the one behind the peer, as `udp()` and `Tcp` have them.
pub const NEAR_HOST: u8 = 1;
pub const FAR_HOST: u8 = 2;

pub fn alias(mac: [u8; 6]) -> [u8; 6] {
    [mac[0] ^ ALIAS_BIT, mac[1], mac[2], mac[3], mac[4], mac[5]]
}

pub fn guest_address(protocol: u16, vlan: u16, host: u8) -> GuestAddress {
    let bytes = address(protocol, host);
    let ip = match protocol {
        V4 => IpAddr::from(<[u8; 4]>::try_from(bytes).unwrap()),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).unwrap()),
    };
    GuestAddress { vlan, ip }
}

pub fn set_peer_mac(rig: &Rig, mac: [u8; 6], plan: u32, kind: PeerMacKind) {
    rig.path.set_peer_mac(mac, &PeerMac { plan, primary: peer(0), broadcast_slot: 0, kind }).unwrap();
}

/// As the daemon writes it for a peer that has `FAR` and takes guests' frames, while `GUEST` is here; in two VLANs, too.
pub fn know_guests(rig: &Rig) {
    for slot in 0..rig.members.len() as u8 {
        set_peer_mac(rig, peer(slot), 1, PeerMacKind::Member { has_guests: true, takes_guests: true });
        set_peer_mac(rig, alias(peer(slot)), 1, PeerMacKind::Alias { has_guests: true });
    }
    set_peer_mac(rig, FAR, 1, PeerMacKind::Guest);
    for (protocol, vlan) in [(V4, 0), (V6, 0), (V4, 5), (V6, 5)] {
        pair(rig, guest_address(protocol, vlan, NEAR_HOST), GUEST, 0);
        pair(rig, guest_address(protocol, vlan, FAR_HOST), FAR, 1);
    }
    rig.path.keep_guests(HOUR).unwrap();
}

pub fn pair(rig: &Rig, address: GuestAddress, mac: [u8; 6], plan: u32) {
    rig.path.set_guest_pair(address, Some(GuestPair { mac, plan })).unwrap();
}

pub fn with_guests(members: u8) -> Rig {
    let rig = Rig::new(members);
    know_guests(&rig);
    rig
}

pub fn packet(protocol: u16, to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    ethernet(to, from, protocol, &ip_packet(protocol, 17, NEAR_HOST, FAR_HOST, &[0; 40]))
}

/// From the far end to this one.
pub fn answer(protocol: u16, to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    ethernet(to, from, protocol, &ip_packet(protocol, 17, FAR_HOST, NEAR_HOST, &[0; 40]))
}

/// All frames of guests' traffic that take lanes: IPv4 and IPv6, without and with a tag.
pub fn kinds(frame: fn(u16, [u8; 6], [u8; 6]) -> Vec<u8>, to: [u8; 6], from: [u8; 6]) -> Vec<Vec<u8>> {
    [V4, V6]
        .into_iter()
        .flat_map(|protocol| {
            let plain = frame(protocol, to, from);
            // The tag's other bits (priority) are no part of the VLAN.
            [tagged(&plain, 5), tagged(&plain, 0xe005), tagged(&plain, 0), plain]
        })
        .collect()
}

#[track_caller]
pub fn assert_ran(ran: &Ran, verdict: Verdict, reason: &str) {
    assert_eq!((ran.verdict, &ran.reasons[..]), (verdict, &[reason][..]));
}

/// It left over a lane; its members' MACs, the source as it is made of ours.
#[track_caller]
pub fn assert_by_lane(rig: &Rig, frame: &[u8], reason: &str, from: fn([u8; 6]) -> [u8; 6]) -> u8 {
    let ran = rig.out(frame);
    assert_ran(&ran, Verdict::Redirect, reason);
    let slot = ran.source()[5];
    assert_eq!((ran.source(), ran.destination()), (from(own(slot)), peer(slot)));
    assert_eq!(ran.frame[12..], frame[12..], "nothing behind the MACs changes");
    slot
}

#[test]
fn from_guest_to_guest_all_lanes_are_used_in_the_name_of_aliases() {
    let rig = with_guests(4);
    for frame in kinds(packet, FAR, GUEST) {
        let slots = [(); 8].map(|()| assert_by_lane(&rig, &frame, "tx_for_guest", alias));
        assert_eq!(slots, [0, 1, 2, 3, 0, 1, 2, 3]);
    }
    let lanes = rig.path.lane_counts(1).unwrap();
    assert!(lanes.iter().all(|lane| lane.frames == 16), "{lanes:?}");
}

#[test]
fn a_guests_fragments_take_lanes_too() {
    let rig = with_guests(2);
    for offset in [0x2000u16, 0x2010, 0x0010] {
        let mut frame = packet(V4, FAR, GUEST);
        frame[20..22].copy_from_slice(&offset.to_be_bytes());
        assert_by_lane(&rig, &frame, "tx_for_guest", alias);
    }
    let fragment =
        ethernet(FAR, GUEST, V6, &ip_packet(V6, 44, NEAR_HOST, FAR_HOST, &[17, 0, 0, 9, 0, 0, 0, 1, 0]));
    assert_by_lane(&rig, &fragment, "tx_for_guest", alias);
}

//= docs/arp-plus.md#14.8 type=test
#[test]
fn from_a_guest_to_the_peer_itself_members_speak_as_such() {
    let rig = with_guests(4);
    for frame in kinds(packet, peer(0), GUEST) {
        let slots = [(); 4].map(|()| assert_by_lane(&rig, &frame, "tx_from_guest", |mac| mac));
        assert_eq!(slots, [0, 1, 2, 3]);
    }
    // Whatever the address is that it sends to: the peer may route.
    let frame = ethernet(peer(2), GUEST, V4, &ip_packet(V4, 17, NEAR_HOST, 77, &[0; 40]));
    assert_by_lane(&rig, &frame, "tx_from_guest", |mac| mac);
}

#[test]
fn what_the_host_sends_to_a_peers_guest_comes_from_aliases() {
    let rig = with_guests(4);
    for frame in kinds(packet, FAR, own(0)) {
        let slots = [(); 4].map(|()| assert_by_lane(&rig, &frame, "tx_for_guest", alias));
        assert_eq!(slots, [0, 1, 2, 3]);
    }
}

/// What does not take lanes: what it is, and the frame from this MAC to that one.
pub fn others(to: [u8; 6], from: [u8; 6]) -> Vec<(&'static str, Vec<u8>)> {
    let ip = |protocol, source, destination| {
        ethernet(to, from, protocol, &ip_packet(protocol, 17, source, destination, &[0; 40]))
    };
    let plain = packet(V4, to, from);
    let mut qinq = tagged(&plain, 5);
    qinq[12..14].copy_from_slice(&QINQ.to_be_bytes());
    let mut discovery = neighbour(136, &[2, 1, 2, 0, 0, 0, 4, 1]);
    discovery[8..24].copy_from_slice(&address(V6, NEAR_HOST));
    vec![
        ("no IP", ethernet(to, from, 0x88f7, &[0; 46])),
        ("ARP", ethernet(to, from, ARP, &arp(2, (from, NEAR_HOST), (to, FAR_HOST)))),
        ("neighbour discovery", ethernet(to, from, V6, &discovery)),
        ("an unknown destination", ip(V4, NEAR_HOST, 77)),
        ("an unknown destination", ip(V6, NEAR_HOST, 77)),
        ("another VLAN", tagged(&plain, 6)),
        ("two tags", tagged(&tagged(&plain, 5), 5)),
        ("a tag of another kind", qinq),
        // The kernel tries no IP header that is cut itself.
        ("cut behind the tag", tagged(&plain, 5)[..18].to_vec()),
        ("cut in the header", tagged(&plain, 5)[..34].to_vec()),
        ("cut in the tag", tagged(&plain, 5)[..16].to_vec()),
    ]
}

//= docs/arp-plus.md#14.10 type=test
#[test]
fn a_guests_other_frames_leave_as_they_are() {
    let rig = with_guests(4);
    let by = |frame: &[u8]| {
        let sent = || (0..4).map(|slot| rig.path.member_counts(slot).unwrap().tx.frames).collect::<Vec<_>>();
        let before = sent();
        let ran = rig.out(frame);
        assert_ran(&ran, Verdict::Redirect, "tx_guest");
        assert_eq!(ran.frame, frame);
        sent().into_iter().zip(before).position(|(after, before)| after > before).unwrap()
    };
    let own_member = by(&packet(V4, PLAIN, GUEST));
    for (what, frame) in others(FAR, GUEST) {
        assert_eq!(by(&frame), own_member, "{what}");
    }
    // A guest that routes, one that nobody knows, and one that takes another one's address.
    let routed = ethernet(FAR, GUEST, V4, &ip_packet(V4, 17, 77, FAR_HOST, &[0; 40]));
    assert_eq!(by(&routed), own_member);
    for stranger in [[2, 0, 0, 0, 4, 2], FAR] {
        by(&packet(V4, FAR, stranger));
    }
    // Addresses behind peers are not those of guests here.
    by(&answer(V4, FAR, GUEST));
    for (what, wrong) in [
        ("another MAC", Some(GuestPair { mac: PLAIN, plan: 1 })),
        ("another peer", Some(GuestPair { mac: FAR, plan: 2 })),
        ("here", Some(GuestPair { mac: FAR, plan: 0 })),
        ("nowhere", None),
    ] {
        rig.path.set_guest_pair(guest_address(V4, 0, FAR_HOST), wrong).unwrap();
        assert_eq!(by(&packet(V4, FAR, GUEST)), own_member, "{what}");
    }
    // An alias is nobody's.
    assert_eq!(by(&packet(V4, alias(peer(1)), GUEST)), own_member);
}

#[test]
fn to_a_peer_that_does_not_give_macs_back_a_guest_keeps_its_own() {
    let rig = with_guests(4);
    for slot in 0..4 {
        set_peer_mac(&rig, peer(slot), 1, PeerMacKind::Member { has_guests: true, takes_guests: false });
    }
    let ran = rig.out(&packet(V4, peer(0), GUEST));
    assert_ran(&ran, Verdict::Redirect, "tx_guest");
    assert_eq!((ran.source(), ran.destination()[..5].to_vec()), (GUEST, peer(0)[..5].to_vec()));
}

#[test]
fn what_the_host_sends_otherwise_leaves_as_to_a_plain_host() {
    let rig = with_guests(2);
    for (what, frame) in others(FAR, own(0)) {
        let ran = rig.out(&frame);
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["tx_plain"][..]), "{what}");
        assert_eq!((ran.destination(), ran.source()[..5].to_vec()), (FAR, own(0)[..5].to_vec()), "{what}");
        assert_eq!(ran.frame[12..], frame[12..]);
    }
    // Some host may have an alias as its MAC.
    let ran = rig.out(&packet(V4, alias(peer(1)), own(0)));
    assert_ran(&ran, Verdict::Redirect, "tx_plain");
    assert_eq!(ran.destination(), alias(peer(1)));
}

#[test]
fn without_its_daemon_a_host_sends_nothing_by_aliases() {
    let rig = with_guests(2);
    rig.path.keep_guests(Duration::ZERO).unwrap();
    assert_ran(&rig.out(&packet(V4, FAR, GUEST)), Verdict::Redirect, "tx_guest");
    assert_ran(&rig.out(&packet(V4, peer(0), GUEST)), Verdict::Redirect, "tx_guest");
    assert_ran(&rig.out(&packet(V4, FAR, own(0))), Verdict::Redirect, "tx_plain");
    assert_ran(&rig.out(&packet(V4, peer(0), own(0))), Verdict::Redirect, "tx_peer");
    // What peers send still arrives.
    assert_ran(&rig.arrives(0, &answer(V4, own(0), alias(peer(0)))), Verdict::Pass, "rx_for_guest");
    rig.path.keep_guests(HOUR).unwrap();
    assert_ran(&rig.out(&packet(V4, FAR, GUEST)), Verdict::Redirect, "tx_for_guest");
}

#[test]
fn a_class_has_its_own_lanes_for_guests_too() {
    let rig = with_class(&[2, 3]);
    know_guests(&rig);
    rig.path.set_rules(&[port(1, 2000)]).unwrap();
    let slots = [(); 4].map(|()| assert_by_lane(&rig, &udp(FAR, GUEST, 0, 100), "tx_for_guest", alias));
    assert_eq!(slots, [2, 3, 2, 3]);
    let lanes = rig.path.lane_counts(PEER_PLAN).unwrap();
    assert_eq!(lanes.iter().map(|lane| lane.frames).collect::<Vec<_>>(), [2, 2]);
    // What keeps the guest's MAC has no class.
    assert_ran(&rig.out(&udp(PLAIN, GUEST, 0, 100)), Verdict::Redirect, "tx_guest");
    assert_eq!(rig.path.class_counts(1).unwrap().frames, 4);
}

#[test]
fn a_guest_that_sends_over_lanes_is_seen_to_live() {
    let rig = with_guests(2);
    assert_eq!(rig.path.guests(HOUR).unwrap(), []);
    assert_by_lane(&rig, &packet(V4, FAR, GUEST), "tx_for_guest", alias);
    assert_eq!(rig.path.guests(HOUR).unwrap().iter().map(|(mac, _)| *mac).collect::<Vec<_>>(), [GUEST]);
}

#[test]
fn buffers_of_several_segments_take_lanes_whole() {
    let rig = with_guests(2);
    let frame = Tcp::data(1, 900).frame(FAR, GUEST);
    let beside = Beside { gso_size: 300, gso_segs: 3, ..Beside::default() };
    let ran = rig.out_with(&frame, beside);
    assert_eq!(ran.reasons, ["tx_for_guest"; 3], "counted by segments");
    assert_eq!((ran.source(), ran.destination()), (alias(own(0)), peer(0)));
}

#[test]
fn what_was_written_is_read_again() {
    let rig = with_guests(1);
    let pairs = rig.path.guest_pairs().unwrap();
    assert_eq!(pairs.len(), 8);
    assert!(pairs.contains(&(guest_address(V6, 5, FAR_HOST), GuestPair { mac: FAR, plan: 1 })));
    assert!(pairs.contains(&(guest_address(V4, 0, NEAR_HOST), GuestPair { mac: GUEST, plan: 0 })));
    let kind =
        |of: [u8; 6]| rig.path.peer_macs().unwrap().into_iter().find(|row| row.0 == of).unwrap().1.kind;
    assert_eq!(kind(FAR), PeerMacKind::Guest);
    assert_eq!(kind(alias(peer(0))), PeerMacKind::Alias { has_guests: true });
    assert_eq!(kind(peer(0)), PeerMacKind::Member { has_guests: true, takes_guests: true });
    for (address, _) in pairs {
        rig.path.set_guest_pair(address, None).unwrap();
        rig.path.set_guest_pair(address, None).unwrap();
    }
    assert_eq!(rig.path.guest_pairs().unwrap(), []);
    let wrong = |vlan, plan| {
        let address = GuestAddress { vlan, ..guest_address(V4, 0, 1) };
        rig.path.set_guest_pair(address, Some(GuestPair { mac: GUEST, plan })).unwrap_err().to_string()
    };
    assert!(wrong(4096, 0).contains("VLAN") && wrong(0, 4097).contains("plan"));
}
