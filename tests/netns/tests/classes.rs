//! Lanes for traffic that cannot wait: who travels where, at both ends.

use linkbraid_api::{ClassRecord, LatencyRecord};
use linkbraid_lab::{LinkSpec, Topology, Way, wait_until};
use linkbraid_netns_tests::{BOND, Net, Over, SOON, check_hint, flow::Flow, machine, until};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Datagrams of one kind in one test: many more than what a daemon says meanwhile on one member.
const MANY: u64 = 3000;
/// How often that is sent again because a lane was lost or came back meanwhile.
const TRIES: usize = 20;
/// The port that belongs to class `urgent` in these tests.
const URGENT: u16 = 7000;
/// And one that does not.
const OTHER: u16 = 7001;

fn hosts(members: &[usize]) -> Topology {
    let host =
        |topology: Topology, n: &usize| topology.host(std::iter::repeat_n(LinkSpec::switch(0, None), *n));
    members.iter().fold(Topology::empty("lab", 1), host)
}

/// `MANY` datagrams from one host to a port of another, paced by what the receiver has got.
fn send(net: &Net, from: &str, to: &str, port: u16) {
    let (from, to) = (net.host(from), net.host(to));
    let receiver = to.run(|| UdpSocket::bind((to.ipv4(), port))).expect("enters").expect("binds");
    receiver.set_read_timeout(Some(SOON)).expect("sets");
    let sender = from.run(|| UdpSocket::bind((from.ipv4(), 0))).expect("enters").expect("binds");
    for _ in 0..MANY {
        sender.send_to(&[1; 300], (to.ipv4(), port)).expect("sends");
        receiver.recv(&mut [0; 300]).expect("each arrives");
    }
}

/// What each NIC of a host has sent and taken in, in frames.
fn counts(net: &Net, name: &str) -> Vec<(u64, u64)> {
    let counts = net.host(name).nic_counts().expect("reads");
    counts.iter().map(|count| (count.tx_packets, count.rx_packets)).collect()
}

/// Which NICs of the sender and of the receiver carried what `send` sends.
///
/// A lane that is lost for a moment, because the machine stood still, hands its traffic to others, as it should: then again.
fn carriers(net: &Net, from: &str, to: &str, port: u16) -> (Vec<usize>, Vec<usize>) {
    let running: Vec<&str> = [from, to].into_iter().filter(|name| net.runs(name)).collect();
    let up = || running.iter().map(|name| lanes_up(net, name)).sum::<usize>();
    let changes =
        |name: &str| net.counter(name, "probe_lane_lost") + net.counter(name, "probe_lane_admitted");
    let changed = || running.iter().map(|name| changes(name)).sum::<u64>();
    let all = up();
    for _ in 0..TRIES {
        let before = changed();
        let carried = carriers_once(net, from, to, port);
        if changed() == before {
            return carried;
        }
        until("lanes up, as before", up, |now| *now >= all);
    }
    panic!("lanes between {from} and {to} were lost in each of {TRIES} tries");
}

fn lanes_up(net: &Net, name: &str) -> usize {
    net.lanes(name).iter().filter(|lane| lane.state == "up").count()
}

fn carriers_once(net: &Net, from: &str, to: &str, port: u16) -> (Vec<usize>, Vec<usize>) {
    let (sent, received) = (counts(net, from), counts(net, to));
    send(net, from, to, port);
    // What the daemons said meanwhile is much less than a fair share of that.
    let grown = |before: u64, after: u64| after - before > MANY / 10;
    let sent = counts(net, from).into_iter().zip(sent).enumerate();
    let sent = sent.filter(|(_, (now, then))| grown(then.0, now.0)).map(|(i, _)| i).collect();
    let received = counts(net, to).into_iter().zip(received).enumerate();
    (sent, received.filter(|(_, (now, then))| grown(then.1, now.1)).map(|(i, _)| i).collect())
}

fn classes(net: &Net, name: &str) -> Vec<ClassRecord> {
    serde_json::from_str(&net.ok(name, "class show --json")).expect("records")
}

fn add_urgent(net: &Net, name: &str, members: &str) {
    net.ok(name, &format!("class add {BOND} urgent --member {members} --match udp-port={URGENT}"));
}

