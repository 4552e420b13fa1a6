//! Fabrics between hosts of a lab: over memory and over the network, alone, in a bond and in a bridge.

use linkbraid_api::{EventKind, FabricRecord, FabricStatsRecord, NodeState};
use linkbraid_lab::{Topology, wait_for, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, check_hint, machine, traffic};
use std::{
    fs,
    time::{Duration, Instant},
};

const HOSTS: [&str; 3] = ["a", "b", "c"];

/// So many hosts, each with one link and a daemon.
fn hosts(count: usize) -> Net {
    let net = Net::up(Topology::symmetric(count, 1, None));
    HOSTS[..count].iter().for_each(|name| net.start(name, &[]));
    net
}

/// Memory that the hosts of a lab share, or a file that says where they are.
fn transport(net: &Net, kind: &str) -> String {
    let file = net.lab().folder().join(kind);
    if kind == "udp" {
        let hosts = net.lab().hosts().enumerate();
        let lines = hosts.map(|(node, host)| format!("{node} {}:7000\n", host.ipv4()));
        fs::write(&file, lines.collect::<String>()).expect("writes");
    }
    format!("{kind}:{}", file.display())
}

/// `fabric add` of every host but those that have none yet, and an address of 198.19.0.0/24 for each.
fn add(net: &Net, kind: &str, nodes: usize, options: &str) {
    let transport = transport(net, kind);
    for (node, name) in HOSTS[..nodes].iter().enumerate() {
        let line = format!("fabric add fab0 --node {node} --nodes {nodes} --transport {transport} {options}");
        net.ok(name, line.trim());
        address(net, name, "fab0");
    }
}

fn address(net: &Net, name: &str, interface: &str) {
    let line = format!("ip addr add {}/24 dev {interface}", ip(name));
    net.host(name).sh(&line).expect("adds");
}

fn ip(name: &str) -> String {
    let node = HOSTS.iter().position(|host| *host == name).expect("a host");
    format!("198.19.0.{}", node + 1)
}

fn show(net: &Net, name: &str) -> FabricRecord {
    let text = net.ok(name, "fabric show fab0 --json");
    let mut all: Vec<FabricRecord> = serde_json::from_str(&text).expect("records");
    all.pop().expect("one")
}

/// Waits until a node holds the others as these.
#[track_caller]
fn wait_states(net: &Net, name: &str, states: &[NodeState]) -> FabricRecord {
    let same = |record: &FabricRecord| record.peers.iter().map(|peer| peer.state).eq(states.iter().copied());
    wait_until(SOON, "the nodes", || show(net, name), same).unwrap_or_else(|error| panic!("{name}: {error}"));
    show(net, name)
}

#[track_caller]
fn ping(net: &Net, from: &str, to: &str) {
    net.host(from).wait_ping(&ip(to), SOON).unwrap_or_else(|error| panic!("{error}"));
}

/// Pings until an answer comes, without ever waiting long for one; how long it took.
fn until_answered(net: &Net, from: &str, to: &str) -> Duration {
    let begin = Instant::now();
    wait_for(SOON, "an answer", || {
        net.host(from).sh(&format!("ping -c 1 -W 0.1 {}", ip(to))).map_err(|error| error.cause)
    })
    .unwrap_or_else(|error| panic!("{error}"));
    begin.elapsed()
}

