//! Every limit of an examination. Traffic is bounded by these, whatever the other host says.

use std::time::Duration;

/// The TCP port on which a host answers, on the address of its bond.
pub const PORT: u16 = 4919;

/// How long frames are sent over one lane in one direction.
pub const BURST: Duration = Duration::from_millis(250);

/// Longest burst that the other host may ask for.
pub const BURST_MAX: Duration = Duration::from_millis(500);

/// Most bytes of one burst.
pub const BURST_BYTES_MAX: u64 = 1 << 30;

/// A burst is over when nothing more of it has come for so long: a full link's queue is shorter.
pub const BURST_QUIET: Duration = Duration::from_millis(150);

/// How long TCP sends in one direction, what it takes to begin included.
pub const FLOW: Duration = Duration::from_millis(2500);

/// For so long it begins, and is not counted.
pub const FLOW_BEGINS: Duration = Duration::from_millis(500);

/// Longest that the other host may ask for.
pub const FLOW_MAX: Duration = Duration::from_secs(10);

/// Flows at a time, in the second of the two tests.
pub const FLOWS: u8 = 8;

/// Most flows at a time.
pub const FLOWS_MAX: u8 = 16;

/// Most lanes that are tested alone.
pub const LANES_MAX: usize = 16;

/// Most requests of one examination: what lanes and flows take, twice.
pub const REQUESTS_MAX: u32 = 256;

/// For so long the links are watched before anything is sent.
pub const WATCH: Duration = Duration::from_millis(500);

/// A host that says nothing for so long is given up. Over links that lose much TCP doubles the time between its tries: the
/// seventh one leaves after 12.6 s, the eighth after 25.4 s (RFC 6298, with Linux's least of 0.2 s).
pub const SILENCE: Duration = Duration::from_secs(30);

/// Longest segment of the connection over which the hosts speak, in bytes of TCP's payload: the least that each host accepts
/// (RFC 9293 3.7.1). What is examined may lose all that is longer.
pub const SEGMENT_MAX: u32 = 536;

/// Longest message, in bytes.
pub const MESSAGE_MAX: usize = 1 << 20;
