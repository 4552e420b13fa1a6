use super::*;
use crate::report::tests::{case, empty};

/// Cases with this many links and flows, a ratio to one bare link, and one to MPTCP where there is one.
fn of(cases: &[(&str, u32, u32, f64, Option<f64>)]) -> Vec<Goal> {
    let mut report = empty();
    for (id, links, flows, single, mptcp) in cases {
        let ratios: Vec<(&str, f64)> =
            [("single", *single)].into_iter().chain(mptcp.map(|ratio| (MPTCP, ratio))).collect();
        case(&mut report, id, *links, &[95.6 * single], &ratios);
        let first = report.measures.iter_mut().find(|m| m.id == *id && m.metric == "mbit").expect("there");
        first.parameters.insert("flows".into(), (*flows).into());
    }
    goals(&report)
}

#[test]
fn one_flow_is_held_against_mptcp_and_against_single_links() {
    let goals = of(&[("cubic-1/single", 1, 1, 1.0, None), ("cubic-1/n2/linkbraid", 2, 1, 1.96, Some(1.01))]);
    let met: Vec<Option<bool>> = goals.iter().map(|goal| goal.met).collect();
    assert_eq!(met, [Some(true), Some(true), Some(false), Some(false)], "{goals:?}");
    assert_eq!(goals[1].value, Some(1.01));
}

#[test]
fn eight_flows_are_held_against_the_best_of_the_others_wherever_it_is() {
    let goals = of(&[
        ("cubic-8/n4/linkbraid", 4, 8, 3.9, None),
        ("cubic-8/n4/linkbraid-separate", 4, 8, 9.0, None),
        ("cubic-8/n4/mptcp", 4, 8, 3.0, None),
        ("cubic-8/n4/balance-rr-separate", 4, 8, 3.95, None),
    ]);
    assert_eq!(goals.len(), 1, "{goals:?}");
    assert_eq!(goals[0].met, Some(false));
    assert!((goals[0].value.expect("there") - 3.9 / 3.95).abs() < 1e-9);
}

#[test]
fn where_emulation_is_the_limit_a_missed_goal_stays_open() {
    let goals = of(&[("cubic-1/single", 1, 1, 0.9, None), ("cubic-1/n2/linkbraid", 2, 1, 1.5, Some(0.9))]);
    let met: Vec<Option<bool>> = goals.iter().map(|goal| goal.met).collect();
    assert_eq!(met, [Some(false), None, None, None], "{goals:?}");
}
