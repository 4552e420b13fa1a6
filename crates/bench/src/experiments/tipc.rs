//! TCP and TIPC between two kernels: over a cable, over a fabric on that cable, and over a fabric on nothing but memory that
//! both see as a PCI device. Between two namespaces of one kernel TIPC goes around the interface; so two guests are booted.

use super::fabric;
use super::guest::{self, CASE};
use crate::experiments::prelude::*;
use linkbraid_lab::daemon;
use std::process::Command;

const NAME: &str = "tipc";
/// What boots two stock kernels for it, in the source tree.
pub(super) const SCRIPT: &str = "tests/vm/fabric";
/// How long both guests may take, in real time.
const LIMIT: Duration = Duration::from_secs(5400);
const METHODS: [&str; 2] = ["tcp", "tipc"];
/// The ways between the guests: what the script calls them, and what they are called here. `busy`: the fabric's threads never sleep.
const WAYS: [(&str, &str); 7] = [
    ("eth0:1500", "cable"),
    ("fab0:1500", "udp"),
    ("fab0:1500:busy", "udp-busy"),
    ("fab1:1500", "shm"),
    ("fab1:1500:busy", "shm-busy"),
    ("fab1:65521", "shm-65521"),
    ("fab1:65521:busy", "shm-65521-busy"),
];
/// Bytes of the messages that the script sends.
const BYTES: [usize; 12] = [1, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_000];
/// What the script calls its figures, what they are called here, and their unit. Names of their own: an emulated processor's
/// figures are not to be mixed up with others.
const METRICS: [(&str, &str, &str); 2] = [("rtt/2", HALF, "us"), ("mbit", MBIT, "Mbit/s")];
const HALF: &str = "guest_half_us";
const MBIT: &str = "guest_mbit";

fn id(method: &str, way: &str, bytes: usize) -> String {
    format!("{method}/{way}/{bytes}")
}

#[derive(Debug, PartialEq)]
struct Said {
    id: String,
    bytes: usize,
    metric: &'static str,
    unit: &'static str,
    /// Nothing if it could not be measured.
    value: Option<f64>,
}

/// A line such as `  eth0:1500 tipc rtt/2-64 513.2`, or with `none` for the value.
fn figure_in(line: &str) -> Option<Said> {
    let mut words = line.split_whitespace();
    let (way, method, what, value) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (_, way) = WAYS.into_iter().find(|(name, _)| *name == way)?;
    let method = METHODS.into_iter().find(|name| *name == method)?;
    let (name, bytes) = what.rsplit_once('-')?;
    let (_, metric, unit) = METRICS.into_iter().find(|(said, _, _)| *said == name)?;
    let bytes = bytes.parse().ok()?;
    let value = match value {
        "none" => None,
        value => Some(value.parse::<f64>().ok().filter(|value| value.is_finite())?),
    };
    Some(Said { id: id(method, way, bytes), bytes, metric, unit, value })
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let rounds = run.settings.repeat;
    run.plan(METHODS.len() * WAYS.len() * BYTES.len() * METRICS.len());
    let measured = guest::script(SCRIPT, NAME).and_then(|script| {
        let mut command = Command::new(script);
        command.arg("--bench").arg(rounds.to_string()).env("LINKBRAID_BIN", daemon::binary()?);
        guest::follow(run, command, LIMIT, &mut |run, line| {
            let Some(said) = figure_in(line) else { return Ok(()) };
            run.step(&said.id);
            run.say(&format!("  {}", line.trim()))?;
            take(run, &said);
            Ok(())
        })
    });
    match measured {
        Ok(ended) => missing(run, rounds, &ended)?,
        Err(error) => run.fail(CASE, error)?,
    }
    beside_the_cable(run);
    Ok(())
}

fn take(run: &mut Run<'_>, said: &Said) {
    let Some(value) = said.value else { return };
    let turn = run.report.measure(&said.id, said.metric).map_or(0, |measure| measure.values.len());
    let command = "tests/vm/messages.c in both guests";
    let turn = u32::try_from(turn).unwrap_or(u32::MAX);
    run.report.note(&said.id, command, turn, &[(said.metric, said.unit, value)]);
    run.report.note_bytes(&said.id, said.bytes);
}

/// Names what the guests did not come to.
fn missing(run: &mut Run<'_>, rounds: u32, ended: &str) -> Result<(), Error> {
    let expected = METHODS.len() * WAYS.len() * BYTES.len() * METRICS.len() * rounds as usize;
    let taken: usize = run.report.measures.iter().map(|measure| measure.values.len()).sum();
    if taken < expected {
        let cause = format!("{} of {expected} figures are missing: {ended}", expected - taken);
        let hint = format!("{SCRIPT} --bench {rounds}");
        run.fail(CASE, Error::new(CASE, "not measured in full", cause).hint(hint))?;
    }
    Ok(())
}

fn beside_the_cable(run: &mut Run<'_>) {
    let [(_, cable), fabrics @ ..] = WAYS;
    for method in METHODS {
        for bytes in BYTES {
            for (_, way) in fabrics {
                let [own, base] = [way, cable].map(|way| id(method, way, bytes));
                run.report.put_beside(&own, &base, &[HALF, MBIT]);
            }
        }
    }
}

pub(super) fn figure(report: &Report) -> Figure {
    let ways = WAYS.map(|(_, way)| way);
    let of = |title: &str, method: &str, metric: &str| {
        let id = |way: &str, bytes: usize| id(method, way, bytes);
        fabric::sized(report, title, &ways, &BYTES, id, metric)
    };
    let panels = [
        of("RTT/2 by TIPC, emulated (Fig. 9)", "tipc", HALF),
        of("Throughput by TIPC, emulated (Fig. 10)", "tipc", MBIT),
        of("RTT/2 by TCP, emulated", "tcp", HALF),
        of("Throughput by TCP, emulated", "tcp", MBIT),
    ];
    Figure::of("tipc: between two kernels", panels)
}

#[cfg(test)]
mod tests;
