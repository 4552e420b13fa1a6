//! `stats`

use super::each;
use linkbraid_api::{CounterRecord, StatsRecord};
use linkbraid_terminal::{Table, human};

/// Counters, a table a bond; those at zero only with `all`.
pub fn stats(records: &[StatsRecord], all: bool) -> String {
    each(records, "no bonds", |record| counters(&record.bond, &record.counters, all))
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
    let mut table = Table::new("  ", &[">no", "verdict", "name", ">frames", ">bytes", "description"]);
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
