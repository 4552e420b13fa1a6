mod killed;
mod lost;
mod refusals;

use crate::{Address, Armed, Error, Join, Layout, Refused, Taken, Transport, limits::*};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    fs,
    os::unix::fs::{FileExt, MetadataExt},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(20);

/// A name in shared memory that nobody else has; what is left of it goes with it.
struct Name(PathBuf);

impl Name {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(PathBuf::from(format!("/dev/shm/linkbraid-test-{}-{number}", std::process::id())))
    }

    fn address(&self) -> String {
        format!("shm:{}", self.0.display())
    }

    fn files(&self) -> Vec<PathBuf> {
        let name = self.0.to_str().expect("a plain name");
        let all = fs::read_dir("/dev/shm").expect("there is one").flatten().map(|entry| entry.path());
        all.filter(|path| path.to_str().is_some_and(|path| path.starts_with(name))).collect()
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.files().iter().for_each(|file| drop(fs::remove_file(file)));
    }
}

fn join(node: u16, nodes: u16, queues: u16) -> Join {
    Join { node, nodes, queues }
}

fn open(address: &str, join: Join) -> Result<Vec<Box<dyn Transport>>, Error> {
    address.parse::<Address>()?.open(&join)
}

/// A node with one queue.
fn node(address: &str, node: u16, nodes: u16) -> Box<dyn Transport> {
    open(address, join(node, nodes, 1)).unwrap_or_else(|error| panic!("{error}")).remove(0)
}

fn refusal(address: &str, join: Join) -> String {
    match open(address, join) {
        Ok(_) => panic!("not refused"),
        Err(error) => error.to_string(),
    }
}

fn take(port: &mut Box<dyn Transport>) -> Vec<(u16, Vec<u8>)> {
    let mut frames = Vec::new();
    while port.receive(64, &mut |peer, bytes| {
        frames.push((peer, bytes.to_vec()));
        Taken::Yes
    }) > 0
    {}
    frames
}

fn woken(port: &dyn Transport, timeout: Duration) -> bool {
    let fd = port.wake_fd().expect("wake-ups cross");
    let timeout = PollTimeout::try_from(timeout).expect("short");
    poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout).expect("poll works") == 1
}

#[test]
fn frames_reach_the_node_and_queue_they_are_for() {
    let name = Name::new();
    let mut nodes: Vec<_> = (0..3).map(|node| open(&name.address(), join(node, 3, 2)).unwrap()).collect();
    for from in 0..3u16 {
        for queue in 0..2u16 {
            let port = &mut nodes[usize::from(from)][usize::from(queue)];
            assert_eq!((port.shape().node, port.shape().nodes, port.shape().queue), (from, 3, queue));
            for to in 0..4 {
                let sent = port.send(to, &[from as u8, to as u8], &[queue as u8]);
                let expected = if to == from || to == 3 { Err(Refused::NoPeer) } else { Ok(()) };
                assert_eq!(sent, expected);
            }
            port.flush();
        }
    }
    for to in 0..3u16 {
        for queue in 0..2u16 {
            let got = take(&mut nodes[usize::from(to)][usize::from(queue)]);
            let peers = (0..3).filter(|from| *from != to);
            let expected: Vec<_> =
                peers.map(|from| (from, vec![from as u8, to as u8, queue as u8])).collect();
            assert_eq!(got, expected);
        }
    }
}

#[test]
fn a_full_queue_refuses_and_says_when_there_is_room() {
    let name = Name::new();
    let (mut a, mut b) = (node(&name.address(), 0, 2), node(&name.address(), 1, 2));
    let frame = vec![5; FRAME_MAX];
    let mut sent = 0;
    while a.send(1, &[], &frame) == Ok(()) {
        sent += 1;
    }
    assert!(sent >= 6, "{sent}");
    assert_eq!((a.stats(1).sent, a.stats(1).full), (sent, 1));
    assert_eq!(a.arm(&[1]), Armed::Sleep(SLEEP_MAX));
    assert!(!woken(&*a, Duration::ZERO));
    assert_eq!(take(&mut b).len() as u64, sent);
    assert!(woken(&*a, DEADLINE));
    a.disarm();
    assert!(!woken(&*a, Duration::ZERO), "disarm takes the wake-up off");
    assert_eq!(a.send(1, &[], &frame), Ok(()));
}

