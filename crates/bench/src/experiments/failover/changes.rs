//! What an administrator does, and daemons that die or are replaced, under datagrams: nothing may be lost.

use super::{DATAGRAMS, Incident, LINKS, Part, RATE, drops, machine_loss, ms};
use crate::experiments::prelude::*;
use crate::flow::{Datagrams, Way};

/// How long the flow runs before the first change.
const WARM: Duration = Duration::from_millis(500);
/// How long the flow is watched before each change, and after it.
const WATCH: Duration = Duration::from_millis(500);
/// How long a host is without its daemon.
const DOWN: Duration = Duration::from_millis(500);

type Change = fn(&Run<'_>, &mut Bed, &str) -> Result<(), Error>;

/// In this order on each host: the member that goes comes back, the weight that falls rises again.
const CHANGES: [(&str, Change); 6] = [
    (KINDS[0], |_, bed, host| bed.member(host, "del", MEMBER, None)),
    (KINDS[1], |_, bed, host| bed.member(host, "add", MEMBER, Some(RATE))),
    (KINDS[2], |_, bed, host| bed.member(host, "set", MEMBER, Some(RATE / 2))),
    (KINDS[2], |_, bed, host| bed.member(host, "set", MEMBER, Some(RATE))),
    (KINDS[3], |run, bed, host| {
        bed.kill_daemon(host);
        run.pause(DOWN)?;
        bed.start_daemon(host)
    }),
    (KINDS[4], |_, bed, host| {
        bed.stop_daemon(host)?;
        bed.start_daemon(host)
    }),
];
pub(super) const KINDS: [&str; 5] = ["member-del", "member-add", "weight", "daemon-kill", "daemon-replace"];
/// The member that goes, comes and gets another weight; not the first one, whose MAC is the bond's.
const MEMBER: &str = "eth1";

pub(super) fn ids() -> impl Iterator<Item = String> {
    KINDS.iter().map(|kind| id(kind))
}

fn id(kind: &str) -> String {
    format!("{kind}/udp/n{}", LINKS[0])
}

/// One change, by the flow's clock.
struct Done {
    kind: &'static str,
    object: String,
    begun: Duration,
    command: Duration,
    over: Duration,
}

/// Every change once on each host, under one flow; one part a kind.
pub(super) fn round(run: &mut Run<'_>, bed: &mut Bed) -> Result<Vec<Part>, Error> {
    bed.make_again()?;
    let before = drops(bed)?;
    let flow = Datagrams::flow(bed.host("a")?, bed.host("b")?, DATAGRAMS)?;
    let done = all(run, bed, flow.zero);
    let record = flow.stop()?;
    let way = record.way(0, 1);
    let machine = machine_loss(before, drops(bed)?, Some(way));
    let done = done?;
    let part = |kind: &&'static str| {
        let own = done.iter().filter(|done| done.kind == *kind);
        let incidents = own.map(|done| (incident(done, way), None)).collect();
        let (load, per_second) = ("udp".into(), Some(way.per_second()));
        Part {
            id: id(kind),
            kind,
            load,
            links: LINKS[0],
            incidents,
            connection_lost: None,
            per_second,
            machine,
        }
    };
    let wanted = |kind: &&&'static str| run.wants(&id(kind));
    Ok(KINDS.iter().filter(wanted).map(part).collect())
}

fn all(run: &Run<'_>, bed: &mut Bed, zero: Instant) -> Result<Vec<Done>, Error> {
    run.pause(WARM)?;
    let mut all = Vec::new();
    for host in ["a", "b"] {
        for (kind, change) in CHANGES {
            run.pause(WATCH)?;
            let begun = zero.elapsed();
            change(run, bed, host)?;
            let command = zero.elapsed() - begun;
            run.pause(WATCH)?;
            let object =
                if kind.starts_with("daemon") { host.to_owned() } else { format!("{host}/{MEMBER}") };
            all.push(Done { kind, object, begun, command, over: zero.elapsed() });
        }
    }
    Ok(all)
}

fn incident(Done { object, begun, command, over, .. }: &Done, way: Way<'_>) -> Incident {
    Incident {
        object: object.clone(),
        at_ms: ms(*begun),
        watched_ms: ms(*over - *begun),
        quiet_gap_ms: ms(way.progress.longest_gap(begun.saturating_sub(WATCH), *begun)),
        gap_ms: ms(way.progress.longest_gap(*begun, *over)),
        sender_gap_ms: Some(ms(way.sender_gap(*begun..*over))),
        command_ms: Some(ms(*command)),
        ..Incident::of_datagrams(way, *begun..*over)
    }
}
