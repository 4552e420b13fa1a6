//! A fabric over UDP without any option: frames of TCP go by the kernel's VXLAN wherever that can be had, and by the queues elsewhere.

use crate::nodes::{
    Nodes,
    vxlan::{add, counter, devices, wait_not_taken, wait_taken, ways},
};
use linkbraid_lab::wait_until;
use linkbraid_netns_tests::{SOON, traffic};
use std::{fs, net::UdpSocket};

/// What a usual path of Ethernet does not take, the default.
const MTU: &str = "";

/// The UDP port of a node's VXLAN, which it has or wants.
#[track_caller]
fn port(nodes: &Nodes, node: usize) -> u16 {
    nodes.show(node).vxlan.expect("nobody forbids it").port
}

/// The ports that the fabric of these nodes may have, by the fourth byte of its MACs.
#[track_caller]
fn ports(nodes: &Nodes, node: usize) -> [u16; 4] {
    let mac = nodes.show(node).mac;
    let number = mac.split(':').nth(3).and_then(|byte| u16::from_str_radix(byte, 16).ok()).expect("a MAC");
    [0, 1, 2, 3].map(|k| 64_000 + 256 * k + number)
}

/// One flow, which goes past both daemons.
#[track_caller]
fn tcp_goes_by_vxlan(nodes: &Nodes) {
    let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
    let before = ways(nodes, 0).remove(0);
    traffic::reaches(a, b, &traffic::tcp().to(&Nodes::ip(1)), |outcome| outcome.mbit() > 100.0);
    let now = ways(nodes, 0).remove(0);
    assert!(now.tx_bytes > before.tx_bytes + 10_000_000, "{before:?}, then {now:?}");
}

#[test]
fn tcp_goes_past_the_daemons_and_all_else_by_the_queues() {
    let nodes = Nodes::hosts(2);
    (0..2).for_each(|node| add(&nodes, node, "", MTU));
    (0..2).for_each(|node| wait_taken(&nodes, node));
    assert_eq!(port(&nodes, 0), ports(&nodes, 0)[0]);
    assert_eq!(ways(&nodes, 0)[0].reason, "only TCP; all frames with an MTU of 1450");
    let queues = || {
        let counters = nodes.stats(0).counters;
        (counter(&counters, "tx_frames"), counter(&counters, "vxlan_tx_frames"))
    };
    nodes.ping(0, 1);
    let before = queues();
    nodes.ping(0, 1);
    let pinged = queues();
    assert!(pinged.0 > before.0 && pinged.1 == before.1, "{before:?}, then {pinged:?}");
    tcp_goes_by_vxlan(&nodes);
    let by_queues = queues().0 - pinged.0;
    assert!(by_queues < 20, "{by_queues} frames by the queues");
    let early = counter(&nodes.stats(1).counters, "vxlan_early");
    let received = counter(&nodes.stats(1).counters, "vxlan_rx_frames");
    assert!(early > received / 2, "{early} of {received}");
    for node in 0..2 {
        nodes.net.ok(&nodes.names[node], "fabric del fab0");
        assert_eq!(devices(&nodes, node), Vec::<String>::new(), "nothing is left");
    }
}

#[test]
fn one_node_that_forbids_it_is_enough() {
    let nodes = Nodes::hosts(2);
    add(&nodes, 0, "", MTU);
    add(&nodes, 1, ",vxlan=off", MTU);
    nodes.wait_up();
    wait_not_taken(&nodes, 0, "it accepts no frames over VXLAN");
    assert!(nodes.show(1).vxlan.is_none() && nodes.show(1).peers[0].vxlan.is_none());
    assert_eq!((devices(&nodes, 0).len(), devices(&nodes, 1).len()), (1, 0));
    nodes.ping_all();
    assert_eq!(ways(&nodes, 0)[0].tx_frames, 0);
}

/// As a node of an older version, whose user has chosen a port.
#[test]
fn a_node_with_another_port_is_met_by_the_queues() {
    let nodes = Nodes::hosts(2);
    add(&nodes, 0, "", MTU);
    add(&nodes, 1, ",vxlan=4789", MTU);
    nodes.wait_up();
    let own = ports(&nodes, 0)[0];
    wait_not_taken(&nodes, 0, &format!("its VXLAN has UDP port 4789, this node's {own}"));
    nodes.ping_all();
    assert_eq!((port(&nodes, 0), port(&nodes, 1)), (own, 4789), "neither follows the other");
}

#[test]
fn nodes_meet_on_a_port_that_both_can_have() {
    let nodes = Nodes::hosts(2);
    let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
    add(&nodes, 0, "", MTU);
    let ports = ports(&nodes, 0);
    // The first is somebody's on one host, the second is a VXLAN device's of the other host's user.
    let taken = b.run(|| UdpSocket::bind(("0.0.0.0", ports[0])).expect("binds")).expect("enters");
    a.sh(&format!("ip link add user0 type vxlan id 9 dstport {}", ports[1])).expect("adds");
    a.sh("ip link set user0 up").expect("sets");
    add(&nodes, 1, "", MTU);
    (0..2).for_each(|node| wait_taken(&nodes, node));
    assert_eq!([0, 1].map(|node| port(&nodes, node)), [ports[2]; 2]);
    tcp_goes_by_vxlan(&nodes);
    // A start finds the others again.
    drop(taken);
    nodes.net.kill(&nodes.names[1]);
    nodes.net.start(&nodes.names[1], &[]);
    let meet = || [0, 1].map(|node| nodes.show(node).vxlan.map(|vxlan| (vxlan.port, vxlan.reason)));
    let met = [Some((ports[2], String::new())), Some((ports[2], String::new()))];
    wait_until(SOON, "the same port again", meet, |now| *now == met).expect("found");
    (0..2).for_each(|node| wait_taken(&nodes, node));
    assert_eq!(devices(&nodes, 0).iter().filter(|name| *name == "user0").count(), 1);
}

