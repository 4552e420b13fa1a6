//! Failures and changes under traffic, one line a case; and the long run of random ones.

use super::Table;
use crate::report::{Failover, Soak};
use crate::stats::Spread;
use std::fmt::Write;

const HEADINGS: [&str; 9] = [
    "case",
    "times",
    "gap ms (min to max)",
    "before",
    "known ms",
    "back ms",
    "lost",
    "twice",
    "used again ms",
];

/// The failures and changes of a report.
pub(super) fn table(failovers: &[Failover]) -> Table {
    let mut table = Table::new(HEADINGS, &[0], failovers.iter().map(row));
    for failover in failovers {
        let lost = failover.connections_lost.iter();
        table.notes.extend(lost.map(|reason| format!("connection lost: {}: {reason}", failover.id)));
    }
    table
}

fn row(failover: &Failover) -> [String; 9] {
    let medians = &failover.medians;
    let median = |spread: Option<Spread>| {
        spread.map_or_else(|| "-".to_owned(), |spread| format!("{:.0}", spread.median))
    };
    let range = |spread: Option<Spread>| {
        spread.map_or_else(|| "-".to_owned(), |s| format!("{:.0} ({:.0} to {:.0})", s.median, s.min, s.max))
    };
    let sum = |value: &dyn Fn(&crate::report::Incident) -> Option<u64>| {
        let values: Vec<u64> = failover.incidents.iter().filter_map(value).collect();
        if values.is_empty() { "-".to_owned() } else { values.iter().sum::<u64>().to_string() }
    };
    [
        failover.id.clone(),
        failover.incidents.len().to_string(),
        range(medians.gap_ms),
        median(medians.quiet_gap_ms),
        median(medians.detected_ms),
        median(medians.back_ms),
        if medians.return_lost.is_some() { median(medians.lost) } else { sum(&|i| i.lost) },
        sum(&|i| i.duplicated),
        median(medians.used_again_ms),
    ]
}

/// What a soak came to.
pub(super) fn soak(soak: &Soak) -> String {
    let mut out = format!(
        "seed {}: {} steps in {:.0} s; {} exchanges demanded, {} failed; slowest after {:.0} ms\n",
        soak.seed,
        soak.steps,
        soak.seconds,
        soak.demanded,
        soak.broken.len(),
        soak.slowest_ms
    );
    let kinds: Vec<String> = soak.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let _ = writeln!(out, "  {}", kinds.join(", "));
    for broken in &soak.broken {
        let _ = writeln!(out, "  step {} ({}): {}", broken.step, broken.action, broken.what);
    }
    for what in &soak.left_behind {
        let _ = writeln!(out, "  left behind: {what}");
    }
    out
}
