use super::*;
use crate::report::tests::{case, report};

#[test]
fn ratios_are_made_within_a_repeat() {
    let mut report = report();
    report.cases = vec![
        case("fast", 0, &[100.0, 50.0, 80.0]),
        case("slow", 0, &[20.0, 50.0, 20.0]),
        case("both", 2, &[60.0, 100.0, 100.0]),
    ];
    let sum = ratio(&report, 2, &Against::mbit("sum", ["fast".into(), "slow".into()], 1.0));
    assert_eq!(sum.pairs, [0.5, 1.0, 1.0]);
    assert_eq!(sum.spread, Some(Spread { median: 1.0, min: 0.5, max: 1.0 }));
    let cpu = ratio(&report, 2, &Against::cpu("fast".into()));
    assert_eq!(cpu.pairs, [1.0, 1.0, 1.0]);
}

#[test]
fn a_repeat_without_its_base_has_no_ratio() {
    let mut report = report();
    report.cases = vec![case("base", 0, &[100.0]), case("bond", 2, &[200.0, 300.0])];
    let against = |base: &str| Against::mbit("single", [base.to_owned()], 2.0);
    assert_eq!(ratio(&report, 1, &against("base")).pairs, [2.0]);
    let none = ratio(&report, 1, &against("gone"));
    assert_eq!((none.pairs.len(), none.spread), (0, None));
}
