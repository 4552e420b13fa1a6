//! Round trips beside bulk traffic: on an idle link, in one channel with it, and in a channel of their own.

use super::{DEDICATED, LINKS, Links, Load, MARKED, PRIORITY, SHARED, classed, loads, stages};
use crate::activity::Activity;
use crate::experiments::prelude::*;
use crate::flow::{MessageFlow, Messages, Trip, Trips, ms, us};
use crate::percentiles::{self, Percentiles};
use crate::planned::Planned;
use crate::report::{MESSAGES, Points, Record, both};
use crate::sample::Sample;
use crate::stats::shares;
use linkbraid_api::REST;
use linkbraid_lab::{Order, iperf};
use serde_json::{Value, json};

/// How long bulk traffic may be on its way up, beyond the seconds that are not measured, before round trips count.
pub(super) const LEAD: Duration = Duration::from_millis(200);
/// How long before its end they no longer count: all that counts had traffic beside it.
pub(super) const TAIL: Duration = Duration::from_millis(200);
const TRACED: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// One link without linkbraid.
    Bare,
    /// A bond without classes.
    One,
    /// A bond with a class for messages that has a link.
    Two,
    /// A bond with a class for messages that has none of its own.
    Shared,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scenario {
    pub word: &'static str,
    pub title: &'static str,
    place: Place,
    priority: i32,
    order: Order,
    /// Links that the bulk traffic beside it may use.
    bulk_links: usize,
    /// Where that traffic is.
    bulk: Place,
}

impl Scenario {
    /// The class whose way out is measured: with bulk traffic, and where messages do not share the default class with traffic
    /// that a queue treats otherwise.
    fn class(&self) -> Option<&'static str> {
        match self.place {
            Place::Two | Place::Shared if self.bulk_links > 0 => Some(SHARED.name),
            Place::One if self.order == Order::Fifo => Some(REST),
            _ => None,
        }
    }
}

const fn scenario(word: &'static str, title: &'static str, place: Place, bulk_links: usize) -> Scenario {
    Scenario { word, title, place, priority: PRIORITY, order: Order::Fifo, bulk_links, bulk: place }
}

/// The bare link for reference, also while another lab has the bulk traffic of `two`, which takes CPU time and nothing of
/// the link; the same link idle; the papers' three, the second one also with a class whose messages have a priority that queues
/// treat like none.
pub(super) const SCENARIOS: [Scenario; 7] = [
    scenario("bare", "bare link, idle", Place::Bare, 0),
    Scenario { bulk: Place::Two, ..scenario("busy", "bare link, bulk elsewhere", Place::Bare, LINKS - 1) },
    scenario("idle", "two channels, idle", Place::Two, 0),
    Scenario { priority: 0, ..scenario("one-0", "one channel, priority 0", Place::One, LINKS) },
    Scenario { order: Order::Priority, ..scenario("one-6", "one channel, priority 6", Place::One, LINKS) },
    Scenario {
        priority: MARKED,
        order: Order::Priority,
        ..scenario("one-class", "one channel, a class with precedence", Place::Shared, LINKS)
    },
    scenario("two", "two channels", Place::Two, LINKS - 1),
];

/// The bulk traffic alone on one bare link.
pub(super) const BULK: &str = "bulk";

pub(super) fn id(load: &str, word: &str) -> String {
    format!("{load}/{word}")
}

/// The labs by their place; one that could not be made is none.
type Beds = [Option<Bed>; 4];

pub(super) fn run(run: &mut Run<'_>, links: Links, messages: Messages) -> Result<(), Error> {
    if !loads(run).iter().any(|load| wanted(run, *load)) {
        return Ok(());
    }
    let bare = run.bare("bare", links.topology(1))?;
    let one = run.bonded("one", links.topology(LINKS))?;
    let beds = [
        Some(bare),
        Some(one),
        classed(run, links, "two", DEDICATED)?,
        classed(run, links, "shared", SHARED)?,
    ];
    for load in loads(run).iter().copied().filter(|load| wanted(run, *load)).collect::<Vec<_>>() {
        one_load(run, &beds, links, load, messages)?;
    }
    Ok(())
}

fn wanted(run: &Run<'_>, load: Load) -> bool {
    SCENARIOS.iter().map(|scenario| scenario.word).chain([BULK]).any(|word| run.wants(&id(load.word, word)))
}

