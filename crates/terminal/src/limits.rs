//! The ranges of the options of `lab` and `bench`, for the command line and for what carries them out.

use std::ops::RangeInclusive;

/// The most hosts of one lab; also what fits the default addresses.
pub const HOSTS_MAX: usize = 200;
/// The most links of one host.
pub const LINKS_MAX: usize = 64;
/// The rates that a link can have, in Mbit/s.
pub const RATE_MBIT: RangeInclusive<u32> = 1..=100_000;

/// How many links the demo can have.
pub const DEMO_LINKS: RangeInclusive<u32> = 1..=16;
/// How fast each can be, Mbit/s; the machine's own speed is the limit in practice.
pub const DEMO_RATES: RangeInclusive<u32> = 1..=10_000;
/// How long each of the demo's two flows can run, seconds.
pub const DEMO_SECONDS: RangeInclusive<u32> = 1..=3600;

/// How often each case of an experiment can be repeated.
pub const REPEATS: RangeInclusive<u32> = 1..=100;
