//! Containers on a bond, attached by the CNI project's own plugins: `bridge`, with the bond for a bridge, and `host-local` for addresses.

use linkbraid_lab::iperf::{Cc, Traffic};
use linkbraid_lab::{Fault, Host, LinkSpec, Topology, netns, shape, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, flow::Flow, guide, sh, traffic};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{env, fs, process};

/// Where Debian has them.
const PLUGINS: &str = "/usr/lib/cni";
/// What a container calls its interface.
const NIC: &str = "net1";
/// What each link carries, Mbit/s.
pub const RATE: u32 = 100;
/// Of what the links carry together, what one flow between containers carries at least (see `guests`).
pub const PART: f64 = 0.85;
/// Containers that come and go.
const TIMES: usize = 200;

/// The plugin's network on one host, as its file has it, and where it remembers which addresses it gave away.
pub struct Network<'n> {
    host: Host<'n>,
    leases: PathBuf,
    list: Value,
}

/// A network's file as docs/guides/containers.md shows it, with two addresses of its own, and `leases` to remember them.
pub fn network(leases: &Path, first: u8) -> Value {
    let text = guide::block("containers.md", "network");
    let mut list: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let ipam = &mut list["plugins"][0]["ipam"];
    ipam["dataDir"] = json!(leases);
    ipam["ranges"][0][0]["rangeStart"] = json!(format!("198.18.0.{first}"));
    ipam["ranges"][0][0]["rangeEnd"] = json!(format!("198.18.0.{}", first + 1));
    list
}

/// How many addresses are given away.
pub fn given(leases: &Path) -> usize {
    let leases = fs::read_dir(leases.join(BOND)).into_iter().flatten().flatten();
    // The last one that was given, and a lock.
    leases.filter(|lease| lease.file_name().as_encoded_bytes()[0].is_ascii_digit()).count()
}

impl<'n> Network<'n> {
    /// The network of the guide with two addresses, after `change`.
    pub fn changed(host: Host<'n>, first: u8, change: impl FnOnce(&mut Value)) -> Self {
        let leases = env::temp_dir().join(format!("linkbraid-cni-{}-{first}", process::id()));
        let mut list = network(&leases, first);
        change(&mut list);
        Self { host, leases, list }
    }

    fn on(host: Host<'n>, first: u8) -> Self {
        Self::changed(host, first, |_| ())
    }

    /// What the plugin is told of it.
    fn configuration(&self) -> Value {
        let mut list = self.list.clone();
        let mut plugin = list["plugins"][0].take();
        plugin["name"] = list["name"].take();
        plugin["cniVersion"] = list["cniVersion"].take();
        plugin
    }

    /// Has the plugin do something for a container, of which it has said `before`; what it prints.
    #[track_caller]
    fn asks(&self, what: &str, container: Host<'_>, before: Option<&Value>) -> String {
        let mut command = self.host.command(Path::new(PLUGINS).join("bridge"));
        command
            .env("CNI_COMMAND", what)
            .env("CNI_CONTAINERID", container.netns().name())
            .env("CNI_NETNS", Path::new(netns::FOLDER).join(container.netns().name()))
            .env("CNI_IFNAME", NIC)
            .env("CNI_PATH", PLUGINS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut plugin = command.spawn().expect("the plugin is installed");
        let mut words = self.configuration();
        if let Some(before) = before {
            words["prevResult"] = before.clone();
        }
        let words = words.to_string();
        plugin.stdin.take().expect("piped").write_all(words.as_bytes()).expect("takes them");
        let done = plugin.wait_with_output().expect("ends");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{what}: {said}");
        said
    }

    /// Attaches a container; what the plugin says of it.
    #[track_caller]
    pub fn add(&self, container: Host<'_>) -> Value {
        let said = self.asks("ADD", container, None);
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
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

#[test]
fn one_flow_of_a_container_has_all_links_and_survives_one() {
    let net = hosts();
    let (near, far) = (net.host("c"), net.host("d"));
    let networks = [Network::on(net.host("a"), 201), Network::on(net.host("b"), 203)];
    let [here, there] = [(&networks[0], near), (&networks[1], far)].map(|(network, container)| {
        let said = network.add(container);
        network.asks("CHECK", container, Some(&said));
        let address = said["ips"][0]["address"].as_str().unwrap_or_else(|| panic!("no address: {said}"));
        address.split('/').next().expect("one").to_owned()
    });
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
    let network = Network::on(a, 201);
    let state = || {
        let lines = |host, line| sh(host, line).lines().count();
        let leases = given(&network.leases);
        (lines(a, "ip -o link"), lines(a, "nft list ruleset"), leases, lines(container, "ip -o link"))
    };
    let before = state();
    for _ in 0..TIMES {
        network.add(container);
        network.asks("DEL", container, None);
    }
    assert_eq!(state(), before);
    let ok = || net.show("a").health;
    wait_until(SOON, "health", ok, |health| *health == linkbraid_api::Health::Ok)
        .unwrap_or_else(|e| panic!("{e}"));
    // Nor are they remembered as guests; and one more is as good as the first.
    network.add(container);
    container.wait_ping(net.host("b").ipv4(), SOON).unwrap_or_else(|e| panic!("{e}"));
    network.asks("DEL", container, None);
    // Gone twice is gone.
    network.asks("DEL", container, None);
    assert_eq!(state(), before);
}
