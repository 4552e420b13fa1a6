//! A link fails, silently or not, and comes back; members come and go; the daemon dies: what the traffic sees of it.

mod changes;
mod failures;
pub(super) mod figure;
mod goals;

use crate::experiments::prelude::*;
use crate::flow::Way;
use crate::report::{FAILOVERS, Points, Reason, Record};
use linkbraid_lab::counters::parse_snmp;
use serde::Serialize;
use serde_json::json;
use std::ops::Range;

/// The rate of each link, Mbit/s. 50,000 small datagrams a second take 42 of them.
const RATE: u32 = 100;
/// Links of each host: the usual case, and the one with more of them left.
const LINKS: [usize; 2] = [2, 4];
const DATAGRAMS: u32 = 50_000;
/// Each repeat makes every host's bond again this often, and each bond sees every kind of incident twice: 12 in a
/// whole run, 2 in a quick one.
const ROUNDS: u32 = 2;
const QUICK_ROUNDS: u32 = 1;

/// A sender that was late for longer in all is worth a word.
const SLIPPED_MS: f64 = 100.0;

/// One failure or change. Times are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Incident {
    /// What it was done to: `HOST/NIC`, or the host.
    object: String,
    /// When, since the flow began.
    at_ms: f64,
    /// How long the flow was watched from then on; a gap that is as long did not end.
    watched_ms: f64,
    /// The longest time without new data in a window as long just before: the base.
    quiet_gap_ms: f64,
    /// The longest time without new data after it.
    gap_ms: f64,
    /// The longest time in which the sender itself sent nothing after it, because the machine had no time for it; UDP only.
    sender_gap_ms: Option<f64>,
    /// Until goodput was back at 80 % of what the remaining links can carry; TCP only. `watched_ms` if it was not.
    back_ms: Option<f64>,
    /// Until the daemon of the host that sends the data knew; absent if it did not, or reports no events.
    detected_ms: Option<f64>,
    /// The same of the host that receives them. It does not send data, and probes such lanes less often.
    detected_far_ms: Option<f64>,
    /// The reason that the first of them gave.
    reason: Option<String>,
    /// Datagrams sent from then on until the end was watched; UDP only, as are those below.
    sent: Option<u64>,
    /// Of these, lost.
    lost: Option<u64>,
    /// Until the last of these was sent.
    last_lost_ms: Option<f64>,
    /// Of these, arrived more than once.
    duplicated: Option<u64>,
    /// Of these, arrived after one that was sent later.
    reordered: Option<u64>,
    /// How long the command took, for changes.
    command_ms: Option<f64>,
    /// What came after the link was mended, for failures.
    restored: Option<Return>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Return {
    /// When it was mended, since the flow began.
    at_ms: f64,
    /// Until it carried data again; `watched_ms` if it did not.
    used_ms: f64,
    /// How long that was waited for at most.
    watched_ms: f64,
    /// The longest time without new data meanwhile, and a while on.
    gap_ms: f64,
    /// Datagrams lost meanwhile; UDP only.
    lost: Option<u64>,
    /// Datagrams that arrived more than once meanwhile; UDP only.
    duplicated: Option<u64>,
}

impl Incident {
    /// What became of datagrams that were sent in a time.
    fn of_datagrams(way: Way<'_>, sent: Range<Duration>) -> Self {
        let count = way.between(sent);
        Self {
            sent: Some(count.sent),
            lost: Some(count.lost),
            duplicated: Some(count.duplicated),
            reordered: Some(count.reordered),
            ..Self::default()
        }
    }
}

/// Losses and delays that are the machine's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
struct MachineLoss {
    /// Frames that the machine's backlog was too full for.
    backlog_drops: u64,
    /// Frames that queues of NICs and of the switch were too full for; TCP fills them on purpose.
    queue_drops: u64,
    /// Datagrams that the receiver's socket had no room for.
    receiver_drops: u64,
    /// Datagrams that the sender's kernel did not take.
    refused: u64,
    /// Milliseconds that the sender was late, and did not make up for.
    slipped_ms: f64,
}

