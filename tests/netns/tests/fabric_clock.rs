//! What a fabric does after five minutes, and what when one of its threads fails: with a clock that the test moves and breaks.

use crate::nodes::Nodes;
use linkbraid_api::{EventKind, NodeState};
use linkbraid_lab::{Running, daemon, wait_for, wait_until};
use linkbraid_netns_tests::{BOND, SOON, flow::Flow};
use std::{
    fs::{self, File},
    os::unix::{fs::FileExt, net::UnixStream},
    path::PathBuf,
    process::{Command, Stdio},
};

/// A station behind node 1.
const MAC: &str = "02:00:00:00:00:77";
const STATION: &str = "198.19.2.77";
/// Longer than an address is remembered, and not much longer.
const AGE_SECONDS: u64 = 301;
/// A node whose clock jumps takes the others for dead if this machine is so busy that they are late just then: how often that
/// may happen.
const TRIES: usize = 20;

/// Stands before the C library: the clock that the daemon lives by is ahead by as many seconds as a file says, and fails once, if the
/// file wants that, for the thread of a fabric's first queue, which Rust answers with a panic.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile struct wishes {
	long ahead;
	long fail;
} *wishes;

__attribute__((constructor)) static void begin(void)
{
	int fd = open(getenv("CLOCK_WISHES"), O_RDWR | O_CLOEXEC);
	void *map = mmap(NULL, sizeof(*wishes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		abort();
	wishes = map;
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
	int failed = syscall(SYS_clock_gettime, clock, at);
	char name[16];

	if (failed || clock != CLOCK_MONOTONIC || !wishes)
		return failed;
	if (wishes->fail && !prctl(PR_GET_NAME, name) && !strcmp(name, "fab0-0")) {
		wishes->fail = 0;
		errno = EINVAL;
		return -1;
	}
	at->tv_sec += wishes->ahead;
	return 0;
}
"#;

/// A clock, and the daemon of node 0 that lives by it.
struct Clock {
    wishes: File,
    seconds: u64,
    daemon: Running,
}

impl Clock {
    /// Starts that daemon in place of the one that runs.
    fn start(nodes: &Nodes) -> Self {
        nodes.net.stop(&nodes.names[0]);
        let folder = nodes.net.lab().folder();
        let [source, library, wishes] =
            ["clock.c", "clock.so", "wishes"].map(|name| -> PathBuf { folder.join(name) });
        fs::write(&source, CLOCK).expect("writes");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&library).arg(&source);
        assert!(compiler.status().expect("there is a C compiler: Rust links with it").success());
        fs::write(&wishes, [0; 16]).expect("writes");
        let host = nodes.net.host(&nodes.names[0]);
        let mut command = host.linkbraid_command(daemon::binary().expect("linkbraid is built"));
        command.arg("daemon").env("LD_PRELOAD", &library).env("CLOCK_WISHES", &wishes);
        let log = File::options().create(true).append(true).open(host.log()).expect("opens");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let daemon = Running::start(command).expect("starts");
        let listens = || UnixStream::connect(host.socket()).map_err(|error| error.to_string());
        wait_for(SOON, "the daemon", listens).unwrap_or_else(|error| panic!("{error}"));
        let wishes = File::options().write(true).open(&wishes).expect("opens");
        Self { wishes, seconds: 0, daemon }
    }

    /// Makes the thread of the first queue of `fab0` fail.
    fn fail(&self) {
        self.wishes.write_all_at(&1_u64.to_ne_bytes(), 8).expect("writes");
    }

    fn advance(&mut self) {
        self.seconds += AGE_SECONDS;
        self.wishes.write_all_at(&self.seconds.to_ne_bytes(), 0).expect("writes");
    }
}

/// Frames that node 0 sent to node 2 because it did not know where they belong.
fn copies(nodes: &Nodes) -> u64 {
    let stats = nodes.stats(0);
    let peer = stats.peers.iter().find(|peer| peer.node == 2).expect("known");
    peer.counters.iter().find(|counter| counter.name == "tx_copies").expect("counted").frames
}

/// How many nodes have left node 0.
fn fell(nodes: &Nodes) -> usize {
    let events = nodes.show(0).events;
    events.iter().filter(|event| event.kind == EventKind::Node && event.old.as_deref() == Some("up")).count()
}

#[test]
fn an_address_that_was_silent_for_long_is_anywhere_again() {
    let nodes = Nodes::hosts(3);
    let net = &nodes.net;
    let mut clock = Clock::start(&nodes);
    nodes.add("shm", "");
    nodes.wait_up();
    let [a, b] = [net.host(&nodes.names[0]), net.host(&nodes.names[1])];
    // Nothing is sent but what the test sends.
    for name in &nodes.names {
        net.host(name).sh("sysctl -qw net.ipv6.conf.fab0.disable_ipv6=1").expect("sets");
    }
    a.sh("ip addr add 198.19.2.1/24 dev fab0").expect("adds");
    a.sh(&format!("ip neigh replace {STATION} lladdr {MAC} dev fab0 nud permanent")).expect("sets");
    let three = || {
        let before = copies(&nodes);
        let _ = a.sh(&format!("ping -q -c 3 -i 0.01 -W 0.05 {STATION}"));
        copies(&nodes) - before
    };
    for _ in 0..TRIES {
        // The station says one thing, and then nothing any more.
        b.sh(&format!("ip link add link fab0 name station address {MAC} type macvlan mode bridge"))
            .expect("adds");
        b.sh("sysctl -qw net.ipv6.conf.station.disable_ipv6=1").expect("sets");
        b.sh(&format!("ip addr add {STATION}/24 dev station")).expect("adds");
        b.sh("ip link set station up").expect("sets");
        a.wait_ping(STATION, SOON).expect("the station answers");
        b.sh("ip link del station").expect("deletes");
        wait_until(SOON, "nothing for node 2", &three, |copies| *copies == 0)
            .unwrap_or_else(|error| panic!("{error}"));
        let before = fell(&nodes);
        clock.advance();
        let after = three();
        if fell(&nodes) == before {
            assert_eq!(after, 3, "all three go to everybody");
            let peers = nodes.show(0).peers;
            assert!(peers.iter().all(|peer| peer.state == NodeState::Up), "{peers:?}");
            return;
        }
        nodes.wait_up();
    }
    panic!("nodes were taken for dead each of {TRIES} times");
}

#[test]
fn a_thread_that_fails_takes_its_fabric_along_and_nothing_else() {
    let nodes = Nodes::hosts(2);
    let net = &nodes.net;
    let mut clock = Clock::start(&nodes);
    nodes.add("shm", "");
    let other = net.lab().folder().join("other");
    for (node, name) in nodes.names.iter().enumerate() {
        net.ok(name, &format!("bond add {BOND} --member eth0"));
        let add = format!("fabric add fab1 --node {node} --nodes 2 --transport shm:{}", other.display());
        net.ok(name, &add);
        net.host(name).sh(&format!("ip addr add 198.19.1.{}/24 dev fab1", node + 1)).expect("adds");
    }
    nodes.wait_up();
    nodes.ping_all();
    net.wait_tables(&[&nodes.names[0], &nodes.names[1]]);
    let [a, b] = [net.host(&nodes.names[0]), net.host(&nodes.names[1])];
    a.wait_ping("198.19.1.2", SOON).expect("the other fabric");
    let others = [
        Flow::start(net, &nodes.names[0], &nodes.names[1]),
        Flow::between([(a, "198.19.1.1"), (b, "198.19.1.2")]),
    ];
    others.iter().for_each(|flow| flow.wait_received(20));
    let before = nodes.show(0).epoch;
    clock.fail();
    let failed = || nodes.show(0).events.into_iter().filter(|event| event.reason == "failed").count();
    wait_until(SOON, "the failure", failed, |count| *count == 1).unwrap_or_else(|error| panic!("{error}"));
    nodes.wait_up();
    nodes.ping_all();
    assert_ne!(nodes.show(0).epoch, before, "started again");
    let ends = nodes.stats(0).counters.into_iter().find(|counter| counter.name == "end_failed");
    assert_eq!(ends.map(|counter| counter.frames), Some(1));
    assert!(net.log(&nodes.names[0]).contains("thread 'fab0-0'"), "{}", net.log(&nodes.names[0]));
    for flow in others {
        flow.loses_nothing_more();
        assert_eq!(flow.end(), (0, 0), "lost and repeated elsewhere");
    }
    assert!(clock.daemon.ended().is_none());
}
