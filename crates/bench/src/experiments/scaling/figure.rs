//! The figure of `scaling`.

use super::{GOAL_MEMBERS, KINDS, Kind, TCP_GOAL, UNDAMPED, is_goal};
use crate::plot::{Figure, Panel, Reference, Series};
use crate::report::{Case, Report};
use crate::stats::Spread;

/// Fig. 4 at every rate, Fig. 5, how close it comes, and what was sent again.
pub(super) fn draw(report: &Report) -> Figure {
    let bonded = || report.cases.iter().filter(|case| case.parameters.members > 0);
    let mut rates: Vec<u32> =
        bonded().filter_map(|case| case.parameters.rate_mbit.first().copied()).collect();
    rates.dedup();
    let mut panels = Vec::new();
    for rate in rates {
        panels.push(goodput(report, rate));
    }
    let shares: Vec<Panel> = [("sent", true), ("received", false)]
        .into_iter()
        .filter_map(|(word, tx)| members_shares(report, word, tx))
        .collect();
    panels.extend(shares);
    panels.push(reached(report));
    panels.push(again(report));
    Figure { title: "scaling: goodput over the number of members".into(), panels }
}

/// Cases at one rate with one load, by number of members.
fn line(report: &Report, rate: u32, word: &str, value: fn(&Case) -> Option<Spread>) -> Vec<(f64, Spread)> {
    let prefix = format!("{rate}mbit/{word}/n");
    let of_line = report.cases.iter().filter_map(|case| {
        let n: u32 = case.id.strip_prefix(&prefix)?.parse().ok()?;
        Some((f64::from(n), value(case)?))
    });
    of_line.collect()
}

fn undamped(
    report: &Report,
    rate: u32,
    word: &str,
    value: fn(&Case) -> Option<Spread>,
) -> Vec<(f64, Spread)> {
    let id = format!("{rate}mbit/{word}/n{UNDAMPED}/undamped");
    report.case(&id).and_then(value).map(|spread| (UNDAMPED as f64, spread)).into_iter().collect()
}

/// Fig. 4 of the paper: goodput over members, with the single link and N times it.
fn goodput(report: &Report, rate: u32) -> Panel {
    let mbit = |case: &Case| case.medians.mbit;
    let mut series = Vec::new();
    for Kind { word, .. } in &KINDS {
        let points = line(report, rate, word, mbit);
        let bare = report.case(&format!("{rate}mbit/{word}/single")).and_then(mbit);
        if !points.is_empty() {
            series.push(Series { name: (*word).into(), points });
        }
        let points = undamped(report, rate, word, mbit);
        if !points.is_empty() {
            series.push(Series { name: format!("{word}, no damping"), points });
        }
        if let (Some(bare), "cubic-1") = (bare, *word) {
            series.push(Series { name: "bare link, cubic-1".into(), points: vec![(1.0, bare)] });
        }
    }
    let widest = series.iter().flat_map(|s| &s.points).map(|(n, _)| *n).fold(1.0, f64::max);
    let base = report.case(&format!("{rate}mbit/cubic-1/single")).and_then(mbit);
    let references = base
        .map(|base| Reference {
            name: "N x bare link".into(),
            points: vec![(1.0, base.median), (widest, base.median * widest)],
        })
        .into_iter()
        .collect();
    Panel {
        title: format!("Goodput, links of {rate} Mbit/s"),
        x_label: "members N".into(),
        y_label: "Mbit/s".into(),
        references,
        ..Panel::lines(series)
    }
}

