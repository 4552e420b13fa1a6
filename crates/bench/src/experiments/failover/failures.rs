//! Links that fail and are mended under traffic.

use super::{DATAGRAMS, Incident, LINKS, Part, RATE, Return, drops, machine_loss, ms};
use crate::bed::BOND;
use crate::experiments::prelude::*;
use crate::flow::{Datagrams, Progress, TcpFlow, TcpRecord, Way};
use crate::report::Points;
use linkbraid_api::{BondRecord, EventKind, EventRecord};
use linkbraid_lab::{DEFAULT_MTU, Fault, Link, shape};
use std::time::{SystemTime, UNIX_EPOCH};

/// How long TCP may find its speed before anything happens.
const WARM: Duration = Duration::from_millis(1500);
/// How long the flow is watched before a failure, and from the failure until the link is mended.
const WATCH: Duration = Duration::from_secs(1);
/// How long a mended link may take until it carries data again.
const RETURN_LIMIT: Duration = Duration::from_secs(5);
const AFTER: Duration = Duration::from_millis(500);
/// A mended link carries data again once so many frames have crossed it: probes and ARP+ need seconds for as many,
/// data some milliseconds.
const FRAMES: u64 = 100;
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(1);
/// Goodput is back at this share of what the remaining links can carry, over a time of this length.
const BACK_SHARE: f64 = 0.8;
const BACK_WINDOW: Duration = Duration::from_millis(50);
/// The curve: from when, how long a bin, how many at most.
const TRACE_BEFORE: Duration = Duration::from_millis(300);
const TRACE_BIN: Duration = Duration::from_millis(5);
const TRACE_BINS: u32 = 560;
/// A daemon's clock of milliseconds may have been rounded down.
const ROUNDING_MS: u64 = 1;

pub(super) struct Case {
    kind: &'static str,
    /// The host whose link it is: `a` sends, `b` receives.
    host: &'static str,
    fault: Fault,
    load: Load,
    pub links: usize,
}

#[derive(Clone, Copy)]
enum Load {
    Tcp(Cc),
    Udp,
}

/// The failures: name, title, the host whose link it is, and what is done to it.
pub(super) const FAILURES: [(&str, &str, &str, Fault); 5] = [
    ("carrier-ours", "Carrier lost at the sender", "a", Fault::Carrier),
    ("carrier-theirs", "Carrier lost at the receiver", "b", Fault::Carrier),
    ("silent-both", "Silent, both ways", "a", Fault::Silent),
    ("silent-out", "Silent, nothing gets out", "a", Fault::SilentOut),
    ("silent-in", "Silent, nothing gets in", "a", Fault::SilentIn),
];
const LOADS: [Load; 3] = [Load::Tcp(Cc::Cubic), Load::Tcp(Cc::Bbr), Load::Udp];
/// The places of the failures that one flow sees with more links, too.
const WITH_MORE: [usize; 2] = [0, 2];

/// All of them under all loads with the least links, and some with more.
pub(super) fn cases() -> impl Iterator<Item = Case> {
    let case = |(kind, _, host, fault), load, links| Case { kind, host, fault, load, links };
    let [least, more] = LINKS;
    let all = FAILURES.into_iter().flat_map(move |failure| LOADS.map(|load| case(failure, load, least)));
    all.chain(WITH_MORE.into_iter().map(move |place| case(FAILURES[place], LOADS[0], more)))
}

/// When things were done to one link, by the flow's clock, and what the daemons said of it.
struct Done {
    link: usize,
    failed: Duration,
    mended: Duration,
    used: Option<Duration>,
    over: Duration,
    detected: [Option<(f64, String)>; 2],
}

/// Those of a quick run that is not asked for others: the shortest gap and the longest, and what datagrams lose.
const QUICK: [&str; 3] = ["carrier-ours/cubic/n2", "silent-both/cubic/n2", "silent-both/udp/n2"];

impl Case {
    pub fn is_in(&self, run: &Run<'_>) -> bool {
        let id = self.id();
        let usual = !run.settings.quick || !run.only.is_empty() || QUICK.contains(&id.as_str());
        usual && run.wants(&id)
    }

    pub fn id(&self) -> String {
        let load = match self.load {
            Load::Tcp(cc) => cc.name(),
            Load::Udp => "udp",
        };
        format!("{}/{load}/n{}", self.kind, self.links)
    }
}

