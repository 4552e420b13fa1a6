//! What one flow and pings see when a link fails: the one of two that carries most.

use super::awake::Awake;
use super::here::Missing;
use super::rates::all_paths;
use super::system::{SYSTEMS, System};
use crate::experiments::prelude::*;
use crate::flow::{TcpFlow, TcpRecord};
use linkbraid_lab::{Fault, Link, Running};
use std::io::Read;
use std::process::Stdio;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub word: &'static str,
    pub title: &'static str,
    /// The host whose link it is: `a` sends, `b` receives.
    host: &'static str,
    fault: Fault,
    quick: bool,
}

const fn kind(
    word: &'static str,
    title: &'static str,
    host: &'static str,
    fault: Fault,
    quick: bool,
) -> Kind {
    Kind { word, title, host, fault, quick }
}

pub(crate) const KINDS: [Kind; 4] = [
    kind("carrier-ours", "carrier, sender's link", "a", Fault::Carrier, false),
    kind("carrier-theirs", "carrier, receiver's link", "b", Fault::Carrier, true),
    kind("silent-ours", "silent, sender's link", "a", Fault::Silent, true),
    kind("silent-theirs", "silent, receiver's link", "b", Fault::Silent, false),
];

const LINKS: usize = 2;
/// How long TCP may find its speed.
const WARM: Duration = Duration::from_millis(1500);
/// How long the flow is watched before the failure: the base.
const QUIET: Duration = Duration::from_secs(1);
/// How long it is watched after it. The link is not mended.
const WATCH: Duration = Duration::from_secs(4);
/// The time at the end of this that shows what rate is left.
const TAIL: Duration = Duration::from_secs(1);
/// Pings after the failure, and the time from one to the next.
pub(crate) const PINGS: u32 = 150;
const PING_PERIOD: Duration = Duration::from_millis(20);
/// How long ping may take beyond that: answers to the last ones are waited for.
const PING_EXTRA: Duration = Duration::from_secs(10);
/// How often a failure of a whole run is repeated at most: it takes a lab of its own each time.
const REPEAT_MAX: u32 = 2;

pub(crate) fn id(kind: &str, system: &str) -> String {
    format!("failover/{kind}/{system}")
}

pub(super) fn run(run: &mut Run<'_>, awake: &Awake, missing: &Missing) -> Result<(), Error> {
    let quick = run.settings.quick;
    for turn in 0..run.settings.repeat.min(REPEAT_MAX) {
        for system in SYSTEMS.iter().filter(|system| system.has_failures(quick)) {
            for kind in KINDS.iter().filter(|kind| !quick || kind.quick) {
                let id = id(kind.word, system.word);
                if !run.wants(&id) {
                    continue;
                }
                if let Some(reason) = missing.reason(system) {
                    if turn == 0 {
                        run.skip(id, reason);
                    }
                    continue;
                }
                run.step(&id);
                let measured = one(run, (awake, missing), system, kind, turn);
                awake.rest(false);
                run.noted(id, measured)?;
            }
        }
    }
    Ok(())
}

/// One failure in a lab of its own: nothing remembers an earlier one.
fn one(
    run: &mut Run<'_>,
    (awake, missing): (&Awake, &Missing),
    system: &System,
    kind: &Kind,
    turn: u32,
) -> Result<(), Error> {
    let name = format!("failover/{}", system.word);
    let known = run.report.labs.iter().any(|lab| lab.name == name);
    let bed = system.up(run, missing, &name, LINKS)?;
    if known {
        run.report.labs.pop();
    }
    let (a, b) = (bed.host("a")?, bed.host("b")?);
    let begin = if system.is_mptcp() { TcpFlow::start_mptcp } else { TcpFlow::start };
    let flow = begin(a, b, Cc::Cubic)?;
    awake.rest(true);
    let happened = happen(run, &bed, system, kind);
    let record = flow.stop();
    awake.rest(false);
    let (failed, lost) = happened?;
    let id = id(kind.word, system.word);
    let did = format!("the busiest link of host {} fails: {}", kind.host, kind.fault.word());
    run.note(&id, &did, turn, &seen(&record, failed, lost))
}

