//! `stats`

use super::Style;
use linkbraid_api::{CounterRecord, StatsRecord};
use linkbraid_terminal::{Align, Table, human};

/// Counters, a table a bond; those at zero only with `all`.
pub fn stats(records: &[StatsRecord], all: bool, _style: &Style) -> String {
    if records.is_empty() {
        return "no bonds\n".to_owned();
    }
    let tables = records.iter().map(|record| counters(&record.bond, &record.counters, all));
    tables.collect::<Vec<_>>().join("\n")
}

/// The counters of one thing.
pub fn counters(name: &str, counters: &[CounterRecord], all: bool) -> String {
    let shown =
        counters.iter().filter(|counter| all || counter.frames > 0 || counter.bytes > 0).collect::<Vec<_>>();
    let hidden = counters.len() - shown.len();
    let mut out = format!("{name}: {}", human::count(counters.len(), "counter"));
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
