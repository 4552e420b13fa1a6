//! A switch that snoops sends a multicast group to those ports alone on which it has heard that somebody wants it. When another member
//! takes in the bond's multicast, the switch hears so at once, and not when a router asks the next time.

use linkbraid_lab::{Fault, Host, LinkSpec, Topology};
use linkbraid_netns_tests::packet::{self, Tap};
use linkbraid_netns_tests::{BOND, GUEST_NIC, Net, sh, until};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Groups for documentation (RFC 6676).
const GROUPS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(233, 252, 0, 1)), IpAddr::V6(Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0xdb8, 0, 1))];
const PORT: u16 = 7788;
/// A socket for IPv6 takes the port of IPv4, too.
const PORT_V6: u16 = PORT + 1;
/// From one datagram of the stream to the next.
const PACE: Duration = Duration::from_millis(5);
/// The stream may pause for so long when a member dies: an idle lane is given up after 750 ms, and reports take 100 ms. A router asks
/// again after up to 125 s.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// What switch and hosts speak: IGMPv2 and MLDv1, in which a host says nothing that it has heard another say, or IGMPv3 and MLDv2.
#[derive(Debug, Clone, Copy)]
enum Versions {
    Old,
    New,
}

/// Two bonded hosts, `c` that sends, `d` that wants the groups all the time, and `e`, a guest of a. The switch snoops, and asks for
/// groups itself, now and then not before this test has ended (after 125 s). It does so before anybody joins a group: at first it
/// sends reports to all ports, and hosts of the old versions that hear one send none.
fn net(versions: Versions) -> Net {
    let switch = || LinkSpec::switch(0, None);
    let lab =
        Topology::symmetric(2, 2, None).plain_host([switch()]).plain_host([switch()]).plain_host([switch()]);
    let net = Net::up(lab);
    let switch = net.lab().switch(0).expect("a switch").name().to_owned();
    let (igmp, mld) = match versions {
        Versions::Old => (2, 1),
        Versions::New => (3, 2),
    };
    for line in [
        "sysctl -q -w net.ipv6.conf.br0.disable_ipv6=0".to_owned(),
        "ip address add fe80::5/64 dev br0 nodad".to_owned(),
        format!("ip link set br0 type bridge mcast_igmp_version {igmp} mcast_mld_version {mld}"),
        // For so long it sends everything to all ports, in hundredths of a second.
        "ip link set br0 type bridge mcast_query_response_interval 10 mcast_startup_query_count 1".to_owned(),
        "ip link set br0 type bridge mcast_snooping 1 mcast_querier 1".to_owned(),
    ] {
        sh(net.host("a"), &format!("ip netns exec {switch} {line}"));
    }
    net.bond_all();
    net.move_in("a", "e", 201);
    net
}

/// When datagrams of one group came to one host.
struct Receiver {
    name: String,
    came: Arc<Mutex<Vec<Instant>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn index(nic: &str) -> u32 {
    nix::net::if_::if_nametoindex(nic).expect("is there")
}

impl Receiver {
    fn start(host: Host<'_>, nic: &str, own: &str, group: IpAddr) -> Self {
        let socket = host.run(|| match group {
            IpAddr::V4(group) => {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).expect("binds");
                socket.join_multicast_v4(&group, &own.parse().expect("an address")).expect("joins");
                socket
            }
            IpAddr::V6(group) => {
                let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, PORT_V6)).expect("binds");
                socket.join_multicast_v6(&group, index(nic)).expect("joins");
                socket
            }
        });
        let socket = socket.expect("enters");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("sets");
        let (came, stop): (Arc<Mutex<Vec<Instant>>>, Arc<AtomicBool>) = Default::default();
        let (to, ends) = (came.clone(), stop.clone());
        let thread = thread::spawn(move || {
            while !ends.load(Relaxed) {
                if socket.recv(&mut [0; 64]).is_ok() {
                    to.lock().expect("whole").push(Instant::now());
                }
            }
        });
        Self { name: format!("{} {group}", host.name()), came, stop, thread: Some(thread) }
    }

    fn count(&self) -> usize {
        self.came.lock().expect("whole").len()
    }

    #[track_caller]
    fn more(&self) {
        let before = self.count();
        until(&format!("the stream at {}", self.name), || self.count(), |now| *now > before + 100);
    }

    /// The longest pause since then.
    fn pause_since(&self, since: Instant) -> Duration {
        let came = self.came.lock().expect("whole");
        let times: Vec<Instant> = came.iter().copied().filter(|at| *at > since).collect();
        let from = [since].into_iter().chain(times.iter().copied());
        times.iter().zip(from).map(|(at, from)| at.duration_since(from)).max().unwrap_or(Duration::MAX)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The plain host sends to all groups, until this is dropped.
struct Stream(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Stream {
    fn start(host: Host<'_>) -> Self {
        sh(host, "ip route replace 233.252.0.0/24 dev eth0");
        let sockets = host.run(|| {
            let v4 = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("binds");
            (v4, UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).expect("binds"), index("eth0"))
        });
        let (v4, v6, eth0) = sockets.expect("enters");
        let stop = Arc::new(AtomicBool::new(false));
        let ends = stop.clone();
        let thread = thread::spawn(move || {
            while !ends.load(Relaxed) {
                for group in GROUPS {
                    let _ = match group {
                        IpAddr::V4(group) => v4.send_to(b"a datagram", (group, PORT)),
                        IpAddr::V6(group) => {
                            let to = SocketAddr::V6(SocketAddrV6::new(group, PORT_V6, 0, eth0));
                            v6.send_to(b"a datagram", to)
                        }
                    };
                }
                // The pace; nothing is waited for.
                thread::park_timeout(PACE);
            }
        });
        Self(stop, Some(thread))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
        let _ = self.1.take().map(JoinHandle::join);
    }
}

/// Prints what the switch knows where the test fails.
struct OfSwitch<'net>(&'net Net);

