//! The one kind of result: a number of a thing, measured several times, and beside what.

use crate::stats::Spread;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One number of one thing, measured several times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measure {
    /// What was measured, as `STAGE/.../SUBJECT`.
    pub id: String,
    /// Which number of it: one thing may have several.
    pub metric: String,
    /// The unit of its values.
    pub unit: String,
    /// The kind of record it was taken from, where one record has many numbers; see [`Kind`](super::Kind).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Payload bytes of each message, where there are messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What was typed, or done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// How the thing was set up; of a record's numbers the first one has it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// What was said of each turn, where words were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// The turn of each value: values of one turn belong together.
    pub turns: Vec<u32>,
    /// What came out each time.
    pub values: Vec<f64>,
    /// The middle of that.
    pub spread: Option<Spread>,
    /// It beside others, turn by turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Comparison>,
}

/// A measure beside another one, or beside the sum of several.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Comparison {
    /// The other one's name, or the name of the comparison where there are `bases`.
    pub base: String,
    /// Those whose sum it was compared with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<String>,
    /// What a perfect bond would reach, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ideal: Option<f64>,
    /// It over the other, one a turn.
    pub ratios: Vec<f64>,
    /// The middle of them.
    pub ratio: Option<Spread>,
    /// It less the other, one a turn, in the measure's unit.
    pub differences: Vec<f64>,
    /// The middle of them.
    pub difference: Option<Spread>,
}

impl Measure {
    pub(crate) fn add(&mut self, turn: u32, value: f64) {
        self.turns.push(turn);
        self.values.push(value);
        self.spread = Spread::of(self.values.iter().copied());
    }

    pub(crate) fn at(&self, turn: u32) -> Option<f64> {
        self.turns.iter().position(|at| *at == turn).and_then(|index| self.values.get(index).copied())
    }

    /// What it is beside another one.
    pub fn beside(&self, base: &str) -> Option<&Comparison> {
        self.against.iter().find(|comparison| comparison.base == base)
    }

    /// Adds how it is beside the sum of others, in each turn that all of them have, if there is one.
    pub(crate) fn compare_sum(&mut self, name: &str, bases: &[&Self]) -> Option<&mut Comparison> {
        let sum = |turn: u32| bases.iter().map(|base| base.at(turn)).sum::<Option<f64>>();
        let values = self.turns.iter().zip(&self.values);
        let pairs: Vec<(f64, f64)> = values.filter_map(|(turn, value)| Some((*value, sum(*turn)?))).collect();
        if pairs.is_empty() {
            return None;
        }
        let ratios: Vec<f64> = pairs.iter().filter(|(_, b)| *b > 0.0).map(|(a, b)| a / b).collect();
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
        self.against.push(Comparison {
            base: name.into(),
            ratio: Spread::of(ratios.iter().copied()),
            ratios,
            difference: Spread::of(differences.iter().copied()),
            differences,
            ..Comparison::default()
        });
        self.against.last_mut()
    }
}
