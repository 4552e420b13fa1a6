//! When things happen.

use std::time::Duration;

/// All durations of ARP+. The defaults are those of `docs/arp-plus.md`, section 5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// Shortest time between two announcements of the own mapping.
    pub announce_min: Duration,
    /// Longest time between two announcements; one second with what a busy daemon is late.
    pub announce_max: Duration,
    /// A host that has joined so lately, and was not answered, announces itself three times as often.
    pub young: Duration,
    /// How often a BROADCAST at start, and a CHANGE after a change, is sent.
    pub burst_count: u8,
    /// Shortest time between two of them.
    pub burst_gap_min: Duration,
    /// Longest time between two of them.
    pub burst_gap_max: Duration,
    /// REPLYs are spread over this, and...
    pub reply_window: Duration,
    /// ...this much more for each host in the table, but...
    pub reply_window_host: Duration,
    /// ...at most over this.
    pub reply_window_max: Duration,
    /// A host unheard for this long is silent.
    pub silent: Duration,
    /// A host unheard for this long is deleted.
    pub expire: Duration,
    /// A published-only host unheard for this long is asked...
    pub ask: Duration,
    /// ...this often...
    pub ask_again: Duration,
    /// ...and deleted after this long.
    pub forget: Duration,
    /// How long a message waits that would end what probes prove.
    pub objection: Duration,
    /// A mapping that its host has not repeated for this long may give way to an earlier one: two announcements.
    pub repeated: Duration,
    /// A (member, member) pair unheard for this long is not heard.
    pub heard: Duration,
    /// A former MAC of a host still leads to it for this long.
    pub alias: Duration,
    /// A conflict that goes on is reported again after this long, and forgotten when it has not been seen for as long.
    pub conflict: Duration,
    /// Messages of a host from before its CLEAR are refused for this long.
    pub tombstone: Duration,
    /// How often the table is looked through for what has run out.
    pub sweep: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        //= docs/arp-plus.md#5.1
        Timing {
            announce_min: Duration::from_millis(750),
            announce_max: Duration::from_millis(950),
            young: Duration::from_secs(2),
            burst_count: 3,
            burst_gap_min: Duration::from_millis(70),
            burst_gap_max: Duration::from_millis(150),
            reply_window: Duration::from_millis(10),
            reply_window_host: Duration::from_millis(2),
            reply_window_max: Duration::from_millis(500),
            silent: Duration::from_millis(3500),
            expire: Duration::from_secs(10),
            ask: Duration::from_secs(60),
            ask_again: Duration::from_secs(10),
            forget: Duration::from_secs(120),
            objection: Duration::from_millis(150),
            repeated: Duration::from_millis(1900),
            heard: Duration::from_millis(3500),
            alias: Duration::from_secs(60),
            conflict: Duration::from_secs(60),
            tombstone: Duration::from_secs(10),
            sweep: Duration::from_millis(250),
        }
    }
}
