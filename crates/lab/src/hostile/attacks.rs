//! The list of attacks: each makes the frame of a number.

use super::{Known, frame, invented, invented_mac, mix, probe};
use linkbraid_wire::{Guest, Kind, MacAddr, Message, Probe, ProbeKind, View, emit_arp_reply};
use std::net::{IpAddr, Ipv4Addr};

/// What somebody on the wire sends.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// Its name, one word.
    pub name: &'static str,
    /// What is sent.
    pub about: &'static str,
    /// Frames a second.
    pub per_second: u32,
    /// Whether it is sent from the MAC of a victim or of the gateway. The switch then sends that MAC's frames to the stranger until
    /// its owner has spoken again: what is lost by that no host can prevent.
    pub moves_macs: bool,
    /// Whether it tells the kernel's own ARP where the gateway is. A host without a bond believes it as well.
    pub forges_arp: bool,
    /// Whether only a key keeps it from doing harm.
    pub needs_key: bool,
    /// The frame of a number.
    pub frame: fn(&Known, u64) -> Vec<u8>,
}

const fn attack(
    name: &'static str,
    about: &'static str,
    per_second: u32,
    frame: fn(&Known, u64) -> Vec<u8>,
) -> Attack {
    Attack { name, about, per_second, moves_macs: false, forges_arp: false, needs_key: false, frame }
}

/// The same, from the MAC of a victim or of the gateway.
const fn moving(
    name: &'static str,
    about: &'static str,
    per_second: u32,
    frame: fn(&Known, u64) -> Vec<u8>,
) -> Attack {
    Attack { name, about, per_second, moves_macs: true, forges_arp: false, needs_key: false, frame }
}

/// The same, which the kernel's own ARP believes.
const fn forging(attack: Attack) -> Attack {
    Attack { forges_arp: true, ..attack }
}

/// The same; only a key keeps it from doing harm.
const fn keyed(attack: Attack) -> Attack {
    Attack { needs_key: true, ..attack }
}

const ALL: MacAddr = MacAddr::BROADCAST;
/// EtherType of mirrored frames: the second of the two that IEEE 802 reserves for local experiments.
const MIRRORED: [u8; 2] = [0x88, 0xb6];
/// The attack that is shown to be harmless for a minute.
const FLOOD: &str = "flood";

impl Attack {
    /// The one with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ATTACKS.iter().find(|attack| attack.name == name)
    }

    /// The one with all that can be sent in great numbers, which is to be harmless for a minute.
    pub fn is_flood(&self) -> bool {
        self.name == FLOOD
    }
}

