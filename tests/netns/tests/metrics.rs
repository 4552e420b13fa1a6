//! Metrics, as those see them who scrape: the real Prometheus and its promtool, with the rules and the dashboard that we give them.

mod prometheus;

use crate::crowd::forged;
use linkbraid_lab::{Host, Topology, tool, wait_for};
use linkbraid_netns_tests::{
    BOND, Net, SOON,
    packet::{self, Tap},
    sh, traffic, until,
};
use prometheus::{Prometheus, dist};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt as _, process::Command, time::Duration};

/// Where daemons serve them.
const ADDRESS: &str = "0.0.0.0:9919";
/// How many peers a scrape is timed with.
const PEERS: u16 = 100;
/// What it should take, in a build with optimisations and on an idle machine.
const SCRAPE_MAX: Duration = Duration::from_millis(10);

/// A scrape by hand.
fn scrape(host: Host<'_>) -> Result<String, String> {
    let address = "http://127.0.0.1:9919/metrics";
    host.sh(&format!("curl --silent --show-error --fail --max-time 5 {address}")).map_err(|e| e.to_string())
}

/// The value of a series, without its labels where these are the only ones.
#[track_caller]
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().expect("a number")
}

/// Two hosts with all that can be measured: a bond, a class, latency, and a fabric.
fn everything() -> Net {
    let net = Net::up(Topology::symmetric(2, 2, Some(100)));
    let transport = format!("shm:{}", net.lab().folder().join("shm").display());
    for (node, name) in ["a", "b"].into_iter().enumerate() {
        net.start(name, &["--metrics", ADDRESS]);
        net.bond(name);
        net.ok(name, &format!("bond set {BOND} --latency on"));
        net.ok(name, &format!("class add {BOND} voice --match dscp=ef"));
        net.ok(name, &format!("fabric add fab0 --node {node} --nodes 2 --transport {transport}"));
    }
    net.wait_tables(&["a", "b"]);
    net
}

