//! Messages that cannot wait: their round trip beside bulk traffic, and while one of their links is cut.

mod cuts;
mod figure;
mod goals;
mod record;
mod scenario;

use super::Experiment;
use crate::bed::{Bed, Class};
use crate::flow::{BYTES_MAX, BYTES_MIN, Messages, Over};
use crate::run::Run;
use linkbraid_api::Error;
use linkbraid_lab::iperf::{Cc, Traffic};
use linkbraid_lab::{Options, Topology};
use std::ops::RangeInclusive;
use std::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "urgent",
    about: "round trips of small messages beside traffic that fills every other link, and while one of their links is cut",
    paper: "BondingPlus, Figs. 6 to 9",
    run,
    figure: figure::draw,
};

/// The rate of each link, Mbit/s. At 100 the bulk traffic of two links keeps two cores so busy that an idle link in
/// another lab is as slow as the second channel (`busy`): what would be measured is the processor.
const RATE: u32 = 20;
/// Links of each host: two for bulk traffic beside the one that messages get. The CPU of a small machine carries as much
/// several times, so that the links are what is measured.
const LINKS: usize = 3;
/// How much faster switch ports are than NICs, in percent. The bulk traffic keeps each NIC busy, so at the same rate a port
/// never gets rid of what waits in it: some 10 KB after one pause of the machine, and 5 ms more for every message until the
/// end, whatever its priority. So it is gone within 0.1 s.
const PORT_MARGIN: u32 = 5;
/// What `SO_PRIORITY` says of messages that cannot wait, as in the papers.
const PRIORITY: i32 = 6;
/// Payload bytes of a message, and the time from one to the next.
const BYTES: usize = 64;
const PERIOD: Duration = Duration::from_millis(1);
/// Other sizes, in bytes, and periods, in microseconds.
const BYTES_ENV: &str = "LINKBRAID_BENCH_MESSAGE_BYTES";
const PERIOD_ENV: &str = "LINKBRAID_BENCH_MESSAGE_US";
/// Shorter and the sender has no time to listen; longer and a run has too few of them.
const PERIODS: RangeInclusive<Duration> = Duration::from_micros(100)..=Duration::from_millis(100);

/// The last link for messages alone.
const DEDICATED: Class = Class { name: "urgent", members: &["eth2"], rule: "priority=6", policy: "spread" };
/// The last two for messages alone, and both for each of them.
const MIRRORED: Class =
    Class { name: "urgent", members: &["eth1", "eth2"], rule: "priority=6", policy: "mirror" };

/// What messages travel over, and the bulk traffic beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    word: &'static str,
    over: Over,
}

const LOADS: [Load; 2] = [Load { word: "tcp", over: Over::Tcp }, Load { word: "udp", over: Over::Udp }];

impl Load {
    /// Traffic that fills so many links.
    fn bulk(self, run: &Run<'_>, links: usize) -> Traffic {
        match self.over {
            Over::Tcp => run.tcp(Cc::Cubic),
            Over::Udp => run.udp(RATE * u32::try_from(links).unwrap_or(u32::MAX)),
        }
    }
}

/// Those of a run: a quick one that is not asked for others has datagrams alone, whose messages wait longest.
fn loads(run: &Run<'_>) -> &'static [Load] {
    if run.settings.quick && run.only.is_empty() { &LOADS[1..] } else { &LOADS }
}

fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let messages = settings()?;
    run.plan(loads(run).len() * (scenario::SCENARIOS.len() + 1 + cuts::rounds(run)));
    scenario::run(run, messages)?;
    cuts::run(run, messages)?;
    goals::judge(run);
    Ok(())
}

/// Two hosts with so many links each.
fn topology(links: usize) -> Topology {
    let options = Options { port_margin_percent: PORT_MARGIN, ..Options::default() };
    Topology::symmetric(2, links, Some(RATE)).with(options)
}

/// A lab whose bonds have a class. One that can't be made is a failure of its cases, not of the experiment.
fn classed(run: &mut Run<'_>, name: &str, class: Class) -> Result<Option<Bed>, Error> {
    let bed = run.classed(name, topology(LINKS), class);
    run.noted(name, bed)
}

/// What is sent, unless the environment says otherwise.
fn settings() -> Result<Messages, Error> {
    let bytes = number(BYTES_ENV, BYTES, BYTES_MIN..=BYTES_MAX)?;
    let [least, most] = [PERIODS.start(), PERIODS.end()].map(|period| period.as_micros() as usize);
    let period = number(PERIOD_ENV, PERIOD.as_micros() as usize, least..=most)?;
    Ok(Messages { over: Over::Udp, bytes, period: Duration::from_micros(period as u64), priority: PRIORITY })
}

fn number(key: &str, usual: usize, allowed: RangeInclusive<usize>) -> Result<usize, Error> {
    let text = std::env::var_os(key);
    text.map_or(Ok(usual), |text| parse(key, &text.to_string_lossy(), usual, allowed))
}

fn parse(key: &str, text: &str, usual: usize, allowed: RangeInclusive<usize>) -> Result<usize, Error> {
    text.parse().ok().filter(|number| allowed.contains(number)).ok_or_else(|| {
        let range = format!("'{text}' is outside the allowed range {} to {}", allowed.start(), allowed.end());
        Error::new("bench", format!("cannot use {key}"), range).hint(format!("{key}={usual}"))
    })
}

/// Microseconds, in whole tenths: more digits are noise, and room in the file.
fn us(time: Duration) -> f64 {
    (time.as_nanos() as f64 / 100.0).round() / 10.0
}

/// Milliseconds, in whole thousandths.
fn ms(time: Duration) -> f64 {
    (time.as_nanos() as f64 / 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests;
