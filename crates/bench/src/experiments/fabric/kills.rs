//! Four nodes under load, and one after the other, at random, is killed and started again: what the others send each
//! other arrives.

use super::subject::{OFI_NET, SHM, Subject, UDP};
use super::testbed::Testbed;
use super::{Turn, in_turns};
use crate::experiments::Random;
use crate::experiments::prelude::*;
use crate::flow::{DatagramRecord, Datagrams, TcpFlow};
use linkbraid_api::EventKind;

const NODES: usize = 4;
/// Kills of a whole run with each transport, and of a quick one with the first of them.
const KILLS: [(Subject, u32); 3] = [(SHM, 100), (UDP, 50), (OFI_NET, 20)];
const QUICK_KILLS: u32 = 8;

/// From one datagram to each other node to the next.
const PERIOD: Duration = Duration::from_millis(2);
/// How long a node stays killed at most; it is drawn for each kill.
const DOWN_MAX_MS: usize = 600;
/// How long all nodes run between two kills.
const BETWEEN: Duration = Duration::from_millis(100);
/// How long a node may take to come back before the run is given up.
const LIMIT: Duration = Duration::from_secs(20);
/// A datagram that leaves so shortly before a kill may be under way when it happens.
const UNDER_WAY: Duration = Duration::from_millis(100);
/// A machine on which a thread waits this long for a processor, half of what makes a node silent, is too busy to blame
/// anybody for a loss.
const STALL: Duration = Duration::from_millis(200);
/// How many losses are reported one by one.
const LOSSES_TOLD: usize = 20;
/// Which nodes die when is drawn from this, so that each run has the same.
const SEED: u64 = 0x6c69_6e6b_6272_6169;

struct Death {
    node: usize,
    /// When it was about to be killed, and when it had exchanged frames with all others again.
    from: Duration,
    to: Duration,
}

/// What is killed how often in this run.
fn wanted(run: &Run<'_>) -> Vec<(Subject, u32)> {
    let (all, most) = if run.settings.quick { (&KILLS[..1], QUICK_KILLS) } else { (&KILLS[..], u32::MAX) };
    let wanted = all.iter().filter(|(subject, _)| run.wants(&format!("kills/{}", subject.word)));
    wanted.map(|(subject, kills)| (*subject, most.min(*kills))).collect()
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let wanted = wanted(run);
    if wanted.is_empty() {
        return Ok(());
    }
    let mut testbed = Testbed::up(run, "kills", NODES)?;
    for (subject, kills) in wanted {
        in_turns(run, &mut testbed, "kills", &[subject], 0..1, |run, testbed, at| {
            measure(run, testbed, at, kills)
        })?;
    }
    Ok(())
}

pub(super) fn steps(run: &Run<'_>) -> usize {
    wanted(run).iter().map(|(_, kills)| *kills as usize).sum()
}

