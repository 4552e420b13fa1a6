//! One frame each way, then every way to be wrong.

use super::*;

const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const MEMBER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn ip() -> Ipv6Addr {
    "2001:db8::9".parse().expect("an address")
}

/// What a host with that address sends, with or without the option that Linux leaves out of such answers.
fn answer(options: &[u8]) -> Vec<u8> {
    let mut body = vec![advertisement::NEIGHBOUR_ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0];
    body.extend(ip().octets());
    body.extend(options);
    let asked_from = probe_address(MEMBER);
    let sum = advertisement::checksum(ip(), asked_from, &body).to_be_bytes();
    body[2..4].copy_from_slice(&sum);
    let head = [0x86, 0xdd, 0x60, 0, 0, 0, 0, body.len() as u8, 58, 255];
    [&MEMBER.0[..], &HOST.0, &head, &ip().octets(), &asked_from.octets(), &body].concat()
}

//= docs/arp-plus.md#12.7 type=test
#[test]
fn solicitation_is_that_of_rfc_4861_to_one_host_from_an_address_of_the_member() {
    let frame = emit_solicitation(HOST, MEMBER, ip()).expect("good addresses");
    assert_eq!((frame.len(), &frame[..6], &frame[6..12]), (86, &HOST.0[..], &MEMBER.0[..]));
    assert_eq!(frame[12..22], [0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255]);
    let source = Ipv6Addr::from(<[u8; 16]>::try_from(&frame[22..38]).expect("16 bytes"));
    assert_eq!(source, "fe80::4c42:200:0:1".parse::<Ipv6Addr>().expect("an address"));
    assert_eq!((&frame[38..54], &frame[62..78]), (&ip().octets()[..], &ip().octets()[..]));
    assert_eq!((frame[54], frame[55], &frame[78..86]), (135, 0, &[1, 1, 2, 0, 0, 0, 0, 1][..]));
    assert_eq!(advertisement::checksum(source, ip(), &frame[54..]), 0);
    let group = MacAddr::BROADCAST;
    assert_eq!(emit_solicitation(group, MEMBER, ip()), Err(Refusal::ProbeNotUnicast));
    assert_eq!(emit_solicitation(HOST, group, ip()), Err(Refusal::SourceNotHost));
    assert_eq!(emit_solicitation(HOST, MEMBER, Ipv6Addr::UNSPECIFIED), Err(Refusal::AddressNotHost));
}

//= docs/arp-plus.md#12.7 type=test
#[test]
fn only_the_exact_answer_counts() {
    let good = Ok(PlainAnswer { to: MEMBER, host: HOST, ip: IpAddr::V6(ip()) });
    assert_eq!(parse_solicited(&answer(&[])), good);
    assert_eq!(crate::parse_plain_answer(&answer(&[2, 1, 2, 0, 0, 0, 0, 9])), good);
    let frame = answer(&[]);
    assert_eq!(parse_solicited(&[&frame[..], &[7; 4]].concat()), good, "padding");
    for length in 0..frame.len() {
        assert_eq!(parse_solicited(&frame[..length]), Err(Refusal::Truncated), "{length}");
    }
    for (at, flip, refusal) in [
        (0, 1, Refusal::AdvertisementNotForProbe),
        (5, 2, Refusal::AdvertisementNotForProbe),
        (6, 1, Refusal::SourceNotHost),
        (14, 0x20, Refusal::NotAdvertisement),
        (18, 1, Refusal::Truncated),
        (19, 8, Refusal::Truncated),
        (20, 1, Refusal::NotAdvertisement),
        (21, 1, Refusal::NotAdvertisement),
        (22, 0xdf, Refusal::AddressNotHost),
        (23, 1, Refusal::AdvertisementChecksum),
        (38, 1, Refusal::AdvertisementNotForProbe),
        (46, 1, Refusal::AdvertisementNotForProbe),
        (53, 1, Refusal::AdvertisementNotForProbe),
        (54, 1, Refusal::NotAdvertisement),
        (55, 1, Refusal::NotAdvertisement),
        (56, 1, Refusal::AdvertisementChecksum),
        (58, 0x40, Refusal::AdvertisementNotForProbe),
        (59, 1, Refusal::AdvertisementChecksum),
        (62, 0xdf, Refusal::AddressNotHost),
        (77, 1, Refusal::AdvertisementChecksum),
    ] {
        let mut bad = frame.clone();
        bad[at] ^= flip;
        assert_eq!(parse_solicited(&bad), Err(refusal), "byte {at}");
    }
}
