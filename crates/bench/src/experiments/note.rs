//! Notes numbers in the report, turn by turn.

use crate::report::{Goal, Measure};
use crate::run::Run;
use crate::stats::Spread;

/// A number of something: its name, which number of it, and the unit.
#[derive(Debug, Clone, Copy)]
pub(in crate::experiments) struct What<'a> {
    pub id: &'a str,
    pub metric: &'a str,
    pub unit: &'a str,
}

/// Adds the value of a turn to a measure, which is made if it is the first.
pub(super) fn value(run: &mut Run<'_>, what: What<'_>, command: &str, turn: u32, value: f64) {
    let measures = &mut run.report.measures;
    let found = measures.iter().position(|m| m.id == what.id && m.metric == what.metric);
    let index = found.unwrap_or_else(|| {
        measures.push(Measure {
            id: what.id.into(),
            metric: what.metric.into(),
            unit: what.unit.into(),
            command: command.into(),
            ..Measure::default()
        });
        measures.len() - 1
    });
    let measure = &mut measures[index];
    measure.turns.push(turn);
    measure.values.push(value);
    measure.spread = Spread::of(measure.values.iter().copied());
}

/// Says how many bytes the messages of a measure have.
pub(super) fn bytes(run: &mut Run<'_>, id: &str, bytes: usize) {
    for measure in run.report.measures.iter_mut().filter(|measure| measure.id == id) {
        measure.bytes = Some(bytes as u64);
    }
}

/// Puts a measure beside another one, if both were taken.
pub(super) fn compare(run: &mut Run<'_>, id: &str, base: &str, metric: &str) {
    let Some(base) = run.report.measure(base, metric).cloned() else { return };
    let found = run.report.measures.iter_mut().find(|m| m.id == id && m.metric == metric);
    if let Some(measure) = found {
        measure.compare(&base);
    }
}

/// The median ratio of a measure to another one.
pub(super) fn ratio(run: &Run<'_>, id: &str, base: &str, metric: &str) -> Option<f64> {
    Some(run.report.measure(id, metric)?.beside(base)?.ratio?.median)
}

/// The median of a measure.
pub(super) fn median(run: &Run<'_>, id: &str, metric: &str) -> Option<f64> {
    Some(run.report.measure(id, metric)?.spread?.median)
}

/// The largest value of a measure.
pub(super) fn largest(run: &Run<'_>, id: &str, metric: &str) -> Option<f64> {
    Some(run.report.measure(id, metric)?.spread?.max)
}

/// Adds a goal whose case was tried: one that was left out with a reason has none.
pub(super) fn goal(run: &mut Run<'_>, goal: Goal) {
    let left_out = run.report.skipped.iter().any(|reason| goal.case.starts_with(&reason.id));
    if !left_out {
        run.goal(goal);
    }
}