#[test]
fn two_hosts_that_share_memory_have_a_network() {
    let net = hosts(2);
    add(&net, "shm", 2, "");
    ping(&net, "a", "b");
    let [a, b] = [net.host("a"), net.host("b")];
    traffic::reaches(a, b, &traffic::tcp().to(&ip("b")), |outcome| outcome.mbit() > 100.0);
    let record = show(&net, "a");
    assert_eq!((record.node, record.nodes, record.reason.as_str()), (0, 2, ""));
    assert!(record.addresses.contains(&"198.19.0.1/24".to_owned()), "{record:?}");
    let peer = &record.peers[0];
    assert_eq!((peer.node, peer.state, peer.send_queue, peer.receive_queue), (1, NodeState::Up, 1, 2));
    assert!(peer.tx_bytes > 10_000_000 && peer.rx_frames > 100, "{peer:?}");
    assert!(net.ok("a", "show").starts_with("fab0: ok, node 0, 1 of 1 other node up\n"));
    let stats: Vec<FabricStatsRecord> =
        serde_json::from_str(&net.ok("a", "stats fab0 --json")).expect("records");
    let sent = |counters: &[linkbraid_api::CounterRecord]| {
        counters.iter().find(|counter| counter.name == "tx_frames").map(|counter| counter.frames)
    };
    assert_eq!(sent(&stats[0].counters), sent(&stats[0].peers[0].counters));
    // What is deleted is gone, and the other one hears of it at once.
    net.ok("a", "fabric del fab0");
    assert!(!a.sh("ip -o link").expect("lists").contains("fab0"));
    let left = wait_states(&net, "b", &[NodeState::Down]);
    assert!(left.events.iter().any(|event| event.kind == EventKind::Node && event.reason == "left"));
    net.ok("b", "fabric del fab0");
    assert!(!net.lab().folder().join("shm").exists(), "the last one leaves nothing");
}

#[test]
fn three_hosts_have_one_network_over_any_other() {
    let net = hosts(3);
    add(&net, "udp", 3, "--mtu 9000 --poll sleep --queues 2");
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "a")] {
        ping(&net, from, to);
        net.host(from).sh(&format!("ping -c 2 -i 0.2 -M do -s 8900 {}", ip(to))).expect("crosses whole");
    }
    let [a, c] = [net.host("a"), net.host("c")];
    traffic::reaches(a, c, &traffic::tcp().to(&ip("c")), |outcome| outcome.mbit() > 50.0);
    net.kill("b");
    wait_states(&net, "a", &[NodeState::Down, NodeState::Up]);
    let line = net.ok("a", "show fab0").lines().next().map(str::to_owned);
    assert_eq!(
        line.as_deref(),
        Some("fab0: degraded, node 0, 1 of 2 other nodes up: node 1: silent for the detection time")
    );
    ping(&net, "a", "c");
}

#[test]
fn a_daemon_that_was_killed_comes_back_with_all_that_the_interface_had() {
    for kind in ["shm", "udp"] {
        let net = hosts(2);
        add(&net, kind, 2, "");
        ping(&net, "a", "b");
        let index = |shown: String| shown.split(':').next().map(str::to_owned);
        let b = net.host("b");
        let before = (index(b.sh("ip -o link show fab0").expect("shows")), show(&net, "b"));
        b.sh("ip route add 198.19.1.0/24 via 198.19.0.1").expect("adds");
        net.kill("b");
        let down = b.sh("ip -o link show fab0").expect("the kernel keeps it");
        assert!(down.contains("NO-CARRIER"), "{down}");
        let begin = Instant::now();
        net.start("b", &[]);
        let ready = begin.elapsed();
        until_answered(&net, "a", "b");
        let took = begin.elapsed();
        eprintln!(
            "{kind}: an answer {took:?} after the start of the daemon, which was ready after {ready:?}"
        );
        assert!(took < Duration::from_secs(10), "{took:?}");
        let now = (index(b.sh("ip -o link show fab0").expect("shows")), show(&net, "b"));
        assert_eq!((&before.0, &before.1.mac), (&now.0, &now.1.mac));
        assert_ne!(before.1.epoch, now.1.epoch);
        assert!(b.sh("ip route").expect("shows").contains("198.19.1.0/24 via 198.19.0.1"));
        // One that is asked to end says goodbye, and comes back all the same.
        net.stop("b");
        wait_states(&net, "a", &[NodeState::Down]);
        assert!(show(&net, "a").events.iter().any(|event| event.reason == "left"));
        net.start("b", &[]);
        until_answered(&net, "a", "b");
        net.ok("b", "fabric del fab0");
        assert!(!b.sh("ip -o link").expect("lists").contains("fab0"));
    }
}

