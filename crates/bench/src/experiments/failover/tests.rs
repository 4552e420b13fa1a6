use super::*;
use crate::report::tests::empty;
use crate::report::{Bound, Report};

fn incident(gap_ms: f64, lost: Option<u64>) -> Incident {
    Incident { gap_ms, watched_ms: 1000.0, lost, duplicated: lost.map(|_| 0), ..Incident::default() }
}

fn trace(incident: &Incident) -> Trace {
    Trace { from_ms: -300.0, bin_ms: 5.0, mbit: vec![incident.gap_ms] }
}

fn taken(parts: &[Part]) -> Report {
    let mut report = empty();
    report.record(FAILOVERS, &join(parts.iter()).expect("there are some")).expect("a record");
    report
}

fn goals_of(part: Part) -> Vec<crate::report::Goal> {
    let id = part.id.clone();
    goals::of(&taken(&[part]), &id)
}

fn part(kind: &'static str, load: &str, incidents: Vec<Incident>) -> Part {
    Part {
        id: format!("{kind}/{load}/n2"),
        kind,
        load: load.into(),
        links: 2,
        incidents: incidents.into_iter().map(|incident| (incident.clone(), Some(trace(&incident)))).collect(),
        connection_lost: None,
        per_second: None,
        machine: MachineLoss { backlog_drops: 1, ..MachineLoss::default() },
    }
}

#[test]
fn rounds_are_joined_and_the_typical_failure_is_the_one_drawn() {
    let gaps = |gaps: &[f64]| gaps.iter().map(|gap| incident(*gap, None)).collect();
    let parts = [
        part("silent-out", "tcp cubic", gaps(&[200.0, 10.0])),
        part("silent-out", "tcp cubic", gaps(&[150.0])),
    ];
    let report = taken(&parts);
    let id = "silent-out/tcp cubic/n2";
    assert_eq!(report.measure(id, "gap_ms").map(|gaps| gaps.values.len()), Some(3));
    assert_eq!(report.median(id, "gap_ms"), Some(150.0));
    assert_eq!(report.curve(id, "trace").map(|curve| curve.y[0]), Some(Some(150.0)));
    assert_eq!(report.sum(id, "machine.backlog_drops"), Some(2.0));
    assert_eq!(join([].iter()), None);
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
