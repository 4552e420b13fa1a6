//! Containers on a bond and on a fabric, attached by `linkbraid-cni`, with addresses by the CNI project's `host-local`.

use crate::nodes::Nodes;
use linkbraid_lab::iperf::{Cc, Traffic};
use linkbraid_lab::{Fault, Host, LinkSpec, Topology, daemon, netns, shape, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, flow::Flow, guide, sh, traffic, until};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{env, fs, process};

/// Where Debian has the other plugins.
pub const PLUGINS: &str = "/usr/lib/cni";
/// What a container calls its interface.
const NIC: &str = "net1";
/// What each link carries, Mbit/s.
pub const RATE: u32 = 100;
/// Of what the links carry together, what one flow between containers carries at least (see `guests`).
pub const PART: f64 = 0.85;
/// Containers that come and go.
const TIMES: usize = 200;

/// The folder that `linkbraid-cni` is in.
pub fn folder() -> PathBuf {
    daemon::binary().expect("it is built").parent().expect("a folder").to_owned()
}

/// The plugin's network on one host, as its file has it, and where `host-local` remembers which addresses it gave away.
pub struct Network<'n> {
    host: Host<'n>,
    leases: PathBuf,
    list: Value,
}

/// A network's file as docs/guides/containers.md shows it, with two addresses of its own, `leases` to remember them, and the socket
/// of this host's daemon.
pub fn network(host: Host<'_>, leases: &Path, first: u8) -> Value {
    let text = guide::block("containers.md", "network");
    let mut list: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let plugin = &mut list["plugins"][0];
    plugin["socket"] = json!(host.socket());
    plugin["ipam"]["dataDir"] = json!(leases);
    plugin["ipam"]["ranges"][0][0]["rangeStart"] = json!(format!("198.18.0.{first}"));
    plugin["ipam"]["ranges"][0][0]["rangeEnd"] = json!(format!("198.18.0.{}", first + 1));
    list
}

/// How many addresses are given away.
pub fn given(leases: &Path) -> usize {
    let leases = fs::read_dir(leases.join(BOND)).into_iter().flatten().flatten();
    // The last one that was given, and a lock.
    leases.filter(|lease| lease.file_name().as_encoded_bytes()[0].is_ascii_digit()).count()
}

/// The first address that a container has been given.
fn address(said: &Value) -> String {
    let address = said["ips"][0]["address"].as_str().unwrap_or_else(|| panic!("no address: {said}"));
    address.split('/').next().expect("one").to_owned()
}

impl<'n> Network<'n> {
    /// The network of the guide with two addresses, after `change`.
    pub fn changed(host: Host<'n>, first: u8, change: impl FnOnce(&mut Value)) -> Self {
        let leases = env::temp_dir().join(format!("linkbraid-cni-{}-{first}", process::id()));
        let mut list = network(host, &leases, first);
        change(&mut list);
        Self { host, leases, list }
    }

    fn on(host: Host<'n>, first: u8) -> Self {
        Self::changed(host, first, |_| ())
    }

    /// What the plugin is told of it, with `more`.
    fn configuration(&self, more: &Value) -> Value {
        let mut list = self.list.clone();
        let mut plugin = list["plugins"][0].take();
        plugin["name"] = list["name"].take();
        plugin["cniVersion"] = list["cniVersion"].take();
        for (key, value) in more.as_object().expect("keys and values") {
            plugin[key] = value.clone();
        }
        plugin
    }

    /// Has the plugin do something for a container, whom the runtime calls `id`; what it prints, and whether it was done.
    #[track_caller]
    fn says(&self, what: &str, container: Host<'_>, id: &str, more: &Value) -> (bool, String) {
        let namespace = Path::new(netns::FOLDER).join(container.netns().name());
        self.says_in(what, &namespace, id, more)
    }

