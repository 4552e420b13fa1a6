//! A node's daemon is killed and started again: how long until frames go both ways, and whether one of its earlier
//! life comes.

use super::subject::{FABRICS, Subject};
use super::testbed::Testbed;
use super::{Turn, in_turns};
use crate::experiments::prelude::*;
use crate::flow::Datagrams;

/// From one datagram to the next: what a time is exact to.
const PERIOD: Duration = Duration::from_millis(1);
/// How long a node stays down: so short that the other one has not noticed yet, and longer than that takes.
const DOWN: [(&str, Duration); 2] =
    [("at-once", Duration::from_millis(20)), ("noticed", Duration::from_millis(700))];
const TIMES: u32 = 6;
const QUICK_TIMES: u32 = 1;
/// How long a restart may take before the run is given up.
const LIMIT: Duration = Duration::from_secs(20);
/// What it is to take, milliseconds.
const GOAL_MS: f64 = 500.0;

pub(super) fn id(subject: &str, down: &str) -> String {
    format!("restart/{subject}/{down}")
}

pub(super) const WAYS: [&str; 2] = [DOWN[0].0, DOWN[1].0];

pub(super) fn run(run: &mut Run<'_>, testbed: &mut Testbed) -> Result<(), Error> {
    let subjects = subjects(run);
    in_turns(run, testbed, "restart", &subjects, 0..1, measure)?;
    for (subject, way) in subjects.into_iter().flat_map(|subject| WAYS.map(|way| (subject, way))) {
        let id = id(subject.word, way);
        let most = |run: &Run<'_>, metric| run.report.spread(&id, metric).map(|spread| spread.max);
        let what = "ms from a daemon's start until frames go both ways, the longest";
        run.judge(&id, what, Bound::AtMost, GOAL_MS, most(run, "ms"));
        let what = "frames of an earlier life, the most";
        run.judge(&id, what, Bound::AtMost, 0.0, most(run, "old"));
    }
    Ok(())
}

fn subjects(run: &Run<'_>) -> Vec<Subject> {
    let all = FABRICS.into_iter().filter(|subject| subject.quick || !run.settings.quick);
    all.filter(|subject| run.wants(&format!("restart/{}", subject.word))).collect()
}

fn times(run: &Run<'_>) -> u32 {
    if run.settings.quick { QUICK_TIMES } else { TIMES }
}

pub(super) fn steps(run: &Run<'_>) -> usize {
    subjects(run).len() * times(run) as usize * DOWN.len()
}

fn measure(run: &mut Run<'_>, testbed: &mut Testbed, at: Turn<'_>) -> Result<(), Error> {
    let Turn { subject, typed, .. } = at;
    testbed.fix_neighbours(subject)?;
    let mesh = Datagrams::mesh(&testbed.addressed(subject)?, PERIOD)?;
    mesh.wait_fresh(&mesh.mark(), LIMIT, |_, _| true)?;
    let mut starts = Vec::new();
    for turn in 0..times(run) {
        for (way, down) in DOWN {
            run.check()?;
            run.step(&id(subject.word, way));
            testbed.bed.kill_daemon("b");
            run.pause(down)?;
            let (start, mark) = (mesh.now(), mesh.mark());
            testbed.bed.start_daemon("b")?;
            mesh.wait_fresh(&mark, LIMIT, |_, _| true)?;
            starts.push((way, turn, start));
        }
    }
    let record = mesh.stop()?;
    for (way, turn, start) in starts {
        let id = id(subject.word, way);
        let first = |from, to| record.way(from, to).first(start).unwrap_or(start + LIMIT);
        let ms = (first(0, 1).max(first(1, 0)).saturating_sub(start)).as_secs_f64() * 1e3;
        let old = record.straddling([0, 1], start, start);
        run.note(&id, typed, turn, &[("ms", "ms", ms), ("old", "frames", old as f64)])?;
    }
    Ok(())
}