/// Two failures under one flow, each of another link, on bonds that have seen none.
pub(super) fn round(run: &mut Run<'_>, bed: &Bed, case: &Case) -> Result<Part, Error> {
    bed.make_again()?;
    let (a, b) = (bed.host("a")?, bed.host("b")?);
    let before = drops(bed)?;
    let mut part = Part {
        id: case.id(),
        kind: case.kind,
        load: String::new(),
        links: case.links,
        incidents: Vec::new(),
        connection_lost: None,
        per_second: None,
        machine: machine_loss(before, before, None),
    };
    match case.load {
        Load::Tcp(cc) => {
            let flow = TcpFlow::start(a, b, cc)?;
            let done = both_links(run, bed, case, flow.zero);
            let record = flow.stop();
            part.load = format!("tcp {}", cc.name());
            part.incidents = done?.iter().map(|done| tcp_incident(case, done, &record)).collect();
            part.machine = machine_loss(before, drops(bed)?, None);
            part.connection_lost = record.lost;
        }
        Load::Udp => {
            let flow = Datagrams::flow(a, b, DATAGRAMS)?;
            let done = both_links(run, bed, case, flow.zero);
            let record = flow.stop()?;
            let way = record.way(0, 1);
            part.load = "udp".into();
            part.incidents = done?.iter().map(|done| (udp_incident(case, done, way), None)).collect();
            part.machine = machine_loss(before, drops(bed)?, Some(way));
            part.per_second = Some(way.per_second());
        }
    }
    Ok(part)
}

fn both_links(run: &Run<'_>, bed: &Bed, case: &Case, zero: Instant) -> Result<Vec<Done>, Error> {
    run.pause(WARM)?;
    (0..2).map(|link| one_link(run, bed, case, link, zero)).collect()
}

fn one_link(run: &Run<'_>, bed: &Bed, case: &Case, index: usize, zero: Instant) -> Result<Done, Error> {
    let at = |instant: Instant| instant.saturating_duration_since(zero);
    let host = bed.host(case.host)?;
    let link = host.link(index)?;
    run.pause(WATCH)?;
    let since = SystemTime::now();
    let failed = link.fail(case.fault)?;
    let watched = run.pause(WATCH);
    let mended = link.mend()?;
    watched?;
    let used = wait_used(run, case, &link)?;
    run.pause(AFTER)?;
    let over = zero.elapsed();
    let detected = [
        detection(bed.host("a")?, case, host, index, since)?,
        detection(bed.host("b")?, case, host, index, since)?,
    ];
    // The next failure shall find everything as this one did.
    bed.meet()?;
    Ok(Done { link: index, failed: at(failed), mended: at(mended), used: used.map(at), over, detected })
}

fn wait_used(run: &Run<'_>, case: &Case, link: &Link<'_>) -> Result<Option<Instant>, Error> {
    // Data goes from `a` to `b`: into the switch by a link of `a`, out of it by one of `b`.
    let frames = || {
        let count = link.port_count()?;
        Ok::<u64, Error>(if case.host == "a" { count.in_frames } else { count.out_frames })
    };
    let (first, deadline) = (frames()?, Instant::now() + RETURN_LIMIT);
    while Instant::now() < deadline {
        if frames()? >= first + FRAMES {
            return Ok(Some(Instant::now()));
        }
        run.pause(LOOK)?;
    }
    Ok(None)
}

/// How long after the failure a host's daemon knew, in milliseconds, and why.
fn detection(
    host: Host<'_>,
    case: &Case,
    failing: Host<'_>,
    link: usize,
    since: SystemTime,
) -> Result<Option<(f64, String)>, Error> {
    let since_ms = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3;
    let bonds: Vec<BondRecord> = host.ask(&format!("show {BOND}"))?;
    let list: Vec<EventRecord> = bonds.into_iter().flat_map(|bond| bond.events).collect();
    let nic = format!("eth{link}");
    let member = (host.name() == case.host).then_some(nic.as_str());
    let first = first_loss(&list, (since_ms as u64).saturating_sub(ROUNDING_MS), member, &failing.mac(link));
    Ok(first.map(|event| ((event.time_ms as f64 - since_ms).max(0.0), event.reason.clone())))
}

