//! Corosync beside storage that fills the links, as docs/guides/cluster.md has it: its token comes back in time.

use linkbraid_lab::iperf::{self, Cc, Direction, Traffic};
use linkbraid_lab::{Fault, Host, Running, Topology, tool};
use linkbraid_netns_tests::{BOND, Net, guide, until};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Each link, Mbit/s.
const RATE: u32 = 20;
/// Corosync's own files and shared memory, apart from the machine's and from the other node's.
const APART: &str = "mount -t tmpfs tmpfs /mnt && cp \"$FILE\" /mnt/corosync.conf || exit; \
                     for place in /dev/shm /run /var/lib/corosync; do mount -t tmpfs tmpfs $place || exit; done; \
                     exec corosync -f -c /mnt/corosync.conf";
const PORT: &str = "udp port 5405";
/// A token is looked at for so long, in s.
const WATCHED: u64 = 5;
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
        // A token that goes round more often than it would; and tests have no right to go before all others of the machine.
        let more = "logging {\n to_stderr: yes\n to_syslog: no\n}\ntotem {\n hold: 20\n}\nsystem {\n sched_rr: no\n}\n";
        let settings = guide::block("cluster.md", "corosync.conf") + more;
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
    capture.args(["-q", "-i", BOND, "-f", PORT, "-F", "pcap", "-a", &format!("duration:{WATCHED}"), "-w"]);
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
    std::thread::scope(|scope| {
        let lasts = u32::try_from(WATCHED).expect("short") + 2;
        let flows = Traffic { flows: 8, direction: Direction::Both, ..Traffic::tcp(Cc::Cubic, lasts) };
        let load = scope.spawn(move || iperf::run(net.host("a"), net.host("b"), &flows).expect("runs"));
        let seen = of(&rounds(net.host("a"), net.lab().folder().to_owned()));
        load.join().expect("no panic");
        seen
    })
}

#[test]
fn the_token_is_in_time_while_storage_fills_the_links() {
    let net = &Net::bonded(Topology::symmetric(2, 4, Some(RATE)));
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
    let changes = nodes.each_ref().map(Node::changes);
    net.host("b").link(3).expect("a link").fail(Fault::Silent).expect("fails");
    // For longer than the 3 s after which Corosync takes a node for dead.
    rounds(net.host("a"), net.lab().folder().to_owned());
    assert_eq!(nodes.each_ref().map(Node::changes), changes, "nobody is taken for dead");
}
