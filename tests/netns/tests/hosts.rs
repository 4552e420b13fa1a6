//! Hosts that join, leave and change; daemons that die and come back.

use linkbraid_api::Health;
use linkbraid_lab::iperf::{self, Traffic};
use linkbraid_lab::{LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, machine, traffic};
use std::fs;

/// The six orders of three.
const ORDERS: [[&str; 3]; 6] =
    [["a", "b", "c"], ["a", "c", "b"], ["b", "a", "c"], ["b", "c", "a"], ["c", "a", "b"], ["c", "b", "a"]];

#[test]
fn three_hosts_join_and_leave_in_every_order() {
    let net = Net::up(Topology::symmetric(3, 2, None));
    for name in ["a", "b", "c"] {
        net.start(name, &[]);
    }
    for order in ORDERS {
        for joined in 1..=3 {
            net.bond(order[joined - 1]);
            net.wait_tables(&order[..joined]);
        }
        let [first, .., last] = order;
        net.host(first).wait_ping(net.host(last).ipv4(), SOON).expect("reaches");
        for left in 1..=3 {
            net.ok(order[left - 1], &format!("bond del {BOND}"));
            net.wait_tables(&order[left..]);
        }
    }
}

#[test]
fn three_hosts_change_in_every_order() {
    let net = Net::bonded(Topology::symmetric(3, 2, None));
    let change = |name: &str| match name {
        // Carrier: the far end of a link goes down.
        "a" => net.host("a").link(1).expect("there").carrier(false).expect("sets"),
        // A member leaves for good, for now; here the first one, which gave the bond its MAC.
        "b" => drop(net.ok("b", &format!("member del {BOND} eth0"))),
        // The whole host goes and comes back as another one.
        _ => {
            net.ok("c", &format!("bond del {BOND}"));
            net.ok("c", &format!("bond add {BOND} --member eth1,eth0"));
        }
    };
    let undo = |name: &str| match name {
        "a" => net.host("a").link(1).expect("there").carrier(true).expect("sets"),
        "b" => drop(net.ok("b", &format!("member add {BOND} eth0"))),
        _ => drop(net.ok("c", &format!("member set {BOND} eth1 --weight 5000"))),
    };
    for order in ORDERS {
        for name in order {
            change(name);
            net.wait_tables(&["a", "b", "c"]);
        }
        // The table was already as wanted where a's carrier went last.
        let health = || net.show("a").health;
        wait_until(SOON, "a bond short of a member", health, |h| *h == Health::Degraded)
            .unwrap_or_else(|e| panic!("{e}"));
        net.host("a").wait_ping(net.host("b").ipv4(), SOON).expect("reaches");
        for name in order {
            undo(name);
            net.wait_tables(&["a", "b", "c"]);
        }
        net.host("b").wait_ping(net.host("c").ipv4(), SOON).expect("reaches");
    }
}

#[test]
fn a_host_with_four_members_and_one_with_two_use_six_links_well() {
    let links = |n| std::iter::repeat_n(LinkSpec::switch(0, Some(20)), n);
    let net = Net::up(Topology::empty("lab", 1).host(links(4)).host(links(2)));
    let (a, b) = (net.host("a"), net.host("b"));
    let single = traffic::measure(a, b);
    net.bond_all();
    // Two lanes have all that two links can take: each of b's members gets the same, all in all.
    for (from, to) in [(a, b), (b, a)] {
        let lanes = || net.lanes(from.name()).into_iter().filter(|l| l.peer == to.ipv4()).collect::<Vec<_>>();
        let balanced = |lanes: &Vec<linkbraid_api::LaneRecord>| {
            let b_of = |l: &linkbraid_api::LaneRecord| {
                if from.name() == "a" { l.peer_mac.clone().unwrap_or_default() } else { l.member.clone() }
            };
            let sum = |key: &str| lanes.iter().filter(|l| b_of(l) == key).map(|l| l.share_ppm).sum::<u32>();
            let mut keys: Vec<String> = lanes.iter().map(b_of).collect();
            keys.sort();
            keys.dedup();
            keys.len() == 2 && keys.iter().all(|key| (499_990..=500_010).contains(&sum(key)))
        };
        wait_until(SOON, "lanes that load b's members alike", lanes, balanced)
            .unwrap_or_else(|e| panic!("{e}"));
    }
    for (from, to) in [(a, b), (b, a)] {
        traffic::reaches(from, to, &traffic::tcp(), |o| (1.8..2.05).contains(&(o.mbit() / single)));
    }
}