#[test]
fn a_flow_outlives_the_daemons() {
    let net = hosts(2);
    add(&net, "shm", 2, "");
    ping(&net, "a", "b");
    let [a, b] = [net.host("a"), net.host("b")];
    let mut flow = linkbraid_lab::iperf::start(
        a,
        b,
        &linkbraid_lab::iperf::Traffic::tcp(linkbraid_lab::iperf::Cc::Cubic, 6).to(&ip("b")),
    )
    .expect("starts");
    for name in ["b", "a"] {
        let sent = show(&net, "a").peers[0].tx_bytes;
        wait_until(SOON, "traffic", || show(&net, "a").peers[0].tx_bytes, |now| *now > sent + 1_000_000)
            .unwrap_or_else(|error| panic!("{error}"));
        net.kill(name);
        net.start(name, &[]);
        wait_states(&net, name, &[NodeState::Up]);
    }
    assert!(!flow.ended(), "it was too short to prove anything");
    let outcome = flow.finish().expect("the connection lives");
    assert!(outcome.mbit() > 10.0, "{outcome:?}");
}

#[test]
fn a_fabric_is_a_member_of_a_bond_beside_a_nic() {
    let net = hosts(2);
    let transport = transport(&net, "shm");
    for (node, name) in HOSTS[..2].iter().enumerate() {
        net.ok(name, &format!("fabric add fab0 --node {node} --nodes 2 --transport {transport}"));
        net.ok(name, &format!("bond add {BOND} --member eth0,fab0"));
    }
    net.wait_tables(&["a", "b"]);
    let [a, b] = [net.host("a"), net.host("b")];
    let carries = || {
        net.show("a").members.into_iter().map(|member| (member.interface, member.live)).collect::<Vec<_>>()
    };
    let both = [("eth0".to_owned(), true), ("fab0".to_owned(), true)];
    wait_until(SOON, "both members", carries, |members| *members == both).unwrap_or_else(|e| panic!("{e}"));
    let before = show(&net, "a").peers[0].tx_bytes;
    traffic::reaches(a, b, &traffic::tcp(), |outcome| outcome.mbit() > 100.0);
    let through = show(&net, "a").peers[0].tx_bytes - before;
    assert!(through > 1_000_000, "{through} bytes went over the fabric");
    // It belongs to the bond.
    let said = net.say("a", "fabric del fab0");
    let hint = said.refused(1, &format!("fab0: cannot change the fabric: it is a member of bond '{BOND}'"));
    assert_eq!(hint, format!("linkbraid member del {BOND} fab0"));
    // A daemon that ends takes the fabric from the bond, and the NIC goes on.
    net.stop("b");
    wait_states(&net, "a", &[NodeState::Down]);
    a.wait_ping(b.ipv4(), SOON).expect("the NIC carries it");
    for _ in 0..4 {
        a.sh(&format!("ping -c 1 -W 1 {}", b.ipv4())).expect("the NIC carries all of it");
    }
    net.start("b", &[]);
    wait_states(&net, "a", &[NodeState::Up]);
    // One that is killed cannot tell its bond, and still nothing is given to the fabric that died with it.
    wait_until(SOON, "both members", carries, |members| *members == both).unwrap_or_else(|e| panic!("{e}"));
    let through = || {
        let before = show(&net, "b").peers[0].tx_bytes;
        let _ = b.sh(&format!("ping -q -c 20 -i 0.01 -s 1400 -W 1 {}", a.ipv4()));
        show(&net, "b").peers[0].tx_bytes - before
    };
    wait_until(SOON, "the fabric's share", through, |bytes| *bytes > 7_000).unwrap_or_else(|e| panic!("{e}"));
    net.kill("b");
    wait_states(&net, "a", &[NodeState::Down]);
    // The answers take the NIC once the other end's bond has seen that its fabric lost its carrier.
    let rest = [("eth0".to_owned(), true), ("fab0".to_owned(), false)];
    wait_until(SOON, "the NIC alone", carries, |members| *members == rest).unwrap_or_else(|e| panic!("{e}"));
    let said =
        b.sh(&format!("ping -q -c 50 -i 0.02 -s 1400 -W 1 {}", a.ipv4())).expect("the NIC carries all of it");
    assert!(said.contains(" 0% packet loss"), "{said}");
    // The next one brings both back.
    net.start("b", &[]);
    wait_states(&net, "a", &[NodeState::Up]);
    wait_until(SOON, "both members", carries, |members| *members == both).unwrap_or_else(|e| panic!("{e}"));
    let before = show(&net, "b").peers[0].tx_bytes;
    traffic::reaches(b, a, &traffic::tcp(), |outcome| outcome.mbit() > 100.0);
    assert!(show(&net, "b").peers[0].tx_bytes > before + 1_000_000);
    check_hint(a, &hint);
    net.ok("a", "fabric del fab0");
}

