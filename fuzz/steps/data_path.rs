//! Any frames through both programs of the data path, each judged by a model: what passes, what is dropped, what goes to the daemon,
//! what leaves, and which bytes may have changed.
//!
//! The input begins with the policy. Steps follow: what, which MACs, which EtherType, how long, how many bytes of the payload are
//! given, and those. Shared by the fuzz target and `crates/dataplane/tests/data_path/any_frames.rs`, beside whose `rig` it stands.

use crate::rig::{BROADCAST, GUEST, PLAIN, Ran, Rig, own, peer};
use linkbraid_dataplane::{ArpPlusRing, Policy, Verdict};
use linkbraid_wire::{ETHERTYPE_ARP_PLUS, FRAME_HEADER_LEN, ProbeKind, is_arp_plus, is_probe, parse_probe};
use std::collections::BTreeSet;

type Mac = [u8; 6];

const MEMBERS: u8 = 3;
const MIRROR: u16 = 0x88b6;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
/// Most of a frame that the daemon gets, and of a PROBE (10.4).
const TO_DAEMON: [usize; 2] = [1514, 248];
const PASSES: [&str; 11] = [
    "rx_peer",
    "rx_plain",
    "rx_multicast",
    "rx_guest",
    "rx_ack_masked",
    "rx_ack_lost",
    "rx_ack_old",
    "rx_ack_dsack",
    "rx_ack_share",
    "rx_ack_window",
    "rx_ack_last",
];
const NOT_SENT: [&str; 3] = ["tx_no_lane", "tx_class_blocked", "tx_loop"];

/// A bond of three members with one peer, and what the model knows of it.
pub struct Bed {
    rig: Rig,
    ring: ArpPlusRing,
    /// Guests behind the bond that have sent something.
    guests: BTreeSet<Mac>,
    /// A mirrored frame that the peer did not send was believed: sequences may be used up.
    forged: bool,
    /// The reasons that counted frames.
    pub seen: BTreeSet<&'static str>,
}

fn is_own(mac: Mac) -> bool {
    (0..MEMBERS).any(|slot| own(slot) == mac)
}

fn peer_member(mac: Mac) -> Option<u8> {
    (0..MEMBERS).find(|slot| peer(*slot) == mac)
}

fn protocol(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[12], frame[13]])
}

fn macs(frame: &[u8]) -> (Mac, Mac) {
    (frame[..6].try_into().expect("six bytes"), frame[6..12].try_into().expect("six bytes"))
}

fn verdict(reason: &str) -> Verdict {
    match reason {
        "rx_mirror" => Verdict::Redirect,
        _ if PASSES.contains(&reason) => Verdict::Pass,
        _ if reason.starts_with("tx_") && !NOT_SENT.contains(&reason) => Verdict::Redirect,
        _ => Verdict::Drop,
    }
}

/// The reasons that a frame on the way in may be counted by.
fn taken(slot: u8, frame: &[u8], guests: &BTreeSet<Mac>) -> &'static [&'static str] {
    let ((to, from), protocol) = (macs(frame), protocol(frame));
    let is_peer = peer_member(from).is_some();
    let inner = frame.get(16..18).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    if [0x8100, 0x88a8].contains(&protocol) && [ETHERTYPE_ARP_PLUS, MIRROR].contains(&inner) {
        return &["rx_tagged"];
    }
    if is_arp_plus(frame) {
        return match is_request(frame) || frame.len() <= TO_DAEMON[0] {
            true => &["rx_arp_plus", "rx_arp_plus_rate"],
            false => &["rx_arp_plus_long"],
        };
    }
    if is_own(from) {
        return &["rx_own"];
    }
    if to[0] & 1 == 1 {
        return match (protocol == MIRROR, slot) {
            (true, _) => &["rx_mirror_bad"],
            (false, 0) if guests.contains(&from) => &["rx_own", "rx_multicast"],
            (false, 0) => &["rx_multicast"],
            (false, _) => &["rx_copy"],
        };
    }
    if to != own(slot) {
        return if is_own(to) { &["rx_flooded"] } else { &["rx_guest", "rx_stranger"] };
    }
    let for_probes = [&[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x4c, 0x42][..], &to].concat();
    let is_short = (62..=128).contains(&frame.len());
    if !is_peer && protocol == IPV6 && is_short && frame[38..54] == for_probes[..] {
        return &["rx_to_probe"];
    }
    match (protocol, is_peer) {
        (MIRROR, true) => &["rx_mirror_bad", "rx_mirror", "rx_mirror_copy", "rx_mirror_late"],
        (MIRROR, false) => &["rx_mirror_stranger"],
        (_, true) => &["rx_peer"],
        (_, false) => &["rx_plain"],
    }
}

