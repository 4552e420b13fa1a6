//! Goodput over time around a typical failure of each kind, and how long each kind cost.

use super::changes;
use super::failures::FAILURES;
use super::{LINKS, RATE};
use crate::experiments::prelude::*;
use linkbraid_lab::{DEFAULT_MTU, shape};

const LOADS: [(&str, &str); 3] = [("cubic", "TCP cubic"), ("bbr", "TCP bbr"), ("udp", "UDP")];
/// What the curves show of the time around a failure, milliseconds.
const SHOWN: (f64, f64) = (-300.0, 2500.0);
/// This many bins of a curve make one point: the eye wants fewer than the file has.
const BINS_A_POINT: usize = 4;

pub(in crate::experiments) fn draw(report: &Report) -> Figure {
    let kinds = FAILURES.map(|failure| failure.0);
    let mut panels: Vec<Panel> =
        FAILURES.iter().map(|(kind, title, ..)| curves(report, kind, title)).collect();
    for (kinds, title, metric) in [
        (kinds, "Longest time without new data", "gap_ms"),
        (kinds, "Failed until the sender knew", "detected_ms"),
        (kinds, "Mended until used again", "restored.used_ms"),
        (changes::KINDS, "Changes: longest time without a datagram", "gap_ms"),
    ] {
        let mut bars = Panel::groups(kinds.map(|kind| (kind.to_owned(), kind)));
        for (load, name) in LOADS {
            bars = bars.bar(name, |kind| report.spread(&format!("{kind}/{load}/n{}", LINKS[0]), metric));
        }
        panels.push(bars.panel(format!("{title}, {} links", LINKS[0]), "", "ms"));
    }
    Figure::of("failover: what traffic sees of a link that fails", panels)
}

/// Goodput around the typical failure of one kind.
fn curves(report: &Report, kind: &str, title: &str) -> Panel {
    let mut panel = Panel::curves(vec![0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0], Vec::new());
    for links in LINKS {
        for (load, name) in LOADS {
            let Some(curve) = report.curve(&format!("{kind}/{load}/n{links}"), "trace") else { continue };
            let mean = |values: &mut dyn Iterator<Item = f64>| {
                let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
                sum / count
            };
            let points = curve.x.chunks(BINS_A_POINT).zip(curve.y.chunks(BINS_A_POINT)).map(|(x, y)| {
                (mean(&mut x.iter().copied()), Spread::one(mean(&mut y.iter().flatten().copied())))
            });
            let shown = points.filter(|(x, _)| (SHOWN.0..=SHOWN.1).contains(x)).collect();
            panel = panel.curve(format!("{name}, {links} links"), shown);
        }
    }
    for links in 1..=LINKS[0] {
        let y = f64::from(RATE) * links as f64 * shape::tcp_share(DEFAULT_MTU, false);
        panel = panel.reference(format!("{links} of {} links", LINKS[0]), vec![(SHOWN.0, y), (SHOWN.1, y)]);
    }
    panel.titled(format!("{title} (at 0), mended at 1000"), "ms after the failure", "goodput, Mbit/s")
}
