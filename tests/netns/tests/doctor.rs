//! `doctor`: fourteen faults, each of which it names; and nothing where nothing is wrong.

use linkbraid_lab::{Fault, LinkSpec, Running, Topology, daemon, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, sh};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Mbit/s of each link. So little that the processors are not the limit.
const RATE: u32 = 20;
const PORT: u16 = 4919;
/// A machine that stands still for a moment looks like a fault.
const TRIES: u32 = 3;

/// What `doctor` says on a of its bond with b, which answers.
struct Doctor<'n> {
    net: &'n Net,
    _answer: Running,
}

impl<'n> Doctor<'n> {
    fn of(net: &'n Net) -> Self {
        let (a, b) = (net.host("a"), net.host("b"));
        let mut command = b.linkbraid_command(daemon::binary().expect("linkbraid is built"));
        command.args(["doctor", BOND, "--answer", a.ipv4()]);
        let answer = b.spawn(command).expect("starts");
        wait_until(SOON, "somebody who answers", || b.listens(PORT), |listens| *listens).expect("answers");
        Self { net, _answer: answer }
    }

    fn says(&self) -> Value {
        let said = self.net.say("a", &format!("doctor {BOND} {} --json", self.net.host("b").ipv4()));
        assert_eq!(said.code, 0, "{said:?}");
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.out))
    }

    /// It names these, and perhaps others: each a word, and the way where it is of one.
    fn names(&self, faults: &[&str]) {
        let wanted: BTreeSet<String> = faults.iter().map(|fault| (*fault).to_owned()).collect();
        let mut said = Vec::new();
        for _ in 0..TRIES {
            let diagnosis = self.says();
            let named = names(&diagnosis);
            eprintln!("{faults:?}: {named:?}");
            if wanted.iter().all(|fault| named.contains(fault)) {
                return;
            }
            said.push(diagnosis["causes"].to_string());
        }
        panic!("{faults:?} are not named: {said:#?}");
    }
}

fn names(diagnosis: &Value) -> BTreeSet<String> {
    let causes = diagnosis["causes"].as_array().expect("a list");
    let name = |cause: &Value| {
        let code = cause["code"].as_str().expect("a word").to_owned();
        cause["way"].as_str().map_or_else(|| code.clone(), |way| format!("{code} {way}"))
    };
    causes.iter().map(name).collect()
}

#[test]
fn what_is_wrong_is_named_and_nothing_else() {
    let net = Net::bonded(Topology::symmetric(2, 4, Some(RATE)));
    let (a, b) = (net.host("a"), net.host("b"));
    let doctor = Doctor::of(&net);

    let sound = || -> Value { doctor.says() };
    let found: Vec<Value> = (0..TRIES).map(|_| sound()).take_while(|said| !names(said).is_empty()).collect();
    assert!(found.len() < TRIES as usize, "nothing is wrong: {found:#?}");

    // A member without carrier, and a lane that carries nothing.
    let (pulled, silent) = (a.link(3).expect("a link"), a.link(1).expect("a link"));
    pulled.fail(Fault::Carrier).expect("fails");
    silent.fail(Fault::SilentOut).expect("fails");
    net.wait_lanes("a", "b", None, &[(0, 0), (0, 1), (2, 2), (2, 3)]);
    doctor.names(&["member_down", "silent"]);
    pulled.mend().expect("mends");
    silent.mend().expect("mends");
    net.wait_lanes("a", "b", None, &[(0, 0), (1, 1), (2, 2), (3, 3)]);

    // A policy that keeps a flow on one link, a member for a class, and somebody else's traffic.
    net.ok("a", &format!("bond set {BOND} --policy active-backup"));
    for host in ["a", "b"] {
        net.ok(host, &format!("class add {BOND} voice --member eth3 --match udp-port=9"));
    }
    net.wait_lanes("a", "b", Some("voice"), &[(3, 3)]);
    let others = Others::start(&net);
    wait_until(SOON, "other traffic", || net.show("a").members[0].tx_bytes, |bytes| *bytes > 1_000_000)
        .expect("other traffic");
    doctor.names(&["policy up", "reserved", "competing"]);
    drop(others);
    for host in ["a", "b"] {
        net.ok(host, &format!("class del {BOND} voice"));
    }
    net.ok("a", &format!("bond set {BOND} --policy spread"));
    net.wait_lanes("a", "b", None, &[(0, 0), (1, 1), (2, 2), (3, 3)]);

    // Weights that are wrong, and a shaper that somebody forgot.
    for (member, weight) in [(0, RATE), (1, RATE), (2, RATE), (3, 10 * RATE)] {
        net.ok("a", &format!("member set {BOND} eth{member} --weight {weight} --weight-fixed on"));
    }
    sh(b, &format!("tc qdisc add dev {BOND} root tbf rate 30mbit burst 20k latency 300ms"));
    doctor.names(&["weights up", "between down"]);
    sh(b, &format!("tc qdisc del dev {BOND} root"));
    for member in 0..4 {
        net.ok("a", &format!("member set {BOND} eth{member} --weight {RATE} --weight-fixed off"));
    }

    // A port that passes no long frames, and one that loses some.
    let (short, lossy) = (b.link(1).expect("a link"), b.link(2).expect("a link"));
    let switch = net.lab().switch(0).expect("a switch");
    let port = |mtu: &str| {
        let mut command = switch.command("ip");
        assert!(command.args(["link", "set", &short.port(), "mtu", mtu]).status().expect("runs").success());
    };
    port("1000");
    lossy.set(|conf| conf.loss_out_ppm = 100_000).expect("loses");
    doctor.names(&["short", "loss up"]);
    port("1500");
    lossy.set(|conf| conf.loss_out_ppm = 0).expect("loses nothing");
}

