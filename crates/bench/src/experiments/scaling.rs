//! Goodput over the number of members, for every load that matters, beside the single link.

use crate::experiments::prelude::*;
use crate::planned::{Against, Planned, load_name};
use crate::plot::Groups;
use crate::report::CASES;
use crate::run::{cpu_limited, weak_base};
use linkbraid_lab::iperf::Direction;

/// Rates of a link in Mbit/s, and numbers of members.
const RATES: [u32; 5] = [20, 100, 200, 500, 1000];
const MEMBERS: [usize; 5] = [1, 2, 3, 4, 8];
/// The same of a quick run: the paper's rate.
const QUICK_RATES: [u32; 1] = [100];
const QUICK_MEMBERS: [usize; 2] = [2, 4];
/// The number of members that is also measured without damping.
const UNDAMPED: usize = 4;
/// Goals hold for these.
const GOAL_MEMBERS: std::ops::RangeInclusive<u64> = 2..=4;

/// One TCP flow, and UDP: shares of N single links.
const TCP_GOAL: f64 = 0.97;
const UDP_GOAL: f64 = 0.98;
/// Segments sent again, of 10,000.
const AGAIN_GOAL: f64 = 1.0;
/// How far shares of equal members may be apart.
const SHARE_GOAL: f64 = 0.02;
/// What the machine carries over one link without a limit must be this many times what a case needs.
const HEADROOM: f64 = 1.25;

/// A load, as it is for one link or for `links` of them.
struct Kind {
    word: &'static str,
    traffic: fn(&Run<'_>, u32) -> Traffic,
}

const KINDS: [Kind; 6] = [
    Kind { word: "cubic-1", traffic: |run, _| run.tcp(Cc::Cubic) },
    Kind { word: "bbr-1", traffic: |run, _| run.tcp(Cc::Bbr) },
    Kind { word: "cubic-8", traffic: |run, _| run.tcp(Cc::Cubic).flows(8) },
    Kind { word: "bbr-8", traffic: |run, _| run.tcp(Cc::Bbr).flows(8) },
    Kind { word: "udp", traffic: |run, mbit| run.udp(mbit) },
    Kind {
        word: "both-ways",
        traffic: |run, _| Traffic { direction: Direction::Both, ..run.tcp(Cc::Cubic) },
    },
];
/// The places in [`KINDS`] of what a quick run measures: one flow of TCP, and UDP, as the paper did.
const QUICK_KINDS: [usize; 2] = [0, 4];
/// The places of the loads that are also measured without damping: one TCP flow.
const UNDAMPED_KINDS: [usize; 2] = [0, 1];

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let quick = run.settings.quick;
    let (rates, members, kinds): (&[u32], &[usize], Vec<usize>) = if quick {
        (&QUICK_RATES, &QUICK_MEMBERS, QUICK_KINDS.to_vec())
    } else {
        (&RATES, &MEMBERS, (0..KINDS.len()).collect())
    };
    let undamped = if quick { &UNDAMPED_KINDS[..1] } else { &UNDAMPED_KINDS[..] };
    run.plan(rates.len() * (kinds.len() * (1 + members.len()) + undamped.len()));
    let limits = limits(run)?;
    for &rate in rates.iter() {
        if !run.wants(&format!("{rate}mbit/")) {
            continue;
        }
        one_rate(run, rate, members, &kinds, undamped, limits)?;
    }
    run.goals(goals(&run.report));
    Ok(())
}

/// What this machine carries over one bare link without a limit, Mbit/s: TCP, and UDP.
fn limits(run: &mut Run<'_>) -> Result<[f64; 2], Error> {
    let bed = run.bare("unlimited", Topology::symmetric(2, 1, None))?;
    let tcp = run.sample(&bed, &Traffic { seconds: 1, ..run.tcp(Cc::Cubic) })?.mbit;
    let udp = run.sample(&bed, &Traffic { omit: 0, ..Traffic::udp(100_000, 1) })?.mbit;
    run.say(&format!("  one link without a limit carries {tcp:.0} Mbit/s of TCP, {udp:.0} of UDP"))?;
    Ok([tcp, udp])
}

