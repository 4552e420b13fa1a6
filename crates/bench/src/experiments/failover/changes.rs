//! What an administrator does, and daemons that die or are replaced, under datagrams: nothing may be lost.

use super::{DATAGRAMS, Incident, Part, drops, machine_loss, ms};
use crate::experiments::prelude::*;
use crate::flow::{DatagramRecord, Datagrams};

/// How long the flow runs before the first change.
const WARM: Duration = Duration::from_millis(500);
/// How long the flow is watched before each change, and after it.
const WATCH: Duration = Duration::from_millis(500);
/// How long a host is without its daemon.
const DOWN: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    MemberDel,
    MemberAdd,
    WeightDown,
    WeightUp,
    DaemonKill,
    DaemonReplace,
}

/// In this order on each host: the member that goes comes back, the weight that falls rises again.
const CHANGES: [(Change, &str); 6] = [
    (Change::MemberDel, KINDS[0]),
    (Change::MemberAdd, KINDS[1]),
    (Change::WeightDown, KINDS[2]),
    (Change::WeightUp, KINDS[2]),
    (Change::DaemonKill, KINDS[3]),
    (Change::DaemonReplace, KINDS[4]),
];
pub(super) const KINDS: [&str; 5] = ["member-del", "member-add", "weight", "daemon-kill", "daemon-replace"];
/// The member that goes, comes and gets another weight; not the first one, whose MAC is the bond's.
const MEMBER: &str = "eth1";

pub(super) fn ids() -> impl Iterator<Item = String> {
    KINDS.iter().map(|kind| id(kind))
}

fn id(kind: &str) -> String {
    format!("{kind}/udp/n{}", super::LINKS[0])
}

struct Done {
    change: Change,
    kind: &'static str,
    host: &'static str,
    begun: Instant,
    command: Duration,
    over: Instant,
}

/// Every change once on each host, under one flow; one part a kind.
pub(super) fn round(run: &mut Run<'_>, bed: &mut Bed) -> Result<Vec<Part>, Error> {
    bed.make_again()?;
    let before = drops(bed)?;
    let flow = Datagrams::flow(bed.host("a")?, bed.host("b")?, DATAGRAMS)?;
    let done = all(run, bed);
    let record = flow.stop()?;
    let machine = machine_loss(before, drops(bed)?, Some(record.way(0, 1)));
    let done = done?;
    let part = |kind: &&'static str| Part {
        id: id(kind),
        kind,
        load: "udp".into(),
        links: super::LINKS[0],
        incidents: done
            .iter()
            .filter(|done| done.kind == *kind)
            .map(|done| (incident(done, &record), None))
            .collect(),
        connection_lost: None,
        per_second: Some(record.way(0, 1).per_second()),
        machine,
    };
    let wanted = |kind: &&&'static str| run.wants(&id(kind));
    Ok(KINDS.iter().filter(wanted).map(part).collect())
}

fn all(run: &Run<'_>, bed: &mut Bed) -> Result<Vec<Done>, Error> {
    run.pause(WARM)?;
    let mut all = Vec::new();
    for host in ["a", "b"] {
        for (change, kind) in CHANGES {
            run.pause(WATCH)?;
            let begun = Instant::now();
            make(run, bed, host, change)?;
            let command = begun.elapsed();
            run.pause(WATCH)?;
            all.push(Done { change, kind, host, begun, command, over: Instant::now() });
        }
    }
    Ok(all)
}

fn make(run: &Run<'_>, bed: &mut Bed, name: &str, change: Change) -> Result<(), Error> {
    let rate = super::RATE;
    match change {
        Change::MemberDel => bed.member(name, "del", MEMBER, None),
        Change::MemberAdd => bed.member(name, "add", MEMBER, Some(rate)),
        Change::WeightDown => bed.member(name, "set", MEMBER, Some(rate / 2)),
        Change::WeightUp => bed.member(name, "set", MEMBER, Some(rate)),
        Change::DaemonKill => {
            bed.kill_daemon(name);
            run.pause(DOWN)?;
            bed.start_daemon(name)
        }
        Change::DaemonReplace => {
            bed.stop_daemon(name)?;
            bed.start_daemon(name)
        }
    }
}

fn incident(done: &Done, record: &DatagramRecord) -> Incident {
    let at = |instant: Instant| instant.saturating_duration_since(record.zero);
    let (begun, over) = (at(done.begun), at(done.over));
    let watched = over.saturating_sub(begun);
    let way = record.way(0, 1);
    let count = way.between(begun..over);
    let object = match done.change {
        Change::DaemonKill | Change::DaemonReplace => done.host.to_owned(),
        _ => format!("{}/{MEMBER}", done.host),
    };
    Incident {
        object,
        at_ms: ms(begun),
        watched_ms: ms(watched),
        quiet_gap_ms: ms(way.progress.longest_gap(begun.saturating_sub(WATCH), begun)),
        gap_ms: ms(way.progress.longest_gap(begun, over)),
        sender_gap_ms: Some(ms(way.sender_gap(begun..over))),
        sent: Some(count.sent),
        lost: Some(count.lost),
        duplicated: Some(count.duplicated),
        reordered: Some(count.reordered),
        command_ms: Some(ms(done.command)),
        ..Incident::default()
    }
}
