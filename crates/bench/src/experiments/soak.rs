//! Random failures, recoveries and changes on two hosts, one after the other: whenever a lane is left the hosts reach
//! each other, and nothing of it all is left behind.

mod exchange;
mod leftovers;
mod schedule;

use crate::bed::{self, BOND};
use crate::experiments::prelude::*;
use crate::report::{Record, SOAK};
use crate::run::number;
use exchange::Exchange;
use leftovers::Leftovers;
use schedule::{Action, HOSTS, LINKS, Schedule, What};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Says which steps: the seed that an earlier run printed.
const SEED_ENV: &str = "LINKBRAID_BENCH_SEED";
/// Says how many, instead of what follows from the options.
const STEPS_ENV: &str = "LINKBRAID_BENCH_STEPS";
/// Steps of a whole run with the usual three repeats, and of a quick one with one.
const STEPS: u64 = 1000;
const USUAL_REPEATS: u64 = 3;
const QUICK_STEPS: u64 = 20;
/// The seed of quick runs, so that a test does the same each time.
const QUICK_SEED: u64 = 1;

const RATE: u32 = 100;
/// How long it may take until the hosts reach each other again after a step.
const REACH_LIMIT: Duration = Duration::from_secs(3);
/// How long the hosts may take to trust all links again at the end: a link that has failed often is held down for up
/// to a minute.
const END_LIMIT: Duration = Duration::from_secs(150);
/// More than so many broken steps show nothing new.
const BROKEN_MAX: usize = 20;
/// How many of the last lines of each daemon's log are reported with a broken step.
const LOG_LINES: usize = 20;
const REPORT_STEPS: u32 = 50;

#[derive(Debug, Default, Serialize)]
struct Soak {
    /// Steps done, how long they took, and how often each kind of them was done.
    steps: u32,
    seconds: f64,
    kinds: BTreeMap<&'static str, u32>,
    /// After how many steps a lane existed, so that the hosts had to reach each other; how long that took.
    demanded: u32,
    slowest_ms: f64,
    median_ms: f64,
    /// Steps after which something was wrong.
    broken: usize,
    /// Whether each host's table had at the end what the other host has.
    tables_equal: bool,
    /// How much was there after the bonds were gone and had not been there before, or the other way round.
    left_behind: usize,
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let quick = run.settings.quick;
    let seed = number(SEED_ENV, if quick { QUICK_SEED } else { clock() }, 0..=u64::MAX)?;
    let repeat = u64::from(run.settings.repeat);
    let usual = if quick { QUICK_STEPS * repeat } else { (STEPS * repeat).div_ceil(USUAL_REPEATS) };
    let steps = number(STEPS_ENV, usual, 0..=u64::from(u32::MAX))? as u32;
    run.say(&format!(
        "  {steps} steps with seed {seed}; {SEED_ENV}={seed} {STEPS_ENV}={steps} does them again"
    ))?;
    run.plan_steps(steps);
    let mut bed = run.bare("soak", Topology::symmetric(HOSTS, LINKS, Some(RATE)))?;
    let before = Leftovers::look(&bed)?;
    bed.join()?;
    let mut soak = Soak::default();
    let done = all_steps(run, &mut bed, &mut soak, Schedule::new(seed), steps);
    let mended = done.and_then(|()| mend_all(run, &mut bed));
    match mended {
        Ok(()) => {
            soak.tables_equal = tables_equal(&bed)?;
            bed.part()?;
            for left in before.differences(&Leftovers::look(&bed)?) {
                soak.left_behind += 1;
                run.remark("soak", format!("left behind: {left}"));
            }
        }
        Err(error) => run.fail("soak/end", error)?,
    }
    run.goals(goals(&soak, steps));
    let record = Record { totals: json!(soak), parameters: json!({ "seed": seed }), ..Record::default() };
    run.report.record(SOAK, "soak", record);
    Ok(())
}

fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn all_steps(
    run: &mut Run<'_>,
    bed: &mut Bed,
    soak: &mut Soak,
    mut schedule: Schedule,
    steps: u32,
) -> Result<(), Error> {
    let exchange = Exchange::start(bed.host("a")?, bed.host("b")?)?;
    let mut times: Vec<f64> = Vec::new();
    let begin = Instant::now();
    for step in 1..=steps {
        let action = schedule.next_action();
        run.step(&action.to_string());
        *soak.kinds.entry(action.kind()).or_default() += 1;
        let since = Instant::now();
        let mut wrong = act(bed, action).err().map(|error| error.to_string());
        if wrong.is_none() && schedule.lane_is_left() {
            soak.demanded += 1;
            match exchange.wait(REACH_LIMIT) {
                Ok(took) => times.push(took.as_secs_f64() * 1e3),
                Err(seen) => wrong = Some(format!("the hosts do not reach each other: {seen}")),
            }
        }
        soak.steps = step;
        if let Some(what) = wrong {
            let state = schedule.state();
            run.say(&format!("  step {step}: {action}: {what}; {state}"))?;
            tell_hosts(run, bed)?;
            soak.broken += 1;
            run.remark("soak", format!("step {step} ({action}): {what}; {state}"));
            if soak.broken >= BROKEN_MAX {
                break;
            }
        }
        if step % REPORT_STEPS == 0 {
            let line = format!("  step {step}: {action}, {:.0} ms", since.elapsed().as_secs_f64() * 1e3);
            run.say(&format!("{line}; {} broken in {:.0} s", soak.broken, begin.elapsed().as_secs_f64()))?;
        }
        run.check()?;
    }
    soak.seconds = begin.elapsed().as_secs_f64();
    if let Some(spread) = Spread::of(times) {
        (soak.median_ms, soak.slowest_ms) = (spread.median, spread.max);
    }
    Ok(())
}

