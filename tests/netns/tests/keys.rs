//! Keys: who has none is a plain host, what is forged or repeated changes nothing, and keys are exchanged under traffic.

use linkbraid_api::KeyRecord;
use linkbraid_lab::{Host, LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::packet::{self, Tap};
use linkbraid_netns_tests::{BOND, Net, SOON};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    process::Stdio,
};

/// EtherType of ARP+.
const ARP_PLUS: u16 = linkbraid_wire::ETHERTYPE_ARP_PLUS;

/// Hosts with four links each on one switch, with bonds; and one without, which has a single link.
fn hosts(number: usize) -> Net {
    let links = |n| std::iter::repeat_n(LinkSpec::switch(0, None), n);
    let topology = (0..number).fold(Topology::empty("lab", 1), |topology, _| topology.host(links(4)));
    Net::bonded(topology.plain_host(links(1)))
}

/// A key file of a host; `key` names the key that it gets.
fn key_file(net: &Net, name: &str) -> String {
    net.lab().folder().join(format!("{name}.key")).display().to_string()
}

/// Gives hosts one new key, which they require.
fn require_one_key(net: &Net, names: &[&str]) {
    let first = key_file(net, names[0]);
    net.ok(names[0], &format!("key new {first}"));
    for name in names {
        let file = key_file(net, name);
        if file != first {
            fs::copy(&first, &file).expect("copies, with the mode");
        }
        net.ok(name, &format!("bond set {BOND} --key {file} --auth require"));
    }
}

/// How many lanes to a peer are proven.
fn lanes(net: &Net, name: &str, peer: Host<'_>) -> usize {
    net.lanes(name).iter().filter(|lane| lane.peer == peer.ipv4() && lane.state == "up").count()
}

#[track_caller]
fn wait_lanes(net: &Net, name: &str, peer: &str, number: usize) {
    let count = || lanes(net, name, net.host(peer));
    wait_until(SOON, "proven lanes", count, |n| *n == number)
        .unwrap_or_else(|e| panic!("{name} to {peer}: {e}"));
}