/// When it failed, and how many pings were lost.
fn happen(run: &Run<'_>, bed: &Bed, system: &System, kind: &Kind) -> Result<(Instant, u32), Error> {
    run.pause(WARM)?;
    if system.is_mptcp() {
        all_paths(bed)?;
    }
    let host = bed.host(kind.host)?;
    let before = carried(host)?;
    run.pause(QUIET)?;
    let link = busiest(host, &before)?;
    let ping = ping(bed.host("a")?, bed.host("b")?.ipv4())?;
    let failed = link.fail(kind.fault)?;
    run.pause(WATCH)?;
    Ok((failed, lost(run, ping)?))
}

/// Frames of data that each link of a host has carried; data goes from `a` to `b`.
fn carried(host: Host<'_>) -> Result<Vec<u64>, Error> {
    let bytes = |link: &Link<'_>| {
        let count = link.port_count()?;
        Ok(if host.name() == "a" { count.in_bytes } else { count.out_bytes })
    };
    host.links()?.iter().map(bytes).collect()
}

fn busiest<'lab>(host: Host<'lab>, before: &[u64]) -> Result<Link<'lab>, Error> {
    let now = carried(host)?;
    let more = now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before));
    // Of equals the first: so the first link of those that share evenly.
    let (index, _) = more.enumerate().fold((0, 0), |best, (i, n)| if n > best.1 { (i, n) } else { best });
    host.link(index)
}

fn ping(from: Host<'_>, address: &str) -> Result<Running, Error> {
    let mut command = from.command("ping");
    let period = PING_PERIOD.as_secs_f64().to_string();
    command.args(["-q", "-n", "-W", "1", "-i", &period, "-c", &PINGS.to_string(), address]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    from.spawn(command)
}

fn lost(run: &Run<'_>, mut ping: Running) -> Result<u32, Error> {
    let due = Instant::now() + PING_EXTRA;
    while ping.ended().is_none() && Instant::now() < due {
        run.pause(Duration::from_millis(20))?;
    }
    let mut text = String::new();
    let cannot = |cause: String| Error::new("ping", "cannot count its answers", cause);
    if let (Some(_), Some(pipe)) = (ping.ended(), ping.child().stdout.as_mut()) {
        pipe.read_to_string(&mut text).map_err(|e| cannot(e.to_string()))?;
    }
    let answered = answers(&text).ok_or_else(|| cannot(format!("it said '{}'", text.trim())))?;
    Ok(PINGS.saturating_sub(answered))
}

fn answers(text: &str) -> Option<u32> {
    let line = text.lines().find(|line| line.contains("packets transmitted"))?;
    let part = line.split(',').find(|part| part.trim().ends_with("received"))?;
    part.split_whitespace().next()?.parse().ok()
}

/// What the flow and the pings saw of it.
fn seen(record: &TcpRecord, failed: Instant, lost: u32) -> [(&'static str, &'static str, f64); 4] {
    let at = failed.saturating_duration_since(record.zero);
    let (progress, end) = (&record.progress, at + WATCH);
    let before = progress.between(at.saturating_sub(QUIET), at) as f64 / QUIET.as_secs_f64();
    let after = progress.between(end.saturating_sub(TAIL), end) as f64 / TAIL.as_secs_f64();
    let gap_ms = |from, to| progress.longest_gap(from, to).as_secs_f64() * 1e3;
    [
        ("stall_ms", "ms", gap_ms(at, end)),
        ("quiet_ms", "ms", gap_ms(at.saturating_sub(QUIET), at)),
        ("left_share", "of the rate before", if before > 0.0 { after / before } else { 0.0 }),
        ("pings_lost", "pings", f64::from(lost)),
    ]
}

#[cfg(test)]
mod tests;
