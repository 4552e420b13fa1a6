//! Interfaces and bridges, checked by iproute2.

mod common;

use common::{as_it_was, bond_of, cable, in_namespace, join, kind, run, settled, until};
use linkbraid_link::{
    Kind, MacAddr, OperState, PortFlags, Speed, driver, eee, has_filters, offloads, set_udp_segmentation,
    speed,
};

const MAC: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0x42]);

#[test]
fn a_bridge_comes_with_all_options_and_goes_without_trace() {
    in_namespace(|net| async move {
        let before = settled(&net).await;
        let index = net.create_bridge("bond0", MAC, 1500).await.unwrap();
        let link = net.link("bond0").await.unwrap();
        assert_eq!((link.index, link.mac, link.mtu, link.up), (index, MAC, 1500, false));
        assert_eq!(link.kind.as_deref(), Some("bridge"));
        assert_eq!(link, net.link_by_index(index).await.unwrap());
        let shown: serde_json::Value = serde_json::from_str(&run("ip -d -j link show bond0")).unwrap();
        let data = &shown[0]["linkinfo"]["info_data"];
        for (key, value) in
            [("stp_state", 0), ("forward_delay", 0), ("mcast_snooping", 0), ("no_linklocal_learn", 1)]
        {
            assert_eq!(data[key], value, "{key} of {data}");
        }
        net.delete_link(index).await.unwrap();
        as_it_was(&net, &before).await;
    });
}

#[test]
fn filters_are_seen_on_either_side() {
    in_namespace(|net| async move {
        let index = cable(&net, "eth0", "sw0").await;
        assert!(!net.has_filters(index).await.unwrap(), "without clsact");
        run("tc qdisc add dev eth0 clsact");
        assert!(!net.has_filters(index).await.unwrap(), "clsact is empty");
        for side in ["ingress", "egress"] {
            run(&format!("tc filter add dev eth0 {side} pref 7 protocol all u32 match u32 0 0 flowid 1:1"));
            assert!(net.has_filters(index).await.unwrap(), "{side}");
            assert!(has_filters(index).unwrap(), "{side}, by a connection of its own");
            assert_eq!(net.filters_before(index, 8).await.unwrap(), [side]);
            assert_eq!(net.filters_before(index, 7).await.unwrap(), [""; 0]);
            run(&format!("tc filter del dev eth0 {side}"));
            assert!(!net.has_filters(index).await.unwrap(), "{side}");
        }
        net.delete_link(index).await.unwrap();
        assert!(!net.has_filters(index).await.unwrap(), "the interface is gone");
    });
}

#[test]
fn only_a_queue_that_the_kernel_chose_is_replaced_and_it_comes_back() {
    in_namespace(|net| async move {
        run("ip tuntap add dev tap0 mode tap");
        run("ip link set tap0 up");
        let index = net.link("tap0").await.unwrap().index;
        let shown = || run("tc qdisc show dev tap0");
        let before = shown();
        let queue = async || net.queues().await.unwrap()[&index].clone();
        let chosen = queue().await;
        assert!(chosen.is_default() && !chosen.is_ours(), "{chosen:?}");
        net.queue_by_default(index).await.unwrap();
        assert_eq!(shown(), before, "nothing of ours is there");

        net.queue_by_priority(index).await.unwrap();
        assert!(queue().await.is_ours());
        assert!(shown().starts_with("qdisc pfifo_fast 1b0d: root"), "{}", shown());
        assert_eq!(net.queue_by_priority(index).await.unwrap_err().kind, Kind::Exists);
        net.queue_by_default(index).await.unwrap();
        assert_eq!(shown(), before);

        run("tc qdisc add dev tap0 root handle 7: pfifo limit 10");
        let theirs = queue().await;
        assert!(!theirs.is_default() && !theirs.is_ours() && theirs.has_frames(), "{theirs:?}");
        assert_eq!(net.queue_by_priority(index).await.unwrap_err().kind, Kind::Exists);
        net.queue_by_default(index).await.unwrap();
        assert_eq!(queue().await, theirs);

        let cable = cable(&net, "eth0", "sw0").await;
        let none = net.queues().await.unwrap()[&cable].clone();
        assert!(!none.has_frames() && !none.is_default(), "{none:?}");
    });
}

#[test]
fn mac_and_mtu_of_a_bond_stay_when_members_come_and_go() {
    in_namespace(|net| async move {
        let member = cable(&net, "eth0", "sw0").await;
        for mtu in [1500, 1400, 9000] {
            let bond = net.create_bridge("bond0", MAC, mtu).await.unwrap();
            net.set_mtu(member, 4000).await.unwrap();
            net.set_master(member, bond).await.unwrap();
            let link = net.link("bond0").await.unwrap();
            assert_eq!((link.mac, link.mtu), (MAC, mtu));
            net.clear_master(member).await.unwrap();
            let link = net.link("bond0").await.unwrap();
            assert_eq!((link.mac, link.mtu), (MAC, mtu));
            net.delete_link(bond).await.unwrap();
        }
    });
}

