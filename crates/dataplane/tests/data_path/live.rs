//! Real frames through the programs, sent and received by the kernels of two hosts.

use crate::class::{in_group, port};
use crate::hosts::{DEADLINE, Host, two_hosts, wait_for};
use crate::rig::{index, peer, plan};
use linkbraid_dataplane::{Policy, RuleRow};
use nix::sys::socket::{AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, socket};
use std::{
    collections::BTreeSet,
    fs,
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{fd::AsRawFd as _, unix::fs::MetadataExt as _},
    path::PathBuf,
    process::Command,
    time::Instant,
};

/// Sends numbered datagrams of these lengths and receives each of them once.
fn exchange(from: &UdpSocket, to: &UdpSocket, lengths: impl Iterator<Item = usize>) -> u64 {
    let mut sent = 0;
    let mut buffer = [0; 4096];
    for length in lengths {
        let message: Vec<u8> = (0..length).map(|i| (i as u64 * 7 + sent * 13) as u8).collect();
        from.send_to(&message, to.local_addr().unwrap()).unwrap();
        let (bytes, _) =
            to.recv_from(&mut buffer).unwrap_or_else(|e| panic!("message {sent} of {length}: {e}"));
        assert!(buffer[..bytes] == message[..], "message {sent} of {length} bytes arrived as {bytes}");
        sent += 1;
    }
    to.set_nonblocking(true).unwrap();
    assert_eq!(to.recv_from(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock, "a message came twice");
    to.set_nonblocking(false).unwrap();
    sent
}

/// A line of /proc/net/snmp as (name, value).
fn snmp(of: &str, name: &str) -> u64 {
    let all = fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = all.lines().filter(|line| line.starts_with(&format!("{of}:")));
    let names = lines.next().unwrap().split(' ');
    names.zip(lines.next().unwrap().split(' ')).find(|(n, _)| *n == name).unwrap().1.parse().unwrap()
}

fn checksums_in_software(host: &Host) {
    host.enter();
    for slot in 0..2 {
        let done = Command::new("ethtool").args(["-K", &format!("member{slot}"), "tx", "off"]).output();
        assert!(done.expect("ethtool is installed").status.success());
    }
}

#[test]
fn each_datagram_comes_once_with_a_right_checksum() {
    let hosts = two_hosts();
    let rounds = if hosts[0].has_vlans { 3 } else { 2 };
    for (round, net) in [(0, 9), (1, 9), (2, 10)].into_iter().take(rounds) {
        // First the kernels trust each other's checksums, then they compute and check them.
        if round == 1 {
            hosts.iter().for_each(checksums_in_software);
        }
        for (from, to) in [(0, 1), (1, 0)] {
            let (from, to) = (&hosts[from], &hosts[to]);
            let before = ["rx_mirror", "rx_mirror_copy"].map(|reason| to.count(reason));
            let sockets = (from.udp(net), to.udp(net));
            let errors = {
                to.enter();
                snmp("Udp", "InCsumErrors")
            };
            let sent = exchange(&sockets.0, &sockets.1, (0..100).chain(1400..1429));
            wait_for(|| to.count("rx_mirror_copy") >= before[1] + sent);
            assert_eq!(to.count("rx_mirror"), before[0] + sent, "round {round}");
            to.enter();
            assert_eq!(snmp("Udp", "InCsumErrors"), errors);
        }
    }
    for host in &hosts {
        assert_eq!((host.count("rx_mirror_bad"), host.count("rx_mirror_late")), (0, 0));
    }
}

/// What leaves by the members while `send` does its work: the EtherType in the frame, and the one that the kernel noted.
fn protocols(host: &Host, send: impl FnOnce()) -> BTreeSet<(u16, u16)> {
    const OUTGOING: u8 = 4; // PACKET_OUTGOING, include/uapi/linux/if_packet.h
    host.enter();
    let members = [0, 1].map(|slot| index(&format!("member{slot}")) as usize);
    let raw = (SockType::Raw, SockFlag::SOCK_NONBLOCK, SockProtocol::EthAll);
    let tap = socket(AddressFamily::Packet, raw.0, raw.1, raw.2).unwrap();
    send();
    let mut buffer = [0; 2048];
    let mut all = BTreeSet::new();
    while let Ok((_, Some(from))) = recvfrom::<LinkAddr>(tap.as_raw_fd(), &mut buffer) {
        if from.pkttype() == OUTGOING && members.contains(&from.ifindex()) {
            all.insert((u16::from_be_bytes([buffer[12], buffer[13]]), u16::from_be(from.protocol())));
        }
    }
    all
}

#[test]
fn no_driver_takes_a_mirrored_frame_for_ip() {
    let hosts = two_hosts();
    let (from, to) = (hosts[0].udp(9), hosts[1].udp(9));
    // What the kernels send by themselves may be among them.
    let mirrored = protocols(&hosts[0], || assert_eq!(exchange(&from, &to, 0..3), 3));
    assert!(mirrored.contains(&(0x88b6, 0x88b6)), "{mirrored:x?}");
    assert!(mirrored.iter().all(|(header, noted)| header == noted), "{mirrored:x?}");
    hosts[0].to_other(Policy::Spread);
    let plain = protocols(&hosts[0], || assert_eq!(exchange(&from, &to, 0..3), 3));
    assert!(plain.contains(&(0x0800, 0x0800)), "{plain:x?}");
}

#[test]
fn tcp_works_with_what_is_mirrored_and_what_is_not() {
    let hosts = two_hosts();
    for in_software in [false, true] {
        if in_software {
            hosts.iter().for_each(checksums_in_software);
        }
        hosts[1].enter();
        let listener = TcpListener::bind("198.18.9.2:0").unwrap();
        hosts[0].enter();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        for stream in [&near, &far] {
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
        }
        // Small messages, there and back; then one that takes many segments.
        for length in (1..200).chain([1448, 1449, 500_000]) {
            let message: Vec<u8> = (0..length).map(|i: usize| (i * 31 % 251) as u8).collect();
            let mut back = vec![0; length];
            std::thread::scope(|scope| {
                scope.spawn(|| near.write_all(&message).unwrap());
                far.read_exact(&mut back).unwrap();
            });
            assert!(back == message, "{length} bytes arrived as others");
            far.write_all(&[1]).unwrap();
            near.read_exact(&mut [0]).unwrap();
        }
        hosts[1].enter();
        assert_eq!(snmp("Tcp", "InCsumErrors"), 0);
    }
    assert!(hosts[0].count("tx_mirror_once") > 0, "long buffers leave once");
    assert!(hosts[0].count("tx_mirror") > 200 && hosts[1].count("rx_mirror_copy") > 200);
    assert_eq!([hosts[0].count("rx_mirror_bad"), hosts[1].count("rx_mirror_bad")], [0, 0]);
}

#[test]
fn the_loss_of_either_lane_costs_nothing() {
    let hosts = two_hosts();
    let sockets = (hosts[0].udp(9), hosts[1].udp(9));
    let send = |n| exchange(&sockets.0, &sockets.1, (0..n).map(|i| 10 * i));
    send(20);
    for slot in [0, 1, 0, 1] {
        let before = [hosts[1].count("rx_mirror"), hosts[1].count("rx_mirror_copy")];
        // The sender does not notice: its own end stays up.
        hosts[1].cut(slot);
        assert_eq!(send(50), 50);
        let after = [hosts[1].count("rx_mirror"), hosts[1].count("rx_mirror_copy")];
        assert_eq!(after, [before[0] + 50, before[1]], "slot {slot}");
        hosts[1].mend(slot);
        send(5);
    }
}

#[test]
fn a_sender_that_starts_anew_is_heard_at_once() {
    let mut hosts = two_hosts();
    let sockets = (hosts[0].udp(9), hosts[1].udp(9));
    for epoch in [100, 200, 300] {
        exchange(&sockets.0, &sockets.1, (0..1500).map(|i| i % 100));
        hosts[0].start_anew(epoch);
        hosts[0].to_other(Policy::Mirror);
        exchange(&sockets.0, &sockets.1, 0..10);
    }
    assert_eq!(hosts[1].count("rx_mirror_late"), 0);
    // The receiver, too.
    hosts[1].start_anew(400);
    hosts[1].to_other(Policy::Mirror);
    exchange(&sockets.0, &sockets.1, 0..10);
}

/// The frames that left by member 1, which is class 1's alone, while `send` did its work.
fn left_by_class(host: &Host, rule: RuleRow, send: impl FnOnce()) -> u64 {
    let to = |slot| Some(peer(slot));
    host.path.set_plan(1, &plan(&[(0, 1)], to)).unwrap();
    host.path.set_plan(2, &plan(&[(1, 1)], to)).unwrap();
    host.path.set_class_plan(1, 1, Some(2)).unwrap();
    host.path.set_rules(&[rule]).unwrap();
    let before = host.path.lane_counts(2).unwrap()[0].frames;
    host.enter();
    send();
    host.path.lane_counts(2).unwrap()[0].frames - before
}

/// Control groups of a test, one in the other, for as long as it runs.
struct Groups {
    outer: PathBuf,
    inner: PathBuf,
}

impl Groups {
    fn new() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mount =
            mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).expect("it is mounted");
        let mount = PathBuf::from(mount.split(' ').nth(1).unwrap());
        let outer = mount.join(format!("linkbraid-test-{}", std::process::id()));
        let inner = outer.join("inner");
        fs::create_dir_all(&inner).expect("this test makes control groups");
        Self { outer, inner }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // A process that has ended a moment ago may still be counted there.
        for group in [&self.inner, &self.outer] {
            let begun = Instant::now();
            while fs::remove_dir(group).is_err() && begun.elapsed() < DEADLINE {
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn the_control_group_of_the_sender_chooses() {
    let hosts = two_hosts();
    let groups = Groups::new();
    let id = fs::metadata(&groups.outer).unwrap().ino();
    let rule = in_group(id, 1);
    let ping = |group: Option<&PathBuf>| {
        let enter =
            group.map_or(String::new(), |group| format!("echo $$ > {}/cgroup.procs; ", group.display()));
        let line = format!("{enter}exec bash -c 'echo hello > /dev/udp/198.18.9.2/5000'");
        assert!(Command::new("bash").args(["-c", &line]).status().unwrap().success());
    };
    let counts = [None, Some(&groups.outer), Some(&groups.inner)]
        .map(|from| left_by_class(&hosts[0], rule, || ping(from)));
    assert_eq!(counts, [0, 1, 1]);
}

#[test]
fn later_fragments_follow_the_socket_that_sent_them() {
    let hosts = two_hosts();
    let socket = hosts[0].udp(9);
    let long = [0; 4000];
    let to = "198.18.9.2:6000";
    hosts[1].enter();
    let _listener = UdpSocket::bind(to).unwrap();
    // Its own port is known of each fragment, the other one's of the first, unless it is connected.
    let send_to = || assert_eq!(socket.send_to(&long, to).unwrap(), 4000);
    assert_eq!(left_by_class(&hosts[0], port(1, 5000), send_to), 3);
    assert_eq!(left_by_class(&hosts[0], port(1, 6000), send_to), 1);
    socket.connect(to).unwrap();
    let send = || assert_eq!(socket.send(&long).unwrap(), 4000);
    assert_eq!(left_by_class(&hosts[0], port(1, 6000), send), 3);
    assert_eq!(left_by_class(&hosts[0], port(1, 6001), send), 0);
}
