//! The tables of a report: what a terminal shows and what a page shows are the same.

mod fabric;
mod peers;

pub(crate) use fabric::number;

use crate::experiments::hostile;
use crate::report::{
    CASES, CUTS, DELIVERIES, FAILOVERS, FLOODS, Goal, HOSTILE, Kind, MESSAGES, Report, SOAK,
};
use crate::stats::Spread;
use linkbraid_lab::stolen;
use std::fmt::Write;

/// From this busy share of the CPU on, before anything was started, CPU figures say little.
const BUSY: f64 = 0.1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub headings: Vec<String>,
    /// Columns of words, which stand flush left; those of numbers stand flush right.
    pub words: &'static [usize],
    /// The rows, each with a cell for every heading.
    pub rows: Vec<Vec<String>>,
    pub notes: Vec<String>,
}

impl Table {
    /// A table of things, by their names: a column for each heading. Of what was not measured there is no line and no column,
    /// unless all are wanted; without a line there is no table.
    fn matrix<R, C>(
        name: &str,
        things: impl IntoIterator<Item = (String, R)>,
        columns: impl IntoIterator<Item = (String, C)>,
        all: bool,
        cell: impl Fn(&R, &C) -> Option<String>,
    ) -> Option<Self> {
        let (mut headings, columns): (Vec<String>, Vec<C>) = columns.into_iter().unzip();
        let cells = |(name, thing): (String, R)| {
            let cells: Vec<_> = columns.iter().map(|column| cell(&thing, column)).collect();
            (all || cells.iter().any(Option::is_some)).then_some((name, cells))
        };
        let rows: Vec<(String, Vec<Option<String>>)> = things.into_iter().filter_map(cells).collect();
        let kept = |column: &usize| all || rows.iter().any(|(_, cells)| cells[*column].is_some());
        let kept: Vec<usize> = (0..columns.len()).filter(kept).collect();
        headings = kept.iter().map(|column| headings[*column].clone()).collect();
        headings.insert(0, name.to_owned());
        let row = |(name, cells): &(String, Vec<Option<String>>)| {
            let cells = kept.iter().map(|column| self::cell(cells[*column].as_ref(), String::clone));
            [name.clone()].into_iter().chain(cells).collect()
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        (!rows.is_empty()).then_some(Self { headings, words: &[0], rows, notes: Vec::new() })
    }

    /// The same with a line below it.
    fn noted(mut self, note: String) -> Self {
        self.notes.push(note);
        self
    }

    /// The columns under each other, as a terminal shows them.
    fn text(&self) -> String {
        let name = |(column, heading): (usize, &String)| {
            if self.words.contains(&column) { heading.clone() } else { format!(">{heading}") }
        };
        let names: Vec<String> = self.headings.iter().enumerate().map(name).collect();
        let mut table = linkbraid_terminal::Table::new("", &names.iter().map(|n| &n[..]).collect::<Vec<_>>());
        self.rows.iter().for_each(|row| table.row(row.iter().cloned()));
        self.notes.iter().fold(table.render(), |text, note| text + note + "\n")
    }
}

pub(crate) fn tables(report: &Report) -> Vec<Table> {
    let of = |records_of: &[Records]| -> Vec<Table> {
        records_of.iter().filter_map(|spec| records(report, spec)).collect()
    };
    let own = [hostile::tables(report), fabric::tables(report)].concat();
    let all = [peers::tables(report), of(&RECORDS), own, of(&LAST_RECORDS)];
    all.into_iter().flatten().collect()
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
    let remarks = report.remarks.iter().map(|remark| format!("{}: {}", remark.id, remark.reason));
    soak(report).into_iter().chain(remarks).chain(peers::notes(report)).collect()
}

/// That the machine did other things too, or stood still for others, if it did.
pub(crate) fn busy(report: &Report) -> Option<String> {
    let share = report.background_cpu_share;
    let busy = (share > BUSY).then(|| {
        format!("the CPU was {:.0} % busy before the run; CPU figures have other work in them", share * 100.0)
    });
    let stolen = report.measures.iter().filter(|measure| measure.metric == "stolen_share");
    let stolen = stolen::remark(stolen.flat_map(|measure| &measure.values).copied().fold(0.0, f64::max));
    let stolen = stolen.map(|remark| format!("in one case, {remark}"));
    let notes: Vec<String> = busy.into_iter().chain(stolen).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// A column: its heading, and the cell of a thing.
type Column = (&'static str, fn(&Report, &str) -> String);

/// A table with a line for each record of a kind.
struct Records {
    kind: Kind,
    words: &'static [usize],
    columns: &'static [Column],
}

const RECORDS: [Records; 4] = [
    Records {
        kind: CASES,
        words: &[0, 3],
        columns: &[
            ("case", |_, id| id.to_owned()),
            ("Mbit/s (min to max)", |r, id| cell(r.spread(id, "mbit"), |s| range(s, one_digit))),
            ("median second", |r, id| cell(r.median(id, "median_second_mbit"), one_digit)),
            ("of what links allow", |r, id| {
                let of = r.median(id, "mbit").zip(r.median(id, "of_limit"));
                cell(of, |(mbit, of)| format!("{} of {:.1}", percent(of), mbit / of))
            }),
            ("ratios", |r, id| {
                let mut ratios = ratios(r, id, |base, ratio| Some(format!("{ratio:.3} {base}")));
                ratios.extend(r.median(id, "rival_mbit").map(|mbit| format!("rival {mbit:.1} Mbit/s")));
                ratios.join(", ")
            }),
            ("again/10k", |r, id| match r.median(id, "lost_share") {
                Some(lost) => format!("{} lost", percent(lost)),
                None => cell(r.median(id, "again_per_10k"), one_digit),
            }),
            ("TX diff", |r, id| cell(r.median(id, "tx_imbalance"), percent)),
            ("RX diff", |r, id| cell(r.median(id, "rx_imbalance"), percent)),
            ("CPU", |r, id| cell(r.median(id, "cpu_share"), |share| format!("{:.0} %", share * 100.0))),
            ("CPU s/GB", |r, id| cell(r.median(id, "cpu_s_per_gb"), |value| format!("{value:.2}"))),
        ],
    },
    Records {
        kind: FAILOVERS,
        words: &[0],
        columns: &[
            ("case", |_, id| id.to_owned()),
            ("times", |r, id| count(r, id, "gap_ms")),
            ("gap ms (min to max)", |r, id| cell(r.spread(id, "gap_ms"), |s| range(s, whole))),
            ("before", |r, id| cell(r.median(id, "quiet_gap_ms"), whole)),
            ("known ms", |r, id| cell(r.median(id, "detected_ms"), whole)),
            ("back ms", |r, id| cell(r.median(id, "back_ms"), whole)),
            ("lost", |r, id| match r.measure(id, "restored.lost") {
                Some(_) => cell(r.median(id, "lost"), whole),
                None => cell(r.sum(id, "lost"), whole),
            }),
            ("twice", |r, id| cell(r.sum(id, "duplicated"), whole)),
            ("used again ms", |r, id| cell(r.median(id, "restored.used_ms"), whole)),
        ],
    },
    Records {
        kind: MESSAGES,
        words: &[0, 1, 6],
        columns: &[
            ("case", |_, id| id.to_owned()),
            ("queue", |r, id| r.word(id, "queue").to_owned()),
            ("median us (min to max)", |r, id| cell(r.spread(id, "median_us"), |s| range(s, whole))),
            ("99 % us", |r, id| cell(r.median(id, "p99_us"), whole)),
            ("max us", |r, id| cell(r.spread(id, "max_us"), |longest| whole(longest.max))),
            ("lost", |r, id| cell(r.sum(id, "lost"), whole)),
            ("ratios to", message_ratios),
            ("bulk Mbit/s", |r, id| cell(r.median(id, "bulk.mbit"), one_digit)),
        ],
    },
    Records {
        kind: CUTS,
        words: &[0],
        columns: &[
            ("case", |_, id| id.to_owned()),
            ("cuts", |r, id| count(r, id, "during.lost")),
            ("normal us", |r, id| cell(r.median(id, "normal_us"), whole)),
            ("late from us", |r, id| cell(r.median(id, "late_us"), whole)),
            ("lost", |r, id| format!("{} of {}", total(r, id, "during.lost"), total(r, id, "during.sent"))),
            ("late", |r, id| total(r, id, "during.late")),
            ("before: lost, late", |r, id| lost_and_late(r, id, "before")),
            ("as it came back", |r, id| lost_and_late(r, id, "after")),
            ("twice", |r, id| total(r, id, "twice")),
        ],
    },
];

/// Those that come after what was measured otherwise.
const LAST_RECORDS: [Records; 3] = [
    Records {
        kind: DELIVERIES,
        words: &[0, 1, 2],
        columns: &[
            ("frames", |r, id| r.word(id, "kind").to_owned()),
            ("from", |r, id| r.word(id, "from").to_owned()),
            ("to", |r, id| r.word(id, "to").to_owned()),
            ("sent", |r, id| total(r, id, "sent")),
            ("once", |r, id| total(r, id, "once")),
            ("more than once", |r, id| total(r, id, "more")),
            ("never", |r, id| total(r, id, "never")),
        ],
    },
    Records {
        kind: HOSTILE,
        words: &[0],
        columns: &[
            ("case", |_, id| id.to_owned()),
            ("frames a second", |r, id| total(r, id, "frames_a_second")),
            ("lanes lost", |r, id| total(r, id, "lanes_lost")),
            ("lost", |r, id| format!("{} of {}", total(r, id, "lost"), total(r, id, "sent"))),
            ("to gateway", |r, id| total(r, id, "gateway_lost")),
            ("entered", |r, id| total(r, id, "entered")),
            ("joined ms", |r, id| total(r, id, "join_ms")),
            ("as before ms", |r, id| total(r, id, "again_ms")),
            ("log lines", |r, id| total(r, id, "lines")),
            ("CPU %", |r, id| total(r, id, "cpu_percent")),
            ("grown KiB", |r, id| whole(r.sum(id, "grown_bytes").unwrap_or(0.0) / 1024.0)),
        ],
    },
    Records {
        kind: FLOODS,
        words: &[0],
        columns: &[
            ("traffic", |_, id| id.to_owned()),
            ("frames into the switch", |r, id| total(r, id, "frames")),
            ("flooded", |r, id| total(r, id, "flooded")),
        ],
    },
];

fn records(report: &Report, Records { kind, words, columns }: &Records) -> Option<Table> {
    let ids = report.ids(*kind);
    let first = *ids.first()?;
    Some(Table {
        headings: columns.iter().map(|(heading, _)| (*heading).to_owned()).collect(),
        words,
        rows: ids.iter().map(|id| columns.iter().map(|(_, cell)| cell(report, id)).collect()).collect(),
        notes: match *kind == MESSAGES {
            true => messages(report, first)
                .into_iter()
                .chain(ids.iter().filter_map(|id| stages(report, id)))
                .collect(),
            false => Vec::new(),
        },
    })
}

/// Where frames of a case spent their time on the way out.
fn stages(report: &Report, id: &str) -> Option<String> {
    let stage = |stage: &str| {
        let of = |figure: &str| report.median(id, &format!("stages.{stage}.{figure}_us"));
        let (mean, stddev) = (of("mean")?, of("stddev")?);
        Some(format!("{mean:.1} us (deviation {stddev:.1}, {:.1} to {:.1})", of("min")?, of("max")?))
    };
    let [application, driver, total] = ["application", "driver", "total"].map(stage);
    Some(format!(
        "{id}: application to bond {}, bond to NIC {}, application to NIC {}",
        application?, driver?, total?
    ))
}

/// What was sent, where messages were.
fn messages(report: &Report, id: &str) -> Option<String> {
    let real_time = report.parameter(id, "real_time")?.as_bool()?;
    Some(format!(
        "messages of {} bytes, one each {:.0} us, sent and answered by {}",
        report.parameter(id, "bytes")?,
        report.parameter(id, "period_us")?.as_f64()?,
        if real_time { "real-time threads" } else { "ordinary threads" },
    ))
}

/// A cell, or a dash where nothing was measured.
fn cell<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

fn one_digit(value: f64) -> String {
    format!("{value:.1}")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `140 (120 to 150)`.
fn range(spread: Spread, text: impl Fn(f64) -> String) -> String {
    format!("{} ({} to {})", text(spread.median), text(spread.min), text(spread.max))
}

fn count(report: &Report, id: &str, metric: &str) -> String {
    report.measure(id, metric).map_or(0, |measure| measure.values.len()).to_string()
}

fn total(report: &Report, id: &str, metric: &str) -> String {
    whole(report.sum(id, metric).unwrap_or(0.0))
}

fn lost_and_late(report: &Report, id: &str, when: &str) -> String {
    let [lost, late, sent] =
        ["lost", "late", "sent"].map(|what| total(report, id, &format!("{when}.{what}")));
    format!("{lost}, {late} of {sent}")
}

/// Each ratio of a thing in words.
fn ratios(report: &Report, id: &str, text: impl Fn(&str, f64) -> Option<String>) -> Vec<String> {
    let of_thing = report.measures.iter().filter(|measure| measure.id == id && !measure.kind.is_empty());
    let all = of_thing.flat_map(|measure| &measure.against);
    all.filter_map(|beside| text(&beside.base, beside.ratio?.median)).collect()
}

/// Percentiles only of the case that is judged by them.
fn message_ratios(report: &Report, id: &str) -> String {
    let short = |base: &str| base.rsplit('/').next().unwrap_or_default().to_owned();
    let of = |metric: &str, text: &dyn Fn(&str, f64) -> String| {
        let against = report.measure(id, metric).map(|measure| &measure.against).into_iter().flatten();
        against
            .filter_map(|beside| Some(text(&short(&beside.base), beside.ratio?.median)))
            .collect::<Vec<_>>()
    };
    let mut all = of("median_us", &|base, ratio| format!("{ratio:.2} {base}"));
    if report.word(id, "scenario") == "two" {
        all.extend(of("p99_us", &|base, ratio| format!("99 % {ratio:.2} {base}")));
    }
    all.extend(of("bulk.mbit", &|_, ratio| format!("{ratio:.2} links")));
    all.join(", ")
}

/// Sums of the long run of random failures, if there was one.
fn soak(report: &Report) -> Vec<String> {
    let number = |metric: &str| total(report, "soak", metric);
    if report.ids(SOAK).is_empty() {
        return Vec::new();
    }
    let kinds = report.measures.iter().filter_map(|measure| {
        Some(format!("{} {}", number(&measure.metric), measure.metric.strip_prefix("kinds.")?))
    });
    vec![
        format!(
            "seed {}: {} steps in {} s; {} exchanges demanded, {} failed; slowest after {} ms",
            report.parameter("soak", "seed").map(ToString::to_string).unwrap_or_default(),
            number("steps"),
            number("seconds"),
            number("demanded"),
            number("broken"),
            number("slowest_ms"),
        ),
        format!("  {}", kinds.collect::<Vec<_>>().join(", ")),
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
    let value = goal.value.map_or_else(|| "nothing".to_owned(), |value| format!("{value:.3}"));
    let verdict = match (goal.met, goal.reason.as_str()) {
        (Some(_), _) => "not met".to_owned(),
        (None, reason) => format!("open, {reason}"),
    };
    format!("{verdict}: {}: {value} {}, wanted {} {}", goal.case, goal.what, goal.bound.words(), goal.limit)
}

#[cfg(test)]
mod tests;
