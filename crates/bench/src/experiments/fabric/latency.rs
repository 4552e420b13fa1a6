//! Half round trips of messages from a byte to many KiB over each network, by programs that block; and what that is
//! in throughput, as NetPIPE tells it.

use super::subject::{
    OFI_NET, OFI_TCP, SHM, SHM_BUSY, SHM_LARGE, SHM_SLEEP, Subject, UDP, UDP_BUSY, UDP_VXLAN, VETH, VXLAN,
};
use super::testbed::Testbed;
use super::throughput::give_up;
use super::{netpipe, sockperf};
use crate::experiments::note::{self, What};
use crate::flow::rounds;
use crate::report::{Bound, Goal};
use crate::run::Run;
use linkbraid_api::Error;
use std::time::Duration;

pub(super) const SUBJECTS: [Subject; 11] =
    [VETH, SHM, SHM_LARGE, SHM_BUSY, SHM_SLEEP, VXLAN, UDP_VXLAN, UDP, UDP_BUSY, OFI_NET, OFI_TCP];

/// Payload bytes of messages.
pub(super) const BYTES: [usize; 12] = [1, 4, 16, 64, 256, 1024, 4096, 8192, 16_384, 32_768, 65_536, 262_144];
const QUICK_BYTES: [usize; 5] = [1, 64, 1024, 8192, 65_536];

/// How long messages of a size go to and fro.
const TIME: Duration = Duration::from_millis(300);
const QUICK_TIME: Duration = Duration::from_millis(150);

/// The size that the goal is about, and how much longer than over veth it may take, microseconds.
const GOAL_BYTES: usize = 64;
const GOAL_US: f64 = 5.0;

pub(super) fn id(subject: &str, bytes: usize) -> String {
    format!("latency/{subject}/{bytes}")
}

pub(super) fn run(run: &mut Run<'_>, testbed: &Testbed) -> Result<(), Error> {
    if !run.wants("latency") {
        return Ok(());
    }
    let mut given_up: Vec<&str> = Vec::new();
    let others = Others { netpipe: netpipe::is_there(run), sockperf: sockperf::is_wanted(run) };
    for turn in 0..run.settings.repeat {
        for subject in SUBJECTS {
            if !wanted(run, subject) || given_up.contains(&subject.word) {
                continue;
            }
            run.step(&format!("latency/{}", subject.word));
            if let Err(error) = measure(run, testbed, subject, turn, others) {
                given_up.push(subject.word);
                testbed.del(subject);
                give_up(run, "latency", subject, error)?;
            }
        }
    }
    for subject in SUBJECTS {
        for bytes in sizes(run) {
            for base in subject.bases() {
                for metric in ["half_us", "half_p99_us", "mbit"] {
                    note::compare(run, &id(subject.word, *bytes), &id(base, *bytes), metric);
                }
            }
        }
    }
    let goal = id(SHM.word, GOAL_BYTES);
    let more = run.report.measure(&goal, "half_us");
    let more = more.and_then(|m| m.beside(&id(VETH.word, GOAL_BYTES))).and_then(|c| c.difference);
    let what = "us more than over veth, half a round trip of 64 bytes, programs that block";
    note::goal(run, Goal::new(&goal, what, Bound::AtMost, GOAL_US, more.map(|spread| spread.median)));
    Ok(())
}

/// How many steps it takes.
pub(super) fn steps(run: &Run<'_>) -> usize {
    SUBJECTS.iter().filter(|subject| wanted(run, **subject)).count() * run.settings.repeat as usize
}

fn sizes(run: &Run<'_>) -> &'static [usize] {
    if run.settings.quick { &QUICK_BYTES } else { &BYTES }
}

fn wanted(run: &Run<'_>, subject: Subject) -> bool {
    let named = |other: &Subject| run.wants(&format!("latency/{}", other.word));
    (subject.quick || !run.settings.quick)
        && SUBJECTS
            .iter()
            .any(|other| named(other) && (*other == subject || other.bases().contains(&subject.word)))
}

/// Which programs of others measure, too.
#[derive(Debug, Clone, Copy)]
struct Others {
    netpipe: bool,
    sockperf: bool,
}

fn measure(
    run: &mut Run<'_>,
    testbed: &Testbed,
    subject: Subject,
    turn: u32,
    others: Others,
) -> Result<(), Error> {
    run.check()?;
    let typed = testbed.add(subject)?.join("; ");
    let time = if run.settings.quick { QUICK_TIME } else { TIME };
    let mut line = format!("  {:<32} #{}", format!("latency/{}", subject.word), turn + 1);
    for bytes in sizes(run) {
        let half = rounds(testbed.host(0)?, testbed.host(1)?, &testbed.address(subject, 1), *bytes, time)?;
        let id = id(subject.word, *bytes);
        let median = half.at_us(0.5);
        let mut note = |metric, unit, value| {
            note::value(run, What { id: &id, metric, unit }, &typed, turn, value);
        };
        note("half_us", "us", median);
        note("half_min_us", "us", half.min_us());
        note("half_p90_us", "us", half.at_us(0.9));
        note("half_p99_us", "us", half.at_us(0.99));
        note("rounds", "", half.count() as f64);
        // Bits a microsecond are Mbit/s.
        note("mbit", "Mbit/s", *bytes as f64 * 8.0 / median);
        note::bytes(run, &id, *bytes);
        line += &format!("  {bytes} B {median:.1}");
        run.check()?;
    }
    if others.netpipe
        && let Err(error) = netpipe::measure(run, testbed, subject, turn)
    {
        run.fail(format!("netpipe/{}", subject.word), error)?;
    }
    if others.sockperf
        && let Err(error) = sockperf::measure(run, testbed, subject, turn)
    {
        run.fail(format!("sockperf/{}", subject.word), error)?;
    }
    testbed.del(subject);
    run.say(&(line + " us"))
}
