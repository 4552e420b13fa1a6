//! iperf3 between two hosts of a lab: one run, one server, and what both ends say.

use crate::child::Running;
use crate::host::Host;
use crate::{tool, wait};
use linkbraid_api::Error;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// The port of the first server; each run takes the next one.
const FIRST_PORT: u16 = 5201;
/// Makes the TCP sockets of a program MPTCP sockets.
const MPTCPIZE: &str = "mptcpize";
/// How long a server may take until it listens.
const SERVER_LIMIT: Duration = Duration::from_secs(10);
/// How long a run may take beyond its own time: to connect, and to hand over results.
const EXTRA: Duration = Duration::from_secs(30);

/// TCP's congestion control; always named, because systems differ in their default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cc {
    /// RFC 9438.
    Cubic,
    /// BBR, version 1 in the kernel.
    Bbr,
}

impl Cc {
    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// TCP as fast as it goes.
    Tcp(Cc),
    /// UDP at a fixed rate.
    Udp {
        /// Mbit/s of payload, for each flow.
        mbit: u32,
        /// Payload bytes in a datagram.
        bytes: u32,
    },
}

/// Which way data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client.
    #[default]
    Forward,
    /// To the client.
    Reverse,
    /// Both ways at once.
    Both,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// What is sent.
    pub load: Load,
    /// How many flows each way.
    pub flows: u32,
    /// Which way.
    pub direction: Direction,
    /// Seconds that are measured.
    pub seconds: u32,
    /// Seconds before them that are not.
    pub omit: u32,
    /// The server's address, instead of the host's first IPv4 address.
    pub address: Option<String>,
    /// The cores that client and server stay on, so that the scheduler's moves are not what is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<[u32; 2]>,
    /// Whether TCP is MPTCP: both programs are run by `mptcpize`, which asks for it in their place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mptcp: bool,
}

impl Traffic {
    /// One TCP flow, one second unmeasured.
    pub fn tcp(cc: Cc, seconds: u32) -> Self {
        let load = Load::Tcp(cc);
        Self {
            load,
            flows: 1,
            direction: Direction::Forward,
            seconds,
            omit: 1,
            address: None,
            cores: None,
            mptcp: false,
        }
    }

    /// One UDP flow with datagrams that fill an MTU of 1500 bytes, on IPv4.
    pub fn udp(mbit: u32, seconds: u32) -> Self {
        Self { load: Load::Udp { mbit, bytes: 1472 }, ..Self::tcp(Cc::Cubic, seconds) }
    }

    /// The same with more flows.
    #[must_use]
    pub fn flows(mut self, flows: u32) -> Self {
        self.flows = flows;
        self
    }

    /// The same, to another address.
    #[must_use]
    pub fn to(mut self, address: &str) -> Self {
        self.address = Some(address.into());
        self
    }

    /// The client's command line after the program's name.
    pub fn words(&self, address: &str, port: u16) -> Vec<String> {
        let mut words: Vec<String> =
            ["-c", address, "-p", &port.to_string(), "-t", &self.seconds.to_string(), "-J"]
                .map(Into::into)
                .into();
        match self.load {
            Load::Tcp(cc) => words.extend(["-C", cc.name()].map(Into::into)),
            Load::Udp { mbit, bytes } => {
                words.extend(["-u", "-b", &format!("{mbit}M"), "-l", &bytes.to_string()].map(Into::into));
            }
        }
        if self.flows != 1 {
            words.extend(["-P".into(), self.flows.to_string()]);
        }
        if self.omit != 0 {
            words.extend(["-O".into(), self.omit.to_string()]);
        }
        if let Some([client, server]) = self.cores {
            words.extend(["-A".into(), format!("{client},{server}")]);
        }
        match self.direction {
            Direction::Forward => {}
            Direction::Reverse => words.push("-R".into()),
            Direction::Both => words.push("--bidir".into()),
        }
        words
    }
}

/// What one direction came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// Goodput at the receiver: Mbit/s of payload.
    pub mbit: f64,
    /// TCP retransmits as the sending iperf3 counts them.
    pub retransmits: u64,
    /// UDP datagrams sent.
    pub datagrams: u64,
    /// Of these, lost.
    pub lost: u64,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The command as it would be typed on the client.
    pub command: String,
    /// From the client (or to it, for [`Direction::Reverse`]).
    pub way: Way,
    /// To the client, for [`Direction::Both`].
    pub back: Option<Way>,
    /// CPU of the client process, in percent of one core. Work in interrupts is not in it.
    pub client_cpu: f64,
    /// CPU of the server process, in percent of one core.
    pub server_cpu: f64,
    /// TCP segments that both hosts sent meanwhile, with the unmeasured seconds.
    pub segments: u64,
    /// Of these, sent again.
    pub segments_again: u64,
    /// Goodput of each second at the client, Mbit/s; both ways together.
    pub each_second: Vec<f64>,
}

impl Outcome {
    /// Goodput of all directions, Mbit/s.
    pub fn mbit(&self) -> f64 {
        self.way.mbit + self.back.map_or(0.0, |back| back.mbit)
    }