    /// The same for a network namespace by its path.
    #[track_caller]
    fn says_in(&self, what: &str, namespace: &Path, id: &str, more: &Value) -> (bool, String) {
        let mut command = self.host.command(folder().join("linkbraid-cni"));
        command
            .env("CNI_COMMAND", what)
            .env("CNI_CONTAINERID", id)
            .env("CNI_NETNS", namespace)
            .env("CNI_IFNAME", NIC)
            .env("CNI_PATH", PLUGINS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut plugin = command.spawn().expect("the plugin is built");
        let words = self.configuration(more).to_string();
        plugin.stdin.take().expect("piped").write_all(words.as_bytes()).expect("takes them");
        let done = plugin.wait_with_output().expect("ends");
        (done.status.success(), String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// The same, which must be done.
    #[track_caller]
    fn asks(&self, what: &str, container: Host<'_>, more: &Value) -> String {
        let (is_done, said) = self.says(what, container, container.netns().name(), more);
        assert!(is_done, "{what}: {said}");
        said
    }

    /// The same, which must be refused with this number; what is said.
    #[track_caller]
    fn refuses(&self, what: &str, container: Host<'_>, more: &Value, code: u64) -> String {
        let (is_done, said) = self.says(what, container, container.netns().name(), more);
        let error: Value =
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{what}: {error}: {said}"));
        assert!(!is_done && error["code"] == code, "{what}: {said}");
        format!(
            "{} {}",
            error["msg"].as_str().expect("a line"),
            error["details"].as_str().unwrap_or_default()
        )
    }

    /// Attaches a container; what the plugin says of it.
    #[track_caller]
    pub fn add(&self, container: Host<'_>) -> Value {
        self.add_with(container, &json!({}))
    }

    #[track_caller]
    fn add_with(&self, container: Host<'_>, more: &Value) -> Value {
        let said = self.asks("ADD", container, more);
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    }

    /// What is left of containers, on the host and in one.
    fn left(&self, container: Host<'_>) -> (String, String, usize, usize) {
        let (links, rules) = (sh(self.host, "ip -o link"), sh(self.host, "nft list ruleset"));
        // What a link is called and is a port of; counters and the like change.
        let names = links.lines().filter_map(|line| line.split(' ').nth(1)).collect::<Vec<_>>().join(" ");
        (names, rules, given(&self.leases), sh(container, "ip -o link").lines().count())
    }
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.leases);
    }
}

/// Two hosts with four links each, two containers, which have a link beside, that nobody uses, and a plain host, `e`.
fn hosts() -> Net {
    let switch = || LinkSpec::switch(0, Some(RATE));
    let lab = Topology::symmetric(2, 4, Some(RATE));
    let net = Net::bonded(lab.plain_host([switch()]).plain_host([switch()]).plain_host([switch()]));
    for container in ["c", "d"] {
        sh(net.host(container), "ip link set eth0 down");
        sh(net.host(container), "ip address flush dev eth0");
    }
    net
}

/// Settings of the bond's interface, which decide whether the host keeps its addresses and routes.
fn settings(host: Host<'_>) -> Vec<(PathBuf, String)> {
    let folders = ["ipv4", "ipv6"].map(|family| format!("/proc/sys/net/{family}/conf/{BOND}"));
    let files = || -> std::io::Result<Vec<_>> {
        let mut all = Vec::new();
        for file in folders.iter().flat_map(fs::read_dir).flatten() {
            let path = file?.path();
            // One is not there before it is set.
            all.push((path.clone(), fs::read_to_string(path).unwrap_or_default()));
        }
        all.sort();
        Ok(all)
    };
    let all = host.make("read its settings", files).expect("reads");
    assert!(all.len() > 50, "{all:?}");
    all
}

#[test]
fn one_flow_of_a_container_has_all_links_and_survives_one() {
    let net = hosts();
    let (near, far) = (net.host("c"), net.host("d"));
    // As on a host that has its address and default route from a router.
    sh(net.host("a"), "sysctl -qw net.ipv6.conf.bond0.accept_ra=1");
    let before = settings(net.host("a"));
    let networks = [Network::on(net.host("a"), 201), Network::on(net.host("b"), 203)];
    let [here, there] = [(&networks[0], near), (&networks[1], far)].map(|(network, container)| {
        let said = network.add(container);
        network.asks("CHECK", container, &json!({ "prevResult": said }));
        address(&said)
    });
    assert_eq!(settings(net.host("a")), before, "the host's own interface stays as it is");
    for address in [&there, net.host("e").ipv4(), net.host("b").ipv4()] {
        near.wait_ping(address, SOON).unwrap_or_else(|e| panic!("{address}: {e}"));
    }
    let to = Traffic { address: Some(there.clone()), ..Traffic::tcp(Cc::Cubic, 4) };
    let enough = PART * 4.0 * f64::from(RATE) * shape::tcp_share(1500, false);
    let outcome = traffic::reaches(near, far, &to, |outcome| outcome.mbit() >= enough);
    eprintln!("{here} to {there}: {outcome:?}");

    let flow = Flow::between([(near, &here), (far, &there)]);
    flow.wait_received(100);
    net.host("a").link(1).expect("there").fail(Fault::Carrier).expect("sets");
    let gone = || net.show("a").health != linkbraid_api::Health::Ok;
    wait_until(SOON, "the verdict", gone, |is| *is).unwrap_or_else(|e| panic!("{e}"));
    flow.loses_nothing_more();
    assert_eq!(flow.end().1, 0, "nothing came twice");
}

#[test]
fn containers_that_come_and_go_leave_nothing() {
    let net = hosts();
    let (a, container) = (net.host("a"), net.host("c"));
    net.ok("a", &format!("class add {BOND} bulk --match fwmark=0x10"));
    let network = Network::on(a, 201);
    let before = network.left(container);
    let in_class = json!({ "classes": ["bulk"], "args": { "cni": { "class": "bulk" } } });
    for turn in 0..TIMES {
        let more = if turn % 10 == 0 { in_class.clone() } else { json!({}) };
        network.add_with(container, &more);
        network.asks("DEL", container, &more);
    }
    assert_eq!(network.left(container), before);
    let ok = || net.show("a").health;
    wait_until(SOON, "health", ok, |health| *health == linkbraid_api::Health::Ok)
        .unwrap_or_else(|e| panic!("{e}"));
    // Nor are they remembered as guests for as long as one that is there and says nothing.
    until("no guest", || net.show("a").guests.len(), |guests| *guests == 0);
    // One more is as good as the first.
    network.add(container);
    container.wait_ping(net.host("b").ipv4(), SOON).unwrap_or_else(|e| panic!("{e}"));
    // A container that is there twice would have two interfaces of one name; the first one stays.
    network.refuses("ADD", container, &json!({}), 100);
    container.wait_ping(net.host("b").ipv4(), SOON).unwrap_or_else(|e| panic!("{e}"));
    // The daemon is not needed to get rid of one, and gone twice is gone.
    net.stop("a");
    network.asks("DEL", container, &json!({}));
    network.asks("DEL", container, &json!({}));
    assert_eq!(network.left(container), before);
}

#[test]
fn what_is_not_ready_is_refused_and_nothing_is_made_in_its_place() {
    let link = || [LinkSpec::switch(0, None)];
    let net = Net::up(Topology::symmetric(1, 2, None).plain_host(link()).plain_host(link()));
    let (a, container) = (net.host("a"), net.host("b"));
    let network = Network::on(a, 201);
    let before = network.left(container);
    // No daemon, then no bond.
    assert!(network.refuses("ADD", container, &json!({}), 11).contains("cannot reach the daemon"));
    assert!(network.refuses("STATUS", container, &json!({}), 50).contains("cannot reach the daemon"));
    net.start("a", &[]);
    let said = network.refuses("ADD", container, &json!({}), 11);
    assert!(said.contains("bond0") && said.contains("hint: linkbraid"), "{said}");
    network.refuses("STATUS", container, &json!({}), 50);
    assert_eq!(network.left(container), before);

    net.ok("a", &format!("bond add {BOND} --member eth0,eth1"));
    network.asks("STATUS", container, &json!({}));
    // Those that are told what it cannot be.
    let before = network.left(container);
    let class = |name: &str| json!({ "class": name });
    let said = network.refuses("ADD", container, &class("bulk"), 7);
    assert!(said.contains("class 'bulk'") && said.contains("class add bond0 bulk"), "{said}");
    net.ok("a", &format!("class add {BOND} bulk --match udp-port=9"));
    let said = network.refuses("ADD", container, &class("bulk"), 7);
    assert!(said.contains("no rule for a mark") && said.contains("class set bond0 bulk"), "{said}");
    network.refuses("ADD", container, &json!({ "bond": "bond0", "fabric": "fab0" }), 7);
    network.refuses("ADD", container, &json!({ "runtimeConfig": { "mac": "03:00:00:00:00:01" } }), 7);
    network.refuses("ADD", container, &json!({ "ipam": { "type": "../cni/host-local" } }), 7);
    network.refuses("ADD", container, &json!({ "cniVersion": "2.0.0" }), 1);
    network.refuses("CHECK", container, &json!({}), 7);
    let asks = json!({ "class": "bulk", "args": { "cni": { "class": "voice" } } });
    assert!(network.refuses("ADD", container, &asks, 7).contains("'voice'"));
    network.refuses("ADD", container, &json!({ "prevResult": {} }), 7);
    // Whatever was refused: DEL is done, or a container could not be removed.
    for more in
        [asks, class("Bulk"), json!({ "fabric": "fab0", "class": "bulk" }), json!({ "prevResult": {} })]
    {
        network.asks("DEL", container, &more);
    }
    // What fails late is undone: a route that cannot be, and more addresses than there are.
    let mut late = network.list["plugins"][0]["ipam"].clone();
    late["routes"] = json!([{ "dst": "198.19.0.0/16", "gw": "198.19.99.99" }]);
    network.refuses("ADD", container, &json!({ "ipam": late }), 100);
    assert_eq!(network.left(container), before);
    let mut one = network.list["plugins"][0]["ipam"].clone();
    one["ranges"][0][0]["rangeEnd"] = json!("198.18.0.201");
    let one = json!({ "ipam": one });
    network.asks("ADD", container, &one);
    let with_one = network.left(container);
    let (is_done, said) = network.says("ADD", net.host("c"), "other", &one);
    assert!(!is_done && said.contains("no IP addresses available"), "{said}");
    assert_eq!(network.left(container), with_one);
    assert!(!sh(net.host("c"), "ip -o link").contains(NIC));
    network.asks("DEL", container, &one);
    assert_eq!(network.left(container), before);

    // The host's own namespace is no container's: nothing is added to it, and nothing removed.
    let own = Path::new("/proc/self/ns/net");
    sh(a, &format!("ip link add {NIC} type veth peer name far"));
    for (what, more) in [("ADD", json!({})), ("ADD", json!({ "bond": null, "fabric": "fab0" }))] {
        let (is_done, said) = network.says_in(what, own, "host", &more);
        assert!(!is_done && said.contains("the host's own"), "{said}");
        let (is_done, said) = network.says_in("DEL", own, "host", &more);
        assert!(is_done, "{said}");
    }
    assert!(sh(a, "ip -o link").contains(NIC));
    sh(a, &format!("ip link del {NIC}"));
    // A namespace that is gone is no reason to fail, nor is an interface that the container has from elsewhere one to remove.
    let gone = net.lab().folder().join("gone");
    fs::write(&gone, "").expect("writes");
    for more in [json!({}), json!({ "bond": null, "fabric": "fab0" })] {
        for namespace in [gone.as_path(), Path::new("/run/netns/no-such")] {
            let (is_done, said) = network.says_in("DEL", namespace, "gone", &more);
            assert!(is_done, "{said}");
        }
    }
    sh(container, &format!("ip link add {NIC} type veth peer name far"));
    network.asks("DEL", container, &json!({ "bond": null, "fabric": "fab0" }));
    assert!(sh(container, "ip -o link").contains(NIC));
    sh(container, &format!("ip link del {NIC}"));
    assert_eq!(network.left(container), before);

    for link in a.links().expect("known") {
        link.fail(Fault::Carrier).expect("sets");
    }
    until("no link", || net.show("a").health, |health| *health == linkbraid_api::Health::Down);
    network.refuses("STATUS", container, &json!({}), 51);
}

#[test]
fn an_annotation_chooses_the_class_and_the_mac() {
    let net = hosts();
    net.ok("a", &format!("class add {BOND} bulk --match fwmark=0x10"));
    net.ok("a", &format!("bond set {BOND} --stripe 16KiB"));
    let (near, b) = (net.host("c"), net.host("b").ipv4());
    let network = Network::on(net.host("a"), 201);
    let mac = "02:00:00:00:99:01";
    let more = json!({
        "cniVersion": "1.1.0",
        "classes": ["bulk"],
        "args": { "cni": { "class": "bulk" } },
        "runtimeConfig": { "mac": mac },
    });
    let said = network.add_with(near, &more);
    let inside = &said["interfaces"][1];
    assert_eq!(
        (&said["cniVersion"], &inside["mac"], &inside["mtu"]),
        (&json!("1.1.0"), &json!(mac), &json!(1500))
    );
    // Its TCP's buffers are no longer than the bond's stripes.
    let longest = |host, nic: &str| {
        let said: Value =
            serde_json::from_str(&sh(host, &format!("ip -d -j link show {nic}"))).expect("JSON");
        said[0]["gso_max_size"].as_u64().expect("a number")
    };
    let stripes = longest(net.host("a"), BOND);
    assert!(stripes < 20_000 && longest(near, NIC) == stripes, "{stripes}");
    // The first ones leave as to a plain host, until the peer knows the container.
    let sent = || {
        near.wait_ping(b, SOON).unwrap_or_else(|e| panic!("{e}"));
        net.records::<Vec<linkbraid_api::ClassRecord>>("a", "class show")[0].rules[1].frames
    };
    until("frames in the class", sent, |frames| *frames >= 10);
    let mut checked = more.clone();
    checked["prevResult"] = said;
    network.asks("CHECK", near, &checked);
    // What somebody has changed since is told.
    sh(net.host("a"), "nft flush ruleset");
    assert!(network.refuses("CHECK", near, &checked, 101).contains("the mark 0x10"));
    sh(near, "ip route del default");
    let plain = json!({ "prevResult": checked["prevResult"] });
    assert!(network.refuses("CHECK", near, &plain, 101).contains("no route to 0.0.0.0/0"));
    sh(near, &format!("ip address flush dev {NIC}"));
    let plain = json!({ "prevResult": checked["prevResult"] });
    assert!(network.refuses("CHECK", near, &plain, 101).contains("198.18.0.201/24"));
    network.asks("DEL", near, &more);
}

#[test]
fn garbage_is_collected_and_only_garbage() {
    let net = hosts();
    net.ok("a", &format!("class add {BOND} bulk --match fwmark=0x10"));
    let network = Network::on(net.host("a"), 201);
    let other = Network::changed(net.host("a"), 205, |list| list["name"] = json!("other"));
    let [kept, lost, others] = ["c", "d", "e"].map(|name| net.host(name));
    let before = network.left(kept);
    network.add(kept);
    let with_kept = network.left(kept);
    other.add(others);
    network.add_with(lost, &json!({ "class": "bulk" }));
    let valid = json!({
        "cniVersion": "1.1.0",
        "cni.dev/valid-attachments": [{ "containerID": kept.netns().name(), "ifname": NIC }],
    });
    network.asks("GC", kept, &valid);
    let b = net.host("b").ipv4();
    kept.wait_ping(b, SOON).unwrap_or_else(|e| panic!("{e}"));
    assert!(sh(others, "ip -o link").contains(NIC) && !sh(lost, "ip -o link").contains(NIC));
    assert_eq!(sh(net.host("a"), "nft list tables netdev"), "");
    // Who says nothing of what is in use has nothing removed.
    network.asks("GC", kept, &json!({ "cniVersion": "1.1.0" }));
    kept.wait_ping(b, SOON).unwrap_or_else(|e| panic!("{e}"));
    other.asks("DEL", others, &json!({}));
    // `host-local` of Debian 12 knows no GC: the address is for DEL.
    network.asks("DEL", lost, &json!({}));
    assert_eq!(network.left(kept), with_kept);
    network.asks("DEL", kept, &json!({}));
    assert_eq!(network.left(kept), before);
}

#[test]
fn many_at_once_are_attached_and_an_address_that_moves_is_heard_of_at_once() {
    const MANY: u8 = 8;
    const MOVES: usize = 2;
    let link = || [LinkSpec::switch(0, None)];
    let lab = (0..MANY).fold(Topology::symmetric(2, 2, None), |lab, _| lab.plain_host(link()));
    let net = Net::bonded(lab);
    let names: Vec<String> = net.lab().hosts().skip(2).map(|host| host.name().to_owned()).collect();
    // Containers have addresses of both families.
    let network = Network::changed(net.host("a"), 201, |list| {
        let ranges = &mut list["plugins"][0]["ipam"]["ranges"];
        ranges[0][0]["rangeEnd"] = json!("198.18.0.220");
        let range =
            json!([{ "subnet": "2001:db8::/64", "rangeStart": "2001:db8::c9", "rangeEnd": "2001:db8::e0" }]);
        ranges.as_array_mut().expect("some").push(range);
    });
    let containers: Vec<Host<'_>> = names.iter().map(|name| net.host(name)).collect();
    for container in &containers {
        sh(*container, "ip link set eth0 down");
        sh(*container, "ip address flush dev eth0");
    }
    let before = network.left(containers[0]);
    let all: Vec<Value> = std::thread::scope(|scope| {
        let network = &network;
        let adds: Vec<_> =
            containers.iter().map(|container| scope.spawn(move || network.add(*container))).collect();
        adds.into_iter().map(|add| add.join().expect("is attached")).collect()
    });
    let b = net.host("b");
    for (said, container) in all.iter().zip(&containers) {
        for ip in said["ips"].as_array().expect("some") {
            let address = ip["address"].as_str().and_then(|text| text.split('/').next()).expect("one");
            b.wait_ping(address, SOON).unwrap_or_else(|e| panic!("{address}: {e}"));
        }
        network.asks("CHECK", *container, &json!({ "prevResult": said }));
    }
    // The same addresses by other MACs: without a word of theirs b would send to the old ones for half a minute.
    let mac = |address: &str| {
        let said: Value = serde_json::from_str(&sh(b, &format!("ip -j neigh show {address}"))).expect("JSON");
        said[0]["lladdr"].as_str().map(str::to_owned)
    };
    let last = usize::from(MANY) - 1;
    for ip in all[last]["ips"].as_array().expect("some") {
        let address = ip["address"].as_str().and_then(|text| text.split('/').next()).expect("one");
        let old = mac(address);
        assert_eq!(old.as_deref(), all[last]["interfaces"][1]["mac"].as_str());
    }
    let fixed = json!({
        "ipam": { "type": "static", "addresses": [
            { "address": all[last]["ips"][0]["address"] }, { "address": all[last]["ips"][1]["address"] },
        ]}
    });
    for _ in 0..MOVES {
        // Soon after another interface has changed, the kernel's own announcement arrives, too.
        let guests = || net.show("a").guests.len();
        until("all are known", guests, |guests| *guests == containers.len());
        network.asks("DEL", containers[last], &json!({}));
        until("it is forgotten", guests, |guests| *guests == last);
        let said = network.add_with(containers[last], &fixed);
        let new = said["interfaces"][1]["mac"].as_str().expect("a MAC");
        for ip in said["ips"].as_array().expect("some") {
            let address = ip["address"].as_str().and_then(|text| text.split('/').next()).expect("one");
            until("the new MAC", || mac(address), |mac| mac.as_deref() == Some(new));
        }
    }
    std::thread::scope(|scope| {
        let network = &network;
        for container in &containers {
            scope.spawn(move || network.asks("DEL", *container, &json!({})));
        }
    });
    assert_eq!(network.left(containers[0]), before);
}

#[test]
fn containers_on_a_fabric_reach_each_other() {
    let nodes = Nodes::up(2, "udp", "");
    let link = || [LinkSpec::switch(0, None)];
    let containers = Net::up(Topology::empty("lab", 1).plain_host(link()).plain_host(link()));
    let inside = ["a", "b"].map(|name| containers.host(name));
    inside.iter().for_each(|container| _ = sh(*container, "ip address flush dev eth0"));
    let networks = [201, 203].map(|first| {
        let node = usize::from(first == 203);
        Network::changed(nodes.net.host(&nodes.names[node]), first, |list| {
            let plugin = &mut list["plugins"][0];
            plugin.as_object_mut().expect("keys").remove("bond");
            plugin["fabric"] = json!("fab0");
        })
    });
    let before = networks[0].left(inside[0]);
    let said = [0, 1].map(|node| networks[node].add(inside[node]));
    networks[0].asks("CHECK", inside[0], &json!({ "prevResult": said[0] }));
    networks[0].asks("STATUS", inside[0], &json!({}));
    inside[0].wait_ping(&address(&said[1]), SOON).unwrap_or_else(|e| panic!("{e}"));
    let to = Traffic { address: Some(address(&said[1])), ..Traffic::tcp(Cc::Cubic, 2) };
    let outcome = traffic::reaches(inside[0], inside[1], &to, |outcome| outcome.mbit() > 100.0);
    eprintln!("between containers on a fabric: {outcome:?}");
    (0..2).for_each(|node| _ = networks[node].asks("DEL", inside[node], &json!({})));
    assert_eq!(networks[0].left(inside[0]), before);
}
