use super::cuts::{Done, Round, cut, join};
use super::goals::{of_cuts, of_load};
use super::*;
use crate::flow::Trips;
use crate::report::tests::{cut_case, message_case, report};
use crate::report::{CutCase, MessageRatio, MessageSettings, Report};
use crate::stats::Spread;

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
    let bad = |outcome: crate::report::Outcome| (outcome.lost, outcome.late);
    assert_eq!((bad(cut.before), bad(cut.during), bad(cut.after)), ((1, 1), (3, 1), (0, 1)));
    assert_eq!(cut.during.last_bad_ms, Some(299.1), "counted from a round trip before the cut");
    assert!((cut.cut_ms, cut.again_ms) == (300.0, 800.0) && cut.during.sent == 300, "{cut:?}");
}

#[test]
fn what_is_late_follows_from_the_normal_round_trip_and_the_worst_cut_is_drawn() {
    let round = |lost: &[u64]| Round { trips: trips(1600, lost, &[500]), cuts: vec![done()] };
    let rounds = [round(&[410]), round(&[420, 430]), round(&[])];
    let case = join("mirror/udp", &cuts::MIRROR, LOADS[1], "mirror", MessageSettings::default(), &rounds);
    let case = case.expect("joins").expect("there");
    assert!((case.normal_us - 100.0).abs() < 0.2 && (case.late_us - 200.0).abs() < 0.4, "{}", case.normal_us);
    assert_eq!(case.sum(|cut| cut.during.lost), 3);
    assert_eq!(case.sum(|cut| cut.during.late), 3);
    assert_eq!(case.traces.iter().map(|trace| trace.cut).collect::<Vec<_>>(), [1]);
    let messages = &case.traces[0].messages;
    assert_eq!(messages.at_ms.first().zip(messages.at_ms.last()), Some((&-50.0, &249.0)));
    assert_eq!(messages.took_us.iter().filter(|took| took.is_none()).count(), 2);
}

fn ratio(name: &str, base: &str, value: f64) -> MessageRatio {
    MessageRatio {
        name: name.into(),
        base: base.into(),
        pairs: vec![value],
        spread: Some(Spread::one(value)),
    }
}

#[test]
fn scenarios_are_compared_with_the_same_repeat_of_their_bases() {
    let bulk = crate::report::tests::case("udp/bulk", 0, &[100.0, 95.0]);
    let report = Report {
        cases: vec![bulk],
        messages: vec![
            message_case("udp/idle", "idle", &[50.0, 100.0]),
            message_case("udp/one-0", "one-0", &[2000.0, 3000.0]),
            message_case("udp/two", "two", &[60.0, 110.0]),
        ],
        ..report()
    };
    let pairs = |id: &str, name: &str, base: &str| {
        let found = scenario::ratios(&report, report.message_case(id).expect("there"));
        let base = format!("udp/{base}");
        found.into_iter().find(|ratio| ratio.name == name && ratio.base == base).map(|ratio| ratio.pairs)
    };
    assert_eq!(pairs("udp/two", "median", "idle"), Some(vec![1.2, 1.1]));
    assert_eq!(pairs("udp/two", "bulk", "bulk"), Some(vec![1.9, 2.0]));
    assert_eq!(pairs("udp/two", "median", "two"), None);
    assert_eq!(pairs("udp/one-0", "p99", "idle"), Some(vec![40.0, 30.0]));
    assert_eq!(pairs("udp/one-0", "median", "two"), Some(vec![2000.0 / 60.0, 3000.0 / 110.0]));
}

#[test]
fn two_channels_are_judged_against_the_idle_link_and_one_against_two() {
    let verdicts = |median, p99, better, bulk| {
        let mut two = message_case("udp/two", "two", &[70.0]);
        two.ratios = vec![
            ratio("median", "udp/idle", median),
            ratio("p99", "udp/idle", p99),
            ratio("bulk", "udp/bulk", bulk),
        ];
        let mut one = message_case("udp/one-0", "one-0", &[2000.0]);
        one.ratios = vec![ratio("median", "udp/idle", 1.0), ratio("median", "udp/two", better)];
        of_load("udp", Some(&two), Some(&one)).iter().map(|goal| goal.met).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(1.2, 2.0, 20.0, 1.94), [Some(true); 5]);
    assert_eq!(
        verdicts(1.21, 2.1, 19.0, 1.93),
        [Some(false), Some(false), Some(true), Some(false), Some(false)]
    );
    assert!(of_load("udp", None, None).iter().all(|goal| goal.met.is_none()));
}

#[test]
fn a_late_message_counts_unless_the_machine_makes_them_late_anyway() {
    let met = |cuts: &[(u64, u64)]| {
        let each = |&(before, during): &(u64, u64)| cut_case("mirror/udp", before, during).cuts.remove(0);
        let case = CutCase { cuts: cuts.iter().map(each).collect(), ..cut_case("mirror/udp", 0, 0) };
        let goals = of_cuts("mirror/udp", Some(&case));
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
    let panels = |report: &Report| figure::draw(report).panels.len();
    let whole = Report {
        messages: LOADS
            .iter()
            .flat_map(|load| ["idle", "two"].map(|word| (load, word)))
            .map(|(load, word)| message_case(&format!("{}/{word}", load.word), word, &[70.0]))
            .collect(),
        ..report()
    };
    assert_eq!(panels(&whole), 6, "no goodput of a bare link to compare with");
    assert_eq!(panels(&Report { messages: Vec::new(), cuts: Vec::new(), ..report() }), 0);
}

#[test]
fn sizes_and_periods_out_of_range_are_refused() {
    let error = number("LINKBRAID_BENCH_NONE", 64, 8..=1472);
    assert_eq!(error, Ok(64), "what is not set is as usual");
    let error = parse("A_KEY", "7", 64, 8..=1472).expect_err("too small");
    assert_eq!(error.to_string(), "bench: cannot use A_KEY: '7' is outside the allowed range 8 to 1472");
    assert_eq!(parse("A_KEY", "8", 64, 8..=1472), Ok(8));
}