/// All scenarios in turns, so that whatever else the machine does meets them alike.
fn one_load(
    run: &mut Run<'_>,
    beds: &Beds,
    links: Links,
    load: Load,
    messages: Messages,
) -> Result<(), Error> {
    let [Some(bare), ..] = beds else { return Ok(()) };
    let mut found: [Vec<Found>; SCENARIOS.len()] = Default::default();
    let mut bulk: Vec<Sample> = Vec::new();
    for repeat in 0..run.settings.repeat {
        run.step(&id(load.word, BULK));
        let sample = run.sample(bare, &load.bulk(run, links, 1));
        let sample = run.noted(format!("{} #{}", id(load.word, BULK), repeat + 1), sample)?;
        bulk.extend(sample.map(|sample| Sample { repeat, ..sample }));
        for (scenario, found) in SCENARIOS.into_iter().zip(&mut found) {
            let [Some(bed), Some(bulk_bed)] =
                [scenario.place, scenario.bulk].map(|place| beds[place as usize].as_ref())
            else {
                continue;
            };
            let id = id(load.word, scenario.word);
            run.step(&id);
            let one = measure(run, [bed, bulk_bed], (links, load), scenario, messages);
            if let Some(mut one) = run.noted(format!("{id} #{}", repeat + 1), one)? {
                one.sample["repeat"] = repeat.into();
                run.say(&line(&id, repeat, &one.sample))?;
                found.push(one);
            }
        }
    }
    if !bulk.is_empty() {
        let parameters = Planned::new("", bare, load.bulk(run, links, 1)).parameters();
        run.samples(&id(load.word, BULK), bare, &parameters, &bulk);
    }
    for (scenario, found) in SCENARIOS.into_iter().zip(found) {
        take(&mut run.report, (links, load), scenario, found)?;
    }
    compare(&mut run.report, load.word);
    Ok(())
}

/// Takes what was measured of one case into the report, with the trace of the typical sample.
fn take(
    report: &mut Report,
    (links, load): (Links, Load),
    scenario: Scenario,
    found: Vec<Found>,
) -> Result<(), Error> {
    let Some(first) = found.first() else { return Ok(()) };
    let id = id(load.word, scenario.word);
    let parameters = json!({
        "lab": first.lab,
        "scenario": scenario.word,
        "load": load.word,
        "members": if scenario.place == Place::Bare { 0 } else { LINKS },
        "bulk_links": scenario.bulk_links,
        "rate_mbit": links.mbit,
        "port_margin_percent": links.port_margin,
        "queue": format!("tbf, {}", first.queue),
    });
    let parameters = both(parameters, first.settings.clone());
    let turns = found.iter().map(|one| one.sample.clone()).collect();
    report.record(MESSAGES, &id, Record { turns, parameters, ..Record::default() });
    let mut all = Percentiles::new()?;
    found.iter().try_for_each(|one| all.join(&one.percentiles))?;
    let middle = report.median(&id, "median_us").unwrap_or(0.0);
    let distance = |one: &Found| (one.percentiles.at_us(0.5) - middle).abs();
    let typical = found.into_iter().min_by(|x, y| distance(x).total_cmp(&distance(y)));
    typical.into_iter().for_each(|one| report.draw(&id, "trace", one.trace));
    report.draw(&id, "histogram", all.bins().into_iter().map(|(up_to, count)| (up_to, Some(count))).unzip());
    Ok(())
}

/// Puts each scenario beside those of the same run that it is compared with.
pub(super) fn compare(report: &mut Report, load: &str) {
    for scenario in SCENARIOS {
        let own = id(load, scenario.word);
        let bases = [
            (scenario.word != "idle", "idle"),
            (scenario.word.starts_with("one"), "two"),
            (scenario.word == "two", "busy"),
            (scenario.word == "one-0", "one-class"),
        ];
        for base in bases.into_iter().filter(|(is, _)| *is).map(|(_, word)| id(load, word)) {
            for metric in ["median_us", "p99_us"] {
                report.compare((&own, metric), &base, &[(&base, metric)]);
            }
        }
        let base = id(load, BULK);
        report.compare((&own, "bulk.mbit"), &base, &[(&base, "mbit")]);
    }
}

/// One measurement, for whoever watches.
fn line(id: &str, repeat: u32, sample: &Value) -> String {
    let of = |key: &str| sample[key].as_f64().unwrap_or(0.0);
    let bulk = sample["bulk"]["mbit"].as_f64();
    let bulk = bulk.map_or_else(String::new, |mbit| format!("  bulk {mbit:.1} Mbit/s"));
    let lost = if of("lost") > 0.0 { format!("  {} lost", of("lost")) } else { String::new() };
    format!(
        "  #{} {id:<13} {:>9.0} us, 99 % {:>9.0} us, max {:>9.0} us of {}{lost}{bulk}  CPU {:.0} %",
        repeat + 1,
        of("median_us"),
        of("p99_us"),
        of("max_us"),
        of("sent"),
        of("cpu_share") * 100.0,
    )
}