#[test]
fn members_come_and_go_under_a_connection_that_lives_on() {
    let net = Net::up(Topology::symmetric(2, 3, Some(20)));
    let (a, b) = (net.host("a"), net.host("b"));
    let single = traffic::measure(a, b);
    net.bond_all();
    let seconds = 8;
    let mut flow = iperf::start(a, b, &Traffic { seconds, ..traffic::tcp() }).expect("starts");
    let carried = |name: &str| net.show(name).members.iter().map(|m| m.rx_bytes).sum::<u64>();
    let goes_on = || {
        let before = carried("b");
        wait_until(SOON, "more of the flow", || carried("b"), |now| *now > before + 200_000)
            .unwrap_or_else(|e| panic!("{e}"));
    };
    goes_on();
    for (name, line) in [
        ("a", "member del bond0 eth2"),
        ("b", "member del bond0 eth1"),
        ("a", "member add bond0 eth2"),
        // The first member gave the bond its MAC: the bond changes its MAC under the connection.
        ("b", "member del bond0 eth0"),
        ("b", "member add bond0 eth1"),
        ("a", "member set bond0 eth1 --weight 10"),
        ("a", "member del bond0 eth0"),
        ("b", "member add bond0 eth0"),
        ("a", "member add bond0 eth0"),
        ("a", "member set bond0 eth1 --weight auto"),
    ] {
        net.ok(name, line);
        goes_on();
    }
    assert!(!flow.ended(), "the changes took longer than the flow");
    let outcome = flow.finish().expect("the connection lives to its end");
    assert!(outcome.mbit() > single, "one link has {single}, and this was {outcome:?}");
    let worst = outcome.each_second.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(worst > 0.1 * single, "the flow stood still: {outcome:?}");
    net.wait_tables(&["a", "b"]);
}

#[test]
fn a_killed_daemon_is_not_missed_and_its_successor_adopts() {
    let net = Net::up(Topology::symmetric(2, 2, Some(20)));
    let (a, b) = (net.host("a"), net.host("b"));
    let single = traffic::measure(a, b);
    net.bond_all();
    let before = net.show("a");
    let machine = machine::settled(&net, "a");
    let flow = iperf::start(a, b, &Traffic { seconds: 5, ..traffic::tcp() }).expect("starts");
    let mut ping = a.command("ping");
    ping.args(["-c", "300", "-i", "0.01", "-W", "1", "-q", b.ipv4()]).stdout(std::process::Stdio::piped());
    let ping = ping.spawn().expect("starts");
    net.kill("a");
    assert_eq!(net.say("a", "show").code, 3);
    net.host("a").wait_ping(b.ipv4(), SOON).expect("goes on without its daemon");
    net.start("a", &[]);
    let after = net.show("a");
    assert_eq!(
        (after.name, after.mac, after.mtu, after.settings, after.stripe_bytes, after.hook),
        (before.name, before.mac, before.mtu, before.settings, before.stripe_bytes, before.hook)
    );
    assert_eq!(after.host_id, before.host_id);
    assert_eq!((after.addresses, after.moved), (before.addresses, before.moved));
    for (after, before) in after.members.iter().zip(&before.members) {
        assert_eq!(
            (&after.interface, &after.mac, after.live, after.weight_mbit),
            (&before.interface, &before.mac, before.live, before.weight_mbit)
        );
        assert!(after.tx_frames >= before.tx_frames, "counters go on: {after:?} after {before:?}");
    }
    net.wait_tables(&["a", "b"]);
    let outcome = flow.finish().expect("the connection lives on");
    assert!(outcome.mbit() > 1.7 * single, "one link has {single}, and this was {outcome:?}");
    let said = ping.wait_with_output().expect("ends");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("300 received"), "pings were lost: {said}");
    machine::as_it_was(&net, "a", &machine);
    net.ok("a", &format!("bond del {BOND}"));
}

#[test]
fn what_came_while_no_daemon_ran_is_not_taken_for_news() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    net.kill("a");
    // It says so, and is gone: only the ring of 'a' knows of it.
    net.ok("b", &format!("bond del {BOND}"));
    net.start("a", &[]);
    net.bond("b");
    net.wait_tables(&["a", "b"]);
    let counted = ["peer_joined", "peer_left", "clear_unknown"].map(|counter| net.counter("a", counter));
    assert_eq!(counted, [1, 0, 0], "joined, left, left without having been there: {}", net.log("a"));
}

