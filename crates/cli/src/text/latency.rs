//! `stats --latency`

use linkbraid_api::LatencyRecord;
use linkbraid_terminal::{Table, human};

/// A table a bond, its classes as titles: microseconds, two stages.
pub fn latency(records: &[LatencyRecord]) -> String {
    if records.is_empty() {
        return "nothing measured yet\n".to_owned();
    }
    let bonds = records.chunk_by(|one, next| one.bond == next.bond);
    bonds.map(bond).collect::<Vec<_>>().join("\n")
}

fn bond(records: &[LatencyRecord]) -> String {
    let mut table = Table::new(
        "  ",
        &["stage", ">frames", ">min", ">mean", ">stddev", ">p50", ">p90", ">p99", ">p99.9", ">max"],
    );
    let mut last = None;
    for record in records {
        if last.replace(&record.class) != Some(&record.class) {
            table.title(&record.class);
        }
        // Where nothing was measured there is no shortest time, not one of 0.
        let time = |ns| if record.count == 0 { "-".to_owned() } else { human::microseconds(ns) };
        table.row([
            record.stage.clone(),
            human::frames(record.count),
            time(record.min_ns),
            time(record.mean_ns),
            time(record.stddev_ns),
            time(record.p50_ns),
            time(record.p90_ns),
            time(record.p99_ns),
            time(record.p999_ns),
            time(record.max_ns),
        ]);
    }
    let name = records.first().map(|record| record.bond.as_str()).unwrap_or_default();
    format!("{name}: time on the way out, in microseconds\n{}", table.render())
}
