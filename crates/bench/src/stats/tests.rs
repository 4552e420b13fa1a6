use super::*;

#[test]
fn the_median_is_the_middle_whatever_the_order() {
    let spread = |values: &[f64]| Spread::of(values.iter().copied());
    assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
    assert_eq!(spread(&[4.0, 1.0, 3.0, 2.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
    assert_eq!(spread(&[7.0]), Some(Spread { median: 7.0, min: 7.0, max: 7.0 }));
    assert_eq!(spread(&[-1.0, 1e9, 0.0]).map(|s| s.median), Some(0.0), "an outlier does not move it");
}

#[test]
fn nothing_and_nonsense_have_no_median() {
    assert_eq!(Spread::of([]), None);
    assert_eq!(Spread::of([1.0, f64::NAN]), None);
    assert_eq!(Spread::of([1.0, 1.0 / 0.0]), None);
}

#[test]
fn shares_are_of_the_whole() {
    assert_eq!(shares(&[1, 1, 2]), [0.25, 0.25, 0.5]);
    assert_eq!(shares(&[0, 0]), [0.0; 0]);
    assert_eq!(shares(&[]), [0.0; 0]);
}

#[test]
fn imbalance_is_relative_to_what_the_rates_call_for() {
    let of = |shares: &[f64], rates: &[u32]| imbalance(shares, rates).map(|x| (x * 1e9).round() / 1e9);
    assert_eq!(of(&[0.25, 0.25, 0.25, 0.25], &[7; 4]), Some(0.0));
    assert_eq!(of(&[0.51, 0.49], &[100, 100]), Some(0.04));
    assert_eq!(of(&[0.8, 0.2], &[400, 100]), Some(0.0));
    assert_eq!(of(&[0.5, 0.5], &[300, 100]), Some(1.333_333_333));
    assert_eq!(of(&[1.0], &[100]), None);
    assert_eq!(of(&[0.5, 0.5], &[]), None, "links without a rate call for nothing");
    assert_eq!(of(&[0.5, 0.5], &[0, 0]), None);
}
