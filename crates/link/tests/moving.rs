//! Addresses and routes go to the bond and come back exactly as they were.

mod common;

use common::{FLUSHED, as_it_was, bond_of, cable, in_namespace, join, kind, run, script, settled, until};
use linkbraid_link::{Kind, Moved, Netlink, Saved};

/// Gives eth0 everything that is hard to put back.
async fn busy_interface(net: &Netlink) -> u32 {
    let eth0 = cable(net, "eth0", "sw0").await;
    cable(net, "eth1", "sw1").await;
    script(
        "
        ip address add 198.18.0.1/24 broadcast 198.18.0.255 dev eth0
        ip address add 198.18.0.2/24 dev eth0 label eth0:web
        ip address add 198.18.7.1/24 dev eth0 metric 50
        ip address add 198.18.0.3/24 dev eth0 valid_lft 5000 preferred_lft 4000
        ip address add 198.18.9.1 peer 198.18.9.2 dev eth0
        ip address add 198.18.1.1/24 dev eth1
        ip address add 2001:db8:1::1/64 dev eth0 nodad
        ip address add 2001:db8:1::2/64 dev eth0
        ip address add 2001:db8:2::1/64 dev eth0 noprefixroute
        ip address add 198.18.70.1/24 dev eth0 noprefixroute
        ip route add 198.18.70.0/24 dev eth0 proto kernel scope link src 198.18.70.1 metric 100
        ip route add default via 198.18.70.254 proto dhcp metric 300
        ip route add default via 198.18.0.252 dev eth0 proto kernel metric 400 onlink
        ip route add default via 198.18.0.254 metric 100
        ip route add default via 198.18.0.253 metric 200 src 198.18.0.2
        ip route add 198.18.64.0/24 via 198.18.0.254 mtu 1400 advmss 1300
        ip route add 198.18.65.0/24 via 198.18.64.9 dev eth0 onlink
        ip route add 198.18.66.0/24 dev eth0 scope link table 77
        ip route add 198.18.68.0/24 via 198.18.66.1 dev eth0 onlink table 77 proto static
        ip route add 198.18.67.0/24 nexthop via 198.18.0.254 dev eth0 weight 3 nexthop via 198.18.1.254 dev eth1
        ip route add 198.18.69.0/24 tos 0x10 via 198.18.0.250
        ip -6 route add default via 2001:db8:1::fe metric 300
        ip -6 route add 2001:db8:40::/48 via 2001:db8:1::fe src 2001:db8:1::1 mtu 1400 pref high
        ip -6 route add 2001:db8:41::/48 via fe80::1 dev eth0 table 77
        ip -6 route add 2001:db8:42::/48 dev eth0 metric 5
        ",
    );
    eth0
}

#[test]
fn a_default_route_is_found_without_a_look_at_all_routes() {
    in_namespace(|net| async move {
        let eth0 = cable(&net, "eth0", "sw0").await;
        let eth1 = cable(&net, "eth1", "sw1").await;
        let found = async || {
            let mut found = Vec::new();
            for (index, ipv6) in [(eth0, false), (eth0, true), (eth1, false), (eth1, true)] {
                found.push(net.has_default_route(index, ipv6).await.unwrap());
            }
            found
        };
        script(
            "
            ip address add 198.18.0.1/24 dev eth0
            ip address add 2001:db8::1/64 dev eth0 nodad
            ip route add 198.18.64.0/24 dev eth1
            ",
        );
        assert_eq!(found().await, [false; 4], "only networks");
        for (line, wanted) in [
            ("route add default via 198.18.0.2 metric 7", [true, false, false, false]),
            ("route add default dev eth1 metric 9", [true, false, true, false]),
            ("-6 route add default via 2001:db8::2", [true, true, true, false]),
            ("-6 route add default dev eth1 metric 9", [true; 4]),
        ] {
            run(&format!("ip {line}"));
            assert_eq!(found().await, wanted, "{line}");
        }
    });
}

