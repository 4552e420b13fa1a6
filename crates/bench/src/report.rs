//! What one run of one experiment comes to: the JSON file. Keys are never renamed; a golden test guards them.

mod measure;
mod record;

use crate::machine::Machine;
use crate::stats::Spread;
use linkbraid_lab::Topology;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use measure::{Comparison, Measure};
pub use record::Kind;
pub(crate) use record::{
    CASES, CUTS, DELIVERIES, FAILOVERS, FLOODS, HOSTILE, MESSAGES, Points, Record, SOAK, both,
};

/// The version of the layout; grows when a key changes its meaning.
pub const SCHEMA: u32 = 2;

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The layout, [`SCHEMA`].
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
    pub measures: Vec<Measure>,
    /// What is drawn as a line and is no number: goodput around a failure, messages one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
    /// What was found and is said in words, such as a connection that was lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Reason>,
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
    /// Its hosts, links and switches.
    pub topology: Topology,
    /// The burst of each link rate in it, in bytes, by rate in Mbit/s.
    pub burst_bytes: BTreeMap<u32, u32>,
    /// What was typed on its hosts to set it up.
    pub commands: Vec<String>,
}

/// A line through points.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The thing it is of.
    pub id: String,
    /// What it shows of it: `trace`, `histogram`, or the kind of a cut.
    pub name: String,
    /// Where the points are: milliseconds, or microseconds of a histogram.
    pub x: Vec<f64>,
    /// Their values: Mbit/s, microseconds, or a count; null for a message that was lost.
    pub y: Vec<Option<f64>>,
}

/// Words about a case: why it has no numbers, or what was found.
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
    /// The value that it is held against.
    pub limit: f64,
    /// What was measured: a median.
    pub value: Option<f64>,
    /// Whether it was reached; absent where it can't be told, with the reason.
    pub met: Option<bool>,
    /// Why it can't be told, or an empty string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Bound {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::AtLeast => "at least",
            Self::AtMost => "at most",
            Self::Below => "below",
        }
    }
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
    /// Reads a file.
    ///
    /// # Errors
    /// It is no report, or one of another layout.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        match file["schema"].as_u64() {
            Some(layout) if layout == u64::from(SCHEMA) => Self::deserialize(file).map_err(|e| e.to_string()),
            Some(other) => Err(format!("it has layout {other}, this program reads {SCHEMA}")),
            None => Err("it has no layout".into()),
        }
    }

    /// Adds the values of a turn to the measures of a thing, each with its metric and its unit.
    pub(crate) fn note(&mut self, id: &str, command: &str, turn: u32, values: &[(&str, &str, f64)]) {
        for (metric, unit, value) in values {
            let new = || Measure { unit: (*unit).into(), command: command.into(), ..Measure::default() };
            self.slot(0, id, metric, new).add(turn, *value);
        }
    }

    /// The measure of this name and metric, from a place on; made if it is not there.
    fn slot(&mut self, from: usize, id: &str, metric: &str, new: impl FnOnce() -> Measure) -> &mut Measure {
        let found = self.measures[from..].iter().position(|m| m.metric == metric && m.id == id);
        let index = found.map_or(self.measures.len(), |index| from + index);
        if found.is_none() {
            self.measures.push(Measure { id: id.into(), metric: metric.into(), ..new() });
        }
        &mut self.measures[index]
    }

    /// Says how many bytes the messages of a thing have.
    pub(crate) fn note_bytes(&mut self, id: &str, bytes: usize) {
        let own = self.measures.iter_mut().filter(|measure| measure.id == id);
        own.for_each(|measure| measure.bytes = Some(bytes as u64));
    }

    /// A measure by name and metric.
    pub fn measure(&self, id: &str, metric: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.id == id && measure.metric == metric)
    }

    /// The middle of a measure, with the smallest and the largest value.
    pub(crate) fn spread(&self, id: &str, metric: &str) -> Option<Spread> {
        self.measure(id, metric)?.spread
    }

    /// The middle of a measure.
    pub fn median(&self, id: &str, metric: &str) -> Option<f64> {
        Some(self.spread(id, metric)?.median)
    }

    /// All values of a measure together.
    pub fn sum(&self, id: &str, metric: &str) -> Option<f64> {
        Some(self.measure(id, metric)?.values.iter().sum())
    }

    /// A measure over another one.
    pub(crate) fn beside(&self, id: &str, metric: &str, base: &str) -> Option<Spread> {
        self.measure(id, metric)?.beside(base)?.ratio
    }

    /// The middle of it.
    pub(crate) fn times(&self, id: &str, metric: &str, base: &str) -> Option<f64> {
        Some(self.beside(id, metric, base)?.median)
    }

    /// Puts metrics of a thing beside those of another one, where both were measured.
    pub(crate) fn put_beside(&mut self, id: &str, base: &str, metrics: &[&str]) {
        for metric in metrics {
            self.compare((id, metric), base, &[(base, metric)]);
        }
    }

    /// A ratio of whichever measure of a thing has one of this name.
    pub fn ratio(&self, id: &str, name: &str) -> Option<Spread> {
        self.measures
            .iter()
            .filter(|measure| measure.id == id)
            .find_map(|measure| measure.beside(name)?.ratio)
    }

    /// The middle of it.
    pub(crate) fn mid_ratio(&self, id: &str, name: &str) -> Option<f64> {
        Some(self.ratio(id, name)?.median)
    }

    /// Adds how one metric of a thing is beside that of another thing, or of the sum of several.
    pub(crate) fn compare(
        &mut self,
        (id, metric): (&str, &str),
        name: &str,
        bases: &[(&str, &str)],
    ) -> Option<&mut Comparison> {
        let bases: Vec<Measure> =
            bases.iter().map(|(id, metric)| self.measure(id, metric).cloned()).collect::<Option<_>>()?;
        let measure =
            self.measures.iter_mut().find(|measure| measure.id == id && measure.metric == metric)?;
        measure.compare_sum(name, &bases.iter().collect::<Vec<_>>())
    }

    /// What records of a kind are of, in their order.
    pub(crate) fn ids(&self, kind: Kind) -> Vec<&str> {
        let mut ids: Vec<&str> = Vec::new();
        for measure in self.measures.iter().filter(|measure| measure.kind == kind.key) {
            if ids.last() != Some(&measure.id.as_str()) && !ids.contains(&measure.id.as_str()) {
                ids.push(&measure.id);
            }
        }
        ids
    }

    /// How a thing was set up.
    pub fn parameter(&self, id: &str, key: &str) -> Option<&serde_json::Value> {
        self.measures
            .iter()
            .filter(|measure| measure.id == id)
            .find_map(|measure| measure.parameters.get(key))
    }

    /// The same where it is words; nothing where it is not known.
    pub fn word(&self, id: &str, key: &str) -> &str {
        self.parameter(id, key).and_then(serde_json::Value::as_str).unwrap_or_default()
    }

    /// A curve of a thing.
    pub fn curve(&self, id: &str, name: &str) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.id == id && curve.name == name)
    }

    /// Whether there was nothing to measure: no case has the name that was asked for.
    pub fn is_empty(&self) -> bool {
        let reasons = self.skipped.is_empty() && self.failed.is_empty() && self.goals.is_empty();
        reasons && self.measures.is_empty() && self.curves.is_empty() && self.remarks.is_empty()
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

#[cfg(test)]
pub(crate) mod tests;
