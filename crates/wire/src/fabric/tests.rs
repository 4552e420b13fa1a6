//! Both layouts against fixed bytes, both ways, and every rule they must keep.

use super::*;

const HEADER: Header = Header {
    kind: Kind::Data,
    sender: 0x0102,
    receiver: 0x0034,
    stream: 0x0006,
    sender_epoch: 0x1112_1314_1516_1718,
    receiver_epoch: 0x2122_2324_2526_2728,
    sequence: 0x3132_3334,
    length: 0x0000_0080,
};

const HEADER_BYTES: [u8; HEADER_LEN] = [
    1, 1, 0x01, 0x02, 0x00, 0x34, 0x00, 0x06, //
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, //
    0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, //
    0x31, 0x32, 0x33, 0x34, 0, 0, 0, 0x80,
];

const OFFER: Offer =
    Offer { nodes: 4, mtu: 9000, interval_us: 100_000, multiplier: 5, queues: 6, features: 0x8001 };

const CONTROL: Control = Control {
    kind: ControlKind::Refuse,
    reason: Some(RefuseReason::Mtu),
    offer: OFFER,
    cookie: 0x4142_4344_4546_4748,
    number: 0x6162_6364,
    echo: 0x5152_5354_5556_5758,
    fast_path: None,
};

const CONTROL_BYTES: [u8; CONTROL_LEN] = [
    5, 2, 0, 4, 0, 0, 0x23, 0x28, //
    0, 1, 0x86, 0xA0, 5, 6, 0x80, 0x01, //
    0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, //
    0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
];

//= docs/fabric.md#2.1 type=test
#[test]
fn header_is_these_bytes() {
    assert_eq!(HEADER.emit(), HEADER_BYTES);
    assert_eq!(Header::parse(&HEADER_BYTES), Ok(HEADER));
}

//= docs/fabric.md#3.1 type=test
//= docs/fabric.md#3.2 type=test
#[test]
fn control_is_these_bytes_behind_a_header() {
    let bytes = emit_control((1, 7), (2, 9), &CONTROL).expect("a good message");
    assert_eq!(bytes[HEADER_LEN..], CONTROL_BYTES);
    let (header, control) = parse_control(&bytes).expect("a good message");
    assert_eq!((header.kind, header.sender, header.receiver), (Kind::Control, 1, 2));
    assert_eq!((header.sender_epoch, header.receiver_epoch), (7, 9));
    assert_eq!((header.stream, header.sequence, header.length), (0, 0x6162_6364, 32));
    assert_eq!(control, CONTROL);
    for kind in ControlKind::ALL {
        let reason = (kind == ControlKind::Refuse).then_some(RefuseReason::Taken);
        let control = Control { kind, reason, ..CONTROL };
        let bytes = emit_control((1, 7), (2, 9), &control).expect("a good message");
        assert_eq!(parse_control(&bytes).map(|(_, read)| read), Ok(control));
    }
}

/// The refusal of a header with one byte changed.
fn header_with(at: usize, value: u8) -> Option<FabricRefusal> {
    let mut bytes = HEADER_BYTES;
    bytes[at] = value;
    Header::parse(&bytes).err()
}

//= docs/fabric.md#2.2 type=test
//= docs/fabric.md#2.3 type=test
#[test]
fn foreign_versions_kinds_and_nodes_are_refused() {
    assert_eq!(header_with(0, 2), Some(FabricRefusal::Version));
    assert_eq!(header_with(0, 0), Some(FabricRefusal::Version));
    assert_eq!(header_with(1, 0), Some(FabricRefusal::Kind));
    assert_eq!(header_with(1, 3), Some(FabricRefusal::Kind));
    assert_eq!(header_with(2, 2), Some(FabricRefusal::Node), "sender 514");
    assert_eq!(header_with(4, 2), Some(FabricRefusal::Node), "receiver 564");
    assert_eq!(header_with(4, 1), None, "receiver 308");
}

//= docs/fabric.md#2.4 type=test
#[test]
fn epochs_are_never_zero_in_data() {
    for zero in [8..16, 16..24] {
        let mut bytes = HEADER_BYTES;
        bytes[zero].fill(0);
        assert_eq!(Header::parse(&bytes), Err(FabricRefusal::Epoch));
    }
}

//= docs/fabric.md#2.7 type=test
#[test]
fn streams_have_a_limit() {
    assert_eq!(header_with(7, 63), None);
    assert_eq!(header_with(7, 64), Some(FabricRefusal::Stream));
    assert_eq!(header_with(6, 1), Some(FabricRefusal::Stream), "262");
}

//= docs/fabric.md#2.5 type=test
#[test]
fn lengths_have_bounds_of_their_kind() {
    let with = |kind, length: usize| Header { kind, length: length as u32, ..HEADER }.check();
    for (kind, least, most) in [(Kind::Data, DATA_MIN, DATA_MAX), (Kind::Control, CONTROL_LEN, CONTROL_MAX)] {
        assert_eq!(with(kind, least), Ok(()));
        assert_eq!(with(kind, most), Ok(()));
        assert_eq!(with(kind, least - 1), Err(FabricRefusal::Length));
        assert_eq!(with(kind, most + 1), Err(FabricRefusal::Length));
        assert_eq!(with(kind, u32::MAX as usize), Err(FabricRefusal::Length));
    }
}

