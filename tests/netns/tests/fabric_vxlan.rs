//! Frames of a fabric over UDP that go by the kernel's own VXLAN, and all that sends them by the queues again.

use crate::nodes::{
    Nodes,
    vxlan::{add, counter, devices, wait_not_taken, wait_taken, ways},
};
use linkbraid_api::{FabricPeerRecord, FabricPeerVxlanRecord, FabricRecord, NodeState};
use linkbraid_lab::{
    iperf::{self, Cc, Traffic},
    wait_for, wait_until,
};
use linkbraid_netns_tests::{
    SOON, check_hint,
    packet::{IPV4, Tap},
    traffic,
};
use std::{
    fs,
    net::UdpSocket,
    time::{Duration, Instant},
};

const PORT: u16 = 4789;
/// Fits with what VXLAN puts before it.
const MTU: &str = "--mtu 1450";

/// So many nodes, all with VXLAN on the usual port; each sends frames to each other by it.
#[track_caller]
fn up(count: usize, options: &str) -> Nodes {
    let nodes = Nodes::hosts(count);
    (0..count).for_each(|node| add(&nodes, node, &format!(",vxlan={PORT}"), options));
    nodes.wait_up();
    (0..count).for_each(|node| wait_taken(&nodes, node));
    nodes
}

#[test]
fn tcp_and_pings_go_past_the_daemons() {
    for hook in ["tcx", "clsact"] {
        let nodes = Nodes::hosts(2);
        nodes.names.iter().for_each(|name| nodes.net.kill(name));
        nodes.names.iter().for_each(|name| nodes.net.start(name, &["--hook", hook]));
        (0..2).for_each(|node| add(&nodes, node, &format!(",vxlan={PORT}"), MTU));
        nodes.wait_up();
        (0..2).for_each(|node| wait_taken(&nodes, node));
        let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
        let before = nodes.stats(0);
        nodes.ping(0, 1);
        a.sh(&format!("ping -c 1 -M do -s 1422 {}", Nodes::ip(1))).expect("the longest crosses whole");
        let outcome =
            traffic::reaches(a, b, &traffic::tcp().to(&Nodes::ip(1)), |outcome| outcome.mbit() > 100.0);
        let record = nodes.show(0);
        assert_eq!(record.vxlan.as_ref().and_then(|vxlan| vxlan.hook.as_deref()), Some(hook));
        let (peer, far) = (&record.peers[0], nodes.show(1));
        let way = peer.vxlan.clone().expect("it was asked for");
        assert!(way.tx_bytes > 10_000_000 && way.rx_frames > 100, "{way:?} after {outcome:?}");
        let received = far.peers[0].vxlan.as_ref().map_or(0, |way| way.rx_bytes);
        assert!(received > 10_000_000, "{far:?}");
        // Behind the handshake all of it was taken from the packets where they arrived, where a program can be there and go with the
        // daemon.
        let early = counter(&nodes.stats(1).counters, "vxlan_early");
        let received = counter(&nodes.stats(1).counters, "vxlan_rx_frames");
        assert!(early <= received && (early > received / 2) == (hook == "tcx"), "{early} of {received}");
        // What the queues carried are the questions of ARP, and no more.
        let [queues, before] = [nodes.stats(0), before].map(|stats| counter(&stats.counters, "tx_frames"));
        assert!(queues - before < 20, "{queues} frames by the queues");
        assert!(
            peer.tx_frames >= way.tx_frames + queues && peer.tx_bytes > way.tx_bytes,
            "both are in the sum"
        );
        let stats = nodes.stats(0);
        assert_eq!(
            counter(&stats.counters, "vxlan_rx_frames"),
            counter(&stats.peers[0].counters, "vxlan_rx_frames")
        );
        assert!(nodes.net.ok(&nodes.names[0], "fabric show").contains("by VXLAN"));
        for node in 0..2 {
            assert_eq!(devices(&nodes, node).len(), 1);
            nodes.net.ok(&nodes.names[node], "fabric del fab0");
            assert_eq!(devices(&nodes, node), Vec::<String>::new(), "nothing is left");
        }
    }
}

