use super::*;
use crate::{Extension, HostId, Kind, MESSAGE_LEN_MAX, MacAddr, Member, Message, Parsed};
use std::net::IpAddr;

/// 198.18.0.7 with a member of 100 Mbit/s in class 3, `urgent`, which lends; class 1 is `bulk`; takes mirrored frames.
#[rustfmt::skip]
const WITH_CLASSES: [u8; 92] = [
    6, 4, 1, 3, 198, 18, 0, 7, 2, 0, 0, 0, 0, 1,
    1, 1, 1,
    2, 24, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 1,
    3, 4, 0, 0, 0, 9,
    4, 7, 0, 1, 0, 0, 0, 100, 3,
    9, 8, 3, 1, b'u', b'r', b'g', b'e', b'n', b't',
    9, 6, 1, 0, b'b', b'u', b'l', b'k',
    10, 4, 0, 0, 0, 1,
    6, 8, 0xe5, 0xf4, 0x92, 0x6c, 0xb6, 0xca, 0x1f, 0xe1,
];

/// Where WITH_CLASSES has its first CLASS TLV, where they end, and where DIGEST begins.
const CLASSES_AT: usize = 58;
const CLASSES_END: usize = 76;
const DIGEST_AT: usize = 82;

fn class(number: u8, may_borrow: bool, name: &str) -> Class {
    Class { number, may_borrow, name: name.to_owned() }
}

fn with_classes() -> Message {
    let extension = Extension {
        version: 1,
        host: HostId([7; 16]),
        epoch: 1,
        sequence: 9,
        members: vec![Member { index: 0, up: true, weight_mbit: 100, class: 3 }],
        classes: vec![class(3, true, "urgent"), class(1, false, "bulk")],
        features: FEATURE_MIRROR,
        guests: Vec::new(),
        addresses: Vec::new(),
        digest: None,
        auth: None,
    };
    let mut message = Message {
        kind: Kind::Change,
        address: Some(IpAddr::from([198, 18, 0, 7])),
        hardware: vec![MacAddr([2, 0, 0, 0, 0, 1])],
        extension: Some(extension),
    };
    let digest = message.sent_digest();
    of(&mut message).digest = Some(digest);
    message
}

fn of(message: &mut Message) -> &mut Extension {
    message.extension.as_mut().expect("extended")
}

fn emit(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.emit(&mut out).expect("a good message");
    out
}

/// The message with these bytes in place of its two CLASS TLVs.
fn instead(tlvs: &[&[u8]]) -> Result<Message, Refusal> {
    let mut bytes = WITH_CLASSES[..CLASSES_AT].to_vec();
    for value in tlvs {
        bytes.extend([9, value.len() as u8]);
        bytes.extend(*value);
    }
    bytes.extend(&WITH_CLASSES[CLASSES_END..]);
    Message::parse(&bytes).map(|parsed| parsed.message)
}

//= docs/arp-plus.md#3.9 type=test
#[test]
fn classes_have_these_bytes() {
    let parsed = Parsed { message: with_classes(), unknown_tlvs: 0, trailing: 0 };
    assert_eq!(Message::parse(&WITH_CLASSES), Ok(parsed));
    assert_eq!(emit(&with_classes()), WITH_CLASSES);
}

//= docs/arp-plus.md#3.9 type=test
#[test]
fn hostile_classes_are_refused_each_for_its_reason() {
    for short in [&[][..], &[1]] {
        assert_eq!(instead(&[short]), Err(Refusal::TlvLength), "{short:?}");
    }
    for number in [0, 8, 255] {
        assert_eq!(instead(&[&[number, 0, b'a']]), Err(Refusal::ClassNumber), "{number}");
    }
    let names: [&[u8]; 8] =
        [b"", b"sixteen-letters_", b"Urgent", b"a b", b"a\0", &[0xc3, 0xa4], &[0xff], b"rest"];
    for name in names {
        assert_eq!(instead(&[&[&[1, 0], name].concat()]), Err(Refusal::ClassName), "{name:?}");
    }
    assert_eq!(instead(&[&[1, 0, b'a'], &[1, 0, b'b']]), Err(Refusal::ClassTwice), "number");
    assert_eq!(instead(&[&[1, 0, b'a'], &[2, 0, b'a']]), Err(Refusal::ClassTwice), "name");
    let many: Vec<[u8; 3]> = (1..=8).map(|number| [number, 0, b'a' + number]).collect();
    let many: Vec<&[u8]> = many.iter().map(|value| &value[..]).collect();
    assert_eq!(instead(&many), Err(Refusal::ClassTwice), "the eighth has no number left");
    assert_eq!(instead(&many[..7]).map(|message| message.extension.expect("extended").classes.len()), Ok(7));
}

