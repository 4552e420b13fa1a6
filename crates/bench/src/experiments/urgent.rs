//! Messages that cannot wait: their round trip beside bulk traffic, and while one of their links is cut.

mod cuts;
pub(super) mod figure;
mod scenario;
mod stages;

use crate::bed::Class;
use crate::experiments::prelude::*;
use crate::flow::{BYTES_MAX, BYTES_MIN, Messages, Over};
use crate::run::{cpu_limited, number};
use linkbraid_lab::Options;
use std::ops::RangeInclusive;

/// The rate of each link, Mbit/s, unless the environment says otherwise. At 100 the bulk traffic of two links keeps two cores so busy that an idle link in
/// another lab is as slow as the second channel (`busy`): what would be measured is the processor.
const RATE: u32 = 20;
/// Links of each host: two for bulk traffic beside the one that messages get. The CPU of a small machine carries as much
/// several times, so that the links are what is measured.
const LINKS: usize = 3;
/// How much faster switch ports are than NICs, in percent, unless the environment says otherwise. The bulk traffic keeps each NIC busy, so at the same rate a port
/// never gets rid of what waits in it: some 10 KB after one pause of the machine, and 5 ms more for every message until the
/// end, whatever its priority. So it is gone within 0.1 s.
const PORT_MARGIN: u32 = 5;
/// What `SO_PRIORITY` says of messages that cannot wait, as in the papers.
const PRIORITY: i32 = 6;
/// Payload bytes of a message, and microseconds from one to the next.
const BYTES: u64 = 64;
const PERIOD_US: u64 = 1000;
/// Other sizes, in bytes, and periods, in microseconds.
const BYTES_ENV: &str = "LINKBRAID_BENCH_MESSAGE_BYTES";
const PERIOD_ENV: &str = "LINKBRAID_BENCH_MESSAGE_US";
/// Other rates of links, in Mbit/s, and other ports.
const RATE_ENV: &str = "LINKBRAID_BENCH_MESSAGE_MBIT";
const PORT_MARGIN_ENV: &str = "LINKBRAID_BENCH_MESSAGE_PORTS";
const RATES: RangeInclusive<u64> = 1..=1000;
const PORT_MARGINS: RangeInclusive<u64> = 0..=100;
/// Shorter and the sender has no time to listen; longer and a run has too few of them.
const PERIODS_US: RangeInclusive<u64> = 100..=100_000;

/// The last link for messages alone.
const DEDICATED: Class = Class { name: "urgent", members: &["eth2"], rule: "priority=6", policy: "spread" };
/// A priority that queues treat like none (`TC_PRIO_INTERACTIVE_BULK`), and a class without links for it.
const MARKED: i32 = 4;
const SHARED: Class = Class { name: "urgent", members: &[], rule: "priority=4", policy: "spread" };
/// The last two for messages alone, and both for each of them.
const MIRRORED: Class =
    Class { name: "urgent", members: &["eth1", "eth2"], rule: "priority=6", policy: "mirror" };

/// The links of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Links {
    /// Their rate.
    mbit: u32,
    /// How much faster switch ports are, in percent.
    port_margin: u32,
}

impl Links {
    /// Two hosts with so many each.
    fn topology(self, number: usize) -> Topology {
        let options = Options { port_margin_percent: self.port_margin, ..Options::default() };
        Topology::symmetric(2, number, Some(self.mbit)).with(options)
    }
}

/// What messages travel over, and the bulk traffic beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    word: &'static str,
    over: Over,
    /// Flows of the bulk traffic. One of TCP keeps little more than a millisecond of its rate in the queues of NICs ("TCP small
    /// queues", `tcp_small_queue_check` of net/ipv4/tcp_output.c, Linux 3.6 and later), which the paper's kernel did not have.
    flows: u32,
}

const LOADS: [Load; 3] = [
    Load { word: "tcp", over: Over::Tcp, flows: 1 },
    Load { word: "tcp-4", over: Over::Tcp, flows: 4 },
    Load { word: "udp", over: Over::Udp, flows: 1 },
];

impl Load {
    /// Traffic that fills so many links.
    fn bulk(self, run: &Run<'_>, links: Links, number: usize) -> Traffic {
        match self.over {
            Over::Tcp => run.tcp(Cc::Cubic).flows(self.flows),
            Over::Udp => run.udp(links.mbit * u32::try_from(number).unwrap_or(u32::MAX)),
        }
    }
}