/// What both kinds of traffic have.
fn incident(case: &Case, done: &Done, progress: &Progress) -> Incident {
    let Done { failed, mended, over, .. } = *done;
    let gap = |from, to| progress.longest_gap(from, to);
    let watched = mended.saturating_sub(failed);
    let used = done.used.map_or(RETURN_LIMIT, |used| used.saturating_sub(mended));
    let known = |host: usize| done.detected[host].as_ref();
    let first = [known(0), known(1)].into_iter().flatten().min_by(|a, b| a.0.total_cmp(&b.0));
    Incident {
        object: format!("{}/eth{}", case.host, done.link),
        at_ms: ms(failed),
        watched_ms: ms(watched),
        quiet_gap_ms: ms(gap(failed.saturating_sub(watched), failed)),
        gap_ms: ms(gap(failed, mended)),
        detected_ms: known(0).map(|known| known.0),
        detected_far_ms: known(1).map(|known| known.0),
        reason: first.map(|known| known.1.clone()),
        restored: Some(Return {
            at_ms: ms(mended),
            used_ms: ms(used),
            watched_ms: ms(RETURN_LIMIT),
            gap_ms: ms(gap(mended, over)),
            ..Return::default()
        }),
        ..Incident::default()
    }
}

fn tcp_incident(case: &Case, done: &Done, record: &TcpRecord) -> (Incident, Option<Points>) {
    let progress = &record.progress;
    let mut incident = incident(case, done, progress);
    let Done { failed, mended, over, .. } = *done;
    let left = f64::from(RATE) * 1e6 / 8.0 * (case.links - 1) as f64 * shape::tcp_share(DEFAULT_MTU, false);
    let enough = (left * BACK_SHARE * BACK_WINDOW.as_secs_f64()) as u64;
    let back = progress.reaches(failed, mended, BACK_WINDOW, enough);
    incident.back_ms = Some(back.map_or(incident.watched_ms, ms));
    let from = failed.saturating_sub(TRACE_BEFORE);
    // What comes after the flow was stopped is not its goodput.
    let whole = over.saturating_sub(from).as_nanos() / TRACE_BIN.as_nanos();
    let bins = u32::try_from(whole).map_or(TRACE_BINS, |bins| bins.min(TRACE_BINS));
    let mbit = |bytes: u64| bytes as f64 * 8.0 / 1e6 / TRACE_BIN.as_secs_f64();
    let middle = |bin: u32| ms(from) - ms(failed) + (f64::from(bin) + 0.5) * ms(TRACE_BIN);
    let values = progress.bins(from, TRACE_BIN, bins).into_iter().map(|bytes| Some(mbit(bytes)));
    (incident, Some(((0..bins).map(middle).collect(), values.collect())))
}

fn udp_incident(case: &Case, done: &Done, way: Way<'_>) -> Incident {
    let Done { failed, mended, over, .. } = *done;
    // What was under way when the link failed may be lost with it.
    let sent = failed.saturating_sub(Duration::from_millis(10))..mended;
    let Incident { sent, lost, duplicated, reordered, .. } = Incident::of_datagrams(way, sent);
    let last_lost = way.lost(true, |left| (failed..mended).contains(&left)).last();
    let last_lost_ms = last_lost.map(|at| ms(at.saturating_sub(failed)));
    let sender_gap_ms = Some(ms(way.sender_gap(failed..mended)));
    let back = Incident::of_datagrams(way, mended..over);
    let own = incident(case, done, way.progress);
    let restored = own.restored.map(|own| Return { lost: back.lost, duplicated: back.duplicated, ..own });
    Incident { sender_gap_ms, sent, lost, last_lost_ms, duplicated, reordered, restored, ..own }
}

/// The first event from `since_ms` on that says that a link is lost: of this member, or of a lane that ends at this
/// MAC of the peer.
fn first_loss<'a>(
    events: &'a [EventRecord],
    since_ms: u64,
    member: Option<&str>,
    mac: &str,
) -> Option<&'a EventRecord> {
    events.iter().filter(|event| event.time_ms >= since_ms && is_loss(event)).find(|event| {
        let ours = event.object.split(" > ").next();
        match (event.kind, member) {
            (EventKind::Member | EventKind::Lane, Some(member)) => ours == Some(member),
            (EventKind::Lane, None) => event.object.to_lowercase().contains(&mac.to_lowercase()),
            _ => false,
        }
    })
}

fn is_loss(event: &EventRecord) -> bool {
    matches!(event.new.as_deref(), Some("down" | "cut" | "gone" | "held") | None)
}

#[cfg(test)]
mod tests;
