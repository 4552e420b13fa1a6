use super::*;
use crate::report::tests::empty;
use crate::report::{Bound, Report};

fn incident(gap_ms: f64, lost: Option<u64>) -> Incident {
    Incident { gap_ms, watched_ms: 1000.0, lost, duplicated: lost.map(|_| 0), ..Incident::default() }
}

fn taken(parts: Vec<Part>) -> Report {
    let mut report = empty();
    take(&mut report, parts);
    report
}

fn goals_of(part: Part) -> Vec<crate::report::Goal> {
    let id = part.id.clone();
    goals::of(&taken(vec![part]), &id)
}

fn part(kind: &'static str, load: &str, incidents: Vec<Incident>) -> Part {
    Part {
        id: format!("{kind}/{load}/n2"),
        kind,
        load: load.into(),
        links: 2,
        incidents: incidents
            .into_iter()
            .map(|incident| {
                let trace = (vec![-297.5], vec![Some(incident.gap_ms)]);
                (incident, Some(trace))
            })
            .collect(),
        connection_lost: None,
        per_second: None,
        machine: MachineLoss { backlog_drops: 1, ..MachineLoss::default() },
    }
}

#[test]
fn rounds_are_joined_and_the_typical_failure_is_the_one_drawn() {
    let gaps = |gaps: &[f64]| gaps.iter().map(|gap| incident(*gap, None)).collect();
    let parts = vec![
        part("silent-out", "tcp cubic", gaps(&[200.0, 10.0])),
        part("silent-out", "tcp cubic", gaps(&[150.0])),
    ];
    let report = taken(parts);
    let id = "silent-out/tcp cubic/n2";
    assert_eq!(report.measure(id, "gap_ms").map(|gaps| gaps.values.len()), Some(3));
    assert_eq!(report.median(id, "gap_ms"), Some(150.0));
    assert_eq!(report.curve(id, "trace").map(|curve| curve.y[0]), Some(Some(150.0)));
    assert_eq!(report.sum(id, "machine.backlog_drops"), Some(2.0));
}

#[test]
fn failures_and_changes_have_the_goals_that_were_set() {
    let limits = |part: Part| {
        goals_of(part).into_iter().map(|goal| (goal.what, goal.limit, goal.met)).collect::<Vec<_>>()
    };
    let failed = |gap| Incident {
        restored: Some(Return { used_ms: 600.0, ..Return::default() }),
        ..incident(gap, None)
    };
    for (kind, limit) in
        [("carrier-ours", 50.0), ("carrier-theirs", 100.0), ("silent-both", 250.0), ("silent-in", 250.0)]
    {
        let goals = limits(part(kind, "tcp bbr", vec![failed(limit + 1.0)]));
        assert_eq!(goals[0], ("ms without new data, TCP".into(), limit, Some(false)), "{kind}");
        assert_eq!(goals[1].2, Some(true), "no connection was lost");
        let detected = goals.iter().find(|goal| goal.0.contains("the sender knew"));
        assert_eq!(
            detected.map(|goal| (goal.1, goal.2)),
            kind.starts_with("silent").then_some((150.0, None))
        );
        assert_eq!(goals.last().map(|goal| (goal.1, goal.2)), Some((1000.0, Some(true))));
    }
    let clean = limits(part("member-del", "udp", vec![incident(1.0, Some(0)), incident(1.0, Some(0))]));
    assert_eq!(
        clean,
        [("datagrams lost".into(), 0.0, Some(true)), ("datagrams twice".into(), 0.0, Some(true))]
    );
}

#[test]
fn one_lost_datagram_misses_the_goal_unless_the_machine_dropped_it() {
    let whole = |machine| {
        let mut part = part("weight", "udp", vec![incident(1.0, Some(0)), incident(1.0, Some(1))]);
        part.machine = machine;
        goals_of(part).remove(0)
    };
    assert_eq!(
        (whole(MachineLoss::default()).bound, whole(MachineLoss::default()).met),
        (Bound::AtMost, Some(false))
    );
    let dropped = whole(MachineLoss { receiver_drops: 3, ..MachineLoss::default() });
    assert_eq!(dropped.met, None);
    assert!(dropped.reason.contains("dropped 3"), "{}", dropped.reason);
}

#[test]
fn a_failure_that_a_daemon_missed_counts_with_the_time_it_was_watched() {
    let detected = |turns: &[(Option<f64>, Option<f64>)]| {
        let known = |(near, far): &(Option<f64>, Option<f64>)| Incident {
            detected_ms: *near,
            detected_far_ms: *far,
            ..incident(1.0, None)
        };
        let part = part("silent-in", "tcp bbr", turns.iter().map(known).collect());
        let (id, report) = (part.id.clone(), taken(vec![part]));
        ["detected_ms", "detected_far_ms"].map(|metric| report.spread(&id, metric).map(|s| (s.min, s.max)))
    };
    assert_eq!(detected(&[(Some(10.0), Some(30.0))]), [Some((10.0, 10.0)), Some((30.0, 30.0))]);
    assert_eq!(detected(&[(Some(40.0), None)])[1], Some((1000.0, 1000.0)), "it never knew");
    assert_eq!(detected(&[(None, None)]), [None, None], "such a daemon reports no events");
    let some = detected(&[(None, None), (Some(1.0), Some(2.0))]);
    assert_eq!(some[0], Some((1.0, 1000.0)), "this one does, and missed one failure");
}
