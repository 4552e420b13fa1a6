use crate::{Address, Armed, Error, Join, Layout, Refused, Taken, Transport, limits::*};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::stat::Mode,
    unistd::{Gid, Uid},
};
use std::{
    fs,
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
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
    for (nodes, queues) in [(2u16, 1u16), (3, 2), (16, 1)] {
        let name = Name::new();
        let _node = open(&name.address(), join(0, nodes, queues)).unwrap();
        let pairs = u64::from(queues) * u64::from(nodes - 1);
        let a_node = (pairs * 256).next_multiple_of(4096) + pairs * RING_BYTES;
        let layout = Layout::new(nodes, queues, RING_BYTES).expect("in range");
        assert_eq!(layout.node_bytes(), a_node);
        let file = fs::metadata(&name.0).unwrap();
        assert_eq!(file.len(), 4096 + u64::from(nodes) * a_node);
        assert!(file.blocks() * 512 >= file.len(), "all of it is there");
        assert_eq!(file.mode() & 0o777, 0o600);
    }
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
fn numbers_out_of_range_are_refused() {
    let name = Name::new();
    let address = name.address();
    let cases = [
        (join(2, 2, 1), "node 2 is outside the range 0 to 1 of 2 nodes"),
        (join(0, 1, 1), "node count 1 is outside the allowed range 2 to 512"),
        (join(0, 513, 1), "node count 513 is outside the allowed range 2 to 512"),
        (join(0, 2, 0), "queue count 0 is outside the allowed range 1 to 64"),
        (join(0, 2, 65), "queue count 65 is outside the allowed range 1 to 64"),
    ];
    for (join, cause) in cases {
        assert_eq!(refusal(&address, join), format!("{address}: cannot join: {cause}"));
    }
    assert!(name.files().is_empty());
}

#[test]
fn bad_addresses_are_refused() {
    let cases = [
        ("smoke:/x", "there is no transport 'smoke'"),
        ("shm", "'' is not an absolute path"),
        ("shm:x", "'x' is not an absolute path"),
        ("shm:/x,ring=5", "ring size '5' is not a power of two from 262144 to 67108864"),
        ("shm:/x,ring=1000k", "ring size '1000k' is not"),
        ("shm:/x,fast", "there is no option 'fast'"),
    ];
    for (address, cause) in cases {
        let error = address.parse::<Address>().expect_err(address);
        assert!(error.cause.contains(cause), "{error}");
        assert_eq!((error.object.as_str(), error.what.as_str()), (address, "cannot use this transport"));
    }
}

#[test]
fn nodes_that_disagree_are_refused() {
    let name = Name::new();
    let address = name.address();
    let _a = node(&address, 0, 2);
    let larger = format!("{address},ring=1M");
    let cases = [
        (&address, join(0, 2, 1), "another process is node 0 of it"),
        (&address, join(1, 4, 1), "it was made with node count 2, this node has node count 4"),
        (&address, join(1, 2, 3), "it was made with queue count 1, this node has queue count 3"),
        (&larger, join(1, 2, 1), "it was made with ring size 524288, this node has ring size 1048576"),
    ];
    for (address, join, cause) in cases {
        assert_eq!(refusal(address, join), format!("{address}: cannot join: {cause}"));
    }
    let _b = node(&address, 1, 2);
}

#[test]
fn files_that_cannot_be_are_refused_and_left_alone() {
    let name = Name::new();
    let address = name.address();
    let original = {
        let _node = node(&address, 0, 2);
        fs::read(&name.0).unwrap()
    };
    let refused = |cause: &str| {
        let text = refusal(&address, join(0, 2, 1));
        assert!(text.starts_with(&format!("{address}: cannot join: ")) && text.contains(cause), "{text}");
        assert!(fs::symlink_metadata(&name.0).is_ok(), "{cause}");
    };
    let file = fs::File::create_new(&name.0).unwrap();
    fs::set_permissions(&name.0, fs::Permissions::from_mode(0o600)).unwrap();
    refused("the file has 0 bytes and is no fabric's");
    file.write_all_at(b"a letter", 0).unwrap();
    file.set_len(10_000).unwrap();
    refused("the file is no fabric's");
    file.set_len(0).unwrap();
    file.write_all_at(&original, 0).unwrap();
    file.set_len(8192).unwrap();
    refused("the file has 8192 bytes, its header says ");
    file.write_all_at(&original, 0).unwrap();
    file.write_all_at(&u64::to_ne_bytes(7), 8).unwrap();
    refused("the file is of version 7, this is version 1");
    file.write_all_at(&original, 0).unwrap();
    file.write_all_at(&u64::to_ne_bytes(70_000), 16).unwrap();
    refused("the header of the file makes no sense");
    file.write_all_at(&original, 0).unwrap();
    fs::set_permissions(&name.0, fs::Permissions::from_mode(0o620)).unwrap();
    refused("others may write to the file (mode 620)");
    fs::set_permissions(&name.0, fs::Permissions::from_mode(0o600)).unwrap();
    if nix::unistd::geteuid().is_root() {
        nix::unistd::chown(&name.0, Some(Uid::from_raw(1)), None::<Gid>).unwrap();
        refused("the file belongs to user 1, this is user 0");
        nix::unistd::chown(&name.0, Some(Uid::from_raw(0)), None::<Gid>).unwrap();
    }
    fs::remove_file(&name.0).unwrap();
    std::os::unix::fs::symlink("/dev/shm/linkbraid-test-none", &name.0).unwrap();
    refused("it is a symbolic link");
    fs::remove_file(&name.0).unwrap();
    nix::unistd::mkfifo(&name.0, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    refused("it is not an ordinary file");
    fs::remove_file(&name.0).unwrap();
    fs::write(&name.0, &original).unwrap();
    fs::set_permissions(&name.0, fs::Permissions::from_mode(0o600)).unwrap();
    // What a crash of all left behind, here of another shape, is made anew.
    let _node = node(&address, 0, 3);
}

#[test]
fn no_room_is_said_and_leaves_nothing() {
    let name = Name::new();
    let address = format!("{},ring=64M", name.address());
    let text = refusal(&address, join(0, 512, 64));
    assert!(
        text.contains("cannot make the shared memory: node count 512 and queue count 64 need "),
        "{text}"
    );
    assert!(text.ends_with("there is no room for it"), "{text}");
    assert!(name.files().is_empty());
}

#[test]
fn a_folder_that_is_not_there_is_said() {
    let text = refusal("shm:/dev/shm/linkbraid-none/fabric", join(0, 2, 1));
    assert!(text.ends_with("cannot make the shared memory: it does not exist"), "{text}");
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
    assert_eq!((naps[0], naps[1]), (Armed::Sleep(NAP_MIN), Armed::Sleep(NAP_MIN * 2)));
    assert_eq!(naps[19], Armed::Sleep(NAP_MAX));
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

/// What the process of [`a_killed_node_harms_nobody`] does.
#[test]
#[ignore = "a part of another test"]
fn node_that_is_killed() {
    let address = std::env::var("LINKBRAID_TEST_ADDRESS").expect("set by the other test");
    let epoch: u8 = std::env::var("LINKBRAID_TEST_EPOCH").expect("set by the other test").parse().unwrap();
    let mut port = node(&address, 1, 2);
    let mut number = 0u32;
    loop {
        let body = vec![number as u8; (number as usize * 7919) % 9000];
        if port.send(0, &[&[epoch][..], &number.to_ne_bytes()].concat(), &body).is_ok() {
            number += 1;
        }
        port.flush();
        take(&mut port);
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

#[test]
fn a_killed_node_harms_nobody() {
    let name = Name::new();
    let mut port = node(&name.address(), 0, 2);
    for epoch in 0..20u8 {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shm::tests::node_that_is_killed", "--ignored"])
            .env("LINKBRAID_TEST_ADDRESS", name.address())
            .env("LINKBRAID_TEST_EPOCH", epoch.to_string())
            .stdout(Stdio::null())
            .spawn();
        let child = Killed(child.unwrap());
        let begun = Instant::now();
        let mut next = 0u32;
        // Killed after another number of frames each time, in the middle of whatever it does then.
        while next < 500 + 37 * u32::from(epoch) {
            assert!(begun.elapsed() < DEADLINE, "epoch {epoch}: {next} frames");
            port.receive(16, &mut |peer, bytes| {
                let frame = bytes.to_vec();
                // The last frames of the one before come first.
                if frame[0] == epoch {
                    let number = u32::from_ne_bytes(frame[1..5].try_into().unwrap());
                    assert_eq!((peer, number, frame.len()), (1, next, 5 + (next as usize * 7919) % 9000));
                    assert!(frame[5..].iter().all(|byte| *byte == next as u8), "whole");
                    next += 1;
                } else {
                    assert_eq!(frame[0], epoch.wrapping_sub(1));
                }
                Taken::Yes
            });
            let _ = port.send(1, b"to a node that may be dead", &[]);
            port.flush();
        }
        drop(child);
    }
    let stats = port.stats(1);
    assert_eq!((stats.bad_position, stats.bad_record), (0, 0));
}
