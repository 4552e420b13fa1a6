//! Static byte arrays both ways, then the rules one by one.

use crate::{
    Auth, Extension, Frame, HostId, Kind, MacAddr, Member, Message, Parsed, Refusal, emit_frame, parse_frame,
};
use std::net::IpAddr;

const MAC_1: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const MAC_2: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// A message of a host that knows only the published part: 198.18.0.7 behind two NICs.
const PUBLISHED: [u8; 20] = [6, 4, 2, 3, 198, 18, 0, 7, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

/// 2001:db8::7 with one member of 100 Mbit/s, one more address of each family, digest and a tag of two bytes.
#[rustfmt::skip]
const EXTENDED: [u8; 114] = [
    6, 16, 1, 1,
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7,
    2, 0, 0, 0, 0, 1,
    1, 1, 1,
    2, 24, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 1, 2,
    3, 4, 0, 0, 0, 9,
    4, 7, 3, 1, 0, 0, 0, 100, 2,
    5, 5, 4, 198, 18, 0, 7,
    5, 17, 16, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8,
    6, 8, 0x18, 0xb8, 0xd9, 0x4e, 0xe7, 0xfe, 0x98, 0xb0,
    7, 6, 0, 0, 0, 5, 0xaa, 0xbb,
];

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn published() -> Message {
    Message {
        kind: Kind::Change,
        address: Some(ip("198.18.0.7")),
        hardware: vec![MAC_1, MAC_2],
        extension: None,
    }
}

fn extended() -> Message {
    let mut host = [0; 16];
    host.iter_mut().enumerate().for_each(|(at, octet)| *octet = at as u8);
    let extension = Extension {
        version: 1,
        host: HostId(host),
        epoch: 258,
        sequence: 9,
        members: vec![Member { index: 3, up: true, weight_mbit: 100, class: 2 }],
        classes: Vec::new(),
        features: 0,
        guests: Vec::new(),
        addresses: vec![ip("198.18.0.7"), ip("2001:db8::8")],
        digest: Some(0),
        auth: Some(Auth { key_id: 5, tag: vec![0xaa, 0xbb] }),
    };
    let mut message = Message {
        kind: Kind::Broadcast,
        address: Some(ip("2001:db8::7")),
        hardware: vec![MAC_1],
        extension: Some(extension),
    };
    let digest = message.mapping_digest();
    message.extension.as_mut().expect("just set").digest = Some(digest);
    message
}

fn parse(bytes: &[u8]) -> Result<Message, Refusal> {
    Message::parse(bytes).map(|parsed| parsed.message)
}

fn emit(message: &Message) -> Vec<u8> {
    let mut out = vec![0xa5; 3];
    message.emit(&mut out).expect("a good message");
    assert_eq!(out[..3], [0xa5; 3], "emit appends");
    out.split_off(3)
}

//= docs/arp-plus.md#2.1 type=test
#[test]
fn published_part_has_the_published_bytes() {
    assert_eq!(parse(&PUBLISHED), Ok(published()));
    assert_eq!(emit(&published()), PUBLISHED);
}

//= docs/arp-plus.md#3.1 type=test
#[test]
fn extension_follows_with_version_first() {
    assert_eq!(parse(&EXTENDED), Ok(extended()));
    assert_eq!(emit(&extended()), EXTENDED);
}

/// A reader written from the paper alone: lengths, type, address, hardware addresses, and no look at the rest.
fn read_as_published_only(bytes: &[u8]) -> (u8, &[u8], Vec<&[u8]>) {
    let (protocol_len, count) = (usize::from(bytes[1]), usize::from(bytes[2]));
    let hardware = &bytes[4 + protocol_len..4 + protocol_len + 6 * count];
    (bytes[3], &bytes[4..4 + protocol_len], hardware.chunks(6).collect())
}

#[test]
fn published_only_reader_reads_an_extended_message() {
    let (kind, address, hardware) = read_as_published_only(&EXTENDED);
    assert_eq!(kind, 1);
    assert_eq!(address, &EXTENDED[4..20]);
    assert_eq!(hardware, [&MAC_1.0]);
}

//= docs/arp-plus.md#2.2 type=test
#[test]
fn other_hardware_lengths_are_refused() {
    let mut bytes = PUBLISHED;
    bytes[0] = 8;
    assert_eq!(parse(&bytes), Err(Refusal::HardwareLength));
}

//= docs/arp-plus.md#2.3 type=test
#[test]
fn address_is_absent_or_of_either_family_and_of_a_host() {
    let none = [6, 0, 1, 3, 2, 0, 0, 0, 0, 1];
    assert_eq!(parse(&none).map(|message| message.address), Ok(None));
    let mut bytes = PUBLISHED;
    bytes[1] = 5;
    assert_eq!(parse(&bytes), Err(Refusal::ProtocolLength));
    for address in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "ff02::1"] {
        let message = Message { address: Some(ip(address)), ..published() };
        assert_eq!(message.check(), Err(Refusal::AddressNotHost), "{address}");
    }
}

