//! What each attack came to, without a key and with one.

use super::{ATTACKS, GROWTH_GOAL, JOIN_GOAL_MS, MODES};
use crate::report::Report;
use crate::table::Table;

/// What may have gone wrong: the number, from where on it is wrong, and what to say of it.
const WRONG: [(&str, f64, &str); 6] = [
    ("lanes_lost", 0.0, "lanes lost"),
    ("lost", 0.0, "datagrams lost"),
    ("gateway_lost", 0.0, "lost to the gateway"),
    ("entered", 0.0, "invented hosts entered"),
    ("join_ms", JOIN_GOAL_MS, "ms until a third host was in"),
    ("grown_bytes", GROWTH_GOAL, "bytes grown"),
];

pub(crate) fn tables(report: &Report) -> Vec<Table> {
    let cell = |attack: &str, mode: &str| {
        let id = format!("{mode}/{attack}");
        report.sum(&id, "lost")?;
        let wrong = WRONG.iter().filter_map(|(metric, limit, what)| {
            let value = report.sum(&id, metric).filter(|value| value > limit)?;
            Some(format!("{value:.0} {what}"))
        });
        let wrong: Vec<String> = wrong.collect();
        Some(if wrong.is_empty() { "nothing".to_owned() } else { wrong.join(", ") })
    };
    let rows = ATTACKS.iter().filter_map(|attack| {
        let cells = MODES.map(|mode| cell(attack.name, mode));
        cells.iter().any(Option::is_some).then(|| {
            let cells = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
            [attack.name.to_owned(), attack.about.to_owned()].into_iter().chain(cells).collect()
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let headings = ["attack", "what is sent", "without key", "with key"].map(str::to_owned).to_vec();
    if rows.is_empty() {
        Vec::new()
    } else {
        vec![Table { headings, words: &[0, 1, 2, 3], rows, notes: Vec::new() }]
    }
}