    /// Goodput of the median second, Mbit/s: a second in which the machine stood still does not count. Of all, if no second is known.
    pub fn median_mbit(&self) -> f64 {
        let mut seconds = self.each_second.clone();
        seconds.sort_by(f64::total_cmp);
        match &seconds[..] {
            [] => self.mbit(),
            all => (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0,
        }
    }

    /// Retransmits in 10,000 segments.
    pub fn again_per_10k(&self) -> f64 {
        self.segments_again as f64 * 1e4 / self.segments.max(1) as f64
    }
}

/// A run under way. Dropping it ends both iperf3.
#[derive(Debug)]
pub struct Iperf<'lab> {
    client: Running,
    server: Running,
    hosts: [Host<'lab>; 2],
    segments: [(u64, u64); 2],
    output: PathBuf,
    direction: Direction,
    deadline: Instant,
}

/// Runs `traffic` from `client` to `server` and waits for its end.
pub fn run(client: Host<'_>, server: Host<'_>, traffic: &Traffic) -> Result<Outcome, Error> {
    start(client, server, traffic)?.finish()
}

/// Starts `traffic` from `client` to `server`.
pub fn start<'lab>(client: Host<'lab>, server: Host<'lab>, traffic: &Traffic) -> Result<Iperf<'lab>, Error> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    tool::require(if traffic.mptcp { &["iperf3", MPTCPIZE] } else { &["iperf3"] })?;
    let port = FIRST_PORT + NEXT.fetch_add(1, Ordering::Relaxed) % 10_000;
    let mut listening = iperf3(server, traffic.mptcp);
    listening.args(["-s", "-1", "-p", &port.to_string()]);
    let listening = Running::serve(listening, SERVER_LIMIT, || server.listens(port))?;
    let output = client.lab.folder().join(format!("iperf3-{port}.json"));
    let file = |path: &PathBuf| {
        File::create(path).map_err(|e| {
            Error::new(path.display().to_string(), "cannot write the result of iperf3", e.to_string())
        })
    };
    let address = traffic.address.as_deref().unwrap_or_else(|| server.ipv4());
    let segments = [client.tcp_segments()?, server.tcp_segments()?];
    let mut command = iperf3(client, traffic.mptcp);
    command.args(traffic.words(address, port)).stdin(Stdio::null());
    command.stdout(file(&output)?).stderr(Stdio::null());
    let limit = Duration::from_secs(u64::from(traffic.seconds + traffic.omit)) + EXTRA;
    Ok(Iperf {
        client: Running::start(command)?,
        server: listening,
        hosts: [client, server],
        segments,
        output,
        direction: traffic.direction,
        deadline: Instant::now() + limit,
    })
}

/// iperf3 on a host, without words yet.
fn iperf3(host: Host<'_>, mptcp: bool) -> Command {
    if !mptcp {
        return host.command("iperf3");
    }
    let mut command = host.command(MPTCPIZE);
    command.args(["run", "iperf3"]);
    command
}

impl Iperf<'_> {
    /// The client's command as it would be typed.
    pub fn command(&self) -> &str {
        self.client.words()
    }

    /// The client's process number.
    pub fn client_id(&self) -> u32 {
        self.client.id()
    }

    /// Whether the client has ended.
    pub fn ended(&mut self) -> bool {
        self.client.ended().is_some()
    }

    /// Waits for the end and reads the results.
    pub fn finish(mut self) -> Result<Outcome, Error> {
        let command = self.client.words().to_owned();
        let left = self.deadline.saturating_duration_since(Instant::now());
        wait::wait_for(left, &format!("'{command}' to end"), || {
            self.client.ended().map(drop).ok_or("it still runs")
        })?;
        let fail = |cause: String| Error::new("lab", format!("'{command}' failed"), cause);
        let text = std::fs::read_to_string(&self.output).map_err(|e| fail(e.to_string()))?;
        let after = [self.hosts[0].tcp_segments()?, self.hosts[1].tcp_segments()?];
        let mut outcome = parse(&text, self.direction).map_err(fail)?;
        for (before, after) in self.segments.iter().zip(after) {
            outcome.segments += after.0.saturating_sub(before.0);
            outcome.segments_again += after.1.saturating_sub(before.1);
        }
        drop(self.server);
        Ok(Outcome { command, ..outcome })
    }
}

/// Reads the client's JSON.
fn parse(text: &str, direction: Direction) -> Result<Outcome, String> {
    let json: serde_json::Value =
        serde_json::from_str(text).map_err(|e| format!("its output is not JSON: {e}"))?;
    if let Some(error) = json["error"].as_str() {
        return Err(error.into());
    }
    let end = &json["end"];
    let way = |suffix: &str| {
        let (sent, received) = (&end[format!("sum_sent{suffix}")], &end[format!("sum_received{suffix}")]);
        Some(Way {
            mbit: received["bits_per_second"].as_f64()? / 1e6,
            retransmits: sent["retransmits"].as_u64().unwrap_or(0),
            datagrams: received["packets"].as_u64().unwrap_or(0),
            lost: received["lost_packets"].as_u64().unwrap_or(0),
        })
    };
    let cpu = &end["cpu_utilization_percent"];
    let seconds = json["intervals"].as_array().map_or(&[][..], Vec::as_slice);
    let measured = seconds.iter().filter(|s| s["sum"]["omitted"] == false);
    let mbit = |s: &serde_json::Value| {
        ["sum", "sum_bidir_reverse"].iter().filter_map(|key| s[key]["bits_per_second"].as_f64()).sum::<f64>()
            / 1e6
    };
    Ok(Outcome {
        command: String::new(),
        way: way("").ok_or("'end.sum_received' is missing in its output")?,
        back: match direction {
            Direction::Both => Some(way("_bidir_reverse").ok_or("the way back is missing in its output")?),
            Direction::Forward | Direction::Reverse => None,
        },
        client_cpu: cpu["host_total"].as_f64().unwrap_or(0.0),
        server_cpu: cpu["remote_total"].as_f64().unwrap_or(0.0),
        segments: 0,
        segments_again: 0,
        each_second: measured.map(mbit).collect(),
    })
}

#[cfg(test)]
mod tests;
