//! Nodes of a fabric that find each other by a real etcd of three servers: they join, move and leave without a list that somebody
//! copies, and go on while etcd is away.

use crate::nodes::Nodes;
use linkbraid_api::{FabricRecord, Health, NodeState};
use linkbraid_lab::{Host, Running, wait_until};
use linkbraid_netns_tests::{SOON, flow::Flow, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, Instant},
};

/// Most nodes that there may be.
const NODES: usize = 8;
/// Hosts with a server of etcd each, after those with nodes.
const SERVERS: [&str; 3] = ["d", "e", "f"];
/// A lease, with what servers that have just elected another leader add to it.
const LEASE: Duration = Duration::from_secs(40);

/// How long it is counted what a quiet node takes.
const LOOK: Duration = Duration::from_secs(3);

fn server(host: Host<'_>, all: &str, folder: &Path) -> Running {
    let (name, address) = (host.name(), host.ipv4());
    let mut command = host.command("etcd");
    let [client, peer] = [2379, 2380].map(|port| format!("http://{address}:{port}"));
    command.args(["--name", name, "--data-dir"]).arg(folder.join(format!("etcd-{name}")));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", all, "--logger", "zap", "--log-outputs", "/dev/null"]);
    host.spawn(command).expect("etcd is installed")
}

fn servers(nodes: &Nodes) -> Vec<Running> {
    let hosts = SERVERS.map(|name| nodes.net.host(name));
    let all = hosts.map(|host| format!("{}=http://{}:2380", host.name(), host.ipv4())).join(",");
    hosts.into_iter().map(|host| server(host, &all, &nodes.net.lab().folder())).collect()
}

/// `fabric add` on a host, which knows one server.
#[track_caller]
fn add(nodes: &Nodes, name: &str, node: usize, server: &str) {
    let cache = nodes.net.lab().folder().join(format!("nodes-{name}"));
    let at = nodes.net.host(server).ipv4();
    let line = format!(
        "fabric add fab0 --node {node} --nodes {NODES} --transport udp:etcd://{at}:2379/lab,cache={} --mtu 1450",
        cache.display()
    );
    nodes.net.ok(name, &format!("{line} --address {}/24", Nodes::ip(node)));
}

fn show(nodes: &Nodes, name: &str) -> FabricRecord {
    let text = nodes.net.ok(name, "fabric show fab0 --json");
    serde_json::from_str::<Vec<FabricRecord>>(&text).expect("records").pop().expect("one")
}

/// Waits until a host is well, and these nodes are all that it has.
#[track_caller]
fn wait_has(nodes: &Nodes, name: &str, others: &[u16]) {
    let good = |record: &FabricRecord| {
        let up = record.peers.iter().filter(|peer| peer.state == NodeState::Up).map(|peer| peer.node);
        record.health == Health::Ok && up.eq(others.iter().copied())
    };
    wait_until(LEASE, "the nodes", || show(nodes, name), good).unwrap_or_else(|e| panic!("{name}: {e}"));
}

#[track_caller]
fn wait_reason(nodes: &Nodes, name: &str, words: &str) {
    let says = |record: &FabricRecord| record.health != Health::Ok && record.reason.contains(words);
    wait_until(SOON, words, || show(nodes, name), says).unwrap_or_else(|e| panic!("{name}: {e}"));
}

fn signal(servers: &[Running], signal: Signal) {
    servers.iter().for_each(|server| server.signal(signal).expect("it runs"));
}