//= docs/arp-plus.md#3.9 type=test
#[test]
fn unknown_flags_of_a_class_say_nothing() {
    let lent = |flags| {
        let message = instead(&[&[1, flags, b'a']]).expect("the digest holds no flags");
        message.extension.expect("extended").classes[0].may_borrow
    };
    assert_eq!([0, 1, 0xfe, 0xff].map(lent), [false, true, false, true]);
}

//= docs/arp-plus.md#3.10 type=test
#[test]
fn features_are_bits_and_stand_once() {
    let features = |value: &[u8]| {
        let bytes =
            [&WITH_CLASSES[..CLASSES_END], &[10, value.len() as u8], value, &WITH_CLASSES[DIGEST_AT..]];
        Message::parse(&bytes.concat()).map(|parsed| parsed.message.extension.expect("extended").features)
    };
    assert_eq!(features(&[0x80, 0, 0, 1]), Ok(0x8000_0001), "unknown bits are kept");
    assert_eq!(features(&[0, 0, 1]), Err(Refusal::TlvLength));
    let twice = [&WITH_CLASSES[..DIGEST_AT], &WITH_CLASSES[CLASSES_END..]].concat();
    assert_eq!(Message::parse(&twice), Err(Refusal::TlvTwice));
    let none = [&WITH_CLASSES[..CLASSES_END], &WITH_CLASSES[DIGEST_AT..]].concat();
    let mut message = Message::parse(&none).expect("none").message;
    assert_eq!(of(&mut message).features, 0);
    assert_eq!(emit(&message), none, "no bit, no TLV");
}

//= docs/arp-plus.md#3.7 type=test
#[test]
fn who_skips_classes_and_features_finds_the_digest_right() {
    let mut before = with_classes();
    of(&mut before).classes.clear();
    of(&mut before).features = 0;
    assert_eq!(before.sent_digest(), with_classes().sent_digest());
    assert_eq!(before.mapping_digest(), before.sent_digest(), "where there are none it is all the same");
    // The very bytes with types that nobody knows in place of ours.
    let mut unknown = WITH_CLASSES;
    [CLASSES_AT, 68, CLASSES_END].into_iter().for_each(|at| unknown[at] += 0x80);
    let parsed = Message::parse(&unknown).expect("skipped");
    assert_eq!((parsed.unknown_tlvs, parsed.message), (3, before));
}

//= docs/arp-plus.md#6.7 type=test
#[test]
fn whatever_changes_in_classes_or_features_changes_the_mapping() {
    let digest = |change: &dyn Fn(&mut Extension)| {
        let mut message = with_classes();
        change(of(&mut message));
        message.mapping_digest()
    };
    let digests = [
        digest(&|_| ()),
        digest(&|extension| extension.classes[0].number = 2),
        digest(&|extension| extension.classes[0].may_borrow = false),
        digest(&|extension| extension.classes[0].name.push('s')),
        digest(&|extension| extension.classes[1].name.push('s')),
        digest(&|extension| _ = extension.classes.pop()),
        digest(&|extension| extension.classes.reverse()),
        digest(&|extension| extension.features = 2),
        digest(&|extension| extension.features = 0),
        digest(&|extension| extension.members[0].class = 1),
    ];
    let different: std::collections::BTreeSet<u64> = digests.into_iter().collect();
    assert_eq!(different.len(), digests.len());
}

#[test]
fn everything_at_once_fits() {
    let mut message = with_classes();
    message.hardware = (1..=16).map(|last| MacAddr([2, 0, 0, 0, 0, last])).collect();
    let extension = of(&mut message);
    extension.members =
        (0..16).map(|index| Member { index, up: true, weight_mbit: 1, class: index % 8 }).collect();
    extension.classes =
        (1..=7).map(|number| class(number, true, &format!("class-of-15-no{number}"))).collect();
    let last = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
    extension.addresses = (1..=crate::MORE_ADDRESSES_MAX as u16).map(last).collect();
    extension.auth = Some(crate::Auth { key_id: 1, tag: vec![1; crate::AUTH_TAG_MAX] });
    assert!(extension.classes.iter().all(|class| class.name.len() == CLASS_NAME_MAX));
    let digest = message.sent_digest();
    of(&mut message).digest = Some(digest);
    let bytes = emit(&message);
    assert!((900..=MESSAGE_LEN_MAX).contains(&bytes.len()), "{} bytes", bytes.len());
    assert_eq!(Message::parse(&bytes).map(|parsed| parsed.message), Ok(message));
}

#[test]
fn names_are_short_and_plain() {
    for good in ["a", "urgent", "0", "-", "_x-9", "fifteen-letters", "resting"] {
        assert!(is_class_name(good), "{good}");
    }
    for bad in ["", "rest", "A", "ä", "a.b", "a/b", "sixteen-letters_", "a\n"] {
        assert!(!is_class_name(bad), "{bad}");
    }
}