fn measure(run: &mut Run<'_>, testbed: &mut Testbed, at: Turn<'_>, kills: u32) -> Result<(), Error> {
    let Turn { subject, typed, .. } = at;
    testbed.fix_neighbours(subject)?;
    let mesh = Datagrams::mesh(&testbed.addressed(subject)?, PERIOD)?;
    mesh.wait_fresh(&mesh.mark(), LIMIT, |_, _| true)?;
    let mut seen = vec![0; NODES];
    taken_for_down(testbed, &mut seen, NODES)?;
    let mut flows = Vec::new();
    for (from, to) in pairs() {
        let address = testbed.address(subject, to);
        flows.push((from, to, TcpFlow::steady(testbed.host(from)?, testbed.host(to)?, &address, mesh.zero)?));
    }
    let mut deaths: Vec<Death> = Vec::new();
    let mut random = Random(SEED);
    let mut missed = 0;
    for kill in 0..kills {
        run.step(&format!("kills/{}", subject.word));
        run.pause(BETWEEN)?;
        let node = random.below(NODES);
        let down = Duration::from_millis(random.below(DOWN_MAX_MS) as u64);
        let name = testbed.names[node].clone();
        let from = mesh.now();
        testbed.bed.kill_daemon(&name);
        run.pause(down)?;
        let mark = mesh.mark();
        testbed.bed.start_daemon(&name)?;
        let to = mesh.wait_fresh(&mark, LIMIT, |from, to| from == node || to == node)?;
        missed += taken_for_down(testbed, &mut seen, node)?;
        deaths.push(Death { node, from, to });
        if (kill + 1) % 10 == 0 {
            run.say(&format!("  kills/{:<26} {} of {kills}", subject.word, kill + 1))?;
        }
    }
    run.pause(BETWEEN)?;
    let end = mesh.now();
    let (mut torn, mut pause) = (0, Duration::ZERO);
    let mut reasons = Vec::new();
    for (from, to, flow) in flows {
        let record = flow.stop();
        if let Some(reason) = record.lost {
            torn += 1;
            reasons.push(format!("{from} to {to}: {reason}"));
        }
        // Only while both ends have lived for a while: TCP itself pauses after an end's death.
        for death in deaths.iter().filter(|death| death.node != from && death.node != to) {
            if quiet(&deaths, death, from, to) {
                pause = pause.max(record.progress.longest_gap(death.from, death.to));
            }
        }
    }
    let record = mesh.stop()?;
    let (sent, lost) = survivors(&record, &deaths, end);
    let stall = record.longest_stall();
    for line in lost.iter().take(LOSSES_TOLD) {
        run.say(line)?;
    }
    let lost = lost.len();
    let id = format!("kills/{}", subject.word);
    let values = [
        ("kills", "", deaths.len() as f64),
        ("sent", "datagrams", sent as f64),
        ("lost", "datagrams", lost as f64),
        ("twice", "datagrams", record.twice() as f64),
        ("torn", "connections", f64::from(torn)),
        ("pause", "ms", pause.as_secs_f64() * 1e3),
        ("missed", "times", f64::from(missed)),
        ("stall", "ms", stall.as_secs_f64() * 1e3),
    ];
    run.note(&id, typed, 0, &values)?;
    reasons.iter().try_for_each(|reason| run.say(&format!("    torn: {reason}")))?;
    for (turn, death) in (0..).zip(&deaths) {
        let away = death.to.saturating_sub(death.from).as_secs_f64() * 1e3;
        run.report.note(&id, typed, turn, &[("away", "ms", away)]);
    }
    for (what, value) in [
        ("datagrams between survivors lost", lost as f64),
        ("datagrams that came twice", record.twice() as f64),
        ("TCP connections torn", f64::from(torn)),
    ] {
        let busy = (stall > STALL).then(|| {
            format!("the machine was too busy: for {} ms a sender had no processor", stall.as_millis())
        });
        run.goal(Goal::new(&id, what, Bound::AtMost, 0.0, Some(value)).unless(busy));
    }
    Ok(())
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..NODES).flat_map(|from| (from + 1..NODES).map(move |to| (from, to)))
}

/// Whether neither of two nodes had died lately before another one's death.
fn quiet(deaths: &[Death], of: &Death, from: usize, to: usize) -> bool {
    const LATELY: Duration = Duration::from_secs(3);
    let theirs = deaths.iter().filter(|death| death.node == from || death.node == to);
    !theirs.into_iter().any(|death| death.from <= of.from && death.to + LATELY > of.from)
}

/// Datagrams sent between nodes that were both alive, and a line for each that was lost.
fn survivors(record: &DatagramRecord, deaths: &[Death], end: Duration) -> (u64, Vec<String>) {
    let (mut sent, mut lines) = (0, Vec::new());
    for from in 0..NODES {
        for to in (0..NODES).filter(|to| *to != from) {
            let theirs: Vec<&Death> =
                deaths.iter().filter(|death| death.node == from || death.node == to).collect();
            let alive = |left: Duration| {
                left < end && !theirs.iter().any(|d| left + UNDER_WAY >= d.from && left <= d.to)
            };
            let way = record.way(from, to);
            let count = way.count(alive);
            sent += count.sent - count.refused;
            for left in way.lost(false, alive) {
                let last = deaths.iter().rev().find(|death| death.from <= left);
                let after = last.map_or_else(String::new, |death| {
                    let ms = |at: Duration| left.as_secs_f64() * 1e3 - at.as_secs_f64() * 1e3;
                    let (killed, back) = (ms(death.from), ms(death.to));
                    format!(
                        " {killed:.0} ms after node {} was killed, {back:.0} ms after it was back",
                        death.node
                    )
                });
                lines.push(format!("    lost: {from} to {to} at {:.0} ms,{after}", left.as_secs_f64() * 1e3));
            }
        }
    }
    (sent, lines)
}

/// How often nodes said since the last look (`seen`, by the time of their last event) that another one than the killed one
/// is down.
fn taken_for_down(testbed: &Testbed, seen: &mut [u64], killed: usize) -> Result<u32, Error> {
    let mut count = 0;
    for (node, seen) in seen.iter_mut().enumerate().filter(|(node, _)| *node != killed) {
        let events = testbed.record(node)?.events;
        let fresh = events.iter().filter(|event| event.time_ms > *seen);
        let down = fresh.filter(|event| {
            let other = event.object.parse::<usize>().ok();
            event.kind == EventKind::Node && event.new.as_deref() == Some("down") && other != Some(killed)
        });
        count += u32::try_from(down.count()).unwrap_or(u32::MAX);
        *seen = events.iter().map(|event| event.time_ms).max().unwrap_or(*seen).max(*seen);
    }
    Ok(count)
}