#[test]
fn a_fabric_is_a_port_of_a_bridge() {
    let net = hosts(2);
    let transport = transport(&net, "shm");
    for (node, name) in HOSTS[..2].iter().enumerate() {
        net.ok(name, &format!("fabric add fab0 --node {node} --nodes 2 --transport {transport}"));
    }
    let [a, b] = [net.host("a"), net.host("b")];
    for line in [
        "ip link add br7 type bridge",
        "ip link set fab0 master br7",
        // A station behind the bridge, with a MAC that the fabric has to learn.
        "ip link add veth7 type veth peer name veth8",
        "ip link set veth8 master br7",
        "ip link set veth8 up",
        "ip link set veth7 up",
        "ip link set br7 up",
    ] {
        a.sh(line).unwrap_or_else(|error| panic!("{error}"));
    }
    address(&net, "a", "veth7");
    address(&net, "b", "fab0");
    ping(&net, "b", "a");
    traffic::reaches(b, a, &traffic::tcp().to(&ip("a")), |outcome| outcome.mbit() > 50.0);
    net.kill("a");
    net.start("a", &[]);
    until_answered(&net, "b", "a");
    assert!(a.sh("ip -o link show fab0").expect("shows").contains("master br7"));
    assert!(b.sh("ip neigh show 198.19.0.1").expect("shows").contains("fab0"));
}

#[test]
fn two_fabrics_are_the_members_of_one_bond() {
    let net = hosts(2);
    let (shm, udp) = (transport(&net, "shm"), transport(&net, "udp"));
    for (node, name) in HOSTS[..2].iter().enumerate() {
        net.ok(name, &format!("fabric add fab0 --node {node} --nodes 2 --transport {shm}"));
        net.ok(name, &format!("fabric add fab1 --node {node} --nodes 2 --transport {udp}"));
        net.ok(name, &format!("bond add {BOND} --member fab0,fab1"));
        address(&net, name, BOND);
    }
    net.wait_tables(&["a", "b"]);
    ping(&net, "a", "b");
    let [a, b] = [net.host("a"), net.host("b")];
    let sent = || {
        let text = net.ok("a", "fabric show --json");
        let all: Vec<FabricRecord> = serde_json::from_str(&text).expect("records");
        all.iter().map(|fabric| fabric.peers[0].tx_bytes).collect::<Vec<_>>()
    };
    let before = sent();
    traffic::reaches(a, b, &traffic::tcp().to(&ip("b")), |outcome| outcome.mbit() > 50.0);
    let through: Vec<u64> = sent().iter().zip(before).map(|(now, before)| now - before).collect();
    assert!(through.iter().all(|bytes| *bytes > 1_000_000), "{through:?}");
    // Both are listed, and so is the bond.
    let shown = net.ok("a", "show");
    for name in [BOND, "fab0", "fab1"] {
        assert!(shown.contains(&format!("{name}: ok")), "{shown}");
    }
    let all: Vec<serde_json::Value> = serde_json::from_str(&net.ok("a", "show --json")).expect("one list");
    assert_eq!(all.len(), 3);
}

