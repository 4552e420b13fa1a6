//! One static frame both ways, then the rules one by one.

use super::{Probe, ProbeFrame, ProbeKind, View, emit_probe, is_probe, parse_probe};
use crate::pad_to;
use crate::{Auth, HostId, Kind, MacAddr, Message, Refusal, emit_frame, parse_frame};
use std::net::IpAddr;

const SRC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const DST: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

#[rustfmt::skip]
const REPLY: [u8; 85] = [
    2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x88, 0xb5,
    6, 4, 1, 6, 198, 18, 0, 7, 2, 0, 0, 0, 0, 1,
    1, 1, 1,
    2, 24, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 1, 2,
    8, 26, 0xaa, 0, 0, 0, 0, 0, 0, 1, 0xbb, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 3, 0, 0, 0xc3, 0x50, 3,
];

fn reply() -> Probe {
    let mut host = [0; 16];
    host.iter_mut().enumerate().for_each(|(at, octet)| *octet = at as u8);
    Probe {
        kind: ProbeKind::Reply,
        address: Some(IpAddr::from([198, 18, 0, 7])),
        host: HostId(host),
        epoch: 258,
        nonce: 0xaa00_0000_0000_0001,
        echo: 0xbb00_0000_0000_0002,
        number: 9,
        view: View::Up,
        ..Probe::default()
    }
}

fn parse(bytes: &[u8]) -> Result<Probe, Refusal> {
    parse_probe(bytes).map(|frame| frame.probe)
}

#[test]
fn reply_has_the_specified_bytes() {
    let frame = ProbeFrame { dst: DST, src: SRC, probe: reply(), unknown_tlvs: 0 };
    assert_eq!(parse_probe(&REPLY), Ok(frame));
    assert_eq!(emit_probe(DST, SRC, &reply()).expect("a good probe"), REPLY);
}

#[test]
fn lengths_are_those_the_specification_names() {
    let len = |probe: &Probe| emit_probe(DST, SRC, probe).expect("a good probe").len();
    assert_eq!(len(&Probe { address: None, ..reply() }), 81);
    assert_eq!(len(&reply()), 85);
    assert_eq!(len(&Probe { address: Some("2001:db8::7".parse().expect("an address")), ..reply() }), 97);
}

/// Every field alone survives, and so do its extremes.
#[test]
fn every_view_and_kind_round_trips() {
    for kind in [ProbeKind::Probe, ProbeKind::Reply] {
        for view in [View::Unjudged, View::Lost, View::Init, View::Up] {
            let auth = Some(Auth { key_id: 1, tag: vec![7; 32] });
            let probe = Probe {
                kind,
                view,
                number: u32::MAX,
                interval_us: u32::MAX,
                multiplier: 255,
                auth,
                ..reply()
            };
            assert_eq!(parse(&emit_probe(DST, SRC, &probe).expect("a good probe")), Ok(probe));
        }
    }
}

#[test]
fn frames_are_told_apart_by_type() {
    let message = Message { kind: Kind::Reply, address: None, hardware: vec![SRC], extension: None };
    let frame = emit_frame(DST, SRC, &message).expect("a good message");
    assert!(is_probe(&REPLY) && !is_probe(&frame) && !is_probe(&REPLY[..17]));
    assert_eq!(parse(&frame), Err(Refusal::UnknownType));
    assert_eq!(parse_frame(&REPLY), Err(Refusal::UnknownType), "the table knows 1 to 4");
    let mut other = REPLY;
    other[13] = 0xb6;
    assert!(!is_probe(&other));
    assert_eq!(parse(&other), Err(Refusal::NotArpPlus));
}

//= docs/arp-plus.md#10.1 type=test
#[test]
fn probes_to_groups_are_refused() {
    for dst in [MacAddr::BROADCAST, MacAddr::ZERO, MacAddr([1, 0, 0x5e, 0, 0, 1])] {
        let mut bytes = REPLY;
        bytes[..6].copy_from_slice(&dst.0);
        assert_eq!(parse(&bytes), Err(Refusal::ProbeNotUnicast), "{dst}");
        assert_eq!(emit_probe(dst, SRC, &reply()), Err(Refusal::ProbeNotUnicast));
    }
    assert_eq!(emit_probe(DST, MacAddr::BROADCAST, &reply()), Err(Refusal::SourceNotHost));
}

