//! Goodput over time around a typical failure of each kind, and how long each kind cost.

use super::{LINKS, RATE};
use crate::plot::{Figure, Panel, Reference, Series};
use crate::report::{Failover, Report};
use crate::stats::Spread;
use linkbraid_lab::{DEFAULT_MTU, shape};

/// Failures in the order they are drawn, with a title each.
const KINDS: [(&str, &str); 5] = [
    ("carrier-ours", "Carrier lost at the sender"),
    ("carrier-theirs", "Carrier lost at the receiver"),
    ("silent-both", "Silent, both ways"),
    ("silent-out", "Silent, nothing gets out"),
    ("silent-in", "Silent, nothing gets in"),
];
const CHANGES: [&str; 5] = ["member-del", "member-add", "weight", "daemon-kill", "daemon-replace"];
const LOADS: [(&str, &str); 3] = [("cubic", "TCP cubic"), ("bbr", "TCP bbr"), ("udp", "UDP")];
/// What the curves show of the time around a failure, milliseconds.
const SHOWN: (f64, f64) = (-300.0, 2500.0);
/// This many bins of a curve make one point: the eye wants fewer than the file has.
const BINS_A_POINT: usize = 4;

/// Draws a report.
pub(super) fn draw(report: &Report) -> Figure {
    let mut panels: Vec<Panel> = Vec::new();
    for (kind, title) in KINDS {
        panels.extend(curves(report, kind, title));
    }
    let kinds = KINDS.map(|(kind, _)| kind);
    let mut bars = |kinds: &[&str], title: &str, value: &dyn Fn(&Failover) -> Option<Spread>| {
        panels.extend(bars(report, kinds, title, value));
    };
    bars(&kinds, "Longest time without new data", &|f| f.medians.gap_ms);
    bars(&kinds, "Failed until the sender knew", &|f| f.medians.detected_ms);
    bars(&kinds, "Mended until used again", &|f| f.medians.used_again_ms);
    bars(&CHANGES, "Changes: longest time without a datagram", &|f| f.medians.gap_ms);
    Figure { title: "failover: what traffic sees of a link that fails".into(), panels }
}

/// Goodput around the typical failure of one kind.
fn curves(report: &Report, kind: &str, title: &str) -> Option<Panel> {
    let mut series = Vec::new();
    for links in LINKS {
        for (load, name) in LOADS {
            let failover = report.failover(&format!("{kind}/{load}/n{links}"));
            let Some(trace) = failover.and_then(|f| f.trace.as_ref()) else { continue };
            let points = trace.mbit.chunks(BINS_A_POINT).enumerate().map(|(i, bins)| {
                let middle = i as f64 + 0.5;
                let x = trace.from_ms + middle * trace.bin_ms * BINS_A_POINT as f64;
                (x, Spread::one(bins.iter().sum::<f64>() / bins.len() as f64))
            });
            let shown = points.filter(|(x, _)| (SHOWN.0..=SHOWN.1).contains(x)).collect();
            series.push(Series { name: format!("{name}, {links} links"), points: shown });
        }
    }
    if series.is_empty() {
        return None;
    }
    let flat = |links: usize| {
        let y = f64::from(RATE) * links as f64 * shape::tcp_share(DEFAULT_MTU, false);
        Reference { name: format!("{links} of {} links", LINKS[0]), points: vec![(SHOWN.0, y), (SHOWN.1, y)] }
    };
    Some(Panel {
        title: format!("{title} (at 0), mended at 1000"),
        x_label: "ms after the failure".into(),
        y_label: "goodput, Mbit/s".into(),
        references: (1..=LINKS[0]).map(flat).collect(),
        ..Panel::curves(vec![0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0], series)
    })
}

fn bars(
    report: &Report,
    kinds: &[&str],
    title: &str,
    value: &dyn Fn(&Failover) -> Option<Spread>,
) -> Option<Panel> {
    let mut series = Vec::new();
    for (load, name) in LOADS {
        let id = |kind: &str| format!("{kind}/{load}/n{}", LINKS[0]);
        let points: Vec<(f64, Spread)> = kinds
            .iter()
            .enumerate()
            .filter_map(|(i, kind)| Some((i as f64, value(report.failover(&id(kind))?)?)))
            .collect();
        if !points.is_empty() {
            series.push(Series { name: name.into(), points });
        }
    }
    let groups = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    (!series.is_empty()).then(|| Panel {
        title: format!("{title}, {} links", LINKS[0]),
        y_label: "ms".into(),
        ..Panel::bars(groups, series)
    })
}
