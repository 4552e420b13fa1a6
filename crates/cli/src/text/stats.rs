//! `stats`

use super::Style;
use super::human;
use super::table::{Align, Table};
use linkbraid_api::StatsRecord;

/// Counters, a table a bond; those at zero only with `all`.
pub fn stats(records: &[StatsRecord], all: bool, _style: &Style) -> String {
    if records.is_empty() {
        return "no bonds\n".to_owned();
    }
    records.iter().map(|record| bond(record, all)).collect::<Vec<_>>().join("\n")
}

fn bond(record: &StatsRecord, all: bool) -> String {
    let shown = record
        .counters
        .iter()
        .filter(|counter| all || counter.frames > 0 || counter.bytes > 0)
        .collect::<Vec<_>>();
    let hidden = record.counters.len() - shown.len();
    let mut out = format!("{}: {}", record.bond, human::count(record.counters.len(), "counter"));
    if hidden > 0 {
        out.push_str(&format!(", {hidden} at zero (--all shows them)"));
    }
    out.push('\n');
    if shown.is_empty() {
        return out;
    }
    let mut table = Table::new(
        "  ",
        &[
            ("no", Align::Right),
            ("verdict", Align::Left),
            ("name", Align::Left),
            ("frames", Align::Right),
            ("bytes", Align::Right),
            ("description", Align::Left),
        ],
    );
    for counter in shown {
        table.row([
            counter.number.to_string(),
            counter.verdict.clone(),
            counter.name.clone(),
            counter.frames.to_string(),
            if counter.bytes == 0 { String::new() } else { human::bytes(counter.bytes) },
            counter.description.clone(),
        ]);
    }
    out + &table.render()
}
