//! NetPIPE (`NPtcp`) over each network: the program of the papers, where it is installed. What it tells of a size is the best
//! of seven tries.

use super::subject::Subject;
use super::testbed::Testbed;
use crate::experiments::note::{self, What};
use crate::run::Run;
use linkbraid_api::Error;
use linkbraid_lab::{Running, tool, wait_for};
use std::process::Stdio;
use std::time::Duration;

const PROGRAM: &str = "NPtcp";
/// The port that it listens on.
const PORT: u16 = 5002;
/// Messages of a try, and the largest.
const MESSAGES: u32 = 100;
const BYTES_MAX: usize = 65_536;
/// Sizes are powers of two and half as much more, as they are without a perturbation.
const OPTIONS: [&str; 2] = ["-p", "0"];
/// How long it may take to listen, and to run.
const LISTEN_LIMIT: Duration = Duration::from_secs(10);
const LIMIT: Duration = Duration::from_secs(60);

/// Its name in results.
pub(super) fn id(subject: &str, bytes: usize) -> String {
    format!("netpipe/{subject}/{bytes}")
}

/// Whether it is there; if not, that is said once.
pub(super) fn is_there(run: &mut Run<'_>) -> bool {
    let there = tool::require(&[PROGRAM]);
    if let Err(error) = &there {
        run.lacks("netpipe", error);
    }
    there.is_ok()
}

/// Runs it over a subject that is up.
pub(super) fn measure(
    run: &mut Run<'_>,
    testbed: &Testbed,
    subject: Subject,
    turn: u32,
) -> Result<(), Error> {
    let (client, server) = (testbed.host(0)?, testbed.host(1)?);
    let output = testbed.bed.lab().folder().join("netpipe");
    let words = [OPTIONS[0], OPTIONS[1], "-u", &BYTES_MAX.to_string(), "-n", &MESSAGES.to_string()]
        .map(ToOwned::to_owned);
    let mut listening = server.command(PROGRAM);
    listening.args(&words).current_dir(testbed.bed.lab().folder());
    listening.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let listening = Running::start(listening)?;
    wait_for(LISTEN_LIMIT, "NPtcp to listen", || {
        if server.listens(PORT) { Ok(()) } else { Err("it does not yet") }
    })?;
    let mut command = client.command(PROGRAM);
    command.args(["-h", &testbed.address(subject, 1)]).args(&words).arg("-o").arg(&output);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running::start(command)?;
    let typed = running.words().to_owned();
    wait_for(LIMIT, &format!("'{typed}' to end"), || running.ended().ok_or("it still runs"))?;
    drop(listening);
    let text = std::fs::read_to_string(&output).map_err(|e| {
        Error::new(output.display().to_string(), "cannot read what NPtcp wrote", e.to_string())
    })?;
    for (bytes, mbit, half_us) in parse(&text) {
        let id = id(subject.word, bytes);
        note::value(run, What { id: &id, metric: "half_us", unit: "us" }, &typed, turn, half_us);
        note::value(run, What { id: &id, metric: "mbit", unit: "Mbit/s" }, &typed, turn, mbit);
        note::bytes(run, &id, bytes);
    }
    Ok(())
}

/// Bytes, Mbit/s and half a round trip in microseconds of each line `BYTES MBPS SECONDS`.
fn parse(text: &str) -> Vec<(usize, f64, f64)> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (bytes, mbit, seconds) = (words.next()?, words.next()?, words.next()?);
        Some((bytes.parse().ok()?, mbit.parse().ok()?, seconds.parse::<f64>().ok()? * 1e6))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nptcp_writes_is_read() {
        let found = parse("       1 0.631070   0.00001209\n   65536 36402.568998   0.00001374\n\n");
        assert_eq!(found.len(), 2);
        assert_eq!((found[1].0, found[1].1), (65_536, 36_402.568_998));
        assert!((found[1].2 - 13.74).abs() < 1e-9, "{found:?}");
    }
}
