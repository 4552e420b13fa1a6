//! Every limit of the transport by name.

use std::time::Duration;

/// Messages that a node has room for from each peer on a queue of libfabric, where there are few peers; fewer with many.
pub const WINDOW: u16 = 8;

/// Pause between the first two hellos to a peer of libfabric, doubled from then on up to [`HELLO_MAX`].
pub const HELLO_MIN: Duration = Duration::from_millis(5);
/// The longest such time; see [`HELLO_MIN`].
pub const HELLO_MAX: Duration = Duration::from_millis(50);

/// Hellos without an answer after which a peer's address is made known to libfabric again.
pub const LOOK_UP: u32 = 8;

/// Longest sleep while libfabric did not take something yet: it may not say when it would.
pub const BACKLOG_SLEEP: Duration = Duration::from_micros(200);

/// Times in a row that libfabric's wait object may be ready without anything having come, before a nap is taken.
pub const FALSE_ALARMS: u32 = 64;

/// How long what was sent may take to go when a queue of libfabric is closed.
pub const DRAIN: Duration = Duration::from_millis(100);

/// Longest sleep on a queue of libfabric without a wait object: a look at it costs some ten microseconds.
pub const NAP_MAX: Duration = Duration::from_millis(15);

/// Longest sleep on a queue of libfabric whose wait object works, while every peer is connected: one that starts again may
/// not wake us.
pub const WAIT_MAX: Duration = Duration::from_millis(50);
