//! What linkbraid wants to reach beside the others.

use super::failures::id as failure_id;
use super::rates::{LOADS, Load, base, id};
use super::system::{MPTCP, OURS, SYSTEMS};
use crate::experiments::prelude::*;
use crate::run::{BASE_SHARE, weak_base};

/// One TCP flow over several links: the share of so many single ones, and of what MPTCP reaches.
const SINGLES: f64 = 0.99;
const OF_MPTCP: f64 = 1.0;
/// Eight flows and UDP: the share of what the best of the others reaches.
const OF_BEST: f64 = 1.0;
/// Segments sent again, of 10,000.
const AGAIN: f64 = 1.0;
/// The longest time without data after each failure, in milliseconds.
const STALLS: [(&str, &str, f64); 4] = [
    ("carrier-ours", "the sender's link lost its carrier", 50.0),
    ("carrier-theirs", "the receiver's link lost its carrier", 100.0),
    ("silent-ours", "a silent failure", 250.0),
    ("silent-theirs", "a silent failure", 250.0),
];
/// Numbers of links that goals are about.
const LINKS: [usize; 2] = [2, 4];

pub(super) fn goals(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    for load in &LOADS {
        let base = base(load.word);
        if let Some(share) = report.median(&base, "of_limit") {
            let what = "of what its rate allows, the bare link: emulation is not the limit";
            goals.push(Goal::new(&base, what, Bound::AtLeast, BASE_SHARE, Some(share)));
        }
        for links in LINKS {
            let id = id(load.word, links, OURS);
            if report.measure(&id, "mbit").is_some() {
                goals.extend(of_case(report, &id, load, links));
            }
        }
    }
    for (kind, failure, limit) in STALLS {
        let id = failure_id(kind, OURS);
        if let Some(stall) = report.median(&id, "stall_ms") {
            let what = format!("ms without new data after {failure}");
            goals.push(Goal::new(&id, what, Bound::AtMost, limit, Some(stall)));
        }
    }
    goals
}

fn of_case(report: &Report, case: &str, load: &Load, links: usize) -> Vec<Goal> {
    let weak = weak_base(report, &base(load.word));
    let goal =
        |what: String, bound, limit, value| Goal::new(case, what, bound, limit, value).unless(weak.clone());
    let ratio = |name| report.mid_ratio(case, name);
    let flow = report.parameter(case, "flows").is_some_and(|flows| *flows == 1)
        && report.word(case, "load") != "udp";
    if !flow {
        // The other system whose median is the highest, wherever it was measured.
        let others = SYSTEMS.iter().filter(|system| !system.word.starts_with(OURS));
        let others =
            others.filter_map(|system| report.mid_ratio(&id(load.word, links, system.word), "single"));
        let best = others.max_by(f64::total_cmp);
        let value = best.zip(ratio("single")).map(|(best, ours)| ours / best);
        let what = format!("of the best other system in the same run, {}", load.title);
        return vec![goal(what, Bound::AtLeast, OF_BEST, value)];
    }
    let share = ratio("single").map(|ratio| ratio / links as f64);
    let again = report.median(case, "again_per_10k");
    vec![
        goal("of MPTCP in the same run, one TCP flow".into(), Bound::AtLeast, OF_MPTCP, ratio(MPTCP)),
        goal("of N single links, one TCP flow".into(), Bound::AtLeast, SINGLES, share),
        goal("segments sent again of 10,000".into(), Bound::Below, AGAIN, again),
    ]
}

#[cfg(test)]
mod tests;