#[test]
fn who_sleeps_is_woken_and_who_does_not_is_not() {
    let name = Name::new();
    let (mut a, mut b) = (node(&name.address(), 0, 2), node(&name.address(), 1, 2));
    a.send(1, b"early", b"").unwrap();
    a.flush();
    assert_eq!(b.arm(&[]), Armed::Ready);
    b.disarm();
    assert_eq!(take(&mut b).len(), 1);
    assert_eq!(a.stats(1).wakes, 0);

    assert_eq!(b.arm(&[]), Armed::Sleep(SLEEP_MAX));
    for _ in 0..3 {
        a.send(1, b"late", b"").unwrap();
        a.flush();
    }
    assert!(woken(&*b, DEADLINE));
    assert_eq!(a.stats(1).wakes, 1, "one wake-up a sleep");
    b.disarm();
    assert_eq!(take(&mut b).len(), 3);
    assert!(!woken(&*b, Duration::ZERO));
}

#[test]
fn what_is_not_taken_stays_and_goes_first() {
    let name = Name::new();
    let mut ports: Vec<_> = (0..3).map(|number| node(&name.address(), number, 3)).collect();
    ports[1].send(0, b"one", b"").unwrap();
    ports[2].send(0, b"two", b"").unwrap();
    assert_eq!(ports[0].receive(8, &mut |_, _| Taken::Later), 0);
    assert_eq!(take(&mut ports[0]), [(1, b"one".to_vec()), (2, b"two".to_vec())]);
}

#[test]
fn peers_take_turns() {
    let name = Name::new();
    let mut ports: Vec<_> = (0..3).map(|number| node(&name.address(), number, 3)).collect();
    for _ in 0..200 {
        ports[1].send(0, b"busy", b"").unwrap();
    }
    ports[2].send(0, b"quiet", b"").unwrap();
    let mut seen = false;
    ports[0].receive(PEER_BURST + 1, &mut |peer, _| {
        seen |= peer == 2;
        Taken::Yes
    });
    assert!(seen);
}

#[test]
fn a_reset_drops_what_waits() {
    let name = Name::new();
    let (mut a, mut b) = (node(&name.address(), 0, 2), node(&name.address(), 1, 2));
    a.send(1, b"old", b"").unwrap();
    b.reset(0);
    a.send(1, b"new", b"").unwrap();
    assert_eq!(take(&mut b), [(0, b"new".to_vec())]);
}

#[test]
fn memory_is_as_the_formula_says_and_reserved() {
    let cases = [(2, 1, 2 << 20), (3, 2, 2 << 20), (3, 3, 1 << 20), (6, 1, 1 << 20), (16, 1, 512 << 10)];
    for (nodes, queues, ring) in cases {
        let name = Name::new();
        let _node = open(&name.address(), join(0, nodes, queues)).unwrap();
        let pairs = u64::from(queues) * u64::from(nodes - 1);
        let a_node = (pairs * 256).next_multiple_of(4096) + pairs * ring;
        let layout = Layout::new(nodes, queues, ring).expect("in range");
        assert_eq!(layout.node_bytes(), a_node);
        let file = fs::metadata(&name.0).unwrap();
        assert_eq!(file.len(), 4096 + u64::from(nodes) * a_node);
        assert!(file.blocks() * 512 >= file.len(), "all of it is there");
        assert_eq!(file.mode() & 0o777, 0o600);
    }
}

/// What a node says before it joins and after, whose memory was made by others.
#[test]
fn memory_is_said_as_it_is_there() {
    let name = Name::new();
    let total = |address: &str, nodes| {
        address.parse::<Address>().unwrap().memory(&join(1, nodes, 1)).map(|memory| memory.total)
    };
    let of = |ring| Layout::new(2, 1, ring).map(|layout| layout.total_bytes());
    assert_eq!(total(&name.address(), 2), of(2 << 20));
    assert_eq!(total(&name.address(), 1), None);
    let asked = format!("{},ring=4M", name.address());
    assert_eq!(total(&asked, 2), of(4 << 20));
    let _maker = node(&asked, 0, 2);
    assert_eq!(total(&name.address(), 2), of(4 << 20));
    let device = Name::new();
    fs::File::create(&device.0).unwrap().set_len(2 << 20).unwrap();
    assert_eq!(total(&format!("{},fixed", device.address()), 2), of(512 << 10));
    let _maker = node(&format!("{},fixed,ring=256k", device.address()), 0, 2);
    assert_eq!(total(&format!("{},fixed", device.address()), 2), of(256 << 10));
}

