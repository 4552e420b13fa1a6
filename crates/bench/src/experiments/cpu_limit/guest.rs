//! The same where interrupts are limited too: the whole machine is a guest, whose clock counts the instructions of its one
//! processor.

use super::KINDS;
use crate::experiments::guest;
use crate::experiments::prelude::*;
use linkbraid_lab::daemon;
use std::path::Path;
use std::process::Command;

/// What boots a stock kernel for it, in the source tree.
pub(in crate::experiments) const SCRIPT: &str = "tests/vm/weak";
/// How long a guest may take, in real time.
const LIMIT: Duration = Duration::from_secs(1200);
/// The rate of a link in Mbit/s, as the paper had it.
const RATE: &str = "100";
/// What the script calls hosts whose NICs take single frames.
const NICS: &str = "frames";
/// How many times the processor's speed is halved, and the million instructions a second that are left.
const SPEEDS: [(u32, u32); 4] = [(0, 1000), (1, 500), (2, 250), (3, 125)];
const QUICK: usize = 2;
/// A name of its own: a figure of an emulated processor is not to be mixed up with others.
const METRIC: &str = "guest_mbit";

fn id(kind: &str, speed: u32) -> String {
    format!("{kind}/guest-{speed}")
}

/// The number of links in a line such as `frames 2 auto 190.0 1.990 0 28000 2.2`, and Mbit/s over them.
pub(in crate::experiments) fn figure_in(line: &str) -> Option<(usize, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [NICS, links, _, mbit, ..] = words[..] else { return None };
    Some((links.parse().ok()?, mbit.parse().ok().filter(|mbit: &f64| mbit.is_finite())?))
}

fn speeds(run: &Run<'_>) -> &'static [(u32, u32)] {
    if run.settings.quick { &SPEEDS[QUICK..=QUICK] } else { &SPEEDS }
}

fn wanted(run: &Run<'_>, speed: u32) -> bool {
    KINDS.iter().any(|kind| run.wants(&id(kind, speed)))
}

/// How many cases are measured once each.
pub(super) fn steps(run: &Run<'_>) -> u32 {
    let wanted = speeds(run).iter().filter(|(_, speed)| wanted(run, *speed));
    u32::try_from(wanted.count() * KINDS.len()).unwrap_or(u32::MAX)
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let steps = steps(run);
    if steps == 0 {
        return Ok(());
    }
    let script = match guest::script(SCRIPT, &run.report.experiment) {
        Ok(script) => script,
        Err(error) => {
            run.drop_steps(steps);
            KINDS.iter().for_each(|kind| run.skip_for(format!("{kind}/guest"), &error));
            return Ok(());
        }
    };
    for (halved, speed) in speeds(run) {
        if wanted(run, *speed) {
            let measured = at(run, &script, *halved, *speed);
            run.noted(format!("guest-{speed}"), measured)?;
            let [bare, two] = KINDS.map(|kind| id(kind, *speed));
            run.report.put_beside(&two, &bare, &[METRIC]);
        }
    }
    Ok(())
}

/// Boots a guest of that speed; the script itself takes the median of several flows.
fn at(run: &mut Run<'_>, script: &Path, halved: u32, speed: u32) -> Result<(), Error> {
    let mut command = Command::new(script);
    let halved = halved.to_string();
    let links = KINDS.len().to_string();
    command.args(["--members", &links, "--rate", RATE, "--shift", &halved, NICS]);
    command.env("LINKBRAID_BIN", daemon::binary()?);
    let typed = format!("{SCRIPT} --members {links} --rate {RATE} --shift {halved} {NICS}");
    let mut taken = 0;
    let ended = guest::follow(run, command, LIMIT, &mut |run, line| {
        let Some((links, mbit)) = figure_in(line) else { return Ok(()) };
        let Some(kind) = links.checked_sub(1).and_then(|kind| KINDS.get(kind)) else { return Ok(()) };
        taken += 1;
        run.step(&id(kind, speed));
        run.note(&id(kind, speed), &typed, 0, &[(METRIC, "Mbit/s", mbit)])
    })?;
    if taken < KINDS.len() {
        return Err(Error::new(format!("guest-{speed}"), "not measured in full", ended).hint(typed));
    }
    Ok(())
}

/// Two links over one, from the slowest processor to the fastest.
pub(crate) fn gains(report: &Report) -> Vec<(u32, f64)> {
    let gain = |speed| report.times(&id(KINDS[1], speed), METRIC, &id(KINDS[0], speed));
    SPEEDS.iter().rev().filter_map(|(_, speed)| Some((*speed, gain(*speed)?))).collect()
}

pub(super) fn panel(report: &Report) -> Panel {
    let measured = |speed: &u32| report.measure(&id(KINDS[0], *speed), METRIC).is_some();
    let speeds = SPEEDS.iter().rev().map(|(_, speed)| *speed).filter(measured);
    Panel::groups(speeds.map(|speed| (speed.to_string(), speed)))
        .bar("one bare link", |speed| report.spread(&id(KINDS[0], speed), METRIC))
        .bar("two links, bonded", |speed| report.spread(&id(KINDS[1], speed), METRIC))
        .panel(
            format!("A guest with both hosts, links of {RATE} Mbit/s"),
            "million instructions a second of its processor",
            "Mbit/s",
        )
}
