//! Every limit of the fabric by name.

use std::time::Duration;

/// Most nodes of a fabric, as published.
pub const NODES_MAX: u16 = 512;

/// The most queues of a node.
pub const QUEUES_MAX: u16 = 64;

/// Most bytes of a frame on a transport: an Ethernet frame of 65,535 bytes of payload and its 14 byte header, the
/// virtio header, and room for the fabric's own header.
pub const FRAME_MAX: usize = 65_792;

/// Longest sleep where wake-ups cross: bounds what a lost or stolen wake-up can cost.
pub const SLEEP_MAX: Duration = Duration::from_millis(20);

/// Shortest and longest sleep where no wake-up crosses; each one without an arrival is half as long again as the one before it.
pub const NAP_MIN: Duration = Duration::from_micros(20);
/// The longest such sleep; see [`NAP_MIN`].
pub const NAP_MAX: Duration = Duration::from_millis(2);

/// Least and most bytes of a ring in shared memory unless asked otherwise: 8 and 32 of the longest frames. TCP has more than
/// eight on their way, and whoever finds the ring full waits on the processor of whoever empties it (docs/design/fabric-throughput.md);
/// longer ones leave the processor's cache.
pub const RING_MIN_BYTES: u64 = 512 << 10;
/// The most bytes; see [`RING_MIN_BYTES`].
pub const RING_MAX_BYTES: u64 = 2 << 20;
/// Most bytes of all rings to one node unless asked otherwise, while they are longer than [`RING_MIN_BYTES`].
pub const RINGS_BYTES: u64 = 8 << 20;

/// Bytes of a ring in shared memory between so many nodes with so many queues each unless asked otherwise. With one queue: 2 MiB
/// for up to 5 nodes, 1 MiB for up to 9, 512 KiB for more.
#[must_use]
pub const fn ring_bytes(nodes: u16, queues: u16) -> u64 {
    let rings = (nodes as u64).saturating_sub(1) * queues as u64;
    let mut ring = RING_MAX_BYTES;
    while ring > RING_MIN_BYTES && ring * rings > RINGS_BYTES {
        ring /= 2;
    }
    ring
}

/// Frames received from one peer before it is the next one's turn.
pub const PEER_BURST: usize = 64;

/// Most files that are mapped at a time in this process: each fabric in shared memory maps one.
pub const MAPS_MAX: usize = 1024;

/// How often a node looks whether the file that it shares is still there, and as it was.
pub const MEMORY_LOOK: Duration = Duration::from_millis(250);

/// Times that a node starts over because another one made or removed the shared memory meanwhile.
pub const JOIN_TRIES: u32 = 100;
/// How long a node that joins waits while another one makes or removes the shared memory.
pub const JOIN_LOCK_MAX: Duration = Duration::from_secs(10);
/// The time between two attempts to get the lock.
pub const JOIN_LOCK_LOOK: Duration = Duration::from_millis(2);

/// Most pieces that a frame is cut into where a datagram is shorter: enough for the shortest IPv4 path there may be.
pub const PIECES_MAX: usize = 256;

/// Frames of one peer that are put together from pieces at a time; the oldest gives way.
pub const SLOTS: usize = 4;

/// Starts of one peer that are distinguished at a time; the one that was silent for longest is forgotten.
pub const INSTANCES_REMEMBERED: usize = 4;

/// Frames of one start of a peer that are remembered, so that none is delivered twice.
pub const FRAMES_REMEMBERED: usize = 1024;

/// Most characters of the name of a fabric whose nodes find each other by etcd.
pub const ETCD_NAME_MAX: usize = 64;

/// Port of a node's first queue, where etcd is to know it and the user has given none.
pub const ETCD_PORT: u16 = 7000;

/// Most bytes of a directory file.
pub const DIRECTORY_BYTES_MAX: u64 = 1 << 20;

/// Bytes asked of the kernel for what arrives on a socket: some hundred of the longest frames.
pub const SOCKET_BYTES: i32 = 8 << 20;

/// Datagrams, or as many joined ones, that are received at once.
pub const INBOX: usize = 16;

/// Messages, of several datagrams each where the kernel cuts them, that are sent at once.
pub const OUTBOX: usize = 64;

/// Bytes that wait to be sent at once.
pub const OUTBOX_BYTES: usize = 256 << 10;

/// Longest sleep on a socket, whose wake-ups do not get lost.
pub const SOCKET_SLEEP_MAX: Duration = Duration::from_secs(1);

/// Frames to a peer between two looks whether its path takes longer datagrams by now.
pub const PATH_LOOK_FRAMES: u64 = 1 << 16;