#[test]
fn nodes_find_each_other_by_etcd_and_go_on_while_it_is_away() {
    let nodes = Nodes::hosts(6);
    let mut etcd = servers(&nodes);
    for (node, (name, server)) in ["a", "b", "c"].into_iter().zip(SERVERS).enumerate() {
        add(&nodes, name, node, server);
    }
    for (name, others) in [("a", [1, 2]), ("b", [0, 2]), ("c", [0, 1])] {
        wait_has(&nodes, name, &others);
    }
    nodes.ping(0, 1);
    let ends = [0, 1].map(|node| (nodes.net.host(&nodes.names[node]), Nodes::ip(node)));
    let flow = Flow::between([(ends[0].0, &ends[0].1), (ends[1].0, &ends[1].1)]);

    // The server that a knew is gone: it has learned where the others are, and hears of who comes by them.
    drop(etcd.remove(0));
    add(&nodes, "d", 3, "e");
    wait_has(&nodes, "a", &[1, 2, 3]);
    wait_has(&nodes, "d", &[0, 1, 2]);
    flow.loses_nothing_more();
    // A number is one node's.
    add(&nodes, "e", 3, "e");
    wait_reason(&nodes, "e", &format!("node 3 of 'lab' is {}:7000", nodes.net.host("d").ipv4()));
    nodes.net.ok("e", "fabric del fab0");
    // Who leaves is gone at once.
    nodes.net.ok("d", "fabric del fab0");
    wait_has(&nodes, "a", &[1, 2]);
    let absent = || show(&nodes, "a").peers.into_iter().find(|peer| peer.node == 3).map(|peer| peer.state);
    until("it is forgotten", absent, |state| *state == Some(NodeState::Absent));

    // No etcd at all: all goes on, and so does a daemon that starts again.
    signal(&etcd, Signal::SIGSTOP);
    wait_reason(&nodes, "b", "etcd: ");
    flow.loses_nothing_more();
    nodes.net.kill("c");
    nodes.net.start("c", &[]);
    let up = || show(&nodes, "c").peers.iter().filter(|peer| peer.state == NodeState::Up).count();
    until("it has come back", up, |up| *up == 2);
    nodes.ping(2, 0);
    flow.loses_nothing_more();
    signal(&etcd, Signal::SIGCONT);
    for (name, others) in [("a", [1, 2]), ("b", [0, 2]), ("c", [0, 1])] {
        wait_has(&nodes, name, &others);
    }

    // An address that changes is found, and told to all.
    let c = nodes.net.host("c");
    let (old, new) = (c.ipv4().to_owned(), "198.18.0.77");
    c.sh(&format!("ip addr del {old}/24 dev eth0")).expect("removes");
    c.sh(&format!("ip addr add {new}/24 dev eth0")).expect("adds");
    let file = nodes.net.lab().folder().join("nodes-a");
    let lines = || fs::read_to_string(&file).expect("is there");
    until("the new address", lines, |text| text.contains(&format!("2 {new}:7000\n")));
    for (name, others) in [("a", [1, 2]), ("c", [0, 1])] {
        wait_has(&nodes, name, &others);
    }
    nodes.ping(0, 2);

    // A machine that is gone is forgotten with its lease.
    nodes.net.kill("c");
    until("its lease has ended", lines, |text| !text.contains("\n2 "));
    wait_has(&nodes, "a", &[1]);
    let (_, twice) = flow.end();
    assert_eq!(twice, 0);
}

/// Certificates for a server at an address, signed by a CA of their own, in a folder.
fn certificates(host: Host<'_>, folder: &Path) {
    let file = |name: &str| folder.join(name).display().to_string();
    let openssl = |words: &str| host.sh(&format!("openssl {words}")).expect("openssl is installed");
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
    openssl(&format!("{new} -subj /CN=lab-ca -keyout {} -out {}", file("ca.key"), file("ca.pem")));
    openssl(&format!(
        "{new} -subj /CN=etcd -addext subjectAltName=IP:{} -addext basicConstraints=CA:FALSE -CA {} -CAkey {} -keyout {} -out {}",
        host.ipv4(),
        file("ca.pem"),
        file("ca.key"),
        file("key.pem"),
        file("cert.pem"),
    ));
}

/// Asks a server something that its administrator may, before it asks for passwords.
fn administer(host: Host<'_>, folder: &Path, what: &str, words: &Value) {
    let url = format!("https://{}:2379/v3/auth/{what}", host.ipv4());
    let mut command = host.command("curl");
    command.args(["-sf", "--retry", "20", "--retry-all-errors", "--retry-delay", "1", "--cacert"]);
    command.arg(folder.join("ca.pem")).args(["-d", &words.to_string(), &url]);
    let done = command.output().expect("curl is installed");
    assert!(done.status.success(), "{what}: {done:?}");
}

