//! What was measured of a fabric, one number a turn, and beside what.

use crate::stats::Spread;
use serde::{Deserialize, Serialize};

/// One number of one thing, measured several times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// What was measured, as `STAGE/.../SUBJECT`.
    pub id: String,
    /// Which number of it: one thing may have several.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Payload bytes of each message, where there are messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What was typed, or done.
    pub command: String,
    /// The turn of each value: values of one turn belong together.
    pub turns: Vec<u32>,
    /// What came out each time.
    pub values: Vec<f64>,
    /// The middle of that.
    pub spread: Option<Spread>,
    /// It beside others, turn by turn.
    pub against: Vec<Comparison>,
}

/// A measure beside another one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The other one's name.
    pub base: String,
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
    /// The value of a turn.
    pub fn at(&self, turn: u32) -> Option<f64> {
        self.turns.iter().position(|at| *at == turn).and_then(|index| self.values.get(index).copied())
    }

    /// What it is beside another one.
    pub fn beside(&self, base: &str) -> Option<&Comparison> {
        self.against.iter().find(|comparison| comparison.base == base)
    }

    /// Adds how it is beside another one, if they have a turn in common.
    pub fn compare(&mut self, base: &Self) {
        let pairs: Vec<(f64, f64)> = self
            .turns
            .iter()
            .zip(&self.values)
            .filter_map(|(turn, value)| Some((*value, base.at(*turn)?)))
            .collect();
        if pairs.is_empty() {
            return;
        }
        let ratios: Vec<f64> = pairs.iter().filter(|(_, b)| *b > 0.0).map(|(a, b)| a / b).collect();
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
        self.against.push(Comparison {
            base: base.id.clone(),
            ratio: Spread::of(ratios.iter().copied()),
            ratios,
            difference: Spread::of(differences.iter().copied()),
            differences,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(id: &str, turns: &[u32], values: &[f64]) -> Measure {
        Measure { id: id.into(), turns: turns.into(), values: values.into(), ..Measure::default() }
    }

    #[test]
    fn only_values_of_one_turn_are_compared() {
        let base = measure("veth", &[0, 2], &[10.0, 40.0]);
        let mut other = measure("shm", &[0, 1, 2], &[20.0, 1.0, 60.0]);
        other.compare(&base);
        let beside = other.beside("veth").expect("compared");
        assert_eq!(beside.ratios, [2.0, 1.5]);
        assert_eq!(beside.differences, [10.0, 20.0]);
        assert_eq!(beside.ratio.map(|ratio| ratio.median), Some(1.75));
        other.compare(&measure("late", &[7], &[1.0]));
        assert_eq!(other.beside("late"), None);
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        let mut idle = measure("idle", &[0], &[1.0]);
        idle.compare(&measure("none", &[0], &[0.0]));
        let beside = idle.beside("none").expect("compared");
        assert_eq!((beside.ratio, beside.differences.as_slice()), (None, &[1.0][..]));
    }
}
