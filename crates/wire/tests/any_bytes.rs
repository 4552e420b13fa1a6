//! The decoder against arbitrary, almost right, and right messages.

use linkbraid_wire::{
    Auth, CLASSES_MAX, Class, Extension, Guest, HostId, Kind, MacAddr, Member, Message, PlainAnswer, Probe,
    ProbeKind, View, emit_frame, emit_plain_probe, emit_probe, is_class_name, is_plain_answer, is_probe,
    parse_frame, parse_plain_answer, parse_probe, probe_address,
};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

fn host_mac(tail: [u8; 5]) -> MacAddr {
    MacAddr([2, tail[0], tail[1], tail[2], tail[3], tail[4]])
}

fn host_ip() -> impl Strategy<Value = IpAddr> {
    any::<IpAddr>().prop_filter("an address that one host can own", |ip| {
        let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
        !(ip.is_unspecified() || ip.is_multicast() || broadcast)
    })
}

/// Up to seven classes: the numbers from one on, turned, with different names.
fn classes() -> impl Strategy<Value = Vec<Class>> {
    let name = "[a-z0-9_-]{1,15}".prop_filter("what a class may be called", |name| is_class_name(name));
    let names = prop::collection::btree_set(name, 0..=CLASSES_MAX);
    (names, any::<u8>(), any::<u8>()).prop_map(|(names, turn, lent)| {
        let class = |(at, name): (u8, String)| Class {
            number: 1 + (at + turn % 7) % 7,
            may_borrow: lent >> at & 1 == 1,
            name,
        };
        (0..).zip(names).map(class).collect()
    })
}

/// Up to two guests, in different VLANs, with up to four addresses.
fn guests() -> impl Strategy<Value = Vec<Guest>> {
    let addresses = prop::collection::btree_set(host_ip(), 1..=4);
    let guest = (any::<[u8; 5]>(), addresses);
    prop::collection::btree_map(0..=linkbraid_wire::VLAN_MAX, guest, 0..=2).prop_map(|guests| {
        let guest = |(vlan, (tail, addresses)): (u16, ([u8; 5], std::collections::BTreeSet<IpAddr>))| Guest {
            vlan,
            mac: host_mac(tail),
            addresses: addresses.into_iter().collect(),
        };
        guests.into_iter().map(guest).collect()
    })
}

fn extension(members: usize) -> impl Strategy<Value = Extension> {
    let member = any::<(bool, u32, u8)>();
    let auth = (any::<u32>(), prop::collection::vec(any::<u8>(), 0..=32));
    let identity = (1u8.., any::<[u8; 16]>(), any::<u64>(), any::<u32>());
    let kinds = (classes(), any::<u32>(), guests());
    let lists = (prop::collection::vec(member, members), prop::collection::vec(host_ip(), 0..=32));
    (identity, lists, kinds, any::<bool>(), prop::option::of(auth)).prop_map(
        |(identity, (members, addresses), (classes, features, guests), digest, auth)| {
            let (version, host, epoch, sequence) = identity;
            let members = members.into_iter().zip(0..);
            let members =
                members.map(|((up, weight_mbit, class), index)| Member { index, up, weight_mbit, class });
            Extension {
                version,
                host: HostId(host),
                epoch,
                sequence,
                members: members.collect(),
                classes,
                features,
                guests,
                addresses,
                digest: digest.then_some(0),
                auth: auth.map(|(key_id, tag)| Auth { key_id, tag }),
            }
        },
    )
}

prop_compose! {
    fn message()(hardware in prop::collection::btree_set(any::<[u8; 5]>(), 1..=16))(
        kind in prop::sample::select(&Kind::ALL[..]),
        address in prop::option::of(host_ip()),
        extension in prop::option::of(extension(hardware.len())),
        hardware in Just(hardware),
    ) -> Message {
        let hardware = hardware.into_iter().map(host_mac).collect();
        let mut message = Message { kind, address, hardware, extension };
        let digest = message.sent_digest();
        if let Some(place) = message.extension.as_mut().and_then(|extension| extension.digest.as_mut()) {
            *place = digest;
        }
        message
    }
}

