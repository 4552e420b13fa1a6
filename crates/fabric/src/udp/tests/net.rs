mod encrypted;

use super::{frame, pieces};
use crate::{
    Address, Armed, Bytes, Join, Look, Refused, Taken, Transport,
    limits::{FRAME_MAX, SOCKET_SLEEP_MAX},
    udp::piece::HEAD,
};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sched::{CloneFlags, setns, unshare},
    sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket},
};
use std::{
    fs::{self, File},
    net::{SocketAddrV4, UdpSocket},
    os::fd::AsRawFd,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(20);

/// Two namespaces joined by a cable, and a directory with a node in each; both go when this does.
struct Net {
    spaces: [File; 2],
    directory: PathBuf,
}

/// Addresses of the two nodes.
const V4: [&str; 2] = ["198.18.7.1", "198.18.7.2"];
const V6: [&str; 2] = ["2001:db8:7::1", "2001:db8:7::2"];
const PORT: u16 = 7400;

fn run(command: &str) {
    let words: Vec<_> = command.split(' ').collect();
    let done = Command::new(words[0]).args(&words[1..]).output().expect("it runs");
    assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Runs something in a namespace of its own thread.
fn within<T: Send>(space: &File, what: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setns(space, CloneFlags::CLONE_NEWNET).expect("root may");
            what()
        });
        thread.join().expect("it ends")
    })
}

impl Net {
    fn new(mtu: usize, addresses: [&str; 2], queues: u16) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let space = || {
            let made = std::thread::spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).expect("these tests need root");
                run("ip link set lo up");
                File::open("/proc/thread-self/ns/net").expect("there is one")
            });
            made.join().expect("it ends")
        };
        let spaces = [space(), space()];
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let peer = format!("/proc/{}/fd/{}", std::process::id(), spaces[1].as_raw_fd());
        within(&spaces[0], || run(&format!("ip link add cable0 type veth peer name cable0 netns {peer}")));
        for (space, address) in spaces.iter().zip(addresses) {
            within(space, || {
                let (prefix, nodad) = if address.contains(':') { (64, " nodad") } else { (24, "") };
                run(&format!("ip address add {address}/{prefix} dev cable0{nodad}"));
                run(&format!("ip link set cable0 mtu {mtu} up"));
            });
        }
        let directory = std::env::temp_dir().join(format!("linkbraid-udp-{}-{number}", std::process::id()));
        let line = |(node, address): (usize, &str)| match address.contains(':') {
            true => format!("{node} [{address}]:{PORT}\n"),
            false => format!("{node} {address}:{PORT}\n"),
        };
        let text: String = addresses.into_iter().enumerate().map(line).collect();
        fs::write(&directory, text).expect("there is room");
        let net = Self { spaces, directory };
        // The cable carries once both ends say so.
        let begun = Instant::now();
        loop {
            let (mut a, mut b) = (net.node(0, queues, ""), net.node(1, queues, ""));
            a[0].send(1, b"hello", &[]).expect("there is room");
            a[0].flush();
            if wait(&*b[0], Duration::from_millis(50)) && !take(&mut b[0]).is_empty() {
                return net;
            }
            assert!(begun.elapsed() < DEADLINE, "the cable carries nothing");
        }
    }

    fn node(&self, node: u16, queues: u16, options: &str) -> Vec<Box<dyn Transport>> {
        let address: Address = format!("udp:{}{options}", self.directory.display()).parse().unwrap();
        let open = || {
            let begun = Instant::now();
            loop {
                match address.open(&Join { node, nodes: 2, queues }) {
                    Ok(ports) => return ports,
                    // A child that another test has just forked holds the sockets of before until it runs.
                    Err(error) if error.cause.contains("in use") && begun.elapsed() < DEADLINE => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        within(&self.spaces[usize::from(node)], open)
    }

    fn pair(&self, options: &str) -> (Box<dyn Transport>, Box<dyn Transport>) {
        (self.node(0, 1, options).remove(0), self.node(1, 1, options).remove(0))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.directory);
    }
}

fn wait(port: &dyn Transport, timeout: Duration) -> bool {
    let timeout = PollTimeout::try_from(timeout).expect("short");
    let fd = port.wake_fd().expect("wake-ups cross");
    poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout).expect("poll works") == 1
}

