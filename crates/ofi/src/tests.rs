mod killed;
mod pure;

use crate::{children, limits::*, open};
use linkbraid_fabric::{Address, Armed, Bytes, Join, Refused, Taken, Transport, limits::*};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sched::{CloneFlags, unshare},
    sys::resource::{UsageWho, getrusage},
};
use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(30);

/// Providers of Debian's libfabric1 that need no hardware. `tcp` is `tcp;ofi_rxm` before libfabric 1.18.
const PROVIDERS: [&str; 2] = ["net", "tcp"];

type Port = Box<dyn Transport>;

/// A directory of nodes in a network namespace of this thread, and a provider.
struct Net {
    provider: &'static str,
    directory: PathBuf,
    nodes: u16,
}

impl Net {
    fn new(provider: &'static str, nodes: u16) -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        unshare(CloneFlags::CLONE_NEWNET).expect("these tests need root");
        let done = children::run(Command::new("ip").args(["link", "set", "lo", "up"]));
        assert!(done.status.success());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("linkbraid-ofi-{}-{number}", std::process::id()));
        let line = |node| format!("{node} 127.0.0.1:{}\n", 7400 + node * 8);
        fs::write(&directory, (0..nodes).map(line).collect::<String>()).expect("there is room");
        Self { provider, directory, nodes }
    }

    fn try_node(&self, node: u16, queues: u16) -> linkbraid_fabric::Result<Vec<Port>> {
        let address: Address =
            format!("ofi:{},{}", self.provider, self.directory.display()).parse().expect("well formed");
        let _no_child = children::none_starting();
        open(&address, &Join { node, nodes: self.nodes, queues })
    }

    fn node(&self, node: u16) -> Port {
        self.try_node(node, 1).unwrap_or_else(|error| panic!("{error} {:?}", error.hint)).remove(0)
    }

    fn pair(&self) -> (Port, Port) {
        (self.node(0), self.node(1))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.directory);
    }
}

fn frame(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + number * 13) as u8).collect()
}

fn take(port: &mut Port) -> Vec<(u16, Vec<u8>)> {
    let mut frames = Vec::new();
    port.receive(64, &mut |peer, bytes: Bytes<'_>| {
        frames.push((peer, bytes.to_vec()));
        Taken::Yes
    });
    frames
}

/// Sends as soon as there is room, while all ports are looked after; what came meanwhile is kept in `came`.
fn send(ports: &mut [&mut Port], from: usize, to: u16, frame: &[u8], came: &mut Vec<(u16, Vec<u8>)>) {
    let begun = Instant::now();
    let cut = frame.len().min(50);
    loop {
        match ports[from].send(to, &frame[..cut], &frame[cut..]) {
            Ok(()) => return,
            Err(refused) => assert_eq!(refused, Refused::Full),
        }
        assert!(begun.elapsed() < DEADLINE, "no room for {DEADLINE:?}");
        for port in ports.iter_mut() {
            port.flush();
            came.extend(take(port));
        }
    }
}

/// Takes frames at all ports until there are so many.
fn take_many(ports: &mut [&mut Port], count: usize, came: &mut Vec<(u16, Vec<u8>)>) {
    let begun = Instant::now();
    while came.len() < count {
        assert!(begun.elapsed() < DEADLINE, "{} of {count} frames came", came.len());
        for port in ports.iter_mut() {
            port.flush();
            came.extend(take(port));
        }
    }
}

fn cross(a: &mut Port, b: &mut Port, len: usize) {
    let (to, from) = (b.shape().node, a.shape().node);
    let sent = frame(len, len);
    let mut came = Vec::new();
    send(&mut [a, b], 0, to, &sent, &mut came);
    take_many(&mut [a, b], 1, &mut came);
    assert!(
        came == [(from, sent)],
        "{len} bytes: {:?}",
        came.iter().map(|(_, f)| f.len()).collect::<Vec<_>>()
    );
}