#[test]
fn a_node_that_was_killed_comes_back_and_nothing_is_left() {
    for hook in ["auto", "clsact"] {
        let nodes = Nodes::hosts(2);
        nodes.net.kill(&nodes.names[1]);
        nodes.net.start(&nodes.names[1], &["--hook", hook]);
        (0..2).for_each(|node| add(&nodes, node, &format!(",vxlan={PORT}"), MTU));
        (0..2).for_each(|node| wait_taken(&nodes, node));
        nodes.ping(0, 1);
        let before = devices(&nodes, 1);
        nodes.net.kill(&nodes.names[1]);
        nobody_gets_what_comes(&nodes, &before[0]);
        // The other one holds the link as up for a while yet.
        let host = nodes.net.host(&nodes.names[0]);
        assert!(
            host.sh(&format!("ping -c 1 -W 0.1 {}", Nodes::ip(1))).is_err(),
            "a dead daemon's node answers"
        );
        nodes.net.start(&nodes.names[1], &["--hook", hook]);
        let heard = || (nodes.show(0).peers[0].epoch, nodes.show(1).epoch);
        wait_until(SOON, "the new start", heard, |(far, own)| far.is_some() && far == own).expect("comes");
        (0..2).for_each(|node| wait_taken(&nodes, node));
        nodes.ping(0, 1);
        nodes.ping(1, 0);
        assert_eq!(devices(&nodes, 1), before, "one device, of the same name");
        assert!(ways(&nodes, 1)[0].rx_frames > 0);
        // Asked to end, it leaves none; nor does one that is killed for good.
        nodes.net.stop(&nodes.names[0]);
        assert_eq!(devices(&nodes, 0), Vec::<String>::new());
        nodes.net.kill(&nodes.names[1]);
        nodes.net.host(&nodes.names[1]).sh("ip link del fab0").expect("deletes");
        nodes.net.start(&nodes.names[1], &[]);
        wait_until(SOON, "what was left to go", || devices(&nodes, 1), Vec::is_empty).expect("goes");
    }
}

/// Frames in VXLAN to a host whose daemon is dead, for the VXLAN device itself and for all: they arrive, and its stack hears of none.
#[track_caller]
fn nobody_gets_what_comes(nodes: &Nodes, device: &str) {
    let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
    let arrived = || {
        let shown = b.sh(&format!("ip -j -s link show dev {device}")).expect("shows");
        let read: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        read[0]["stats64"]["rx"]["packets"].as_u64().expect("a count")
    };
    let heard = || {
        let text = b.proc_net(&format!("dev_snmp6/{device}")).expect("IPv6 is there");
        let line = text.lines().find_map(|line| line.strip_prefix("Ip6InReceives")).expect("a count");
        line.trim().parse::<u64>().expect("a number")
    };
    let before = (arrived(), heard());
    let to = format!("{}:{PORT}", b.ipv4());
    let sent = a.run(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("binds");
        let macs = [[0x02, 0x6c, 0x62, 0, 0xff, 0xff], [0x33, 0x33, 0, 0, 0, 1]];
        for mac in macs {
            let vxlan = [0x88, 0, 0, 1, 0, 0, 1, 0];
            // An IPv6 header without anything behind it, to all nodes of the link.
            let mut ip = [0; 40];
            (ip[0], ip[6], ip[7]) = (0x60, 59, 255);
            (ip[8], ip[9], ip[23]) = (0xfe, 0x80, 9);
            (ip[24], ip[25], ip[39]) = (0xff, 2, 1);
            let frame = [&vxlan[..], &mac, &[2, 0, 0, 0, 0, 9], &[0x86, 0xdd], &ip].concat();
            socket.send_to(&frame, &to).expect("sends");
        }
        macs.len() as u64
    });
    let sent = sent.expect("enters");
    wait_until(SOON, "what was sent", arrived, |now| *now >= before.0 + sent).expect("arrives");
    assert_eq!(heard(), before.1, "the device's own stack hears");
}

#[test]
fn a_node_without_it_works_with_those_that_have_it() {
    let nodes = Nodes::hosts(3);
    add(&nodes, 0, ",vxlan=4789", MTU);
    add(&nodes, 1, ",vxlan=4789", MTU);
    add(&nodes, 2, ",vxlan=off", MTU);
    nodes.wait_up();
    let of = |node: usize, peer: u16| {
        let record = nodes.show(node);
        record.peers.into_iter().find(|found| found.node == peer).expect("a node").vxlan
    };
    for (node, peer) in [(0, 1), (1, 0)] {
        wait_until(
            SOON,
            "frames by VXLAN",
            || of(node, peer),
            |way| way.as_ref().is_some_and(|way| way.taken),
        )
        .expect("comes");
    }
    nodes.ping_all();
    let way = of(0, 2).expect("it was asked for");
    assert_eq!(
        (way.taken, way.reason.as_str(), way.tx_frames),
        (false, "it accepts no frames over VXLAN", 0)
    );
    assert!(of(2, 0).is_none() && nodes.show(2).vxlan.is_none());
    let way = of(0, 1).expect("it was asked for");
    assert!(way.tx_frames > 0 && way.rx_frames > 0, "{way:?}");
}

