use super::*;
use crate::{Extension, HostId, Kind, MESSAGE_LEN_MAX, Member, Message};

/// 198.18.0.7 with one member and two guests: one in VLAN 5 with 198.18.5.1 and 2001:db8::1, one without a VLAN with 198.18.0.8.
#[rustfmt::skip]
const WITH_GUESTS: [u8; 110] = [
    6, 4, 1, 3, 198, 18, 0, 7, 2, 0, 0, 0, 0, 1,
    1, 1, 1,
    2, 24, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 1,
    3, 4, 0, 0, 0, 9,
    4, 7, 0, 1, 0, 0, 0, 100, 0,
    10, 4, 0, 0, 0, 2,
    11, 29, 0, 5, 2, 0, 0, 0, 7, 1, 1, 198, 18, 5, 1, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    11, 13, 0, 0, 2, 0, 0, 0, 7, 2, 1, 198, 18, 0, 8,
];

/// Where WITH_GUESTS has its first GUEST TLV.
const GUESTS_AT: usize = 64;

fn guest(vlan: u16, last: u8, addresses: &[&str]) -> Guest {
    let addresses = addresses.iter().map(|address| address.parse().expect("an address")).collect();
    Guest { vlan, mac: MacAddr([2, 0, 0, 0, 7, last]), addresses }
}

fn with(guests: Vec<Guest>) -> Message {
    let extension = Extension {
        version: 1,
        host: HostId([7; 16]),
        epoch: 1,
        sequence: 9,
        members: vec![Member { index: 0, up: true, weight_mbit: 100, class: 0 }],
        classes: Vec::new(),
        features: FEATURE_GUESTS,
        guests,
        addresses: Vec::new(),
        digest: None,
        auth: None,
    };
    Message {
        kind: Kind::Change,
        address: Some(IpAddr::from([198, 18, 0, 7])),
        hardware: vec![MacAddr([2, 0, 0, 0, 0, 1])],
        extension: Some(extension),
    }
}

fn two() -> Vec<Guest> {
    vec![guest(5, 1, &["198.18.5.1", "2001:db8::1"]), guest(0, 2, &["198.18.0.8"])]
}

fn emitted(message: &Message) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::new();
    message.emit(&mut out).map(|()| out)
}

/// The message with these bytes in place of its two GUEST TLVs.
fn instead(tlvs: &[Vec<u8>]) -> Result<Vec<Guest>, Refusal> {
    let mut bytes = WITH_GUESTS[..GUESTS_AT].to_vec();
    for value in tlvs {
        bytes.extend([11, value.len() as u8]);
        bytes.extend(value);
    }
    Message::parse(&bytes).map(|parsed| parsed.message.extension.expect("extended").guests)
}

/// The value of a GUEST of VLAN 0 whose MAC ends so.
fn value(last: u8, ipv4: u8, addresses: &[u8]) -> Vec<u8> {
    [&[0, 0, 2, 0, 0, 0, 7, last, ipv4][..], addresses].concat()
}

//= docs/arp-plus.md#3.12 type=test
#[test]
fn guests_have_these_bytes() {
    assert_eq!(Message::parse(&WITH_GUESTS).map(|parsed| parsed.message), Ok(with(two())));
    assert_eq!(emitted(&with(two())), Ok(WITH_GUESTS.to_vec()));
    let len: usize = two().iter().map(Guest::tlv_len).sum();
    assert_eq!(len, WITH_GUESTS.len() - GUESTS_AT);
}

//= docs/arp-plus.md#3.12 type=test
#[test]
fn hostile_guests_are_refused_each_for_its_reason() {
    let v4 = [198, 18, 0, 9];
    for short in [&[][..], &[0; 8], &value(1, 2, &v4), &value(1, 1, &[198, 18]), &value(1, 0, &[1; 15])] {
        assert_eq!(instead(&[short.to_vec()]), Err(Refusal::TlvLength), "{short:?}");
    }
    let mut vlan = value(1, 1, &v4);
    vlan[..2].copy_from_slice(&4095u16.to_be_bytes());
    assert_eq!(instead(&[vlan]), Err(Refusal::GuestVlan));
    for mac in [[0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
        let mut bytes = value(1, 1, &v4);
        bytes[2..8].copy_from_slice(&mac);
        assert_eq!(instead(&[bytes]), Err(Refusal::GuestMac), "{mac:?}");
    }
    assert_eq!(instead(&[value(1, 0, &[])]), Err(Refusal::GuestAddresses));
    let many: Vec<u8> = (1..=9).flat_map(|last| [198, 18, 1, last]).collect();
    assert_eq!(instead(&[value(1, 9, &many)]), Err(Refusal::GuestAddresses));
    assert_eq!(instead(&[value(1, 8, &many[..32])]).map(|guests| guests[0].addresses.len()), Ok(8));
    for address in [[0; 4], [255; 4], [224, 0, 0, 1]] {
        assert_eq!(instead(&[value(1, 1, &address)]), Err(Refusal::AddressNotHost), "{address:?}");
    }
    assert_eq!(instead(&[value(1, 1, &v4), value(1, 1, &[198, 18, 0, 10])]), Err(Refusal::GuestTwice), "MAC");
    assert_eq!(instead(&[value(1, 1, &v4), value(2, 1, &v4)]), Err(Refusal::GuestTwice), "address");
    let twice = [&v4[..], &v4].concat();
    assert_eq!(instead(&[value(1, 2, &twice)]), Err(Refusal::GuestTwice), "address of one guest");
    let crowd = |number: u8| (0..number).map(|last| value(last, 1, &[198, 18, 1, last])).collect::<Vec<_>>();
    assert_eq!(instead(&crowd(64)).map(|guests| guests.len()), Ok(GUESTS_MAX));
    assert_eq!(instead(&crowd(65)), Err(Refusal::TooManyGuests));
}

//= docs/arp-plus.md#3.12 type=test
#[test]
fn more_than_fit_are_not_written() {
    let all = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"];
    let fits = |number: u8| {
        let guests = (0..number).map(|last| guest(u16::from(last), last, &all)).collect();
        let mut out = vec![7];
        let written = with(guests).emit(&mut out);
        assert!(written.is_ok() || out == [7], "what is refused leaves nothing");
        assert!(out.len() <= 1 + MESSAGE_LEN_MAX);
        written
    };
    assert_eq!((fits(19), fits(20)), (Ok(()), Err(Refusal::TooLong)));
}

//= docs/arp-plus.md#3.7 type=test
//= docs/arp-plus.md#6.7 type=test
#[test]
fn guests_change_the_mapping_and_not_the_digest_that_is_sent() {
    let mut digests = std::collections::BTreeSet::new();
    let mut other = two();
    other[0].addresses.pop();
    let reversed = two().into_iter().rev().collect();
    let lists = [Vec::new(), two(), reversed, two()[..1].to_vec(), other];
    for guests in lists.clone() {
        let message = with(guests);
        assert_eq!(message.sent_digest(), with(Vec::new()).sent_digest());
        digests.insert(message.mapping_digest());
    }
    assert_eq!(digests.len(), lists.len());
}
