use super::*;

const MAC: MacAddr = MacAddr([0x02, 0, 0, 0, 0xab, 0xcd]);

#[test]
fn gratuitous_arp_bytes() {
    #[rustfmt::skip]
    let expected = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0, 0xab, 0xcd, 0x08, 0x06,
        0, 1, 0x08, 0, 6, 4, 0, 1,
        0x02, 0, 0, 0, 0xab, 0xcd, 198, 18, 0, 7,
        0, 0, 0, 0, 0, 0, 198, 18, 0, 7,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(gratuitous_arp(MAC, Ipv4Addr::new(198, 18, 0, 7)), expected);
}

#[test]
fn unsolicited_advertisement_bytes() {
    let ip: Ipv6Addr = "2001:db8::7".parse().unwrap();
    #[rustfmt::skip]
    let expected = [
        0x33, 0x33, 0, 0, 0, 1, 0x02, 0, 0, 0, 0xab, 0xcd, 0x86, 0xdd,
        0x60, 0, 0, 0, 0, 32, 58, 255,
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7,
        0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        136, 0, 0x4d, 0x52, 0x20, 0, 0, 0,
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7,
        2, 1, 0x02, 0, 0, 0, 0xab, 0xcd,
    ];
    assert_eq!(unsolicited_advertisement(MAC, ip), expected);
}

#[test]
fn only_real_host_addresses_are_announced() {
    let addresses = ["198.18.0.7", "127.0.0.1", "224.0.0.1", "0.0.0.0", "2001:db8::7", "::1", "ff02::1"]
        .map(|text| text.parse().unwrap());
    let frames = announcements(MAC, &addresses);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0][12..14], [0x08, 0x06]);
    assert_eq!(frames[1][12..14], [0x86, 0xdd]);
}
