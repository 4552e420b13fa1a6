//! Neighbours, checked by iproute2.

mod common;

use std::{net::IpAddr, time::Duration};

use common::{cable, in_namespace, run, script};
use linkbraid_link::{
    LinkEvent, MacAddr, NeighbourReader, NeighbourState, Netlink, NextHop, Packet, RouteKind, Watch,
};

const MAC: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0x07]);

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// eth0 and eth1 with three neighbours, one of them unresolved.
async fn with_neighbours(net: &Netlink) -> u32 {
    let index = cable(net, "eth0", "sw0").await;
    cable(net, "eth1", "sw1").await;
    script(
        "
        ip address add 198.18.0.1/24 dev eth0
        ip neigh add 198.18.0.7 lladdr 02:00:00:00:00:07 dev eth0 nud permanent
        ip neigh add 2001:db8::7 lladdr 02:00:00:00:00:07 dev eth0 nud stale
        ip neigh add 198.18.0.8 lladdr 02:00:00:00:00:08 dev eth1 nud reachable
        ",
    );
    index
}

#[test]
fn both_families_of_one_interface_are_listed_with_their_state() {
    in_namespace(|net| async move {
        let index = with_neighbours(&net).await;
        let mut list = net.neighbours(index).await.unwrap();
        list.sort_by_key(|neighbour| neighbour.ip);
        let list: Vec<_> = list.iter().map(|n| (n.ip, n.mac, n.state)).collect();
        let wanted = [
            (ip("198.18.0.7"), MAC, NeighbourState::Permanent),
            (ip("2001:db8::7"), MAC, NeighbourState::Stale),
        ];
        assert_eq!(list, wanted);
        assert_eq!(net.neighbours(4_000_000).await.unwrap(), []);
    });
}

#[test]
fn next_hops_are_those_of_the_kernel() {
    in_namespace(|net| async move {
        let index = with_neighbours(&net).await;
        script(
            "
            ip link set lo up
            ip route add 198.18.1.0/24 via 198.18.0.7
            ip route add 198.18.2.0/24 via 198.18.0.9
            ip route add 198.18.3.0/24 dev eth1 table 7
            ip rule add fwmark 7 lookup 7
            ip rule add ipproto tcp dport 445 lookup 7
            ip route add blackhole 198.18.4.0/24
            ip route add 239.0.0.0/8 dev eth0
            ip -6 address add 2001:db8::1/64 dev eth0 nodad
            ip -6 route add 2001:db8:1::/64 via 2001:db8::7
            ",
        );
        let to = |text: &str| Packet::to(ip(text));
        let hop = async |packet: Packet| net.next_hop(&packet).await.unwrap();
        let from = NextHop {
            kind: RouteKind::Unicast,
            interface: index,
            gateway: None,
            source: Some(ip("198.18.0.1")),
            mac: Some(MAC),
            state: Some(NeighbourState::Permanent),
        };
        assert_eq!(hop(to("198.18.0.7")).await, from);
        assert_eq!(hop(to("198.18.1.1")).await, NextHop { gateway: Some(ip("198.18.0.7")), ..from });
        let unknown = NextHop { mac: None, state: None, ..from };
        assert_eq!(hop(to("198.18.0.200")).await, unknown);
        assert_eq!(hop(to("198.18.2.1")).await, NextHop { gateway: Some(ip("198.18.0.9")), ..unknown });
        let six = NextHop { source: Some(ip("2001:db8::1")), state: Some(NeighbourState::Stale), ..from };
        assert_eq!(hop(to("2001:db8::7")).await, six);
        assert_eq!(hop(to("2001:db8:1::1")).await, NextHop { gateway: Some(ip("2001:db8::7")), ..six });
        for (address, kind) in [
            ("198.18.0.1", RouteKind::Local),
            ("2001:db8::1", RouteKind::Local),
            ("198.18.0.255", RouteKind::Broadcast),
            ("239.1.2.3", RouteKind::Multicast),
            ("198.18.3.1", RouteKind::Unreachable),
            ("198.18.4.1", RouteKind::Unreachable),
        ] {
            assert_eq!(hop(to(address)).await.kind, kind, "{address}");
        }
        assert_eq!(hop(to("239.1.2.3")).await.mac, Some(MacAddr([1, 0, 0x5e, 1, 2, 3])));
        let other = net.link("eth1").await.unwrap().index;
        let own = Some(ip("198.18.0.1"));
        for packet in [
            Packet { mark: 7, ..to("198.18.3.1") },
            Packet { ports: Some((6, 1000, 445)), from: own, ..to("198.18.3.1") },
        ] {
            let found = hop(packet).await;
            assert_eq!((found.kind, found.interface), (RouteKind::Unicast, other), "{packet:?}");
        }
        let udp = Packet { ports: Some((17, 1000, 445)), from: own, dscp: 46, ..to("198.18.3.1") };
        assert_eq!(hop(udp).await.kind, RouteKind::Unreachable);
    });
}

/// The next change of a neighbour.
async fn change(watch: &mut Watch, of: IpAddr) -> Option<MacAddr> {
    let found = async {
        loop {
            match watch.next().await.unwrap() {
                LinkEvent::NeighbourChanged { ip, mac, .. } if ip == of => return mac,
                _ => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), found).await.expect("no event")
}

#[test]
fn changes_are_told_to_those_who_ask_for_them() {
    in_namespace(|net| async move {
        let index = with_neighbours(&net).await;
        let mut watch = Watch::with_neighbours().unwrap();
        let mut plain = Watch::new().unwrap();
        let host = ip("198.18.0.9");
        run("ip neigh add 198.18.0.9 lladdr 02:00:00:00:00:09 dev eth0");
        let first = LinkEvent::NeighbourChanged { index, ip: host, mac: Some(MacAddr([2, 0, 0, 0, 0, 9])) };
        assert_eq!(watch.next().await.unwrap(), first);
        run("ip neigh change 198.18.0.9 lladdr 02:00:00:00:00:0a dev eth0");
        assert_eq!(change(&mut watch, host).await, Some(MacAddr([2, 0, 0, 0, 0, 0x0a])));
        run("ip neigh del 198.18.0.9 dev eth0");
        while change(&mut watch, host).await.is_some() {}
        // Interfaces and addresses are reported as without.
        net.add_address(index, ip("198.18.5.1"), 24).await.unwrap();
        let address =
            async { while watch.next().await.unwrap() != (LinkEvent::AddressesChanged { index }) {} };
        tokio::time::timeout(Duration::from_secs(10), address).await.expect("no event");
        assert_eq!(plain.next().await.unwrap(), LinkEvent::AddressesChanged { index }, "not asked for");
    });
}

#[test]
fn a_thread_of_its_own_lists_the_same() {
    in_namespace(|net| async move {
        let index = with_neighbours(&net).await;
        let (sender, lists) = std::sync::mpsc::channel();
        let reader = NeighbourReader::start(move |index, list| _ = sender.send((index, list))).unwrap();
        for _ in 0..3 {
            assert!(reader.ask(index));
            let (of, list) = lists.recv_timeout(Duration::from_secs(10)).unwrap();
            assert_eq!((of, list.unwrap()), (index, net.neighbours(index).await.unwrap()));
        }
        drop(reader);
        // The thread ends, and what it reported with goes with it.
        assert!(lists.recv_timeout(Duration::from_secs(10)).is_err());
    });
}
