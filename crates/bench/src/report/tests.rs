use super::*;
use crate::sample::{Parameters, Sample};
use serde_json::json;

/// A file with a record of every kind.
const FILE: &str = include_str!("tests/report.json");

pub(crate) fn report() -> Report {
    Report::parse(FILE).expect("is read")
}

/// A report of which nothing is known yet.
pub(crate) fn empty() -> Report {
    Report { measures: Vec::new(), curves: Vec::new(), remarks: Vec::new(), ..report() }
}

/// Adds goodput over links of 100 Mbit/s, with these ratios.
pub(crate) fn case(report: &mut Report, id: &str, members: u32, mbit: &[f64], ratios: &[(&str, f64)]) {
    let sample = |(repeat, mbit): (u32, &f64)| Sample {
        repeat,
        mbit: *mbit,
        segments: 20_000,
        segments_again: 3,
        wire_bytes: 2_000_000_000,
        cpu_s: 3.0,
        cpu_share: 0.5,
        ..Sample::default()
    };
    let parameters = Parameters {
        members,
        rate_mbit: vec![100; members.max(1) as usize],
        load: "tcp cubic".into(),
        flows: 1,
        direction: "forward".into(),
        ..Parameters::default()
    };
    let turns = (0..).zip(mbit).map(|at| sample(at).numbers(&parameters)).collect();
    report.record(CASES, id, Record { turns, parameters: json!(parameters), ..Record::default() });
    let measure = report.measures.iter_mut().rev().find(|measure| measure.metric == "mbit").expect("there");
    for (name, value) in ratios {
        let (ratios, ratio) = (vec![*value], Some(Spread::one(*value)));
        measure.against.push(Comparison { base: (*name).into(), ratios, ratio, ..Comparison::default() });
    }
}

/// A measure taken once.
pub(crate) fn measure(id: &str, metric: &str, value: f64, bytes: Option<u64>) -> Measure {
    let mut measure = Measure { id: id.into(), metric: metric.into(), bytes, ..Measure::default() };
    measure.add(0, value);
    measure
}

#[test]
fn goals_are_judged_by_their_bound() {
    let met = |bound, value| Goal::new("c", "w", bound, 1.0, value).met;
    assert_eq!(met(Bound::AtLeast, Some(1.0)), Some(true));
    assert_eq!(met(Bound::AtLeast, Some(0.99)), Some(false));
    assert_eq!(met(Bound::AtMost, Some(1.0)), Some(true));
    assert_eq!(met(Bound::AtMost, Some(1.01)), Some(false));
    assert_eq!(met(Bound::Below, Some(1.0)), Some(false));
    assert_eq!(met(Bound::Below, Some(0.9)), Some(true));
    assert_eq!(met(Bound::Below, None), None);
}

#[test]
fn an_excuse_opens_a_missed_goal_and_no_other() {
    let goal = |value| Goal::new("c", "w", Bound::AtLeast, 1.0, value).unless(Some("slow".into()));
    assert_eq!((goal(Some(0.5)).met, goal(Some(0.5)).reason.as_str()), (None, "slow"));
    assert_eq!((goal(Some(1.5)).met, goal(Some(1.5)).reason.as_str()), (Some(true), ""));
    assert_eq!(Goal::new("c", "w", Bound::AtLeast, 1.0, Some(0.5)).unless(None).met, Some(false));
}

#[test]
fn medians_are_over_the_samples_of_a_case() {
    let mut report = empty();
    case(&mut report, "x", 2, &[180.0, 200.0, 190.0], &[]);
    assert_eq!(report.spread("x", "mbit"), Some(Spread { median: 190.0, min: 180.0, max: 200.0 }));
    assert_eq!(report.median("x", "again_per_10k"), Some(1.5));
    assert_eq!(report.median("x", "cpu_s_per_gb"), Some(1.5));
    assert_eq!(report.median("x", "lost_share"), None);
    let apart = self::report().median("100mbit/cubic-1/n2", "tx_imbalance");
    assert_eq!(apart.map(|apart| (apart * 1e6).round() / 1e6), Some(0.04));
}