#[test]
fn nodes_on_two_ports_use_the_queues() {
    let nodes = Nodes::hosts(2);
    add(&nodes, 0, ",vxlan=4789", MTU);
    add(&nodes, 1, ",vxlan=4790", MTU);
    nodes.wait_up();
    wait_not_taken(&nodes, 0, "its VXLAN has UDP port 4790, this node's 4789");
    wait_not_taken(&nodes, 1, "its VXLAN has UDP port 4789, this node's 4790");
    nodes.ping_all();
    assert_eq!((ways(&nodes, 0)[0].tx_frames, nodes.show(0).reason.as_str()), (0, ""));
}

#[test]
fn a_way_that_closes_is_left_and_found_again() {
    let nodes = up(2, MTU);
    let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
    // As a firewall that knows of the session's port alone.
    a.sh("ip rule add ipproto udp dport 4789 blackhole").expect("adds");
    wait_not_taken(&nodes, 0, "no VXLAN frame arrives there (UDP port 4789)");
    let begin = Instant::now();
    nodes.ping(0, 1);
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(
        nodes.show(1).peers[0].state == NodeState::Up && ways(&nodes, 1)[0].taken,
        "the other way is open"
    );
    a.sh("ip rule del ipproto udp dport 4789 blackhole").expect("deletes");
    wait_taken(&nodes, 0);
    // As a firewall of the receiver: questions meet it, though frames of connections are taken before it.
    let early = || counter(&nodes.stats(1).counters, "vxlan_early");
    b.sh("ip rule add pref 10 lookup local").expect("adds");
    let flow = iperf::start(a, b, &Traffic::tcp(Cc::Cubic, 60).to(&Nodes::ip(1))).expect("starts");
    wait_until(SOON, "frames taken early", early, |frames| *frames > 1000).expect("come");
    b.sh("ip rule add pref 5 iif eth0 ipproto udp dport 4789 blackhole").expect("adds");
    b.sh("ip rule del pref 0").expect("deletes");
    wait_not_taken(&nodes, 0, "no VXLAN frame arrives there (UDP port 4789)");
    let (by_vxlan, bytes) = (ways(&nodes, 0)[0].tx_frames, nodes.show(0).peers[0].tx_bytes);
    let more = || nodes.show(0).peers[0].tx_bytes - bytes;
    wait_until(SOON, "the flow to go on by the queues", more, |more| *more > 4 << 20).expect("goes on");
    assert_eq!(ways(&nodes, 0)[0].tx_frames, by_vxlan, "none by VXLAN");
    drop(flow);
    b.sh("ip rule del pref 5").expect("deletes");
    wait_taken(&nodes, 0);
    // Somebody deletes the device.
    b.sh(&format!("ip link del {}", devices(&nodes, 1)[0])).expect("deletes");
    wait_not_taken(&nodes, 0, "it accepts no frames over VXLAN");
    // That lasts for five seconds.
    let vxlan = nodes.show(1).vxlan.expect("it was asked for");
    assert!(vxlan.hook.is_none() && vxlan.reason.starts_with("its VXLAN device was deleted"), "{vxlan:?}");
    nodes.ping_all();
    // It is made again, and what was counted counts on.
    let before = ways(&nodes, 1).remove(0);
    (0..2).for_each(|node| wait_taken(&nodes, node));
    nodes.ping(0, 1);
    let now = ways(&nodes, 1).remove(0);
    assert!(before.tx_frames > 0 && now.tx_frames > before.tx_frames, "{before:?}, then {now:?}");
    assert_eq!(devices(&nodes, 1).len(), 1);
}

