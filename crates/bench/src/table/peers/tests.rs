use super::super::text;
use super::*;
use crate::report::tests::{case, empty, measure};

fn peers() -> Report {
    let mut report = Report { experiment: NAME.into(), ..empty() };
    report.machine.cpu = "QEMU TCG CPU version 2.5+".into();
    case(&mut report, "cubic-1/n2/linkbraid", 2, &[38.0], &[("single", 1.99)]);
    let first = report.measures.iter_mut().find(|measure| measure.metric == "mbit").expect("there");
    first.against[0].ratio = Spread::of([1.98, 1.99, 2.0]);
    case(&mut report, "cubic-1/n2/balance-rr", 2, &[38.0], &[("single", 1.5)]);
    case(&mut report, "udp/n2/balance-rr", 2, &[38.0], &[("single", 1.0)]);
    for (metric, value) in [("stall_ms", 4000.0), ("left_share", 0.0), ("pings_lost", 150.0)] {
        report.measures.push(measure("failover/silent-ours/balance-alb", metric, value, None));
    }
    report
}

#[test]
fn each_system_has_a_line_and_what_was_not_measured_a_dash() {
    let text = text(&peers());
    let line = |begin: &str| text.lines().find(|line| line.starts_with(begin)).expect("there").to_owned();
    assert!(
        line("linkbraid ").contains("1.990 (1.98 to 2.00), 1.5 again") && line("linkbraid ").ends_with('-')
    );
    assert!(line("balance-rr ").contains("1.500, 1.5 again"), "{text}");
    assert!(!text.contains("balance-rr-separate"), "what was not measured has no line: {text}");
    assert!(text.contains("a switch that relearns a MAC at every frame"), "{text}");
    assert!(text.contains("The CPU is emulated"), "{text}");
}

#[test]
fn a_failure_says_what_is_left_and_is_in_no_other_table() {
    let text = text(&peers());
    assert!(text.contains("4000 ms, 0.00 left, 150 pings"), "{text}");
    assert!(!text.contains("stall_ms"), "{text}");
    assert!(text.contains("silent, sender's link") && !text.contains("carrier, sender's link"), "{text}");
}

#[test]
fn other_experiments_have_none_of_this() {
    let other = Report { experiment: "scaling".into(), ..peers() };
    assert!(tables(&other).is_empty() && notes(&other).is_empty());
}

#[test]
fn losses_of_unmeasured_seconds_are_none() {
    // 6603 datagrams in 2 s, half of which arrived; iperf3 adds the losses of the second before.
    let mut report = empty();
    let sent = [("mbit", 19.45), ("datagrams", 6603.0), ("datagrams_lost", 4890.0)];
    report.measures = sent.map(|(metric, value)| measure("udp", metric, value, None)).into();
    let lost = lost(&report, "udp", 2).expect("datagrams").median;
    assert!((lost - 0.5).abs() < 0.01, "{lost}");
}