#[test]
fn a_node_is_added_while_the_others_run() {
    let net = hosts(3);
    let udp = transport(&net, "udp");
    let file = net.lab().folder().join("udp");
    let all = fs::read_to_string(&file).expect("reads");
    let two = all.lines().take(2).map(|line| format!("{line}\n")).collect::<String>();
    fs::write(&file, two).expect("writes");
    for (node, name) in HOSTS[..2].iter().enumerate() {
        net.ok(name, &format!("fabric add fab0 --node {node} --nodes 2 --transport {udp}"));
        address(&net, name, "fab0");
    }
    ping(&net, "a", "b");
    // It may be told first that there may be more, or the file.
    net.ok("a", "fabric set fab0 --nodes 3");
    assert_eq!(show(&net, "a").nodes, 3);
    fs::write(&file, all).expect("writes");
    net.ok("c", &format!("fabric add fab0 --node 2 --nodes 3 --transport {udp}"));
    address(&net, "c", "fab0");
    net.ok("b", "fabric set fab0 --nodes 3");
    for name in HOSTS {
        wait_states(&net, name, &[NodeState::Up; 2]);
    }
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "a")] {
        ping(&net, from, to);
    }
    assert!(show(&net, "a").addresses.contains(&"198.19.0.1/24".to_owned()), "its addresses stay");
}

#[test]
fn a_fabric_that_cannot_join_is_tried_again() {
    let net = hosts(2);
    add(&net, "udp", 2, "");
    ping(&net, "a", "b");
    let file = net.lab().folder().join("udp");
    let text = fs::read_to_string(&file).expect("reads");
    net.kill("b");
    fs::remove_file(&file).expect("removes");
    net.start("b", &[]);
    let line = || net.ok("b", "fabric show fab0").lines().next().map(str::to_owned).unwrap_or_default();
    let says = |line: &String| {
        line.starts_with("fab0: down, node 1, 0 of 1 other node up: ")
            && line.contains(&file.display().to_string())
    };
    wait_until(SOON, "why", line, says).unwrap_or_else(|error| panic!("{error}"));
    assert!(net.ok("b", "stats fab0").starts_with("fab0: 4 counters, 4 at zero"));
    fs::write(&file, text).expect("writes");
    wait_states(&net, "b", &[NodeState::Up]);
    ping(&net, "a", "b");
    // And one that cannot join can be deleted, too.
    net.kill("b");
    fs::remove_file(&file).expect("removes");
    net.start("b", &[]);
    net.ok("b", "fabric del fab0");
    assert!(!net.host("b").sh("ip -o link").expect("lists").contains("fab0"));
}

#[test]
fn settings_change_and_what_does_not_fit_is_named_on_both_sides() {
    let net = hosts(2);
    add(&net, "shm", 2, "--poll busy");
    ping(&net, "a", "b");
    net.ok("a", "fabric set fab0 --poll adaptive");
    net.ok("a", "fabric set fab0 --mtu 9000");
    for (name, node, ours, theirs) in [("a", 1, 9000, 1500), ("b", 0, 1500, 9000)] {
        let record = wait_states(&net, name, &[NodeState::Refused]);
        let words = format!("its MTU is {theirs}, this node's {ours}");
        assert!(record.reason.starts_with(&format!("node {node}: ")), "{record:?}");
        assert!(record.reason.ends_with(&words), "{record:?}");
        let told = record.events.iter().filter(|event| event.reason == "mtu_differs").count();
        assert_eq!(told, 1, "once is enough: {:?}", record.events);
    }
    // An administrator's own tools are heard, too.
    net.host("b").sh("ip link set fab0 mtu 9000").expect("sets");
    wait_states(&net, "a", &[NodeState::Up]);
    assert_eq!(show(&net, "b").settings.mtu.0, 9000);
    ping(&net, "a", "b");
    net.host("b").sh("ip link set fab0 down").expect("sets");
    net.host("b").sh("ip link set fab0 name fab7").expect("renames");
    net.host("b").sh("ip link set fab7 up").expect("sets");
    wait_until(SOON, "its new name", || net.ok("b", "fabric show"), |text| text.starts_with("fab7: ok"))
        .unwrap_or_else(|error| panic!("{error}"));
    net.host("b").sh("ip link del fab7").expect("deletes");
    wait_until(SOON, "its end", || net.ok("b", "fabric show"), |text| text == "no fabrics\n")
        .unwrap_or_else(|error| panic!("{error}"));
    wait_states(&net, "a", &[NodeState::Down]);
}

