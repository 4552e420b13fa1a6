use super::{Ends, MacAddr, checksum, of, pseudo};

const ENDS: Ends =
    Ends { source: MacAddr([2, 0, 0, 0, 1, 0]), destination: MacAddr([2, 0, 0, 0, 2, 0]), vlan: 0 };

#[test]
fn frames_have_right_headers_and_checksums() {
    for (text, ethertype, header, protocol) in [
        ("tcp 198.18.0.1:1000 > 198.18.0.2:445", [8, 0], 20, 6),
        ("udp 198.18.0.1:1000 > 198.18.0.2:445", [8, 0], 20, 17),
        ("icmp 198.18.0.1 > 198.18.0.2", [8, 0], 20, 1),
        ("tcp [2001:db8::1]:1000 > [2001:db8::2]:445", [0x86, 0xdd], 40, 6),
        ("udp [2001:db8::1]:1000 > [2001:db8::2]:445", [0x86, 0xdd], 40, 17),
        ("icmp 2001:db8::1 > 2001:db8::2", [0x86, 0xdd], 40, 58),
    ] {
        let flow = text.parse().unwrap();
        let frame = of(&flow, 46, ENDS);
        assert_eq!(frame[..14], [&ENDS.destination.0[..], &ENDS.source.0, &ethertype].concat(), "{text}");
        let (ip, payload) = frame[14..].split_at(header);
        match header {
            20 => {
                assert_eq!((ip[1], ip[9], checksum(&[ip])), (46 << 2, protocol, [0, 0]), "{text}");
                assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), frame.len() - 14, "{text}");
            }
            _ => {
                assert_eq!((u16::from_be_bytes([ip[0], ip[1]]) >> 6 & 0x3f, ip[6]), (46, protocol), "{text}");
                assert_eq!(usize::from(u16::from_be_bytes([ip[4], ip[5]])), payload.len(), "{text}");
            }
        }
        assert_eq!(checksum(&[&pseudo(&flow, protocol, payload.len()), payload]), [0, 0], "{text}");
        if protocol == 6 || protocol == 17 {
            assert_eq!(payload[..4], [3, 0xe8, 1, 0xbd], "{text}");
        }
    }
}

#[test]
fn a_guests_frame_has_the_tag_of_its_vlan() {
    let flow = "udp 198.18.0.1:1000 > 198.18.0.2:445".parse().unwrap();
    let (plain, tagged) = (of(&flow, 0, ENDS), of(&flow, 0, Ends { vlan: 5, ..ENDS }));
    assert_eq!(tagged[12..16], [0x81, 0, 0, 5]);
    assert_eq!((&tagged[..12], &tagged[16..]), (&plain[..12], &plain[12..]));
}