#[test]
fn a_file_is_read_with_all_its_numbers() {
    let report = report();
    assert_eq!(report.schema, SCHEMA);
    let kinds = [CASES, FAILOVERS, MESSAGES, CUTS, SOAK, DELIVERIES, FLOODS];
    assert_eq!(kinds.map(|kind| report.ids(kind).len()), [2, 1, 1, 1, 1, 1, 1]);
    let own = report.measures.iter().filter(|measure| measure.kind.is_empty());
    assert_eq!(own.count(), 2, "measures stay as they are");
    for (id, metric, value) in [
        ("100mbit/cubic-1/n2", "mbit", 190.0),
        ("100mbit/cubic-1/n2", "tx_shares.0", 0.51),
        ("100mbit/cubic-1/n2", "rival_mbit", 2.0),
        ("silent-both/udp/n2", "detected_far_ms", 130.0),
        ("silent-both/udp/n2", "restored.used_ms", 500.0),
        ("silent-both/udp/n2", "datagrams_per_s", 50_000.0),
        ("silent-both/udp/n2", "connections_lost", 1.0),
        ("silent-both/udp/n2", "machine.backlog_drops", 0.0),
        ("udp/two", "p99_us", 150.0),
        ("udp/two", "bulk.mbit", 190.0),
        ("mirror/udp", "normal_us", 70.0),
        ("mirror/udp", "during.late", 1.0),
        ("mirror/udp", "after.sent", 600.0),
        ("soak", "kinds.mend", 7.0),
        ("soak", "left_behind", 1.0),
        ("broadcast a -> b", "once", 8.0),
        ("silence", "frames", 100.0),
        ("latency/shm/64", "half_us", 30.0),
    ] {
        assert_eq!(report.median(id, metric), Some(value), "{id} {metric}");
    }
    assert_eq!(report.ratio("100mbit/cubic-1/n2", "single").map(|ratio| ratio.median), Some(2.0));
    assert_eq!(report.beside("udp/two", "median_us", "udp/idle"), Some(Spread::one(1.1)));
    let shown = |id: &str, name: &str| report.curve(id, name).map(|curve| (curve.x.clone(), curve.y.clone()));
    assert_eq!(
        shown("silent-both/udp/n2", "trace"),
        Some((vec![-297.5, -292.5], vec![Some(180.0), Some(0.0)]))
    );
    assert_eq!(shown("udp/two", "trace"), Some((vec![0.0, 1.0], vec![Some(70.0), None])));
    assert_eq!(shown("udp/two", "histogram"), Some((vec![70.0, 1000.0], vec![Some(2900.0), Some(100.0)])));
    assert!(shown("mirror/udp", "silent: 0 lost").is_some(), "{:?}", report.curves);
    let failover = report.measure("silent-both/udp/n2", "gap_ms").expect("there");
    assert_eq!(failover.words, ["a/eth0 no_answer"]);
    assert_eq!(report.word("silent-both/udp/n2", "kind"), "silent-both");
}

#[test]
fn only_values_of_one_turn_are_compared() {
    let of = |id: &str, values: &[(u32, f64)]| {
        let mut measure = Measure { id: id.into(), ..Measure::default() };
        values.iter().for_each(|(turn, value)| measure.add(*turn, *value));
        measure
    };
    let base = of("veth", &[(0, 10.0), (2, 40.0)]);
    let mut other = of("shm", &[(0, 20.0), (1, 1.0), (2, 60.0)]);
    other.compare_sum("veth", &[&base]);
    let beside = other.beside("veth").expect("compared");
    assert_eq!((&beside.ratios[..], &beside.differences[..]), (&[2.0, 1.5][..], &[10.0, 20.0][..]));
    assert_eq!(beside.ratio.map(|ratio| ratio.median), Some(1.75));
    other.compare_sum("late", &[&of("late", &[(7, 1.0)])]);
    assert_eq!(other.beside("late"), None);
    other.compare_sum("both", &[&base, &base]);
    assert_eq!(other.beside("both").map(|both| &both.ratios[..]), Some(&[1.0, 0.75][..]));
    let mut idle = of("idle", &[(0, 1.0)]);
    idle.compare_sum("none", &[&of("none", &[(0, 0.0)])]);
    let beside = idle.beside("none").expect("compared");
    assert_eq!((beside.ratio, &beside.differences[..]), (None, &[1.0][..]), "nothing is divided by nothing");
}

#[test]
fn the_keys_of_the_file_are_never_renamed() {
    let mut lines = Vec::new();
    let value = serde_json::to_value(report()).expect("serialises");
    keys(&value, "", &mut lines);
    lines.sort();
    lines.dedup();
    let golden = include_str!("golden.txt");
    let have = lines.join("\n") + "\n";
    assert_eq!(have, golden, "a new key is added to report/golden.txt; an old one never goes");
}

/// Every path of keys in a value; items of lists all have the same. Then every number of a record, which is named by its path.
fn keys(value: &serde_json::Value, path: &str, out: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                let inner = format!("{path}.{key}");
                out.push(inner.clone());
                // What a topology has is the lab's own.
                if key != "topology" {
                    keys(value, &inner, out);
                }
            }
            let word = |key: &str| map.get(key).and_then(serde_json::Value::as_str);
            if let (Some(kind), Some(metric)) = (word("kind"), word("metric")) {
                out.push(format!("{kind}: {metric}"));
            }
        }
        serde_json::Value::Array(list) => {
            list.iter().for_each(|value| keys(value, &format!("{path}[]"), out));
        }
        _ => {}
    }
}

#[test]
fn a_report_is_read_back_as_it_was_written() {
    let report = report();
    let text = serde_json::to_string(&report).expect("serialises");
    assert_eq!(Report::parse(&text).expect("parses"), report);
    let later = text.replacen("\"schema\":2", "\"schema\":3", 1);
    assert_eq!(Report::parse(&later), Err("it has layout 3, this program reads 2".into()));
}
