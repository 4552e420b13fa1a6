//! What the daemon tells of itself: events as they happen, what is in the way, and signs of life.

use linkbraid_api::{EventKind, EventRecord, FindingRecord, Severity};
use linkbraid_lab::{Topology, daemon, wait_for, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Lines of a command's standard output, as they come.
fn lines(mut command: Command) -> (linkbraid_lab::Running, mpsc::Receiver<String>) {
    let (read, write) = std::io::pipe().expect("a pipe");
    command.stdin(Stdio::null()).stdout(write);
    let running = linkbraid_lab::Running::start(command).expect("starts");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(read).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    (running, receiver)
}

#[test]
fn a_failure_is_told_as_it_happens_with_its_reason() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let binary = daemon::binary().expect("linkbraid is built");
    let mut command = net.host("a").linkbraid_command(&binary);
    command.args(["monitor", BOND, "--json"]);
    let (_monitor, events) = lines(command);
    let link = net.host("a").link(1).expect("a link");
    // The monitor may not listen yet: until it has told something, it happens again.
    let mut up = true;
    let found = wait_for(SOON, "an event of eth1", || {
        up = !up;
        link.carrier(up).expect("pulls or plugs");
        while let Ok(line) = events.recv_timeout(Duration::from_millis(500)) {
            let event: EventRecord = serde_json::from_str(&line).expect("a record");
            if event.kind == EventKind::Member && event.reason == "no_carrier" {
                return Ok(event);
            }
        }
        Err("nothing")
    });
    let event = found.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((event.object.as_str(), event.bond.as_str()), ("eth1", BOND));
    assert_eq!((event.old.as_deref(), event.new.as_deref()), (Some("up"), Some("down")));
    let said = net.say("a", "monitor bond9");
    assert_eq!(said.code, 1);
    assert!(said.err.contains("bond9: no such bond"), "{said:?}");
}

#[test]
fn check_tells_what_is_in_the_way_and_what_is_not() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let said = net.say("a", "check --json");
    assert_eq!(said.code, 0, "{said:?}");
    let findings: Vec<FindingRecord> = serde_json::from_str(&said.out).expect("records");
    for object in ["eth0", "eth1", BOND] {
        let of = |finding: &&FindingRecord| finding.object == object && finding.severity == Severity::Ok;
        assert!(findings.iter().find(of).is_some(), "{object}: {findings:#?}");
    }
    let said = net.say("a", "check eth9");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("eth9"), "{said:?}");
}

/// How long systemd would wait for a sign of life, in microseconds.
const PATIENCE_US: &str = "200000";
/// How long the kernel's network lock is held, and a daemon that shows no life would have been killed many times.
const HELD: Duration = Duration::from_millis(1500);

/// A daemon under what it takes for systemd, which hears of it.
struct Service {
    socket: UnixDatagram,
    running: linkbraid_lab::Running,
}

impl Service {
    /// Starts it, and waits until it says that it is ready.
    #[track_caller]
    fn start(net: &Net) -> Self {
        let path = net.lab().folder().join("notify");
        let socket = UnixDatagram::bind(&path).expect("binds");
        socket.set_read_timeout(Some(SOON)).expect("sets");
        let mut command = net.host("a").linkbraid_command(daemon::binary().expect("linkbraid is built"));
        command.arg("daemon").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", PATIENCE_US);
        let running = linkbraid_lab::Running::start(command).expect("starts");
        let service = Self { socket, running };
        // On a busy machine the start takes longer than half of its patience.
        assert!(
            (0..100)
                .map(|_| service.next())
                .any(|said| said.contains("READY=1") && said.contains("STATUS=0 bonds"))
        );
        service
    }

    fn next(&self) -> String {
        let mut bytes = [0; 256];
        let n = self.socket.recv(&mut bytes).expect("hears of the daemon");
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    }
}

#[test]
fn systemd_hears_that_the_daemon_is_ready_and_lives() {
    let net = Net::up(Topology::symmetric(1, 1, None));
    let mut service = Service::start(&net);
    for _ in 0..5 {
        assert!(service.next().contains("WATCHDOG=1"));
    }
    service.running.signal(nix::sys::signal::Signal::SIGTERM).expect("it runs");
    wait_until(SOON, "its end", || service.running.ended().is_some(), |ended| *ended)
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn systemd_hears_that_the_daemon_lives_while_a_step_takes_long() {
    let net = Net::up(Topology::symmetric(1, 2, None));
    let service = Service::start(&net);
    std::thread::scope(|scope| {
        let held = linkbraid_netns_tests::HeldRtnl::take();
        let begun = Instant::now();
        let add = scope.spawn(|| net.ok("a", "bond add bond0 --member eth0,eth1"));
        let mut last = begun;
        let mut longest = Duration::ZERO;
        while begun.elapsed() < HELD {
            assert!(service.next().contains("WATCHDOG=1"));
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
        assert!(!add.is_finished(), "the kernel did not want the lock for it");
        drop(held);
        // Somebody has to listen all the time, as systemd does: the socket takes few messages. It shows what there is then.
        wait_until(SOON, "the bond in the status", || service.next(), |said| said.contains("STATUS=1 bond"))
            .unwrap_or_else(|e| panic!("{e}"));
        while !add.is_finished() {
            service.next();
        }
        add.join().expect("is added");
        assert!(longest < HELD / 2, "no sign of life for {longest:?}");
    });
}