/// All of them.
pub static ATTACKS: [Attack; 27] = [
    attack(FLOOD, "a mix of all messages of invented hosts, probes, mirrored frames", 100_000, flood),
    attack("gateway", "BROADCAST without TLVs that lists the gateway's MAC", 100, |known, _| {
        let address = Some(IpAddr::from([198, 18, 0, 200]));
        let hardware = vec![known.own, known.gateway];
        let message = Message { kind: Kind::Broadcast, address, hardware, extension: None };
        frame(ALL, known.own, &message)
    }),
    moving("probes", "PROBE in a peer's name with the highest epoch and number", 20, |known, n| {
        let of_peer = Probe { epoch: u64::MAX, number: u32::MAX, view: View::Lost, ..peer_probe(known) };
        probe(known.member(0, n), known.member(1, n / 2), &of_peer)
    }),
    attack("changes", "CHANGE of 50 invented hosts", 10_000, |_, n| {
        let message = invented(Kind::Change, n % 50, u32::try_from(n / 50).unwrap_or(0), 1);
        frame(ALL, invented_mac(n % 50), &message)
    }),
    attack("joins", "BROADCAST of a new host each time", 20_000, |_, n| {
        frame(ALL, invented_mac(n), &invented(Kind::Broadcast, n, 1, 1))
    }),
    attack("replies", "REPLY of a new host each time, to one victim", 10_000, |known, n| {
        frame(known.member(0, n), invented_mac(n), &invented(Kind::Reply, n, 1, 1))
    }),
    attack("clears", "CLEAR of hosts that nobody knows", 10_000, |_, n| {
        frame(ALL, invented_mac(n), &invented(Kind::Clear, n, 1, 1))
    }),
    attack("long", "CHANGE with 16 members of a new host each time", 5000, |_, n| {
        frame(ALL, invented_mac(n), &invented(Kind::Change, n, 1, 16))
    }),
    attack("members", "CHANGE of one invented host with other members each time", 2000, |_, n| {
        let mut message = invented(Kind::Change, 1, u32::try_from(n).unwrap_or(0), 4);
        message.hardware = (0..4).map(|member| invented_mac(n * 4 + member)).collect();
        frame(ALL, message.hardware[0], &message)
    }),
    attack("clear", "CLEAR of a peer, from another MAC", 100, |known, _| {
        frame(ALL, known.own, &known.victim(1, |message, _| message.kind = Kind::Clear))
    }),
    moving("clear-as", "CLEAR of a peer with the highest epoch, from its MAC", 20, |known, n| {
        let clear = known.victim(1, |message, extension| {
            message.kind = Kind::Clear;
            extension.epoch = u64::MAX;
        });
        frame(ALL, known.member(1, n), &clear)
    }),
    keyed(attack(
        "restart",
        "BROADCAST of a peer with the highest epoch, from another MAC",
        100,
        |known, _| {
            let again = known.victim(1, |message, extension| {
                message.kind = Kind::Broadcast;
                message.hardware[0] = known.own;
                extension.epoch = u64::MAX;
            });
            frame(ALL, known.own, &again)
        },
    )),
    keyed(moving("down-as", "CHANGE of a peer from its MAC: all its members are down", 20, |known, n| {
        let down = known.victim(1, |message, extension| {
            message.kind = Kind::Change;
            extension.sequence = extension.sequence.wrapping_add(1 + u32::try_from(n).unwrap_or(0));
            extension.members.iter_mut().for_each(|member| member.up = false);
        });
        frame(ALL, known.member(1, n), &down)
    })),
    attack("address", "CHANGE of an invented host that has a peer's address", 100, |known, n| {
        let mut message = invented(Kind::Change, 1, u32::try_from(n).unwrap_or(0), 1);
        message.address = known.victims[1].address;
        frame(ALL, message.hardware[0], &message)
    }),
    attack("takes-macs", "CHANGE of an invented host that has a peer's MACs", 100, |known, n| {
        let mut message = invented(Kind::Change, 1, u32::try_from(n).unwrap_or(0), 3);
        let own = message.hardware[0];
        message.hardware = [own, known.member(1, 0), known.member(1, 1)].to_vec();
        frame(ALL, own, &message)
    }),
    attack("takes-us", "CHANGE with the receiver's own id, address and MACs", 100, |known, n| {
        let copy = known.victim(0, |_, extension| {
            extension.sequence = extension.sequence.wrapping_add(1 + u32::try_from(n).unwrap_or(0));
        });
        frame(ALL, known.own, &copy)
    }),
    attack("guest", "CHANGE of an invented host with the gateway as its guest", 100, |known, n| {
        let mut message = invented(Kind::Change, 1, u32::try_from(n).unwrap_or(0), 1);
        let guest = Guest { vlan: 0, mac: known.gateway, addresses: vec![known.gateway_address] };
        message.extension.iter_mut().for_each(|extension| {
            extension.features = linkbraid_wire::FEATURE_GUESTS;
            extension.guests = vec![guest.clone()];
        });
        frame(ALL, message.hardware[0], &message)
    }),
    moving("repeats", "what was heard, again", 50, |known, n| known.heard(n)),
    attack("repeats-as", "what was heard, again, from another MAC", 2000, |known, n| {
        let mut frame = known.heard(n);
        frame[6..12].copy_from_slice(&known.own.0);
        frame
    }),
    attack(
        "bits",
        "what was heard with a bit changed and a part cut off, from another MAC",
        10_000,
        |known, n| {
            let (mut frame, chance) = (known.heard(n), mix(n));
            frame[6..12].copy_from_slice(&known.own.0);
            let at = 14 + usize::try_from(chance >> 32).unwrap_or(0) % (frame.len() - 14);
            frame[at] ^= 1 << (chance & 7);
            let cut = usize::try_from(chance >> 8 & 0xff).unwrap_or(0);
            frame.truncate(if chance & 8 == 0 {
                frame.len()
            } else {
                frame.len().saturating_sub(cut).max(60)
            });
            frame
        },
    ),
    attack("chance", "frames of ARP+ full of chance", 10_000, |_, n| random_frame([0x88, 0xb5], ALL, n)),
    attack("stranger-probes", "PROBE of hosts that nobody knows", 20_000, |known, n| {
        stranger_probe(known, n, ProbeKind::Probe)
    }),
    attack("stranger-replies", "PROBE-REPLY with echoes of chance", 20_000, |known, n| {
        stranger_probe(known, n, ProbeKind::Reply)
    }),
    attack("mirrored", "mirrored frames of hosts that nobody knows", 10_000, |known, n| {
        random_frame(MIRRORED, known.member(0, n), n)
    }),
    moving("mirrored-as", "mirrored frames from a peer's MAC", 50, |known, n| {
        let mut frame = random_frame(MIRRORED, known.member(0, n), n);
        frame[6..12].copy_from_slice(&known.member(1, n).0);
        frame
    }),
    attack("tagged", "what was heard, in a VLAN", 2000, |known, n| {
        let mut frame = known.heard(n);
        frame[6..12].copy_from_slice(&known.own.0);
        frame.splice(12..12, [0x81, 0, 0, 7]);
        frame
    }),
    forging(attack("arp-answers", "answers to ARP probes in the gateway's name", 500, |known, n| {
        let IpAddr::V4(gateway) = known.gateway_address else { return Vec::new() };
        let nowhere = Ipv4Addr::UNSPECIFIED;
        emit_arp_reply(known.member(0, n), nowhere, known.own, gateway).unwrap_or_default()
    })),
];

