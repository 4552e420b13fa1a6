//! A node's daemon is killed and started again: how long until frames go both ways, and whether one of its earlier
//! life comes.

use super::give_up;
use super::subject::{FABRICS, Subject};
use super::testbed::Testbed;
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
    let quick = run.settings.quick;
    for subject in FABRICS.into_iter().filter(|subject| subject.quick || !quick) {
        if !run.wants(&format!("restart/{}", subject.word)) {
            continue;
        }
        let done = testbed.with(subject, |testbed, typed| measure(run, testbed, subject, typed));
        if let Err(error) = done {
            give_up(run, "restart", subject, error)?;
            if !testbed.bed.has_daemon("b") {
                testbed.bed.start_daemon("b")?;
            }
        }
        for way in WAYS {
            let id = id(subject.word, way);
            let most = |run: &Run<'_>, metric| run.report.spread(&id, metric).map(|spread| spread.max);
            let what = "ms from a daemon's start until frames go both ways, the longest";
            run.judge(&id, what, Bound::AtMost, GOAL_MS, most(run, "ms"));
            let what = "frames of an earlier life, the most";
            run.judge(&id, what, Bound::AtMost, 0.0, most(run, "old"));
        }
    }
    Ok(())
}

/// How many steps it takes.
pub(super) fn steps(run: &Run<'_>) -> usize {
    let quick = run.settings.quick;
    let times = if quick { QUICK_TIMES } else { TIMES } as usize;
    FABRICS.into_iter().filter(|subject| subject.quick || !quick).count() * times * DOWN.len()
}

fn measure(run: &mut Run<'_>, testbed: &mut Testbed, subject: Subject, typed: &str) -> Result<(), Error> {
    testbed.fix_neighbours(subject)?;
    let mesh = Datagrams::mesh(&testbed.addressed(subject)?, PERIOD)?;
    mesh.wait_fresh(&mesh.mark(), LIMIT, |_, _| true)?;
    let times = if run.settings.quick { QUICK_TIMES } else { TIMES };
    let mut starts = Vec::new();
    for turn in 0..times {
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