/// Half of what a link carries, from a to b until it is dropped.
struct Others {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Others {
    fn start(net: &Net) -> Self {
        const BYTES: usize = 1000;
        let socket = net.host("a").make("open a socket", || UdpSocket::bind("0.0.0.0:0")).expect("binds");
        socket.connect((net.host("b").ipv4(), 5009)).expect("a way");
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let each = Duration::from_micros(BYTES as u64 * 8 * 2 / u64::from(RATE));
        let thread = thread::spawn(move || {
            while !until.load(Relaxed) {
                // Nobody takes them, which the kernel says now and then.
                let _ = socket.send(&[0; BYTES]);
                thread::park_timeout(each);
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn hosts_that_differ() {
    let links = |rates: &[u32]| rates.iter().map(|rate| LinkSpec::switch(0, Some(*rate))).collect::<Vec<_>>();
    let net = Net::bonded(Topology::empty("lab", 1).host(links(&[RATE; 4])).host(links(&[RATE, RATE / 4])));
    Doctor::of(&net).names(&["fewer_members", "slow_link"]);
}

#[test]
fn a_member_on_another_switch() {
    let links = |switches: [usize; 2]| switches.map(|switch| LinkSpec::switch(switch, Some(RATE))).to_vec();
    let net = Net::bonded(Topology::empty("lab", 3).host(links([0, 1])).host(links([0, 2])));
    Doctor::of(&net).names(&["no_lane"]);
}

#[test]
fn links_that_are_faster_than_the_processor() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let doctor = Doctor::of(&net);
    let is_named = |_| names(&doctor.says()).iter().any(|name| name.contains("processor"));
    assert!((0..TRIES).any(is_named));
    // And why it is: each frame is handled by itself.
    for host in ["a", "b"] {
        for member in ["eth0", "eth1"] {
            sh(net.host(host), &format!("ethtool -K {member} gso off"));
        }
    }
    let is_named = |_| names(&doctor.says()).iter().any(|name| name.starts_with("offloads"));
    assert!((0..TRIES).any(is_named));
}

#[test]
fn strangers_are_not_answered() {
    let net = Net::bonded(Topology::symmetric(3, 2, Some(RATE)));
    let (b, c) = (net.host("b"), net.host("c"));
    let _doctor = Doctor::of(&net);
    let said = net.say("c", &format!("doctor {BOND} {}", b.ipv4()));
    assert_eq!(said.code, 1, "{said:?}");
    // And who is no peer cannot be answered, nor asked.
    let said = net.say("a", &format!("doctor {BOND} 198.18.0.77"));
    said.refused(1, &format!("{BOND}: cannot be examined with '198.18.0.77': it is no peer"));
    let said = net.say("a", &format!("doctor {BOND} {}", c.ipv4()));
    let cause = "nobody answers there until this command runs on it";
    let error = format!("{}: cannot examine the bond together with it: {cause}", c.ipv4());
    let hint = said.refused(1, &error);
    assert_eq!(hint.trim(), format!("linkbraid doctor --answer {}", net.host("a").ipv4()));
}
