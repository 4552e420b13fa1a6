//! sockperf over each network: the other program that ETHOM's authors measured latency with, where it is installed. Its
//! messages are datagrams of UDP.

use super::subject::Subject;
use super::testbed::Testbed;
use crate::experiments::note::{self, What};
use crate::run::Run;
use linkbraid_api::Error;
use linkbraid_lab::{Running, tool, wait_for};
use std::process::Stdio;
use std::time::Duration;

const PROGRAM: &str = "sockperf";
/// The port that it is told to listen on.
const PORT: u16 = 5003;
/// Bytes of its messages: those that one frame takes, and more than that.
pub(super) const BYTES: [usize; 3] = [64, 1024, 8192];
/// Seconds of a size, the fewest that it takes.
const SECONDS: &str = "1";
/// How long it may take to listen, and to run.
const LISTEN_LIMIT: Duration = Duration::from_secs(10);
const LIMIT: Duration = Duration::from_secs(30);

/// Its name in results.
pub(super) fn id(subject: &str, bytes: usize) -> String {
    format!("sockperf/{subject}/{bytes}")
}

/// Whether it is there and there is time for it; if it is not there, that is said once.
pub(super) fn is_wanted(run: &mut Run<'_>) -> bool {
    if run.settings.quick {
        return false;
    }
    let there = tool::require(&[PROGRAM]);
    if let Err(error) = &there {
        run.lacks("sockperf", error);
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
    let (address, port) = (testbed.address(subject, 1), PORT.to_string());
    let mut listening = server.command(PROGRAM);
    listening.args(["server", "-i", &address, "-p", &port]);
    listening.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let listening = Running::start(listening)?;
    wait_for(LISTEN_LIMIT, "sockperf to listen", || {
        if server.receives(PORT) { Ok(()) } else { Err("it does not yet") }
    })?;
    let output = testbed.bed.lab().folder().join(PROGRAM);
    for bytes in BYTES {
        let file = std::fs::File::create(&output)
            .map_err(|e| Error::new(output.display().to_string(), "cannot make the file", e.to_string()))?;
        let mut command = client.command(PROGRAM);
        command.args(["ping-pong", "-i", &address, "-p", &port, "-m", &bytes.to_string(), "-t", SECONDS]);
        command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
        let mut running = Running::start(command)?;
        let typed = running.words().to_owned();
        wait_for(LIMIT, &format!("'{typed}' to end"), || running.ended().ok_or("it still runs"))?;
        let text = std::fs::read_to_string(&output).map_err(|e| {
            Error::new(output.display().to_string(), "cannot read what sockperf wrote", e.to_string())
        })?;
        let id = id(subject.word, bytes);
        let (half, p99) =
            parse(&text).ok_or_else(|| Error::new(&id, "not measured", "no percentiles in it"))?;
        note::value(run, What { id: &id, metric: "half_us", unit: "us" }, &typed, turn, half);
        note::value(run, What { id: &id, metric: "half_p99_us", unit: "us" }, &typed, turn, p99);
        note::bytes(run, &id, bytes);
        run.check()?;
    }
    drop(listening);
    Ok(())
}

/// Half a round trip in microseconds, the median and the 99th percentile: `sockperf: ---> percentile 50.000 =    6.094`.
fn parse(text: &str) -> Option<(f64, f64)> {
    let at = |percentile: &str| {
        let values = text.lines().filter_map(|line| line.split_once("---> percentile "));
        let mut values = values.filter_map(|(_, value)| value.split_once('='));
        values.find(|(name, _)| name.trim() == percentile)?.1.trim().parse::<f64>().ok()
    };
    Some((at("50.000")?, at("99.000")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sockperf_writes_is_read() {
        let text = "sockperf: Summary: Latency is 6.233 usec\nsockperf: ---> percentile 99.990 =   23.785\n\
                    sockperf: ---> percentile 99.000 =    6.489\nsockperf: ---> percentile 50.000 =    6.094\n";
        assert_eq!(parse(text), Some((6.094, 6.489)));
        assert_eq!(parse("sockperf: No messages were received from the server.\n"), None);
    }
}