#[test]
fn addresses_come_with_the_fabric_and_change_with_it() {
    let net = hosts(2);
    let shm = transport(&net, "shm");
    let add = |node: usize, addresses: &str| {
        format!("fabric add fab0 --node {node} --nodes 2 --transport {shm} {addresses}")
    };
    let [a, b] = [net.host("a"), net.host("b")];
    // What the kernel refuses leaves nothing.
    b.sh("sysctl -qw net.ipv6.conf.default.disable_ipv6=1").expect("sets");
    let before = machine::settled(&net, "b");
    let said = net.say("b", &add(1, "--address 198.19.0.2/24 --address 2001:db8:7::2/64"));
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("fab0: cannot add address '2001:db8:7::2/64'"), "{said:?}");
    machine::as_it_was(&net, "b", &before);
    net.ok("b", &add(1, "--address 198.19.0.2/24"));
    net.ok("a", &add(0, "--address 198.19.0.1/24 --address 2001:db8:7::1/64"));
    ping(&net, "b", "a");
    // Those of others stay, whoever is the daemon.
    a.sh("ip addr add 198.19.9.1/24 dev fab0").expect("adds");
    let has = |wanted: &[&str]| {
        let global = |address: &&String| !address.starts_with("fe80");
        wait_until(
            SOON,
            "the addresses",
            || {
                show(&net, "a")
                    .addresses
                    .iter()
                    .filter(global)
                    .cloned()
                    .collect::<std::collections::BTreeSet<_>>()
            },
            |found| found.iter().eq(wanted),
        )
        .unwrap_or_else(|error| panic!("{error}"));
    };
    has(&["198.19.0.1/24", "198.19.9.1/24", "2001:db8:7::1/64"]);
    net.ok("a", "fabric set fab0 --address 198.19.0.7/24 --address 198.19.0.1/24 --poll sleep");
    has(&["198.19.0.1/24", "198.19.0.7/24", "198.19.9.1/24"]);
    net.kill("a");
    net.start("a", &[]);
    net.ok("a", "fabric set fab0 --address 198.19.0.1/24");
    has(&["198.19.0.1/24", "198.19.9.1/24"]);
    ping(&net, "b", "a");
    // Routes over the interface stay, though the address that it had first goes.
    net.ok("a", "fabric set fab0 --address 198.19.0.1/24 --address 2001:db8:7::1/64");
    a.sh("ip route add 198.19.77.0/24 via 198.19.0.2 dev fab0").expect("adds");
    a.sh("ip addr del 198.19.9.1/24 dev fab0").expect("deletes");
    net.ok("a", "fabric set fab0 --address 198.19.0.7/24 --address 2001:db8:7::1/48");
    has(&["198.19.0.7/24", "2001:db8:7::1/48"]);
    assert!(a.sh("ip route").expect("lists").contains("198.19.77.0/24"), "{:?}", a.sh("ip route"));
    a.sh("ip addr add 198.19.9.1/24 dev fab0").expect("adds");
    net.ok("a", "fabric set fab0 --address 198.19.0.1/24");
    has(&["198.19.0.1/24", "198.19.9.1/24"]);
    let said = net.say("a", "fabric set fab0 --nodes 3 --address 198.19.0.8/24");
    assert_eq!(said.code, 2, "{said:?}");
    // In a bond it has none of its own.
    net.ok("a", "bond add bond0 --member fab0");
    let said = net.say("a", "fabric set fab0 --no-addresses");
    let hint = said.refused(1, "fab0: cannot change the fabric: it is a member of bond 'bond0'");
    assert_eq!(hint, "linkbraid member del bond0 fab0");
    net.ok("a", "bond del bond0");
    net.ok("a", "fabric set fab0 --no-addresses");
    has(&["198.19.9.1/24"]);
}

