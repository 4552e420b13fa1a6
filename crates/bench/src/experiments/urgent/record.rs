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
