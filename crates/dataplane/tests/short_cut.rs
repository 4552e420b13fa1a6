//! The short cut's programs on real frames: one node in a network namespace of its own, its peer played by sockets.
//!
//! Needs root, as the other tests of the data path do.

use linkbraid_dataplane::{Hook, HookChoice, ShortCut, WAY_REASONS, WayCounts, WayEnds, WayIn, WayOut};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike, SockaddrStorage, sendto, socket,
};
use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
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
    short_cut: ShortCut,
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
        let ends = WayEnds { tap: index("tap0"), vxlan: index("vx0"), mac: HERE, local: addresses[0] };
        let short_cut = ShortCut::new(&ends, hook).expect("the kernel takes the programs");
        let raw =
            socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        Self { short_cut, addresses, raw, link: link(ends.tap) }
    }

    /// How often each reason was met, by name, and what went.
    fn counted(&self) -> (Vec<(&'static str, u64)>, WayCounts) {
        let counts = self.short_cut.reasons().expect("reads");
        let met = WAY_REASONS.iter().zip(counts).map(|(reason, count)| (reason.0, count));
        (met.filter(|(_, count)| *count > 0).collect(), self.short_cut.counts(PEER_NODE).expect("reads"))
    }

    /// Waits until so many frames came to something.
    fn wait(&self, frames: u64) -> (Vec<(&'static str, u64)>, WayCounts) {
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
        let mut bytes = vec![flags, 0];
        bytes.extend(tag.1.to_be_bytes());
        bytes.extend((tag.0 << 8).to_be_bytes());
        bytes.extend(frame(to, source));
        let socket = UdpSocket::bind((self.addresses[from], 0)).expect("binds");
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

fn ways() -> [(HookChoice, bool); 4] {
    let [tcx, clsact] = [HookChoice::Auto, HookChoice::Only(Hook::Clsact)];
    [(tcx, false), (clsact, false), (tcx, true), (clsact, true)]
}

//= docs/fabric.md#7.6 type=test
//= docs/fabric.md#7.7 type=test
#[test]
fn only_what_a_peer_sends_with_its_tag_comes_in() {
    for (hook, v6) in ways() {
        let rig = Rig::new(hook, v6);
        let good = || rig.comes(1, GROUP, TAG, HERE, PEER);
        good();
        assert_eq!(rig.wait(1).0, [("drop_tag", 1)], "it is not up");
        let way = WayIn { remote: rig.addresses[1], tag: TAG };
        rig.short_cut.set_in(PEER_NODE, Some(&way)).expect("sets");
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
        rig.short_cut.set_in(PEER_NODE, None).expect("closes");
        rig.short_cut.set_in(PEER_NODE, None).expect("it is closed already");
        good();
        let (met, counts) = rig.wait(14);
        assert_eq!((met[1], counts.rx_frames, counts.probes), (("drop_tag", 7), 1, 1));
        // The link is up again, under another tag: what still comes under the former one is of no use.
        let way = WayIn { tag: (TAG.0, TAG.1 + 1), ..way };
        rig.short_cut.set_in(PEER_NODE, Some(&way)).expect("sets");
        good();
        assert_eq!(rig.wait(15).0[1], ("drop_tag", 8));
        rig.comes(1, GROUP, way.tag, HERE, PEER);
        assert_eq!(rig.wait(16).1.rx_frames, 2);
    }
}

//= docs/fabric.md#7.5 type=test
#[test]
fn only_frames_between_nodes_that_the_path_takes_leave_by_it() {
    for (hook, v6) in ways() {
        let rig = Rig::new(hook, v6);
        let good = frame(PEER, HERE);
        rig.leaves(&good);
        let way = WayOut { remote: rig.addresses[1], tag: TAG, room: 100, frame: 1514 };
        rig.short_cut.set_out(PEER_NODE, Some(&way)).expect("sets");
        let mut tagged = good.clone();
        tagged[12..14].copy_from_slice(&[0x81, 0]);
        for other in [frame([0xff; 6], HERE), frame(HERE, PEER), frame(PEER, [2, 0, 0, 0, 1, 1]), tagged] {
            rig.leaves(&other);
        }
        assert_eq!(rig.counted(), (vec![], WayCounts::default()), "all of them go by the queues");
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
        rig.short_cut.set_out(PEER_NODE, None).expect("closes");
        rig.leaves(&good);
        assert_eq!(rig.counted().1.tx_frames, 1);
        // Nothing stays.
        drop(rig.short_cut);
        let filters =
            Command::new("tc").args(["filter", "show", "dev", "tap0", "egress"]).output().expect("runs");
        assert_eq!(String::from_utf8_lossy(&filters.stdout), "");
    }
}
