//! Round trips of messages, one line a case; and what cuts did to them.

use super::Table;
use crate::report::{Cut, CutCase, MessageCase, MessageRatio, Outcome};
use crate::stats::Spread;

const HEADINGS: [&str; 8] =
    ["case", "queue", "median us (min to max)", "99 % us", "max us", "lost", "ratios to", "bulk Mbit/s"];

/// Round trips in each scenario.
pub(super) fn table(cases: &[MessageCase]) -> Table {
    let mut table = Table::new(HEADINGS, &[0, 1, 6], cases.iter().map(row));
    table.notes.extend(cases.first().map(|first| {
        let settings = &first.messages;
        let run = if settings.real_time { "real-time threads" } else { "ordinary threads" };
        format!(
            "messages of {} bytes, one each {:.0} us, sent and answered by {run}",
            settings.bytes, settings.period_us
        )
    }));
    table
}

fn row(case: &MessageCase) -> [String; 8] {
    let medians = &case.medians;
    let number =
        |spread: Option<Spread>| spread.map_or_else(|| "-".to_owned(), |s| format!("{:.0}", s.median));
    let range = |spread: Option<Spread>| {
        spread.map_or_else(String::new, |s| format!("{:.0} ({:.0} to {:.0})", s.median, s.min, s.max))
    };
    let ratios: Vec<String> = case.ratios.iter().filter_map(|one| ratio(case, one)).collect();
    let longest = medians.max_us.map(|spread| Spread::one(spread.max));
    let lost: u64 = case.samples.iter().map(|sample| sample.lost).sum();
    [
        case.id.clone(),
        case.queue.clone(),
        range(medians.median_us),
        number(medians.p99_us),
        number(longest),
        lost.to_string(),
        ratios.join(", "),
        medians.bulk_mbit.map_or_else(|| "-".to_owned(), |bulk| format!("{:.1}", bulk.median)),
    ]
}

/// One ratio in few words; percentiles only of the case that is judged by them.
fn ratio(case: &MessageCase, ratio: &MessageRatio) -> Option<String> {
    let value = ratio.spread?.median;
    let base = ratio.base.rsplit('/').next().unwrap_or_default();
    match ratio.name.as_str() {
        "bulk" => Some(format!("{value:.2} links")),
        "p99" => (case.scenario == "two").then(|| format!("99 % {value:.2} {base}")),
        _ => Some(format!("{value:.2} {base}")),
    }
}

const CUT_HEADINGS: [&str; 9] = [
    "case",
    "cuts",
    "normal us",
    "late from us",
    "lost",
    "late",
    "before: lost, late",
    "as it came back",
    "twice",
];

/// What cuts did.
pub(super) fn cuts(cases: &[CutCase]) -> Table {
    Table::new(CUT_HEADINGS, &[0], cases.iter().map(cut_row))
}

fn cut_row(case: &CutCase) -> [String; 9] {
    let sum = |pick: fn(&Cut) -> &Outcome, value: fn(&Outcome) -> u64| case.sum(|cut| value(pick(cut)));
    let both = |pick: fn(&Cut) -> &Outcome| {
        format!("{}, {} of {}", sum(pick, |o| o.lost), sum(pick, |o| o.late), sum(pick, |o| o.sent))
    };
    let during = |value| sum(|cut| &cut.during, value);
    [
        case.id.clone(),
        case.cuts.len().to_string(),
        format!("{:.0}", case.normal_us),
        format!("{:.0}", case.late_us),
        format!("{} of {}", during(|o| o.lost), during(|o| o.sent)),
        during(|o| o.late).to_string(),
        both(|cut| &cut.before),
        both(|cut| &cut.after),
        case.twice.to_string(),
    ]
}
