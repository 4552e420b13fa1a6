//! The fast path's programs on real frames: one node in a network namespace of its own, its peer played by sockets.
//!
//! Needs root, as the other tests of the data path do.

use linkbraid_dataplane::{FastPath, Hook, HookChoice, PATH_REASONS, PathCounts, PathEnds, PathIn, PathOut};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike, SockaddrStorage, sendto, socket,
};
use std::{
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsRawFd, OwnedFd},
    process::Command,
    time::{Duration, Instant},
};

const PORT: u16 = 4789;
const TAG: (u32, u16) = (0x0012_3456, 0x789a);
const HERE: [u8; 6] = [0x02, 0x6c, 0x62, 9, 0, 0];
const PEER: [u8; 6] = [0x02, 0x6c, 0x62, 9, 1, 1];
const PEER_NODE: u16 = 257;
const NOBODY: [u8; 6] = [0; 6];
const DEADLINE: Duration = Duration::from_secs(10);

fn ip(line: &str) {
    let done = Command::new("ip").args(line.split_whitespace()).output().expect("iproute2 is installed");
    assert!(done.status.success(), "ip {line}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The node, with a socket that sends from its peer's address and one that sends frames from its interface.
struct Rig {
    fast_path: FastPath,
    /// This node's address, the peer's, and that of nobody.
    addresses: [IpAddr; 3],
    raw: OwnedFd,
    link: SockaddrStorage,
}

impl Rig {
    fn new(hook: HookChoice, v6: bool) -> Self {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("this test needs root");
        ip("link set lo up");
        let addresses =
            if v6 { ["::1", "2001:db8::1", "2001:db8::2"] } else { ["127.0.0.1", "127.0.0.2", "127.0.0.3"] };
        if v6 {
            addresses[1..].iter().for_each(|address| ip(&format!("addr add {address}/128 dev lo")));
        }
        ip("link add tap0 type veth peer name far0");
        ip("link set tap0 up");
        ip(&format!("link add vx0 type vxlan external gbp nolearning dstport {PORT}"));
        ip("link set vx0 up");
        let index = |name| nix::net::if_::if_nametoindex(name).expect("the interface is there");
        let addresses = addresses.map(|text| text.parse().expect("an address"));
        let ends =
            PathEnds { tap: index("tap0"), vxlan: index("vx0"), mac: HERE, local: addresses[0], port: PORT };
        let fast_path = FastPath::new(&ends, hook).expect("the kernel takes the programs");
        let raw =
            socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        Self { fast_path, addresses, raw, link: link(ends.tap) }
    }

    /// How often each reason was met, by name, and what went.
    fn counted(&self) -> (Vec<(&'static str, u64)>, PathCounts) {
        // In this order: what is received has its reason by then.
        let went = self.fast_path.counts(PEER_NODE).expect("reads");
        let counts = self.fast_path.reasons().expect("reads");
        let met = PATH_REASONS.iter().zip(counts).map(|(reason, count)| (reason.name, count));
        (met.filter(|(_, count)| *count > 0).collect(), went)
    }

    /// Waits until so many frames came to something.
    fn wait(&self, frames: u64) -> (Vec<(&'static str, u64)>, PathCounts) {
        let begin = Instant::now();
        loop {
            let (met, counts) = self.counted();
            let all = met.iter().map(|(_, count)| count).sum::<u64>()
                + counts.rx_frames
                + counts.probes
                + counts.tx_frames;
            if all >= frames || begin.elapsed() > DEADLINE {
                return (met, counts);
            }
            std::thread::yield_now();
        }
    }

    /// A frame in VXLAN from one of the addresses.
    fn comes(&self, from: usize, flags: u8, tag: (u32, u16), to: [u8; 6], source: [u8; 6]) {
        self.packet(from, [flags, 0], tag, &frame(to, source), |_| ());
    }

    /// The same of any frame, from a socket that was made ready for it.
    fn packet(&self, from: usize, flags: [u8; 2], tag: (u32, u16), frame: &[u8], ready: impl Fn(&UdpSocket)) {
        let mut bytes = flags.to_vec();
        bytes.extend(tag.1.to_be_bytes());
        bytes.extend((tag.0 << 8).to_be_bytes());
        bytes.extend(frame);
        let socket = UdpSocket::bind((self.addresses[from], 0)).expect("binds");
        ready(&socket);
        socket.send_to(&bytes, SocketAddr::new(self.addresses[0], PORT)).expect("sends");
    }

    /// A frame that the interface sends.
    fn leaves(&self, frame: &[u8]) {
        sendto(self.raw.as_raw_fd(), frame, &self.link, MsgFlags::empty()).expect("sends");
    }
}

fn link(index: u32) -> SockaddrStorage {
    let raw = nix::libc::sockaddr_ll {
        sll_family: nix::libc::AF_PACKET as u16,
        sll_ifindex: index as i32,
        // SAFETY: plain numbers, for which zero is a value.
        ..unsafe { std::mem::zeroed() }
    };
    let len = size_of_val(&raw) as u32;
    // SAFETY: a sockaddr_ll of that length, alive during the call, whose family says so.
    let address =
        unsafe { LinkAddr::from_raw((&raw const raw).cast(), Some(len)) }.expect("an address of a link");
    // SAFETY: the same, of the address that was just made.
    unsafe { SockaddrStorage::from_raw(address.as_ptr(), Some(address.len())) }.expect("an address")
}

fn frame(to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    let mut bytes = [&to[..], &from[..], &[0x88, 0xb5]].concat();
    bytes.resize(100, 7);
    bytes
}

const GROUP: u8 = 0x88;

fn paths() -> [(HookChoice, bool); 4] {
    let [tcx, clsact] = [HookChoice::Auto, HookChoice::Only(Hook::Clsact)];
    [(tcx, false), (clsact, false), (tcx, true), (clsact, true)]
}

//= docs/fabric.md#7.6 type=test
//= docs/fabric.md#7.7 type=test
#[test]
fn only_what_a_peer_sends_with_its_tag_comes_in() {
    for (hook, v6) in paths() {
        let rig = Rig::new(hook, v6);
        let good = || rig.comes(1, GROUP, TAG, HERE, PEER);
        good();
        assert_eq!(rig.wait(1).0, [("drop_tag", 1)], "it is not up");
        let path = PathIn { remote: rig.addresses[1], tag: TAG };
        rig.fast_path.set_in(PEER_NODE, Some(&path)).expect("sets");
        good();
        let (met, counts) = rig.wait(2);
        assert_eq!(
            (met, counts.rx_frames, counts.rx_bytes),
            (vec![("drop_tag", 1)], 1, 100),
            "{hook:?} {v6}"
        );
        rig.comes(1, GROUP, TAG, NOBODY, PEER);
        let counts = rig.wait(3).1;
        assert_eq!((counts.probes, counts.rx_frames), (1, 1), "a question is not delivered");
        rig.comes(1, GROUP, (TAG.0 ^ 1, TAG.1), HERE, PEER);
        rig.comes(1, GROUP, (TAG.0, TAG.1 ^ 1), HERE, PEER);
        rig.comes(1, 0x08, TAG, HERE, PEER);
        rig.comes(1, GROUP, (TAG.0, TAG.1 ^ 1), NOBODY, PEER);
        assert_eq!(rig.wait(7).0, [("drop_tag", 5)]);
        rig.comes(2, GROUP, TAG, HERE, PEER);
        assert_eq!(rig.wait(8).0, [("drop_tag", 5), ("drop_address", 1)]);
        for (to, from) in
            [([0xff; 6], PEER), (PEER, PEER), (HERE, [2, 0, 0, 0, 1, 1]), (HERE, [2, 0x6c, 0x62, 9, 2, 0])]
        {
            rig.comes(1, GROUP, TAG, to, from);
        }
        // Another node, which is not up.
        rig.comes(1, GROUP, TAG, HERE, [2, 0x6c, 0x62, 9, 0, 3]);
        assert_eq!(rig.wait(13).0, [("drop_mac", 4), ("drop_tag", 6), ("drop_address", 1)]);
        rig.fast_path.set_in(PEER_NODE, None).expect("closes");
        rig.fast_path.set_in(PEER_NODE, None).expect("it is closed already");
        good();
        let (met, counts) = rig.wait(14);
        assert_eq!((met[1], counts.rx_frames, counts.probes), (("drop_tag", 7), 1, 1));
        // The link is up again, under another tag: what still comes under the former one is of no use.
        let path = PathIn { tag: (TAG.0, TAG.1 + 1), ..path };
        rig.fast_path.set_in(PEER_NODE, Some(&path)).expect("sets");
        good();
        assert_eq!(rig.wait(15).0[1], ("drop_tag", 8));
        rig.comes(1, GROUP, path.tag, HERE, PEER);
        assert_eq!(rig.wait(16).1.rx_frames, 2);
    }
}

//= docs/fabric.md#7.5 type=test
#[test]
fn only_frames_between_nodes_that_the_path_takes_leave_by_it() {
    for (hook, v6) in paths() {
        let rig = Rig::new(hook, v6);
        let good = frame(PEER, HERE);
        rig.leaves(&good);
        let path = PathOut { remote: rig.addresses[1], tag: Some(TAG), room: 100, frame: 100 };
        rig.fast_path.set_out(PEER_NODE, Some(&path)).expect("sets");
        let mut tagged = good.clone();
        tagged[12..14].copy_from_slice(&[0x81, 0]);
        for other in [frame([0xff; 6], HERE), frame(HERE, PEER), frame(PEER, [2, 0, 0, 0, 1, 1]), tagged] {
            rig.leaves(&other);
        }
        assert_eq!(rig.counted(), (vec![], PathCounts::default()), "all of them go by the queues");
        rig.leaves(&good);
        // It comes back, from who is no peer of this node.
        let (met, counts) = rig.wait(2);
        assert_eq!(
            (counts.tx_frames, counts.tx_bytes, met),
            (1, 100, vec![("drop_mac", 1)]),
            "{hook:?} {v6}"
        );
        let mut long = good.clone();
        long.push(0);
        rig.leaves(&long);
        assert_eq!(rig.wait(3).0, [("long", 1), ("drop_mac", 1)]);
        rig.fast_path.set_out(PEER_NODE, None).expect("closes");
        rig.leaves(&good);
        assert_eq!(rig.counted().1.tx_frames, 1);
        // Nothing stays.
        drop(rig.fast_path);
        let filters =
            Command::new("tc").args(["filter", "show", "dev", "tap0", "egress"]).output().expect("runs");
        assert_eq!(String::from_utf8_lossy(&filters.stdout), "");
    }
}

/// The begin of a connection between these nodes, with these options of TCP; and where its TCP header is.
fn begin(v6: bool, options: &[u8]) -> (Vec<u8>, usize) {
    let mut bytes = [&PEER[..], &HERE[..]].concat();
    let tcp_len = 20 + options.len();
    if v6 {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, tcp_len as u8, 6, 64]);
        bytes.extend([9; 32]);
    } else {
        bytes.extend([8, 0, 0x45, 0, 0, 20 + tcp_len as u8, 0, 0, 0x40, 0, 64, 6, 0, 0]);
        bytes.extend([9; 8]);
    }
    let at = bytes.len();
    bytes.extend([1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 0, 0, (tcp_len as u8 / 4) << 4, 2, 0, 0, 0, 0, 0, 0]);
    bytes.extend(options);
    let sum = !sum_of(&bytes[at..]);
    bytes[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
    (bytes, at)
}

/// RFC 1071. What the addresses of a pseudo header would add is left out: they do not change.
fn sum_of(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// A link begins to pass frames some time after its other end is up: the kernel's work on carriers does it.
fn wait_until_up(link: &str) {
    let begun = Instant::now();
    let state = || Command::new("ip").args(["-o", "link", "show", link]).output().expect("ip runs").stdout;
    while !String::from_utf8_lossy(&state()).contains("state UP") {
        assert!(begun.elapsed() < DEADLINE, "'{link}' is not up");
    }
}

//= docs/fabric.md#7.9 type=test
#[test]
fn connections_that_begin_are_told_what_the_path_takes() {
    for (hook, v6) in paths() {
        let rig = Rig::new(hook, v6);
        let far = link(nix::net::if_::if_nametoindex("far0").expect("the other end"));
        ip("link set far0 up");
        wait_until_up("tap0");
        let sees = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            nix::sys::socket::SockProtocol::EthAll,
        )
        .expect("a socket");
        nix::sys::socket::bind(sees.as_raw_fd(), &far).expect("binds");
        let wait = nix::sys::time::TimeVal::new(DEADLINE.as_secs() as i64, 0);
        nix::sys::socket::setsockopt(&sees, nix::sys::socket::sockopt::ReceiveTimeout, &wait)
            .expect("SO_RCVTIMEO");
        let path = PathOut { remote: rig.addresses[1], tag: None, room: 1464, frame: 1514 };
        // What leaves by the queues when such a frame does, which is how it came to the far end.
        let sent = |frame: &[u8]| {
            rig.leaves(frame);
            let mut buffer = [0; 256];
            loop {
                let len = nix::sys::socket::recv(sees.as_raw_fd(), &mut buffer, MsgFlags::empty())
                    .expect("a frame arrives");
                if buffer[..12] == frame[..12] {
                    return buffer[..len].to_vec();
                }
            }
        };
        let most = |at: usize| u16::try_from(1464 - at - 20).expect("short");
        let changed = |options: &[u8], where_: usize| {
            let (frame, at) = begin(v6, options);
            assert_eq!(sum_of(&frame[at..]), 0xffff);
            let arrived = sent(&frame);
            assert_eq!(sum_of(&arrived[at..]), 0xffff, "{hook:?} {v6}: the checksum holds");
            let mss = u16::from_be_bytes([arrived[at + 20 + where_], arrived[at + 21 + where_]]);
            assert!(arrived.len() == frame.len() && (mss == most(at) || arrived == frame));
            mss == most(at)
        };
        let usual = [2, 4, 5, 0xb4, 4, 2, 1, 1];
        assert!(!changed(&usual, 2), "there is no path");
        rig.fast_path.set_out(PEER_NODE, Some(&path)).expect("sets");
        assert!(changed(&usual, 2), "{hook:?} {v6}");
        assert!(changed(&[1, 1, 1, 2, 4, 5, 0xb4, 0], 5), "at an odd place");
        assert!(!changed(&[2, 4, 4, 0, 4, 2, 1, 1], 2), "it is short enough");
        assert!(!changed(&[2, 3, 5, 0xb4, 4, 2, 1, 1], 2), "an option of another length");
        assert!(!changed(&[4, 0, 2, 4, 5, 0xb4, 1, 1], 4), "options that make no sense");
        assert!(!changed(&[2, 4, 5, 0xb4, 29, 4, 1, 1], 2), "they are signed");
        let (mut later, at) = begin(v6, &usual);
        later[at + 13] = 0x10;
        assert_eq!(sent(&later), later, "it begins nothing");
        let (mut udp, at) = begin(v6, &usual);
        udp[if v6 { 20 } else { 23 }] = 17;
        assert_eq!((sent(&udp), at > 0), (udp, true), "it is not TCP");
        rig.fast_path.set_out(PEER_NODE, Some(&PathOut { frame: 1464, ..path })).expect("sets");
        assert!(!changed(&usual, 2), "all that the interface sends fits");
        // Open, it takes TCP alone while it does not take all.
        let open = PathOut { tag: Some(TAG), ..path };
        rig.fast_path.set_out(PEER_NODE, Some(&open)).expect("sets");
        rig.leaves(&later);
        assert_eq!(rig.wait(1).1.tx_frames, 1, "{hook:?} {v6}");
        let other = frame(PEER, HERE);
        assert_eq!(sent(&other), other);
        assert!(rig.counted().0.contains(&("long", 1)), "{hook:?} {v6}");
    }
}

/// A TCP segment of a connection, without data, in a frame from the peer. What it says the connection has heard before.
fn segment(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut bytes = [&HERE[..], &PEER[..]].concat();
    match (from.ip(), to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(dest)) => {
            bytes.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
            bytes.extend(source.octets());
            bytes.extend(dest.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(dest)) => {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64]);
            bytes.extend(source.octets());
            bytes.extend(dest.octets());
        }
        _ => panic!("two families"),
    }
    bytes.extend(from.port().to_be_bytes());
    bytes.extend(to.port().to_be_bytes());
    bytes.extend([0; 8]);
    bytes.extend([0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    bytes
}

/// As the kernel's VXLAN sends over IPv4.
fn no_checksum(socket: &UdpSocket) {
    use nix::libc::{IPPROTO_UDP, SO_NO_CHECK, SOL_SOCKET, UDP_NO_CHECK6_TX};
    let v6 = socket.local_addr().expect("bound").is_ipv6();
    let (level, option) = if v6 { (IPPROTO_UDP, UDP_NO_CHECK6_TX) } else { (SOL_SOCKET, SO_NO_CHECK) };
    let on = 1;
    // SAFETY: the option is a number that lives during the call.
    let done = unsafe {
        nix::libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const on).cast(),
            size_of_val(&on) as u32,
        )
    };
    assert_eq!(done, 0, "the kernel leaves the checksum out");
}

/// The packets of such a socket are marked for ECN.
fn marked(socket: &UdpSocket, ecn: i32) {
    use nix::sys::socket::{setsockopt, sockopt};
    if socket.local_addr().expect("bound").is_ipv6() {
        return setsockopt(socket, sockopt::Ipv6TClass, &ecn).expect("IPV6_TCLASS");
    }
    no_checksum(socket);
    setsockopt(socket, sockopt::Ipv4Tos, &ecn).expect("IP_TOS");
}

//= docs/fabric.md#7.6 type=test
#[test]
fn frames_of_connections_that_end_here_are_taken_early_and_no_others() {
    for v6 in [false, true] {
        frames_are_taken_early(v6);
    }
    assert!(Rig::new(HookChoice::Only(Hook::Clsact), false).fast_path.early().expect("asks").is_none());
}

fn frames_are_taken_early(v6: bool) {
    let rig = Rig::new(HookChoice::Auto, v6);
    let early = rig.fast_path.early().expect("asks").expect("tcx");
    let as_vxlan: fn(&UdpSocket) = if v6 { |_| () } else { no_checksum };
    let lo = nix::net::if_::if_nametoindex("lo").expect("lo is there");
    let at = early.attach(lo).expect("the kernel takes it");
    rig.fast_path.set_in(PEER_NODE, Some(&PathIn { remote: rig.addresses[1], tag: TAG })).expect("sets");
    let listeners = ["127.0.0.1:0", "[::1]:0"].map(|at| TcpListener::bind(at).expect("listens"));
    let connections = listeners.each_ref().map(|listener| {
        let here = listener.local_addr().expect("bound");
        (TcpStream::connect(here).expect("connects"), here)
    });
    let good = [GROUP, 0];
    // How often it was taken early, and delivered. What is dropped has another reason.
    let early = |met: &[(&str, u64)]| met.iter().find(|met| met.0 == "early").map_or(0, |met| met.1);
    let taken = |from, flags, tag, frame: &[u8], ready: fn(&UdpSocket)| {
        let all = |met: &[(&str, u64)]| met.iter().map(|met| met.1).sum::<u64>();
        let before = rig.counted();
        rig.packet(from, flags, tag, frame, ready);
        let came = all(&before.0) + before.1.rx_frames + 1;
        let (met, counts) = rig.wait(came);
        // One that is taken early counts first as that, and then as received.
        let taken = early(&met) - early(&before.0);
        let counts = if taken == 0 { counts } else { rig.wait(came + taken).1 };
        (taken, counts.rx_frames - before.1.rx_frames)
    };
    for (connection, here) in &connections {
        let there = connection.local_addr().expect("bound");
        let frame = segment(there, *here);
        assert_eq!(taken(1, good, TAG, &frame, as_vxlan), (1, 1), "{here}");
        // What says something that IP, UDP or VXLAN must look at goes the long path...
        if v6 {
            // What has none is not delivered at all, and what comes behind it is.
            rig.packet(1, good, TAG, &frame, no_checksum);
            assert_eq!(taken(1, good, TAG, &frame, as_vxlan), (1, 1), "{here}: no checksum");
        } else {
            assert_eq!(taken(1, good, TAG, &frame, |_| ()), (0, 1), "{here}: a checksum");
        }
        assert_eq!(taken(1, good, TAG, &frame, |socket| marked(socket, 1)), (0, 1), "{here}: ECN");
        assert_eq!(taken(1, [GROUP, 0x40], TAG, &frame, as_vxlan), (0, 1), "{here}: a policy bit");
        // ...and so does what is not for the connection, or not for a socket.
        let mut other = *here;
        other.set_port(there.port());
        assert_eq!(taken(1, good, TAG, &segment(there, other), as_vxlan), (0, 1), "{here}: no socket");
        other.set_port(here.port());
        let mut stranger = there;
        stranger.set_port(there.port() ^ 1);
        assert_eq!(taken(1, good, TAG, &segment(stranger, other), as_vxlan), (0, 1), "{here}: it listens");
        let mut udp = frame.clone();
        udp[if here.is_ipv4() { 23 } else { 20 }] = 17;
        assert_eq!(taken(1, good, TAG, &udp, as_vxlan), (0, 1), "{here}: UDP");
        let mut ecn = frame.clone();
        ecn[15] |= if here.is_ipv4() { 1 } else { 0x10 };
        assert_eq!(taken(1, good, TAG, &ecn, as_vxlan), (0, 1), "{here}: ECN inside");
        assert_eq!(taken(1, good, TAG, &ecn, |socket| marked(socket, 1)), (1, 1), "{here}: the same ECN");
        ecn[15] |= if here.is_ipv4() { 3 } else { 0x30 };
        assert_eq!(taken(1, good, TAG, &ecn, |socket| marked(socket, 3)), (0, 1), "{here}: congestion");
        // What must not come in does not.
        assert_eq!(taken(1, good, (TAG.0 ^ 1, TAG.1), &frame, as_vxlan), (0, 0), "{here}: another network");
        assert_eq!(taken(1, good, (TAG.0, TAG.1 ^ 1), &frame, as_vxlan), (0, 0), "{here}: another group");
        assert_eq!(taken(2, good, TAG, &frame, as_vxlan), (0, 0), "{here}: another address");
        let mut far = frame.clone();
        far[11] = 2;
        assert_eq!(taken(1, good, TAG, &far, as_vxlan), (0, 0), "{here}: another node");
        far = frame.clone();
        far[5] = 9;
        assert_eq!(taken(1, good, TAG, &far, as_vxlan), (0, 0), "{here}: to another node");
    }
    let mut fragment = segment(connections[0].0.local_addr().expect("bound"), connections[0].1);
    fragment[20] = 0x20;
    assert_eq!(taken(1, good, TAG, &fragment, as_vxlan), (0, 1), "a fragment");
    drop(at);
    let frame = segment(connections[0].0.local_addr().expect("bound"), connections[0].1);
    assert_eq!(taken(1, good, TAG, &frame, as_vxlan), (0, 1), "it is off");
}
