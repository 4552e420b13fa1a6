//! Round trips over time, and how many took how long, as in the papers; and around cuts.

use super::scenario::{SCENARIOS, id};
use super::{LINKS, LOADS, Load};
use crate::plot::{Figure, Panel, Reference, Series};
use crate::report::{CutCase, MessageCase, MessageTrace, Report};
use crate::stats::Spread;

/// What is shown of a trace, milliseconds.
const SHOWN_MS: f64 = 200.0;
/// The x axis of shares is in decades, which its labels undo.
const DECADES: [(f64, &str); 6] =
    [(1.0, "10 us"), (2.0, "100 us"), (3.0, "1 ms"), (4.0, "10 ms"), (5.0, "100 ms"), (6.0, "1 s")];
/// Times around a cut that are labelled, milliseconds.
const CUT_TICKS: [f64; 7] = [-50.0, 0.0, 50.0, 100.0, 150.0, 200.0, 250.0];

/// Draws a report.
pub(super) fn draw(report: &Report) -> Figure {
    let mut panels = Vec::new();
    for load in LOADS {
        panels.extend(over_time(report, load));
        panels.extend(shares(report, load));
    }
    panels.extend(bars(report));
    panels.extend(bulk(report));
    panels.extend(report.cuts.iter().filter_map(cuts));
    Figure { title: "urgent: round trips of small messages".into(), panels }
}

fn name(load: Load) -> String {
    load.word.to_uppercase()
}

/// The cases of a load in the order they are drawn, with a title each.
fn cases(report: &Report, load: Load) -> impl Iterator<Item = (&'static str, &MessageCase)> {
    SCENARIOS.iter().filter_map(move |scenario| {
        Some((scenario.title, report.message_case(&id(load.word, scenario.word))?))
    })
}

fn over_time(report: &Report, load: Load) -> Option<Panel> {
    let series: Vec<Series> = cases(report, load)
        .map(|(title, case)| Series { name: title.into(), points: points(&case.trace, 0.0, SHOWN_MS) })
        .filter(|series| !series.points.is_empty())
        .collect();
    (!series.is_empty()).then(|| Panel {
        title: format!("{}: round trips one after the other", name(load)),
        x_label: "ms".into(),
        y_label: "round trip, us".into(),
        decades: true,
        ..Panel::curves(vec![0.0, 50.0, 100.0, 150.0, 200.0], series)
    })
}

/// Messages that came back.
fn points(trace: &MessageTrace, from: f64, to: f64) -> Vec<(f64, Spread)> {
    let all = trace.at_ms.iter().zip(&trace.took_us).filter_map(|(at, took)| Some((*at, (*took)?)));
    all.filter(|(at, took)| (from..=to).contains(at) && *took > 0.0)
        .map(|(at, took)| (at, Spread::one(took)))
        .collect()
}

fn shares(report: &Report, load: Load) -> Option<Panel> {
    let series: Vec<Series> = cases(report, load)
        .map(|(title, case)| Series { name: title.into(), points: share_up_to(case) })
        .filter(|series| !series.points.is_empty())
        .collect();
    let longest = series.iter().flat_map(|s| &s.points).map(|(x, _)| *x).fold(0.0, f64::max);
    let shown = DECADES.iter().filter(|(x, _)| *x <= longest.ceil());
    (!series.is_empty()).then(|| Panel {
        title: format!("{}: share of messages that took at most so long", name(load)),
        x_label: "round trip".into(),
        y_label: "%".into(),
        ticks: shown.map(|(x, label)| (*x, (*label).to_owned())).collect(),
        ..Panel::curves(Vec::new(), series)
    })
}

/// A step where each bar of the histogram ends.
fn share_up_to(case: &MessageCase) -> Vec<(f64, Spread)> {
    let all: u64 = case.histogram.iter().map(|bin| bin.count).sum();
    let mut so_far = 0;
    let mut points = Vec::new();
    for bin in case.histogram.iter().filter(|bin| bin.up_to_us > 0.0) {
        so_far += bin.count;
        points.push((bin.up_to_us.log10(), Spread::one(so_far as f64 * 100.0 / all as f64)));
    }
    points
}

/// Median and 99th percentile of each scenario.
fn bars(report: &Report) -> Option<Panel> {
    let mut series = Vec::new();
    for load in LOADS {
        let value = |what: &str, pick: fn(&MessageCase) -> Option<Spread>| Series {
            name: format!("{}, {what}", name(load)),
            points: per_scenario(report, load, pick),
        };
        series.push(value("median", |case| case.medians.median_us));
        series.push(value("99 %", |case| case.medians.p99_us));
    }
    series.retain(|series| !series.points.is_empty());
    (!series.is_empty()).then(|| Panel {
        title: "Round trips by scenario".into(),
        y_label: "us".into(),
        decades: true,
        ..Panel::bars(groups(), series)
    })
}

fn groups() -> Vec<String> {
    SCENARIOS.iter().map(|scenario| scenario.word.to_owned()).collect()
}

fn per_scenario(
    report: &Report,
    load: Load,
    value: impl Fn(&MessageCase) -> Option<Spread>,
) -> Vec<(f64, Spread)> {
    let found = SCENARIOS.iter().enumerate().filter_map(|(index, scenario)| {
        Some((index as f64, value(report.message_case(&id(load.word, scenario.word))?)?))
    });
    found.collect()
}

/// What was left to the traffic in the way, in links.
fn bulk(report: &Report) -> Option<Panel> {
    let links = |case: &MessageCase| case.ratios.iter().find(|ratio| ratio.name == "bulk")?.spread;
    let series: Vec<Series> = LOADS
        .into_iter()
        .map(|load| Series { name: name(load), points: per_scenario(report, load, links) })
        .filter(|series| !series.points.is_empty())
        .collect();
    let last = SCENARIOS.len() as f64 - 0.5;
    let flat = |links: usize| Reference {
        name: format!("{links} links"),
        points: vec![(-0.5, links as f64), (last, links as f64)],
    };
    (!series.is_empty()).then(|| Panel {
        title: "Bulk traffic, in goodput of a bare link".into(),
        y_label: "links".into(),
        references: vec![flat(LINKS - 1), flat(LINKS)],
        ..Panel::bars(groups(), series)
    })
}

/// The worst cut of each kind.
fn cuts(case: &CutCase) -> Option<Panel> {
    let (first, last) = (CUT_TICKS[0], CUT_TICKS[CUT_TICKS.len() - 1]);
    let series: Vec<Series> = case
        .traces
        .iter()
        .filter_map(|trace| {
            let cut = case.cuts.get(trace.cut as usize)?;
            let lost = cut.during.lost;
            let points = points(&trace.messages, first, last);
            Some(Series { name: format!("{}: {lost} lost", cut.kind), points })
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let late = Reference { name: "late".into(), points: vec![(first, case.late_us), (last, case.late_us)] };
    (!series.is_empty() && case.late_us > 0.0).then(|| Panel {
        title: format!(
            "{} ({}): the worst of {} cuts",
            case.policy,
            case.load.to_uppercase(),
            case.cuts.len()
        ),
        x_label: "ms after the cut".into(),
        y_label: "round trip, us".into(),
        decades: true,
        references: vec![late],
        ..Panel::curves(CUT_TICKS.to_vec(), series)
    })
}