fn take(port: &mut Box<dyn Transport>) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut sink = |_: u16, bytes: Bytes<'_>| {
        frames.push(bytes.to_vec());
        Taken::Yes
    };
    while port.receive(64, &mut sink) > 0 {}
    frames
}

/// Takes frames until there are so many.
fn take_many(port: &mut Box<dyn Transport>, count: usize) -> Vec<Vec<u8>> {
    let begun = Instant::now();
    let mut frames = Vec::new();
    while frames.len() < count && begun.elapsed() < DEADLINE {
        if port.arm(&[]) != Armed::Ready {
            wait(&**port, Duration::from_millis(100));
        }
        port.disarm();
        frames.extend(take(port));
    }
    frames
}

fn cross(from: &mut Box<dyn Transport>, to: &mut Box<dyn Transport>, len: usize) {
    let node = to.shape().node;
    let sent = frame(len as u32, len);
    let part = len.min(40);
    assert_eq!(from.send(node, &sent[..part], &sent[part..]), Ok(()), "{len} bytes");
    from.flush();
    let came = take_many(to, 1);
    assert!(came == [&sent[..]], "{len} bytes: {:?} came", came.iter().map(Vec::len).collect::<Vec<_>>());
}

#[test]
fn frames_of_every_length_cross_every_path() {
    for (mtu, addresses) in [(1500, V4), (1500, V6), (9000, V4), (1280, V6), (65_535, V4), (576, V4)] {
        let net = Net::new(mtu, addresses, 1);
        let (mut a, mut b) = net.pair("");
        let edge = mtu - if addresses == V4 { 28 } else { 48 } - HEAD;
        let lens = [1, 41, 60, edge - 1, edge, edge + 1, 2 * edge, 2 * edge + 1, 32_000, 65_000, FRAME_MAX];
        for len in lens.into_iter().filter(|len| *len <= FRAME_MAX) {
            cross(&mut a, &mut b, len);
            cross(&mut b, &mut a, len);
        }
        assert_eq!((a.stats(1).lost, b.stats(0).bad_record, b.stats(0).incomplete), (0, 0, 0));
        assert_eq!(a.send(1, &[0; 1], &[0; FRAME_MAX]), Err(Refused::Length));
        assert_eq!(a.send(0, &[1], &[]), Err(Refused::NoPeer));
    }
}

#[test]
fn many_frames_come_in_order() {
    let net = Net::new(1500, V4, 1);
    let (mut a, mut b) = net.pair("");
    let lens = [60, 60, 60, 1400, 60, 3000, 1400, 1400, 1400, 64_000, 60];
    let sent: Vec<_> = (0..220u32).map(|number| frame(number, lens[number as usize % lens.len()])).collect();
    let mut came = Vec::new();
    for some in sent.chunks(22) {
        some.iter().for_each(|frame| assert_eq!(a.send(1, &[], frame), Ok(())));
        a.flush();
        came.extend(take_many(&mut b, some.len()));
    }
    assert!(came == sent);
}

#[test]
fn what_is_not_taken_comes_again() {
    let net = Net::new(1500, V4, 1);
    let (mut a, mut b) = net.pair("");
    let sent = [frame(1, 50), frame(2, 5000), frame(3, 60)];
    sent.iter().for_each(|frame| assert_eq!(a.send(1, &[], frame), Ok(())));
    a.flush();
    let mut came = Vec::new();
    let begun = Instant::now();
    while came.len() < 3 && begun.elapsed() < DEADLINE {
        let mut looked = false;
        b.receive(64, &mut |_, bytes| {
            looked = true;
            assert!(!bytes.is_empty());
            Taken::Later
        });
        if looked {
            assert_eq!(b.arm(&[]), Armed::Ready);
            b.receive(1, &mut |_, bytes| {
                came.push(bytes.to_vec());
                Taken::Yes
            });
        }
    }
    assert_eq!(came, sent);
}

