//! Guests of two hosts that talk to each other, with the frames of real kernels: tags beside the frame, long buffers.

use crate::frames::ethernet;
use crate::hosts::{DEADLINE, Host, text, two_hosts, wait_for};
use crate::pairs::alias;
use crate::rig::{PLAIN, index, ip, new_namespace, own, peer};
use linkbraid_dataplane::{GuestPair, PeerMac, PeerMacKind, Policy, Way};
use nix::sched::{CloneFlags, setns};
use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream, UdpSocket},
    os::fd::AsRawFd as _,
    process::Command,
    time::Duration,
};

/// A container behind a host, 198.18.9.1x, and .10. in its VLAN.
struct Guest {
    number: u8,
    mac: [u8; 6],
    namespace: File,
}

/// The guest of this host: one whose own member is the first, where the other host takes in what is for all. There is no switch
/// between the hosts.
fn mac(host: &Host) -> [u8; 6] {
    host.enter();
    let bond = index("bond");
    let sent = || host.path.member_counts(0).unwrap().tx.frames;
    let speaks_by_first = |mac: &[u8; 6]| {
        let before = sent();
        host.path.trial(Way::Out, &ethernet(PLAIN, *mac, 0x88f7, &[0; 46]), bond).unwrap();
        sent() > before
    };
    (0..=u8::MAX).map(|last| [2, 0, 0, 0, 0x40 + host.number, last]).find(speaks_by_first).unwrap()
}

impl Guest {
    /// None where the kernel has no macvlan.
    fn new(host: &Host) -> Option<Self> {
        new_namespace();
        let namespace = File::open("/proc/thread-self/ns/net").unwrap();
        let to = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd());
        let (number, mac) = (host.number, mac(host));
        let text = text(mac);
        for (device, name) in
            [("bond", "guest"), ("tagged", "guestv")].into_iter().take(1 + usize::from(host.has_vlans))
        {
            let line = format!("link add {name} link {device} address {text} type macvlan mode bridge");
            if !Command::new("ip").args(line.split(' ')).output().unwrap().status.success() {
                return None;
            }
            ip(&format!("link set {name} netns {to}"));
        }
        let guest = Self { number, mac, namespace };
        guest.enter();
        for (net, name) in [(9, "guest"), (10, "guestv")].into_iter().take(1 + usize::from(host.has_vlans)) {
            ip(&format!("link set {name} up"));
            ip(&format!("address add 198.18.{net}.1{number}/24 dev {name}"));
        }
        Some(guest)
    }

    fn enter(&self) {
        setns(&self.namespace, CloneFlags::CLONE_NEWNET).unwrap();
    }

    fn address(&self, net: u8) -> String {
        format!("198.18.{net}.1{}:5000", self.number)
    }

    fn udp(&self, net: u8) -> UdpSocket {
        self.enter();
        let socket = UdpSocket::bind(self.address(net)).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        socket
    }
}

/// What a daemon would know: the other host takes guests' frames, and has the other guest.
fn know(host: &Host, other: &Guest) {
    let theirs = if host.number == 1 { peer } else { own };
    let set = |mac, kind| {
        let row = PeerMac { plan: 1, primary: theirs(0), broadcast_slot: 0, kind };
        host.path.set_peer_mac(mac, &row).unwrap();
    };
    for slot in 0..2 {
        set(theirs(slot), PeerMacKind::Member { has_guests: true, takes_guests: true });
        set(alias(theirs(slot)), PeerMacKind::Alias { has_guests: true });
    }
    set(other.mac, PeerMacKind::Guest);
    host.path.keep_guests(Duration::from_secs(600)).unwrap();
}

/// Has both hosts know what the data path of each saw.
fn tell(hosts: &[Host; 2]) {
    for (here, there) in [(&hosts[0], &hosts[1]), (&hosts[1], &hosts[0])] {
        for seen in here.path.guests_seen().unwrap() {
            let pair = |plan| Some(GuestPair { mac: seen.mac, plan });
            here.path.set_guest_pair(seen.address, pair(0)).unwrap();
            there.path.set_guest_pair(seen.address, pair(1)).unwrap();
        }
    }
}