#[test]
fn an_upgrade_of_a_clsact_daemon_adopts_too() {
    let net = Net::up(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    let bare = machine::settled(&net, "a");
    net.start("a", &["--hook", "clsact"]);
    net.start("b", &[]);
    net.bond("a");
    net.bond("b");
    net.wait_tables(&["a", "b"]);
    assert_eq!((net.show("a").hook.as_str(), net.show("b").hook.as_str()), ("clsact", "tcx"));
    net.stop("a");
    a.wait_ping(b.ipv4(), SOON).expect("goes on without its daemon");
    net.start("a", &["--hook", "clsact"]);
    net.wait_tables(&["a", "b"]);
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    net.ok("a", &format!("bond del {BOND}"));
    machine::as_it_was(&net, "a", &bare);
}

#[test]
fn a_daemon_killed_within_bond_add_is_cleaned_up_after() {
    let net = Net::up(Topology::symmetric(1, 2, None));
    let before = machine::settled(&net, "a");
    net.start("a", &[]);
    net.bond("a");
    net.kill("a");
    // What it would have left, had it died before the last step of `bond add`.
    let file = net.host("a").state_dir().join(format!("{BOND}.json"));
    let text = fs::read_to_string(&file).expect("a state file");
    let mut saved: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(saved["complete"], true);
    saved["complete"] = false.into();
    fs::write(&file, saved.to_string()).expect("writable");
    net.start("a", &[]);
    assert_eq!(net.ok("a", "show --json").trim(), "[]");
    machine::as_it_was(&net, "a", &before);
    // And before the first step: nothing but the file.
    net.bond("a");
    net.ok("a", &format!("bond del {BOND}"));
    net.kill("a");
    saved["ifindex"] = serde_json::Value::Null;
    fs::write(&file, saved.to_string()).expect("writable");
    net.start("a", &[]);
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn a_daemon_killed_at_any_time_of_bond_add_leaves_all_or_nothing() {
    let net = Net::up(Topology::symmetric(1, 4, None));
    let before = machine::settled(&net, "a");
    let host = net.host("a");
    // How far it got is seen in the kernel: a bond with so many members.
    for members in 0..=4 {
        net.start("a", &[]);
        let binary = linkbraid_lab::daemon::binary().expect("built");
        let mut add = host.linkbraid_command(&binary);
        add.args(["bond", "add", BOND, "--member", "eth0,eth1,eth2,eth3"]);
        let mut add = host.spawn(add).expect("starts");
        let joined = || match host.sh(&format!("ip -br link show {BOND}")) {
            Ok(_) => {
                Some(host.sh(&format!("ip -br link show master {BOND}")).map_or(0, |t| t.lines().count()))
            }
            Err(_) => None,
        };
        wait_until(SOON, "that many members", joined, |now| now.is_some_and(|n| n >= members))
            .unwrap_or_else(|e| panic!("{e}"));
        net.kill("a");
        add.wait().expect("ends");
        net.start("a", &[]);
        let bonds = net.ok("a", "show --json");
        if bonds.trim() != "[]" {
            assert_eq!(net.show("a").members.len(), 4, "half a bond: {bonds}");
            net.ok("a", &format!("bond del {BOND}"));
        }
        machine::as_it_was(&net, "a", &before);
        net.stop("a");
    }
}

#[test]
fn programs_without_a_bond_are_not_taken_over() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    a.sh(&format!("ping -c 20 -i 0.002 {}", b.ipv4())).expect("reaches");
    let sent = |name: &str| net.show(name).members.iter().map(|m| m.tx_frames).sum::<u64>();
    assert!(sent("a") >= 20);
    // Somebody took the bond away by hand, with the state and without the programs on its members.
    net.kill("a");
    a.sh(&format!("ip link del {BOND}")).expect("deletes");
    fs::remove_dir_all(a.state_dir()).expect("removes");
    for nic in ["eth0", "eth1"] {
        a.sh(&format!("ip link set {nic} down")).expect("sets");
    }
    net.start("a", &[]);
    // It listens before it has put the machine in order, and answers after that.
    assert_eq!(net.ok("a", "show --json").trim(), "[]");
    let state = machine::state(&net, "a");
    assert!(state.contains("# eth0 ingress: 0 tcx programs, filters:\n#"), "{state}");
    net.ok("a", &format!("bond add {BOND} --member eth1 --address 198.18.0.1/24"));
    assert!(sent("a") < 20, "the counters of the bond that was: {:?}", net.show("a"));
    net.wait_tables(&["a", "b"]);
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
}