struct Found {
    lab: String,
    /// What was sent.
    settings: Value,
    sample: Value,
    percentiles: Percentiles,
    /// The first of them.
    trace: Points,
    /// The kind of queue that each NIC had.
    queue: &'static str,
}

/// Measures one scenario once: messages in the first lab, bulk traffic in the second, which may be the same.
fn measure(
    run: &Run<'_>,
    beds: [&Bed; 2],
    (links, load): (Links, Load),
    scenario: Scenario,
    messages: Messages,
) -> Result<Found, Error> {
    let [bed, _] = beds;
    let queue = order(bed, scenario.order)?;
    let messages = Messages { over: load.over, priority: scenario.priority, ..messages };
    let found = under_load(run, beds, (links, load), scenario, messages).and_then(|mut found| {
        if let Some(class) = scenario.class() {
            let bulk = load.bulk(run, links, scenario.bulk_links);
            found.sample["stages"] = stages::measure(run, beds, bulk, messages, class)?;
        }
        Ok(found)
    });
    order(bed, Order::Fifo)?;
    found.map(|found| Found { queue, ..found })
}

/// Sets how all NICs of the lab's hosts order what waits.
fn order(bed: &Bed, order: Order) -> Result<&'static str, Error> {
    let mut kind = "";
    for link in bed.links()? {
        kind = link.set_order(order)?;
    }
    Ok(kind)
}

fn under_load(
    run: &Run<'_>,
    [bed, bulk_bed]: [&Bed; 2],
    (links, load): (Links, Load),
    scenario: Scenario,
    messages: Messages,
) -> Result<Found, Error> {
    let (a, b) = (bed.host("a")?, bed.host("b")?);
    let flow = MessageFlow::start(a, b, messages)?;
    let bulk = match scenario.bulk_links {
        0 => None,
        number => {
            let traffic = load.bulk(run, links, number);
            Some(iperf::start(bulk_bed.host("a")?, bulk_bed.host("b")?, &traffic)?)
        }
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
    let inside = trips.between(from, to);
    let trace = points(&inside[..inside.len().min(TRACED)], |sent| ms(sent.saturating_sub(from)));
    let (lab, settings) = (bed.name().to_owned(), settings(&messages, real_time));
    Ok(Found { lab, settings, sample, percentiles, trace, queue: "" })
}

/// What messages are, for the report; `real_time` is whether both ends ran as real-time threads (`SCHED_FIFO`).
pub(super) fn settings(messages: &Messages, real_time: bool) -> Value {
    let Messages { bytes, period, priority, .. } = messages;
    json!({ "bytes": bytes, "period_us": us(*period), "priority": priority, "real_time": real_time })
}

/// Messages one after the other: when each was sent, and its round trip in microseconds; nothing if it was lost.
pub(super) fn points(trips: &[Trip], at: impl Fn(Duration) -> f64) -> Points {
    trips.iter().map(|trip| (at(trip.sent), trip.took.map(us))).unzip()
}

/// What the messages sent between two times come to: round trips from the call that sends a message until its answer is read.
fn figures(trips: &Trips, from: Duration, to: Duration) -> Result<(Value, Percentiles), Error> {
    let inside = trips.between(from, to);
    let all = Percentiles::of(inside.iter().filter_map(|trip| trip.took))?;
    let sent = inside.len() as u64;
    if all.is_empty() {
        return Err(Error::new("messages", "cannot tell a round trip", format!("none of {sent} came back")));
    }
    let sample = json!({
        "sent": sent,
        "lost": sent - all.len(),
        // In the whole flow.
        "twice": trips.twice,
        "min_us": percentiles::us(all.min()),
        "mean_us": all.mean() / 1e3,
        "stddev_us": all.stdev() / 1e3,
        "median_us": all.at_us(0.5),
        "p90_us": all.at_us(0.9),
        "p99_us": all.at_us(0.99),
        "p999_us": all.at_us(0.999),
        "max_us": percentiles::us(all.max()),
        // That the sender was late, and did not make up for.
        "slipped_ms": ms(trips.slipped),
    });
    Ok((sample, all))
}
