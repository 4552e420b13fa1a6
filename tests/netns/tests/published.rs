//! A second implementation of ARP+, in Python and written from the document alone, bonds with ours as the papers describe it.

use linkbraid_lab::counters::NicCount;
use linkbraid_lab::iperf::{Cc, Traffic};
use linkbraid_lab::{LinkSpec, Running, Topology, shape};
use linkbraid_netns_tests::{BOND, Net, sh, traffic, until};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

/// The other implementation.
const PROGRAM: &str = include_str!("published/host.py");
/// What each link carries, Mbit/s.
const RATE: u32 = 20;
/// Of what two links carry, what one flow carries at least: more than one link can.
const PART: f64 = 0.75;
/// How often pings are sent at most.
const TURNS: u32 = 3;

/// Each host that the other implementation knows, and its MACs, the primary one first.
type Table = BTreeMap<String, Vec<String>>;

/// The other implementation on a host. Its process ends with this value.
struct Other {
    process: Running,
    table: Arc<Mutex<Table>>,
}

impl Other {
    /// Starts it with two NICs.
    #[track_caller]
    fn start(net: &Net, name: &str) -> Self {
        let host = net.host(name);
        let mut command = host.command("python3");
        command.args(["-c", PROGRAM, &format!("{}/24", host.ipv4()), "eth0", "eth1"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = host.spawn(command).expect("starts");
        let table = Arc::default();
        let (said, known) = (process.child().stdout.take().expect("a pipe"), Arc::clone(&table));
        std::thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                let rows = serde_json::from_str(&line).expect("a table");
                *Mutex::lock(&known).expect("nobody panicked") = rows;
            }
        });
        let _ = until(
            "its interface",
            || host.sh("ip address show plus0"),
            |said| said.as_ref().is_ok_and(|text| text.contains(host.ipv4())),
        );
        Self { process, table }
    }

    #[track_caller]
    fn tell(&mut self, line: &str) {
        let input = self.process.child().stdin.as_mut().expect("a pipe");
        writeln!(input, "{line}").expect("it reads");
    }

    /// Has it leave.
    fn leave(mut self) {
        drop(self.process.child().stdin.take());
        assert!(self.process.wait().expect("ends").success());
    }

    /// Waits until it knows a host by these NICs, or does not know it.
    #[track_caller]
    fn wait(&self, net: &Net, name: &str, nics: &[usize]) {
        let host = net.host(name);
        let wanted = (!nics.is_empty()).then(|| nics.iter().map(|nic| host.mac(*nic)).collect::<Vec<_>>());
        let known = || self.table.lock().expect("nobody panicked").get(host.ipv4()).cloned();
        until(&format!("{name} in the other's table: {wanted:?}"), known, |known| *known == wanted);
    }
}

/// Two hosts `a` and `b` that bond, and `c`, which will run the other implementation, with two links each.
fn three() -> Net {
    let links = || std::iter::repeat_n(LinkSpec::switch(0, Some(RATE)), 2);
    Net::bonded(Topology::empty("lab", 1).host(links()).host(links()).plain_host(links()))
}

/// Waits until a host has the other implementation as a peer with these NICs; none: not as a peer.
#[track_caller]
fn wait_peer(net: &Net, name: &str, nics: &[usize]) {
    let other = net.host("c");
    let wanted: Vec<String> = nics.iter().map(|nic| other.mac(*nic)).collect();
    let known = || {
        let peers = net.peers(name).into_iter().filter(|peer| peer.address.as_deref() == Some(other.ipv4()));
        let mut macs: Vec<String> = peers.flat_map(|peer| peer.members).map(|member| member.mac).collect();
        macs.sort();
        macs
    };
    until(&format!("the other as a peer of {name}"), known, |known| *known == wanted);
}

/// What of the frames that each NIC of a host took in and sent came meanwhile, as shares.
///
/// Lost pings say nothing if the kernel dropped frames because it was busy: then they are sent again.
#[track_caller]
fn pings_by_nic(net: &Net, from: &str, to: &str) -> Vec<(u64, u64)> {
    let counts = || net.host(to).nic_counts().expect("reads");
    for turn in 1.. {
        let (before, dropped) = (counts(), dropped(net));
        let said = sh(net.host(from), &format!("ping -q -c 200 -i 0.01 -s 1000 {}", net.host(to).ipv4()));
        assert!(!said.contains("duplicates"), "{said}");
        if said.contains(" 200 received") {
            let grown = |(now, then): (u64, u64)| (now - then) / 1000;
            let shares = |(now, then): (&NicCount, NicCount)| {
                (grown((now.rx_bytes, then.rx_bytes)), grown((now.tx_bytes, then.tx_bytes)))
            };
            return counts().iter().zip(before).map(shares).collect();
        }
        let more = self::dropped(net) - dropped;
        let counters = || sh(net.host("c"), "ip -s link; tc -s qdisc; ss -0 -e -m");
        assert!(more > 0 && turn < TURNS, "{from} to {to}, {more} dropped: {said}{}", counters());
        println!("{from} to {to}, {more} dropped, so once more: {said}");
    }
    unreachable!("the last turn returns or fails")
}

