//! Failures and the soak on real namespaces; needs root, and the command (see `linkbraid_lab::daemon::binary`).

use linkbraid_bench::{Guard, Options, Report, find, run};

fn report(name: &str, only: &str) -> (Report, String) {
    let guard = Guard::new().expect("holds signals back");
    let options = Options { quick: true, only: Some(only.into()), ..Options::default() };
    let mut progress = Vec::new();
    let report = run(find(name).expect("there"), &options, &mut progress, &guard);
    let progress = String::from_utf8_lossy(&progress).into_owned();
    (report.unwrap_or_else(|error| panic!("{error}\n{progress}")), progress)
}

#[test]
fn a_lost_carrier_under_tcp_is_measured_from_failure_to_return() {
    let (report, progress) = report("failover", "carrier-ours/cubic/n2");
    assert_eq!(report.failed, [], "{progress}");
    let [failover] = &report.failovers[..] else { panic!("one case: {progress}") };
    assert_eq!(failover.connections_lost, Vec::<String>::new());
    assert_eq!(failover.incidents.len(), 2, "two links of one bond: {progress}");
    for incident in &failover.incidents {
        // Far more than the goal: what is tested is that both the failure and the return are seen.
        assert!(incident.gap_ms < incident.watched_ms, "the flow stood still: {incident:?}");
        assert!(incident.detected_ms.is_some(), "the daemon says nothing: {incident:?}");
        let restored = incident.restored.as_ref().expect("it was mended");
        assert!(restored.used_ms < restored.watched_ms, "the link is not used again: {incident:?}");
    }
    let trace = failover.trace.as_ref().expect("there is a curve");
    let part = |from: f64, to: f64| {
        let bin = |ms: f64| ((ms - trace.from_ms) / trace.bin_ms) as usize;
        let bins = &trace.mbit[bin(from)..bin(to)];
        bins.iter().sum::<f64>() / bins.len() as f64
    };
    let (before, after) = (part(-200.0, 0.0), part(600.0, 1000.0));
    assert!(
        before > after * 1.3,
        "two links carry {before} Mbit/s, the one that is left {after}: {progress}"
    );
}

#[test]
fn changes_under_datagrams_lose_and_double_none() {
    let (report, progress) = report("failover", "member-");
    assert_eq!(report.failed, [], "{progress}");
    let kinds: Vec<&str> = report.failovers.iter().map(|failover| failover.kind.as_str()).collect();
    assert_eq!(kinds, ["member-del", "member-add"], "{progress}");
    for failover in &report.failovers {
        assert_eq!(failover.incidents.len(), 2, "{progress}");
        let sent: u64 = failover.incidents.iter().filter_map(|incident| incident.sent).sum();
        assert!(sent > 10_000, "only {sent} datagrams were sent: {progress}");
    }
    let missed: Vec<_> = report.goals.iter().filter(|goal| goal.met == Some(false)).collect();
    assert!(missed.is_empty(), "{missed:?}\n{progress}");
}

#[test]
fn a_short_soak_loses_no_lane_and_leaves_nothing_behind() {
    let (report, progress) = report("soak", "");
    assert_eq!(report.failed, [], "{progress}");
    let soak = report.soak.expect("there");
    assert_eq!((soak.steps, soak.seed), (20, 1), "{progress}");
    assert!(soak.demanded > 5, "{progress}");
    assert_eq!(soak.broken, [], "{progress}");
    assert!(soak.tables_equal, "{progress}");
    assert_eq!(soak.left_behind, Vec::<String>::new(), "{progress}");
}
