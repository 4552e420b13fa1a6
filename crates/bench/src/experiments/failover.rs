//! A link fails, silently or not, and comes back; members come and go; the daemon dies: what the traffic sees of it.

mod changes;
mod failures;
mod figure;
mod goals;

use super::Experiment;
use crate::bed::Bed;
use crate::report::{Failover, FailoverMedians, Incident, MachineLoss, Trace};
use crate::run::Run;
use crate::stats::Spread;
use linkbraid_api::Error;
use linkbraid_lab::Topology;
use linkbraid_lab::counters::parse_snmp;
use std::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "failover",
    about: "links that fail, silently or not, and come back; members and daemons that go, under TCP and 50,000 datagrams a second",
    paper: "ELT, Link Inspector and NIC Scheduler",
    run,
    figure: figure::draw,
};

/// The rate of each link, Mbit/s. 50,000 small datagrams a second take 42 of them.
const RATE: u32 = 100;
/// Links of each host: the usual case, and the one with more of them left.
const LINKS: [usize; 2] = [2, 4];
/// Datagrams a second.
const DATAGRAMS: u32 = 50_000;
/// Each repeat makes every host's bond anew this often, and each bond sees every kind of incident twice: 12 in a
/// whole run, 2 in a quick one.
const ROUNDS: u32 = 2;
const QUICK_ROUNDS: u32 = 1;

/// A sender that was late for longer in all is worth a word.
const SLIPPED_MS: f64 = 100.0;

/// What one round of one case came to.
struct Part {
    id: String,
    kind: &'static str,
    load: String,
    links: usize,
    /// Each with the goodput around it, where there is a curve to draw.
    incidents: Vec<(Incident, Option<Trace>)>,
    /// Why the TCP connection ended before it was to.
    connection_lost: Option<String>,
    /// Datagrams a second.
    per_second: Option<f64>,
    machine: MachineLoss,
}

fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let mut parts: Vec<Part> = Vec::new();
    let rounds = if run.settings.quick { QUICK_ROUNDS } else { ROUNDS };
    // Changes are a step of each round, too.
    let cases = failures::CASES.iter().filter(|case| case.is_in(run)).count();
    run.plan((cases + 1) * rounds as usize);
    for links in LINKS {
        if !wanted(run, links) {
            continue;
        }
        let name = format!("n{links}");
        let mut bed = run.bonded(&name, Topology::symmetric(2, links, Some(RATE)))?;
        // In turns, so that whatever else the machine does meets all kinds alike.
        for round in 1..=run.settings.repeat * rounds {
            for case in failures::CASES.iter().filter(|case| case.links == links) {
                if case.is_in(run) {
                    run.step(&case.id());
                    match failures::round(run, &bed, case) {
                        Ok(part) => take_in(run, &mut parts, round, part)?,
                        Err(error) => run.fail(format!("{} #{round}", case.id()), error)?,
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
    let mut ids: Vec<&str> = Vec::new();
    for part in &parts {
        if !ids.contains(&part.id.as_str()) {
            ids.push(&part.id);
        }
    }
    let whole = |id: &&str| join(parts.iter().filter(|part| part.id == *id));
    let found: Vec<Failover> = ids.iter().filter_map(whole).collect();
    for goal in found.iter().flat_map(goals::of) {
        run.goal(goal);
    }
    run.report.failovers = found;
    Ok(())
}

fn wanted(run: &Run<'_>, links: usize) -> bool {
    let failures = failures::CASES.iter().any(|case| case.links == links && case.is_in(run));
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

/// All rounds of one case.
fn join<'a>(parts: impl Iterator<Item = &'a Part>) -> Option<Failover> {
    let parts: Vec<&Part> = parts.collect();
    let first = parts.first()?;
    let (incidents, traces): (Vec<Incident>, Vec<Option<Trace>>) =
        parts.iter().flat_map(|part| part.incidents.iter().cloned()).unzip();
    let medians = FailoverMedians::of(&incidents);
    let middle = medians.gap_ms?.median;
    let distance = |trace: &Trace| (incidents[trace.incident as usize].gap_ms - middle).abs();
    let numbered = (0..).zip(traces).filter_map(|(incident, trace)| Some(Trace { incident, ..trace? }));
    let trace = numbered.min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let mut machine = MachineLoss::default();
    for part in &parts {
        machine.backlog_drops += part.machine.backlog_drops;
        machine.queue_drops += part.machine.queue_drops;
        machine.receiver_drops += part.machine.receiver_drops;
        machine.refused += part.machine.refused;
        machine.slipped_ms += part.machine.slipped_ms;
    }
    Some(Failover {
        id: first.id.clone(),
        lab: format!("n{}", first.links),
        kind: first.kind.into(),
        load: first.load.clone(),
        links: u32::try_from(first.links).unwrap_or(0),
        rate_mbit: RATE,
        medians,
        incidents,
        connections_lost: parts.iter().filter_map(|part| part.connection_lost.clone()).collect(),
        datagrams_per_s: Spread::of(parts.iter().filter_map(|part| part.per_second)),
        machine,
        trace,
    })
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

fn machine_loss(before: [u64; 3], after: [u64; 3], refused: u64, slipped: Duration) -> MachineLoss {
    let [backlog_drops, queue_drops, receiver_drops] =
        std::array::from_fn(|i| after[i].saturating_sub(before[i]));
    MachineLoss { backlog_drops, queue_drops, receiver_drops, refused, slipped_ms: ms(slipped) }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