#[test]
fn members_are_silent_isolated_ports() {
    in_namespace(|net| async move {
        let member = cable(&net, "eth0", "sw0").await;
        let bond = bond_of(&net, member).await;
        join(&net, member, bond).await;
        let shown: serde_json::Value = serde_json::from_str(&run("bridge -d -j link show dev eth0")).unwrap();
        let port = &shown[0];
        assert_eq!(port["isolated"], true);
        for flag in ["learning", "flood", "mcast_flood", "bcast_flood", "neigh_suppress"] {
            assert_eq!(port[flag], false, "{flag} of {port}");
        }
        let link = net.link("eth0").await.unwrap();
        assert_eq!((link.controller, link.port), (Some(bond), Some(PortFlags::MEMBER)));
        assert_eq!(link.port_kind.as_deref(), Some("bridge"));
        // A bridge without a VLAN filter hears everything on its ports (br_manage_promisc, net/bridge/br_if.c).
        assert_eq!((link.promiscuity, link.promisc_flag), (1, false));
        assert_eq!(run("ip -6 address show dev eth0"), "", "a member has no IPv6");
        until(|| net.link("bond0"), |bond| bond.as_ref().is_ok_and(|bond| bond.oper_state == OperState::Up))
            .await
            .unwrap();
    });
}

#[test]
fn carrier_and_state_are_read() {
    in_namespace(|net| async move {
        cable(&net, "eth0", "sw0").await;
        let link = net.link("eth0").await.unwrap();
        assert!(link.up && link.carrier && link.ethernet && !link.loopback && !link.wireless);
        assert_eq!(link.kind.as_deref(), Some("veth"));
        run("ip link set sw0 down");
        let state = |link: &linkbraid_link::Result<linkbraid_link::LinkInfo>| {
            link.as_ref().is_ok_and(|link| link.up && !link.carrier && !link.running())
        };
        let link = until(|| net.link("eth0"), state).await.unwrap();
        assert_eq!(link.oper_state, OperState::LowerLayerDown);
        let all = net.links().await.unwrap();
        assert_eq!(all.iter().map(|link| link.name.as_str()).collect::<Vec<_>>(), ["lo", "sw0", "eth0"]);
        assert!(all[0].loopback && !all[0].ethernet);
    });
}

#[test]
fn segmentation_limits_are_set_and_read() {
    in_namespace(|net| async move {
        let bond = net.create_bridge("bond0", MAC, 1500).await.unwrap();
        net.set_gso_max(bond, 16_384, Some(12)).await.unwrap();
        let link = net.link("bond0").await.unwrap();
        assert_eq!((link.gso_max_size, link.gso_max_segs), (16_384, 12));
        assert!(link.gso_ipv4_max_size.is_none_or(|size| size == 16_384));
        let shown = run("ip -d link show bond0");
        assert!(shown.contains("gso_max_size 16384") && shown.contains("gso_max_segs 12"), "{shown}");
        assert_eq!(kind(net.set_gso_max(bond, u32::MAX, None).await), Kind::BadValue);
    });
}

#[test]
fn routes_are_looked_up_again_and_stay_as_they_were() {
    in_namespace(|net| async move {
        let bond = net.create_bridge("bond0", MAC, 1500).await.unwrap();
        run("ip address add 198.18.0.1/24 dev bond0");
        run("ip address add 2001:db8::1/64 dev bond0 nodad");
        run("ip link set bond0 up");
        run("ip route add 198.18.7.0/24 via 198.18.0.9 mtu lock 1300");
        let routes = || run("ip -details route show table all") + &run("ip -6 -details route show table all");
        let before = routes();
        net.recheck_routes(bond).await.unwrap();
        assert_eq!(routes(), before);
        // A route of that kind that is somebody's own stays, and says so.
        run("ip route add blackhole 198.18.0.1/32 metric 4294967295");
        assert_eq!(kind(net.recheck_routes(bond).await), Kind::Exists);
        assert!(routes().contains("blackhole 198.18.0.1"));
    });
}

#[test]
fn an_internal_port_is_made_once_put_right_and_removed() {
    in_namespace(|net| async move {
        let bond = net.create_bridge("bond0", MAC, 1500).await.unwrap();
        let port = net.internal_port(bond).await.unwrap().0;
        net.set_up(port).await.unwrap();
        let carries = |link: &linkbraid_link::Result<linkbraid_link::LinkInfo>| {
            link.as_ref().is_ok_and(linkbraid_link::LinkInfo::running)
        };
        let link = until(|| net.link_by_index(port), carries).await.unwrap();
        assert_eq!(link.name, format!("lbint{bond}"));
        assert_eq!((link.controller, link.port), (Some(bond), Some(PortFlags::INTERNAL)));
        assert_eq!((link.mtu, link.addr_gen_mode.unwrap_or(1)), (65535, 1));
        assert_eq!(net.link("bond0").await.unwrap().mtu, 1500);
        // Somebody changed it.
        run(&format!("ip link set {} down", link.name));
        run(&format!("ip link set {} name other nomaster", link.name));
        run(&format!("ip link set lbend{bond} down"));
        assert_eq!(net.internal_port(bond).await.unwrap().0, port);
        net.set_up(port).await.unwrap();
        let link = until(|| net.link_by_index(port), carries).await.unwrap();
        assert_eq!((link.controller, link.port), (Some(bond), Some(PortFlags::INTERNAL)));
        net.delete_link(bond).await.unwrap();
        net.delete_internal_port(bond).await.unwrap();
        assert_eq!(kind(net.link_by_index(port).await), Kind::NoDevice);
        net.delete_internal_port(bond).await.unwrap();
    });
}

