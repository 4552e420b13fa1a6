//! Programs of others over each network, where they are installed: NetPIPE (`NPtcp`), the program of the papers, and sockperf,
//! the other one that ETHOM's authors measured latency with, whose messages are datagrams of UDP.

use super::testbed::Testbed;
use super::{Turn, latency};
use crate::experiments::prelude::*;
use linkbraid_lab::{Running, tool, wait_for};
use std::process::Stdio;

const LISTEN_LIMIT: Duration = Duration::from_secs(10);

/// Bytes of sockperf's messages: those that one frame takes, and more than that.
pub(super) const SOCKPERF_BYTES: [usize; 3] = [64, 1024, 8192];

/// What a program says of messages of a size: the bytes, and what it measured.
pub(in crate::experiments) type Said = (usize, Vec<(&'static str, &'static str, f64)>);

pub(super) struct Program {
    pub(super) word: &'static str,
    program: &'static str,
    quick: bool,
    /// Whether it listens on a port, and the words that make it do so: `ADDRESS` is the server's.
    listens: fn(Host<'_>) -> bool,
    server: &'static str,
    /// The words of a client, with `BYTES`, `FILE` and `LARGEST` (the most bytes in a message) too, and the sizes that it is run with.
    client: &'static str,
    sizes: &'static [usize],
    /// Whether it writes to `FILE` itself; otherwise what it says goes there.
    writes: bool,
    limit: Duration,
    parse: fn(&str, usize) -> Vec<Said>,
}

pub(super) const PROGRAMS: [Program; 2] = [
    // Sizes are powers of two and half as much more, as they are without a perturbation; twenty messages a try, of which
    // the best of seven counts.
    Program {
        word: "netpipe",
        program: "NPtcp",
        quick: true,
        listens: |host| host.listens(5002),
        server: "-p 0 -u LARGEST -n 20",
        client: "-h ADDRESS -p 0 -u LARGEST -n 20 -o FILE",
        sizes: &[0],
        writes: true,
        limit: Duration::from_secs(200),
        parse: netpipe,
    },
    // A second is the least that it takes for a size.
    Program {
        word: "sockperf",
        program: "sockperf",
        quick: false,
        listens: |host| host.receives(5003),
        server: "server -i ADDRESS -p 5003",
        client: "ping-pong -i ADDRESS -p 5003 -m BYTES -t 1",
        sizes: &SOCKPERF_BYTES,
        writes: false,
        limit: Duration::from_secs(30),
        parse: |text, bytes| sockperf(text).map(|values| (bytes, values)).into_iter().collect(),
    },
];

pub(super) fn id(program: &str, subject: &str, bytes: usize) -> String {
    format!("{program}/{subject}/{bytes}")
}

impl Program {
    /// Whether it is there and there is time for it; if it is not there, that is said once.
    pub fn is_wanted(&self, run: &mut Run<'_>) -> bool {
        if run.settings.quick && !self.quick {
            return false;
        }
        let there = tool::require(&[self.program]);
        if let Err(error) = &there {
            run.skip_for(self.word, error);
        }
        there.is_ok()
    }
}

pub(super) fn measure(
    run: &mut Run<'_>,
    testbed: &Testbed,
    Turn { subject, turn, .. }: Turn<'_>,
    program: &Program,
) -> Result<(), Error> {
    let Program { word, program, listens, server, client, sizes, writes, limit, parse, .. } = program;
    let (near, far) = (testbed.host(0)?, testbed.host(1)?);
    let file = testbed.bed.lab().folder().join(word);
    let largest = latency::sizes(run).iter().max().copied().unwrap_or_default();
    let cannot = |what, e: std::io::Error| {
        Error::new(file.display().to_string(), format!("cannot {what}"), e.to_string())
    };
    let command = |host: Host<'_>, words: &str, bytes: usize| {
        let words = words.replace("ADDRESS", &testbed.address(subject, 1));
        let words = words.replace("BYTES", &bytes.to_string()).replace("FILE", &file.to_string_lossy());
        let words = words.replace("LARGEST", &largest.to_string());
        let mut command = host.command(program);
        command.args(words.split(' ')).current_dir(testbed.bed.lab().folder());
        command
    };
    let _listening = Running::serve(command(far, server, 0), LISTEN_LIMIT, || listens(far))?;
    for bytes in *sizes {
        let made = std::fs::File::create(&file).map_err(|e| cannot("make the file", e))?;
        let mut measuring = command(near, client, *bytes);
        measuring.stdin(Stdio::null()).stderr(Stdio::null());
        measuring.stdout(if *writes { Stdio::null() } else { made.into() });
        let mut running = Running::start(measuring)?;
        let typed = running.words().to_owned();
        wait_for(*limit, &format!("'{typed}' to end"), || running.ended().ok_or("it still runs"))?;
        let text = std::fs::read_to_string(&file).map_err(|e| cannot("read what a program wrote", e))?;
        let said = parse(&text, *bytes);
        if said.is_empty() {
            return Err(Error::new(id(word, subject.word, *bytes), "not measured", "no figures in it"));
        }
        for (bytes, values) in said {
            let id = id(word, subject.word, bytes);
            run.report.note(&id, &typed, turn, &values);
            run.report.note_bytes(&id, bytes);
        }
        run.check()?;
    }
    Ok(())
}

/// Bytes, half a round trip and Mbit/s of each line `BYTES MBPS SECONDS`.
pub(in crate::experiments) fn netpipe(text: &str, _: usize) -> Vec<Said> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (bytes, mbit, seconds) = (words.next()?, words.next()?, words.next()?);
        let (mbit, half) = (mbit.parse().ok()?, seconds.parse::<f64>().ok()? * 1e6);
        Some((bytes.parse().ok()?, vec![("half_us", "us", half), ("mbit", "Mbit/s", mbit)]))
    };
    text.lines().filter_map(line).collect()
}

/// Half a round trip in microseconds, the median and the 99th percentile: `sockperf: ---> percentile 50.000 =    6.094`.
fn sockperf(text: &str) -> Option<Vec<(&'static str, &'static str, f64)>> {
    let at = |percentile: &str| {
        let values = text.lines().filter_map(|line| line.split_once("---> percentile "));
        let mut values = values.filter_map(|(_, value)| value.split_once('='));
        values.find(|(name, _)| name.trim() == percentile)?.1.trim().parse::<f64>().ok()
    };
    Some(vec![("half_us", "us", at("50.000")?), ("half_p99_us", "us", at("99.000")?)])
}

#[cfg(test)]
mod tests;