#[test]
fn urgent_traffic_has_members_of_its_own_at_both_ends() {
    let net = Net::bonded(hosts(&[3, 3]));
    add_urgent(&net, "a", "eth2");
    // The other host has no such class yet: its urgent traffic is like all other, and ours may come in anywhere.
    net.wait_lanes("b", "a", None, &[(0, 0), (1, 0), (1, 1), (2, 1)]);
    let (sent, _) = carriers(&net, "a", "b", URGENT);
    assert_eq!(sent, [2]);
    // Numbers are each host's own: on `b` it is the second class.
    net.ok("b", &format!("class add {BOND} other --match udp-port=9"));
    add_urgent(&net, "b", "eth1");
    net.wait_lanes("a", "b", Some("urgent"), &[(2, 1)]);
    net.wait_lanes("b", "a", Some("urgent"), &[(1, 2)]);
    net.wait_lanes("a", "b", None, &[(0, 0), (1, 2)]);
    for (from, to, urgent) in [("a", "b", (vec![2], vec![1])), ("b", "a", (vec![1], vec![2]))] {
        assert_eq!(carriers(&net, from, to, URGENT), urgent, "{from}");
        let (own, theirs) = carriers(&net, from, to, OTHER);
        assert_eq!((own.len(), theirs.len()), (2, 2), "{from}: {own:?} {theirs:?}");
        assert!(!own.contains(&urgent.0[0]) && !theirs.contains(&urgent.1[0]), "{from}: {own:?} {theirs:?}");
    }
    let class = &classes(&net, "a")[0];
    assert_eq!((&class.members[..], &class.name[..]), (&["eth2".to_owned()][..], "urgent"));
    assert!(class.tx_frames >= MANY && class.rules[1].frames >= MANY, "{class:?}");
    net.ok("a", &format!("class del {BOND} urgent"));
    net.wait_lanes("a", "b", None, &[(0, 0), (1, 0), (1, 2), (2, 2)]);
    assert!(net.ok("a", "class show --json").trim() == "[]");
}

#[test]
fn classes_outlive_the_daemon_and_follow_their_members() {
    let net = Net::bonded(hosts(&[4, 3]));
    add_urgent(&net, "a", "eth2,eth3");
    add_urgent(&net, "b", "eth2");
    net.wait_lanes("a", "b", Some("urgent"), &[(2, 2), (3, 2)]);
    net.kill("a");
    // The tables stay, and so does what they say.
    assert_eq!(carriers(&net, "a", "b", URGENT).1, [2]);
    net.start("a", &[]);
    net.wait_lanes("a", "b", Some("urgent"), &[(2, 2), (3, 2)]);
    assert_eq!(carriers(&net, "a", "b", URGENT), (vec![2, 3], vec![2]));
    net.ok("a", &format!("member del {BOND} eth3"));
    net.wait_lanes("a", "b", Some("urgent"), &[(2, 2)]);
    net.ok("a", &format!("member add {BOND} eth3 --class urgent"));
    net.wait_lanes("a", "b", Some("urgent"), &[(2, 2), (3, 2)]);
    net.ok("a", &format!("class set {BOND} urgent --member eth3"));
    net.wait_lanes("a", "b", Some("urgent"), &[(3, 2)]);
    assert_eq!(carriers(&net, "a", "b", URGENT), (vec![3], vec![2]));
    net.ok("a", &format!("class set {BOND} urgent --match udp-port={OTHER}"));
    assert_eq!(carriers(&net, "a", "b", OTHER), (vec![3], vec![2]));
    let (sent, _) = carriers(&net, "a", "b", URGENT);
    assert_eq!(sent, [0, 1, 2]);
}

#[test]
fn without_its_members_a_class_shares_or_is_blocked() {
    let net = Net::bonded(hosts(&[3, 3]));
    add_urgent(&net, "a", "eth2");
    add_urgent(&net, "b", "eth2");
    net.wait_lanes("a", "b", Some("urgent"), &[(2, 2)]);
    let nic = net.host("a").link(2).expect("there");
    nic.carrier(false).expect("cuts");
    net.wait_lanes("a", "b", Some("urgent"), &[(0, 2), (1, 2)]);
    assert_eq!(carriers(&net, "a", "b", URGENT), (vec![0, 1], vec![2]));
    net.ok("a", &format!("class set {BOND} urgent --fallback block"));
    net.wait_lanes("a", "b", Some("urgent"), &[]);
    let before = net.counter("a", "tx_class_blocked");
    let (from, to) = (net.host("a"), net.host("b"));
    from.run(|| {
        let socket = UdpSocket::bind((from.ipv4(), 0)).expect("binds");
        // The kernel tells the sender of a frame that went nowhere, or does not: both are right.
        _ = socket.send_to(&[1], (to.ipv4(), URGENT));
    })
    .expect("enters");
    assert!(net.counter("a", "tx_class_blocked") > before, "not dropped, or not counted");
    let (sent, _) = carriers(&net, "a", "b", OTHER);
    assert_eq!(sent, [0, 1]);
    nic.carrier(true).expect("mends");
    net.wait_lanes("a", "b", Some("urgent"), &[(2, 2)]);
    assert_eq!(carriers(&net, "a", "b", URGENT), (vec![2], vec![2]));
}

