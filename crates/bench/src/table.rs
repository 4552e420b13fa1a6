//! The tables of a report: what a terminal shows and what a page shows are the same.

mod fabric;
mod failover;
mod peers;
mod urgent;

use crate::limit;
use crate::report::{Bound, Case, Delivery, Flood, Goal, Report};
use crate::stats::Spread;
use std::fmt::Write;

/// From this busy share of the CPU on, before anything was started, CPU figures say little.
const BUSY: f64 = 0.1;

/// Rows under headings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// What each column is.
    pub headings: Vec<String>,
    /// Columns of words, which stand flush left; those of numbers stand flush right.
    pub words: &'static [usize],
    /// The rows, each with a cell for every heading.
    pub rows: Vec<Vec<String>>,
    /// Lines below it.
    pub notes: Vec<String>,
}

impl Table {
    /// A table of these rows.
    fn new<const N: usize>(
        headings: [&str; N],
        words: &'static [usize],
        rows: impl Iterator<Item = [String; N]>,
    ) -> Self {
        Self {
            headings: headings.map(ToOwned::to_owned).into(),
            words,
            rows: rows.map(Into::into).collect(),
            notes: Vec::new(),
        }
    }

    /// The columns under each other, as a terminal shows them.
    fn text(&self) -> String {
        let all = || std::iter::once(&self.headings).chain(&self.rows);
        let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let mut out = String::new();
        for row in all() {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = if self.words.contains(&column) {
                    write!(line, "{cell:<width$}  ")
                } else {
                    write!(line, "{cell:>width$}  ")
                };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        self.notes.iter().for_each(|note| out.push_str(&format!("{note}\n")));
        out
    }
}

/// The tables that a report has.
pub(crate) fn tables(report: &Report) -> Vec<Table> {
    let mut tables = peers::tables(report);
    if !report.cases.is_empty() {
        tables.push(Table::new(HEADINGS, &[0, 3], report.cases.iter().map(row)));
    }
    if !report.failovers.is_empty() {
        tables.push(failover::table(&report.failovers));
    }
    if !report.messages.is_empty() {
        tables.push(urgent::table(&report.messages));
    }
    if !report.cuts.is_empty() {
        tables.push(urgent::cuts(&report.cuts));
    }
    tables.extend(fabric::tables(report));
    if !report.deliveries.is_empty() {
        tables.push(Table::new(DELIVERY_HEADINGS, &[0, 1, 2], report.deliveries.iter().map(delivery)));
    }
    if !report.floods.is_empty() {
        tables.push(Table::new(FLOOD_HEADINGS, &[0], report.floods.iter().map(flood)));
    }
    tables
}

/// All of a report that fits a terminal: one line a case, then what was left out, then the goals.
pub fn text(report: &Report) -> String {
    let mut out = format!("{}: {}\n{}\n", report.experiment, report.about, report.machine.line());
    if let Some(note) = busy(report) {
        let _ = writeln!(out, "note: {note}");
    }
    for table in tables(report) {
        out.push('\n');
        out.push_str(&table.text());
    }
    for note in notes(report) {
        let _ = writeln!(out, "{note}");
    }
    for (what, reasons) in [("left out", &report.skipped), ("failed", &report.failed)] {
        for reason in reasons {
            let _ = writeln!(out, "{what}: {}: {}", reason.id, reason.reason);
        }
    }
    out.push_str(&goals(report));
    out
}

/// What there is to say beside tables, a line each.
pub(crate) fn notes(report: &Report) -> Vec<String> {
    report
        .soak
        .iter()
        .flat_map(|soak| failover::soak(soak).lines().map(ToOwned::to_owned).collect::<Vec<_>>())
        .chain(peers::notes(report))
        .collect()
}

/// That the machine did other things too, if it did.
pub(crate) fn busy(report: &Report) -> Option<String> {
    let share = report.background_cpu_share;
    (share > BUSY).then(|| {
        format!("the CPU was {:.0} % busy before the run; CPU figures have other work in them", share * 100.0)
    })
}

const HEADINGS: [&str; 9] = [
    "case",
    "Mbit/s (min to max)",
    "of what links allow",
    "ratios",
    "again/10k",
    "TX diff",
    "RX diff",
    "CPU",
    "CPU s/GB",
];
const DELIVERY_HEADINGS: [&str; 7] = ["frames", "from", "to", "sent", "once", "more than once", "never"];
const FLOOD_HEADINGS: [&str; 3] = ["traffic", "frames into the switch", "flooded"];

fn delivery(delivery: &Delivery) -> [String; 7] {
    let Delivery { kind, from, to, sent, once, more, never } = delivery;
    [
        kind.clone(),
        from.clone(),
        to.clone(),
        sent.to_string(),
        once.to_string(),
        more.to_string(),
        never.to_string(),
    ]
}

fn flood(flood: &Flood) -> [String; 3] {
    [flood.traffic.clone(), flood.frames.to_string(), flood.flooded.to_string()]
}

fn row(case: &Case) -> [String; 9] {
    let median = |spread: Option<Spread>, format: fn(f64) -> String| {
        spread.map_or_else(|| "-".to_owned(), |spread| format(spread.median))
    };
    let percent = |x: f64| format!("{:.1} %", x * 100.0);
    let medians = &case.medians;
    let of_limit = limit::goodput_mbit(&case.parameters).zip(medians.mbit).map_or_else(
        || "-".to_owned(),
        |(limit, mbit)| format!("{} of {limit:.1}", percent(mbit.median / limit)),
    );
    let mut ratios: Vec<String> = case
        .ratios
        .iter()
        .filter_map(|ratio| Some(format!("{:.3} {}", ratio.spread?.median, ratio.name)))
        .collect();
    ratios.extend(medians.rival_mbit.map(|rival| format!("rival {:.1} Mbit/s", rival.median)));
    [
        case.id.clone(),
        medians.mbit.map_or_else(String::new, |s| format!("{:.1} ({:.1} to {:.1})", s.median, s.min, s.max)),
        of_limit,
        ratios.join(", "),
        medians.lost_share.map_or_else(
            || median(medians.again_per_10k, |x| format!("{x:.1}")),
            |lost| format!("{} lost", percent(lost.median)),
        ),
        median(medians.tx_imbalance, percent),
        median(medians.rx_imbalance, percent),
        median(medians.cpu_share, |x| format!("{:.0} %", x * 100.0)),
        median(medians.cpu_s_per_gb, |x| format!("{x:.2}")),
    ]
}

fn goals(report: &Report) -> String {
    let met = report.goals.iter().filter(|goal| goal.met == Some(true)).count();
    let mut out = String::new();
    if report.goals.is_empty() {
        return out;
    }
    let _ = writeln!(out, "\ngoals: {met} of {} met", report.goals.len());
    for goal in report.goals.iter().filter(|goal| goal.met != Some(true)) {
        let _ = writeln!(out, "  {}", goal_line(goal));
    }
    out
}

fn goal_line(goal: &Goal) -> String {
    let bound = match goal.bound {
        Bound::AtLeast => "at least",
        Bound::AtMost => "at most",
        Bound::Below => "below",
    };
    let value = goal.value.map_or_else(|| "nothing".to_owned(), |value| format!("{value:.3}"));
    let verdict = match (goal.met, goal.reason.as_str()) {
        (Some(_), _) => "not met".to_owned(),
        (None, reason) => format!("open, {reason}"),
    };
    format!("{verdict}: {}: {value} {}, wanted {bound} {}", goal.case, goal.what, goal.limit)
}

#[cfg(test)]
mod tests;
