//! What a fabric takes of a processor while nothing is sent over it.

use super::in_turns;
use super::subject::{FABRICS, SHM, Subject};
use super::testbed::Testbed;
use crate::activity::ProcessActivity;
use crate::experiments::prelude::*;

pub(super) const POLLS: [&str; 3] = ["adaptive", "sleep", "busy"];

/// How long a fabric settles, and is then watched.
const SETTLE: Duration = Duration::from_secs(1);
const WATCH: Duration = Duration::from_secs(4);
const QUICK_WATCH: Duration = Duration::from_secs(2);

/// What an idle fabric may take, percent of a core.
const GOAL_PERCENT: f64 = 1.0;

/// A daemon without any fabric, to compare with.
pub(super) const NONE: &str = "idle/none";

pub(super) fn id(subject: &str, poll: &str) -> String {
    format!("idle/{subject}/{poll}")
}

pub(super) fn run(run: &mut Run<'_>, testbed: &mut Testbed) -> Result<(), Error> {
    if !run.wants("idle") {
        return Ok(());
    }
    let cases = cases(run);
    for turn in 0..run.settings.repeat {
        run.step(NONE);
        watch(run, testbed, NONE, "linkbraid daemon", turn)?;
        // The goal is about one of the three.
        let again = cases.iter().copied().filter(|subject| turn == 0 || subject.how() == POLLS[0]);
        let again: Vec<Subject> = again.collect();
        in_turns(run, testbed, "idle", &again, turn..turn + 1, |run, testbed, at| {
            let id = id(at.subject.word, at.subject.how());
            run.step(&id);
            watch(run, testbed, &id, at.typed, turn)
        })?;
    }
    for subject in cases {
        let id = id(subject.word, subject.how());
        run.report.put_beside(&id, NONE, &["percent"]);
        if subject.how() == POLLS[0] {
            let value = run.report.median(&id, "percent");
            let what = "percent of a core while idle, each node";
            run.judge(&id, what, Bound::Below, GOAL_PERCENT, value);
        }
    }
    Ok(())
}

/// A quick run has every fabric with the usual threads, and one with those that always look.
fn is_usual(run: &Run<'_>, subject: Subject) -> bool {
    !run.settings.quick || subject.how() == POLLS[0] || subject == SHM.poll(POLLS[2])
}

fn cases(run: &Run<'_>) -> Vec<Subject> {
    let fabrics = FABRICS.into_iter().filter(|subject| subject.quick || !run.settings.quick);
    fabrics
        .flat_map(|subject| POLLS.map(|poll| subject.poll(poll)))
        .filter(|subject| is_usual(run, *subject) && run.wants(&id(subject.word, subject.how())))
        .collect()
}

pub(super) fn steps(run: &Run<'_>) -> usize {
    let cases = cases(run);
    let again = cases.iter().filter(|subject| subject.how() == POLLS[0]).count() + 1;
    cases.len() + 1 + again * (run.settings.repeat as usize).saturating_sub(1)
}

/// Both nodes are watched; what is noted is their mean.
fn watch(run: &mut Run<'_>, testbed: &Testbed, id: &str, typed: &str, turn: u32) -> Result<(), Error> {
    run.pause(SETTLE)?;
    let look = || {
        let pids = testbed.names.iter().map(|name| testbed.bed.daemon_id(name));
        pids.map(|pid| ProcessActivity::of(pid?)).collect::<Result<Vec<_>, Error>>()
    };
    let before = look()?;
    run.pause(if run.settings.quick { QUICK_WATCH } else { WATCH })?;
    let after = look()?;
    let each: Vec<(f64, f64)> = after.iter().zip(before).map(|(now, then)| now.since(then)).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| each.iter().map(of).sum::<f64>() / each.len() as f64;
    let (percent, switches) = (mean(|e| e.0), mean(|e| e.1));
    run.note(id, typed, turn, &[("percent", "% of a core", percent), ("switches", "1/s", switches)])
}