#[test]
fn everything_moves_and_comes_back() {
    in_namespace(|net| async move {
        let eth0 = busy_interface(&net).await;
        let before = settled(&net).await;
        let bond = bond_of(&net, eth0).await;
        assert!(net.carries_default_route(eth0).await.unwrap());

        let moved = net.move_addresses(eth0, bond).await.unwrap();
        assert!(!net.carries_default_route(eth0).await.unwrap());
        assert!(net.carries_default_route(bond).await.unwrap());
        assert_eq!(run("ip -4 -o address show dev eth0"), "");
        let own = |text: String| text.lines().map(|line| line.replace("bond0", "eth0")).collect::<Vec<_>>();
        let there = own(run("ip -o address show dev bond0 scope global"));
        assert_eq!(there.len(), 9, "{there:#?}");
        let labels = run("ip -4 address show dev bond0");
        assert!(labels.contains("bond0:web"), "{labels}");
        let routes = run("ip route show table all");
        for route in [
            "default via 198.18.0.254 dev bond0 metric 100",
            "default via 198.18.0.253 dev bond0 src 198.18.0.2 metric 200",
            "198.18.66.0/24 dev bond0 table 77",
            // As NetworkManager has them: it makes the route of an address itself.
            "198.18.70.0/24 dev bond0 proto kernel scope link src 198.18.70.1 metric 100",
            "default via 198.18.70.254 dev bond0 proto dhcp metric 300",
            // As ifupdown2 has them.
            "default via 198.18.0.252 dev bond0 proto kernel metric 400 onlink",
            "nexthop via 198.18.0.254 dev bond0 weight 3",
            "nexthop via 198.18.1.254 dev eth1 weight 1",
        ] {
            assert!(routes.contains(route), "{route} in\n{routes}");
        }
        // Only what the kernel made with eth0's link-local address is left.
        let left: Vec<_> =
            net.routes_via(eth0).await.unwrap().into_iter().filter(|r| !r.automatic()).collect();
        assert_eq!(left, []);

        // The record survives a restart of the daemon.
        let text = serde_json::to_string(&moved).unwrap();
        let moved: Moved = serde_json::from_str(&text).unwrap();
        net.move_back(&moved).await.unwrap();
        assert_eq!(run("ip -o address show dev bond0 scope global"), "");
        net.delete_link(bond).await.unwrap();
        as_it_was(&net, &before).await;
        // Once more changes nothing.
        net.move_back(&moved).await.unwrap();
        as_it_was(&net, &before).await;
    });
}

#[test]
fn addresses_come_back_when_the_bond_is_gone_already() {
    in_namespace(|net| async move {
        let eth0 = busy_interface(&net).await;
        let before = settled(&net).await;
        let bond = bond_of(&net, eth0).await;
        let moved = net.move_addresses(eth0, bond).await.unwrap();
        net.delete_link(bond).await.unwrap();
        net.move_back(&moved).await.unwrap();
        as_it_was(&net, &before).await;
    });
}

#[test]
fn a_move_that_fails_half_way_leaves_everything_where_it_was() {
    in_namespace(|net| async move {
        let eth0 = busy_interface(&net).await;
        // A target without IPv6 takes the IPv4 addresses and refuses the first IPv6 one.
        let bond = bond_of(&net, eth0).await;
        net.set_ipv6(bond, false).await.unwrap();
        let before = settled(&net).await;
        let error = net.move_addresses(eth0, bond).await.unwrap_err();
        assert!(error.what.contains("2001:db8:"), "{error}");
        as_it_was(&net, &before).await;
    });
}