#[test]
fn a_full_socket_refuses_and_says_when_there_is_room() {
    let net = Net::new(1500, V4, 1);
    let (mut a, mut b) = net.pair("");
    // Slow enough that nothing leaves while the socket fills.
    within(&net.spaces[0], || run("tc qdisc add dev cable0 root tbf rate 1mbit burst 100k limit 100m"));
    let (short, long) = (frame(1, 800), frame(2, 60_000));
    let begun = Instant::now();
    let mut sent = 0u64;
    while a.send(1, &[], if sent.is_multiple_of(9) { &short } else { &long }) == Ok(()) {
        assert!(begun.elapsed() < DEADLINE, "never full");
        sent += 1;
    }
    assert_eq!((a.stats(1).sent, a.stats(1).full, a.stats(1).lost), (sent, 1, 0));
    assert_eq!(a.send(1, &[], &long), Err(Refused::Full));
    assert_eq!(a.arm(&[1]), Armed::Sleep(SOCKET_SLEEP_MAX));
    assert!(!wait(&*a, Duration::ZERO), "there is no room yet");
    within(&net.spaces[0], || run("tc qdisc del dev cable0 root"));
    assert!(wait(&*a, DEADLINE), "there is room");
    a.disarm();
    assert_eq!(a.arm(&[]), Armed::Sleep(SOCKET_SLEEP_MAX));
    assert!(!wait(&*a, Duration::ZERO), "room is not waited for now");
    take(&mut b);
    assert_eq!(a.send(1, &[], &long), Ok(()));
    a.flush();
    let begun = Instant::now();
    while !take_many(&mut b, 1).contains(&long) {
        assert!(begun.elapsed() < DEADLINE, "it crosses again");
    }
    // The socket's buffer refused whole frames only: none came in part.
    assert_eq!(b.stats(0).bad_record, 0);
}

//= docs/fabric.md#10.1 type=test
#[test]
fn queues_are_apart() {
    let net = Net::new(1500, V4, 3);
    let (mut a, mut b) = (net.node(0, 3, ""), net.node(1, 3, ""));
    for (queue, port) in a.iter_mut().enumerate() {
        port.send(1, &[queue as u8], &[]).unwrap();
        port.flush();
    }
    for (queue, port) in b.iter_mut().enumerate() {
        assert_eq!(take_many(port, 1), [[queue as u8]]);
    }
}

#[test]
fn a_path_that_shrinks_is_noticed_and_one_that_grows_after_a_reset() {
    let net = Net::new(9000, V4, 1);
    let (mut a, mut b) = net.pair("");
    cross(&mut a, &mut b, 8000);
    for space in &net.spaces {
        within(space, || run("ip link set cable0 mtu 1500"));
    }
    cross(&mut a, &mut b, 60_000);
    // A short frame waits for others, so it is too late for it when the kernel refuses; the next one crosses.
    cross(&mut b, &mut a, 20_000);
    cross(&mut b, &mut a, 8000);
    for space in &net.spaces {
        within(space, || run("ip link set cable0 mtu 9000"));
    }
    a.reset(1);
    cross(&mut a, &mut b, 60_000);
    drop((a, b));
    let (mut a, mut b) = net.pair(",mtu=600");
    cross(&mut a, &mut b, 60_000);
}

//= docs/fabric.md#10.1 type=test
#[test]
fn strangers_are_not_heard() {
    let net = Net::new(1500, V4, 1);
    let (mut a, mut b) = net.pair("");
    let stranger = within(&net.spaces[0], || UdpSocket::bind((V4[0], PORT + 9)).unwrap());
    let forged = &pieces(1, 1, b"forged", 1000)[0];
    stranger.send_to(forged, (V4[1], PORT)).unwrap();
    stranger.send_to(&[], (V4[1], PORT)).unwrap();
    cross(&mut a, &mut b, 100);
    assert_eq!((b.stats(1).bad_record, b.stats(0).bad_record), (2, 0));
}

/// Sends a datagram from node 0's address to node 1, past node 0.
fn forge(net: &Net, forged: &[u8]) {
    // Ports, length, and no checksum.
    let words = [PORT, PORT, 8 + forged.len() as u16, 0].map(u16::to_be_bytes);
    let datagram = [words.as_flattened(), forged].concat();
    let to = SockaddrIn::from(SocketAddrV4::new(V4[1].parse().unwrap(), 0));
    within(&net.spaces[0], || {
        let raw = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Udp).unwrap();
        sendto(raw.as_raw_fd(), &datagram, &to, MsgFlags::empty()).unwrap();
    });
}