/// A crowded path may lose every ALIVE, and the frames themselves say that their sender lives.
#[test]
fn frames_by_it_prove_that_a_node_lives() {
    let nodes = up(2, MTU);
    nodes.ping(0, 1);
    let hosts = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
    let states = || [0, 1].map(|node| nodes.show(node).peers.remove(0));
    let before = states();
    let rule = "ipproto udp dport 7000-7063 blackhole";
    hosts.iter().for_each(|host| drop(host.sh(&format!("ip rule add {rule}")).expect("adds")));
    // Three times as long as a silent node is waited for.
    hosts[0].sh(&format!("ping -q -i 0.02 -c 60 -W 0.2 {}", Nodes::ip(1))).expect("all or some come");
    for (now, before) in states().iter().zip(&before) {
        assert!(
            now.state == NodeState::Up && now.since_ms > before.since_ms + 1000,
            "up all the time: {now:?}"
        );
    }
    let downs = |now: &[FabricPeerRecord; 2]| now.iter().all(|peer| peer.state != NodeState::Up);
    wait_until(SOON, "links without any frames to go down", states, downs).expect("they do");
    hosts.iter().for_each(|host| drop(host.sh(&format!("ip rule del {rule}")).expect("deletes")));
    nodes.wait_up();
    nodes.ping_all();
}

