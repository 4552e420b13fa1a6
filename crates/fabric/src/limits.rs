//! Every limit of the fabric by name.

use std::time::Duration;

/// Most nodes of a fabric, as published.
pub const NODES_MAX: u16 = 512;

/// Most queues of a node.
pub const QUEUES_MAX: u16 = 64;

/// Most bytes of a frame on a transport: an Ethernet frame of 65,535 bytes of payload and its 14 byte header, the
/// virtio header, and room for the fabric's own header.
pub const FRAME_MAX: usize = 65_792;

/// Longest sleep where wake-ups cross: bounds what a lost or stolen wake-up can cost.
pub const SLEEP_MAX: Duration = Duration::from_millis(20);

/// Shortest and longest sleep where no wake-up crosses; each sleep without an arrival doubles it.
pub const NAP_MIN: Duration = Duration::from_micros(20);
/// See [`NAP_MIN`].
pub const NAP_MAX: Duration = Duration::from_millis(2);

/// Bytes of a ring in shared memory unless asked otherwise. Eight of the longest frames, and small enough that a ring
/// stays in a processor's cache.
pub const RING_BYTES: u64 = 512 << 10;

/// Frames received from one peer before it is the next one's turn.
pub const PEER_BURST: usize = 64;

/// Times that a node starts over because another one made or removed the shared memory meanwhile.
pub const JOIN_TRIES: u32 = 100;
