//! Two to sixteen nodes on one machine: all reach all, and what a node takes of memory.

use super::Turn;
use super::subject::{SHM, Subject, UDP};
use super::testbed::Testbed;
use crate::activity::anonymous_bytes;
use crate::experiments::prelude::*;
use crate::flow::Datagrams;
use std::os::unix::fs::MetadataExt;

pub(super) const COUNTS: [usize; 4] = [2, 4, 8, 16];
/// In a quick run four alone: two are what all other stages have.
const QUICK_COUNTS: std::ops::Range<usize> = 1..2;
pub(super) const SUBJECTS: [Subject; 2] = [SHM, UDP];

/// From one datagram to each other node to the next.
const PERIOD: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes in a block as stat(2) counts them.
const BLOCK: u64 = 512;
/// How far memory may be from the formula.
const GOAL_OFF: f64 = 0.03;

pub(super) fn id(subject: &str, nodes: usize) -> String {
    format!("nodes/{subject}/{nodes}")
}

fn counts(run: &Run<'_>) -> &'static [usize] {
    if run.settings.quick { &COUNTS[QUICK_COUNTS] } else { &COUNTS }
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    for nodes in counts(run).iter().copied() {
        let wanted: Vec<Subject> =
            SUBJECTS.into_iter().filter(|subject| run.wants(&id(subject.word, nodes))).collect();
        if wanted.is_empty() {
            continue;
        }
        let testbed = Testbed::up(run, &format!("nodes-{nodes}"), nodes);
        let Some(mut testbed) = run.noted(format!("nodes/{nodes}"), testbed)? else { continue };
        for subject in wanted {
            run.step(&id(subject.word, nodes));
            let measured = measure(run, &mut testbed, subject);
            run.noted(id(subject.word, nodes), measured)?;
        }
    }
    Ok(())
}

pub(super) fn steps(run: &Run<'_>) -> usize {
    SUBJECTS.len() * counts(run).len()
}

/// Bytes of a ring between so many nodes unless set otherwise, as docs/fabrics.md has it.
fn ring(nodes: u64) -> u64 {
    match nodes {
        ..=5 => 2 << 20,
        6..=9 => 1 << 20,
        _ => 512 << 10,
    }
}

/// The shared memory of a fabric of so many nodes with one queue each.
fn formula(nodes: usize) -> u64 {
    let nodes = nodes as u64;
    nodes * (nodes - 1) * ring(nodes)
}

/// Pages without a file of all daemons together.
fn own(testbed: &Testbed) -> Result<u64, Error> {
    testbed.names.iter().map(|name| anonymous_bytes(testbed.bed.daemon_id(name)?)).sum()
}

fn measure(run: &mut Run<'_>, testbed: &mut Testbed, subject: Subject) -> Result<(), Error> {
    run.check()?;
    let before = own(testbed)?;
    testbed.with(subject, |testbed, typed| look(run, testbed, Turn { subject, turn: 0, typed }, before))
}

fn look(run: &mut Run<'_>, testbed: &Testbed, at: Turn<'_>, before: u64) -> Result<(), Error> {
    let Turn { subject, turn, typed } = at;
    let nodes = testbed.names.len();
    let id = id(subject.word, nodes);
    testbed.fix_neighbours(subject)?;
    let mesh = Datagrams::mesh(&testbed.addressed(subject)?, PERIOD)?;
    let begin = mesh.now();
    let all = mesh.wait_fresh(&mesh.mark(), LIMIT, |_, _| true)?.saturating_sub(begin);
    let record = mesh.stop()?;
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
    let is_heard =
        |(from, to): &(usize, usize)| from != to && record.way(*from, *to).first(Duration::ZERO).is_some();
    let heard = pairs.filter(is_heard).count();
    let own_kib = kib(own(testbed)?.saturating_sub(before)) / nodes as f64;
    let ms = all.as_secs_f64() * 1e3;
    let values = [("pairs", "pairs", heard as f64), ("all_ms", "ms", ms), ("own_kib", "KiB a node", own_kib)];
    run.note(&id, typed, turn, &values)?;
    if subject == SHM {
        let cannot = |e: std::io::Error| {
            Error::new(testbed.memory().display().to_string(), "cannot look at it", e.to_string())
        };
        let file = std::fs::metadata(testbed.memory()).map_err(cannot)?;
        let (held, formula) = (file.blocks() * BLOCK, formula(nodes));
        let off = (held as f64 / formula as f64 - 1.0).abs();
        let values = [
            ("file_kib", "KiB", kib(file.len())),
            ("held_kib", "KiB", kib(held)),
            ("formula_kib", "KiB", kib(formula)),
            ("off", "", off),
        ];
        run.note(&id, typed, turn, &values)?;
        let what = "off the formula nodes x (nodes - 1) x queues x ring";
        run.judge(&id, what, Bound::AtMost, GOAL_OFF, Some(off));
    }
    let what = "ordered pairs of nodes that reach each other";
    run.judge(&id, what, Bound::AtLeast, (nodes * (nodes - 1)) as f64, Some(heard as f64));
    Ok(())
}

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}
