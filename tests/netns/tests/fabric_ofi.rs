//! Fabrics over libfabric between hosts of a lab. Its providers `tcp` and `net` need no hardware.

use linkbraid_api::{FabricRecord, NodeState};
use linkbraid_lab::{Running, Topology, daemon, wait_for, wait_until};
use linkbraid_netns_tests::{Net, SOON, check_hint, machine, traffic};
use std::{
    fs,
    os::unix::net::UnixStream,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const HOSTS: [&str; 3] = ["a", "b", "c"];

/// So many hosts, each with one link and a daemon, and a directory that says where they are.
fn hosts(count: usize) -> (Net, String) {
    let net = Net::up(Topology::symmetric(count, 1, None));
    HOSTS[..count].iter().for_each(|name| net.start(name, &[]));
    let lines: String =
        net.lab().hosts().enumerate().map(|(node, host)| format!("{node} {}:7000\n", host.ipv4())).collect();
    let file = net.lab().folder().join("nodes");
    fs::write(&file, lines).expect("writes");
    (net, file.display().to_string())
}

/// `fabric add` of every host, and an address of 198.19.0.0/24 for each.
fn add(net: &Net, nodes: usize, transport: &str, options: &str) {
    for (node, name) in HOSTS[..nodes].iter().enumerate() {
        let line = format!("fabric add fab0 --node {node} --nodes {nodes} --transport {transport} {options}");
        net.ok(name, line.trim());
        net.host(name).sh(&format!("ip addr add {}/24 dev fab0", ip(node))).expect("adds");
    }
}

fn ip(node: usize) -> String {
    format!("198.19.0.{}", node + 1)
}

fn show(net: &Net, name: &str) -> FabricRecord {
    let text = net.ok(name, "fabric show fab0 --json");
    let mut all: Vec<FabricRecord> = serde_json::from_str(&text).expect("records");
    all.pop().expect("one")
}

/// Waits until a node holds the others as these.
#[track_caller]
fn wait_states(net: &Net, name: &str, states: &[NodeState]) {
    let same = |record: &FabricRecord| record.peers.iter().map(|peer| peer.state).eq(states.iter().copied());
    wait_until(SOON, "the nodes", || show(net, name), same).unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[test]
fn hosts_have_a_network_over_every_provider_that_needs_no_hardware() {
    let (net, file) = hosts(2);
    let [a, b] = [net.host("a"), net.host("b")];
    for (provider, options) in
        [("tcp", "--mtu 9000"), ("net", "--mtu 65521"), ("tcp;ofi_rxm", "--queues 2 --poll sleep")]
    {
        add(&net, 2, &format!("ofi:{provider},{file}"), options);
        a.wait_ping(&ip(1), SOON).unwrap_or_else(|error| panic!("{provider}: {error}"));
        let record = show(&net, "a");
        let largest = record.settings.mtu.0 - 28;
        a.sh(&format!("ping -c 2 -i 0.2 -M do -s {largest} {}", ip(1))).expect("crosses whole");
        let outcome = traffic::reaches(a, b, &traffic::tcp().to(&ip(1)), |outcome| outcome.mbit() > 50.0);
        eprintln!("{provider}: {:.0} Mbit/s, MTU {}", outcome.mbit(), record.settings.mtu.0);
        assert!(show(&net, "a").peers[0].tx_bytes > 10_000_000);
        // What ends says so, and ends soon.
        let begun = Instant::now();
        net.ok("a", "fabric del fab0");
        eprintln!("{provider}: deleted within {:?}", begun.elapsed());
        wait_states(&net, "b", &[NodeState::Down]);
        assert!(show(&net, "b").events.iter().any(|event| event.reason == "left"), "{provider}");
        net.ok("b", "fabric del fab0");
    }
}

#[test]
fn a_node_that_is_killed_harms_nobody_and_comes_back() {
    for provider in ["tcp", "net"] {
        let (net, file) = hosts(3);
        add(&net, 3, &format!("ofi:{provider},{file}"), "");
        let [a, c] = [net.host("a"), net.host("c")];
        for node in [1, 2] {
            a.wait_ping(&ip(node), SOON).unwrap_or_else(|error| panic!("{provider}: {error}"));
        }
        for round in 0..2 {
            // All of what the others send each other arrives, while one dies in the middle of its own traffic.
            let mut to_it = a.command("ping");
            to_it.args(["-f", "-w", "20", &ip(1)]).stdout(Stdio::null()).stderr(Stdio::null());
            let _to_it = Running::start(to_it).expect("starts");
            let mut others = a.command("ping");
            others.args(["-q", "-c", "60", "-i", "0.02", "-W", "5", &ip(2)]).stdout(Stdio::piped());
            let others = others.spawn().expect("starts");
            let sent = || show(&net, "a").peers.iter().map(|peer| peer.tx_bytes).collect::<Vec<_>>();
            let before = sent();
            let moves = |now: &Vec<u64>| now.iter().zip(&before).all(|(now, before)| now > before);
            wait_until(SOON, "traffic to both", sent, moves).unwrap_or_else(|error| panic!("{error}"));
            net.kill("b");
            wait_states(&net, "a", &[NodeState::Down, NodeState::Up]);
            let said = String::from_utf8(others.wait_with_output().expect("ends").stdout).expect("text");
            assert!(said.contains(" 0% packet loss"), "{provider}, round {round}: {said}");
            let begun = Instant::now();
            net.start("b", &[]);
            let ready = begun.elapsed();
            wait_for(SOON, "an answer", || {
                c.sh(&format!("ping -c 1 -W 0.1 {}", ip(1))).map_err(|error| error.cause)
            })
            .unwrap_or_else(|error| panic!("{provider}: {error}"));
            eprintln!(
                "{provider}: an answer {:?} after the start of the daemon, which was ready after {ready:?}",
                begun.elapsed()
            );
            wait_states(&net, "a", &[NodeState::Up; 2]);
        }
        let begun = Instant::now();
        net.stop("b");
        eprintln!("{provider}: stopped within {:?}", begun.elapsed());
    }
}

#[test]
fn more_nodes_than_have_a_line_are_refused_and_all_stays_as_it_was() {
    let (net, file) = hosts(2);
    add(&net, 2, &format!("ofi:tcp,{file}"), "");
    let ping = || net.host("a").wait_ping(&ip(1), SOON).unwrap_or_else(|error| panic!("{error}"));
    ping();
    let said = net.say("a", "fabric set fab0 --nodes 3");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("there is no line for node 2"), "{said:?}");
    assert_eq!(show(&net, "a").nodes, 2);
    ping();
}

#[test]
fn bad_input_is_refused_with_a_hint_and_leaves_nothing_behind() {
    let (net, file) = hosts(2);
    let before = machine::settled(&net, "a");
    let refused = |transport: &str| {
        let said = net.say("a", &format!("fabric add fab0 --node 0 --nodes 2 --transport {transport}"));
        assert_eq!(said.code, 1, "{said:?}");
        machine::as_it_was(&net, "a", &before);
        said
    };
    let add = "linkbraid fabric add fab0 --node 0 --nodes 2 --transport";
    let said = refused(&format!("ofi:myrinet,{file}"));
    let names = "libfabric has no provider 'myrinet' with reliable messages; there are '";
    assert!(said.err.contains(names) && said.err.contains("'tcp;ofi_rxm'"), "{said:?}");
    let hint = said.err.lines().last().and_then(|line| line.strip_prefix("  hint: ")).expect("a hint");
    assert!(hint.starts_with(&format!("{add} ofi:")) && hint.ends_with(&format!(",{file}")), "{hint}");
    check_hint(net.host("a"), hint);
    net.ok("a", "fabric del fab0");
    let cause = "with libfabric's 'shm' a process that is killed can make the others hang";
    let hint = refused(&format!("ofi:shm,{file}"))
        .refused(1, &format!("ofi:shm,{file}: cannot use this transport: {cause}"));
    assert_eq!(hint, format!("{add} shm:/run/linkbraid/NAME"));
    for (text, cause) in [
        ("0 198.18.99.1:7000\n", "there is no line for node 1"),
        ("0 198.18.99.1:7000\n1 everywhere\n", "line 2: '1 everywhere' is not NODE ADDRESS:PORT"),
    ] {
        fs::write(&file, text).expect("writes");
        refused(&format!("ofi:tcp,{file}"))
            .refused(1, &format!("{file}: cannot read the directory: {cause}"));
    }
    // Another host's address.
    fs::write(&file, "0 198.18.99.1:7000\n1 198.18.99.2:7000\n").expect("writes");
    let said = refused(&format!("ofi:tcp,{file}"));
    assert!(said.err.contains("198.18.99.1"), "{said:?}");
    let said = refused("ofi:tcp,/nowhere/nodes");
    said.refused(1, "/nowhere/nodes: cannot read the directory: it does not exist");
}

#[test]
fn a_machine_without_libfabric_says_which_package_has_it() {
    let (net, file) = hosts(2);
    let libraries = Command::new("ldconfig").arg("-p").output().expect("there is ldconfig").stdout;
    let libraries = String::from_utf8(libraries).expect("text");
    let is_it = |line: &&str| line.trim_start().starts_with("libfabric.so.1 ");
    let line = libraries.lines().find(is_it).expect("libfabric1 is installed where this is tested");
    let library = line.rsplit(' ').next().expect("a path");
    net.stop("a");
    let a = net.host("a");
    let binary = daemon::binary().expect("linkbraid is built");
    let hidden = format!("mount --bind /dev/null {library} && exec {} daemon", binary.display());
    let mut command = a.linkbraid_command("unshare");
    command.args(["--mount", "sh", "-c", &hidden]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _daemon = Running::start(command).expect("starts");
    wait_for(SOON, "the daemon", || UnixStream::connect(a.socket()).map_err(|error| error.to_string()))
        .expect("listens");
    let transport = format!("ofi:tcp,{file}");
    let hint = net
        .say("a", &format!("fabric add fab0 --node 0 --nodes 2 --transport {transport}"))
        .refused(1, &format!("{transport}: cannot use this transport: there is no libfabric.so.1"));
    assert_eq!(hint, "apt-get install libfabric1");
    assert!(!a.sh("ip -o link").expect("lists").contains("fab0"));
    // Others need it not.
    net.ok("a", &format!("fabric add fab0 --node 0 --nodes 2 --transport udp:{file}"));
    wait_until(Duration::from_secs(5), "its state", || show(&net, "a").reason, |reason| !reason.is_empty())
        .unwrap_or_else(|error| panic!("{error}"));
}
