use super::*;
use proptest::prelude::*;

const LEN: usize = 9000;

fn frame(version: u8, protocol: u8, tags: usize) -> (Vec<u8>, usize) {
    let mut frame = vec![2; 12];
    for _ in 0..tags {
        frame.extend([0x81, 0, 0, 5]);
    }
    if version == 4 {
        frame.extend([8, 0, 0x45]);
        frame.extend([0; 8]);
        frame.push(protocol);
        frame.extend([0; 10]);
    } else {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, protocol]);
        frame.extend([0; 33]);
    }
    let transport = frame.len();
    frame.resize(LEN, 7);
    (frame, transport)
}

fn header(flags: u8, gso: u8, segment: u16, start: usize, offset: u16) -> [u8; VIRTIO_LEN] {
    let mut header = [0; VIRTIO_LEN];
    header[..2].copy_from_slice(&[flags, gso]);
    header[2..4].copy_from_slice(&66u16.to_le_bytes());
    header[4..6].copy_from_slice(&segment.to_le_bytes());
    header[6..8].copy_from_slice(&(start as u16).to_le_bytes());
    header[8..10].copy_from_slice(&offset.to_le_bytes());
    header
}

fn fits(header: [u8; VIRTIO_LEN], frame: &[u8]) -> bool {
    judge(&header, &frame[..frame.len().min(LOOK_LEN)], frame.len()).is_some()
}

#[test]
fn what_kernels_hand_out_passes_unchanged() {
    for tags in 0..=2 {
        for (version, protocol, gso, offset) in [
            (4, TCP, 1, 16),
            (4, TCP, 0x81, 16),
            (6, TCP, 4, 16),
            (6, TCP, 0x84, 16),
            (4, UDP, 5, 6),
            (6, UDP, 5, 6),
        ] {
            let (frame, transport) = frame(version, protocol, tags);
            let whole = header(1, gso, 1448, transport, offset);
            assert_eq!(judge(&whole, &frame[..LOOK_LEN], LEN), Some(whole), "{tags} {version} {protocol}");
            let mut plain = header(1, 0, 0, transport, offset);
            plain[2..4].fill(0);
            assert_eq!(judge(&plain, &frame[..LOOK_LEN], LEN), Some(plain));
        }
    }
    let (frame, _) = frame(4, 1, 0);
    assert_eq!(judge(&[0; 12], &frame[..LOOK_LEN], LEN), Some([0; 12]));
    assert!(fits(header(2, 0, 0, 0, 0), &frame));
    assert!(fits([0; 12], &[1; FRAME_MIN]), "the shortest frame");
}

#[test]
fn every_lie_is_found() {
    let (v4, at4) = frame(4, TCP, 0);
    let (v6, at6) = frame(6, TCP, 0);
    let (udp, _) = frame(4, UDP, 0);
    let good = |gso, segment| header(1, gso, segment, at4, 16);
    assert!(fits(good(1, 1448), &v4));
    for (what, lie, frame) in [
        ("unknown flag", header(5, 0, 0, at4, 16), &v4),
        ("checksum open and proven", header(3, 0, 0, at4, 16), &v4),
        ("checksum in the Ethernet header", header(1, 0, 0, 13, 0), &v4),
        ("checksum at the end", header(1, 0, 0, LEN - 1, 0), &v4),
        ("checksum beyond the end", header(1, 0, 0, at4, 65_535), &v4),
        ("segments of nothing", good(1, 0), &v4),
        ("tiny segments", good(1, 7), &v4),
        ("segments by fragments", good(1, 0xffff), &v4),
        ("no checksum", header(0, 1, 1448, at4, 16), &v4),
        ("the checksum of UDP", header(1, 1, 1448, at4, 6), &v4),
        ("checksum not at TCP", header(1, 1, 1448, at4 + 4, 16), &v4),
        ("TCP that is UDP", good(1, 1448), &udp),
        ("UDP that is TCP", header(1, 5, 1448, at4, 6), &v4),
        ("too many datagrams", header(1, 5, 60, at4, 6), &udp),
        ("UDP with ECN", header(1, 0x85, 1448, at4, 6), &udp),
        ("IPv4 that is IPv6", header(1, 1, 1448, at6, 16), &v6),
        ("IPv6 that is IPv4", good(4, 1448), &v4),
        ("UFO", good(3, 1448), &v4),
        ("an unknown type", good(2, 1448), &v4),
        ("checksum before the extension headers", header(1, 5, 1448, at6, 6), &v6),
    ] {
        assert!(!fits(lie, frame), "{what}");
    }
    let mut long = good(1, 1448);
    long[2..4].copy_from_slice(&(LEN as u16 + 1).to_le_bytes());
    assert!(!fits(long, &v4), "headers longer than the frame");
    let mut ihl = v4.clone();
    ihl[14] = 0x41;
    assert!(!fits(header(1, 1, 1448, 18, 16), &ihl), "an IP header of 4 bytes");
    assert!(!fits(good(1, 1448), &v4[..at4 + TCP_LEN - 1]), "half a TCP header");
    assert!(!fits([0; 12], &[0; FRAME_MIN - 1]), "half an Ethernet header");
}

#[test]
fn fields_without_meaning_do_not_pass() {
    let (frame, transport) = frame(4, TCP, 0);
    let mut odd = header(0, 0, 9, transport, 16);
    odd[10..].fill(0xee);
    assert_eq!(judge(&odd, &frame[..LOOK_LEN], LEN), Some([0; VIRTIO_LEN]));
}

proptest! {
    #[test]
    fn any_bytes_are_judged_and_what_passes_is_bounded(
        header in any::<[u8; VIRTIO_LEN]>(),
        frame in proptest::collection::vec(any::<u8>(), 0..200),
        extra in 0usize..66_000,
        ip in 0usize..3,
    ) {
        let mut frame = frame;
        // Let more of them look like IP.
        if frame.len() > 40 && ip > 0 {
            frame[12..14].copy_from_slice(&[[8, 0], [0x86, 0xdd]][ip - 1]);
            frame[14] = [0x45, 0x60][ip - 1];
        }
        let len = frame.len() + if frame.len() >= LOOK_LEN { extra } else { 0 };
        if let Some(fit) = judge(&header, &frame[..frame.len().min(LOOK_LEN)], len) {
            let pair = |at: usize| usize::from(u16::from_le_bytes([fit[at], fit[at + 1]]));
            prop_assert!(len >= FRAME_MIN && fit[10..] == [0, 0] && fit[0] & !3 == 0);
            prop_assert!(fit[0] & 1 == 0 || pair(6) + pair(8) + 2 <= len);
            prop_assert!(fit[1] == 0 || (pair(4) > 0 && pair(2) <= len && fit[0] & 1 == 1));
            prop_assert_eq!(judge(&fit, &frame[..frame.len().min(LOOK_LEN)], len), Some(fit));
        }
    }
}