#[test]
fn a_node_without_any_port_works_and_says_so_without_a_warning() {
    let nodes = Nodes::hosts(2);
    add(&nodes, 0, "", MTU);
    let ports = ports(&nodes, 0);
    let host = nodes.net.host(&nodes.names[1]);
    let bind = || ports.map(|port| UdpSocket::bind(("0.0.0.0", port)).expect("binds"));
    let taken = host.run(bind).expect("enters");
    let line = format!("fabric add fab0 --node 1 --nodes 2 --transport {}", nodes.transport("udp"));
    let said = nodes.net.say(&nodes.names[1], &line);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    host.sh(&format!("ip addr add {}/24 dev fab0", Nodes::ip(1))).expect("adds");
    nodes.wait_up();
    nodes.ping_all();
    let vxlan = nodes.show(1).vxlan.expect("nobody forbids it");
    let why = format!("(UDP port {})", ports[0]);
    assert!(vxlan.hook.is_none() && vxlan.reason.contains(&why), "{vxlan:?}");
    wait_not_taken(&nodes, 0, "it accepts no frames over VXLAN");
    // It is had as soon as one is free.
    drop(taken);
    (0..2).for_each(|node| wait_taken(&nodes, node));
}

#[test]
fn two_fabrics_of_a_host_have_a_port_each() {
    let nodes = Nodes::hosts(2);
    (0..2).for_each(|node| add(&nodes, node, "", MTU));
    let file = nodes.net.lab().folder().join("other");
    let hosts = nodes.net.lab().hosts().enumerate();
    let lines: String = hosts.map(|(node, host)| format!("{node} {}:7100\n", host.ipv4())).collect();
    fs::write(&file, lines).expect("writes");
    for (node, name) in nodes.names.iter().enumerate() {
        let line = format!("fabric add fab1 --node {node} --nodes 2 --transport udp:{}", file.display());
        nodes.net.ok(name, &line);
    }
    for name in &nodes.names {
        let both = || -> Vec<linkbraid_api::FabricRecord> {
            serde_json::from_str(&nodes.net.ok(name, "fabric show --json")).expect("records")
        };
        let taken = |records: &Vec<linkbraid_api::FabricRecord>| {
            let mut ways = records.iter().filter_map(|record| record.peers[0].vxlan.as_ref());
            records.len() == 2 && ways.all(|way| way.taken)
        };
        let both = wait_until(SOON, "both by VXLAN", both, taken).expect("they are");
        let ports: Vec<_> =
            both.iter().filter_map(|record| record.vxlan.as_ref()).map(|on| on.port).collect();
        assert!(ports.len() == 2 && ports[0] != ports[1], "{ports:?}");
    }
}

#[test]
fn it_works_over_ipv6_and_frames_are_taken_early() {
    let nodes = Nodes::hosts(2);
    let file = nodes.net.lab().folder().join("six");
    let hosts = nodes.net.lab().hosts().enumerate();
    let lines = hosts.map(|(node, host)| {
        let address = format!("2001:db8:7::{}", node + 1);
        host.sh(&format!("ip addr add {address}/64 dev eth0 nodad")).expect("adds");
        format!("{node} [{address}]:7000\n")
    });
    fs::write(&file, lines.collect::<String>()).expect("writes");
    for (node, name) in nodes.names.iter().enumerate() {
        let line = format!("fabric add fab0 --node {node} --nodes 2 --transport udp:{}", file.display());
        nodes.net.ok(name, &line);
        nodes.net.host(name).sh(&format!("ip addr add {}/24 dev fab0", Nodes::ip(node))).expect("adds");
    }
    (0..2).for_each(|node| wait_taken(&nodes, node));
    assert_eq!(ways(&nodes, 0)[0].reason, "only TCP; all frames with an MTU of 1430");
    nodes.ping(0, 1);
    tcp_goes_by_vxlan(&nodes);
    let early = counter(&nodes.stats(1).counters, "vxlan_early");
    let received = counter(&nodes.stats(1).counters, "vxlan_rx_frames");
    assert!(early > received / 2, "{early} of {received}");
}

#[test]
fn it_works_over_a_bond() {
    let nodes = Nodes::hosts(2);
    let file = nodes.net.lab().folder().join("bonded");
    let lines: String = (0..2).map(|node| format!("{node} 198.19.7.{}:7000\n", node + 1)).collect();
    fs::write(&file, lines).expect("writes");
    for (node, name) in nodes.names.iter().enumerate() {
        nodes.net.ok(name, &format!("bond add bond0 --member eth0 --address 198.19.7.{}/24", node + 1));
        let line = format!("fabric add fab0 --node {node} --nodes 2 --transport udp:{}", file.display());
        nodes.net.ok(name, &line);
        nodes.net.host(name).sh(&format!("ip addr add {}/24 dev fab0", Nodes::ip(node))).expect("adds");
    }
    (0..2).for_each(|node| wait_taken(&nodes, node));
    nodes.ping(0, 1);
    tcp_goes_by_vxlan(&nodes);
}