/// Those of a run: a quick one that is not asked for others has datagrams alone, whose messages wait longest.
fn loads(run: &Run<'_>) -> &'static [Load] {
    if run.settings.quick && run.only.is_empty() { &LOADS[2..] } else { &LOADS }
}

/// Those beside which links are cut.
fn cut_loads(run: &Run<'_>) -> impl Iterator<Item = Load> {
    loads(run).iter().copied().filter(|load| load.flows == 1)
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let (links, messages) = settings()?;
    run.plan(loads(run).len() * (scenario::SCENARIOS.len() + 1) + cut_loads(run).count() * cuts::rounds(run));
    scenario::run(run, links, messages)?;
    cuts::run(run, links, messages)?;
    judge(run);
    Ok(())
}

/// A lab whose bonds have a class. One that can't be made is a failure of its cases, not of the experiment.
fn classed(run: &mut Run<'_>, links: Links, name: &str, class: Class) -> Result<Option<Bed>, Error> {
    let bed = run.classed(name, links.topology(LINKS), class);
    run.noted(name, bed)
}

/// What is sent, unless the environment says otherwise.
fn settings() -> Result<(Links, Messages), Error> {
    let mbit = number(RATE_ENV, RATE.into(), RATES)? as u32;
    let port_margin = number(PORT_MARGIN_ENV, PORT_MARGIN.into(), PORT_MARGINS)? as u32;
    let bytes = number(BYTES_ENV, BYTES, BYTES_MIN as u64..=BYTES_MAX as u64)? as usize;
    let period = number(PERIOD_ENV, PERIOD_US, PERIODS_US)?;
    let period = Duration::from_micros(period);
    let messages = Messages { over: Over::Udp, bytes, period, priority: PRIORITY };
    Ok((Links { mbit, port_margin }, messages))
}

/// What messages shall get: of the same link idle.
const MEDIAN: f64 = 1.2;
const P99: f64 = 2.0;
/// One channel over two.
const BETTER: f64 = 20.0;
/// Bulk traffic, of the links that are left to it.
const BULK: f64 = 0.97;

/// A mean difference within so many of its standard errors is chance.
const CHANCE: f64 = 3.0;

fn judge(run: &mut Run<'_>) {
    let all = loads(run);
    let mut goals: Vec<Goal> = all.iter().flat_map(|load| of_load(&run.report, load.word)).collect();
    goals.extend(cut_loads(run).flat_map(|load| of_cuts(&run.report, &format!("mirror/{}", load.word))));
    run.goals(goals);
}

fn of_load(report: &Report, load: &str) -> Vec<Goal> {
    let [idle, two, one, shared, bulk] =
        ["idle", "two", "one-0", "one-class", scenario::BULK].map(|word| scenario::id(load, word));
    let ratio = |id: &str, metric: &str, base: &str| report.times(id, metric, base);
    let links = (LINKS - 1) as f64;
    let lost = report.spread(&two, "lost").map(|lost| lost.max);
    let busy = cpu_limited(report, &two);
    let (most, least) = (Bound::AtMost, Bound::AtLeast);
    let of_links = format!("of {links} bare links' goodput for bulk traffic");
    let bulk = ratio(&two, "bulk.mbit", &bulk).map(|ratio| ratio / links);
    let [better, ahead] = [&two, &shared].map(|base| ratio(&one, "median_us", base));
    [
        Goal::new(
            &two,
            "of the idle link's median round trip",
            most,
            MEDIAN,
            ratio(&two, "median_us", &idle),
        ),
        Goal::new(&two, "of the idle link's 99th percentile", most, P99, ratio(&two, "p99_us", &idle)),
        Goal::new(&two, "messages lost", most, 0.0, lost),
        Goal::new(&two, of_links, least, BULK, bulk),
        Goal::new(&one, "times the median round trip of two channels", least, BETTER, better),
        Goal::new(&one, "times that of a class with precedence on the same links", least, BETTER, ahead),
    ]
    .map(|goal| goal.unless(busy.clone()))
    .into()
}

fn of_cuts(report: &Report, id: &str) -> Vec<Goal> {
    let sum = |metric: &str| report.sum(id, metric);
    let dropped = sum("backlog_drops").filter(|frames| *frames > 0.0);
    let dropped = dropped.map(|frames| format!("the machine itself dropped {frames} frames"));
    let none = |what: &str, metric: &str| Goal::new(id, what, Bound::AtMost, 0.0, sum(metric));
    vec![
        none("messages lost while a link was cut", "during.lost").unless(dropped.clone()),
        none("messages lost as it came back", "after.lost").unless(dropped),
        none("messages late while a link was cut", "during.late").unless(late_anyway(report, id)),
        none("messages twice", "twice"),
    ]
}

/// Why late messages mean nothing: without a cut messages were late as well, for the machine had no time for them, and
/// from one cut to the next the difference varies more than it is. Late messages come in bursts, so they are compared
/// cut by cut and not as counts of independent things.
fn late_anyway(report: &Report, id: &str) -> Option<String> {
    let [during, late] = ["during.late", "before.late"].map(|metric| report.measure(id, metric));
    let more: Vec<f64> =
        during?.values.iter().zip(&late?.values).map(|(during, before)| during - before).collect();
    let count = more.len() as f64;
    let mean = more.iter().sum::<f64>() / count;
    let variance = more.iter().map(|more| (more - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let (before, of) = (report.sum(id, "before.late")?, report.sum(id, "before.sent")?);
    let chance = CHANCE * (variance / count).sqrt();
    (before > 0.0 && mean <= chance)
        .then(|| format!("with no link cut {before} of {of} messages were late as well"))
}

#[cfg(test)]
mod tests;
