//! One measurement of round trips, with or without traffic beside them.

use super::super::record::{MessageSettings, MessageTrace};
use super::super::{Load, ms, us};
use super::Scenario;
use crate::activity::Activity;
use crate::bed::Bed;
use crate::flow::{MessageFlow, Messages, Trip, Trips};
use crate::percentiles::Percentiles;
use crate::run::Run;
use crate::stats::shares;
use linkbraid_api::Error;
use linkbraid_lab::{Order, iperf};
use serde_json::{Value, json};
use std::time::Duration;

/// How long bulk traffic may be on its way up, beyond the seconds that are not measured, before round trips count.
const LEAD: Duration = Duration::from_millis(200);
/// How long before its end they no longer count: all that counts had traffic beside it.
const TAIL: Duration = Duration::from_millis(200);
/// Messages of a trace.
const TRACED: usize = 500;

/// What a measurement takes home.
pub struct Found {
    /// What was sent.
    pub settings: MessageSettings,
    /// Its figures.
    pub sample: Value,
    /// All round trips.
    pub percentiles: Percentiles,
    /// The first of them.
    pub trace: MessageTrace,
    /// The kind of queue that each NIC had.
    pub queue: &'static str,
}

/// Measures one scenario once: messages in the first lab, bulk traffic in the second, which may be the same.
pub fn take(
    run: &Run<'_>,
    beds: [&Bed; 2],
    load: Load,
    scenario: Scenario,
    messages: Messages,
) -> Result<Found, Error> {
    let [bed, _] = beds;
    let queue = order(bed, scenario.order)?;
    let messages = Messages { over: load.over, priority: scenario.priority, ..messages };
    let found = under_load(run, beds, load, scenario, messages);
    order(bed, Order::Fifo)?;
    found.map(|found| Found { queue, ..found })
}

/// Sets how all NICs of the lab's hosts order what waits.
fn order(bed: &Bed, order: Order) -> Result<&'static str, Error> {
    let mut kind = "";
    for host in bed.lab().hosts() {
        for link in host.links()? {
            kind = link.set_order(order)?;
        }
    }
    Ok(kind)
}

fn under_load(
    run: &Run<'_>,
    [bed, bulk_bed]: [&Bed; 2],
    load: Load,
    scenario: Scenario,
    messages: Messages,
) -> Result<Found, Error> {
    let (a, b) = (bed.host("a")?, bed.host("b")?);
    let flow = MessageFlow::start(a, b, messages)?;
    let bulk = match scenario.bulk_links {
        0 => None,
        links => Some(iperf::start(bulk_bed.host("a")?, bulk_bed.host("b")?, &load.bulk(run, links))?),
    };
    let run_for = run.settings;
    run.pause(Duration::from_secs(run_for.omit.into()) + LEAD)?;
    let look =
        || Ok::<_, Error>((flow.zero.elapsed(), Activity::now()?, a.nic_counts()?, bed.backlog_drops()?));
    let (from, clock, nics, drops) = look()?;
    run.pause(Duration::from_secs(run_for.seconds.into()).saturating_sub(LEAD + TAIL))?;
    let (to, clock_after, nics_after, drops_after) = look()?;
    let real_time = flow.real_time;
    let trips = flow.stop()?;
    let outcome = bulk.map(iperf::Iperf::finish).transpose()?;
    let bytes: Vec<u64> =
        nics.iter().zip(&nics_after).map(|(b, a)| a.tx_bytes.saturating_sub(b.tx_bytes)).collect();
    let (mut sample, percentiles) = figures(&trips, from, to)?;
    sample["bulk"] =
        outcome.map(|outcome| json!({ "mbit": outcome.mbit(), "command": outcome.command })).into();
    // Of what the sender's NICs sent meanwhile, in bytes.
    sample["tx_shares"] = shares(&bytes).into();
    sample["cpu_share"] = clock_after.since(&clock).share.into();
    sample["backlog_drops"] = drops_after.saturating_sub(drops).into();
    let (settings, trace) = (settings(&messages, real_time), trace(trips.between(from, to), from));
    Ok(Found { settings, sample, percentiles, trace, queue: "" })
}

/// For the report.
pub fn settings(messages: &Messages, real_time: bool) -> MessageSettings {
    MessageSettings {
        bytes: u32::try_from(messages.bytes).unwrap_or(u32::MAX),
        period_us: us(messages.period),
        priority: u32::try_from(messages.priority).unwrap_or(0),
        real_time,
    }
}

/// What the messages sent between two times come to: round trips from the call that sends a message until its answer is read.
fn figures(trips: &Trips, from: Duration, to: Duration) -> Result<(Value, Percentiles), Error> {
    let inside = trips.between(from, to);
    let all = Percentiles::of(inside.iter().filter_map(|trip| trip.took))?;
    let sent = inside.len() as u64;
    if all.count() == 0 {
        return Err(Error::new("messages", "cannot tell a round trip", format!("none of {sent} came back")));
    }
    let sample = json!({
        "sent": sent,
        "lost": sent - all.count(),
        // In the whole flow.
        "twice": trips.twice,
        "min_us": all.min_us(),
        "mean_us": all.mean_us(),
        "stddev_us": all.stddev_us(),
        "median_us": all.at_us(0.5),
        "p90_us": all.at_us(0.9),
        "p99_us": all.at_us(0.99),
        "p999_us": all.at_us(0.999),
        "max_us": all.max_us(),
        // That the sender was late, and did not make up for.
        "slipped_ms": ms(trips.slipped),
    });
    Ok((sample, all))
}

fn trace(trips: &[Trip], from: Duration) -> MessageTrace {
    let shown = &trips[..trips.len().min(TRACED)];
    MessageTrace {
        at_ms: shown.iter().map(|trip| ms(trip.sent.saturating_sub(from))).collect(),
        took_us: shown.iter().map(|trip| trip.took.map(us)).collect(),
    }
}
