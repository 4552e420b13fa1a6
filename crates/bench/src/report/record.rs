//! Records of many numbers, and what of them becomes measures. Files of layout 1 kept records as they are, so what takes
//! an experiment's record reads those files, too.

use super::{Comparison, Curve, Measure, Reason, Report};
use crate::sample::{Parameters, Sample};
use crate::stats::Spread;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A kind of record: where layout 1 kept it, the list of its turns, and its first number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The key in layout 1.
    pub key: &'static str,
    turns: &'static str,
    first: &'static str,
}

const fn kind(key: &'static str, turns: &'static str, first: &'static str) -> Kind {
    Kind { key, turns, first }
}

/// Goodput by iperf3.
pub const CASES: Kind = kind("cases", "samples", "mbit");
/// Failures and changes under traffic.
pub const FAILOVERS: Kind = kind("failovers", "incidents", "gap_ms");
/// Round trips of small messages beside bulk traffic.
pub const MESSAGES: Kind = kind("messages", "samples", "median_us");
/// The same while links are cut.
pub const CUTS: Kind = kind("cuts", "cuts", "during.lost");
/// A long run of random failures and changes.
pub const SOAK: Kind = kind("soak", "", "steps");
/// Broadcast and multicast that was sent, and what arrived.
pub const DELIVERIES: Kind = kind("deliveries", "", "once");
/// What the switch flooded.
pub const FLOODS: Kind = kind("floods", "", "frames");

const KINDS: [Kind; 7] = [CASES, FAILOVERS, MESSAGES, CUTS, SOAK, DELIVERIES, FLOODS];

/// Numbers beside the list of turns that were measured too; others say how the thing was set up.
const MEASURED: [&str; 6] = ["machine", "datagrams_per_s", "normal_us", "late_us", "twice", "backlog_drops"];
/// What is drawn as a curve, or is worked out again.
const NOT_NUMBERS: [&str; 6] = ["trace", "traces", "histogram", "medians", "ratios", "repeat"];
/// Lists of words: connections that were lost, what was left behind, steps after which something was wrong.
const WORDS: [(&str, &str); 3] =
    [("connections_lost", "connection lost"), ("left_behind", "left behind"), ("broken", "")];
/// The numbers that layout 1's ratios of goodput, CPU and round trips are about.
const RATIOS: [(&str, &str); 5] = [
    ("mbit", "mbit"),
    ("cpu_per_byte", "cpu_s_per_gb"),
    ("median", "median_us"),
    ("p99", "p99_us"),
    ("bulk", "bulk.mbit"),
];