/// A PROBE, and no answer to one: what follows its head is padding.
fn is_request(frame: &[u8]) -> bool {
    is_probe(frame) && frame[FRAME_HEADER_LEN + 3] == ProbeKind::Probe as u8
}

impl Bed {
    pub fn new() -> Self {
        let rig = Rig::new(MEMBERS);
        let ring = rig.path.arp_plus_ring().expect("the kernel maps it");
        Self { rig, ring, guests: BTreeSet::new(), forged: false, seen: BTreeSet::new() }
    }

    /// Panics where a rule is broken.
    pub fn run(&mut self, bytes: &[u8]) {
        let Some((policy, mut rest)) = bytes.split_first() else { return };
        self.rig.set_policy(if policy % 2 == 0 { Policy::Spread } else { Policy::Mirror });
        while let Some(([what, macs, kind, long, given], after)) = rest.split_first_chunk() {
            let (payload, after) = after.split_at(after.len().min(usize::from(*given)));
            rest = after;
            let frame = frame(*macs, *kind, *long, payload);
            match what % 4 {
                slot @ 0..MEMBERS => self.arrives(slot, &frame),
                _ => self.leaves(&frame),
            }
        }
    }

    fn arrives(&mut self, slot: u8, frame: &[u8]) {
        let ran = self.rig.arrives(slot, frame);
        self.seen.extend(&ran.reasons);
        let [reason] = ran.reasons[..] else { panic!("not counted once: {ran:?}") };
        let may = taken(slot, frame, &self.guests);
        let is_judged = may == ["rx_peer"] || may == ["rx_plain"];
        let about_ack = is_judged && protocol(frame) != ARP && reason.starts_with("rx_ack_");
        assert!(may.contains(&reason) || about_ack, "{reason} and not {may:?}: {frame:02x?}");
        assert_eq!(ran.verdict, verdict(reason), "{reason}: {frame:02x?}");
        self.check_daemon(slot, frame, reason);
        self.forged |= reason == "rx_mirror";
        if ran.verdict == Verdict::Pass {
            let (to, from) = macs(frame);
            let to = if is_judged { own(0) } else { to };
            let from = if peer_member(from).is_some() && reason != "rx_guest" { peer(0) } else { from };
            assert_eq!((ran.destination(), ran.source()), (to, from), "{reason}: {frame:02x?}");
            assert_eq!(ran.frame.len(), frame.len(), "{reason}");
            assert!(reason == "rx_ack_masked" || ran.frame[12..] == frame[12..], "{reason}: {frame:02x?}");
        }
    }

    /// The daemon gets what is ARP+ for its parsers, and nothing else.
    fn check_daemon(&mut self, slot: u8, frame: &[u8], reason: &str) {
        let given = self.ring.next_frame();
        assert!(self.ring.next_frame().is_none(), "once");
        if reason != "rx_arp_plus" {
            return assert_eq!(given, None, "{reason}: {frame:02x?}");
        }
        let bytes = if is_request(frame) { frame.len().min(TO_DAEMON[1]) } else { frame.len() };
        let given = given.unwrap_or_else(|| panic!("nothing came: {frame:02x?}"));
        assert_eq!((given.slot, &given.bytes[..]), (slot, &frame[..bytes]));
        let from = macs(frame).1;
        let is_known = is_own(from) || peer_member(from).is_some();
        assert!(
            !given.heard_again || !is_known && !is_probe(frame),
            "only strangers are heard again: {frame:02x?}"
        );
        if let (Ok(head), Ok(all)) = (parse_probe(&frame[..bytes]), parse_probe(frame)) {
            assert_eq!(head.probe, all.probe, "only padding is cut: {frame:02x?}");
        }
    }

