use super::cuts::{Done, Round, cut, take};
use super::*;
use crate::flow::{TripCount, Trips};
use crate::report::tests::{case, empty, measure};
use crate::report::{CUTS, MESSAGES, Record, Report};
use serde_json::json;

const MS: Duration = Duration::from_millis(1);

/// A message each millisecond that takes 100 us; those of `lost` are lost, those of `late` take 5 ms.
fn trips(count: u64, lost: &[u64], late: &[u64]) -> Trips {
    let mut trips = Trips::default();
    for number in 0..count {
        let at = MS * u32::try_from(number).expect("small");
        trips.leaves(at);
        if late.contains(&number) {
            trips.is_back(number, at + MS * 5);
        } else if !lost.contains(&number) {
            trips.is_back(number, at + MS / 10);
        }
    }
    trips
}

fn done() -> Done {
    Done { object: "a/eth1".into(), kind: "silent", cut: MS * 400, mended: MS * 700, again: MS * 1500 }
}

#[test]
fn messages_are_counted_before_during_and_after_a_cut() {
    let trips = trips(1600, &[150, 400, 401, 699], &[300, 500, 900]);
    let cut = cut(&trips, &done(), Duration::from_micros(200));
    let bad = |outcome: TripCount| (outcome.lost, outcome.late);
    assert_eq!((bad(cut.before), bad(cut.during), bad(cut.after)), ((1, 1), (3, 1), (0, 1)));
    assert_eq!(cut.during.last_bad_ms, Some(299.1), "counted from a round trip before the cut");
    assert!((cut.cut_ms, cut.again_ms) == (300.0, 800.0) && cut.during.sent == 300, "{cut:?}");
}

#[test]
fn what_is_late_follows_from_the_normal_round_trip_and_the_worst_cut_is_drawn() {
    let round = |lost: &[u64]| Round { trips: trips(1600, lost, &[500]), cuts: vec![done()] };
    let rounds = [round(&[410]), round(&[420, 430]), round(&[])];
    let mut report = empty();
    take(&mut report, "mirror/udp", json!({}), 0, &rounds).expect("taken");
    let [normal, late] =
        ["normal_us", "late_us"].map(|metric| report.median("mirror/udp", metric).expect("there"));
    assert!((normal - 100.0).abs() < 0.2 && (late - 200.0).abs() < 0.4, "{normal} {late}");
    let sums = ["during.lost", "during.late"].map(|metric| report.sum("mirror/udp", metric));
    assert_eq!(sums, [Some(3.0), Some(3.0)]);
    let [worst] = &report.curves[..] else { panic!("one kind of cut: {:?}", report.curves) };
    assert_eq!(worst.name, "silent: 2 lost");
    assert_eq!(worst.x.first().zip(worst.x.last()), Some((&-50.0, &249.0)));
    assert_eq!(worst.y.iter().filter(|took| took.is_none()).count(), 2);
}

/// Messages with these medians, the 99th percentile at twice as much, beside bulk traffic.
fn messages(report: &mut Report, word: &str, medians_us: &[f64]) {
    let sample = |(repeat, median_us): (u32, &f64)| {
        json!({
            "repeat": repeat, "lost": 0, "median_us": median_us, "p99_us": median_us * 2.0, "cpu_share": 0.4,
            "bulk": { "mbit": 190.0 },
        })
    };
    let samples: Vec<_> = (0..).zip(medians_us).map(sample).collect();
    report.record(MESSAGES, word, Record { turns: samples, ..Record::default() });
    report.draw(word, "trace", (vec![0.0, 1.0], vec![Some(70.0), None]));
    report.draw(word, "histogram", (vec![70.0, 1000.0], vec![Some(2900.0), Some(100.0)]));
}