impl Drop for OfSwitch<'_> {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let switch = self.0.lab().switch(0).expect("a switch").name().to_owned();
        for line in ["mdb show", "fdb show", "-d link show"] {
            let said = self.0.host("a").sh(&format!("bridge -s -n {switch} {line}"));
            eprintln!("--- switch# bridge {line}\n{}", said.unwrap_or_else(|e| e.to_string()));
        }
    }
}

/// The member of a that takes in multicast: its link's number.
fn elected(net: &Net) -> Option<usize> {
    let members = net.show("a").members;
    let all_live = members.iter().all(|member| member.live);
    let elected = members.into_iter().find(|member| member.elected).filter(|_| all_live)?;
    elected.interface.strip_prefix("eth")?.parse().ok()
}

fn groups_follow_the_elected_member_when_it_dies(versions: Versions) {
    let net = net(versions);
    let (a, c, d, e) = (net.host("a"), net.host("c"), net.host("d"), net.host("e"));
    let receivers = GROUPS.map(|group| {
        // The last one keeps the groups known to the switch, which floods what it does not know.
        let guest = Receiver::start(e, GUEST_NIC, "198.18.0.201", group);
        [Receiver::start(a, BOND, a.ipv4(), group), guest, Receiver::start(d, "eth0", d.ipv4(), group)]
    });
    let receivers: Vec<Receiver> = receivers.into_iter().flatten().collect();
    let _stream = Stream::start(c);
    let _of_switch = OfSwitch(&net);
    for fault in [Fault::Silent, Fault::Carrier] {
        let dies = until("an elected member", || elected(&net), Option::is_some).expect("one");
        receivers.iter().for_each(Receiver::more);
        // The switch keeps the groups from the other member.
        for (ethertype, head) in [(packet::IPV4, [1, 0, 0x5e]), (packet::IPV6, [0x33, 0x33, 0])] {
            let other = || {
                let tap = Tap::open(a, &format!("eth{}", 1 - dies), ethertype);
                receivers.iter().for_each(Receiver::more);
                let is_stream = |frame: &Vec<u8>| frame.starts_with(&head) && frame.ends_with(b"a datagram");
                tap.take().iter().filter(|frame| is_stream(frame)).count()
            };
            until("the switch to snoop", other, |frames| *frames == 0);
        }
        let link = a.link(dies).expect("a link");
        let since = Instant::now();
        link.fail(fault).expect("fails");
        receivers.iter().for_each(Receiver::more);
        for receiver in &receivers {
            let pause = receiver.pause_since(since);
            println!("{fault:?}: {}: {pause:?}", receiver.name);
            assert!(pause < PAUSE_MAX, "{fault:?}: {}: {pause:?}", receiver.name);
        }
        link.mend().expect("mends");
    }
}

#[test]
fn groups_follow_the_elected_member_in_igmpv2_and_mldv1() {
    groups_follow_the_elected_member_when_it_dies(Versions::Old);
}

#[test]
fn groups_follow_the_elected_member_in_igmpv3_and_mldv2() {
    groups_follow_the_elected_member_when_it_dies(Versions::New);
}
