//! Byte layouts of the fabric: the header in front of every message between two nodes, and the control messages.
//!
//! Specified in `docs/fabric.md`, sections 2 and 3. A message is a [`Header`] of 32 bytes, then either a virtio header and an
//! Ethernet frame ([`Kind::Data`]) or a [`Control`] ([`Kind::Control`]). All numbers are big-endian.

mod auth;
mod control;
mod fast_path;
mod header;
mod refusal;

#[cfg(test)]
mod tests;

pub use auth::{FABRIC_AUTH_FEATURE, FABRIC_AUTH_LEN, SealedControl, seal_control, sealed_control};
pub use control::{
    CONTROL_LEN, Control, ControlBytes, ControlKind, ENCRYPTION_FEATURE, IN_USE_FEATURE, Offer, RefuseReason,
    emit_control, parse_control,
};
pub use fast_path::{FAST_PATH_FEATURE, FAST_PATH_LEN, FastPath, Tag};
pub use header::{HEADER_LEN, Header, Kind, parse_message};
pub use refusal::FabricRefusal;

/// Version of the layouts here.
pub const VERSION: u8 = 1;

/// Most nodes of a fabric, as many as the published driver had.
pub const NODES_MAX: u16 = 512;

/// Fewest nodes of a fabric: a pair.
pub const NODES_MIN: u16 = 2;

/// Most streams of a sender, numbered from 0: a receiver keeps a window for each.
pub const STREAMS_MAX: u16 = 64;

/// Longest MTU: what is left of 65,535 bytes without the Ethernet header.
pub const MTU_MAX: u32 = 65_521;

/// Shortest MTU, that of IPv4 (RFC 791).
pub const MTU_MIN: u32 = 68;

/// The header that the kernel's TAP puts before each frame: `struct virtio_net_hdr_mrg_rxbuf`, 12 bytes.
pub const VIRTIO_LEN: usize = 12;

/// Shortest Ethernet frame: its header.
pub const FRAME_MIN: usize = 14;

/// Longest Ethernet frame: a TCP buffer that fills an IP packet, the Ethernet header, and two VLAN tags.
pub const FRAME_MAX: usize = 65_535 + 14 + 8;

/// Shortest DATA message without the header.
pub const DATA_MIN: usize = VIRTIO_LEN + FRAME_MIN;

/// Longest DATA message without the header.
pub const DATA_MAX: usize = VIRTIO_LEN + FRAME_MAX;

/// Longest control message without the header: room for what later versions append.
pub const CONTROL_MAX: usize = 256;

/// Longest message with its header.
pub const MESSAGE_MAX: usize = HEADER_LEN + DATA_MAX;