#[test]
fn an_interface_takes_buffers_of_udp_or_has_them_cut() {
    in_namespace(|net| async move {
        let bond = net.create_bridge("bond0", MAC, 1500).await.unwrap();
        net.internal_port(bond).await.unwrap();
        for on in [false, true] {
            set_udp_segmentation("bond0", on).unwrap();
            let shown = run("ethtool -k bond0");
            let line = shown.lines().find(|line| line.contains("tx-udp-segmentation")).unwrap();
            assert!(line.trim().ends_with(if on { "on" } else { "off" }), "{line}");
        }
        assert!(set_udp_segmentation("absent0", true).is_err());
    });
}

#[test]
fn an_interface_names_the_one_it_is_stacked_on() {
    in_namespace(|net| async move {
        let bond = net.create_bridge("bond0", MAC, 1500).await.unwrap();
        run("ip link add link bond0 name above0 type macvlan mode bridge");
        run("ip link add vxlan0 type vxlan id 7 dstport 4789 dev bond0 remote 198.18.0.2");
        run("ip link add vxlan1 type vxlan id 8 dstport 4790 remote 198.18.0.2");
        assert_eq!(net.link("above0").await.unwrap().lower, Some(bond));
        assert_eq!(net.link("vxlan0").await.unwrap().lower, Some(bond));
        assert_eq!(net.link("vxlan1").await.unwrap().lower, None);
        assert_eq!(net.link("bond0").await.unwrap().lower, None);
    });
}

#[test]
fn speed_and_offloads_of_a_veth() {
    in_namespace(|net| async move {
        cable(&net, "eth0", "sw0").await;
        assert_eq!(speed("eth0"), Some(Speed { mbit: 10_000, full_duplex: Some(true) }));
        assert_eq!(speed("lo"), None, "the loopback has no speed");
        assert_eq!(speed("absent0"), None);
        let on = offloads("eth0").unwrap();
        assert!(on.tso && on.gso, "{on:?}");
        assert_eq!(offloads("absent0"), None);
        // A bridge takes the speed of its ports, and has none without.
        let bond = net.create_bridge("bond0", MAC, 1500).await.unwrap();
        assert_eq!(speed("bond0"), None);
        assert!(bond > 0);
    });
}

#[test]
fn a_driver_is_named_and_says_nothing_of_what_it_lacks() {
    in_namespace(|net| async move {
        cable(&net, "eth0", "sw0").await;
        assert_eq!(driver("eth0").as_deref(), Some("veth"));
        assert_eq!(driver("absent0"), None);
        assert_eq!(driver("a-name-longer-than-any"), None);
        assert_eq!(eee("eth0"), None, "a veth has no energy saving");
        assert_eq!(eee("absent0"), None);
    });
}

#[test]
fn refusals_are_said_in_words() {
    in_namespace(|net| async move {
        let member = cable(&net, "eth0", "sw0").await;
        let bond = bond_of(&net, member).await;
        let error = net.create_bridge("bond0", MAC, 1500).await.unwrap_err();
        assert_eq!(error.to_string(), "bond0: cannot create the bridge: it already exists");
        let error = net.link("absent0").await.unwrap_err();
        assert_eq!(error.to_string(), "absent0: cannot read the interface: no such interface");
        assert_eq!(kind(net.link("a-name-longer-than-any").await), Kind::NoDevice);
        assert_eq!(kind(net.link_by_index(4_000_000).await), Kind::NoDevice);
        let error = net.set_mtu(member, 70_000).await.unwrap_err();
        assert_eq!((error.object.as_str(), error.kind), ("eth0", Kind::BadValue));
        assert!(error.said.is_some(), "the kernel says more: {error}");
        let lo = net.link("lo").await.unwrap().index;
        assert_eq!(kind(net.set_master(lo, bond).await), Kind::BadValue);
        assert_eq!(kind(net.set_master(bond, bond).await), Kind::Loop);
        net.set_master(member, bond).await.unwrap();
        let other = net.create_bridge("bond1", MAC, 1500).await.unwrap();
        assert_eq!(net.link("eth0").await.unwrap().controller, Some(bond));
        // Another bridge takes a port over without a word: who asks has to look at the controller first.
        net.set_master(member, other).await.unwrap();
        assert_eq!(net.link("eth0").await.unwrap().controller, Some(other));
        net.delete_link(bond).await.unwrap();
        assert_eq!(kind(net.delete_link(bond).await), Kind::NoDevice);
        assert_eq!(kind(net.delete_link(lo).await), Kind::Unsupported);
    });
}