//= docs/fabric.md#2.6 type=test
#[test]
fn what_follows_has_the_length_that_was_said() {
    let whole = [&HEADER_BYTES[..], &[0x5A; 128]].concat();
    assert_eq!(parse_message(&whole), Ok((HEADER, &[0x5A; 128][..])));
    assert_eq!(parse_message(&whole[..159]), Err(FabricRefusal::LengthMismatch));
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(parse_message(&longer), Err(FabricRefusal::LengthMismatch));
    for short in 0..HEADER_LEN {
        assert_eq!(parse_message(&whole[..short]), Err(FabricRefusal::Truncated));
    }
    assert_eq!(parse_control(&whole), Err(FabricRefusal::OtherKind));
}

fn refused(change: impl FnOnce(&mut Control)) -> Option<FabricRefusal> {
    let mut control = Control { kind: ControlKind::Accept, reason: None, ..CONTROL };
    assert_eq!(control.check(), Ok(()));
    change(&mut control);
    emit_control((1, 7), (2, 9), &control).err()
}

//= docs/fabric.md#3.3 type=test
#[test]
fn a_reason_belongs_to_refuse_and_to_nothing_else() {
    assert_eq!(refused(|control| control.reason = Some(RefuseReason::Nodes)), Some(FabricRefusal::Reason));
    assert_eq!(refused(|control| control.kind = ControlKind::Refuse), Some(FabricRefusal::Reason));
    let mut bytes = emit_control((1, 7), (2, 9), &CONTROL).expect("a good message").to_vec();
    for (at, value, refusal) in [
        (HEADER_LEN, 0, FabricRefusal::ControlType),
        (HEADER_LEN, 6, FabricRefusal::ControlType),
        (HEADER_LEN + 1, 6, FabricRefusal::Reason),
    ] {
        let good = std::mem::replace(&mut bytes[at], value);
        assert_eq!(parse_control(&bytes), Err(refusal));
        bytes[at] = good;
    }
}

//= docs/fabric.md#3.4 type=test
#[test]
fn an_offer_has_bounds() {
    for (nodes, good) in [(0, false), (1, false), (2, true), (512, true), (513, false)] {
        let refusal = (!good).then_some(FabricRefusal::Nodes);
        assert_eq!(refused(|control| control.offer.nodes = nodes), refusal, "{nodes} nodes");
    }
    for (mtu, good) in [(0, false), (67, false), (68, true), (65_521, true), (65_522, false)] {
        let refusal = (!good).then_some(FabricRefusal::Mtu);
        assert_eq!(refused(|control| control.offer.mtu = mtu), refusal, "MTU {mtu}");
    }
    for (queues, good) in [(0, false), (1, true), (64, true), (65, false), (255, false)] {
        let refusal = (!good).then_some(FabricRefusal::Queues);
        assert_eq!(refused(|control| control.offer.queues = queues), refusal, "{queues} queues");
    }
    assert_eq!(refused(|control| control.offer.interval_us = 0), Some(FabricRefusal::Timing));
    assert_eq!(refused(|control| control.offer.multiplier = 0), Some(FabricRefusal::Timing));
}

//= docs/fabric.md#3.5 type=test
#[test]
fn an_answer_echoes_and_every_message_has_a_cookie() {
    assert_eq!(refused(|control| control.cookie = 0), Some(FabricRefusal::Cookie));
    for (kind, may_be_silent) in [
        (ControlKind::Hello, true),
        (ControlKind::Accept, false),
        (ControlKind::Alive, false),
        (ControlKind::Bye, true),
    ] {
        let silent = refused(|control| (control.kind, control.echo) = (kind, 0));
        assert_eq!(silent, (!may_be_silent).then_some(FabricRefusal::Cookie), "{kind:?}");
    }
}

//= docs/fabric.md#3.6 type=test
#[test]
fn what_later_versions_append_is_ignored() {
    let mut bytes = emit_control((1, 7), (2, 9), &CONTROL).expect("a good message").to_vec();
    bytes.extend([0xA5; CONTROL_MAX - CONTROL_LEN]);
    bytes[28..32].copy_from_slice(&(CONTROL_MAX as u32).to_be_bytes());
    assert_eq!(parse_control(&bytes).map(|(_, control)| control), Ok(CONTROL));
    bytes.push(0);
    bytes[28..32].copy_from_slice(&(CONTROL_MAX as u32 + 1).to_be_bytes());
    assert_eq!(parse_control(&bytes), Err(FabricRefusal::Length));
}

