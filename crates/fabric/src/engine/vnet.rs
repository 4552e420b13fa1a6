//! The virtio header of a frame from a peer, judged before it goes into our kernel.
//!
//! The kernel checks it too (`virtio_net_hdr_to_skb`, linux/virtio_net.h); this is stricter. What comes out has only
//! fields that mean something, so nothing that a peer writes reaches the kernel unread.

use linkbraid_wire::fabric::{FRAME_MIN, VIRTIO_LEN};

/// Bytes at the start of a frame that [`judge`] looks at: an Ethernet header, two VLAN tags, an IPv6 header.
pub const LOOK_LEN: usize = FRAME_MIN + 2 * VLAN_LEN + IPV6_LEN;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

const VLAN_LEN: usize = 4;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const TCP_LEN: usize = 20;
const UDP_LEN: usize = 8;
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Smallest segment of TCP (`TCP_MIN_GSO_SIZE`, linux/tcp.h): smaller ones would turn one frame into thousands.
const TCP_SEGMENT_MIN: u16 = 8;
/// Most segments of one UDP frame (`UDP_MAX_SEGMENTS`, linux/udp.h).
const UDP_SEGMENTS_MAX: usize = 128;
/// What the kernel takes for another kind of segmentation (`GSO_BY_FRAGS`, linux/skbuff.h).
const GSO_BY_FRAGS: u16 = 0xffff;

/// Where IP's payload starts in a frame, and what it is.
struct Inside {
    version: u8,
    /// Offset of the first header after IP; of IPv6's extension headers, if there are any.
    transport: usize,
    protocol: u8,
}

/// Whether `header` fits the frame of `len` bytes that starts with `start` ([`LOOK_LEN`] bytes of it, or all). The header
/// that may go into the kernel; none if it does not fit.
#[must_use]
pub fn judge(header: &[u8; VIRTIO_LEN], start: &[u8], len: usize) -> Option<[u8; VIRTIO_LEN]> {
    let [flags, gso_type, h0, h1, g0, g1, s0, s1, o0, o1, ..] = *header;
    let header_len = u16::from_le_bytes([h0, h1]);
    let segment = u16::from_le_bytes([g0, g1]);
    let checksum_start = usize::from(u16::from_le_bytes([s0, s1]));
    let checksum_offset = u16::from_le_bytes([o0, o1]);
    let needs_checksum = flags & NEEDS_CSUM != 0;

    if flags & !(NEEDS_CSUM | DATA_VALID) != 0 || len < FRAME_MIN {
        return None;
    }
    if needs_checksum {
        let end = checksum_start + usize::from(checksum_offset) + 2;
        if checksum_start < FRAME_MIN || end > len || flags & DATA_VALID != 0 {
            return None;
        }
    }
    let mut fit = [0; VIRTIO_LEN];
    fit[0] = flags;
    if needs_checksum {
        fit[6..10].copy_from_slice(&[s0, s1, o0, o1]);
    }
    if gso_type == GSO_NONE {
        return Some(fit);
    }
    if usize::from(header_len) > len {
        return None;
    }

    // To be segmented: what it is must be what the frame says it is, and the checksum must be open.
    let inside = look(start, len)?;
    let (version, protocol, least, wanted) = match gso_type & !GSO_ECN {
        GSO_TCPV4 => (4, TCP, TCP_LEN, TCP_CHECKSUM),
        GSO_TCPV6 => (6, TCP, TCP_LEN, TCP_CHECKSUM),
        GSO_UDP_L4 if gso_type == GSO_UDP_L4 => (inside.version, UDP, UDP_LEN, UDP_CHECKSUM),
        _ => return None,
    };
    let extended = inside.version == 6 && inside.protocol != protocol && checksum_start > inside.transport;
    let at_transport = inside.protocol == protocol && checksum_start == inside.transport;
    let payload = len.checked_sub(checksum_start + least)?;
    let size_fits = match protocol {
        TCP => segment >= TCP_SEGMENT_MIN,
        _ => segment > 0 && payload <= usize::from(segment) * UDP_SEGMENTS_MAX,
    };
    let fits = needs_checksum
        && inside.version == version
        && checksum_offset == wanted
        && (at_transport || extended)
        && size_fits
        && segment != GSO_BY_FRAGS;
    if !fits {
        return None;
    }
    fit[1] = gso_type;
    fit[2..6].copy_from_slice(&[h0, h1, g0, g1]);
    Some(fit)
}

/// Finds the IP header behind at most two VLAN tags.
fn look(start: &[u8], len: usize) -> Option<Inside> {
    let pair = |at: usize| Some(u16::from_be_bytes([*start.get(at)?, *start.get(at + 1)?]));
    let mut at = FRAME_MIN - 2;
    for _ in 0..2 {
        if matches!(pair(at)?, 0x8100 | 0x88a8) {
            at += VLAN_LEN;
        }
    }
    let network = at + 2;
    let first = *start.get(network)?;
    let (version, length, protocol_at) = match (pair(at)?, first >> 4) {
        (0x0800, 4) => (4, usize::from(first & 0xf) * 4, network + 9),
        (0x86dd, 6) => (6, IPV6_LEN, network + 6),
        _ => return None,
    };
    let transport = network + length;
    let protocol = *start.get(protocol_at)?;
    (length >= IPV4_LEN && transport <= len).then_some(Inside { version, transport, protocol })
}

#[cfg(test)]
mod tests;
