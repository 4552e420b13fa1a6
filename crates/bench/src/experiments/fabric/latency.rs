//! Half round trips of messages from a byte to many KiB over each network, by programs that block; and what that is
//! in throughput, as NetPIPE reports it.

use super::programs::{self, PROGRAMS};
use super::subject::*;
use super::testbed::Testbed;
use super::{Turn, in_turns, put_beside, wanted};
use crate::activity::Activity;
use crate::experiments::prelude::*;
use crate::flow::{Window, rounds};
use crate::percentiles::us;

pub(super) const SUBJECTS: [Subject; 13] = [
    VETH, GIGABIT, SHM, SHM_LARGE, SHM_BUSY, SHM_SLEEP, VXLAN, UDP_VXLAN, UDP, UDP_QUEUES, UDP_BUSY, OFI_NET,
    OFI_TCP,
];

pub(super) const BYTES: [usize; 14] =
    [1, 4, 16, 64, 256, 1024, 4096, 8192, 16_384, 32_768, 65_536, 262_144, 1 << 20, 8 << 20];
const QUICK_BYTES: [usize; 5] = [1, 64, 1024, 8192, 65_536];

const TIME: Duration = Duration::from_millis(300);
const QUICK_TIME: Duration = Duration::from_millis(150);

/// The size that the goal is about, and how much longer than over veth it may take, microseconds.
const GOAL_BYTES: usize = 64;
const GOAL_US: f64 = 5.0;

pub(super) fn id(subject: &str, bytes: usize) -> String {
    format!("latency/{subject}/{bytes}")
}

pub(super) fn run(run: &mut Run<'_>, testbed: &mut Testbed) -> Result<(), Error> {
    let subjects = subjects(run);
    if subjects.is_empty() {
        return Ok(());
    }
    let programs: Vec<_> = PROGRAMS.iter().filter(|program| program.is_wanted(run)).collect();
    in_turns(run, testbed, "latency", &subjects, 0..run.settings.repeat, |run, testbed, at| {
        measure(run, testbed, at)?;
        programs.iter().try_for_each(|program| {
            let measured = programs::measure(run, testbed, at, program);
            run.noted(format!("{}/{}", program.word, at.subject.word), measured).map(drop)
        })
    })?;
    for bytes in sizes(run) {
        put_beside(run, &SUBJECTS, |subject| id(subject, *bytes), &["half_us", "half_p99_us", "mbit"]);
    }
    let [goal, base] = [SHM, VETH].map(|subject| id(subject.word, GOAL_BYTES));
    let more = run.report.measure(&goal, "half_us").and_then(|m| m.beside(&base)?.difference);
    let what = "us more than over veth, half a round trip of 64 bytes, programs that block";
    run.judge(&goal, what, Bound::AtMost, GOAL_US, more.map(|spread| spread.median));
    Ok(())
}

pub(super) fn steps(run: &Run<'_>) -> usize {
    subjects(run).len() * run.settings.repeat as usize
}

pub(super) fn sizes(run: &Run<'_>) -> &'static [usize] {
    if run.settings.quick { &QUICK_BYTES } else { &BYTES }
}

fn subjects(run: &Run<'_>) -> Vec<Subject> {
    wanted(run, &SUBJECTS, |subject| run.wants(&format!("latency/{}", subject.word)))
}

fn measure(run: &mut Run<'_>, testbed: &Testbed, at: Turn<'_>) -> Result<(), Error> {
    let Turn { subject, turn, typed } = at;
    run.step(&format!("latency/{}", subject.word));
    let time = if run.settings.quick { QUICK_TIME } else { TIME };
    let mut line = format!("  {:<32} #{}", format!("latency/{}", subject.word), turn + 1);
    for bytes in sizes(run) {
        let before = Activity::now()?;
        let half = rounds(
            testbed.host(0)?,
            testbed.host(1)?,
            &testbed.address(subject, 1),
            *bytes,
            Window::Warm(time),
        )?;
        let work = Activity::now()?.since(&before);
        let id = id(subject.word, *bytes);
        let median = half.at_us(0.5);
        let values = [
            ("half_us", "us", median),
            ("half_min_us", "us", us(half.min())),
            ("half_p90_us", "us", half.at_us(0.9)),
            ("half_p99_us", "us", half.at_us(0.99)),
            ("rounds", "", half.len() as f64),
            // Bits a microsecond are Mbit/s.
            ("mbit", "Mbit/s", *bytes as f64 * 8.0 / median),
            ("user", "s/s", work.user_s),
            ("system", "s/s", work.system_s + work.interrupt_s),
            ("interrupts", "1/s", work.interrupts),
            ("switches", "1/s", work.switches),
        ];
        run.report.note(&id, typed, turn, &values);
        run.report.note_bytes(&id, *bytes);
        line += &format!("  {bytes} B {median:.1}");
        run.check()?;
    }
    run.say(&(line + " us"))
}