#[test]
fn frames_of_every_length_cross() {
    for provider in PROVIDERS {
        let net = Net::new(provider, 2);
        let (mut a, mut b) = net.pair();
        for len in [1, 41, 60, 1514, 4096, 9000, 16_000, 20_000, 65_000, FRAME_MAX] {
            cross(&mut a, &mut b, len);
            cross(&mut b, &mut a, len);
        }
        assert_eq!(a.send(1, &[0; 1], &[0; FRAME_MAX]), Err(Refused::Length));
        assert_eq!(a.send(0, &[1], &[]), Err(Refused::NoPeer));
        assert_eq!(a.send(2, &[1], &[]), Err(Refused::NoPeer));
        assert_eq!((a.stats(1).lost, b.stats(0).bad_record, b.stats(0).received), (0, 0, 10), "{provider}");
    }
}

#[test]
fn frames_of_all_nodes_come_whole_and_in_order() {
    for provider in PROVIDERS {
        let net = Net::new(provider, 3);
        let (mut a, mut b, mut c) = (net.node(0), net.node(1), net.node(2));
        let lens = [60, 64_000, 60, 1400, 20_000, 60, 3000, 1400, 65_000, 60];
        let mut came = Vec::new();
        for number in 0..400 {
            let sent = frame(number, lens[number % lens.len()]);
            send(&mut [&mut a, &mut b, &mut c], 0, 2, &sent, &mut came);
            send(&mut [&mut a, &mut b, &mut c], 1, 2, &sent, &mut came);
        }
        take_many(&mut [&mut a, &mut b, &mut c], 800, &mut came);
        for from in 0..2 {
            let of = came.iter().filter(|(peer, _)| *peer == from).map(|(_, bytes)| bytes);
            assert!(
                of.enumerate().all(|(at, bytes)| *bytes == frame(at, lens[at % lens.len()])),
                "{provider}"
            );
        }
        assert_eq!((a.stats(2).lost, b.stats(2).lost, c.stats(0).bad_record), (0, 0, 0));
    }
}

#[test]
fn a_peer_that_takes_nothing_fills_its_queue_and_loses_nothing() {
    for provider in PROVIDERS {
        let net = Net::new(provider, 2);
        let (mut a, mut b) = net.pair();
        cross(&mut a, &mut b, 100);
        let long = frame(1, FRAME_MAX);
        let (begun, mut sent, mut refused) = (Instant::now(), 0, 0);
        while refused < 1000 && begun.elapsed() < DEADLINE {
            match a.send(1, &[], &long) {
                Ok(()) => (sent, refused) = (sent + 1, 0),
                Err(cause) => {
                    assert_eq!(cause, Refused::Full);
                    refused += 1;
                }
            }
            a.flush();
            b.receive(1, &mut |_, _| Taken::Later);
            a.arm(&[1]);
            a.disarm();
        }
        let window = usize::from(WINDOW);
        assert!((window..=2 * window).contains(&sent), "{sent} frames of {provider}");
        assert_eq!(b.arm(&[]), Armed::Ready);
        let mut came = Vec::new();
        take_many(&mut [&mut a, &mut b], sent, &mut came);
        assert!(came.iter().all(|(_, bytes)| *bytes == long));
        cross(&mut a, &mut b, 100);
        assert_eq!(a.stats(1).lost, 0);
    }
}

#[test]
fn a_node_that_starts_anew_or_late_is_heard() {
    for provider in PROVIDERS {
        let net = Net::new(provider, 2);
        let mut a = net.node(0);
        assert_eq!(a.send(1, &[1], &[]), Err(Refused::Full));
        for round in 0..4 {
            let mut b = net.node(1);
            let begun = Instant::now();
            // Until it hears of the new one, the other sends to the one before.
            cross(&mut b, &mut a, 40_000);
            cross(&mut a, &mut b, 100);
            assert!(begun.elapsed() < Duration::from_secs(15), "{provider}: {:?}", begun.elapsed());
            if round % 2 == 1 {
                drop(b);
                // What is sent to one that is gone is lost, but no more than that.
                for _ in 0..50 {
                    let _ = a.send(1, &[], &[7; 1000]);
                    a.flush();
                    take(&mut a);
                }
                a.reset(1);
            }
        }
    }
}

