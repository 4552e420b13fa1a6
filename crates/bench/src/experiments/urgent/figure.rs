//! Round trips over time, and how many took how long, as in the papers; and around cuts.

use super::scenario::{BULK, SCENARIOS, Scenario, id};
use super::{LINKS, LOADS, Load};
use crate::plot::{Figure, Groups, Panel};
use crate::report::{CUTS, Curve, Report};
use crate::stats::Spread;

/// What is shown of a trace, milliseconds.
const SHOWN_MS: f64 = 200.0;
/// The x axis of shares is in decades, which its labels undo.
const DECADES: [(f64, &str); 6] =
    [(1.0, "10 us"), (2.0, "100 us"), (3.0, "1 ms"), (4.0, "10 ms"), (5.0, "100 ms"), (6.0, "1 s")];
/// Times around a cut that are labelled, milliseconds.
const CUT_TICKS: [f64; 7] = [-50.0, 0.0, 50.0, 100.0, 150.0, 200.0, 250.0];

pub(in crate::experiments) fn draw(report: &Report) -> Figure {
    let mut panels: Vec<Panel> =
        LOADS.iter().flat_map(|load| [over_time(report, *load), shares(report, *load)]).collect();
    panels.extend([bars(report), bulk(report)]);
    panels.extend(report.ids(CUTS).into_iter().map(|id| cuts(report, id)));
    Figure::of("urgent: round trips of small messages", panels)
}

fn name(load: Load) -> String {
    load.word.to_uppercase()
}

/// A curve of each case of a load.
fn each(
    report: &Report,
    load: Load,
    curve: &str,
    mut panel: Panel,
    points: impl Fn(&Curve) -> Points,
) -> Panel {
    for Scenario { word, title, .. } in SCENARIOS {
        if let Some(curve) = report.curve(&id(load.word, word), curve) {
            panel = panel.curve(title, points(curve));
        }
    }
    panel
}

fn over_time(report: &Report, load: Load) -> Panel {
    let panel = Panel::curves(vec![0.0, 50.0, 100.0, 150.0, 200.0], Vec::new());
    let panel = each(report, load, "trace", panel, |curve| points(curve, 0.0, SHOWN_MS));
    let title = format!("{}: round trips one after the other", name(load));
    panel.titled(title, "ms", "round trip, us").in_decades()
}

type Points = Vec<(f64, Spread)>;

/// Messages that came back.
fn points(trace: &Curve, from: f64, to: f64) -> Points {
    let all = trace.x.iter().zip(&trace.y).filter_map(|(at, took)| Some((*at, (*took)?)));
    all.filter(|(at, took)| (from..=to).contains(at) && *took > 0.0)
        .map(|(at, took)| (at, Spread::one(took)))
        .collect()
}

fn shares(report: &Report, load: Load) -> Panel {
    let mut panel = each(report, load, "histogram", Panel::curves(Vec::new(), Vec::new()), share_up_to);
    let longest = panel.series.iter().flat_map(|s| &s.points).map(|(x, _)| *x).fold(0.0, f64::max);
    let shown = DECADES.iter().filter(|(x, _)| *x <= longest.ceil());
    panel.ticks = shown.map(|(x, label)| (*x, (*label).to_owned())).collect();
    panel.titled(format!("{}: share of messages that took at most so long", name(load)), "round trip", "%")
}

/// A step where each bar of the histogram ends.
fn share_up_to(histogram: &Curve) -> Points {
    let all: f64 = histogram.y.iter().flatten().sum();
    let bars = histogram.x.iter().zip(&histogram.y).filter(|(up_to_us, _)| **up_to_us > 0.0);
    let sums = bars.scan(0.0, |so_far, (up_to_us, count)| {
        *so_far += count.unwrap_or(0.0);
        Some((up_to_us.log10(), Spread::one(*so_far * 100.0 / all)))
    });
    sums.collect()
}

fn scenarios() -> Groups<&'static str> {
    Panel::groups(SCENARIOS.map(|scenario| (scenario.word.to_owned(), scenario.word)))
}

fn bars(report: &Report) -> Panel {
    let mut panel = scenarios();
    for load in LOADS {
        for (what, metric) in [("median", "median_us"), ("99 %", "p99_us")] {
            panel = panel
                .bar(format!("{}, {what}", name(load)), |word| report.spread(&id(load.word, word), metric));
        }
    }
    panel.panel("Round trips by scenario", "", "us").in_decades()
}

/// What was left to the traffic in the way, in links.
fn bulk(report: &Report) -> Panel {
    let panel = LOADS.into_iter().fold(scenarios(), |panel, load| {
        let base = id(load.word, BULK);
        panel.bar(name(load), move |word| report.beside(&id(load.word, word), "bulk.mbit", &base))
    });
    let panel =
        [LINKS - 1, LINKS].into_iter().fold(panel, |panel, n| panel.flat(format!("{n} links"), n as f64));
    panel.panel("Bulk traffic, in goodput of a bare link", "", "links")
}

fn cuts(report: &Report, id: &str) -> Panel {
    let (first, last) = (CUT_TICKS[0], CUT_TICKS[CUT_TICKS.len() - 1]);
    let panel = Panel::curves(CUT_TICKS.to_vec(), Vec::new());
    let traces = report.curves.iter().filter(|curve| curve.id == id);
    let panel = traces.fold(panel, |panel, curve| panel.curve(&curve.name, points(curve, first, last)));
    let late = report.median(id, "late_us").unwrap_or(0.0);
    let count = report.measure(id, "during.lost").map_or(0, |lost| lost.values.len());
    let load = report.word(id, "load").to_uppercase();
    let title = format!("{} ({load}): the worst of {count} cuts", report.word(id, "policy"));
    let panel = panel.reference("late", vec![(first, late), (last, late)]);
    panel.titled(title, "ms after the cut", "round trip, us").in_decades()
}
