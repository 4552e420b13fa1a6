//! Frames that ask whether frames arrive: as long as those that are to follow, to the address zero, which is nobody's.

use linkbraid_fabric::FastPath;
use linkbraid_wire::fabric::Tag;
use std::net::{IpAddr, UdpSocket};

/// Flags of VXLAN: there is a group, and a network (RFC 7348; draft-smith-vxlan-group-policy).
const GROUP_AND_NETWORK: u8 = 0x88;
/// Bytes before the frame.
const VXLAN: usize = 8;
/// Destination, source and type of the frame.
const ETHERNET: usize = 14;
/// IEEE Std 802, local experimental 1; nobody looks at it.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

pub(super) struct Prober {
    socket: UdpSocket,
    mac: [u8; 6],
}

impl Prober {
    /// From the node with that address. Why not otherwise.
    pub(super) fn new(plan: &FastPath, mac: [u8; 6]) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot open a socket: {}", error.kind());
        Ok(Self { socket: plan.socket().map_err(failed)?, mac })
    }

    /// Asks a node, by a frame of so many bytes that carries its tag. It may be lost as others are.
    pub(super) fn ask(&self, to: (IpAddr, u16), tag: Tag, len: usize) {
        let _ = self.socket.send_to(&frame(self.mac, tag, len), to);
    }
}

fn frame(mac: [u8; 6], tag: Tag, len: usize) -> Vec<u8> {
    //= docs/fabric.md#7.7
    let mut bytes = vec![0; VXLAN + len.max(ETHERNET)];
    bytes[0] = GROUP_AND_NETWORK;
    bytes[2..4].copy_from_slice(&tag.group().to_be_bytes());
    bytes[4..8].copy_from_slice(&(tag.network() << 8).to_be_bytes());
    bytes[VXLAN + 6..VXLAN + 12].copy_from_slice(&mac);
    bytes[VXLAN + 12..VXLAN + ETHERNET].copy_from_slice(&ETHERTYPE);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_a_frame_to_nobody_behind_the_tag() {
        let tag = Tag::new(0x0102, 0x0003_0405).expect("a tag");
        let bytes = frame([2, 0x6c, 0x62, 9, 0, 1], tag, 64);
        assert_eq!(bytes.len(), 72);
        assert_eq!(bytes[..8], [0x88, 0, 1, 2, 3, 4, 5, 0]);
        assert_eq!(bytes[8..22], [0, 0, 0, 0, 0, 0, 2, 0x6c, 0x62, 9, 0, 1, 0x88, 0xb5]);
        assert_eq!(frame([0; 6], tag, 3).len(), 22);
    }
}