#[test]
fn frames_are_taken_early_wherever_the_address_is() {
    let nodes = up(2, MTU);
    let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
    let early = || counter(&nodes.stats(1).counters, "vxlan_early");
    let grows = |what| {
        let before = early();
        let flow = || iperf::run(a, b, &Traffic::tcp(Cc::Cubic, 1).to(&Nodes::ip(1))).map(|_| early());
        let more = |now: &Result<u64, _>| now.as_ref().is_ok_and(|now| now - before > 20);
        wait_until(SOON, what, flow, more).expect("comes").expect("the flow runs");
    };
    grows("frames taken early");
    // As somebody who puts the machine's NIC into a bridge. What comes to the bridge's MAC is not the NIC's.
    let address = b.sh("ip -o -4 addr show dev eth0").expect("shows");
    let address = address.split_whitespace().nth(3).expect("an address").to_owned();
    for line in [
        "ip link add br0 address 02:00:00:00:00:77 type bridge",
        &format!("ip addr del {address} dev eth0"),
        "ip link set eth0 master br0",
        &format!("ip addr add {address} dev br0"),
        "ip link set br0 up",
    ] {
        b.sh(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    a.sh("ip neigh flush dev eth0").expect("forgets the NIC's MAC");
    nodes.wait_up();
    (0..2).for_each(|node| wait_taken(&nodes, node));
    grows("frames taken early from the bridge");
}

#[test]
fn frames_with_another_tag_are_dropped_and_counted() {
    let nodes = up(2, MTU);
    let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
    let drops = || counter(&nodes.stats(1).counters, "vxlan_drop_tag");
    let before = (drops(), ways(&nodes, 1)[0].rx_frames);
    let mac = |node: usize| {
        let text = nodes.show(node).mac;
        text.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect::<Vec<_>>()
    };
    // To b, as if from a: a ping that nobody must answer.
    let frame = [&mac(1)[..], &mac(0)[..], &[0x08, 0x00], &[0; 60]].concat();
    let to = format!("{}:{PORT}", b.ipv4());
    let sent = a.run(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("binds");
        for (flags, group, network) in [(0x88, 7_u16, 7_u32), (0x08, 0, 7), (0x88, 0xffff, 0x00ff_ffff)] {
            let header =
                [&[flags, 0][..], &group.to_be_bytes(), &(network << 8).to_be_bytes(), &frame].concat();
            socket.send_to(&header, &to).expect("sends");
        }
        3
    });
    let sent: u64 = sent.expect("enters");
    wait_until(SOON, "drops", drops, |now| *now == before.0 + sent).expect("counted");
    assert_eq!(ways(&nodes, 1)[0].rx_frames, before.1);
    nodes.ping_all();
}

/// What carries the tag of an earlier start, sent again: nobody gets it, whichever of the two has started again.
#[test]
fn frames_that_the_network_has_kept_from_an_earlier_start_are_dropped() {
    for restarted in 0..2 {
        let nodes = up(2, MTU);
        let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
        let (sees, sends) = (Tap::open(b, "eth0", IPV4), Tap::open(a, "eth0", IPV4));
        nodes.ping(0, 1);
        // UDP to the port of VXLAN, with the whole inner frame of a ping: questions are shorter or longer.
        let is_ping =
            |frame: &[u8]| frame[23] == 17 && frame[36..38] == PORT.to_be_bytes() && frame[62..64] == [8, 0];
        let mut kept: Vec<_> = sees.take().into_iter().filter(|frame| is_ping(frame)).collect();
        assert!(!kept.is_empty(), "nothing went by VXLAN");
        // Over a veth pair checksums are left to the receiver; without one it does not look.
        kept.iter_mut().for_each(|frame| frame[40..42].fill(0));
        let again = || kept.iter().for_each(|frame| sends.send(frame).expect("sends"));
        let counts = || (counter(&nodes.stats(1).counters, "vxlan_drop_tag"), ways(&nodes, 1)[0].rx_frames);
        // While the tag is the one that was given they are taken, which is what makes the rest worth anything.
        let (drops, taken) = counts();
        again();
        wait_until(SOON, "copies", counts, |now| now.1 >= taken + kept.len() as u64).expect("taken");
        assert_eq!(counts().0, drops);
        nodes.net.kill(&nodes.names[restarted]);
        nodes.net.start(&nodes.names[restarted], &[]);
        let heard = || (nodes.show(1 - restarted).peers[0].epoch, nodes.show(restarted).epoch);
        wait_until(SOON, "the new start", heard, |(far, own)| far.is_some() && far == own).expect("comes");
        (0..2).for_each(|node| wait_taken(&nodes, node));
        let drops = counts().0;
        again();
        wait_until(SOON, "drops", counts, |now| now.0 == drops + kept.len() as u64).expect("all are dropped");
        nodes.ping_all();
    }
}

#[test]
fn frames_too_long_for_the_path_go_by_the_queues() {
    let nodes = up(2, "");
    let way = ways(&nodes, 0).remove(0);
    assert_eq!((way.taken, way.reason.as_str()), (true, "only TCP; all frames with an MTU of 1450"));
    nodes.ping(0, 1);
    let long = || counter(&nodes.stats(0).counters, "vxlan_long");
    let before = long();
    let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
    a.sh(&format!("ping -c 1 -M do -s 1472 {}", Nodes::ip(1))).expect("crosses whole");
    a.sh(&format!("ping -c 1 {}", Nodes::ip(1))).expect("goes by the queues, too");
    assert_eq!(long(), before + 2);
    traffic::reaches(a, b, &traffic::tcp().to(&Nodes::ip(1)), |outcome| outcome.mbit() > 50.0);
    // Another MTU, another way.
    for name in &nodes.names {
        nodes.net.ok(name, "fabric set fab0 --mtu 1450");
    }
    let whole = |way: &FabricPeerVxlanRecord| way.taken && way.reason.is_empty();
    wait_until(SOON, "all frames by VXLAN", || ways(&nodes, 0).remove(0), whole).expect("comes");
    nodes.ping(0, 1);
    // What it sends from another MAC goes by the queues, and arrives all the same.
    a.sh("ip link set fab0 address 02:00:00:00:07:07").expect("sets");
    wait_not_taken(&nodes, 0, "the interface has another MAC than the fabric gave it");
    nodes.ping(0, 1);
}

#[test]
fn what_cannot_be_had_is_said_and_the_fabric_works() {
    let nodes = Nodes::hosts(2);
    let name = &nodes.names[0];
    let host = nodes.net.host(name);
    let transport = nodes.transport("udp");
    let said = nodes
        .net
        .say(name, &format!("fabric add fab0 --node 0 --nodes 2 --transport {transport},vxlan=7000"));
    let hint = said.refused(
        1,
        &format!(
            "{transport},vxlan=7000: cannot use this transport: UDP port 7000 is already that of node 0; VXLAN needs another one"
        ),
    );
    check_hint(host, &hint);
    nodes.net.ok(name, "fabric del fab0");
    let said =
        nodes.net.say(name, &format!("fabric add fab0 --node 0 --nodes 2 --transport {transport},vxlan=0"));
    said.refused(
        1,
        &format!("{transport},vxlan=0: cannot use this transport: vxlan '0' is outside the allowed range 1 to 65535, and not 'off'"),
    );
    // Somebody else has the port.
    let taken = host.run(|| UdpSocket::bind(("0.0.0.0", PORT)).expect("binds")).expect("enters");
    let line = format!("fabric add fab0 --node 0 --nodes 2 --transport {transport},vxlan={PORT} {MTU}");
    let said = nodes.net.say(name, &line);
    assert!(said.code == 0 && said.err.contains("frames do not use VXLAN"), "{said:?}");
    host.sh(&format!("ip addr add {}/24 dev fab0", Nodes::ip(0))).expect("adds");
    add(&nodes, 1, ",vxlan=4789", MTU);
    nodes.wait_up();
    nodes.ping_all();
    let vxlan = nodes.show(0).vxlan.expect("it was asked for");
    assert!(vxlan.hook.is_none() && vxlan.reason.contains("(UDP port 4789)"), "{vxlan:?}");
    assert_eq!(devices(&nodes, 0), Vec::<String>::new());
    wait_not_taken(&nodes, 1, "it accepts no frames over VXLAN");
    // It is had as soon as it is free.
    drop(taken);
    wait_taken(&nodes, 0);
    wait_for(SOON, "the other way", || {
        let way = ways(&nodes, 1).remove(0);
        if way.taken { Ok(()) } else { Err(way.reason) }
    })
    .expect("opens");
    // Another fabric has to take another port.
    let file = nodes.net.lab().folder().join("other");
    let lines = format!("0 {}:7100\n1 {}:7100\n", host.ipv4(), nodes.net.host(&nodes.names[1]).ipv4());
    fs::write(&file, lines).expect("writes");
    for (port, warns) in [(PORT, true), (PORT + 1, false)] {
        let line = format!(
            "fabric add fab1 --node 0 --nodes 2 --transport udp:{},vxlan={port} {MTU}",
            file.display()
        );
        let said = nodes.net.say(name, &line);
        assert_eq!((said.code, said.err.contains("frames do not use VXLAN")), (0, warns), "{said:?}");
        nodes.net.ok(name, "fabric del fab1");
    }
    assert!(ways(&nodes, 0)[0].taken);
}

#[test]
fn it_works_over_ipv6() {
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
        let line = format!(
            "fabric add fab0 --node {node} --nodes 2 --mtu 1430 --transport udp:{},vxlan={PORT}",
            file.display()
        );
        nodes.net.ok(name, &line);
        nodes.net.host(name).sh(&format!("ip addr add {}/24 dev fab0", Nodes::ip(node))).expect("adds");
    }
    (0..2).for_each(|node| wait_taken(&nodes, node));
    let way = ways(&nodes, 0).remove(0);
    assert_eq!(way.reason, "", "all frames fit");
    let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
    nodes.ping(0, 1);
    traffic::reaches(a, b, &traffic::tcp().to(&Nodes::ip(1)), |outcome| outcome.mbit() > 100.0);
    assert!(ways(&nodes, 0)[0].tx_bytes > 10_000_000);
}