/// Fig. 5: what each of the most members took.
fn members_shares(report: &Report, word: &str, tx: bool) -> Option<Panel> {
    let most = most(report);
    let of_members = |case: &Case| {
        let n = usize::try_from(most).unwrap_or(0);
        (0..n)
            .filter_map(|member| {
                let share = |s: &crate::sample::Sample| {
                    (if tx { &s.tx_shares } else { &s.rx_shares }).get(member).map(|share| share * 100.0)
                };
                let spread = Spread::of(case.samples.iter().filter_map(share))?;
                Some((member as f64, spread))
            })
            .collect::<Vec<_>>()
    };
    let series: Vec<Series> = report
        .cases
        .iter()
        .filter(|case| case.parameters.members == most && is_goal(case))
        .map(|case| {
            let rate = case.parameters.rate_mbit.first().copied().unwrap_or(0);
            Series { name: format!("{}, {rate} Mbit/s", case.parameters.load), points: of_members(case) }
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let even = 100.0 / f64::from(most);
    let last = f64::from(most - 1);
    let names = (0..most).map(|member| format!("eth{member}")).collect();
    Some(Panel {
        title: format!("Share of each of {most} members, {word}"),
        x_label: "member".into(),
        y_label: "% of bytes".into(),
        references: vec![Reference { name: "even".into(), points: vec![(-0.5, even), (last + 0.5, even)] }],
        ..Panel::bars(names, series)
    })
}

/// The rates of the report, and their names.
fn rates(report: &Report) -> (Vec<u32>, Vec<String>) {
    let mut rates: Vec<u32> =
        report.cases.iter().filter_map(|case| case.parameters.rate_mbit.first().copied()).collect();
    rates.sort_unstable();
    rates.dedup();
    let names = rates.iter().map(|rate| format!("{rate} Mbit/s")).collect();
    (rates, names)
}

/// The most members that goals are about.
fn most(report: &Report) -> u32 {
    let members = report.cases.iter().map(|case| case.parameters.members);
    members.filter(|n| n <= GOAL_MEMBERS.end()).max().unwrap_or(0)
}

/// A value of one kind of case at each rate.
fn by_rate(
    report: &Report,
    rates: &[u32],
    suffix: &str,
    value: fn(&Case) -> Option<Spread>,
) -> Vec<(f64, Spread)> {
    let of = |rate: &u32| report.case(&format!("{rate}mbit/{suffix}")).and_then(value);
    rates.iter().enumerate().filter_map(|(i, rate)| Some((i as f64, of(rate)?))).collect()
}

/// How much of N bare links each load reached.
fn reached(report: &Report) -> Panel {
    let share = |case: &Case| Some(case.ratio_spread("single")?.over(f64::from(case.parameters.members)));
    let ((rates, names), most) = (rates(report), most(report));
    let mut series = Vec::new();
    for Kind { word, .. } in &KINDS {
        for (name, end) in [(String::new(), ""), (", no damping".to_owned(), "/undamped")] {
            let points = by_rate(report, &rates, &format!("{word}/n{most}{end}"), share);
            if !points.is_empty() {
                series.push(Series { name: format!("{word}{name}"), points });
            }
        }
    }
    let last = rates.len().max(1) as f64 - 0.5;
    Panel {
        title: format!("{most} members over {most} x the bare link"),
        x_label: "rate of a link".into(),
        y_label: "ratio".into(),
        references: vec![Reference {
            name: format!("goal, one TCP flow: {TCP_GOAL}"),
            points: vec![(-0.5, TCP_GOAL), (last, TCP_GOAL)],
        }],
        ..Panel::bars(names, series)
    }
}

/// What TCP sent again.
fn again(report: &Report) -> Panel {
    let ((rates, names), most) = (rates(report), most(report));
    let mut series = Vec::new();
    for word in ["cubic-1", "bbr-1"] {
        for (name, suffix) in [
            (format!("{word}, bare link"), format!("{word}/single")),
            (format!("{word}, N = {most}"), format!("{word}/n{most}")),
            (format!("{word}, N = {most}, no damping"), format!("{word}/n{most}/undamped")),
        ] {
            let points = by_rate(report, &rates, &suffix, |case| case.medians.again_per_10k);
            if !points.is_empty() {
                series.push(Series { name, points });
            }
        }
    }
    Panel {
        title: "Segments sent again".into(),
        x_label: "rate of a link".into(),
        y_label: "of 10,000".into(),
        ..Panel::bars(names, series)
    }
}