#[test]
fn certificates_and_a_password_come_from_a_file() {
    let nodes = Nodes::hosts(3);
    let (folder, host) = (nodes.net.lab().folder(), nodes.net.host("c"));
    certificates(host, &folder);
    let url = format!("https://{}:2379", host.ipv4());
    let mut command = host.command("etcd");
    command.arg("--data-dir").arg(folder.join("etcd")).args(["--listen-client-urls", &url]);
    command.args(["--advertise-client-urls", &url, "--logger", "zap", "--log-outputs", "/dev/null"]);
    command.arg("--cert-file").arg(folder.join("cert.pem")).arg("--key-file").arg(folder.join("key.pem"));
    let _etcd = host.spawn(command).expect("etcd is installed");
    // As an administrator would: who may write to this fabric's keys, and to no others.
    // In base64: from "/linkbraid/lab/" up to "/linkbraid/lab0".
    let keys = ["L2xpbmticmFpZC9sYWIv", "L2xpbmticmFpZC9sYWIw"];
    for (what, words) in [
        ("user/add", json!({ "name": "root", "password": "root" })),
        ("role/add", json!({ "name": "root" })),
        ("user/grant", json!({ "user": "root", "role": "root" })),
        ("user/add", json!({ "name": "lab", "password": "secret" })),
        ("role/add", json!({ "name": "lab" })),
        (
            "role/grant",
            json!({ "name": "lab", "perm": {
                "permType": "READWRITE", "key": keys[0], "range_end": keys[1],
            } }),
        ),
        ("user/grant", json!({ "user": "lab", "role": "lab" })),
        ("enable", json!({})),
    ] {
        administer(host, &folder, what, &words);
    }
    let login = |name: &str, password: &str| {
        let path = folder.join(format!("login-{name}"));
        let ca = folder.join("ca.pem");
        let text = format!("user = \"lab\"\npassword = \"{password}\"\nca = \"{}\"\n", ca.display());
        fs::write(&path, text).expect("writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("sets");
        path
    };
    for (node, name, password) in [(0, "a", "secret"), (1, "b", "wrong")] {
        let path = login(name, password);
        let cache = folder.join(format!("nodes-{name}"));
        let transport =
            format!("udp:etcd://{}:2379/lab,login={},cache={}", host.ipv4(), path.display(), cache.display());
        let line = format!("fabric add fab0 --node {node} --nodes 2 --transport {transport}");
        nodes.net.ok(name, &format!("{line} --address {}/24", Nodes::ip(node)));
    }
    wait_reason(&nodes, "b", "authentication failed, invalid user ID or password");
    nodes.net.ok("b", "fabric del fab0");
    let path = login("b", "secret");
    let transport = format!("udp:etcd://{}:2379/lab,login={}", host.ipv4(), path.display());
    let cache = folder.join("nodes-b");
    let line =
        format!("fabric add fab0 --node 1 --nodes 2 --transport {transport},cache={}", cache.display());
    nodes.net.ok("b", &format!("{line} --address {}/24", Nodes::ip(1)));
    wait_has(&nodes, "a", &[1]);
    nodes.ping(0, 1);
    // Others may not read the password.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("sets");
    let said = nodes.net.say("c", &format!("fabric add fab1 --node 1 --nodes 2 --transport {transport}"));
    assert!(said.code == 1 && said.err.contains("its mode is 644"), "{said:?}");
}

/// What nodes that nobody lists take: so many as `LINKBRAID_ETCD_NODES` says, or a few. More than 30 need room in the kernel's table of
/// neighbours, which is one for all namespaces (`net.ipv4.neigh.default.gc_thresh3`).
#[test]
fn many_nodes_find_each_other() {
    let count: usize =
        std::env::var("LINKBRAID_ETCD_NODES").map_or(8, |count| count.parse().expect("a number"));
    let nodes = Nodes::hosts(count);
    let first = nodes.net.host("a");
    let all = format!("{}=http://{}:2380", first.name(), first.ipv4());
    let folder = nodes.net.lab().folder();
    let _etcd = server(first, &all, &folder);
    let began = Instant::now();
    for (node, name) in nodes.names.iter().enumerate() {
        let cache = folder.join(format!("nodes-{name}"));
        let transport = format!("udp:etcd://{}:2379/lab,cache={}", first.ipv4(), cache.display());
        let line = format!("fabric add fab0 --node {node} --nodes {count} --transport {transport}");
        nodes.net.ok(name, &format!("{line} --address {}/16", Nodes::ip(node)));
    }
    println!("{count} nodes: added after {:?}", began.elapsed());
    let up = |name: &String| {
        let record = show(&nodes, name);
        record.peers.iter().filter(|peer| peer.state == NodeState::Up).count()
    };
    for name in &nodes.names {
        wait_until(LEASE * 5, "all nodes", || up(name), |up| *up == count - 1)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    println!("all know all after {:?}", began.elapsed());
    nodes.ping(0, count - 1);
    // What one of them takes while it is quiet.
    let pid = nodes.net.pid("b");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let of = |what: &str| status.lines().find(|line| line.starts_with(what)).unwrap_or_default().to_owned();
    let before = nodes.net.processor("b");
    let looked = Instant::now();
    // The time over which is counted.
    while looked.elapsed() < LOOK {
        std::thread::park_timeout(LOOK - looked.elapsed().min(LOOK));
    }
    let share = (nodes.net.processor("b") - before).as_secs_f64() / looked.elapsed().as_secs_f64();
    println!("quiet: {:.2} % of a core, {}, {}", 100.0 * share, of("VmRSS:"), of("Threads:"));
}
