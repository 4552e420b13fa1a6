use super::*;

#[test]
fn percentiles_are_exact_to_a_thousandth() {
    let all = Percentiles::of((1..=1000).map(|n| Duration::from_micros(n * 10))).expect("makes");
    for (share, us) in [(0.5, 5000.0), (0.99, 9900.0), (0.999, 9990.0), (1.0, 10_000.0)] {
        let at = all.at_us(share);
        assert!((at / us - 1.0).abs() < 0.002, "{share}: {at}");
    }
    assert_eq!(all.len(), 1000);
    assert!((all.mean() / 5_005_000.0 - 1.0).abs() < 0.001, "{}", all.mean());
    assert!((us(all.min()) / 10.0 - 1.0).abs() < 0.001);
}

#[test]
fn bars_have_every_time_once_and_what_is_too_long_is_the_longest() {
    let mut all = Percentiles::of([3, 40, 40, 900].map(Duration::from_micros)).expect("makes");
    all.join(&Percentiles::of([Duration::from_secs(600)]).expect("makes")).expect("same bounds");
    let bins = all.bins();
    let (ends, counts): (Vec<f64>, Vec<f64>) = bins.into_iter().unzip();
    assert_eq!(counts, [1.0, 2.0, 1.0, 1.0]);
    for (end, us) in ends.iter().zip([3.0, 40.0, 900.0]) {
        assert!((us..us * 1.11).contains(end), "{ends:?}");
    }
    assert_eq!(Percentiles::new().expect("makes").bins(), []);
}