#[test]
fn a_route_with_a_nexthop_object_is_refused_before_anything_moves() {
    in_namespace(|net| async move {
        let eth0 = cable(&net, "eth0", "sw0").await;
        script(
            "
            ip address add 198.18.0.1/24 dev eth0
            ip nexthop add id 5 via 198.18.0.254 dev eth0
            ip route add 198.18.64.0/24 nhid 5
            ",
        );
        let bond = bond_of(&net, eth0).await;
        let before = settled(&net).await;
        assert_eq!(kind(net.move_addresses(eth0, bond).await), Kind::Unsupported);
        as_it_was(&net, &before).await;
    });
}

#[test]
fn an_interface_without_addresses_moves_nothing() {
    in_namespace(|net| async move {
        let eth0 = cable(&net, "eth0", "sw0").await;
        let bond = bond_of(&net, eth0).await;
        let before = settled(&net).await;
        let moved = net.move_addresses(eth0, bond).await.unwrap();
        assert!(moved.is_empty());
        net.move_back(&moved).await.unwrap();
        as_it_was(&net, &before).await;
    });
}

#[test]
fn a_member_that_leaves_is_as_it_was() {
    in_namespace(|net| async move {
        let eth0 = busy_interface(&net).await;
        script(
            "
            ip link set eth0 mtu 1600 alias uplink
            ip link set eth0 allmulticast on
            tc qdisc add dev eth0 root handle 1: tbf rate 20mbit burst 8k latency 50ms
            ",
        );
        net.set_gso_max(eth0, 32_768, Some(20)).await.unwrap();
        let before = settled(&net).await;

        let saved = net.snapshot(eth0).await.unwrap();
        assert_eq!(saved.link.qdisc, "tbf");
        let bond = bond_of(&net, eth0).await;
        let moved = net.move_addresses(eth0, bond).await.unwrap();
        join(&net, eth0, bond).await;
        net.set_mtu(eth0, 1500).await.unwrap();
        net.set_gso_max(eth0, 16_384, None).await.unwrap();
        net.set_alias(eth0, "member").await.unwrap();
        assert_ne!(net.fingerprint().await.unwrap(), before);

        let saved: Saved = serde_json::from_str(&serde_json::to_string(&saved).unwrap()).unwrap();
        net.clear_master(eth0).await.unwrap();
        net.move_back(&moved).await.unwrap();
        net.restore(&saved).await.unwrap();
        net.delete_link(bond).await.unwrap();
        as_it_was(&net, &before).await;
        net.restore(&saved).await.unwrap();
        as_it_was(&net, &before).await;
    });
}

#[test]
fn restore_alone_puts_everything_back_after_a_crash() {
    in_namespace(|net| async move {
        let eth0 = busy_interface(&net).await;
        let before = settled(&net).await;
        let saved = net.snapshot(eth0).await.unwrap();
        let bond = bond_of(&net, eth0).await;
        net.move_addresses(eth0, bond).await.unwrap();
        join(&net, eth0, bond).await;
        net.delete_link(bond).await.unwrap();
        net.restore(&saved).await.unwrap();
        as_it_was(&net, &before).await;
    });
}

#[test]
fn an_interface_that_was_down_or_without_link_local_address_stays_so() {
    in_namespace(|net| async move {
        let down = cable(&net, "eth0", "sw0").await;
        let bare = cable(&net, FLUSHED, "sw1").await;
        let link_local =
            || async { net.addresses(bare).await.unwrap().iter().any(|address| address.automatic) };
        until(link_local, |has| *has).await;
        run(&format!("ip -6 address flush dev {FLUSHED}"));
        run("ip link set eth0 down");
        let before = settled(&net).await;
        let saved = [net.snapshot(down).await.unwrap(), net.snapshot(bare).await.unwrap()];
        let bond = bond_of(&net, bare).await;
        for member in [down, bare] {
            net.set_up(member).await.unwrap();
            join(&net, member, bond).await;
        }
        for saved in &saved {
            net.restore(saved).await.unwrap();
        }
        net.delete_link(bond).await.unwrap();
        as_it_was(&net, &before).await;
    });
}
