//! What one run of one experiment comes to: the JSON file. Keys are never renamed; a golden test guards them.

mod fabric;
mod failover;
mod soak;
mod urgent;

use crate::machine::Machine;
use crate::sample::Sample;
use crate::stats::{Spread, imbalance};
use linkbraid_lab::Topology;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use fabric::{Comparison, Measure};
pub use failover::{Failover, FailoverMedians, Incident, MachineLoss, Return, Trace};
pub use soak::{Broken, Soak};
pub use urgent::{
    Bin, Bulk, Cut, CutCase, CutTrace, MessageCase, MessageMedians, MessageRatio, MessageSettings,
    MessageTrace, Outcome, RoundTrips,
};

/// The version of the layout; grows when a key changes its meaning.
pub const SCHEMA: u32 = 1;

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The experiment's name.
    pub experiment: String,
    /// What it shows, in one sentence.
    pub about: String,
    /// The figure or table of the paper it repeats, or an empty string.
    pub paper: String,
    /// When it began, UTC, as `20250102T030405Z`.
    pub started: String,
    /// How it was run.
    pub settings: Settings,
    /// Where it ran.
    pub machine: Machine,
    /// The kernel's settings on a host of the lab.
    pub sysctls: BTreeMap<String, String>,
    /// The share of the machine's CPU that was busy before the run: what else went on.
    pub background_cpu_share: f64,
    /// The labs that were up.
    pub labs: Vec<LabRecord>,
    /// What was measured, with the bases.
    pub cases: Vec<Case>,
    /// Broadcast and multicast that was sent, and what arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<Delivery>,
    /// What the switch flooded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floods: Vec<Flood>,
    /// Failures and changes under traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failovers: Vec<Failover>,
    /// A long run of random failures and changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Soak>,
    /// Round trips of small messages beside bulk traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageCase>,
    /// The same while links are cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<CutCase>,
    /// What was measured of a fabric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Measure>,
    /// Cases that were left out on purpose, each with its reason.
    pub skipped: Vec<Reason>,
    /// Cases that failed to run, each with its error.
    pub failed: Vec<Reason>,
    /// What the project wants to reach.
    pub goals: Vec<Goal>,
}

/// How an experiment was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// A short run: fewer cases, less time each.
    pub quick: bool,
    /// How often each case is measured.
    pub repeat: u32,
    /// Seconds each measurement takes.
    pub seconds: u32,
    /// Seconds before it that are not counted.
    pub omit: u32,
}

/// A lab of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabRecord {
    /// What cases call it.
    pub name: String,
    /// All of it.
    pub topology: Topology,
    /// The burst of each link rate in it, in bytes, by rate in Mbit/s.
    pub burst_bytes: BTreeMap<u32, u32>,
    /// What was typed on its hosts to set it up.
    pub commands: Vec<String>,
}

/// What a case is, beside its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Members of the sending host's bond; 0 is a bare link without linkbraid.
    pub members: u32,
    /// The rate of each link in Mbit/s; empty where links are as fast as the machine.
    pub rate_mbit: Vec<u32>,
    /// The same of the receiving host's links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub far_rate_mbit: Vec<u32>,
    /// `tcp cubic`, `tcp bbr` or `udp`.
    pub load: String,
    /// Flows each way.
    pub flows: u32,
    /// `forward`, `reverse` or `both`.
    pub direction: String,
    /// Whether duplicate ACKs were damped; absent on a bare link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<bool>,
    /// What else was done to the links, such as `loss 0.1 %`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
}

/// One thing that was measured several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Its name in this report.
    pub id: String,
    /// The lab it ran in.
    pub lab: String,
    /// What it is.
    pub parameters: Parameters,
    /// What came out each time.
    pub samples: Vec<Sample>,
    /// The middle of that.
    pub medians: Medians,
    /// It against its bases.
    pub ratios: Vec<Ratio>,
}

/// The medians of a case, with the smallest and the largest value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Medians {
    /// Goodput of all directions, Mbit/s.
    pub mbit: Option<Spread>,
    /// Segments sent again, of 10,000 sent. TCP only.
    pub again_per_10k: Option<Spread>,
    /// UDP datagrams lost, as a share.
    pub lost_share: Option<Spread>,
    /// CPU seconds of the whole machine for each GB on the sender's wires.
    pub cpu_s_per_gb: Option<Spread>,
    /// The share of the machine's CPU that was busy.
    pub cpu_share: Option<Spread>,
    /// How far the members' shares of what was sent are from those their rates call for; 0.02 is 2 %.
    pub tx_imbalance: Option<Spread>,
    /// The same of what was received.
    pub rx_imbalance: Option<Spread>,
    /// Goodput of the competing flow, Mbit/s, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rival_mbit: Option<Spread>,
}