#[test]
fn a_member_that_cannot_join_a_class_leaves_it_as_it_was() {
    let net = Net::bonded(hosts(&[3, 3]));
    net.ok("a", &format!("member del {BOND} eth2"));
    net.ok("a", &format!("class add {BOND} urgent --match udp-port={URGENT} --fallback block"));
    // Where no other member is proven, a new one is admitted without proof.
    let proven = || net.lanes("a").iter().any(|lane| lane.state == "up" && lane.member == "eth0");
    wait_until(SOON, "a member that is proven", proven, |proven| *proven).unwrap_or_else(|e| panic!("{e}"));
    net.host("a").link(2).expect("there").cut(Way::Both).expect("cuts");
    let said = net.say("a", &format!("member add {BOND} eth2 --class urgent"));
    said.refused(1, "bond0: cannot add member 'eth2': no peer answers through it");
    // It has not been given members, so there is nothing to block it for.
    assert_eq!(carriers(&net, "a", "b", URGENT).0, [0, 1]);
}

#[test]
fn a_class_counts_from_zero_whatever_was_before() {
    let net = Net::bonded(hosts(&[2, 2]));
    net.ok("a", &format!("bond set {BOND} --latency on"));
    add_urgent(&net, "a", "eth1");
    send(&net, "a", "b", URGENT);
    assert!(classes(&net, "a")[0].tx_frames >= MANY);
    net.ok("a", &format!("class del {BOND} urgent"));
    let measured = || {
        let rows: Vec<LatencyRecord> =
            serde_json::from_str(&net.ok("a", "stats --latency --json")).expect("records");
        rows.into_iter().map(|row| (row.class, row.stage)).collect::<Vec<_>>()
    };
    let unique = || measured().into_iter().collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(measured().len(), unique(), "what is gone is not the rest");
    net.ok("a", &format!("class add {BOND} other --match udp-port=9"));
    assert_eq!(classes(&net, "a")[0].tx_frames, 0);
    assert!(measured().iter().all(|(class, _)| class == "rest"), "{:?}", measured());
}

#[test]
fn the_rest_always_has_a_way_out() {
    let net = Net::bonded(hosts(&[2, 2]));
    add_urgent(&net, "a", "eth1");
    add_urgent(&net, "b", "eth1");
    net.wait_lanes("a", "b", None, &[(0, 0)]);
    net.host("a").link(0).expect("there").carrier(false).expect("cuts");
    net.host("a").wait_ping(net.host("b").ipv4(), SOON).expect("reaches");
    let (sent, _) = carriers(&net, "a", "b", OTHER);
    assert_eq!(sent, [1]);
}

#[test]
fn members_that_are_lent_are_used_while_their_class_is_idle() {
    let net = Net::bonded(hosts(&[2, 2]));
    for name in ["a", "b"] {
        add_urgent(&net, name, "eth1");
    }
    net.wait_lanes("a", "b", None, &[(0, 0)]);
    for name in ["a", "b"] {
        net.ok(name, &format!("class set {BOND} urgent --borrow idle"));
    }
    let sent = || carriers(&net, "a", "b", OTHER).0;
    wait_until(SOON, "both members to carry", sent, |sent| *sent == [0, 1]).unwrap_or_else(|e| panic!("{e}"));
    // Now with urgent traffic all the while.
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&over);
        scope.spawn(|| {
            while !over.load(SeqCst) {
                send(&net, "a", "b", URGENT);
            }
        });
        wait_until(SOON, "the rest to stay off it", || rest_on_lent(&net), |frames| *frames == Some(0))
            .unwrap_or_else(|e| panic!("{e}"));
    });
}

/// Frames of the rest that left over the lent member while `MANY` of them were sent. None if a lane was lost meanwhile, as on a busy
/// machine: the next one counts from zero.
fn rest_on_lent(net: &Net) -> Option<u64> {
    let lent = || {
        let lanes = net.lanes("a").into_iter().filter(|lane| lane.class.is_none() && lane.member == "eth1");
        lanes.map(|lane| lane.tx_frames).sum::<u64>()
    };
    let before = lent();
    send(net, "a", "b", OTHER);
    lent().checked_sub(before)
}

