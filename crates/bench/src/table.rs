//! A report for people at a terminal.

mod failover;
mod urgent;

use crate::report::{Bound, Case, Goal, Report};
use crate::stats::Spread;
use std::fmt::Write;

/// From this busy share of the CPU on, before anything was started, CPU figures say little.
const BUSY: f64 = 0.1;

/// All of a report that fits a terminal: one line a case, then what was left out, then the goals.
pub fn text(report: &Report) -> String {
    let mut out = format!("{}: {}\n{}\n", report.experiment, report.about, report.machine.line());
    if report.background_cpu_share > BUSY {
        let _ = writeln!(
            out,
            "note: the CPU was {:.0} % busy before the run; CPU figures have other work in them",
            report.background_cpu_share * 100.0
        );
    }
    if !report.cases.is_empty() {
        out.push('\n');
        out.push_str(&cases(report));
    }
    if !report.failovers.is_empty() {
        out.push('\n');
        out.push_str(&failover::text(&report.failovers));
    }
    if let Some(soak) = &report.soak {
        out.push('\n');
        out.push_str(&failover::soak(soak));
    }
    if !report.messages.is_empty() {
        out.push('\n');
        out.push_str(&urgent::text(&report.messages));
    }
    if !report.cuts.is_empty() {
        out.push('\n');
        out.push_str(&urgent::cuts(&report.cuts));
    }
    for delivery in &report.deliveries {
        let way = format!("{} {} -> {}", delivery.kind, delivery.from, delivery.to);
        let _ = writeln!(
            out,
            "{way:<28} {} sent, {} once, {} more than once, {} never",
            delivery.sent, delivery.once, delivery.more, delivery.never
        );
    }
    for flood in &report.floods {
        let _ = writeln!(
            out,
            "{:<28} {} frames into the switch, {} flooded",
            flood.traffic, flood.frames, flood.flooded
        );
    }
    for (what, reasons) in [("left out", &report.skipped), ("failed", &report.failed)] {
        for reason in reasons {
            let _ = writeln!(out, "{what}: {}: {}", reason.id, reason.reason);
        }
    }
    out.push_str(&goals(report));
    out
}

const HEADINGS: [&str; 8] =
    ["case", "Mbit/s (min to max)", "ratios", "again/10k", "TX diff", "RX diff", "CPU", "CPU s/GB"];

fn cases(report: &Report) -> String {
    let mut rows = vec![HEADINGS.map(ToOwned::to_owned)];
    rows.extend(report.cases.iter().map(row));
    // Words to the left, numbers to the right.
    aligned(&rows, &[0, 2])
}

/// Rows under each other; the columns named are flush left, the others flush right.
fn aligned<const N: usize>(rows: &[[String; N]], left: &[usize]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if left.contains(&column) {
                write!(line, "{cell:<width$}  ")
            } else {
                write!(line, "{cell:>width$}  ")
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn row(case: &Case) -> [String; 8] {
    let median = |spread: Option<Spread>, format: fn(f64) -> String| {
        spread.map_or_else(|| "-".to_owned(), |spread| format(spread.median))
    };
    let percent = |x: f64| format!("{:.1} %", x * 100.0);
    let medians = &case.medians;
    let mut ratios: Vec<String> = case
        .ratios
        .iter()
        .filter_map(|ratio| Some(format!("{:.3} {}", ratio.spread?.median, ratio.name)))
        .collect();
    ratios.extend(medians.rival_mbit.map(|rival| format!("rival {:.1} Mbit/s", rival.median)));
    [
        case.id.clone(),
        medians.mbit.map_or_else(String::new, |s| format!("{:.1} ({:.1} to {:.1})", s.median, s.min, s.max)),
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
