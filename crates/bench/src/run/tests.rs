use super::*;
use crate::report::tests::case;

#[test]
fn only_a_busy_machine_is_an_excuse() {
    let mut case = case("x", 2, &[1.0]);
    assert_eq!(cpu_limited(&case), None);
    case.samples[0].cpu_share = 0.97;
    case.medians = Medians::of(&case.samples, &[100, 100]);
    assert_eq!(cpu_limited(&case).as_deref(), Some("the machine was at its limit: CPU 97 % busy"));
}
