//! The fabric beside what the kernel has for the same: throughput, latency, what it costs, how it comes back, how it
//! grows, and what its nodes' deaths do to the others.

pub(super) mod figure;
mod idle;
mod kills;
mod latency;
mod mtu;
mod nodes;
mod programs;
mod restart;
mod subject;
mod testbed;
mod throughput;

pub(super) use figure::{sized, ticks};
pub(super) use programs::netpipe;

use crate::experiments::prelude::*;
use std::ops::Range;
use subject::Subject;
use testbed::Testbed;

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let steps = [
        throughput::steps,
        throughput::limited_steps,
        latency::steps,
        mtu::steps,
        idle::steps,
        restart::steps,
        nodes::steps,
        kills::steps,
    ];
    let steps: usize = steps.iter().map(|steps| steps(run)).sum();
    run.plan_steps(u32::try_from(steps).unwrap_or(u32::MAX));
    if ["throughput", "limited", "latency", "mtu", "idle", "restart"].iter().any(|stage| run.wants(stage)) {
        let mut testbed = Testbed::up(run, "pair", 2)?;
        throughput::run(run, &mut testbed)?;
        throughput::run_limited(run, &mut testbed)?;
        latency::run(run, &mut testbed)?;
        mtu::run(run, &mut testbed)?;
        idle::run(run, &mut testbed)?;
        restart::run(run, &mut testbed)?;
    }
    nodes::run(run)?;
    kills::run(run)
}

/// The subjects of a stage that a run has: those that are named, and what they are compared with.
fn wanted(run: &Run<'_>, all: &[Subject], named: impl Fn(&Subject) -> bool) -> Vec<Subject> {
    let is_wanted = |subject: &Subject| {
        let is_base = |other: &&Subject| *other == subject || other.bases().contains(&subject.word);
        (subject.quick || !run.settings.quick) && all.iter().filter(is_base).any(&named)
    };
    all.iter().copied().filter(is_wanted).collect()
}

/// A network that is up, which turn it is, and what was typed for it.
#[derive(Clone, Copy)]
struct Turn<'a> {
    subject: Subject,
    turn: u32,
    typed: &'a str,
}

/// Measures subjects in turns. One that fails is left out from then on.
fn in_turns(
    run: &mut Run<'_>,
    testbed: &mut Testbed,
    stage: &str,
    subjects: &[Subject],
    turns: Range<u32>,
    mut measure: impl FnMut(&mut Run<'_>, &mut Testbed, Turn<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    for turn in turns {
        for subject in subjects.iter().copied() {
            let id = format!("{stage}/{}", subject.word);
            if testbed.given_up.contains(&id) {
                continue;
            }
            run.check()?;
            let done =
                testbed.with(subject, |testbed, typed| measure(run, testbed, Turn { subject, turn, typed }));
            if let Err(error) = done {
                give_up(run, &id, subject, error)?;
                testbed.given_up.push(id);
            }
        }
    }
    Ok(())
}

/// A subject that cannot be measured is left out, if what it needs is missing here, or has failed.
fn give_up(run: &mut Run<'_>, id: &str, subject: Subject, error: Error) -> Result<(), Error> {
    let text = error.to_string();
    if subject.is_optional() && text.contains("cannot join") && text.contains("libfabric") {
        run.skip(id, text);
        return Ok(());
    }
    run.fail(id, error)
}

/// Puts subjects beside what they are compared with.
fn put_beside(run: &mut Run<'_>, subjects: &[Subject], id: impl Fn(&str) -> String, metrics: &[&str]) {
    for subject in subjects {
        for base in subject.bases() {
            run.report.put_beside(&id(subject.word), &id(base), metrics);
        }
    }
}
