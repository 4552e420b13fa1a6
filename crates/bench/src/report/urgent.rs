//! What round trips of small messages came to, beside bulk traffic and while links fail.

use crate::stats::Spread;
use serde::{Deserialize, Serialize};

/// Small messages in one scenario, measured several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageCase {
    /// Its name in this report.
    pub id: String,
    /// The lab it ran in.
    pub lab: String,
    /// `bare`, `busy`, `idle`, `one-0`, `one-6` or `two`.
    pub scenario: String,
    /// What messages travel over, and the bulk traffic too: `tcp cubic` or `udp`.
    pub load: String,
    /// Members of each bond; 0 is a bare link without linkbraid.
    pub members: u32,
    /// Links that the bulk traffic may use; 0 where there is none.
    pub bulk_links: u32,
    /// The rate of each link, Mbit/s.
    pub rate_mbit: u32,
    /// What is sent.
    pub messages: MessageSettings,
    /// The queue of each NIC.
    pub queue: String,
    /// What came out each time.
    pub samples: Vec<RoundTrips>,
    /// The middle of that.
    pub medians: MessageMedians,
    /// It against its bases.
    pub ratios: Vec<MessageRatio>,
    /// How many round trips of all samples took at most how long.
    pub histogram: Vec<Bin>,
    /// The first messages of one sample.
    pub trace: MessageTrace,
}

/// What messages are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<Bulk>,
    /// The share of what the sender's NICs sent meanwhile that each link took, in bytes.
    pub tx_shares: Vec<f64>,
    /// The share of the machine's CPU that was busy.
    pub cpu_share: f64,
    /// Frames that the machine's own backlog was too full for.
    pub backlog_drops: u64,
}

/// The traffic that is in the way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bulk {
    /// What was typed on the client.
    pub command: String,
    /// Goodput at the receiver, Mbit/s of payload.
    pub mbit: f64,
}

/// Medians over the samples, with the smallest and the largest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageMedians {
    /// Of [`RoundTrips::median_us`].
    pub median_us: Option<Spread>,
    /// Of [`RoundTrips::p99_us`].
    pub p99_us: Option<Spread>,
    /// Of [`RoundTrips::max_us`].
    pub max_us: Option<Spread>,
    /// Of [`RoundTrips::lost`].
    pub lost: Option<Spread>,
    /// Of the bulk traffic's goodput.
    pub bulk_mbit: Option<Spread>,
    /// Of [`RoundTrips::cpu_share`].
    pub cpu_share: Option<Spread>,
}

/// A figure of a case over that of its base, repeat by repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRatio {
    /// `median` or `p99` of the round trips, or `bulk`: goodput.
    pub name: String,
    /// The case it is divided by.
    pub base: String,
    /// One ratio a repeat.
    pub pairs: Vec<f64>,
    /// The middle of them.
    pub spread: Option<Spread>,
}

/// One bar of a histogram; bars that have none are left out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// The longest round trip that it has, microseconds; the next bar ends a tenth later.
    pub up_to_us: f64,
    /// How many it has.
    pub count: u64,
}

/// Messages one after the other: one entry in each list a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageTrace {
    /// When it was sent, in milliseconds since the trace began; around a cut, since the cut.
    pub at_ms: Vec<f64>,
    /// Its round trip in microseconds; null if it was lost.
    pub took_us: Vec<Option<f64>>,
}

/// Messages while one of two links is cut, again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CutCase {
    /// Its name in this report.
    pub id: String,
    /// The lab it ran in.
    pub lab: String,
    /// How messages spread over the two links: `mirror`, or `no class`.
    pub policy: String,
    /// `tcp` or `udp`.
    pub load: String,
    /// The rate of each link, Mbit/s.
    pub rate_mbit: u32,
    /// What is sent.
    pub messages: MessageSettings,
    /// The median round trip while no link was cut, microseconds.
    pub normal_us: f64,
    /// What took longer was late: the normal round trip, and one more.
    pub late_us: f64,
    /// Each cut.
    pub cuts: Vec<Cut>,
    /// Answers that came more than once, in all flows.
    pub twice: u64,
    /// Frames that the machine's own backlog was too full for.
    pub backlog_drops: u64,
    /// The messages around the cut of each kind that cost the most.
    pub traces: Vec<CutTrace>,
}

/// One cut. Times are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_bad_ms: Option<f64>,
}

/// Messages around one cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CutTrace {
    /// Which cut, from 0.
    pub cut: u32,
    /// The messages.
    pub messages: MessageTrace,
}

impl MessageMedians {
    /// Of some samples.
    pub fn of(samples: &[RoundTrips]) -> Self {
        let over = |value: &dyn Fn(&RoundTrips) -> Option<f64>| Spread::of(samples.iter().filter_map(value));
        Self {
            median_us: over(&|s| Some(s.median_us)),
            p99_us: over(&|s| Some(s.p99_us)),
            max_us: over(&|s| Some(s.max_us)),
            lost: over(&|s| Some(s.lost as f64)),
            bulk_mbit: over(&|s| Some(s.bulk.as_ref()?.mbit)),
            cpu_share: over(&|s| Some(s.cpu_share)),
        }
    }
}

impl MessageCase {
    /// The median of one of its ratios.
    pub fn ratio(&self, name: &str, base: &str) -> Option<f64> {
        let ratio = self.ratios.iter().find(|ratio| ratio.name == name && ratio.base == base)?;
        Some(ratio.spread?.median)
    }
}

impl CutCase {
    /// The sum of something over all cuts.
    pub fn sum(&self, value: impl Fn(&Cut) -> u64) -> u64 {
        self.cuts.iter().map(value).sum()
    }
}

impl Outcome {
    /// Lost or late.
    pub fn bad(&self) -> u64 {
        self.lost + self.late
    }
}
