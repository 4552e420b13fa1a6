use super::*;

const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const MEMBER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const HOST_IP: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
const OWN_IP: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

#[rustfmt::skip]
const ADVERTISEMENT: [u8; 86] = [
    2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x86, 0xdd,
    0x60, 0, 0, 0, 0, 32, 58, 255,
    0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9,
    136, 0, 0xca, 0x6c, 0x20, 0, 0, 0,
    0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    2, 1, 2, 0, 0, 0, 0, 1,
];

#[test]
fn advertisement_has_the_bytes_of_the_standard() {
    let frame = emit_advertisement(HOST, HOST_IP, MEMBER, OWN_IP, false).expect("good addresses");
    assert_eq!(frame, ADVERTISEMENT);
    // A receiver adds up everything, the checksum too, and gets all ones.
    let sum = |frame: &[u8]| {
        let pseudo = [&frame[22..54], &[0, 0, 0, 32, 0, 0, 0, 58], &frame[54..]].concat();
        pseudo.chunks(2).fold(0u32, |sum, pair| sum + u32::from(u16::from_be_bytes([pair[0], pair[1]])))
    };
    let folded = |sum: u32| (sum & 0xffff) + (sum >> 16);
    assert_eq!(folded(folded(sum(&frame))), 0xffff);
    let router = emit_advertisement(HOST, HOST_IP, MEMBER, OWN_IP, true).expect("good addresses");
    assert_eq!(
        (router[58], folded(folded(sum(&router)))),
        (0xa0, 0xffff),
        "or hosts would drop us as their router"
    );
}

#[test]
fn to_all_differs_in_the_destination_only() {
    let frame = emit_advertisement_to_all(MEMBER, OWN_IP, false).expect("good addresses");
    assert_eq!((&frame[..6], &frame[38..54]), (&ALL_NODES_MAC.0[..], &ALL_NODES.octets()[..]));
    assert_eq!((&frame[6..38], &frame[58..]), (&ADVERTISEMENT[6..38], &ADVERTISEMENT[58..]));
    assert_eq!(emit_advertisement_to_all(MEMBER, OWN_IP, true).expect("good addresses")[58], 0xa0);
    assert_eq!(emit_advertisement_to_all(MEMBER, ALL_NODES, false), Err(Refusal::AddressNotHost));
}

#[test]
fn addresses_are_those_of_one_host() {
    let emit = |dst, dst_ip, src, ip| emit_advertisement(dst, dst_ip, src, ip, false);
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    assert_eq!(emit(MacAddr::BROADCAST, HOST_IP, MEMBER, OWN_IP), Err(Refusal::ProbeNotUnicast));
    assert_eq!(emit(HOST, HOST_IP, MacAddr::ZERO, OWN_IP), Err(Refusal::SourceNotHost));
    assert_eq!(emit(HOST, group, MEMBER, OWN_IP), Err(Refusal::AddressNotHost));
    assert_eq!(emit(HOST, HOST_IP, MEMBER, Ipv6Addr::UNSPECIFIED), Err(Refusal::AddressNotHost));
}
