//! The figure of `scaling`.

use super::{GOAL_MEMBERS, KINDS, MEMBERS, RATES, TCP_GOAL, UNDAMPED, is_goal, members, rate};
use crate::plot::{Figure, Panel};
use crate::report::{CASES, Report};
use crate::stats::Spread;

/// Fig. 4 at every rate, Fig. 5, how close it comes, and what was sent again.
pub(super) fn draw(report: &Report) -> Figure {
    let is_there = |rate: &u32| {
        KINDS.iter().any(|kind| report.measure(&format!("{rate}mbit/{}/single", kind.word), "mbit").is_some())
    };
    let rates: Vec<u32> = RATES.into_iter().filter(is_there).collect();
    let all = report.ids(CASES).into_iter().map(|id| members(report, id));
    // The most members that goals are about.
    let most = all.filter(|n| n <= GOAL_MEMBERS.end()).max().unwrap_or(0);
    let mut panels: Vec<Panel> = rates.iter().map(|rate| goodput(report, *rate)).collect();
    panels.extend(
        [("sent", "tx_shares"), ("received", "rx_shares")].map(|(word, key)| shares(report, most, word, key)),
    );
    panels.extend([reached(report, &rates, most), again(report, &rates, most)]);
    Figure::of("scaling: goodput over the number of members", panels)
}

/// Fig. 4 of the paper: goodput over members, with the single link and N times it.
fn goodput(report: &Report, rate: u32) -> Panel {
    let of = |end: String| report.spread(&format!("{rate}mbit/{end}"), "mbit");
    let all = MEMBERS.map(|n| n as f64);
    let mut panel = Panel::over(all);
    for word in KINDS.iter().map(|kind| kind.word) {
        panel = panel.line(word, |n| of(format!("{word}/n{n}")));
        panel = panel.line(format!("{word}, no damping"), |n| {
            (n == UNDAMPED as f64).then(|| of(format!("{word}/n{n}/undamped")))?
        });
        if word == "cubic-1" {
            panel = panel.line("bare link, cubic-1", |n| (n == 1.0).then(|| of("cubic-1/single".into()))?);
        }
    }
    let widest = panel.series.iter().flat_map(|s| &s.points).map(|(n, _)| *n).fold(1.0, f64::max);
    if let Some(base) = of("cubic-1/single".into()) {
        panel = panel.reference("N x bare link", vec![(1.0, base.median), (widest, base.median * widest)]);
    }
    panel.titled(format!("Goodput, links of {rate} Mbit/s"), "members N", "Mbit/s")
}

/// Fig. 5: what each of the most members took.
fn shares(report: &Report, most: u64, word: &str, key: &str) -> Panel {
    let names = (0..most).map(|member| (format!("eth{member}"), member));
    let mut panel = Panel::groups(names);
    for id in report.ids(CASES).into_iter().filter(|id| members(report, id) == most && is_goal(report, id)) {
        let name = format!("{}, {} Mbit/s", report.word(id, "load"), rate(report, id).unwrap_or(0));
        panel = panel.bar(name, |member| Some(report.spread(id, &format!("{key}.{member}"))?.over(0.01)));
    }
    let even = 100.0 / most.max(1) as f64;
    let panel = panel.flat("even", even);
    panel.panel(format!("Share of each of {most} members, {word}"), "member", "% of bytes")
}

/// Groups of bars, one a rate.
fn by_rate(rates: &[u32]) -> crate::plot::Groups<u32> {
    Panel::groups(rates.iter().map(|rate| (format!("{rate} Mbit/s"), *rate)))
}

/// How much of N bare links each load reached.
fn reached(report: &Report, rates: &[u32], most: u64) -> Panel {
    let mut panel = by_rate(rates);
    for word in KINDS.iter().map(|kind| kind.word) {
        for (name, end) in [("", ""), (", no damping", "/undamped")] {
            panel = panel.bar(format!("{word}{name}"), |rate| {
                let ratio: Spread = report.ratio(&format!("{rate}mbit/{word}/n{most}{end}"), "single")?;
                Some(ratio.over(most as f64))
            });
        }
    }
    let panel = panel.flat(format!("goal, one TCP flow: {TCP_GOAL}"), TCP_GOAL);
    panel.panel(format!("{most} members over {most} x the bare link"), "rate of a link", "ratio")
}

/// What TCP sent again.
fn again(report: &Report, rates: &[u32], most: u64) -> Panel {
    let mut panel = by_rate(rates);
    for word in ["cubic-1", "bbr-1"] {
        for (name, end) in [
            ("bare link".to_owned(), "single".to_owned()),
            (format!("N = {most}"), format!("n{most}")),
            (format!("N = {most}, no damping"), format!("n{most}/undamped")),
        ] {
            panel = panel.bar(format!("{word}, {name}"), |rate| {
                report.spread(&format!("{rate}mbit/{word}/{end}"), "again_per_10k")
            });
        }
    }
    panel.panel("Segments sent again", "rate of a link", "of 10,000")
}