impl Report {
    /// Takes the numbers of a record.
    ///
    /// # Errors
    /// It is not such a record.
    pub fn take(&mut self, kind: Kind, record: &Value) -> Result<(), serde_json::Error> {
        let map: Map<String, Value> = Map::deserialize(record)?;
        let text = |key: &str| record[key].as_str().unwrap_or_default();
        let id = match kind {
            SOAK => "soak".to_owned(),
            FLOODS => text("traffic").to_owned(),
            DELIVERIES => format!("{} {} -> {}", text("kind"), text("from"), text("to")),
            _ => text("id").to_owned(),
        };
        let start = self.measures.len();
        let empty = Vec::new();
        let turns = record[kind.turns].as_array().unwrap_or(&empty);
        let knows = |turn: &Value| !turn["detected_ms"].is_null() || !turn["detected_far_ms"].is_null();
        let reports = turns.iter().any(knows);
        let mut said = Vec::new();
        for (place, turn) in (0..).zip(turns) {
            let mut turn = turn.clone();
            if kind == CASES {
                let rates = Parameters::deserialize(&record["parameters"])?;
                turn = Sample::deserialize(&turn)?.numbers(&rates);
            }
            // A daemon that reports events and missed this one counts with the time it was watched; one that reports none at
            // all has not failed to detect.
            for key in ["detected_ms", "detected_far_ms"].into_iter().filter(|_| reports) {
                if turn[key].is_null() {
                    turn[key] = turn["watched_ms"].clone();
                }
            }
            let at = turn["repeat"].as_u64().and_then(|turn| u32::try_from(turn).ok()).unwrap_or(place);
            self.numbers(kind, &id, at, "", &turn, start);
            let words = ["object", "kind", "reason"].map(|key| turn[key].as_str().unwrap_or_default());
            said.push(words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "));
        }
        let mut parameters = Map::new();
        for (key, value) in map.iter().filter(|(key, _)| *key != kind.turns && *key != "id") {
            let measured = kind.turns.is_empty() && !matches!(key.as_str(), "seed" | "ageing_s");
            match value {
                Value::Array(list) if WORDS.iter().any(|(known, _)| known == key) => {
                    self.words(kind, &id, key, list, start);
                }
                Value::Object(_) if NOT_NUMBERS.contains(&key.as_str()) => {}
                // Layout 1 kept no more of it than its spread.
                Value::Object(spread) if key == "datagrams_per_s" => {
                    self.numbers(kind, &id, 0, key, &spread["median"], start);
                    let kept = self.measures.iter_mut().rev().find(|measure| measure.metric == *key);
                    kept.into_iter().try_for_each(|kept| {
                        kept.spread = Some(Spread::deserialize(value)?);
                        Ok::<_, serde_json::Error>(())
                    })?;
                }
                Value::Array(list) if MEASURED.contains(&key.as_str()) => {
                    for (turn, value) in (0..).zip(list) {
                        self.numbers(kind, &id, turn, key, value, start);
                    }
                }
                Value::Number(_) | Value::Object(_) if measured || MEASURED.contains(&key.as_str()) => {
                    self.numbers(kind, &id, 0, key, value, start);
                }
                Value::Bool(is) if measured => {
                    self.number(kind, &id, 0, key, f64::from(u8::from(*is)), start)
                }
                Value::Object(inner) => parameters.extend(inner.clone()),
                Value::Number(_) | Value::String(_) | Value::Bool(_) => {
                    parameters.insert(key.clone(), value.clone());
                }
                _ => {}
            }
        }
        self.ratios(&id, record, start);
        self.curves(&id, record);
        let first =
            self.measures[start..].iter().position(|measure| measure.metric == kind.first).unwrap_or(0);
        if let Some(measure) = self.measures.get_mut(start + first) {
            measure.parameters = parameters.into_iter().collect();
            let typed = turns.first().map_or(&record["command"], |turn| &turn["command"]);
            measure.command = typed.as_str().unwrap_or_default().to_owned();
            if said.iter().any(|words| !words.is_empty()) {
                measure.words = said;
            }
        }
        Ok(())
    }

    /// Takes all records of a file of layout 1.
    pub(super) fn take_layout_1(&mut self, file: &Value) -> Result<(), serde_json::Error> {
        for kind in KINDS {
            match &file[kind.key] {
                Value::Array(records) => records.iter().try_for_each(|record| self.take(kind, record))?,
                Value::Null => {}
                record => self.take(kind, record)?,
            }
        }
        Ok(())
    }

    /// All numbers in a value, named by their path.
    fn numbers(&mut self, kind: Kind, id: &str, turn: u32, path: &str, value: &Value, start: usize) {
        let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match value {
            Value::Number(number) => {
                self.number(kind, id, turn, path, number.as_f64().unwrap_or(f64::NAN), start);
            }
            Value::Array(list) => {
                for (place, value) in list.iter().enumerate() {
                    self.numbers(kind, id, turn, &inner(&place.to_string()), value, start);
                }
            }
            Value::Object(map) => {
                for (key, value) in map.iter().filter(|(key, _)| !NOT_NUMBERS.contains(&key.as_str())) {
                    self.numbers(kind, id, turn, &inner(key), value, start);
                }
            }
            _ => {}
        }
    }

    fn number(&mut self, kind: Kind, id: &str, turn: u32, metric: &str, value: f64, start: usize) {
        let (unit, kind) = (unit(metric).into(), kind.key.into());
        self.slot(start, id, metric, || Measure { unit, kind, ..Measure::default() }).add(turn, value);
    }

    /// What is said in words, and how much of it there is.
    fn words(&mut self, kind: Kind, id: &str, key: &str, list: &[Value], start: usize) {
        let what = WORDS.into_iter().find(|(known, _)| *known == key).map_or("", |(_, what)| what);
        for one in list {
            let text = one.as_str().map_or_else(
                || {
                    let words = ["action", "what"].map(|key| one[key].as_str().unwrap_or_default());
                    format!("step {} ({}): {}", one["step"], words[0], words[1])
                },
                |text| format!("{what}: {text}"),
            );
            self.remarks.push(Reason { id: id.into(), reason: text });
        }
        self.number(kind, id, 0, key, list.len() as f64, start);
    }

    fn ratios(&mut self, id: &str, record: &Value, start: usize) {
        for ratio in record["ratios"].as_array().into_iter().flatten() {
            let name = ratio["metric"].as_str().or_else(|| ratio["name"].as_str()).unwrap_or_default();
            let Some((_, metric)) = RATIOS.into_iter().find(|(known, _)| *known == name) else { continue };
            let of = |measure: &&mut Measure| measure.id == id && measure.metric == metric;
            let Some(measure) = self.measures[start..].iter_mut().find(of) else { continue };
            let ratios: Vec<f64> =
                ratio["pairs"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
            let bases = ratio["bases"].as_array().into_iter().flatten();
            measure.against.push(Comparison {
                base: ratio["base"]
                    .as_str()
                    .or_else(|| ratio["name"].as_str())
                    .unwrap_or_default()
                    .to_owned(),
                bases: bases.filter_map(|base| base.as_str().map(ToOwned::to_owned)).collect(),
                ideal: ratio["ideal"].as_f64(),
                ratio: Spread::of(ratios.iter().copied()),
                ratios,
                ..Comparison::default()
            });
        }
    }

    fn curves(&mut self, id: &str, record: &Value) {
        let numbers = |list: &Value| -> Vec<Option<f64>> {
            list.as_array().into_iter().flatten().map(Value::as_f64).collect()
        };
        let xs = |list: &Value| numbers(list).into_iter().flatten().collect();
        let mut curve = |name: &str, x, y| self.curves.push(Curve { id: id.into(), name: name.into(), x, y });
        let trace = &record["trace"];
        if let (Some(from), Some(bin)) = (trace["from_ms"].as_f64(), trace["bin_ms"].as_f64()) {
            let y = numbers(&trace["mbit"]);
            curve("trace", (0..y.len()).map(|i| from + (i as f64 + 0.5) * bin).collect(), y);
        } else if !trace["at_ms"].is_null() {
            curve("trace", xs(&trace["at_ms"]), numbers(&trace["took_us"]));
        }
        if let Some(bars) = record["histogram"].as_array() {
            let up_to = bars.iter().filter_map(|bar| bar["up_to_us"].as_f64()).collect();
            curve("histogram", up_to, bars.iter().map(|bar| bar["count"].as_f64()).collect());
        }
        for trace in record["traces"].as_array().into_iter().flatten() {
            let cut = &record["cuts"][trace["cut"].as_u64().unwrap_or(0) as usize];
            let name =
                format!("{}: {} lost", cut["kind"].as_str().unwrap_or_default(), cut["during"]["lost"]);
            curve(&name, xs(&trace["messages"]["at_ms"]), numbers(&trace["messages"]["took_us"]));
        }
    }
}

/// The unit of a number in a record, as the end of its name says.
fn unit(metric: &str) -> &'static str {
    let ends = [
        ("mbit", "Mbit/s"),
        ("_ms", "ms"),
        ("_us", "us"),
        ("_s", "s"),
        ("_bytes", "bytes"),
        ("_share", "of all"),
    ];
    ends.into_iter().find(|(end, _)| metric.ends_with(end)).map_or("", |(_, unit)| unit)
}
