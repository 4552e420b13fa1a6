//! Many numbers of one thing, and how they become measures.

use super::{Curve, Measure, Report};
use serde_json::Value;

/// A kind of record: its name, and the number of it that has the parameters and the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// What measures say of it.
    pub key: &'static str,
    first: &'static str,
}

const fn kind(key: &'static str, first: &'static str) -> Kind {
    Kind { key, first }
}

/// Goodput by iperf3.
pub const CASES: Kind = kind("cases", "mbit");
/// Failures and changes under traffic.
pub const FAILOVERS: Kind = kind("failovers", "gap_ms");
/// Round trips of small messages beside bulk traffic.
pub const MESSAGES: Kind = kind("messages", "median_us");
/// The same while links are cut.
pub const CUTS: Kind = kind("cuts", "during.lost");
/// A long run of random failures and changes.
pub const SOAK: Kind = kind("soak", "steps");
/// Broadcast and multicast that was sent, and what arrived.
pub const DELIVERIES: Kind = kind("deliveries", "once");
/// What strangers on the switch tried.
pub const HOSTILE: Kind = kind("hostile", "lost");
/// What the switch flooded.
pub const FLOODS: Kind = kind("floods", "frames");

/// Numbers of one thing that belong together. Each is named by its path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// What was measured turn by turn; a `repeat` says which turn it is.
    pub turns: Vec<Value>,
    /// What was measured beside that: once, or as a list with a number a turn.
    pub totals: Value,
    /// How the thing was set up.
    pub parameters: Value,
}

impl Report {
    pub(crate) fn record(&mut self, kind: Kind, id: &str, record: Record) {
        let Record { turns, totals, parameters } = record;
        let start = self.measures.len();
        let mut said = Vec::new();
        for (place, turn) in (0..).zip(&turns) {
            let at = turn["repeat"].as_u64().and_then(|turn| u32::try_from(turn).ok()).unwrap_or(place);
            self.numbers((kind, id, at, start), "", turn);
            let words = ["object", "kind", "reason"].map(|key| turn[key].as_str().unwrap_or_default());
            said.push(words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "));
        }
        for (key, value) in totals.as_object().into_iter().flatten() {
            let list = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
            (0..).zip(list).for_each(|(turn, value)| self.numbers((kind, id, turn, start), key, value));
        }
        let own = &mut self.measures[start..];
        let first = own.iter().position(|measure| measure.metric == kind.first).unwrap_or(0);
        let Some(measure) = own.get_mut(first) else { return };
        let typed = turns.first().map_or(&parameters["command"], |turn| &turn["command"]);
        measure.command = typed.as_str().unwrap_or_default().to_owned();
        measure.parameters = parameters.as_object().cloned().unwrap_or_default().into_iter().collect();
        if said.iter().any(|words| !words.is_empty()) {
            measure.words = said;
        }
    }

    /// All numbers in a value, named by their path. `start` is where measures of this record begin.
    fn numbers(&mut self, of: (Kind, &str, u32, usize), path: &str, value: &Value) {
        let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let value = match value {
            Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
            Value::Bool(is) => f64::from(u8::from(*is)),
            Value::Array(list) => {
                let inside = list.iter().enumerate();
                return inside.for_each(|(place, value)| self.numbers(of, &inner(&place.to_string()), value));
            }
            Value::Object(map) => {
                let inside = map.iter().filter(|(key, _)| *key != "repeat");
                return inside.for_each(|(key, value)| self.numbers(of, &inner(key), value));
            }
            Value::Null | Value::String(_) => return,
        };
        let (kind, id, turn, start) = of;
        let new = || Measure { unit: unit(path).into(), kind: kind.key.into(), ..Measure::default() };
        self.slot(start, id, path, new).add(turn, value);
    }

    pub(crate) fn draw(&mut self, id: &str, name: &str, (x, y): Points) {
        self.curves.push(Curve { id: id.into(), name: name.into(), x, y });
    }
}

/// Where points of a curve are, and their values.
pub type Points = (Vec<f64>, Vec<Option<f64>>);

/// The keys of two objects together.
pub(crate) fn both(mut one: Value, other: Value) -> Value {
    if let (Value::Object(one), Value::Object(other)) = (&mut one, other) {
        one.extend(other);
    }
    one
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
