//! Corosync beside storage that fills the links, as docs/guides/cluster.md has it: its token comes back in time.

use linkbraid_lab::iperf::{self, Cc, Direction, Traffic};
use linkbraid_lab::{Fault, Host, Running, Topology, tool};
use linkbraid_netns_tests::{BOND, Net, guide, until};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where the test runs.
struct Place {
    /// Each link, Mbit/s.
    rate: u32,
    /// A token is looked at for so long, in s.
    watched: u32,
    /// Flows last so much longer, in s: tshark(1) takes some time to begin.
    spare: u32,
    /// More of Corosync's settings.
    settings: &'static str,
    /// Of 100 rounds under load 99 are at most so many times as long as of idle ones.
    most: Option<f64>,
}

/// A machine with other tests: Corosync has no right to go before all of them, and waits for them.
const SHARED: Place =
    Place { rate: 20, watched: 5, spare: 5, settings: "system {\n sched_rr: no\n}\n", most: None };
/// A guest of `tests/vm/cluster`, whose processor has time: nothing else runs there, and the links are slow.
const ALONE: Place = Place { rate: 1, watched: 20, spare: 8, settings: "", most: Some(2.0) };

fn place() -> Place {
    if Path::new("/run/vm/settings").exists() { ALONE } else { SHARED }
}

/// Corosync's own files and shared memory, apart from the machine's and from the other node's.
const APART: &str = "mount -t tmpfs tmpfs /mnt && cp \"$FILE\" /mnt/corosync.conf || exit; \
                     for place in /dev/shm /run /var/lib/corosync; do mount -t tmpfs tmpfs $place || exit; done; \
                     exec corosync -f -c /mnt/corosync.conf";
const PORT: &str = "udp port 5405";
/// They have begun when so many bytes are sent.
const LOAD_BEGINS: u64 = 200_000;
/// Fewer rounds say nothing.
const ROUNDS: usize = 20;

/// A node, which ends with it.
struct Node {
    process: Running,
    log: PathBuf,
}

impl Node {
    #[track_caller]
    fn start(net: &Net, name: &str) -> Self {
        let file = net.lab().folder().join(format!("{name}.corosync"));
        let log = file.with_extension("log");
        // A token that goes round more often than it would.
        let more = "logging {\n to_stderr: yes\n to_syslog: no\n}\ntotem {\n hold: 20\n}\n";
        let settings = guide::block("cluster.md", "corosync.conf") + more + place().settings;
        fs::write(&file, settings).expect("writes");
        let mut command = net.host(name).command("unshare");
        command.args(["--mount", "sh", "-c", APART]).env("FILE", &file).stdin(Stdio::null());
        let output = File::create(&log).expect("makes a file");
        command.stdout(output.try_clone().expect("an open file")).stderr(output);
        let process = Running::start(command).expect("unshare(1) is there");
        Self { process, log }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How often the nodes that it sees have changed.
    fn changes(&self) -> usize {
        self.log().matches("Members[").count()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of a node ({:?})\n{}", self.process.ended(), self.log());
        }
    }
}

/// How long the token took from this node to the other one and back, each time, in ms, shortest first.
#[track_caller]
fn rounds(host: Host<'_>, folder: PathBuf) -> Vec<f64> {
    let file = folder.join("token.pcap");
    let mut capture = host.command("tshark");
    capture.args([
        "-q",
        "-i",
        BOND,
        "-f",
        PORT,
        "-F",
        "pcap",
        "-a",
        &format!("duration:{}", place().watched),
        "-w",
    ]);
    tool::run(capture.arg(&file)).unwrap_or_else(|e| panic!("{e}"));
    let mut read = Command::new("tshark");
    read.arg("-r").arg(&file).args([
        "-T",
        "fields",
        "-e",
        "frame.time_epoch",
        "-e",
        "ip.src",
        "-e",
        "udp.payload",
    ]);
    let said = tool::run(&mut read).unwrap_or_else(|e| panic!("{e}"));
    let mut left: Option<f64> = None;
    let mut rounds = Vec::new();
    for line in said.lines() {
        let mut words = line.split_whitespace();
        let (Some(time), Some(from), Some(payload)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        // The second byte of knet's header is 0 for data; its own questions have others.
        if payload.get(2..4) != Some("00") {
            continue;
        }
        let time: f64 = time.parse().expect("a number");
        if from == host.ipv4() {
            left = Some(time);
        } else if let Some(left) = left.take() {
            rounds.push((time - left) * 1000.0);
        }
    }
    rounds.sort_by(f64::total_cmp);
    assert!(rounds.len() >= ROUNDS, "only {} rounds: {said}", rounds.len());
    rounds
}

/// The round that 99 of 100 are shorter than, and half of them.
fn of(rounds: &[f64]) -> (f64, f64) {
    (rounds[(rounds.len() * 99 / 100).min(rounds.len() - 1)], rounds[rounds.len() / 2])
}

/// The same while flows fill what links they may.
#[track_caller]
fn under_load(net: &Net) -> (f64, f64) {
    let (a, b) = (net.host("a"), net.host("b"));
    let sent = || net.show("a").members.iter().map(|member| member.tx_bytes).sum::<u64>();
    let flows = Traffic {
        flows: 8,
        direction: Direction::Both,
        ..Traffic::tcp(Cc::Cubic, place().watched + place().spare)
    };
    let (before, began) = (sent(), Instant::now());
    let load = iperf::start(a, b, &flows).unwrap_or_else(|e| panic!("{e}"));
    until("load", sent, |sent| *sent > before + LOAD_BEGINS);
    let seen = of(&rounds(a, net.lab().folder().to_owned()));
    assert!(began.elapsed().as_secs() < u64::from(flows.seconds), "the load lasts as long as it is looked");
    load.finish().unwrap_or_else(|e| panic!("{e}"));
    seen
}

#[test]
fn the_token_is_in_time_while_storage_fills_the_links() {
    let net = &Net::bonded(Topology::symmetric(2, 4, Some(place().rate)));
    let nodes = ["a", "b"].map(|name| Node::start(net, name));
    for node in &nodes {
        until("both nodes", || node.log(), |log| log.contains("Members[2]"));
    }
    let idle = of(&rounds(net.host("a"), net.lab().folder().to_owned()));
    let without = under_load(net);
    for name in ["a", "b"] {
        net.ok(name, &format!("class add {BOND} heartbeat --member eth3 --match udp-port=5405"));
    }
    net.wait_lanes("a", "b", Some("heartbeat"), &[(3, 3)]);
    net.wait_lanes("b", "a", Some("heartbeat"), &[(3, 3)]);
    let with = under_load(net);
    eprintln!(
        "token's round in ms, p99 and median: idle {idle:?}; links full {without:?}; with a class {with:?}"
    );
    // Medians: the longest are the processors', which other tests use, too.
    assert!(with.1 < without.1 / 2.0, "the class keeps the token from waiting");
    if let Some(most) = place().most {
        assert!(with.0 <= most * idle.0, "99 of 100 are in time");
    }
    let changes = nodes.each_ref().map(Node::changes);
    net.host("b").link(3).expect("a link").fail(Fault::Silent).expect("fails");
    // For longer than the 3 s after which Corosync takes a node for dead.
    rounds(net.host("a"), net.lab().folder().to_owned());
    assert_eq!(nodes.each_ref().map(Node::changes), changes, "nobody is taken for dead");
}