prop_compose! {
    fn probe()(
        kind in prop::sample::select(&[ProbeKind::Probe, ProbeKind::Reply][..]),
        view in prop::sample::select(&[View::Unjudged, View::Lost, View::Init, View::Up][..]),
        address in prop::option::of(host_ip()),
        identity in (1u8.., any::<[u8; 16]>(), any::<u64>(), any::<u32>()),
        nonces in (1u64.., 1u64..),
        terms in (1u32.., 1u8..),
        auth in prop::option::of((any::<u32>(), prop::collection::vec(any::<u8>(), 0..=32))),
    ) -> Probe {
        let (version, host, epoch, number) = identity;
        let auth = auth.map(|(key_id, tag)| Auth { key_id, tag });
        let (nonce, echo) = nonces;
        let (interval_us, multiplier) = terms;
        let host = HostId(host);
        Probe { kind, address, version, host, epoch, nonce, echo, number, view, interval_us, multiplier, auth }
    }
}

proptest! {
    #[test]
    fn every_probe_round_trips(probe in probe(), src: [u8; 5], dst: [u8; 5]) {
        let bytes = emit_probe(host_mac(dst), host_mac(src), &probe).expect("a good probe");
        prop_assert!(is_probe(&bytes) && parse_frame(&bytes).is_err());
        let frame = parse_probe(&bytes).expect("what was written can be read");
        prop_assert_eq!((frame.dst, frame.src, frame.unknown_tlvs), (host_mac(dst), host_mac(src), 0));
        prop_assert_eq!(frame.probe, probe);
    }

    /// One flipped byte of a good probe gives a probe that keeps the rules, or a refusal.
    #[test]
    fn flipped_bytes_of_probes_never_panic(probe in probe(), at: prop::sample::Index, flip in 1u8..) {
        let mut bytes = emit_probe(host_mac([0; 5]), host_mac([1; 5]), &probe).expect("a good probe");
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(frame) = parse_probe(&bytes) {
            prop_assert_eq!(frame.probe.check(), Ok(()));
        }
    }

    #[test]
    fn every_message_round_trips(message in message(), src: [u8; 5], dst: [u8; 6]) {
        let bytes = emit_frame(MacAddr(dst), host_mac(src), &message).expect("a good message");
        let frame = parse_frame(&bytes).expect("what was written can be read");
        prop_assert_eq!((frame.dst, frame.src), (MacAddr(dst), host_mac(src)));
        prop_assert_eq!(frame.parsed.message, message);
        prop_assert_eq!(frame.parsed.unknown_tlvs, 0);
        prop_assert!(bytes.len() <= 14 + linkbraid_wire::MESSAGE_LEN_MAX);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..1600)) {
        let _ = Message::parse(&bytes);
        let _ = parse_frame(&bytes);
        let _ = (is_probe(&bytes), parse_probe(&bytes));
        prop_assert_eq!(is_plain_answer(&bytes), parse_plain_answer(&bytes).is_ok());
        let ipv6 = [&bytes[..bytes.len().min(12)], &[0x86, 0xdd, 0x60], &bytes[bytes.len().min(15)..]].concat();
        prop_assert_eq!(is_plain_answer(&ipv6), parse_plain_answer(&ipv6).is_ok());
    }

    /// A host turns a probe around as RFC 826 says: what comes back is read as its answer. One flipped byte of
    /// it is padding, names somebody else, or is refused.
    #[test]
    fn answers_to_probes_are_read_and_flipped_ones_never_pass_for_them(
        host: [u8; 5], member: [u8; 5], ip: [u8; 4], at in 0usize..60, flip in 1u8..,
    ) {
        let (host, member, ip) = (host_mac(host), host_mac(member), Ipv4Addr::from(ip));
        let Ok(probe) = emit_plain_probe(host, member, IpAddr::V4(ip)) else {
            prop_assert!(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast());
            return Ok(());
        };
        prop_assert!(!is_plain_answer(&probe), "an own probe that came back is no answer");
        let mut bytes = [&member.0[..], &host.0, &probe[12..20], &[0, 2], &host.0, &ip.octets(), &member.0].concat();
        bytes.resize(60, 0);
        let good = PlainAnswer { to: member, host, ip: IpAddr::V4(ip) };
        prop_assert_eq!(parse_plain_answer(&bytes), Ok(good));
        bytes[at] ^= flip;
        if let Ok(read) = parse_plain_answer(&bytes) {
            let named = (28..32).contains(&at);
            prop_assert_eq!(read == good, !named, "byte {}", at);
            prop_assert!(named || at >= 42, "byte {}", at);
        }
    }

    /// The same of a host that answers a neighbour solicitation: the checksum covers all that ARP's fields tell, but
    /// nothing covers the host's MAC, the traffic class and the flow label.
    #[test]
    fn answers_to_solicitations_are_read_and_flipped_ones_never_pass_for_them(
        host: [u8; 5], member: [u8; 5], ip: [u8; 16], at in 0usize..78, flip in 1u8..,
    ) {
        let (host, member, ip) = (host_mac(host), host_mac(member), IpAddr::from(ip));
        let Ok(probe) = emit_plain_probe(host, member, ip) else {
            prop_assert!(ip.is_unspecified() || ip.is_multicast());
            return Ok(());
        };
        prop_assert!(!is_plain_answer(&probe), "an own probe that came back is no answer");
        // Without the option; the sum of both addresses is that of the solicitation.
        let mut bytes = [&member.0[..], &host.0, &probe[12..18], &[0, 24], &probe[20..22]].concat();
        bytes.extend([&probe[38..54], &probe_address(member).octets(), &[136, 0, 0, 0, 0x60, 0, 0, 0]].concat());
        bytes.extend(&probe[62..78]);
        let pseudo = [&bytes[22..54], &[0, 0, 0, 24, 0, 0, 0, 58], &bytes[54..]].concat();
        let words = pseudo.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let sum = words.fold(0, |sum: u32, word| (sum + word) % 0xffff);
        bytes[56..58].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        let good = PlainAnswer { to: member, host, ip };
        prop_assert_eq!(parse_plain_answer(&bytes), Ok(good));
        bytes[at] ^= flip;
        if let Ok(read) = parse_plain_answer(&bytes) {
            prop_assert_eq!((6..12).contains(&at), read != good, "byte {}", at);
            prop_assert!((6..12).contains(&at) || (14..18).contains(&at), "byte {}", at);
        }
    }

    /// Bytes that look right in front reach the TLV code; whatever is read keeps the rules.
    #[test]
    fn tlv_soup_is_refused_or_keeps_the_rules(
        count in 0u8..18,
        tlvs in prop::collection::vec((0u8..13, prop::collection::vec(any::<u8>(), 0..26)), 0..24),
        cut in 0usize..400,
    ) {
        let mut bytes = vec![6, 4, count, 3, 198, 18, 0, 1];
        (0..count).for_each(|last| bytes.extend([2, 0, 0, 0, 0, last]));
        bytes.extend([1, 1, 1]);
        for (kind, value) in tlvs {
            bytes.extend([kind, value.len() as u8]);
            bytes.extend(value);
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        if let Ok(parsed) = Message::parse(&bytes) {
            prop_assert_eq!(parsed.message.check(), Ok(()));
        }
    }

    /// One flipped byte of a good message gives a message that keeps the rules, or a refusal.
    #[test]
    fn flipped_bytes_never_panic(message in message(), at: prop::sample::Index, flip in 1u8..) {
        let mut bytes = Vec::new();
        message.emit(&mut bytes).expect("a good message");
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(parsed) = Message::parse(&bytes) {
            prop_assert_eq!(parsed.message.check(), Ok(()));
        }
    }
}
