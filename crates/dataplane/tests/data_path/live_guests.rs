//! Guests of two hosts that talk to each other, with the frames of real kernels: tags beside the frame, long buffers.

use crate::frames::{V4, arp, ethernet, tagged};
use crate::hosts::{DEADLINE, Host, text, two_hosts, wait_for};
use crate::pairs::{ARP, FAR_HOST, NEAR_HOST, alias, packet};
use crate::rig::{BROADCAST, PLAIN, index, ip, new_namespace, own, peer};
use linkbraid_dataplane::{GuestPair, PeerMac, PeerMacKind, Policy, Way};
use linkbraid_link::ArpPlusSender;
use nix::{
    sched::{CloneFlags, setns},
    sys::socket::{
        AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, setsockopt, socket,
        sockopt::ReceiveTimeout,
    },
    sys::time::{TimeVal, TimeValLike as _},
};
use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream, UdpSocket},
    os::fd::AsRawFd as _,
    time::Duration,
};

/// A container behind a host, 198.18.9.1x.
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

/// Has a host send what its bridge sends out of a port of its own, as a daemon does.
fn add_internal_port(host: &mut Host) {
    host.enter();
    ip("link add internal type veth peer name end");
    ip("link set end up");
    ip("link set internal master bond up");
    for slot in 0..2 {
        ip(&format!("link set member{slot} type bridge_slave bcast_flood off mcast_flood off"));
    }
    host.path.attach_port(index("internal")).unwrap();
}

impl Guest {
    fn new(host: &Host) -> Self {
        new_namespace();
        let namespace = File::open("/proc/thread-self/ns/net").unwrap();
        let to = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd());
        let (number, mac) = (host.number, mac(host));
        ip(&format!("link add port type veth peer name guest address {} netns {to}", text(mac)));
        ip("link set port master bond up");
        let guest = Self { number, mac, namespace };
        guest.enter();
        ip("link set guest up");
        ip(&format!("address add 198.18.9.1{number}/24 dev guest"));
        guest
    }

    fn enter(&self) {
        setns(&self.namespace, CloneFlags::CLONE_NEWNET).unwrap();
    }

    fn address(&self) -> String {
        format!("198.18.9.1{}:5000", self.number)
    }

    fn udp(&self) -> UdpSocket {
        self.enter();
        let socket = UdpSocket::bind(self.address()).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        socket
    }

    fn send(&self, frame: &[u8]) {
        self.enter();
        ArpPlusSender::new().unwrap().send(index("guest"), frame).unwrap();
    }
}

/// Two hosts with a guest each.
fn two_guests() -> ([Host; 2], [Guest; 2]) {
    let mut hosts = two_hosts();
    hosts.iter_mut().for_each(add_internal_port);
    hosts.iter().for_each(|host| host.to_other(Policy::Spread));
    let guests = [Guest::new(&hosts[0]), Guest::new(&hosts[1])];
    (hosts, guests)
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

/// Has both hosts know the addresses that the data path of each saw: so many.
fn tell(hosts: &[Host; 2], addresses: usize) {
    for (here, there) in [(&hosts[0], &hosts[1]), (&hosts[1], &hosts[0])] {
        wait_for(|| here.path.guests_seen().unwrap().len() == addresses);
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
    let (hosts, guests) = two_guests();
    let [from, to] = [guests[0].udp(), guests[1].udp()];
    // ARP goes by the guests' own members and is seen, and so goes what follows it.
    ping(&from, &to);
    let [sent, received, plain] = counts(&hosts[0]);
    assert!(sent == 0 && received == 0 && plain >= 4, "{:?}", counts(&hosts[0]));
    know(&hosts[0], &guests[1]);
    know(&hosts[1], &guests[0]);
    tell(&hosts, 1);
    for _ in 0..10 {
        ping(&from, &to);
    }
    for host in &hosts {
        let [sent, received, _] = counts(host);
        assert!(sent >= 30 && received >= 30, "{:?}", counts(host));
    }
    let lanes = hosts[0].path.lane_counts(1).unwrap();
    assert!(lanes.iter().all(|lane| lane.frames >= 10), "{lanes:?}");
}

#[test]
fn a_stream_between_guests_arrives_whole() {
    const BYTES: usize = 8 << 20;
    let (hosts, guests) = two_guests();
    ping(&guests[0].udp(), &guests[1].udp());
    know(&hosts[0], &guests[1]);
    know(&hosts[1], &guests[0]);
    tell(&hosts, 1);
    guests[1].enter();
    let listener = TcpListener::bind(guests[1].address()).unwrap();
    guests[0].enter();
    let mut sender = TcpStream::connect(guests[1].address()).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    receiver.set_read_timeout(Some(DEADLINE)).unwrap();
    let data: Vec<u8> = (0..BYTES).map(|i| (i * 7 + i / 4096) as u8).collect();
    let copy = data.clone();
    let sends = std::thread::spawn(move || sender.write_all(&copy).unwrap());
    let mut got = Vec::new();
    receiver.read_to_end(&mut got).unwrap();
    sends.join().unwrap();
    assert!(got == data, "{} bytes arrived, or others", got.len());
    let sent = hosts[0].count("tx_for_guest");
    assert!(sent > BYTES as u64 / 1500 / 2, "{sent}");
}

#[test]
fn a_tag_beside_the_frame_is_its_vlan() {
    let (hosts, guests) = two_guests();
    know(&hosts[0], &guests[1]);
    know(&hosts[1], &guests[0]);
    // As from guests with an interface in VLAN 5: the kernel takes the tag out of the frame on its way in.
    for (guest, host) in guests.iter().zip([NEAR_HOST, FAR_HOST]) {
        let announces = arp(1, (guest.mac, host), ([0; 6], host));
        guest.send(&tagged(&ethernet(BROADCAST, guest.mac, ARP, &announces), 5));
    }
    tell(&hosts, 1);
    assert!(hosts.iter().all(|host| host.path.guests_seen().unwrap()[0].address.vlan == 5));
    guests[1].enter();
    let any = socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), SockProtocol::EthAll).unwrap();
    setsockopt(&any, ReceiveTimeout, &TimeVal::seconds(DEADLINE.as_secs() as i64)).unwrap();
    let sent = packet(V4, guests[1].mac, guests[0].mac);
    for vlan in [5, 0x6005, 6, 0] {
        let before = [hosts[0].count("tx_for_guest"), hosts[1].count("rx_for_guest")];
        guests[0].send(&if vlan == 0 { sent.clone() } else { tagged(&sent, vlan) });
        let mut buffer = [0; 2048];
        loop {
            let bytes = recv(any.as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap();
            if buffer[..bytes] == sent {
                break;
            }
        }
        let by_lanes = u64::from(vlan & 0xfff == 5);
        let after = [hosts[0].count("tx_for_guest"), hosts[1].count("rx_for_guest")];
        assert_eq!(after, before.map(|count| count + by_lanes), "{vlan:x}");
    }
}