//= docs/fabric.md#3.7 type=test
#[test]
fn only_a_hello_may_not_know_whom_it_is_for() {
    for kind in ControlKind::ALL {
        let reason = (kind == ControlKind::Refuse).then_some(RefuseReason::Taken);
        let control = Control { kind, reason, ..CONTROL };
        let expected = (kind != ControlKind::Hello).then_some(FabricRefusal::Epoch);
        assert_eq!(emit_control((1, 7), (2, 0), &control).err(), expected, "{kind:?}");
        let mut bytes = emit_control((1, 7), (2, 9), &control).expect("a good message").to_vec();
        bytes[16..24].fill(0);
        assert_eq!(parse_control(&bytes).err(), expected, "{kind:?}");
    }
}

//= docs/fabric.md#7.1 type=test
//= docs/fabric.md#7.2 type=test
#[test]
fn a_fast_path_follows_where_its_bit_says_so() {
    let tag = Tag::new(0x7172, 0x0073_7475).expect("a tag");
    let fast_path = FastPath { port: 4789, tag, heard: true };
    let control = Control { fast_path: Some(fast_path), ..CONTROL };
    let mut bytes = emit_control((1, 7), (2, 9), &control).expect("a good message").to_vec();
    let end = HEADER_LEN + CONTROL_LEN;
    assert_eq!(bytes[end..], [0x12, 0xB5, 1, 0x71, 0x72, 0x73, 0x74, 0x75]);
    assert_eq!((bytes[31], bytes[HEADER_LEN + 14]), (40, 0xC0));
    assert_eq!(parse_control(&bytes).map(|(_, read)| read), Ok(control));
    // Bits that are not known yet, and what later versions append.
    bytes[end + 2] = 0xFE;
    bytes.push(9);
    bytes[31] = 41;
    let read = parse_control(&bytes).expect("a good message").1;
    assert_eq!(read.fast_path, Some(FastPath { heard: false, ..fast_path }));
    for zero in [end..end + 2, end + 3..end + 5, end + 5..end + 8] {
        let mut bytes = bytes.clone();
        bytes[zero].fill(0);
        assert_eq!(parse_control(&bytes).err(), Some(FabricRefusal::FastPath));
    }
    bytes.truncate(end + 7);
    bytes[31] = 39;
    assert_eq!(parse_control(&bytes).err(), Some(FabricRefusal::Truncated));
    // Whoever does not know the bit ignores what follows; so does everybody where it is not set.
    bytes[HEADER_LEN + 14] = 0x80;
    assert_eq!(parse_control(&bytes).map(|(_, read)| read), Ok(CONTROL));
    assert_eq!(
        refused(|control| control.fast_path = Some(FastPath { port: 0, ..fast_path })),
        Some(FabricRefusal::FastPath)
    );
}

#[test]
fn tags_have_forty_bits_and_no_part_is_zero() {
    assert_eq!((Tag::new(0, 1), Tag::new(1, 0), Tag::new(1, 1 << 24)), (None, None, None));
    for bits in [0, u64::MAX, 0xffff, 0xfffe, 0x00ff_fffe << 32, 0x00ff_ffff << 32, 0x1234_5678_9abc_def0] {
        let tag = Tag::of_random(bits);
        assert_eq!(Tag::new(tag.group(), tag.network()), Some(tag), "{bits:x}");
    }
}

//= docs/fabric.md#8.1 type=test
#[test]
fn a_code_covers_all_that_stands_before_it() {
    let fast_path = FastPath { port: 4789, tag: Tag::of_random(7), heard: true };
    for fast_path in [None, Some(fast_path)] {
        let control = Control { fast_path, ..CONTROL };
        let plain = emit_control((1, 7), (2, 9), &control).expect("a good message");
        assert_eq!(sealed_control(&plain), Ok(None));
        let mut sealed = plain;
        seal_control(&mut sealed, 0x7172_7374, |covered| {
            assert_eq!(covered[plain.len()..], [0x71, 0x72, 0x73, 0x74]);
            assert_eq!(covered[HEADER_LEN + 14] & 0x20, 0x20);
            [covered.len() as u8; 16]
        });
        assert_eq!(sealed.len(), plain.len() + FABRIC_AUTH_LEN);
        assert_eq!(sealed[28..32], (sealed.len() as u32 - 32).to_be_bytes());
        // Who knows of no codes reads what it says all the same.
        assert_eq!(parse_control(&sealed).map(|(_, read)| read), Ok(control));
        let read = sealed_control(&sealed).expect("whole").expect("has one");
        assert_eq!((read.key_id, read.code), (0x7172_7374, [(plain.len() + 4) as u8; 16]));
        assert_eq!(read.covered, &sealed[..plain.len() + 4]);
        // The bit without the bytes, by one.
        let short: Vec<u8> = sealed[..plain.len()].iter().copied().chain([0; FABRIC_AUTH_LEN - 1]).collect();
        assert_eq!(sealed_control(&short), Err(FabricRefusal::Truncated));
    }
    assert_eq!(sealed_control(&[]), Err(FabricRefusal::Truncated));
}