/// All that can be sent in great numbers, in turns.
fn flood(known: &Known, number: u64) -> Vec<u8> {
    let of = |kind| invented(kind, number, 1, 1);
    let (src, to) = (invented_mac(number), known.member(0, number / 8));
    match number % 8 {
        0 => frame(ALL, src, &of(Kind::Broadcast)),
        1 => frame(ALL, src, &of(Kind::Change)),
        2 => frame(ALL, src, &of(Kind::Clear)),
        3 => frame(to, src, &of(Kind::Reply)),
        4 => stranger_probe(known, number, ProbeKind::Probe),
        5 => stranger_probe(known, number, ProbeKind::Reply),
        6 => random_frame(MIRRORED, to, number),
        _ => random_frame([0x88, 0xb5], to, number),
    }
}

/// A probe of the second victim, as far as the stranger knows it.
fn peer_probe(known: &Known) -> Probe {
    let extension = known.victims[1].extension.as_ref();
    let (host, epoch) = extension.map(|extension| (extension.host, extension.epoch)).unzip();
    let address = known.victims[1].address;
    let (host, epoch) = (host.unwrap_or_else(|| Probe::default().host), epoch.unwrap_or(0));
    Probe { address, host, epoch, nonce: 9, ..Probe::default() }
}

/// A probe of a host that nobody knows, or of a peer from a MAC that is not its own.
fn stranger_probe(known: &Known, number: u64, kind: ProbeKind) -> Vec<u8> {
    let mut forged = Probe { kind, nonce: mix(number) | 1, echo: mix(number + 1) | 1, ..peer_probe(known) };
    if number.is_multiple_of(3) {
        forged.host.0[..8].copy_from_slice(&mix(number).to_be_bytes());
    }
    let victim = usize::from(number.is_multiple_of(2));
    probe(known.member(victim, number / 2), invented_mac(number), &forged)
}

/// A frame with that EtherType and 60 bytes of chance.
fn random_frame(ethertype: [u8; 2], dst: MacAddr, number: u64) -> Vec<u8> {
    let chance = (0..8).flat_map(|word| mix(number * 8 + word).to_be_bytes());
    let head = dst.0.into_iter().chain(invented_mac(number).0).chain(ethertype);
    head.chain(chance).collect()
}
