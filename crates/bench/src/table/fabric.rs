//! What was measured of a fabric: a line a thing, and of messages a line a network.

use super::Table;
use crate::report::{Measure, Report};
use crate::stats::Spread;
use std::fmt::Write;

/// The sizes of messages that fit a line.
const SIZES: [u64; 5] = [1, 64, 1024, 8192, 65_536];
/// The same of tokens.
const TOKEN_SIZES: [u64; 5] = [4, 64, 512, 2048, 8192];
/// The same between two guests.
const GUEST_SIZES: [u64; 5] = [64, 512, 1024, 8192, 65_000];
/// Metrics that stand in the file only.
const FILE_ONLY: [&str; 9] = [
    "half_min_us",
    "half_p90_us",
    "rounds",
    "again_per_10k",
    "kills",
    "off",
    "file_kib",
    "twice",
    "cpu_share",
];
/// Metrics of what is no fabric, and has a table of its own.
const ELSEWHERE: [&str; 4] = ["stall_ms", "quiet_ms", "left_share", "pings_lost"];

pub(super) fn tables(report: &Report) -> Vec<Table> {
    let sized = [
        ("half_us", "RTT/2, median, us", SIZES),
        ("half_p99_us", "RTT/2, 99th percentile, us", SIZES),
        ("mbit", "one message at a time, Mbit/s", SIZES),
        ("token_mbyte", "tokens of all pairs, MB/s", TOKEN_SIZES),
        ("guest_half_us", "RTT/2, emulated processors, us", GUEST_SIZES),
        ("guest_mbit", "one way, emulated processors, Mbit/s", GUEST_SIZES),
    ];
    let sized = sized.into_iter().filter_map(|(metric, title, sizes)| {
        let measures = report.measures.iter().filter(|m| m.metric == metric && m.bytes.is_some());
        let mut names: Vec<&str> = Vec::new();
        for name in measures.filter_map(|m| m.id.rsplit_once('/').map(|(name, _)| name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let names = names.into_iter().map(|name| (name.to_owned(), name));
        let sizes = sizes.map(|bytes| (format!("{bytes} B"), bytes));
        Table::matrix(title, names, sizes, true, |name, bytes| {
            report.median(&format!("{name}/{bytes}"), metric).map(number)
        })
    });
    let is_shown = |m: &&Measure| {
        let metric = m.metric.as_str();
        m.kind.is_empty() && m.bytes.is_none() && !FILE_ONLY.contains(&metric) && !ELSEWHERE.contains(&metric)
    };
    let rows: Vec<_> = report.measures.iter().filter(is_shown).map(|measure| row(measure).into()).collect();
    let headings = ["measure", "what", "median (min to max)", "unit", "beside"].map(ToOwned::to_owned).into();
    let others =
        (!rows.is_empty()).then_some(Table { headings, words: &[0, 1, 3, 4], rows, notes: Vec::new() });
    sized.chain(others).collect()
}

fn row(measure: &Measure) -> [String; 5] {
    let beside: Vec<String> = measure
        .against
        .iter()
        .filter_map(|comparison| {
            let base = comparison.base.split('/').nth(1).unwrap_or(&comparison.base);
            Some(format!("{:.3} of {base}", comparison.ratio?.median))
        })
        .collect();
    [
        measure.id.clone(),
        measure.metric.clone(),
        measure.spread.map_or_else(String::new, range),
        measure.unit.clone(),
        beside.join(", "),
    ]
}

fn range(spread: Spread) -> String {
    let mut text = number(spread.median);
    if spread.max > spread.min {
        let _ = write!(text, " ({} to {})", number(spread.min), number(spread.max));
    }
    text
}

/// Three digits that matter.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
