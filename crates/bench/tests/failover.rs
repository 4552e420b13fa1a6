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
    let id = "carrier-ours/cubic/n2";
    let values = |metric: &str| {
        let found = report.measure(id, metric).unwrap_or_else(|| panic!("no {metric}: {progress}"));
        assert_eq!(found.values.len(), 2, "two links of one bond: {progress}");
        found.values.clone()
    };
    assert_eq!(report.sum(id, "connections_lost"), Some(0.0));
    let below = |metric: &str, limit: &str| {
        let (values, limits) = (values(metric), values(limit));
        assert!(
            values.iter().zip(limits).all(|(value, limit)| *value < limit),
            "{metric} {values:?}: {progress}"
        );
    };
    // Far more than the goal: what is tested is that both the failure and the return are seen.
    below("gap_ms", "watched_ms");
    below("detected_ms", "watched_ms");
    below("restored.used_ms", "restored.watched_ms");
    let trace = report.curve(id, "trace").expect("there is a curve");
    let part = |from: f64, to: f64| {
        let bins = trace.x.iter().zip(&trace.y).filter(|(x, _)| (from..to).contains(x));
        let bins: Vec<f64> = bins.filter_map(|(_, mbit)| *mbit).collect();
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
    for id in ["member-del/udp/n2", "member-add/udp/n2"] {
        let sent = report.measure(id, "sent").unwrap_or_else(|| panic!("no {id}: {progress}"));
        assert_eq!(sent.values.len(), 2, "{progress}");
        let sent: f64 = sent.values.iter().sum();
        assert!(sent > 10_000.0, "only {sent} datagrams were sent: {progress}");
    }
    let missed: Vec<_> = report.goals.iter().filter(|goal| goal.met == Some(false)).collect();
    assert!(missed.is_empty(), "{missed:?}\n{progress}");
}

#[test]
fn a_short_soak_loses_no_lane_and_leaves_nothing_behind() {
    let (report, progress) = report("soak", "");
    assert_eq!(report.failed, [], "{progress}");
    let number = |metric| report.sum("soak", metric).unwrap_or_else(|| panic!("no {metric}: {progress}"));
    assert_eq!(number("steps"), 20.0, "{progress}");
    assert!(report.parameter("soak", "seed").is_some_and(|seed| *seed == 1), "{progress}");
    assert!(number("demanded") > 5.0, "{progress}");
    assert_eq!(number("broken"), 0.0, "{:?} {progress}", report.remarks);
    assert_eq!(number("tables_equal"), 1.0, "{progress}");
    assert_eq!(number("left_behind"), 0.0, "{:?} {progress}", report.remarks);
}
