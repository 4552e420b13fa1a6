use super::*;
use crate::report::tests::{case, empty, measure};

#[test]
fn only_a_busy_machine_is_an_excuse() {
    let mut report = empty();
    case(&mut report, "x", 2, &[1.0], &[]);
    assert_eq!(cpu_limited(&report, "x"), None);
    report.measures.push(measure("y", "cpu_share", 0.97, None));
    assert_eq!(cpu_limited(&report, "y").as_deref(), Some("the machine was at its limit: CPU 97 % busy"));
}

#[test]
fn numbers_of_the_environment_out_of_range_are_refused() {
    let error = number("LINKBRAID_BENCH_NONE", 64, 8..=1472);
    assert_eq!(error, Ok(64), "what is not set is as usual");
    let error = parse("A_KEY", "7", 64, 8..=1472).expect_err("too small");
    assert_eq!(error.to_string(), "bench: cannot use A_KEY: '7' is outside the allowed range 8 to 1472");
    assert_eq!(parse("A_KEY", "8", 64, 8..=1472), Ok(8));
}