impl Medians {
    /// Of some samples; `rates` are those of the sender's links.
    pub fn of(samples: &[Sample], rates: &[u32]) -> Self {
        let over = |value: &dyn Fn(&Sample) -> Option<f64>| Spread::of(samples.iter().filter_map(value));
        Self {
            mbit: over(&|s| Some(s.mbit)),
            again_per_10k: over(&Sample::again_per_10k),
            lost_share: over(&Sample::lost_share),
            cpu_s_per_gb: over(&Sample::cpu_s_per_gb),
            cpu_share: over(&|s| Some(s.cpu_share)),
            tx_imbalance: over(&|s| imbalance(&s.tx_shares, rates)),
            rx_imbalance: over(&|s| imbalance(&s.rx_shares, rates)),
            rival_mbit: over(&|s| s.rival_mbit),
        }
    }
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Goodput of all directions.
    Mbit,
    /// CPU for each byte.
    CpuPerByte,
}

impl Metric {
    /// Its value in one sample.
    pub fn of(self, sample: &Sample) -> Option<f64> {
        match self {
            Self::Mbit => Some(sample.mbit),
            Self::CpuPerByte => sample.cpu_s_per_gb(),
        }
    }
}

/// A case over the sum of its bases, repeat by repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Its name: `single`, `sum`, `faster`, `undamped` or `cpu`.
    pub name: String,
    /// What is compared.
    pub metric: Metric,
    /// The cases it is divided by: their sum in the same repeat.
    pub bases: Vec<String>,
    /// What a perfect bond would reach.
    pub ideal: f64,
    /// One ratio a repeat.
    pub pairs: Vec<f64>,
    /// The middle of them.
    pub spread: Option<Spread>,
}

/// One way of reaching many: who got what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// `broadcast`, `multicast` or `multicast ipv6`.
    pub kind: String,
    /// The host that sent.
    pub from: String,
    /// The host that listened.
    pub to: String,
    /// Datagrams sent.
    pub sent: u64,
    /// Of these, those that arrived exactly once.
    pub once: u64,
    /// Those that arrived more than once.
    pub more: u64,
    /// Those that never arrived.
    pub never: u64,
}

/// Frames that the switch flooded during one traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flood {
    /// The traffic.
    pub traffic: String,
    /// What was typed to make it.
    pub command: String,
    /// Frames that entered the switch meanwhile.
    pub frames: u64,
    /// Unicast frames that left by a port where their receiver had not been seen.
    pub flooded: u64,
    /// After how many seconds without a frame from it the switch forgot a MAC.
    pub ageing_s: u64,
}

/// A case that has no numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The case.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// Which side of a limit is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The value is the limit or more.
    AtLeast,
    /// The value is the limit or less.
    AtMost,
    /// The value is less than the limit.
    Below,
}

/// One thing the project wants to reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// The case it is about.
    pub case: String,
    /// What is wanted, in words.
    pub what: String,
    /// Which side of `limit` is good.
    pub bound: Bound,
    /// The limit.
    pub limit: f64,
    /// What was measured: a median.
    pub value: Option<f64>,
    /// Whether it was reached; absent where it can't be told, with the reason.
    pub met: Option<bool>,
    /// Why it can't be told, or an empty string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Goal {
    /// Judges a value; without one, the goal stays open.
    pub fn new(case: &str, what: impl Into<String>, bound: Bound, limit: f64, value: Option<f64>) -> Self {
        let met = value.map(|value| match bound {
            Bound::AtLeast => value >= limit,
            Bound::AtMost => value <= limit,
            Bound::Below => value < limit,
        });
        let reason = if met.is_none() { "it was not measured" } else { "" };
        Self { case: case.into(), what: what.into(), bound, limit, value, met, reason: reason.into() }
    }

    /// The same goal where a value that misses it says nothing, for this reason; one that meets it still counts.
    #[must_use]
    pub fn unless(mut self, reason: Option<String>) -> Self {
        if let (Some(false), Some(reason)) = (self.met, reason) {
            (self.met, self.reason) = (None, reason);
        }
        self
    }
}

impl Report {
    /// A case by name.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }

    /// A failover by name.
    pub fn failover(&self, id: &str) -> Option<&Failover> {
        self.failovers.iter().find(|failover| failover.id == id)
    }

    /// Round trips by name.
    pub fn message_case(&self, id: &str) -> Option<&MessageCase> {
        self.messages.iter().find(|case| case.id == id)
    }

    /// A measure by name and metric.
    pub fn measure(&self, id: &str, metric: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.id == id && measure.metric == metric)
    }

    /// Whether all that was to be measured was.
    pub fn ran(&self) -> bool {
        self.failed.is_empty()
    }

    /// Whether no goal was missed.
    pub fn all_met(&self) -> bool {
        self.goals.iter().all(|goal| goal.met != Some(false))
    }
}

impl Case {
    /// The median of one of its ratios.
    pub fn ratio(&self, name: &str) -> Option<f64> {
        self.ratio_spread(name).map(|spread| spread.median)
    }

    /// One of its ratios.
    pub fn ratio_spread(&self, name: &str) -> Option<Spread> {
        self.ratios.iter().find(|ratio| ratio.name == name)?.spread
    }
}

#[cfg(test)]
pub(crate) mod tests;