#[test]
fn scenarios_are_compared_with_the_same_repeat_of_their_bases() {
    let mut report = empty();
    case(&mut report, "udp/bulk", 0, &[100.0, 95.0], &[]);
    messages(&mut report, "udp/idle", &[50.0, 100.0]);
    messages(&mut report, "udp/one-0", &[2000.0, 3000.0]);
    messages(&mut report, "udp/two", &[60.0, 110.0]);
    scenario::compare(&mut report, "udp");
    let pairs = |id: &str, metric: &str, base: &str| {
        report.measure(id, metric).expect("there").beside(base).map(|beside| beside.ratios.clone())
    };
    assert_eq!(pairs("udp/two", "median_us", "udp/idle"), Some(vec![1.2, 1.1]));
    assert_eq!(pairs("udp/two", "bulk.mbit", "udp/bulk"), Some(vec![1.9, 2.0]));
    assert_eq!(pairs("udp/two", "median_us", "udp/two"), None);
    assert_eq!(pairs("udp/one-0", "p99_us", "udp/idle"), Some(vec![40.0, 30.0]));
    assert_eq!(pairs("udp/one-0", "median_us", "udp/two"), Some(vec![2000.0 / 60.0, 3000.0 / 110.0]));
}

#[test]
fn two_channels_are_judged_against_the_idle_link_and_one_against_two() {
    let verdicts = |median: f64, p99: f64, better: f64, links: f64| {
        let mut report = empty();
        case(&mut report, "udp/bulk", 0, &[190.0 / links], &[]);
        messages(&mut report, "udp/idle", &[100.0]);
        messages(&mut report, "udp/two", &[100.0 * median]);
        messages(&mut report, "udp/one-0", &[100.0 * median * better]);
        messages(&mut report, "udp/one-class", &[100.0 * median]);
        let idle = report.measures.iter_mut().find(|m| m.id == "udp/idle" && m.metric == "p99_us");
        idle.expect("there").values[0] = 200.0 * median / p99;
        scenario::compare(&mut report, "udp");
        of_load(&report, "udp").iter().map(|goal| goal.met).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(1.2, 2.0, 20.0, 1.9401), [Some(true); 6]);
    assert_eq!(
        verdicts(1.21, 2.1, 19.0, 1.93),
        [Some(false), Some(false), Some(true), Some(false), Some(false), Some(false)]
    );
    assert!(of_load(&empty(), "udp").iter().all(|goal| goal.met.is_none()));
}

/// Cuts with so many messages late before each and during it.
fn cut_late(report: &mut Report, id: &str, cuts: &[(u64, u64)]) {
    let outcome = |late: u64| json!({ "sent": 600, "lost": 0, "late": late });
    let cut = |(before, during): &(u64, u64)| json!({ "kind": "silent", "before": outcome(*before), "during": outcome(*during), "after": outcome(0) });
    let turns = cuts.iter().map(cut).collect();
    let totals = json!({ "late_us": 140.0, "twice": 0 });
    report.record(CUTS, id, Record { turns, totals, ..Record::default() });
    report.draw(id, "silent: 0 lost", (vec![-1.0, 1.0], vec![Some(70.0), Some(200.0)]));
}

#[test]
fn a_late_message_counts_unless_the_machine_makes_them_late_anyway() {
    let met = |cuts: &[(u64, u64)]| {
        let mut report = empty();
        cut_late(&mut report, "mirror/udp", cuts);
        let goals = of_cuts(&report, "mirror/udp");
        assert!(goals.iter().all(|goal| goal.what.contains("late") || goal.met == Some(true)), "{goals:?}");
        goals.iter().find(|goal| goal.what.contains("late")).expect("there").met
    };
    assert_eq!(met(&[(0, 0), (3, 0)]), Some(true));
    assert_eq!(met(&[(0, 1), (0, 0)]), Some(false), "none is late without a cut");
    assert_eq!(met(&[(5, 9), (20, 3), (0, 30), (7, 6)]), None, "bursts");
    assert_eq!(met(&[(5, 9), (3, 8), (4, 10), (6, 10)]), Some(false), "each cut makes some late");
    assert_eq!(met(&[(1, 2)]), Some(false), "one cut says nothing about chance");
}

#[test]
fn the_figure_has_a_panel_for_each_thing_that_was_measured() {
    let mut report = empty();
    for word in ["tcp/idle", "tcp/two", "udp/idle", "udp/two"] {
        messages(&mut report, word, &[70.0]);
    }
    cut_late(&mut report, "mirror/udp", &[(0, 1)]);
    assert_eq!(figure::draw(&report).panels.len(), 6, "no goodput of a bare link to compare with");
    report.measures.push(measure("udp/bulk", "mbit", 95.0, None));
    scenario::compare(&mut report, "udp");
    assert_eq!(figure::draw(&report).panels.len(), 7);
    assert!(figure::draw(&empty()).panels.is_empty());
}
