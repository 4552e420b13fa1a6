//! Broadcast, multicast and the switch: each frame once, and nothing flooded.

use linkbraid_lab::{Host, LinkSpec, Switch, Topology, wait_for, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, traffic};
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

/// Groups for documentation (RFC 6676, section 2 and 3).
const GROUP_V4: Ipv4Addr = Ipv4Addr::new(233, 252, 0, 1);
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xdb8, 0, 1);
const PORT: u16 = 4000;
/// Datagrams of each kind.
const COUNT: u32 = 200;
/// What a receiver holds until it is read: all datagrams, and a second copy of each, were there one.
const BUFFER: usize = COUNT as usize * 2 * 4096;

/// What is sent to whom.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Broadcast,
    MulticastV4,
    MulticastV6,
}

const KINDS: [Kind; 3] = [Kind::Broadcast, Kind::MulticastV4, Kind::MulticastV6];

/// The interface that has a host's addresses.
fn interface(host: Host<'_>) -> &'static str {
    if host.spec().plain { "eth0" } else { BOND }
}

/// A socket of a host, in its group and on its port if `member`.
fn socket(host: Host<'_>, kind: Kind, member: bool) -> UdpSocket {
    // A child that another test has just forked holds a copy of the socket before, until it runs its program.
    wait_for(SOON, &format!("a socket of {} for {kind:?}", host.name()), || open(host, kind, member))
        .unwrap_or_else(|e| panic!("{e}"))
}

fn open(host: Host<'_>, kind: Kind, member: bool) -> std::io::Result<UdpSocket> {
    let interface = interface(host);
    let opened = host.run(|| -> std::io::Result<UdpSocket> {
        let index = nix::net::if_::if_nametoindex(interface)?;
        let port = if member { PORT } else { 0 };
        let socket = match kind {
            Kind::MulticastV6 => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port))?,
            Kind::Broadcast | Kind::MulticastV4 => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?,
        };
        match kind {
            Kind::Broadcast => socket.set_broadcast(true)?,
            Kind::MulticastV4 if member => {
                let own: Ipv4Addr = host.ipv4().parse().map_err(std::io::Error::other)?;
                socket.join_multicast_v4(&GROUP_V4, &own)?;
            }
            Kind::MulticastV6 if member => socket.join_multicast_v6(&GROUP_V6, index)?,
            Kind::MulticastV4 | Kind::MulticastV6 => {}
        }
        setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    opened.expect("enters")
}

fn target(host: Host<'_>, kind: Kind) -> SocketAddr {
    match kind {
        Kind::Broadcast => (Ipv4Addr::new(198, 18, 0, 255), PORT).into(),
        Kind::MulticastV4 => (GROUP_V4, PORT).into(),
        Kind::MulticastV6 => {
            let index = host.run(|| nix::net::if_::if_nametoindex(interface(host)));
            SocketAddrV6::new(GROUP_V6, PORT, 0, index.expect("enters").expect("there")).into()
        }
    }
}

/// How often each number has arrived, added to `seen`.
fn receive(socket: &UdpSocket, seen: &mut BTreeMap<u32, u32>) {
    let mut bytes = [0; 4];
    loop {
        match socket.recv(&mut bytes) {
            Ok(4) => *seen.entry(u32::from_be_bytes(bytes)).or_default() += 1,
            Ok(other) => panic!("{other} bytes"),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return,
            Err(e) => panic!("{e}"),
        }
    }
}

/// Sends numbered datagrams of each kind from `from`; each of `to` must get each of them, once.
#[track_caller]
fn delivered_once(net: &Net, from: &str, to: &[&str]) {
    let (from, to) = (net.host(from), to.iter().map(|name| net.host(name)).collect::<Vec<_>>());
    let (a, b) = (net.host("a"), net.host("b"));
    let route = format!("ip route replace 233.252.0.0/24 dev {}", interface(from));
    from.sh(&route).expect("sets");
    for kind in KINDS {
        let receivers: Vec<UdpSocket> = to.iter().map(|host| socket(*host, kind, true)).collect();
        let sender = socket(from, kind, false);
        let target = target(from, kind);
        for number in 0..COUNT {
            sender.send_to(&number.to_be_bytes(), target).expect("sends");
        }
        for (host, receiver) in to.iter().zip(&receivers) {
            let what = format!("{kind:?} from {} to {}", from.name(), host.name());
            let mut seen = BTreeMap::new();
            let missing = || {
                receive(receiver, &mut seen);
                (0..COUNT).filter(|number| !seen.contains_key(number)).collect::<Vec<_>>()
            };
            wait_until(SOON, &what, missing, Vec::is_empty).unwrap_or_else(|e| panic!("{e}"));
            // A second copy goes another way; what answers now left after it.
            a.sh(&format!("ping -c 20 -i 0.005 -W 2 {}", b.ipv4())).expect("reaches");
            receive(receiver, &mut seen);
            let twice: Vec<_> = seen.iter().filter(|(_, times)| **times != 1).collect();
            assert!(twice.is_empty() && seen.len() == COUNT as usize, "{what}: {twice:?}");
        }
    }
}

/// Waits until both bonded hosts have proven so many lanes: before that, a MAC of the other one is any host's, whose copies are taken
/// in on each switch.
#[track_caller]
fn wait_proven(net: &Net, count: usize) {
    for name in ["a", "b"] {
        let proven = || net.lanes(name).iter().filter(|lane| lane.state == "up").count();
        wait_until(SOON, "proven lanes", proven, |lanes| *lanes == count)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn each_datagram_arrives_once_with_four_members_on_one_switch() {
    let four = || std::iter::repeat_n(LinkSpec::switch(0, None), 4);
    let topology =
        Topology::empty("lab", 1).host(four()).host(four()).plain_host([LinkSpec::switch(0, None)]);
    let net = Net::bonded(topology);
    wait_proven(&net, 16);
    delivered_once(&net, "a", &["b", "c"]);
    delivered_once(&net, "b", &["a", "c"]);
    delivered_once(&net, "c", &["a", "b"]);
    // All members had their turn.
    for name in ["a", "b"] {
        let sent: Vec<u64> = net.show(name).members.iter().map(|m| m.tx_frames).collect();
        assert!(sent.iter().all(|frames| *frames > u64::from(COUNT) / 4), "{sent:?}");
    }
}

#[test]
fn each_datagram_arrives_once_over_two_separate_switches() {
    let both = || [LinkSpec::switch(0, None), LinkSpec::switch(1, None)];
    let net = Net::bonded(
        Topology::empty("lab", 2)
            .host(both())
            .host(both())
            .plain_host([LinkSpec::switch(0, None)])
            .plain_host([LinkSpec::switch(1, None)]),
    );
    let segments = || net.show("a").members.iter().map(|m| m.segment).collect::<Vec<_>>();
    wait_until(SOON, "two segments", segments, |seen| seen[0] != seen[1]).unwrap_or_else(|e| panic!("{e}"));
    wait_proven(&net, 2);
    // Plain hosts on either switch hear a bond, and are heard by it.
    delivered_once(&net, "a", &["b", "c", "d"]);
    delivered_once(&net, "c", &["a", "b"]);
    delivered_once(&net, "d", &["a", "b"]);
}

#[test]
fn a_segment_whose_elected_member_dies_still_hears_each_datagram_once() {
    let four = || std::iter::repeat_n(LinkSpec::switch(0, None), 4);
    let net = Net::bonded(Topology::empty("lab", 1).host(four()).host(four()));
    // Until then each lane that is proven first may have another member elected.
    wait_proven(&net, 16);
    let a = net.host("a");
    let elected = || net.show("a").members.iter().position(|m| m.elected && m.live);
    let first =
        wait_until(SOON, "an elected member", elected, Option::is_some).expect("elects").expect("one");
    a.link(first).expect("there").carrier(false).expect("sets");
    wait_until(SOON, "another elected member", elected, |now| now.is_some_and(|m| m != first))
        .unwrap_or_else(|e| panic!("{e}"));
    net.wait_tables(&["a", "b"]);
    wait_proven(&net, 12);
    delivered_once(&net, "b", &["a"]);
    delivered_once(&net, "a", &["b"]);
}

/// Unicast frames that the switch has flooded, over all ports.
fn flooded(net: &Net) -> u64 {
    let links = net.lab().hosts().flat_map(|host| host.links().expect("there"));
    links.map(|link| link.port_count().expect("readable").flooded).sum()
}

#[test]
fn the_switch_floods_nothing_in_steady_state() {
    let four = || std::iter::repeat_n(LinkSpec::switch(0, Some(20)), 4);
    let topology =
        Topology::empty("lab", 1).host(four()).host(four()).plain_host([LinkSpec::switch(0, Some(20))]);
    let net = Net::bonded(topology);
    let [a, b, c] = ["a", "b", "c"].map(|name| net.host(name));
    // A switch that forgets after three seconds shows within seconds what a real one shows after five minutes.
    let switch = net.lab().switch(0).expect("there").name().to_owned();
    linkbraid_lab::tool::ip_batch(&switch, &["link set br0 type bridge ageing_time 300".into()])
        .expect("sets");
    for (from, to) in [(a, b), (b, a), (a, c), (c, a)] {
        from.wait_ping(to.ipv4(), SOON).expect("reaches");
    }
    let before = flooded(&net);
    for (from, to) in [(a, b), (b, a), (a, c)] {
        linkbraid_lab::iperf::run(from, to, &traffic::tcp()).expect("runs");
    }
    assert_eq!(flooded(&net), before, "while flows run");
    // Silence of the users for twice that time, told by the announcements that go on.
    let said = || net.counter("a", "tx_change");
    let start = said();
    wait_until(SOON, "announcements", said, |now| *now > start + 8 * 4).unwrap_or_else(|e| panic!("{e}"));
    a.sh(&format!("ping -c 20 -i 0.01 {}", b.ipv4())).expect("reaches");
    b.sh(&format!("ping -c 20 -i 0.01 {}", a.ipv4())).expect("reaches");
    linkbraid_lab::iperf::run(a, b, &traffic::tcp()).expect("runs");
    assert_eq!(flooded(&net), before, "after silence");
}

#[test]
fn a_switch_that_keeps_the_first_port_works_as_well() {
    let mut topology = Topology::symmetric(2, 2, Some(20));
    topology.switches = vec![Switch { sticky: true }];
    let net = Net::up(topology);
    let (a, b) = (net.host("a"), net.host("b"));
    let single = traffic::measure(a, b);
    net.bond_all();
    for (from, to) in [(a, b), (b, a)] {
        traffic::reaches(from, to, &traffic::tcp(), |o| o.mbit() / single > 1.8);
    }
    delivered_once(&net, "a", &["b"]);
}