/// What the hosts make of it, for whoever looks for the cause.
fn tell_hosts(run: &mut Run<'_>, bed: &Bed) -> Result<(), Error> {
    for host in bed.lab().hosts() {
        let ask =
            |what: &str| host.linkbraid(&format!("{what} {BOND}")).unwrap_or_else(|error| error.to_string());
        let log = std::fs::read_to_string(host.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        let reports = [ask("lanes"), ask("peers"), ask("stats"), last.join("\n")];
        for line in reports.iter().flat_map(|text| text.lines()) {
            run.say(&format!("    {}: {line}", host.name()))?;
        }
    }
    Ok(())
}

fn act(bed: &mut Bed, action: Action) -> Result<(), Error> {
    let name = action.host();
    let link = bed.host(name)?.link(action.link)?;
    let nic = format!("eth{}", action.link);
    match action.what {
        What::Fail(fault) => link.fail(fault).map(drop),
        What::Mend => link.mend().map(drop),
        What::MemberDel => bed.member(name, "del", &nic, None),
        What::MemberAdd => bed.member(name, "add", &nic, Some(RATE)),
        What::Weight(mbit) => bed.member(name, "set", &nic, Some(mbit)),
        What::Kill => {
            bed.kill_daemon(name);
            Ok(())
        }
        What::Start => bed.start_daemon(name),
    }
}

/// Mends everything, starts all daemons, gives every bond all its members, and waits until all know all.
fn mend_all(run: &mut Run<'_>, bed: &mut Bed) -> Result<(), Error> {
    for name in ["a", "b"] {
        for link in bed.host(name)?.links()? {
            link.mend()?;
        }
        if !bed.has_daemon(name) {
            bed.kill_daemon(name);
            bed.start_daemon(name)?;
        }
    }
    run.say("  all links are mended, all daemons run")?;
    for name in ["a", "b"] {
        let members = bed.members(name)?;
        for link in 0..LINKS {
            let nic = format!("eth{link}");
            let verb = if members.contains(&nic) { "set" } else { "add" };
            // A link that has just been mended may be refused until its peers are heard again.
            let what = format!("'member {verb}' of {nic} on host '{name}'");
            let set = || bed.member(name, verb, &nic, Some(RATE)).map_err(|e| e.to_string());
            linkbraid_lab::wait_for(END_LIMIT, &what, set)?;
        }
    }
    bed.meet_within(END_LIMIT)
}

/// Whether each host's table has the members of the other, and nothing else.
fn tables_equal(bed: &Bed) -> Result<bool, Error> {
    let mut equal = true;
    for (here, there) in [("a", "b"), ("b", "a")] {
        let table = bed::peers(bed.host(here)?)?;
        let there = bed.host(there)?;
        let mut have: Vec<(String, bool)> =
            table.iter().flat_map(|peer| &peer.members).map(|m| (m.mac.to_lowercase(), m.live)).collect();
        let mut want: Vec<(String, bool)> = (0..LINKS).map(|link| (there.mac(link), true)).collect();
        have.sort();
        want.sort();
        equal &= table.len() == 1 && have == want;
        equal &= table.iter().all(|peer| peer.address.as_deref().is_none_or(|ip| ip == there.ipv4()));
    }
    Ok(equal)
}

fn goals(soak: &Soak, steps: u32) -> [Goal; 4] {
    let goal = |what: &str, bound, limit: f64, value: f64| Goal::new("soak", what, bound, limit, Some(value));
    [
        goal("steps done", Bound::AtLeast, f64::from(steps), f64::from(soak.steps)),
        goal("steps after which something was wrong", Bound::AtMost, 0.0, soak.broken as f64),
        goal("tables equal at the end", Bound::AtLeast, 1.0, f64::from(u8::from(soak.tables_equal))),
        goal("things left behind", Bound::AtMost, 0.0, soak.left_behind as f64),
    ]
}

pub(super) fn figure(report: &Report) -> Figure {
    let kinds = report.measures.iter().filter_map(|measure| measure.metric.strip_prefix("kinds."));
    let panel = Panel::groups(kinds.map(|kind| (kind.to_owned(), kind)))
        .bar("steps", |kind| report.spread("soak", &format!("kinds.{kind}")))
        .panel("Steps of each kind", "", "steps");
    Figure { title: "soak: random failures and changes".into(), panels: vec![panel] }
}
