//! Bars of all systems beside each other.

use super::failures::{self, KINDS};
use super::rates::{self, LOADS};
use super::system::{SYSTEMS, System};
use crate::plot::{Figure, Panel, Reference, Series};
use crate::report::Report;
use crate::stats::Spread;

/// Numbers of links that are drawn.
const LINKS: [usize; 2] = [2, 4];
/// What a plot of decades shows of a stall too short to measure, in ms.
const SHORTEST_MS: f64 = 1.0;

pub(super) fn draw(report: &Report) -> Figure {
    let mut panels: Vec<Panel> = LOADS.iter().map(|load| load_panel(report, load.word, load.title)).collect();
    panels.push(stalls(report, "carrier", "Carrier lost: time without new data"));
    panels.push(stalls(report, "silent", "Silent failure: time without new data"));
    panels.retain(|panel| !panel.is_empty());
    Figure { title: "peers: what people would use otherwise, in a stock kernel".into(), panels }
}

/// Those of which something was measured.
fn there(value: impl Fn(&System) -> bool) -> Vec<&'static System> {
    SYSTEMS.iter().filter(|system| value(system)).collect()
}

fn groups(systems: &[&System]) -> Vec<String> {
    systems.iter().map(|system| system.short.to_owned()).collect()
}

/// The bars of a series: one for each system that has a value.
fn points(systems: &[&System], value: impl Fn(&System) -> Option<Spread>) -> Vec<(f64, Spread)> {
    systems.iter().enumerate().filter_map(|(i, system)| Some((i as f64, value(system)?))).collect()
}

fn load_panel(report: &Report, load: &str, title: &str) -> Panel {
    let ratio = |system: &System, links: usize| {
        report.case(&rates::id(load, links, system.word))?.ratio_spread("single")
    };
    let systems = there(|system| LINKS.iter().any(|links| ratio(system, *links).is_some()));
    let series = LINKS.map(|links| Series {
        name: format!("N = {links}"),
        points: points(&systems, |system| ratio(system, links)),
    });
    let series: Vec<Series> = series.into_iter().filter(|series| !series.points.is_empty()).collect();
    let ends = |y: f64| vec![(-0.5, y), (systems.len() as f64 - 0.5, y)];
    let references = series.iter().filter_map(|series| series.name.strip_prefix("N = ")?.parse::<f64>().ok());
    let references = references
        .map(|links| Reference { name: format!("{links} bare links"), points: ends(links) })
        .collect();
    Panel {
        title: format!("{}{}", title[..1].to_uppercase(), &title[1..]),
        y_label: "times one bare link".into(),
        references,
        ..Panel::bars(groups(&systems), series)
    }
}

fn stalls(report: &Report, fault: &str, title: &str) -> Panel {
    let kinds: Vec<_> = KINDS.iter().filter(|kind| kind.word.starts_with(fault)).collect();
    let stall = |system: &System, kind: &str| {
        let spread = report.measure(&failures::id(kind, system.word), "stall_ms")?.spread?;
        let shown = |ms: f64| ms.max(SHORTEST_MS);
        Some(Spread { median: shown(spread.median), min: shown(spread.min), max: shown(spread.max) })
    };
    let systems = there(|system| kinds.iter().any(|kind| stall(system, kind.word).is_some()));
    let series = kinds.iter().map(|kind| Series {
        name: kind.title.into(),
        points: points(&systems, |system| stall(system, kind.word)),
    });
    Panel {
        title: title.into(),
        y_label: "ms".into(),
        decades: true,
        ..Panel::bars(groups(&systems), series.filter(|series| !series.points.is_empty()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{case, report};
    use crate::report::{Measure, Metric, Ratio};

    #[test]
    fn only_what_was_measured_is_drawn() {
        let mut ours = case("cubic-1/n2/linkbraid", 2, &[38.0]);
        ours.ratios.push(Ratio {
            name: "single".into(),
            metric: Metric::Mbit,
            bases: vec![],
            ideal: 2.0,
            pairs: vec![1.99],
            spread: Some(Spread::one(1.99)),
        });
        let stall = Measure {
            id: "failover/silent-ours/mptcp".into(),
            metric: "stall_ms".into(),
            spread: Some(Spread::one(0.2)),
            ..Measure::default()
        };
        let figure = draw(&Report { cases: vec![ours], measures: vec![stall], ..report() });
        let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["One TCP flow, cubic", "Silent failure: time without new data"]);
        assert_eq!(figure.panels[0].ticks, [(0.0, "ours".to_owned())]);
        assert_eq!(figure.panels[0].references.len(), 1);
        assert_eq!(figure.panels[1].series[0].points, [(0.0, Spread::one(SHORTEST_MS))]);
    }
}