fn headline(net: &Net, name: &str) -> String {
    net.ok(name, &format!("show {BOND}")).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn who_has_another_key_is_reached_over_one_link_and_show_says_so() {
    let net = hosts(3);
    let (a, c) = (net.host("a"), net.host("c"));
    wait_lanes(&net, "a", "c", 16);
    require_one_key(&net, &["a", "b"]);
    require_one_key(&net, &["c"]);
    let peers = || net.table("a").len();
    wait_until(SOON, "c is no peer", peers, |n| *n == 1).unwrap_or_else(|e| panic!("{e}"));
    wait_lanes(&net, "a", "b", 16);
    let says = format!("{}: another key, one link only", c.ipv4());
    let first = || headline(&net, "a");
    wait_until(SOON, "the first line", first, |line| line.contains(&says)).unwrap_or_else(|e| panic!("{e}"));
    a.wait_ping(c.ipv4(), SOON).expect("nobody is cut off");
    c.wait_ping(a.ipv4(), SOON).expect("nor in the other direction");
    assert!(net.counter("a", "auth_other_key") > 0);
    let shown = net.ok("a", &format!("show {BOND} --json")) + &net.log("a");
    let secret = fs::read_to_string(key_file(&net, "a")).expect("is there");
    let secret = secret.split_whitespace().find(|word| word.len() == 64).expect("64 digits").to_owned();
    let state = net.host("a").state_dir();
    let on_file = fs::read_dir(state).expect("is there").flatten();
    let on_file = on_file.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect::<String>();
    assert!(!on_file.is_empty() && !(shown + &on_file).contains(&secret), "the secret stays in its file");
}

#[test]
fn forged_and_repeated_frames_change_nothing() {
    let net = hosts(2);
    require_one_key(&net, &["a", "b"]);
    wait_lanes(&net, "a", "b", 16);
    let d = net.host("c");
    assert!(d.spec().plain);
    let tap = Tap::open(d, "eth0", ARP_PLUS);
    let before = net.table("a");
    let macs: Vec<[u8; 6]> = (0..4).map(|link| packet::mac(&net.host("b").mac(link))).collect();
    // AUTH is last in a frame that is not padded.
    let is_whole = |frame: &Vec<u8>| (101..1000).contains(&frame.len());
    let of_b = |frame: &Vec<u8>| is_whole(frame) && macs.iter().any(|mac| frame[6..12] == *mac);
    let mut heard = Vec::new();
    let hear = || {
        heard.extend(tap.take().into_iter().filter(of_b));
        heard.len()
    };
    wait_until(SOON, "frames of b", hear, |n| *n >= 8).unwrap_or_else(|e| panic!("{e}"));
    for frame in &heard[..8] {
        tap.send(frame).expect("sends");
        // CLEAR, without its code, and with one bit changed.
        let mut clear = frame.clone();
        clear[17] = 4;
        tap.send(&clear).expect("sends");
        tap.send(&frame[..frame.len() - linkbraid_wire::AUTH_TLV_LEN]).expect("sends");
        let mut epoch = frame.clone();
        epoch[60] ^= 1;
        tap.send(&epoch).expect("sends");
    }
    for (counter, least) in [("auth_replayed", 8), ("auth_bad_code", 16), ("auth_missing", 8)] {
        let count = || net.counter("a", counter);
        wait_until(SOON, counter, count, |n| *n >= least).unwrap_or_else(|e| panic!("{e}"));
    }
    assert_eq!(net.table("a"), before);
    wait_lanes(&net, "a", "b", 16);
    assert_eq!((net.counter("a", "peer_left"), net.counter("a", "peer_restarted")), (0, 0));
    assert_eq!(net.counter("a", "conflict_peer_host_id"), 0);
    assert!(headline(&net, "a").contains("ok"), "{}", headline(&net, "a"));
}

#[test]
fn probes_of_full_length_are_answered_with_keys_too() {
    let links = || std::iter::repeat_n(LinkSpec::switch(0, None).mtu(9000), 2);
    let net = Net::bonded(Topology::empty("lab", 1).host(links()).host(links()));
    require_one_key(&net, &["a", "b"]);
    wait_lanes(&net, "a", "b", 4);
    let answered = || net.counter("a", "probe_rx_long");
    let before = answered();
    for name in ["a", "b"] {
        net.ok(name, &format!("bond set {BOND} --mtu 8000"));
    }
    wait_until(SOON, "answers on all lanes", answered, |n| *n >= before + 4)
        .unwrap_or_else(|e| panic!("{e}"));
    for name in ["a", "b"] {
        // Until both hosts had the new MTU, lanes from the other one were short.
        let line = || headline(&net, name);
        wait_until(SOON, "the first line", line, |line| line.contains(": ok"))
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(net.show(name).mtu, 8000);
    }
    assert_eq!(net.counter("a", "auth_tx_refused"), 0);
}

#[test]
fn keys_are_exchanged_under_traffic_and_nothing_is_lost() {
    let net = hosts(2);
    require_one_key(&net, &["a", "b"]);
    wait_lanes(&net, "a", "b", 16);
    let (a, b) = (net.host("a"), net.host("b"));
    let next = key_file(&net, "next");
    let old = net.show("a").keys[0].id;
    let new = net.ok("a", &format!("key new {next}")).split_whitespace().next().expect("an id").to_owned();
    let lost = || net.counter("a", "probe_lane_lost") + net.counter("b", "probe_lane_lost");
    let refused = || net.counter("a", "auth_other_key") + net.counter("b", "auth_other_key");
    let before = (lost(), refused());
    let frames = || net.counter("a", "tx_peer");
    let begun = frames();
    let mut ping = a.command("ping");
    ping.args(["-n", "-q", "-i", "0.01", b.ipv4()]).stdout(Stdio::piped());
    let ping = ping.spawn().expect("ping runs");
    let signs = |keys: &[KeyRecord]| keys.iter().find(|key| key.signs).map(|key| key.id.to_string());
    let (first, second) = (Some(old.to_string()), Some(new.clone()));
    let steps =
        [("add", &next, (2, &first)), ("use", &new, (2, &second)), ("del", &old.to_string(), (1, &second))];
    for (verb, word, (number, signing)) in steps {
        for name in ["a", "b"] {
            net.ok(name, &format!("key {verb} {} {word}", key_file(&net, name)));
        }
        for name in ["a", "b"] {
            let keys = || net.show(name).keys;
            let holds = |keys: &Vec<KeyRecord>| keys.len() == number && signs(keys) == *signing;
            wait_until(SOON, verb, keys, holds).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
    let accepted = || net.counter("a", "auth_accepted");
    let count = accepted();
    wait_until(SOON, "frames by the new key", accepted, |n| *n > count + 60)
        .unwrap_or_else(|e| panic!("{e}"));
    wait_until(SOON, "pings", frames, |n| *n > begun + 50).unwrap_or_else(|e| panic!("{e}"));
    kill(Pid::from_raw(ping.id() as i32), Signal::SIGINT).expect("runs");
    let said = String::from_utf8_lossy(&ping.wait_with_output().expect("ends").stdout).into_owned();
    let number = |what: &str| {
        let before = said.split(what).next().and_then(|text| text.split_whitespace().next_back());
        before.and_then(|number| number.parse::<u64>().ok()).unwrap_or_else(|| panic!("{said}"))
    };
    let (sent, received) = (number(" packets transmitted"), number(" received"));
    assert!(sent > 30 && received + 1 >= sent, "all but what was under way at the end: {said}");
    assert_eq!((lost(), refused()), before);
    assert_eq!(net.show("a").keys.iter().map(|key| key.id.to_string()).collect::<Vec<_>>(), [new]);
}

#[test]
fn a_key_that_cannot_be_used_is_an_error_and_after_a_restart_costs_the_lanes_only() {
    let net = hosts(2);
    let (a, b, file) = (net.host("a"), net.host("b"), key_file(&net, "a"));
    let refused = net.say("a", &format!("bond set {BOND} --key {file} --auth require"));
    let error = format!("{BOND}: cannot use the keys of '{file}': no such file or directory");
    assert_eq!(refused.refused(1, &error), format!("linkbraid key new {file}"));
    assert!(net.show("a").keys.is_empty());
    require_one_key(&net, &["a", "b"]);
    wait_lanes(&net, "a", "b", 16);
    net.kill("a");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("is ours");
    net.start("a", &[]);
    let first = || headline(&net, "a");
    let says = |line: &String| line.contains("its mode is 0644") && line.contains("all are plain hosts");
    wait_until(SOON, "the first line", first, says).unwrap_or_else(|e| panic!("{e}"));
    a.wait_ping(b.ipv4(), SOON).expect("it is on the network");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("is ours");
    wait_lanes(&net, "a", "b", 16);
    wait_until(SOON, "the first line", first, |line| line.contains("ok")).unwrap_or_else(|e| panic!("{e}"));
}

/// Changes what a daemon that does not run has on file of its bond.
fn edit_state(host: Host<'_>, edit: impl FnOnce(&mut serde_json::Value)) {
    let file = host.state_dir().join(format!("{BOND}.json"));
    let text = fs::read_to_string(&file).expect("is there");
    let mut state = serde_json::from_str(&text).expect("is JSON");
    edit(&mut state);
    fs::write(&file, state.to_string()).expect("writes");
}

#[test]
fn of_two_copies_of_one_machine_both_are_reached_and_show_names_them() {
    let net = hosts(3);
    let (a, b, c) = (net.host("a"), net.host("b"), net.host("c"));
    require_one_key(&net, &["a", "b", "c"]);
    wait_lanes(&net, "b", "c", 16);
    let mut id = serde_json::Value::Null;
    net.kill("c");
    edit_state(a, |state| id = state["host_id"].clone());
    edit_state(c, |state| state["host_id"] = id);
    net.start("c", &[]);
    let (both, of_c, of_a) = (
        format!("{} and {} have the same host id", a.ipv4(), c.ipv4()),
        format!("{} has the same host id as this host", c.ipv4()),
        format!("{} has the same host id as this host", a.ipv4()),
    );
    for (name, text) in [("b", &both), ("a", &of_c), ("c", &of_a)] {
        let first = || headline(&net, name);
        wait_until(SOON, "the first line", first, |line| line.contains(text))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let finding = net.show(name).findings.into_iter().find(|finding| finding.name == "same_id");
        let hint = finding.and_then(|finding| finding.hint).expect("has a hint");
        assert_eq!(hint, format!("linkbraid {} {BOND}", if name == "b" { "peers" } else { "bond del" }));
        assert_eq!(net.log(name).matches(text.as_str()).count(), 1, "{}", net.log(name));
    }
    wait_lanes(&net, "b", "a", 16);
    for (from, to) in [(b, a), (b, c), (a, c), (c, a), (c, b), (a, b)] {
        from.wait_ping(to.ipv4(), SOON).unwrap_or_else(|e| panic!("{e}"));
    }
    // As the hint says, on one of them.
    net.ok("c", &format!("bond del {BOND}"));
    net.bond("c");
    net.ok("c", &format!("bond set {BOND} --key {} --auth require", key_file(&net, "c")));
    wait_lanes(&net, "b", "c", 16);
}

#[test]
fn a_clock_that_was_set_back_a_year_keeps_nobody_out() {
    const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;
    let net = hosts(2);
    require_one_key(&net, &["a", "b"]);
    wait_lanes(&net, "b", "a", 16);
    let mut ahead = 0;
    net.kill("a");
    // It was a year ahead when the daemon started last.
    edit_state(net.host("a"), |state| {
        ahead = state["epoch"].as_u64().expect("a number") + YEAR_MS;
        state["epoch"] = ahead.into();
    });
    let epoch = || net.peers("b").iter().find_map(|peer| peer.epoch).unwrap_or_default();
    for more in 1..=2 {
        net.start("a", &[]);
        wait_until(SOON, "the next epoch", epoch, |epoch| *epoch == ahead + more)
            .unwrap_or_else(|e| panic!("{e}"));
        wait_lanes(&net, "b", "a", 16);
        net.kill("a");
    }
    net.start("a", &[]);
    assert_eq!(net.counter("b", "stale_epoch"), 0);
}