#[test]
fn a_reset_forgets_what_waits_and_goes_on() {
    for provider in PROVIDERS {
        let net = Net::new(provider, 2);
        let (mut a, mut b) = net.pair();
        cross(&mut a, &mut b, 100);
        for _ in 0..20 {
            let sent = a.send(1, &[], &frame(3, 60_000));
            assert!(sent.is_ok() || sent == Err(Refused::Full));
            a.flush();
            b.receive(1, &mut |_, _| Taken::Later);
        }
        a.reset(1);
        b.reset(0);
        // What was under way comes yet.
        let begun = Instant::now();
        let last = frame(9, 333);
        let mut came = Vec::new();
        send(&mut [&mut a, &mut b], 0, 1, &last, &mut came);
        while came.last().is_none_or(|(_, bytes)| *bytes != last) {
            assert!(begun.elapsed() < DEADLINE, "{provider}");
            a.flush();
            came.extend(take(&mut a));
            came.extend(take(&mut b));
        }
    }
}

#[test]
fn queues_are_apart() {
    let net = Net::new("net", 2);
    let (mut a, mut b) = (net.try_node(0, 2).unwrap(), net.try_node(1, 2).unwrap());
    for queue in 0..2 {
        cross(&mut a[queue], &mut b[queue], 100 + queue);
    }
}

#[test]
fn a_sleeper_is_woken_and_an_idle_one_costs_little() {
    for provider in PROVIDERS {
        let net = Net::new(provider, 2);
        let (mut a, mut b) = net.pair();
        cross(&mut a, &mut b, 100);
        cross(&mut b, &mut a, 100);
        let sleep = |port: &mut Port| {
            if let Armed::Sleep(at_most) = port.arm(&[]) {
                let at_most = at_most.min(Duration::from_millis(20));
                let timeout = PollTimeout::try_from(at_most.max(Duration::from_millis(1))).unwrap();
                let mut fds: Vec<_> =
                    port.wake_fd().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).into_iter().collect();
                poll(&mut fds, timeout).unwrap();
            }
            port.disarm();
            take(port)
        };
        let (begun, before) = (Instant::now(), used());
        while begun.elapsed() < Duration::from_secs(1) {
            assert!(sleep(&mut a).is_empty() && sleep(&mut b).is_empty());
        }
        let share = (used() - before).as_secs_f64() / begun.elapsed().as_secs_f64();
        println!(
            "{provider}: two idle queues take {:.2} % (wait object: {})",
            share * 100.0,
            a.wake_fd().is_some()
        );
        assert!(share < 0.1, "{provider}: {share}");
        let begun = Instant::now();
        a.send(1, &[], &[5; 64]).unwrap();
        a.flush();
        while sleep(&mut b).is_empty() {
            assert!(begun.elapsed() < DEADLINE, "{provider}");
            a.receive(1, &mut |_, _| Taken::Later);
        }
    }
}

/// Processor time of this thread.
fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("known to Linux");
    let time = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64)
    };
    time(usage.user_time()) + time(usage.system_time())
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let refusal = |text: &str| match text.parse::<Address>() {
        Err(error) => error.to_string(),
        Ok(address) => match open(&address, &Join { node: 0, nodes: 2, queues: 1 }) {
            Err(error) => format!("{error}; {}", error.hint.as_deref().unwrap_or_default()),
            Ok(_) => panic!("not refused"),
        },
    };
    for (text, cause) in [
        ("ofi:tcp", "it is not ofi:PROVIDER,FILE"),
        ("ofi:,/x", "it names no provider"),
        ("ofi:shm,/x", "with libfabric's 'shm' a process that is killed can make the others hang"),
        ("ofi:tcp,x", "'x' is not an absolute path"),
    ] {
        assert_eq!(refusal(text), format!("{text}: cannot use this transport: {cause}"));
    }
    assert!(
        refusal("ofi:tcp,/nowhere/x").starts_with("/nowhere/x: cannot read the directory: it does not exist")
    );
    let net = Net::new("nonsense", 2);
    let error = net.try_node(0, 1).err().expect("refused");
    assert!(
        error.cause.starts_with("libfabric has no provider 'nonsense' with reliable messages; there are '")
    );
    assert!(error.cause.contains("tcp"), "{error}");
    assert!(error.hint.expect("there is one").starts_with("--transport ofi:"));
    let net = Net::new("tcp", 2);
    fs::write(&net.directory, "0 198.18.99.1:7400\n1 198.18.99.2:7400\n").unwrap();
    let error = net.try_node(0, 1).err().expect("refused");
    assert!(error.to_string().contains("198.18.99.1"), "{error}");
}