fn one_rate(
    run: &mut Run<'_>,
    rate: u32,
    members: &[usize],
    kinds: &[usize],
    undamped: &[usize],
    limits: [f64; 2],
) -> Result<(), Error> {
    let single = run.bare(&format!("{rate}mbit/single"), Topology::symmetric(2, 1, Some(rate)))?;
    let mut beds: Vec<(usize, Bed)> = Vec::new();
    for &n in members {
        let name = format!("{rate}mbit/n{n}");
        let bed = run.bonded(&name, Topology::symmetric(2, n, Some(rate)));
        beds.extend(run.noted(name, bed)?.map(|bed| (n, bed)));
    }
    for (place, kind) in kinds.iter().map(|place| (place, &KINDS[*place])) {
        let base = format!("{rate}mbit/{}/single", kind.word);
        let mut cases = vec![Planned::new(&base, &single, (kind.traffic)(run, rate))];
        for (n, bed) in &beds {
            let id = format!("{rate}mbit/{}/n{n}", kind.word);
            let total = rate.saturating_mul(u32::try_from(*n).unwrap_or(u32::MAX));
            let traffic = (kind.traffic)(run, total);
            if let Some(reason) = too_much(total, &traffic, limits) {
                run.skip(id, reason);
                run.drop_steps(run.settings.repeat);
                continue;
            }
            let against = || Against::mbit("single", [base.clone()], *n as f64);
            if *n == UNDAMPED && undamped.contains(place) {
                let case = Planned::new(format!("{id}/undamped"), bed, traffic.clone()).against(against());
                cases.push(Planned { damping: false, ..case });
            }
            cases.push(Planned::new(id, bed, traffic).against(against()));
        }
        run.interleave(&cases)?;
    }
    Ok(())
}

/// Why this machine can't run a case.
fn too_much(total: u32, traffic: &Traffic, [tcp, udp]: [f64; 2]) -> Option<String> {
    let ways = if traffic.direction == Direction::Both { 2.0 } else { 1.0 };
    let limit = if load_name(traffic.load) == "udp" { udp } else { tcp };
    let needs = f64::from(total) * ways;
    (needs * HEADROOM > limit).then(|| {
        format!(
            "it needs {needs:.0} Mbit/s, and this machine carries {limit:.0} over one link without a limit; \
             {HEADROOM} times as much as needed is the least"
        )
    })
}

fn goals(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    for id in report.ids(CASES).into_iter().filter(|id| is_goal(report, id)) {
        let base = report.measure(id, "mbit").and_then(|mbit| mbit.against.first()?.bases.first());
        let base = base.and_then(|base| weak_base(report, base));
        let goal = |what: &str, bound, limit, value| Goal::new(id, what, bound, limit, value);
        let share_of_n = report.mid_ratio(id, "single").map(|ratio| ratio / members(report, id) as f64);
        if report.word(id, "load") == "udp" {
            let reached = goal("of N single links, UDP", Bound::AtLeast, UDP_GOAL, share_of_n);
            goals.push(reached.unless(base).unless(cpu_limited(report, id)));
        } else {
            goals.push(
                goal("of N single links, one TCP flow", Bound::AtLeast, TCP_GOAL, share_of_n).unless(base),
            );
            let again = report.median(id, "again_per_10k");
            goals.push(goal("segments sent again of 10,000", Bound::Below, AGAIN_GOAL, again));
        }
        for (what, metric) in [
            ("difference of the members' shares, TX", "tx_imbalance"),
            ("difference of the members' shares, RX", "rx_imbalance"),
        ] {
            goals.push(goal(what, Bound::AtMost, SHARE_GOAL, report.median(id, metric)));
        }
    }
    goals
}

/// One flow one way over 2 to 4 members, damped.
fn is_goal(report: &Report, id: &str) -> bool {
    report.parameter(id, "flows").is_some_and(|flows| *flows == 1)
        && report.word(id, "direction") == "forward"
        && report.parameter(id, "damping").is_some_and(|damping| *damping == true)
        && GOAL_MEMBERS.contains(&members(report, id))
}

/// Members of the sender's bond; 0 of a bare link.
fn members(report: &Report, id: &str) -> u64 {
    report.parameter(id, "members").and_then(serde_json::Value::as_u64).unwrap_or(0)
}

/// The rate of the sender's first link, Mbit/s.
fn rate(report: &Report, id: &str) -> Option<u64> {
    report.parameter(id, "rate_mbit")?.get(0)?.as_u64()
}

/// Fig. 4 at every rate, Fig. 5, how close it comes, and what was sent again.
pub(super) fn figure(report: &Report) -> Figure {
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
fn by_rate(rates: &[u32]) -> Groups<u32> {
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