/// Frames of guests that left over lanes, arrived over lanes, and left by the guest's own member.
fn counts(host: &Host) -> [u64; 3] {
    ["tx_for_guest", "rx_for_guest", "tx_guest"].map(|reason| host.count(reason))
}

fn ping(from: &UdpSocket, to: &UdpSocket) {
    let mut buffer = [0; 4096];
    for (from, to) in [(from, to), (to, from)] {
        for length in [1usize, 100, 1400] {
            from.send_to(&vec![length as u8; length], to.local_addr().unwrap()).unwrap();
            let (bytes, sender) = to.recv_from(&mut buffer).unwrap();
            assert_eq!((bytes, sender), (length, from.local_addr().unwrap()));
        }
    }
    to.set_nonblocking(true).unwrap();
    assert!(to.recv_from(&mut buffer).is_err(), "a message came twice");
    to.set_nonblocking(false).unwrap();
}

#[test]
fn guests_talk_over_lanes_once_their_addresses_are_known() {
    let hosts = two_hosts();
    hosts.iter().for_each(|host| host.to_other(Policy::Spread));
    let [Some(first), Some(second)] = [Guest::new(&hosts[0]), Guest::new(&hosts[1])] else { return };
    for net in [9, 10].into_iter().take(1 + usize::from(hosts[0].has_vlans)) {
        let (from, to) = (first.udp(net), second.udp(net));
        let before = counts(&hosts[0]);
        // ARP goes round by members and is seen, and so is what follows it.
        ping(&from, &to);
        let after = counts(&hosts[0]);
        assert!(after[2] >= before[2] + 4, "{before:?} {after:?}");
        if net == 9 {
            assert_eq!(after[..2], [0, 0]);
            know(&hosts[0], &second);
            know(&hosts[1], &first);
        }
        for host in &hosts {
            wait_for(|| host.path.guests_seen().unwrap().len() == usize::from(net - 8));
        }
        tell(&hosts);
        let before = [counts(&hosts[0]), counts(&hosts[1])];
        for _ in 0..10 {
            ping(&from, &to);
        }
        for (host, before) in hosts.iter().zip(before) {
            let [sent, received, _] = counts(host);
            assert!(sent >= before[0] + 30 && received >= before[1] + 30, "{before:?} {:?}", counts(host));
        }
    }
    let lanes = hosts[0].path.lane_counts(1).unwrap();
    assert!(lanes.iter().all(|lane| lane.frames >= 10), "{lanes:?}");
}

#[test]
fn a_stream_between_guests_arrives_whole() {
    const BYTES: usize = 8 << 20;
    let hosts = two_hosts();
    hosts.iter().for_each(|host| host.to_other(Policy::Spread));
    let [Some(first), Some(second)] = [Guest::new(&hosts[0]), Guest::new(&hosts[1])] else { return };
    let nets = 1 + usize::from(hosts[0].has_vlans);
    know(&hosts[0], &second);
    know(&hosts[1], &first);
    for net in [9, 10].into_iter().take(nets) {
        ping(&first.udp(net), &second.udp(net));
    }
    tell(&hosts);
    for net in [9, 10].into_iter().take(nets) {
        let before = hosts[0].count("tx_for_guest");
        second.enter();
        let listener = TcpListener::bind(second.address(net)).unwrap();
        first.enter();
        let mut sender = TcpStream::connect(second.address(net)).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        receiver.set_read_timeout(Some(DEADLINE)).unwrap();
        let data: Vec<u8> = (0..BYTES).map(|i| (i * 7 + i / 4096) as u8).collect();
        let copy = data.clone();
        let sends = std::thread::spawn(move || sender.write_all(&copy).unwrap());
        let mut got = Vec::new();
        receiver.read_to_end(&mut got).unwrap();
        sends.join().unwrap();
        assert!(got == data, "{} bytes arrived, or others", got.len());
        assert!(hosts[0].count("tx_for_guest") > before + BYTES as u64 / 1500 / 2);
    }
}