/// Frames that the kernel has dropped because nobody took them in time: on their way to any host, and at the other
/// implementation's sockets.
fn dropped(net: &Net) -> u64 {
    // The second number of each processor (Documentation/networking/proc_net_softnet_stat, net/core/net-procfs.c).
    let softnet = std::fs::read_to_string("/proc/net/softnet_stat").expect("reads");
    let backlogs = softnet.lines().filter_map(|line| line.split_whitespace().nth(1));
    let backlogs = backlogs.map(|number| u64::from_str_radix(number, 16).expect("a number"));
    // `skmem:(r0,rb212992,...,d0)` of ss(8).
    let sockets = sh(net.host("c"), "ss -0 -m");
    let sockets = sockets.split(",d").skip(1).filter_map(|text| text.split(')').next()?.parse::<u64>().ok());
    backlogs.chain(sockets).sum()
}

fn allow(net: &Net) {
    for name in ["a", "b"] {
        net.ok(name, &format!("bond set {BOND} --published-only on"));
    }
}

#[test]
fn a_host_of_the_papers_bonds_with_ours() {
    let net = three();
    allow(&net);
    let mut other = Other::start(&net, "c");
    // It has broadcast that it is there, and has had the answers.
    other.wait(&net, "a", &[0, 1]);
    other.wait(&net, "b", &[0, 1]);
    wait_peer(&net, "a", &[0, 1]);
    wait_peer(&net, "b", &[0, 1]);
    for (from, to) in [("a", "c"), ("c", "a"), ("b", "c")] {
        let shares = pings_by_nic(&net, from, to);
        assert!(shares.iter().all(|(rx, tx)| *rx >= 60 && *tx >= 60), "{from} to {to}: {shares:?}");
    }
    // One flow carries more than one link, both ways, and arrives whole.
    let enough = PART * 2.0 * f64::from(RATE) * shape::tcp_share(1500, false);
    for (from, to) in [("a", "c"), ("c", "a")] {
        let outcome = traffic::reaches(net.host(from), net.host(to), &Traffic::tcp(Cc::Cubic, 3), |o| {
            o.mbit() >= enough
        });
        println!("{from} to {to}: {:.1} Mbit/s of {:.1}, {outcome:?}", outcome.mbit(), enough / PART);
    }
    // Changes, both ways.
    other.tell("del eth1");
    wait_peer(&net, "a", &[0]);
    let shares = pings_by_nic(&net, "a", "c");
    assert!(shares[0].0 >= 200 && shares[1].0 < 60, "{shares:?}");
    other.tell("add eth1");
    wait_peer(&net, "a", &[0, 1]);
    net.ok("a", &format!("member del {BOND} eth1"));
    other.wait(&net, "a", &[0]);
    pings_by_nic(&net, "c", "a");
    net.ok("a", &format!("member add {BOND} eth1"));
    other.wait(&net, "a", &[0, 1]);
    // Who leaves is forgotten.
    net.ok("b", &format!("bond del {BOND}"));
    other.wait(&net, "b", &[]);
    other.leave();
    wait_peer(&net, "a", &[]);
}

#[test]
fn a_host_of_the_papers_is_a_plain_host_unless_it_is_allowed() {
    let net = three();
    let other = Other::start(&net, "c");
    other.wait(&net, "a", &[0, 1]);
    until("a refusal", || net.counter("a", "published_only"), |refused| *refused > 0);
    // It sends to all our NICs, because we told it of them. We send to the one that ordinary ARP names.
    for (from, to) in [("a", "c"), ("c", "a")] {
        let shares = pings_by_nic(&net, from, to);
        println!("{from} to {to}: {shares:?}");
    }
    let shares = pings_by_nic(&net, "a", "c");
    assert!(shares[0].0 >= 200 && shares[1].0 < 60, "{shares:?}");
    wait_peer(&net, "a", &[]);
    // From now on it may be a peer, as soon as it says again who it is: it does so when it changes.
    allow(&net);
    let mut other = other;
    other.tell("del eth1");
    wait_peer(&net, "a", &[0]);
    other.tell("add eth1");
    wait_peer(&net, "a", &[0, 1]);
    // And no longer.
    net.ok("a", &format!("bond set {BOND} --published-only off"));
    wait_peer(&net, "a", &[]);
    pings_by_nic(&net, "a", "c");
}
