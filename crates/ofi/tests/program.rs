//! The program as the daemon runs it; needs root and libfabric.

use linkbraid_fabric::{
    Address, Join, Program, Remote,
    engine::{Config, Control, ControlMessage, Counter, Poll, Port as _, TapPort, derive_mac},
};
use linkbraid_wire::fabric::{Header, Kind};
use nix::{
    sched::{CloneFlags, unshare},
    sys::socket::{AddressFamily, SockFlag, SockType, socketpair},
};
use std::{
    fs,
    os::fd::OwnedFd,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(20);
const JOIN: Join = Join { node: 0, nodes: 2, queues: 1 };
/// Bytes of a virtio header.
const VIRTIO: usize = 12;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_linkbraid-ofi"))
}

/// A directory of two nodes, in a network namespace of this thread.
struct Net(PathBuf);

impl Net {
    fn new(test: &str) -> Self {
        unshare(CloneFlags::CLONE_NEWNET).expect("these tests need root");
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("it runs");
        assert!(up.success());
        let path = std::env::temp_dir().join(format!("linkbraid-{test}-{}", std::process::id()));
        fs::write(&path, "0 127.0.0.1:7400\n1 127.0.0.1:7408\n").expect("there is room");
        Self(path)
    }

    fn address(&self) -> Address {
        format!("ofi:tcp,{}", self.0.display()).parse().expect("well formed")
    }

    fn node(&self, node: u16) -> Remote {
        let join = Join { node, ..JOIN };
        Remote::start(program(), &self.address(), &join).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A node, with a socket in the place of its interface's queue.
struct Node {
    control: Control,
    program: Program,
    port: TapPort<OwnedFd>,
}

impl Node {
    fn start(remote: Remote, epoch: u64) -> Self {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let (port, queue) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).expect("a pair");
        let config = Config { poll: Poll::Sleep, ..Config::default() };
        let (control, program) = remote.run(config, epoch, vec![queue]).expect("it runs");
        Self { control, program, port: TapPort::new(port) }
    }
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < DEADLINE, "{what}");
        sleep(Duration::from_millis(2));
    }
}

#[test]
fn frames_cross_between_two_programs_until_they_are_told_to_end() {
    let net = Net::new("ofi-frames");
    let (mut a, mut b) = (Node::start(net.node(0), 10), Node::start(net.node(1), 11));
    a.control.set_link(1, Some(11));
    b.control.set_link(0, Some(10));
    let mut frame = vec![0; VIRTIO];
    frame.extend(derive_mac(0, 1));
    frame.extend(derive_mac(0, 0));
    frame.extend([0x88, 0xb5]);
    frame.extend([7; 100]);
    let mut buffer = [0; 2048];
    let mut crossed = |from: &mut Node, to: &mut Node| {
        wait_for("a frame", || {
            // Until the two know each other it is dropped.
            from.port.write(&frame, linkbraid_fabric::Bytes::new(&[])).expect("there is room");
            sleep(Duration::from_millis(20));
            matches!(to.port.read(&mut buffer), Ok(Some(len)) if len == frame.len())
        });
        assert_eq!(buffer[VIRTIO..frame.len()], frame[VIRTIO..]);
    };
    crossed(&mut a, &mut b);
    let counters = |node: &Node, peer| {
        let shared = node.control.shared();
        (shared.total(peer, Counter::TxFrames), shared.total(peer, Counter::RxFrames))
    };
    assert!(counters(&a, 1).0 > 0, "what the program counts is seen here");
    assert!(counters(&b, 0).1 > 0);
    a.control.stop();
    a.program.end();
    assert!(a.program.wait().expect("it ends").success());
}

#[test]
fn control_messages_cross_and_a_killed_program_is_noticed() {
    let net = Net::new("ofi-control");
    let (a, b) = (Node::start(net.node(0), 10), Node::start(net.node(1), 11));
    let header = Header {
        kind: Kind::Control,
        sender: 0,
        receiver: 1,
        stream: 0,
        sender_epoch: 10,
        receiver_epoch: 0,
        sequence: 0,
        length: 32,
    };
    let header = [&header.emit()[..], &[7; 32]].concat();
    let message = ControlMessage::new(1, &header).expect("short enough");
    let mut came = None;
    wait_for("a message", || {
        a.control.send(message);
        sleep(Duration::from_millis(20));
        came = b.control.receive();
        came.is_some()
    });
    let came = came.expect("it came");
    assert_eq!((came.peer(), came.bytes()), (0, message.bytes()));
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(b.program.id().cast_signed()),
        nix::sys::signal::Signal::SIGABRT,
    )
    .expect("it runs");
    assert_eq!(b.program.wait().expect("it ended").signal(), Some(nix::libc::SIGABRT));
    assert!(a.program.id() > 0, "the other one goes on");
}

#[test]
fn it_has_no_privilege_and_ends_with_who_started_it() {
    let net = Net::new("ofi-privileges");
    let remote = net.node(0);
    let process = fs::read_dir("/proc/self/task").expect("read").flatten().find_map(|task| {
        let children = fs::read_to_string(task.path().join("children")).ok()?;
        children.split_whitespace().next().map(str::to_owned)
    });
    let process = process.expect("it runs");
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("read");
    let value = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).expect("it is there");
        line.split_whitespace().nth(1).expect("a value").to_owned()
    };
    for name in ["CapEff:", "CapPrm:", "CapInh:"] {
        let capabilities = u64::from_str_radix(&value(name), 16).expect("a number");
        assert_eq!(capabilities & !(1 << 14), 0, "{name} {capabilities:x}");
    }
    assert_eq!(value("NoNewPrivs:"), "1");
    drop(remote);
    wait_for("its end", || !Path::new(&format!("/proc/{process}")).exists());
}

#[test]
fn what_cannot_be_is_said_in_the_words_of_the_transport() {
    let nowhere: Address = "ofi:tcp,/nowhere/nodes".parse().expect("well formed");
    let error = Remote::start(program(), &nowhere, &JOIN).expect_err("refused");
    assert_eq!(error.to_string(), "/nowhere/nodes: cannot read the directory: it does not exist");
    let error = Remote::start(Path::new("/nowhere/program"), &nowhere, &JOIN).expect_err("refused");
    assert_eq!(error.to_string(), "ofi:tcp,/nowhere/nodes: cannot run '/nowhere/program': it does not exist");
    let error = Remote::start(Path::new("/bin/true"), &nowhere, &JOIN).expect_err("refused");
    assert!(error.cause.starts_with("it ended at once"), "{error}");
}