#[test]
fn the_last_one_removes_everything() {
    let name = Name::new();
    let a = node(&name.address(), 0, 2);
    let b = node(&name.address(), 1, 2);
    assert_eq!(name.files().len(), 3);
    drop(a);
    assert_eq!(name.files().len(), 3);
    let again = node(&name.address(), 0, 2);
    drop((b, again));
    assert_eq!(name.files(), Vec::<PathBuf>::new());
}

#[test]
fn nodes_may_all_come_at_once() {
    for _ in 0..10 {
        let name = Name::new();
        let address = name.address();
        let mut ports: Vec<_> = std::thread::scope(|scope| {
            let joins = (0..8).map(|number| {
                let address = &address;
                scope.spawn(move || node(address, number, 8))
            });
            let joins: Vec<_> = joins.collect();
            joins.into_iter().map(|join| join.join().expect("it joins")).collect()
        });
        for from in 0..8u16 {
            (0..8).filter(|to| *to != from).for_each(|to| {
                ports[usize::from(from)].send(to, &[from as u8], &[]).unwrap();
            });
        }
        for (to, port) in ports.iter_mut().enumerate() {
            let from: Vec<_> = take(port).into_iter().map(|(from, _)| from).collect();
            assert_eq!(from, (0..8).filter(|from| usize::from(*from) != to).collect::<Vec<_>>());
        }
    }
}

#[test]
fn nodes_may_come_and_go_all_the_time() {
    let name = Name::new();
    let address = name.address();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let address = &address;
            scope.spawn(move || (0..50).for_each(|_| drop(node(address, number, 4))));
        }
    });
    assert_eq!(name.files(), Vec::<PathBuf>::new());
}

#[test]
fn fixed_memory_is_shared_without_locks_or_wake_ups() {
    let name = Name::new();
    let address = format!("{},fixed", name.address());
    let file = fs::File::create_new(&name.0).unwrap();
    file.set_len(1 << 20).unwrap();
    assert!(
        refusal(&address, join(0, 16, 1))
            .contains("it has 1048576 bytes; node count 16 and queue count 1 need ")
    );
    let (mut a, mut b) = (node(&address, 0, 2), node(&address, 1, 2));
    assert!(a.wake_fd().is_none());
    a.send(1, b"frame", b"").unwrap();
    a.flush();
    assert_eq!(take(&mut b), [(0, b"frame".to_vec())]);
    let naps: Vec<_> = (0..20).map(|_| b.arm(&[])).collect();
    assert_eq!((naps[0], naps[1]), (Armed::Sleep(NAP_MIN), Armed::Sleep(NAP_MIN * 3 / 2)));
    assert_eq!(naps[19], Armed::Sleep(NAP_MAX));
    b.send(0, b"the session's", b"").unwrap();
    assert_eq!(b.arm(&[]), Armed::Sleep(NAP_MAX));
    b.send(0, b"head", b"frame").unwrap();
    assert_eq!(b.arm(&[]), Armed::Sleep(NAP_MIN));
    a.send(1, b"frame", b"").unwrap();
    assert_eq!(b.arm(&[]), Armed::Ready);
    take(&mut b);
    assert_eq!(b.arm(&[]), Armed::Sleep(NAP_MIN));
    assert!(
        refusal(&address, join(0, 3, 1))
            .contains("it was made with node count 2, this node has node count 3")
    );
    drop((a, b));
    assert_eq!(name.files().len(), 1, "it was not ours to remove");
    file.write_all_at(b"a letter", 0).unwrap();
    assert!(refusal(&address, join(0, 2, 1)).contains("it holds something else"));
}

#[test]
fn two_that_leave_at_once_leave_nothing() {
    let name = Name::new();
    for _ in 0..2_000 {
        let both = [0, 1].map(|number| node(&name.address(), number, 2));
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for node in both {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    drop(node);
                });
            }
        });
        assert_eq!(name.files(), Vec::<PathBuf>::new());
    }
}