#[test]
fn a_mirrored_class_loses_nothing_when_a_link_dies() {
    let net = Net::bonded(hosts(&[3, 3]));
    for name in ["a", "b"] {
        // Whatever the port: the flow takes any.
        net.ok(
            name,
            &format!("class add {BOND} urgent --member eth1,eth2 --match udp-port=1-65535 --policy mirror"),
        );
    }
    net.wait_lanes("a", "b", Some("urgent"), &[(1, 1), (2, 2)]);
    let flow = Flow::start(&net, "a", "b");
    flow.wait_received(500);
    let links = [net.host("a").link(1).expect("there"), net.host("b").link(2).expect("there")];
    for round in 0..4 {
        let link = &links[round % 2];
        match round < 2 {
            true => link.cut(Way::Both).expect("cuts"),
            false => link.carrier(false).expect("cuts"),
        }
        let heard = flow.received();
        flow.wait_received(heard + 400);
        link.restore().expect("mends");
        link.carrier(true).expect("mends");
        net.wait_lanes("a", "b", Some("urgent"), &[(1, 1), (2, 2)]);
        let heard = flow.received();
        flow.wait_received(heard + 200);
    }
    assert_eq!(flow.end(), (0, 0), "lost and doubled");
}

#[test]
fn a_command_runs_in_a_class() {
    let net = Net::bonded(hosts(&[2, 2]));
    add_urgent(&net, "a", "eth1");
    add_urgent(&net, "b", "eth1");
    net.wait_lanes("a", "b", Some("urgent"), &[(1, 1)]);
    let of = |net: &Net| classes(net, "a")[0].tx_frames;
    let before = of(&net);
    let to = net.host("b").ipv4().to_owned();
    net.ok("a", &format!("run --class urgent -- ping -q -c 20 -i 0.01 {to}"));
    assert!(of(&net) >= before + 20, "{:?}", classes(&net, "a"));
    let after = of(&net);
    net.host("a").sh(&format!("ping -q -c 20 -i 0.01 {to}")).expect("reaches");
    assert_eq!(of(&net), after, "a command outside is in the class");
    // Its end is that of the command.
    assert_eq!(net.say("a", "run --class urgent -- false").code, 1);
}

#[test]
fn nothing_is_left_of_classes() {
    let net = Net::up(hosts(&[3]));
    let before = machine::settled(&net, "a");
    net.start("a", &[]);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1,eth2 --class urgent=eth2"));
    let class = &classes(&net, "a")[0];
    let rules: Vec<&str> = class.rules.iter().map(|rule| rule.matches.as_str()).collect();
    assert!(rules[0].starts_with("cgroup=/linkbraid/"), "{rules:?}");
    assert_eq!((&class.members[..], &rules[1..]), (&["eth2".to_owned()][..], &["priority=6", "dscp=ef"][..]));
    let groups = || {
        let found =
            net.host("a").sh("find /sys/fs/cgroup -type d -path */linkbraid/*/urgent").unwrap_or_default();
        let mine = format!("/{}/", net.namespace("a"));
        found.lines().filter(|line| line.contains(&mine)).count()
    };
    assert_eq!(groups(), 1);
    // Whoever is in a group may make others in it, and take it away.
    let group = rules[0].trim_start_matches("cgroup=");
    let at = |what: &str| {
        let find = format!("find /sys/fs/cgroup -depth -type d -path *{group} -exec {what} ;");
        net.host("a").sh(&find).expect("finds")
    };
    at("rmdir {}");
    let said = net.ok("a", "run --class urgent -- cat /proc/self/cgroup");
    assert!(said.contains(group), "{said}");
    at("mkdir {}/box");
    net.ok("a", &format!("bond del {BOND}"));
    assert_eq!(groups(), 0);
    net.stop("a");
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn latency_is_told_by_class_and_stage_while_it_is_measured() {
    let net = Net::bonded(hosts(&[2, 2]));
    add_urgent(&net, "a", "eth1");
    let off = format!("{BOND}: no latency is measured: it is off");
    let hint = net.say("a", "stats --latency").refused(1, &off);
    check_hint(net.host("a"), &hint);
    send(&net, "a", "b", URGENT);
    send(&net, "a", "b", OTHER);
    let measured = || -> Vec<(String, String)> {
        let rows: Vec<LatencyRecord> =
            serde_json::from_str(&net.ok("a", "stats --latency --json")).expect("records");
        let much = rows.into_iter().filter(|row| row.count >= MANY && row.p50_ns <= row.p99_ns);
        much.map(|row| (row.class, row.stage)).collect()
    };
    let row = |class: &str, stage: &str| (class.to_owned(), stage.to_owned());
    let stages = ["application", "driver", "total"];
    let both = ["rest", "urgent"].map(|class| stages.map(|stage| row(class, stage)));
    assert_eq!(measured(), both.concat());
    // A daemon that starts again measures on, from zero.
    net.kill("a");
    net.start("a", &[]);
    assert_eq!(measured(), []);
    send(&net, "a", "b", URGENT);
    assert_eq!(measured(), both[1]);
    net.ok("a", &format!("bond set {BOND} --latency off"));
    assert_eq!(net.say("a", "stats --latency").refused(1, &off), hint);
}
