//! What an experiment with messages takes into the report.

use serde::Serialize;

/// What messages are.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MessageSettings {
    /// Payload bytes of each.
    pub bytes: u32,
    /// Microseconds from one to the next.
    pub period_us: f64,
    /// `SO_PRIORITY` of both ends.
    pub priority: u32,
    /// Whether both ends ran as real-time threads (`SCHED_FIFO`).
    pub real_time: bool,
}

/// One measurement of round trips. Times are in microseconds, from the call that sends a message until its answer is read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RoundTrips {
    /// Which repeat it belongs to, from 0: ratios are made within a repeat.
    pub repeat: u32,
    /// Messages sent.
    pub sent: u64,
    /// Of these, never answered.
    pub lost: u64,
    /// Answers that came more than once, in the whole flow.
    pub twice: u64,
    /// The shortest.
    pub min_us: f64,
    /// The mean.
    pub mean_us: f64,
    /// The standard deviation.
    pub stddev_us: f64,
    /// The median.
    pub median_us: f64,
    /// The 90th percentile.
    pub p90_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Milliseconds that the sender was late, and did not make up for.
    pub slipped_ms: f64,
    /// The bulk traffic beside it, where there is some.
    pub bulk: Option<Bulk>,
    /// The share of what the sender's NICs sent meanwhile that each link took, in bytes.
    pub tx_shares: Vec<f64>,
    /// The share of the machine's CPU that was busy.
    pub cpu_share: f64,
    /// Frames that the machine's own backlog was too full for.
    pub backlog_drops: u64,
}

/// The traffic that is in the way.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Bulk {
    /// What was typed on the client.
    pub command: String,
    /// Goodput at the receiver, Mbit/s of payload.
    pub mbit: f64,
}

/// Messages one after the other: one entry in each list a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MessageTrace {
    /// When it was sent, in milliseconds since the trace began; around a cut, since the cut.
    pub at_ms: Vec<f64>,
    /// Its round trip in microseconds; null if it was lost.
    pub took_us: Vec<Option<f64>>,
}

/// One cut. Times are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cut {
    /// What was cut: `HOST/NIC`.
    pub object: String,
    /// How: `carrier` or `silent`.
    pub kind: String,
    /// How long it stayed cut.
    pub cut_ms: f64,
    /// From its mending until both links were in use again.
    pub again_ms: f64,
    /// The same messages for as long just before the cut: the base.
    pub before: Outcome,
    /// Those sent while it was cut.
    pub during: Outcome,
    /// Those sent from its mending on until both links were in use again.
    pub after: Outcome,
}

/// What became of some messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Sent.
    pub sent: u64,
    /// Of these, never answered.
    pub lost: u64,
    /// Of these, late.
    pub late: u64,
    /// The longest round trip, microseconds.
    pub max_us: f64,
    /// Until the last message that was lost or late was sent, milliseconds; absent if none was.
    pub last_bad_ms: Option<f64>,
}