struct Part {
    id: String,
    kind: &'static str,
    load: String,
    links: usize,
    /// Each with the goodput around it, by milliseconds since it, where there is a curve to draw.
    incidents: Vec<(Incident, Option<Points>)>,
    /// Why the TCP connection ended before it was to.
    connection_lost: Option<String>,
    per_second: Option<f64>,
    machine: MachineLoss,
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let mut parts: Vec<Part> = Vec::new();
    let rounds = if run.settings.quick { QUICK_ROUNDS } else { ROUNDS };
    // Changes are a step of each round, too.
    let cases = failures::cases().filter(|case| case.is_in(run)).count();
    run.plan((cases + 1) * rounds as usize);
    for links in LINKS {
        if !wanted(run, links) {
            continue;
        }
        let name = format!("n{links}");
        let mut bed = run.bonded(&name, Topology::symmetric(2, links, Some(RATE)))?;
        // In turns, so that whatever else the machine does meets all kinds alike.
        for round in 1..=run.settings.repeat * rounds {
            for case in failures::cases().filter(|case| case.links == links) {
                if case.is_in(run) {
                    run.step(&case.id());
                    let part = failures::round(run, &bed, &case);
                    if let Some(part) = run.noted(format!("{} #{round}", case.id()), part)? {
                        take_in(run, &mut parts, round, part)?;
                    }
                }
            }
            if links == LINKS[0] && changes::ids().any(|id| run.wants(&id)) {
                run.step("changes");
                match changes::round(run, &mut bed) {
                    Ok(found) => {
                        found.into_iter().try_for_each(|part| take_in(run, &mut parts, round, part))?
                    }
                    Err(error) => {
                        run.fail(format!("changes #{round}"), error)?;
                        // A change that failed half way leaves a bed that nothing can be said about.
                        drop(bed);
                        bed = run.bonded(&name, Topology::symmetric(2, links, Some(RATE)))?;
                    }
                }
            }
        }
    }
    while let Some(id) = parts.first().map(|part| part.id.clone()) {
        let (own, others) = parts.into_iter().partition(|part| part.id == id);
        parts = others;
        take(&mut run.report, own);
        run.goals(goals::of(&run.report, &id));
    }
    Ok(())
}

fn wanted(run: &Run<'_>, links: usize) -> bool {
    let failures = failures::cases().any(|case| case.links == links && case.is_in(run));
    failures || (links == LINKS[0] && changes::ids().any(|id| run.wants(&id)))
}

fn take_in(run: &mut Run<'_>, parts: &mut Vec<Part>, round: u32, part: Part) -> Result<(), Error> {
    let line = format!("  #{round:<2} {:<22} {}", part.id, line(&part));
    parts.push(part);
    run.say(&line)
}

/// One round, for whoever watches.
fn line(part: &Part) -> String {
    let each = |value: &dyn Fn(&Incident) -> Option<f64>| {
        let number = |(i, _): &(Incident, _)| value(i).map_or_else(|| "-".to_owned(), |v| format!("{v:.0}"));
        part.incidents.iter().map(number).collect::<Vec<_>>().join(" ")
    };
    let mut line =
        format!("gap {} ms (before {})", each(&|i| Some(i.gap_ms)), each(&|i| Some(i.quiet_gap_ms)));
    if part.load == "udp" {
        let (lost, twice) = (each(&|i| i.lost.map(|n| n as f64)), each(&|i| i.duplicated.map(|n| n as f64)));
        let last = each(&|i| i.last_lost_ms);
        line += &format!(", sender's {} ms", each(&|i| i.sender_gap_ms));
        line += &format!(", lost {lost} until {last} ms, twice {twice}");
    } else {
        line += &format!(", back after {} ms", each(&|i| i.back_ms));
    }
    if part.incidents.iter().any(|(i, _)| i.restored.is_some()) {
        let (near, far) = (each(&|i| i.detected_ms), each(&|i| i.detected_far_ms));
        let used = each(&|i| i.restored.as_ref().map(|r| r.used_ms));
        line += &format!(", known after {near} and {far} ms, used again after {used} ms");
        if part.load == "udp" {
            line += &format!(" with {} lost", each(&|i| Some(i.restored.as_ref()?.lost? as f64)));
        }
    }
    let MachineLoss { backlog_drops, queue_drops, receiver_drops, slipped_ms, .. } = part.machine;
    let trouble = backlog_drops + receiver_drops + if part.load == "udp" { queue_drops } else { 0 };
    if trouble > 0 || slipped_ms > SLIPPED_MS {
        line += &format!(
            "; the machine dropped {trouble} frames, and was late to send by {slipped_ms:.0} ms in all"
        );
    }
    if let Some(reason) = &part.connection_lost {
        line += &format!(", connection lost: {reason}");
    }
    line
}