#[test]
fn bad_input_is_refused_with_a_hint_and_leaves_nothing_behind() {
    let net = hosts(2);
    let folder = net.lab().folder();
    let shm = transport(&net, "shm");
    net.ok("b", &format!("fabric add fab0 --node 1 --nodes 3 --transport {shm}"));
    let before = machine::settled(&net, "a");
    let bad = folder.join("bad");
    fs::write(&bad, "hello\n").expect("writes");
    let bad = format!("shm:{}", bad.display());
    let good = format!("--transport {shm}");
    let add = "linkbraid fabric add fab0";
    for (options, error, hint) in [
        (
            format!("--node 3 --nodes 3 {good}"),
            "fab0: option '--node': 3 is outside the range 0 to 2 of 3 nodes".to_owned(),
            None,
        ),
        (
            format!("--node 1 --nodes 3 {good}"),
            format!("{shm}: cannot join: another process is node 1 of it"),
            Some("linkbraid fabric add --help".to_owned()),
        ),
        (
            format!("--node 0 --nodes 2 {good}"),
            format!("{shm}: cannot join: it was made with node count 3, this node has node count 2"),
            None,
        ),
        (
            format!("--node 0 --nodes 3 --queues 2 {good}"),
            format!("{shm}: cannot join: it was made with queue count 1, this node has queue count 2"),
            None,
        ),
        (
            format!("--node 0 --nodes 3 --transport {bad}"),
            format!("{bad}: cannot join: the file has 6 bytes and is not that of a fabric"),
            Some(format!("{add} --node 0 --nodes 3 --transport {bad}-2")),
        ),
    ] {
        let said = net.say("a", &format!("fabric add fab0 {options}")).refused(1, &error);
        if let Some(hint) = hint {
            assert_eq!(said, hint);
        }
        machine::as_it_was(&net, "a", &before);
    }
    // More than any machine has.
    let large = format!("shm:{}/large,ring=16M", folder.display());
    let said = net.say("a", &format!("fabric add fab0 --node 0 --nodes 512 --transport {large}"));
    assert_eq!(said.code, 1, "{said:?}");
    // Asked for so much, a disk would give all that it has, and everybody's writes would fail, before it says no.
    let left = format!("bytes, and {} has ", folder.display());
    assert!(said.err.contains("need ") && said.err.contains(&left), "{said:?}");
    assert!(said.err.contains(&format!(" bytes left\n  hint: df -h {}\n", folder.display())), "{said:?}");
    machine::as_it_was(&net, "a", &before);
    let said = net.say("a", "fabric add fab0 --node 0 --nodes 3 --transport sci:x");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.err.contains("no such transport 'sci'") && said.err.contains("shm, udp and ofi"),
        "{said:?}"
    );
    let said = net.say("a", &format!("fabric add eth0 --node 0 --nodes 3 {good}"));
    let hint = said.refused(1, "eth0: cannot add the fabric: an interface of this name exists (a veth)");
    check_hint(net.host("a"), &hint);
    let said = net.say("a", &format!("fabric add fab0 --node 0 --nodes 1 {good}"));
    assert_eq!(said.code, 2, "{said:?}");
    let said = net.say("a", "fabric del fab0");
    assert_eq!(said.refused(1, "fab0: no such fabric: there are no fabrics"), "linkbraid fabric show");
    machine::as_it_was(&net, "a", &before);
}