#[test]
fn prometheus_scrapes_two_hosts_and_a_pulled_cable_fires_the_alert() {
    let net = everything();
    let [a, b] = ["a", "b"].map(|name| net.host(name));
    let text = scrape(a).expect("metrics");
    let checked = tool::run_with(Command::new("promtool").args(["check", "metrics"]), Some(&text));
    assert_eq!(checked.unwrap_or_else(|e| panic!("{e}")), "", "promtool has nothing to say");
    for (program, file) in [("check", "linkbraid.rules.yml"), ("test", "linkbraid.test.yml")] {
        tool::run(
            Command::new("promtool").args([program, "rules"]).arg(dist().join("prometheus").join(file)),
        )
        .unwrap_or_else(|e| panic!("{e}"));
    }
    let prometheus = Prometheus::start(a, &net.lab().folder(), &[("a", "127.0.0.1"), ("b", b.ipv4())]);
    let fires = |instance: &str, alert: &str| {
        prometheus.firing().into_iter().any(|one| one["alertname"] == alert && one["instance"] == instance)
    };
    until("both hosts to be up", || prometheus.query("up == 1").len(), |up| *up == 2);
    // What was measured is known once something has waited for it.
    let wait_measured = |of: &str| {
        let series = format!("linkbraid_{of}_measured_bytes_per_second");
        let is_measured = || !prometheus.query(&series).is_empty();
        for _ in 0..5 {
            if is_measured() {
                break;
            }
            traffic::reaches(a, b, &traffic::tcp(), |_| true);
        }
        until(&series, is_measured, |is| *is);
    };
    wait_measured("lane");
    assert_eq!(prometheus.firing(), Vec::<Value>::new(), "all is well");
    let left = prometheus.query(r#"linkbraid_peer_redundancy_left{instance="a"}"#);
    assert_eq!(left, [1.0], "two links at each end");

    let link = a.link(1).expect("a link");
    link.carrier(false).expect("pulls");
    until("the alert of the cable", || fires("a", "LinkbraidMemberDown"), |fires| *fires);
    until("the alert of the last link", || fires("a", "LinkbraidNoRedundancy"), |fires| *fires);
    assert!(!fires("a", "LinkbraidBondDown") && !fires("a", "LinkbraidNotScraped"));
    println!("fired: {:#?}", prometheus.firing());
    let left = || prometheus.query(r#"linkbraid_peer_redundancy_left{instance="a"}"#);
    until("no more redundancy", left, |left| *left == [0.0]);

    link.carrier(true).expect("plugs in");
    until("the alert to end", || fires("a", "LinkbraidMemberDown"), |fires| !fires);
    let took = prometheus.query(r#"linkbraid_detection_seconds_count{instance="a",kind="lane",state="up"}"#);
    assert!(took.iter().sum::<f64>() >= 1.0, "{took:?}");

    // While the cable was out nothing was known of the lanes that were left.
    wait_measured("lane");
    wait_measured("member");
    let expressions = prometheus::expressions();
    assert!(expressions.len() > 30, "{} expressions", expressions.len());
    for expression in expressions {
        let found = wait_for(SOON, &expression, || match prometheus.query(&expression) {
            found if found.is_empty() => Err("no data"),
            found => Ok(found),
        });
        found.unwrap_or_else(|e| panic!("{e}"));
    }

    net.kill("b");
    until("the alert of the daemon", || fires("b", "LinkbraidNotScraped"), |fires| *fires);
}

#[test]
fn a_file_says_where_they_are_and_the_command_line_says_more() {
    let net = Net::up(Topology::symmetric(1, 2, None));
    let a = net.host("a");
    let folder = net.lab().folder();
    let (file, socket) = (folder.join("linkbraid.toml"), folder.join("metrics.sock"));
    fs::write(&file, format!("metrics = \"{}\"\n", socket.display())).expect("writes");
    let config = ["--config", file.to_str().expect("text")];
    net.start("a", &config);
    let get = format!("curl -sS --fail --unix-socket {} http://linkbraid/metrics", socket.display());
    let text = || a.sh(&get).map_err(|e| e.to_string());
    let text = wait_for(SOON, "the socket", text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(value(&text, "linkbraid_snapshot_failed_parts"), 0.0);
    assert_eq!(fs::metadata(&socket).expect("it is there").permissions().mode() & 0o777, 0o660);
    assert_eq!(net.ok("a", &format!("apply {}", file.display())).lines().count(), 1, "it is so");

    fs::write(&file, "metrics = \"127.0.0.1:9919\"\n").expect("writes");
    let said = net.say("a", &format!("apply {}", file.display()));
    let warning = format!(
        "{}:1: metrics: they are served at 127.0.0.1:9919 when the daemon has started",
        file.display()
    );
    assert!(said.code == 0 && (said.err.contains(&warning) || said.out.contains(&warning)), "{said:?}");
    net.stop("a");
    assert!(!socket.exists(), "it goes with the daemon");
    net.start("a", &config);
    wait_for(SOON, "the port", || scrape(a)).unwrap_or_else(|e| panic!("{e}"));
    net.stop("a");

    // An address that a bond has later.
    net.start("a", &[&config[..], &["--metrics", "198.18.7.7:9919"]].concat());
    assert!(scrape(a).is_err(), "what the file says does not count");
    let said = net.say("a", &format!("apply {}", file.display()));
    let warning =
        "127.0.0.1:9919 has no effect; the option '--metrics 198.18.7.7:9919' of the daemon counts more";
    assert!(said.code == 0 && (said.err.contains(warning) || said.out.contains(warning)), "{said:?}");
    until(
        "the log to say why",
        || net.log("a").contains("this host does not have the address"),
        |said| *said,
    );
    sh(a, "ip address add 198.18.7.7/32 dev lo");
    let get = "curl -sS --fail --max-time 5 http://198.18.7.7:9919/metrics";
    wait_for(SOON, "the address", || a.sh(get).map_err(|e| e.to_string())).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn a_scrape_of_many_peers_is_quick_and_strangers_are_in_no_label() {
    let net = Net::up(Topology::symmetric(2, 4, None));
    let a = net.host("a");
    net.start("a", &["--metrics", ADDRESS]);
    net.bond("a");
    let tap = Tap::open(net.host("b"), "eth0", packet::ALL);
    let frames: Vec<Vec<u8>> = (0..PEERS).map(forged).collect();
    let peers = || {
        frames.iter().for_each(|frame| tap.send(frame).expect("sends"));
        value(
            &scrape(a).expect("metrics"),
            &format!(r#"linkbraid_arp_plus_peers{{bond="{BOND}",state="alive"}}"#),
        )
    };
    let all = f64::from(PEERS);
    until("all peers", peers, |known| *known >= all);
    let text = scrape(a).expect("metrics");
    assert!(!text.contains("198.19."), "nobody has proven anything: {text}");
    // Without probes, whoever is in the table is a peer.
    net.ok("a", &format!("bond set {BOND} --probes off"));
    let shown = |text: &str| {
        text.lines().filter(|line| line.starts_with("linkbraid_peer_up{")).count() == usize::from(PEERS)
    };
    until("series of all peers", || scrape(a).is_ok_and(|text| shown(&text)), |shown| *shown);
    let mut took = Vec::new();
    for _ in 0..9 {
        frames.iter().for_each(|frame| tap.send(frame).expect("sends"));
        let begun = std::time::Instant::now();
        let text = scrape(a).expect("metrics");
        let whole = begun.elapsed();
        assert!(shown(&text), "{text}");
        let snapshot = Duration::from_secs_f64(value(&text, "linkbraid_snapshot_seconds"));
        took.push((snapshot, whole, text.len()));
        // Longer than a snapshot is used again.
        std::thread::park_timeout(Duration::from_millis(250).max(21 * snapshot));
    }
    took.sort();
    let (snapshot, whole, bytes) = took[took.len() / 2];
    println!(
        "{PEERS} peers, {bytes} bytes: the loop took {snapshot:?}, the scrape with the start of curl {whole:?}"
    );
    assert!(took[0].0 < 10 * SCRAPE_MAX, "{took:?}");
}