//= docs/arp-plus.md#10.2 type=test
#[test]
fn hardware_address_is_the_source_and_alone() {
    let mut bytes = REPLY;
    bytes[27] = 2;
    assert_eq!(parse(&bytes), Err(Refusal::ProbeHardware), "another's");
    let mut two = REPLY.to_vec();
    two[16] = 2;
    two.splice(28..28, [2, 0, 0, 0, 0, 2]);
    assert_eq!(parse(&two), Err(Refusal::ProbeHardware), "two");
    bytes[16] = 0;
    assert_eq!(parse(&bytes), Err(Refusal::ProbeHardware), "none");
}

//= docs/arp-plus.md#10.3 type=test
#[test]
fn tlvs_that_must_be_there_are_there_once() {
    assert_eq!(parse(&REPLY[..28]), Err(Refusal::TlvMissing), "published-only");
    assert_eq!(parse(&REPLY[..31]), Err(Refusal::TlvMissing), "no HOST");
    assert_eq!(parse(&REPLY[..57]), Err(Refusal::TlvMissing), "no PROBE");
    let mut twice = REPLY.to_vec();
    twice.extend_from_slice(&REPLY[57..]);
    assert_eq!(parse(&twice), Err(Refusal::TlvTwice));
    for end in 58..85 {
        assert_eq!(parse(&REPLY[..end]), Err(Refusal::TlvTruncated), "cut at {end}");
    }
    let mut short = REPLY.to_vec();
    short[58] = 25;
    assert_eq!(parse(&short), Err(Refusal::TlvLength));
    let mut more = REPLY.to_vec();
    more.extend([3, 4, 0, 0, 0, 1, 99, 0, 0]);
    let frame = parse_probe(&more).expect("SEQUENCE and a TLV from the future say nothing here");
    assert_eq!((frame.probe, frame.unknown_tlvs), (reply(), 2));
    let tag = [7, 4, 0, 0, 0, 1];
    let after = [&REPLY[..], &tag, &[99, 0]].concat();
    assert_eq!(parse(&after), Err(Refusal::AuthNotLast));
}

//= docs/arp-plus.md#10.3 type=test
#[test]
fn values_that_cannot_be_are_refused_in_bytes_and_in_words() {
    let at = |range: std::ops::Range<usize>, byte: u8| {
        let mut bytes = REPLY;
        bytes[range].fill(byte);
        parse(&bytes)
    };
    assert_eq!(at(59..67, 0), Err(Refusal::TlvValue), "nonce");
    assert_eq!(at(67..75, 0), Err(Refusal::TlvValue), "a reply to nothing");
    assert_eq!(at(79..80, 4), Err(Refusal::TlvValue), "view");
    assert_eq!(at(80..84, 0), Err(Refusal::TlvValue), "interval");
    assert_eq!(at(84..85, 0), Err(Refusal::TlvValue), "multiplier");
    assert_eq!(at(30..31, 0), Err(Refusal::VersionZero));
    assert_eq!(at(18..22, 0), Err(Refusal::AddressNotHost));
    for bad in [
        Probe { nonce: 0, ..reply() },
        Probe { echo: 0, ..reply() },
        Probe { interval_us: 0, ..reply() },
        Probe { multiplier: 0, ..reply() },
    ] {
        assert_eq!(emit_probe(DST, SRC, &bad), Err(Refusal::TlvValue));
    }
    let ask = Probe { kind: ProbeKind::Probe, echo: 0, ..reply() };
    assert_eq!(parse(&emit_probe(DST, SRC, &ask).expect("a first PROBE")), Ok(ask));
    assert_eq!(parse_probe(&[&REPLY[..], &[0; 1440]].concat()), Err(Refusal::TooLong));
}

//= docs/arp-plus.md#10.4 type=test
#[test]
fn padded_requests_are_read_whatever_their_length() {
    let ask = Probe { kind: ProbeKind::Probe, ..reply() };
    let short = emit_probe(DST, SRC, &ask).expect("a PROBE");
    for bytes in [60, 248, 1514, 1515, 9014, 65_549] {
        let mut long = short.clone();
        pad_to(&mut long, bytes);
        assert_eq!(long.len(), bytes.max(short.len()));
        assert_eq!(parse(&long), Ok(ask.clone()), "{bytes}");
        // The data path hands on the head only.
        assert_eq!(parse(&long[..long.len().min(248)]), Ok(ask.clone()), "{bytes}");
    }
    let mut filled = short;
    filled.resize(9014, 7);
    assert!(parse(&filled).is_err(), "what does not end is no padding");
    let mut answer = REPLY.to_vec();
    pad_to(&mut answer, 1515);
    assert_eq!(parse(&answer), Err(Refusal::TooLong), "an answer is never longer than other messages");
}
