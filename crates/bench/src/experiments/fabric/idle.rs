//! What a fabric takes of a processor while nothing is sent over it.

use super::give_up;
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
    let mut given_up: Vec<Subject> = Vec::new();
    for turn in 0..run.settings.repeat {
        run.step(NONE);
        watch(run, testbed, NONE, "linkbraid daemon", turn)?;
        for (subject, poll) in &cases {
            // The goal is about one of the three.
            if given_up.contains(subject) || (*poll != "adaptive" && turn > 0) {
                continue;
            }
            let id = id(subject.word, poll);
            run.step(&id);
            run.check()?;
            let polled = subject.poll(poll);
            let done = testbed.with(polled, |testbed, typed| watch(run, testbed, &id, typed, turn));
            if let Err(error) = done {
                given_up.push(*subject);
                give_up(run, "idle", *subject, error)?;
            }
        }
    }
    for (subject, poll) in cases {
        let id = id(subject.word, poll);
        run.report.put_beside(&id, NONE, &["percent"]);
        if poll == "adaptive" {
            let value = run.report.median(&id, "percent");
            let what = "percent of a core while idle, each node";
            run.judge(&id, what, Bound::Below, GOAL_PERCENT, value);
        }
    }
    Ok(())
}

/// A quick run has every fabric with the usual threads, and one with those that always look.
fn is_usual(run: &Run<'_>, subject: Subject, poll: &str) -> bool {
    !run.settings.quick || poll == POLLS[0] || (subject == SHM && poll == POLLS[2])
}

fn cases(run: &Run<'_>) -> Vec<(Subject, &'static str)> {
    FABRICS
        .into_iter()
        .filter(|subject| subject.quick || !run.settings.quick)
        .flat_map(|subject| POLLS.map(|poll| (subject, poll)))
        .filter(|(subject, poll)| is_usual(run, *subject, poll) && run.wants(&id(subject.word, poll)))
        .collect()
}

/// How many steps it takes.
pub(super) fn steps(run: &Run<'_>) -> usize {
    let cases = cases(run);
    let again = cases.iter().filter(|(_, poll)| *poll == "adaptive").count() + 1;
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