#[test]
fn two_fabrics_in_a_bond_go_past_the_daemons() {
    let nodes = Nodes::hosts(2);
    for (fabric, port) in [("fab0", 7000), ("fab1", 7100)] {
        let file = nodes.net.lab().folder().join(fabric);
        let hosts = nodes.net.lab().hosts().enumerate();
        let lines: String = hosts.map(|(node, host)| format!("{node} {}:{port}\n", host.ipv4())).collect();
        fs::write(&file, lines).expect("writes");
        for (node, name) in nodes.names.iter().enumerate() {
            let transport = format!("udp:{},vxlan={}", file.display(), port + 8);
            let line = format!("fabric add {fabric} --node {node} --nodes 2 --transport {transport} {MTU}");
            nodes.net.ok(name, &line);
        }
    }
    for (node, name) in nodes.names.iter().enumerate() {
        nodes.net.ok(name, "bond add bond0 --member fab0,fab1");
        let host = nodes.net.host(name);
        host.sh(&format!("ip addr add {}/24 dev bond0", Nodes::ip(node))).expect("adds");
        wait_taken(&nodes, node);
    }
    let [a, b] = [0, 1].map(|node| nodes.net.host(&nodes.names[node]));
    let live = || nodes.net.show(&nodes.names[0]).members.iter().filter(|member| member.live).count();
    wait_until(SOON, "both members", live, |live| *live == 2).expect("come");
    nodes.ping(0, 1);
    traffic::reaches(a, b, &traffic::tcp().to(&Nodes::ip(1)), |outcome| outcome.mbit() > 100.0);
    let text = nodes.net.ok(&nodes.names[0], "fabric show --json");
    let both: Vec<FabricRecord> = serde_json::from_str(&text).expect("records");
    for fabric in both {
        let way = fabric.peers[0].vxlan.as_ref().expect("it was asked for");
        assert!(way.tx_bytes > 1_000_000, "{}: {way:?}", fabric.name);
    }
}
