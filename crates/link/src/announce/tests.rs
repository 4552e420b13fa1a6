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
fn only_real_host_addresses_are_announced() {
    let addresses = ["198.18.0.7", "127.0.0.1", "224.0.0.1", "0.0.0.0", "2001:db8::7", "::1", "ff02::1"]
        .map(|text| text.parse().unwrap());
    let frames = announcements(MAC, &addresses, false);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0][12..14], [0x08, 0x06]);
    assert_eq!(frames[1][12..14], [0x86, 0xdd]);
    assert_eq!((frames[1][58], announcements(MAC, &addresses, true)[1][58]), (0x20, 0xa0));
}