//= docs/arp-plus.md#2.4 type=test
#[test]
fn one_to_sixteen_hardware_addresses() {
    let hardware = |count: u8| (1..=count).map(|last| MacAddr([2, 0, 0, 0, 1, last])).collect();
    let message = |count| Message { hardware: hardware(count), ..published() };
    assert_eq!(message(0).check(), Err(Refusal::NoHardware));
    assert_eq!(parse(&emit(&message(16))), Ok(message(16)));
    assert_eq!(message(17).check(), Err(Refusal::TooManyHardware));
    let mut bytes = PUBLISHED;
    bytes[2] = 17;
    assert_eq!(parse(&bytes), Err(Refusal::TooManyHardware));
    bytes[2] = 0;
    assert_eq!(parse(&bytes), Err(Refusal::NoHardware));
}

//= docs/arp-plus.md#2.5 type=test
#[test]
fn hardware_addresses_are_of_hosts_and_differ() {
    for bad in [MacAddr::BROADCAST, MacAddr::ZERO, MacAddr([1, 0, 0x5e, 0, 0, 1])] {
        assert_eq!(
            Message { hardware: vec![MAC_1, bad], ..published() }.check(),
            Err(Refusal::HardwareNotHost)
        );
    }
    assert_eq!(Message { hardware: vec![MAC_1, MAC_1], ..published() }.check(), Err(Refusal::HardwareTwice));
}

//= docs/arp-plus.md#2.6 type=test
#[test]
fn padding_of_any_content_is_ignored() {
    for fill in [0x00, 0xa5, 0xff] {
        let mut bytes = PUBLISHED.to_vec();
        bytes.resize(46, fill);
        let parsed = Message::parse(&bytes).expect("padded");
        assert_eq!(parsed, Parsed { message: published(), unknown_tlvs: 0, trailing: 26 });
    }
}

//= docs/arp-plus.md#2.7 type=test
#[test]
fn unknown_types_are_refused_by_name() {
    for kind in [0, 5, 255] {
        let mut bytes = PUBLISHED;
        bytes[3] = kind;
        assert_eq!(parse(&bytes), Err(Refusal::UnknownType));
    }
}

//= docs/arp-plus.md#3.2 type=test
#[test]
fn unknown_tlvs_are_skipped_and_counted() {
    let mut bytes = EXTENDED[..106].to_vec();
    bytes.extend([0x80, 3, 1, 2, 3, 0xfe, 0]);
    let parsed = Message::parse(&bytes).expect("skipped");
    assert_eq!(parsed.unknown_tlvs, 2);
    assert_eq!(parsed.message.extension.expect("extended").auth, None);
}

//= docs/arp-plus.md#3.3 type=test
#[test]
fn end_hides_what_follows() {
    let mut bytes = EXTENDED.to_vec();
    bytes.extend([0, 7, 1, 9]);
    assert_eq!(Message::parse(&bytes).map(|parsed| parsed.trailing), Ok(3));
}

