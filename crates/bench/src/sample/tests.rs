use super::*;

fn of(load: &str, direction: &str, rates: &[u32]) -> Option<f64> {
    let parameters = Parameters {
        load: load.into(),
        direction: direction.into(),
        rate_mbit: rates.into(),
        ..Parameters::default()
    };
    goodput_mbit(&parameters).map(|mbit| (mbit * 10.0).round() / 10.0)
}

#[test]
fn the_framing_is_taken_off() {
    assert_eq!(of("tcp cubic", "forward", &[100]), Some(95.6));
    assert_eq!(of("tcp bbr", "reverse", &[100, 20]), Some(114.8));
    assert_eq!(of("udp", "forward", &[100]), Some(97.2));
    assert_eq!(of("tcp cubic", "both", &[100, 100]), Some(382.6));
    assert_eq!(of("tcp cubic", "forward", &[]), None);
    let slow = Parameters { rate_mbit: vec![1000], far_rate_mbit: vec![100], ..Parameters::default() };
    assert!(goodput_mbit(&slow).is_some_and(|mbit| mbit < 100.0));
}