#[test]
fn one_forged_datagram_mutes_nobody() {
    let net = Net::new(1500, V4, 1);
    let (mut a, mut b) = net.pair("");
    cross(&mut a, &mut b, 100);
    forge(&net, &pieces(0xdead_beef, 1, b"forged", 1000)[0]);
    assert_eq!(take_many(&mut b, 1), [b"forged"], "the epochs in it say whose it is");
    cross(&mut a, &mut b, 100);
    cross(&mut a, &mut b, 5000);
}

#[test]
fn junk_of_a_peer_is_counted_and_dropped() {
    let net = Net::new(1500, V4, 1);
    let (a, mut b) = net.pair("");
    drop(a);
    let begun = Instant::now();
    let hostile = within(&net.spaces[0], || {
        loop {
            match UdpSocket::bind((V4[0], PORT)) {
                Ok(socket) => return socket,
                Err(error) => assert!(begun.elapsed() < DEADLINE, "{error}"),
            }
        }
    });
    for junk in [&[][..], &[1], &[0xff; 900]] {
        hostile.send_to(junk, (V4[1], PORT)).unwrap();
    }
    drop(hostile);
    let mut a = net.node(0, 1, "").remove(0);
    cross(&mut a, &mut b, 100);
    assert_eq!(b.stats(0).bad_record, 3);
}

#[test]
fn a_node_that_starts_anew_is_heard_at_once() {
    let net = Net::new(1500, V4, 1);
    let mut b = net.node(1, 1, "").remove(0);
    for _ in 0..5 {
        let mut a = net.node(0, 1, "").remove(0);
        cross(&mut a, &mut b, 40_000);
        cross(&mut b, &mut a, 100);
    }
}

#[test]
fn an_address_that_is_not_here_is_refused() {
    let net = Net::new(1500, V4, 1);
    let address: Address = format!("udp:{}", net.directory.display()).parse().unwrap();
    let error = within(&net.spaces[1], || address.open(&Join { node: 0, nodes: 2, queues: 1 }).err());
    let error = error.expect("refused").to_string();
    assert!(error.ends_with("cannot bind 198.18.7.1:7400: cannot assign requested address"), "{error}");
    let _taken = net.node(1, 1, "");
    let error = within(&net.spaces[1], || address.open(&Join { node: 1, nodes: 2, queues: 1 }).err());
    assert!(error.expect("refused").to_string().ends_with("address already in use"));
}

//= docs/fabric.md#10.1 type=test
#[test]
fn a_peer_that_moves_is_met_at_its_new_address_alone() {
    let net = Net::new(1500, V4, 1);
    let (mut a, mut b) = net.pair("");
    let look = |text: &str, a: &dyn Transport| {
        fs::write(net.directory.with_extension("new"), text).expect("there is room");
        fs::rename(net.directory.with_extension("new"), &net.directory).expect("it can be renamed");
        a.directory().expect("it has one").look(|_| false)
    };
    let moved = "198.18.7.3:7400";
    assert_eq!(
        look(&format!("0 198.18.7.1:{PORT}\n1 {moved}\n"), &*a),
        Look::Changed(vec![(1, moved.parse().ok())])
    );
    within(&net.spaces[1], || run("ip address add 198.18.7.3/24 dev cable0"));
    assert_eq!(take(&mut a), Vec::<Vec<u8>>::new());
    let mut c = net.node(1, 1, "").remove(0);
    cross(&mut a, &mut c, 5000);
    cross(&mut c, &mut a, 5000);
    // From where it was.
    b.send(0, b"from elsewhere", &[]).expect("there is room");
    b.flush();
    let begun = Instant::now();
    while a.stats(0).bad_record == 0 && begun.elapsed() < DEADLINE {
        assert_eq!(take(&mut a), Vec::<Vec<u8>>::new());
    }
    assert_eq!(a.stats(0).bad_record, 1);
    assert_eq!(look(&format!("0 198.18.7.1:{PORT}\n"), &*a), Look::Changed(vec![(1, None)]));
    assert_eq!(take(&mut a), Vec::<Vec<u8>>::new());
    assert_eq!(a.send(1, b"to nobody", &[]), Err(Refused::Unreachable));
}