//= docs/arp-plus.md#3.4 type=test
#[test]
fn version_host_and_sequence_come_together() {
    let mut bytes = PUBLISHED.to_vec();
    bytes.extend([1, 1, 1]);
    assert_eq!(parse(&bytes), Err(Refusal::TlvMissing));
    bytes[22] = 0;
    bytes.extend(&EXTENDED[29..61]);
    let twice = [&bytes[..], &EXTENDED[55..61]].concat();
    assert_eq!(parse(&twice), Err(Refusal::TlvTwice));
    let short = [&bytes[..], &[6, 7, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(parse(&short), Err(Refusal::TlvLength));
    assert_eq!(parse(&bytes), Err(Refusal::VersionZero));
    bytes[22] = 9;
    bytes.extend([4, 7, 0, 1, 0, 0, 0, 100, 0, 4, 7, 1, 0, 0, 0, 0, 100, 0]);
    let extension = parse(&bytes).expect("a later version").extension.expect("extended");
    assert_eq!((extension.version, extension.sequence), (9, 9));
}

//= docs/arp-plus.md#3.5 type=test
#[test]
fn each_hardware_address_has_its_member() {
    let mut message = extended();
    message.hardware.push(MAC_2);
    assert_eq!(message.check(), Err(Refusal::MemberCount));
    let extension = message.extension.as_mut().expect("extended");
    extension.members.push(extension.members[0]);
    assert_eq!(message.check(), Err(Refusal::MemberTwice));
    let mut bytes = EXTENDED.to_vec();
    bytes[64] = 2;
    assert_eq!(parse(&bytes), Err(Refusal::TlvValue));
}

//= docs/arp-plus.md#3.6 type=test
#[test]
fn more_addresses_keep_order_and_limit() {
    let mut message = extended();
    let addresses: Vec<IpAddr> = (1..=32).map(|last| ip(&format!("2001:db8::1:{last}"))).collect();
    let extension = message.extension.as_mut().expect("extended");
    extension.digest = None;
    extension.addresses = addresses.clone();
    assert_eq!(parse(&emit(&message)).expect("32").extension.expect("extended").addresses, addresses);
    message.extension.as_mut().expect("extended").addresses.push(ip("198.18.0.1"));
    assert_eq!(message.check(), Err(Refusal::TooManyAddresses));
    for value in [&[][..], &[5, 1, 2, 3, 4, 5], &[4, 1, 2, 3]] {
        let mut bytes = EXTENDED[..70].to_vec();
        bytes.extend([5, value.len() as u8]);
        bytes.extend(value);
        assert_eq!(parse(&bytes), Err(Refusal::TlvLength), "{value:?}");
    }
}

//= docs/arp-plus.md#3.7 type=test
#[test]
fn digest_that_does_not_match_is_refused() {
    let mut bytes = EXTENDED;
    bytes[19] ^= 1;
    assert_eq!(parse(&bytes), Err(Refusal::DigestMismatch));
    let other = Message { kind: Kind::Change, ..extended() };
    assert_eq!(other.mapping_digest(), extended().mapping_digest(), "the kind is no part of the mapping");
}

//= docs/arp-plus.md#3.8 type=test
#[test]
fn nothing_follows_auth() {
    let mut bytes = EXTENDED.to_vec();
    bytes.extend([0x80, 0]);
    assert_eq!(parse(&bytes), Err(Refusal::AuthNotLast));
    let mut message = extended();
    let auth = message.extension.as_mut().expect("extended").auth.as_mut().expect("a tag");
    auth.tag = vec![7; 32];
    assert_eq!(parse(&emit(&message)), Ok(message.clone()));
    let extension = message.extension.as_mut().expect("extended");
    extension.auth.as_mut().expect("a tag").tag.push(7);
    assert_eq!(message.check(), Err(Refusal::TlvLength));
}

//= docs/arp-plus.md#2.8 type=test
#[test]
fn every_cut_is_refused_or_ends_between_tlvs() {
    for len in 0..PUBLISHED.len() {
        assert_eq!(parse(&PUBLISHED[..len]), Err(Refusal::Truncated), "{len} bytes");
    }
    let ends = [26, 70, 77, 96, 106, 114];
    for len in 26..=EXTENDED.len() {
        assert_eq!(parse(&EXTENDED[..len]).is_ok(), ends.contains(&len), "{len} bytes");
    }
    assert_eq!(parse(&[6; 1501]), Err(Refusal::TooLong));
}

//= docs/arp-plus.md#1.1 type=test
//= docs/arp-plus.md#1.3 type=test
#[test]
fn frame_has_header_and_padding() {
    let frame = emit_frame(MacAddr::BROADCAST, MAC_2, &published()).expect("a good message");
    assert_eq!(frame.len(), 60);
    assert_eq!(frame[..14], [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    assert_eq!(frame[14..34], PUBLISHED);
    let parsed = Parsed { message: published(), unknown_tlvs: 0, trailing: 26 };
    assert_eq!(parse_frame(&frame), Ok(Frame { dst: MacAddr::BROADCAST, src: MAC_2, parsed }));
    let mut other = frame.clone();
    other[13] = 0xb6;
    assert_eq!(parse_frame(&other), Err(Refusal::NotArpPlus));
    assert_eq!(parse_frame(&frame[..13]), Err(Refusal::Truncated));
}

//= docs/arp-plus.md#1.2 type=test
#[test]
fn frame_comes_from_a_host() {
    for src in [MacAddr::BROADCAST, MacAddr::ZERO] {
        let frame = emit_frame(MAC_1, src, &published()).expect("a good message");
        assert_eq!(parse_frame(&frame), Err(Refusal::SourceNotHost));
    }
}

#[test]
fn refusals_have_distinct_names() {
    let names: std::collections::BTreeSet<&str> = Refusal::ALL.iter().map(|refusal| refusal.name()).collect();
    assert_eq!(names.len(), Refusal::ALL.len());
    assert_eq!(Refusal::TooLong.to_string(), Refusal::TooLong.description());
}
