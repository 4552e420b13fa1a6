//! Bars of all systems beside each other.

use super::failures::{self, KINDS};
use super::rates::{self, LOADS};
use super::system::{SYSTEMS, System};
use crate::experiments::prelude::*;
use crate::plot::Groups;

/// Numbers of links that are drawn.
const LINKS: [usize; 2] = [2, 4];
/// What a plot of decades shows of a stall too short to measure, in ms.
const SHORTEST_MS: f64 = 1.0;

pub(in crate::experiments) fn draw(report: &Report) -> Figure {
    let mut panels: Vec<Panel> = LOADS.iter().map(|load| load_panel(report, load.word, load.title)).collect();
    panels.push(stalls(report, "carrier", "Carrier lost: time without new data"));
    panels.push(stalls(report, "silent", "Silent failure: time without new data"));
    Figure::of("peers: what people would use otherwise, in a stock kernel", panels)
}

fn systems() -> Groups<&'static System> {
    Panel::groups(SYSTEMS.iter().map(|system| (system.short.to_owned(), system)))
}

fn load_panel(report: &Report, load: &str, title: &str) -> Panel {
    let ratio =
        |links: usize| move |system: &System| report.ratio(&rates::id(load, links, system.word), "single");
    let mut panel = systems();
    for links in LINKS {
        panel = panel.bar(format!("N = {links}"), ratio(links));
        if SYSTEMS.iter().any(|system| ratio(links)(system).is_some()) {
            panel = panel.flat(format!("{links} bare links"), links as f64);
        }
    }
    let title = format!("{}{}", title[..1].to_uppercase(), &title[1..]);
    panel.measured().panel(title, "", "times one bare link")
}

fn stalls(report: &Report, fault: &str, title: &str) -> Panel {
    let kinds = KINDS.iter().filter(|kind| kind.word.starts_with(fault));
    let panel = kinds.fold(systems(), |panel, kind| {
        panel.bar(kind.title, |system| {
            let spread = report.spread(&failures::id(kind.word, system.word), "stall_ms")?;
            let shown = |ms: f64| ms.max(SHORTEST_MS);
            Some(Spread { median: shown(spread.median), min: shown(spread.min), max: shown(spread.max) })
        })
    });
    panel.measured().panel(title, "", "ms").in_decades()
}

#[cfg(test)]
mod tests;