    fn leaves(&mut self, frame: &[u8]) {
        let ran = self.rig.out(frame);
        self.seen.extend(&ran.reasons);
        let ((to, from), is_host) = (macs(frame), is_own(macs(frame).1));
        let counted: Vec<&str> =
            ran.reasons.iter().copied().filter(|name| *name != "tx_mirror_copy").collect();
        let [reason] = counted[..] else { panic!("not counted once: {ran:?}") };
        assert!(reason.starts_with("tx_"), "{reason}");
        assert_eq!(ran.verdict, verdict(reason), "{reason}: {frame:02x?}");
        assert_eq!(ran.reasons.len() == 2, reason == "tx_mirror", "{ran:?}");
        assert!(self.ring.next_frame().is_none(), "what leaves is not the daemon's");
        if !is_host {
            self.guests.insert(from);
        }
        if ran.verdict != Verdict::Redirect {
            return;
        }
        let lane = peer_member(ran.destination());
        let is_lane = |ran: &Ran| lane.is_some_and(|slot| ran.source() == own(slot));
        match (peer_member(to), is_host) {
            // Each lane joins members of one number.
            (Some(_), true) => assert!(is_lane(&ran), "{reason}: {ran:02x?}"),
            (Some(_), false) => assert!(is_lane(&ran) || ran.source() == from, "{reason}: {ran:02x?}"),
            (None, true) => assert!(ran.destination() == to && is_own(ran.source()), "{reason}: {ran:02x?}"),
            // Reports of groups leave as the bond's own.
            (None, false) => {
                let from = if reason == "tx_report" { own(0) } else { from };
                assert_eq!((ran.destination(), ran.source()), (to, from), "{reason}: {frame:02x?}");
            }
        }
        if reason == "tx_mirror" {
            return self.comes_back(&ran, frame);
        }
        assert_eq!(ran.frame.len(), frame.len(), "{reason}");
        let names_member = ["tx_answer", "tx_asked_all"].contains(&reason);
        assert!(names_member || ran.frame[12..] == frame[12..], "{reason}: {frame:02x?} became {ran:02x?}");
    }

    /// What one program has wrapped the other one restores, once.
    fn comes_back(&mut self, sent: &Ran, frame: &[u8]) {
        assert_eq!(protocol(&sent.frame), MIRROR);
        let slot = peer_member(sent.destination()).expect("a lane to the peer");
        let wrapped = [&own(slot)[..], &peer(slot), &sent.frame[12..]].concat();
        let first = self.rig.arrives(slot, &wrapped);
        let second = self.rig.arrives(slot, &wrapped);
        self.seen.extend(second.reasons.iter().chain(&first.reasons));
        if self.forged {
            return;
        }
        assert_eq!((first.verdict, &first.reasons[..]), (Verdict::Redirect, &["rx_mirror"][..]));
        assert_eq!(first.frame[12..frame.len()], frame[12..], "{frame:02x?}");
        assert!(first.frame[frame.len()..].iter().all(|byte| *byte == 0), "{first:02x?}");
        assert_eq!((second.verdict, &second.reasons[..]), (Verdict::Drop, &["rx_mirror_copy"][..]));
    }
}

fn frame(macs: u8, kind: u8, long: u8, payload: &[u8]) -> Vec<u8> {
    const MACS: [Mac; 14] = [
        own(0),
        own(1),
        own(2),
        peer(0),
        peer(1),
        peer(2),
        PLAIN,
        GUEST,
        BROADCAST,
        [1, 0, 0x5e, 0, 0, 1],
        [0x33, 0x33, 0, 0, 0, 1],
        [2, 0, 0, 0, 9, 9],
        [0; 6],
        [1, 0x80, 0xc2, 0, 0, 0],
    ];
    const KINDS: [u16; 8] = [0x0800, IPV6, ARP, ETHERTYPE_ARP_PLUS, MIRROR, 0x8100, 0x88a8, 0x05ff];
    let mac = |which: u8| MACS[usize::from(which) % MACS.len()];
    let kind = KINDS[usize::from(kind) % KINDS.len()];
    // The kernel tries no shorter ones.
    let least = match kind {
        0x0800 => 20,
        IPV6 => 40,
        _ => 1,
    };
    let mut frame = [&mac(macs & 15)[..], &mac(macs >> 4), &kind.to_be_bytes(), payload].concat();
    frame.resize(frame.len().max(FRAME_HEADER_LEN + least.max(6 * usize::from(long))), 0);
    frame
}