/// Takes all rounds of one case into the report; its curve is that of the incident whose gap is the median one.
fn take(report: &mut Report, parts: Vec<Part>) {
    let Some(first) = parts.first() else { return };
    let (id, lab) = (first.id.clone(), format!("n{}", first.links));
    let parameters = json!({
        "lab": lab, "kind": first.kind, "load": first.load, "links": first.links, "rate_mbit": RATE,
    });
    let lost: Vec<&String> = parts.iter().filter_map(|part| part.connection_lost.as_ref()).collect();
    let remarks =
        lost.iter().map(|lost| Reason { id: id.clone(), reason: format!("connection lost: {lost}") });
    report.remarks.extend(remarks);
    let totals = json!({
        "connections_lost": lost.len(),
        "datagrams_per_s": parts.iter().filter_map(|part| part.per_second).collect::<Vec<_>>(),
        "machine": parts.iter().map(|part| part.machine).collect::<Vec<_>>(),
    });
    let (mut incidents, mut traces): (Vec<Incident>, Vec<Option<Points>>) =
        parts.into_iter().flat_map(|part| part.incidents).unzip();
    // A daemon that reports events and missed this one counts with the time it was watched; one that reports none at all has
    // not failed to detect.
    if incidents.iter().any(|incident| incident.detected_ms.or(incident.detected_far_ms).is_some()) {
        for Incident { detected_ms, detected_far_ms, watched_ms, .. } in &mut incidents {
            detected_ms.get_or_insert(*watched_ms);
            detected_far_ms.get_or_insert(*watched_ms);
        }
    }
    let turns = incidents.iter().map(|incident| json!(incident)).collect();
    report.record(FAILOVERS, &id, Record { turns, totals, parameters });
    let middle = report.median(&id, "gap_ms").unwrap_or(0.0);
    let distance = |index: &usize| (incidents[*index].gap_ms - middle).abs();
    let drawn = (0..traces.len()).filter(|index| traces[*index].is_some());
    let typical = drawn.min_by(|a, b| distance(a).total_cmp(&distance(b)));
    if let Some(trace) = typical.and_then(|index| traces[index].take()) {
        report.draw(&id, "trace", trace);
    }
}

/// Frames that the machine and full queues have dropped so far: backlog, queues, and the receiver's socket.
fn drops(bed: &Bed) -> Result<[u64; 3], Error> {
    let mut drops = [0; 3];
    for host in bed.lab().hosts() {
        for link in host.links()? {
            let count = link.count()?;
            drops[0] += count.port.backlog;
            drops[1] += count.port_queue_drops + count.nic_queue_drops;
        }
        drops[2] += parse_snmp(&host.proc_net("snmp")?, "Udp", "RcvbufErrors").unwrap_or(0);
    }
    Ok(drops)
}

/// What the machine lost itself between two looks, and the sender of a flow of datagrams.
fn machine_loss(before: [u64; 3], after: [u64; 3], flow: Option<Way<'_>>) -> MachineLoss {
    let [backlog_drops, queue_drops, receiver_drops] =
        std::array::from_fn(|i| after[i].saturating_sub(before[i]));
    let refused = flow.map_or(0, |way| way.count(|_| true).refused);
    let slipped_ms = flow.map_or(0.0, |way| ms(way.slipped()));
    MachineLoss { backlog_drops, queue_drops, receiver_drops, refused, slipped_ms }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
