use super::*;
use crate::report::tests::{case, empty};
use crate::stats::Spread;

#[test]
fn ratios_are_made_within_a_repeat() {
    let mut report = empty();
    case(&mut report, "fast", 0, &[100.0, 50.0, 80.0], &[]);
    case(&mut report, "slow", 0, &[20.0, 50.0, 20.0], &[]);
    case(&mut report, "both", 2, &[60.0, 100.0, 100.0], &[]);
    compare(&mut report, "both", &Against::mbit("sum", ["fast".into(), "slow".into()], 1.0));
    let sum = report.measure("both", "mbit").and_then(|mbit| mbit.beside("sum")).expect("compared");
    assert_eq!(sum.ratios, [0.5, 1.0, 1.0]);
    assert_eq!(sum.ratio, Some(Spread { median: 1.0, min: 0.5, max: 1.0 }));
    assert_eq!((&sum.bases[..], sum.ideal), (&["fast".to_owned(), "slow".into()][..], Some(1.0)));
    compare(&mut report, "both", &Against::cpu("fast".into()));
    assert_eq!(report.ratio("both", "cpu"), Some(Spread::one(1.0)));
}

#[test]
fn a_repeat_without_its_base_has_no_ratio() {
    let mut report = empty();
    case(&mut report, "base", 0, &[100.0], &[]);
    case(&mut report, "bond", 2, &[200.0, 300.0], &[]);
    compare(&mut report, "bond", &Against::mbit("gone", ["gone".into()], 2.0));
    assert_eq!(report.ratio("bond", "gone"), None);
    compare(&mut report, "bond", &Against::mbit("single", ["base".into()], 2.0));
    let single = report.measure("bond", "mbit").and_then(|mbit| mbit.beside("single"));
    assert_eq!(single.map(|single| &single.ratios[..]), Some(&[2.0][..]));
}
