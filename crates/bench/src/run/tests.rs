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
