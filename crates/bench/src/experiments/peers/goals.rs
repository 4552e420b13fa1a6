//! What linkbraid wants to reach beside the others.

use super::failures::{KINDS, id as failure_id};
use super::rates::{LOADS, base, id};
use super::system::{MPTCP, OURS, SYSTEMS};
use crate::limit;
use crate::report::{Bound, Case, Goal, Report};
use crate::run::Run;

/// One TCP flow over several links: the share of so many single ones, and of what MPTCP reaches.
const SINGLES: f64 = 0.99;
const OF_MPTCP: f64 = 1.0;
/// Eight flows and UDP: the share of what the best of the others reaches.
const OF_BEST: f64 = 1.0;
/// Segments sent again, of 10,000.
const AGAIN: f64 = 1.0;
/// What the bare link must carry of its rate's limit, to say anything.
const BASE_SHARE: f64 = 0.95;
/// Milliseconds without data after a carrier is lost at the sender, at the receiver, and after a silent failure.
const STALLS: [(&str, f64); 4] =
    [("carrier-ours", 50.0), ("carrier-theirs", 100.0), ("silent-ours", 250.0), ("silent-theirs", 250.0)];
/// Numbers of links that goals are about.
const LINKS: [usize; 2] = [2, 4];

/// Adds all goals of what was measured.
pub(super) fn add(run: &mut Run<'_>) {
    for goal in goals(&run.report) {
        run.goal(goal);
    }
}

fn goals(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    for load in &LOADS {
        let base = base(load.word);
        if let Some(case) = report.case(&base) {
            let what = "of what its rate allows, the bare link: emulation is not the limit";
            goals.push(Goal::new(&base, what, Bound::AtLeast, BASE_SHARE, of_limit(case)));
        }
        for links in LINKS {
            if let Some(case) = report.case(&id(load.word, links, OURS)) {
                goals.extend(of_case(report, case, load.word, links));
            }
        }
    }
    for (kind, limit) in STALLS {
        let id = failure_id(kind, OURS);
        let stall = report.measure(&id, "stall_ms").and_then(|measure| measure.spread);
        if let Some(stall) = stall {
            let silent = kind.starts_with("silent");
            let what = if silent {
                "ms without new data after a silent failure"
            } else if kind == KINDS[0].word {
                "ms without new data after the sender's link lost its carrier"
            } else {
                "ms without new data after the receiver's link lost its carrier"
            };
            goals.push(Goal::new(&id, what, Bound::AtMost, limit, Some(stall.median)));
        }
    }
    goals
}

fn of_case(report: &Report, case: &Case, load: &str, links: usize) -> Vec<Goal> {
    let weak = weak_base(report, load);
    let goal = |what: String, bound, limit, value| {
        Goal::new(&case.id, what, bound, limit, value).unless(weak.clone())
    };
    let flow = case.parameters.flows == 1 && case.parameters.load != "udp";
    if !flow {
        let title = LOADS.iter().find(|known| known.word == load).map_or(load, |known| known.title);
        let best = best_other(report, load, links);
        let value = best.zip(case.ratio("single")).map(|((_, best), ours)| ours / best);
        return vec![goal(
            format!("of the best other system in the same run, {title}"),
            Bound::AtLeast,
            OF_BEST,
            value,
        )];
    }
    let share = case.ratio("single").map(|ratio| ratio / links as f64);
    let again = case.medians.again_per_10k.map(|spread| spread.median);
    vec![
        goal("of MPTCP in the same run, one TCP flow".into(), Bound::AtLeast, OF_MPTCP, case.ratio(MPTCP)),
        goal("of N single links, one TCP flow".into(), Bound::AtLeast, SINGLES, share),
        goal("segments sent again of 10,000".into(), Bound::Below, AGAIN, again),
    ]
}

/// The other system whose median is the highest, wherever it was measured: the name and the ratio to one bare link.
fn best_other(report: &Report, load: &str, links: usize) -> Option<(&'static str, f64)> {
    let others = SYSTEMS.iter().filter(|system| !system.word.starts_with(OURS));
    others
        .filter_map(|system| {
            Some((system.word, report.case(&id(load, links, system.word))?.ratio("single")?))
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

fn of_limit(case: &Case) -> Option<f64> {
    Some(case.medians.mbit?.median / limit::goodput_mbit(&case.parameters)?)
}

/// Why a load's figures say little.
fn weak_base(report: &Report, load: &str) -> Option<String> {
    let share = of_limit(report.case(&base(load))?)?;
    (share < BASE_SHARE).then(|| format!("the bare link itself carries only {share:.2} of its rate"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{case, report};
    use crate::report::{Metric, Ratio};
    use crate::stats::Spread;

    fn measured(id: &str, links: u32, single: f64) -> Case {
        let mut case = case(id, links, &[19.1 * single]);
        case.parameters.rate_mbit = vec![20; links as usize];
        case.parameters.far_rate_mbit = case.parameters.rate_mbit.clone();
        case.ratios = vec![ratio("single", single)];
        case
    }

    fn ratio(name: &str, value: f64) -> Ratio {
        Ratio {
            name: name.into(),
            metric: Metric::Mbit,
            bases: vec![],
            ideal: 1.0,
            pairs: vec![value],
            spread: Some(Spread::one(value)),
        }
    }

    fn of(cases: Vec<Case>) -> Vec<Goal> {
        goals(&Report { cases, ..report() })
    }

    #[test]
    fn one_flow_is_held_against_mptcp_and_against_single_links() {
        let mut ours = measured("cubic-1/n2/linkbraid", 2, 1.96);
        ours.ratios.push(ratio("mptcp", 1.01));
        let goals = of(vec![measured("cubic-1/single", 1, 1.0), ours]);
        let met: Vec<Option<bool>> = goals.iter().map(|goal| goal.met).collect();
        assert_eq!(met, [Some(true), Some(true), Some(false), Some(false)], "{goals:?}");
        assert_eq!(goals[1].value, Some(1.01));
    }

    #[test]
    fn eight_flows_are_held_against_the_best_of_the_others_wherever_it_is() {
        let eight = |system: &str, single| {
            let mut case = measured(&format!("cubic-8/n4/{system}"), 4, single);
            case.parameters.flows = 8;
            case
        };
        let cases = vec![
            eight("linkbraid", 3.9),
            eight("linkbraid-separate", 9.0),
            eight("mptcp", 3.0),
            eight("balance-rr-separate", 3.95),
        ];
        let goals = of(cases);
        assert_eq!(goals.len(), 1, "{goals:?}");
        assert_eq!(goals[0].met, Some(false));
        assert!((goals[0].value.expect("there") - 3.9 / 3.95).abs() < 1e-9);
    }

    #[test]
    fn where_emulation_is_the_limit_a_missed_goal_stays_open() {
        let mut ours = measured("cubic-1/n2/linkbraid", 2, 1.5);
        ours.ratios.push(ratio("mptcp", 0.9));
        let goals = of(vec![measured("cubic-1/single", 1, 0.9), ours]);
        let met: Vec<Option<bool>> = goals.iter().map(|goal| goal.met).collect();
        assert_eq!(met, [Some(false), None, None, None], "{goals:?}");
    }
}
