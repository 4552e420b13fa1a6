//! Links fail, come back, join and leave while traffic runs.

use linkbraid_api::{EventKind, EventRecord, Health, LaneRecord};
use linkbraid_lab::{LinkSpec, Topology, Way, wait_until};
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::packet::{self, Tap};
use linkbraid_netns_tests::{BOND, Net, SOON};
use std::time::{Duration, Instant};

const RATE: u32 = 100;

/// The members of `name` whose lanes to peers are in use.
fn in_use(net: &Net, name: &str) -> Vec<String> {
    let used = |lane: &LaneRecord| lane.share_ppm > 0 && lane.peer_mac.is_some();
    let mut members: Vec<String> = net.lanes(name).into_iter().filter(used).map(|lane| lane.member).collect();
    members.sort();
    members.dedup();
    members
}

#[track_caller]
fn wait_in_use(net: &Net, name: &str, members: &[&str]) {
    wait_until(SOON, &format!("{name} to use {members:?}"), || in_use(net, name), |used| used == members)
        .unwrap_or_else(|e| panic!("{e}"));
}

/// All lanes between a and b are proven.
#[track_caller]
fn wait_proven(net: &Net, name: &str, lanes: usize) {
    let up = || net.lanes(name).iter().filter(|lane| lane.state == "up").count();
    wait_until(SOON, &format!("{lanes} proven lanes of {name}"), up, |up| *up == lanes)
        .unwrap_or_else(|e| panic!("{e}"));
}

fn events(net: &Net, name: &str, reason: &str) -> Vec<EventRecord> {
    net.show(name).events.into_iter().filter(|event| event.reason == reason).collect()
}

/// Cuts the second link of a, both ways or one, while a flow runs; it is found, and used again when it is mended.
#[track_caller]
fn silent_failure(way: Way) {
    let net = Net::bonded(Topology::symmetric(2, 2, Some(RATE)));
    wait_proven(&net, "a", 4);
    wait_proven(&net, "b", 4);
    let flow = Flow::start(&net, "a", "b");
    flow.wait_received(100);
    let link = net.host("a").link(1).expect("a link");
    link.cut(way).expect("cuts");
    wait_in_use(&net, "a", &["eth0"]);
    wait_in_use(&net, "b", &["eth0", "eth1"]);
    let lost: Vec<EventRecord> =
        net.show("a").events.into_iter().filter(|event| event.kind == EventKind::Lane).collect();
    let found = lost.iter().rfind(|event| event.new.as_deref() == Some("down")).expect("an event");
    assert!(found.object.starts_with("eth1 > 198.18.0.2"), "{found:?}");
    assert!(found.took_us.is_some(), "{found:?}");
    // Every lane that is left works: nothing is lost from here on.
    let lanes = || net.lanes("b").into_iter().filter(|lane| lane.state == "up").count();
    wait_until(SOON, "b to have two proven lanes", lanes, |up| *up == 2).unwrap_or_else(|e| panic!("{e}"));
    flow.loses_nothing_more();
    link.restore().expect("mends");
    wait_in_use(&net, "a", &["eth0", "eth1"]);
    wait_proven(&net, "a", 4);
    wait_proven(&net, "b", 4);
    flow.loses_nothing_more();
}

#[test]
fn a_port_that_forwards_nothing_is_found_and_comes_back() {
    silent_failure(Way::Both);
}

#[test]
fn a_port_that_takes_nothing_in_is_found() {
    silent_failure(Way::In);
}

#[test]
fn a_port_that_gives_nothing_out_is_found() {
    silent_failure(Way::Out);
}

#[test]
fn a_pulled_plug_is_known_at_both_ends() {
    let net = Net::bonded(Topology::symmetric(2, 2, Some(RATE)));
    wait_proven(&net, "a", 4);
    let flow = Flow::start(&net, "b", "a");
    flow.wait_received(100);
    let link = net.host("a").link(1).expect("a link");
    link.carrier(false).expect("pulls");
    wait_in_use(&net, "a", &["eth0"]);
    let live = || net.peers("b")[0].members.iter().map(|member| member.live).collect::<Vec<_>>();
    wait_until(SOON, "b to know", live, |live| *live == [true, false]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(events(&net, "a", "no_carrier").len(), 1);
    flow.loses_nothing_more();
    link.carrier(true).expect("plugs in");
    wait_in_use(&net, "a", &["eth0", "eth1"]);
    wait_proven(&net, "b", 4);
    flow.loses_nothing_more();
    let back = events(&net, "a", "waited");
    assert!(back.last().is_some_and(|event| event.took_us.is_some()), "{back:?}");
}

#[test]
fn hosts_that_have_lost_different_switches_talk_over_the_third() {
    let net = Net::bonded(Topology::separate_switches(3, Some(RATE)));
    wait_proven(&net, "a", 3);
    assert_eq!(in_use(&net, "a"), ["eth0", "eth1", "eth2"]);
    let flow = Flow::start(&net, "a", "b");
    flow.wait_received(100);
    net.host("a").link(0).expect("a link").cut(Way::Both).expect("cuts");
    net.host("b").link(1).expect("a link").cut(Way::Both).expect("cuts");
    wait_in_use(&net, "a", &["eth2"]);
    wait_in_use(&net, "b", &["eth2"]);
    flow.loses_nothing_more();
    net.host("a").link(0).expect("a link").restore().expect("mends");
    net.host("b").link(1).expect("a link").restore().expect("mends");
    wait_proven(&net, "a", 3);
    wait_in_use(&net, "b", &["eth0", "eth1", "eth2"]);
}

#[test]
fn the_last_lane_is_never_given_up_on_suspicion() {
    let net = Net::bonded(Topology::symmetric(2, 2, Some(RATE)));
    wait_proven(&net, "a", 4);
    // The peer's daemon is gone, its data path is not.
    net.kill("b");
    let suspects = || net.lanes("a").iter().filter(|lane| lane.state == "suspect").count();
    wait_until(SOON, "suspicion", suspects, |n| *n == 4).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(in_use(&net, "a"), ["eth0", "eth1"]);
    let flow = Flow::start(&net, "a", "b");
    flow.loses_nothing_more();
    net.start("b", &[]);
    wait_proven(&net, "a", 4);
    flow.loses_nothing_more();
}

#[test]
fn a_member_is_admitted_when_a_peer_answers_through_it() {
    let net = Net::up(Topology::symmetric(2, 3, Some(RATE)));
    for name in ["a", "b"] {
        net.start(name, &[]);
        net.ok(name, &format!("bond add {BOND} --member eth0,eth1"));
    }
    net.wait_tables(&["a", "b"]);
    wait_proven(&net, "a", 4);
    net.ok("a", &format!("member add {BOND} eth2"));
    let member = net.show("a").members.pop().expect("three");
    assert!(member.live && member.interface == "eth2", "{member:?}");
    wait_until(SOON, "b to use it", || net.lanes("b").len(), |n| *n >= 7).unwrap_or_else(|e| panic!("{e}"));
    net.ok("a", &format!("member del {BOND} eth2"));
    // Its switch port is dead, which nobody can see.
    net.host("a").link(2).expect("a link").cut(Way::Both).expect("cuts");
    let said = net.say("a", &format!("member add {BOND} eth2"));
    let hint = said.refused(1, "bond0: cannot add member 'eth2': no peer answers through it");
    assert_eq!(hint, format!("linkbraid member add {BOND} eth2 --force"));
    assert_eq!(net.show("a").members.len(), 2);
    let said = net.say("a", &format!("member add {BOND} eth2 --force"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("no peer answers through 'eth2'"), "{said:?}");
    assert_eq!(in_use(&net, "a"), ["eth0", "eth1"]);
    net.host("a").link(2).expect("a link").restore().expect("mends");
    wait_in_use(&net, "a", &["eth0", "eth1", "eth2"]);
}

#[test]
fn the_last_member_leaves_by_force_only_and_the_bond_takes_another() {
    let net = Net::bonded(Topology::symmetric(2, 2, Some(RATE)));
    net.ok("a", &format!("member del {BOND} eth0"));
    let said = net.say("a", &format!("member del {BOND} eth1"));
    said.refused(1, "bond0: cannot remove member 'eth1': it is the last one");
    net.ok("a", &format!("member del {BOND} eth1 --force"));
    assert!(net.show("a").members.is_empty());
    net.ok("a", &format!("member add {BOND} eth1 --force"));
    net.ok("a", &format!("member add {BOND} eth0"));
    net.wait_tables(&["a", "b"]);
    net.host("a").wait_ping(net.host("b").ipv4(), SOON).expect("reaches");
}

#[test]
fn a_daemon_that_dies_while_a_member_joins_leaves_it_as_it_was() {
    let net = Net::up(Topology::symmetric(2, 3, Some(RATE)));
    for name in ["a", "b"] {
        net.start(name, &[]);
        net.ok(name, &format!("bond add {BOND} --member eth0,eth1"));
    }
    wait_proven(&net, "a", 4);
    let look = || net.host("a").sh("ip -o addr show eth2").expect("reads");
    let before = look();
    net.host("a").link(2).expect("a link").cut(Way::Both).expect("cuts");
    std::thread::scope(|scope| {
        scope.spawn(|| net.say("a", &format!("member add {BOND} eth2")));
        let joining = || net.show("a").members.iter().any(|member| member.interface == "eth2");
        wait_until(SOON, "it to join", joining, |joining| *joining).unwrap_or_else(|e| panic!("{e}"));
        net.kill("a");
    });
    net.start("a", &[]);
    assert_eq!(net.show("a").members.len(), 2);
    wait_until(SOON, "eth2 to be as it was", look, |now| *now == before).unwrap_or_else(|e| panic!("{e}"));
    let master = net.host("a").sh("ip -o link show master bond0").expect("reads");
    assert!(!master.contains("eth2"), "{master}");
}

#[test]
fn changes_under_a_flow_lose_and_double_nothing() {
    let net = Net::bonded(Topology::symmetric(2, 3, Some(RATE)));
    wait_proven(&net, "a", 9);
    let flow = Flow::start(&net, "a", "b");
    let back = Flow::start(&net, "b", "a");
    flow.wait_received(100);
    back.wait_received(100);
    let steps: [&dyn Fn(); 6] = [
        &|| drop(net.ok("a", &format!("member set {BOND} eth1 --weight 40"))),
        &|| drop(net.ok("a", &format!("member del {BOND} eth2"))),
        &|| drop(net.ok("a", &format!("member add {BOND} eth2"))),
        &|| drop(net.ok("b", &format!("member del {BOND} eth0"))),
        &|| {
            net.kill("a");
            net.start("a", &[]);
        },
        &|| {
            net.stop("b");
            net.start("b", &[]);
        },
    ];
    for step in steps {
        let seen = flow.received();
        step();
        flow.wait_received(seen + 200);
    }
    net.wait_tables(&["a", "b"]);
    assert_eq!((flow.end(), back.end()), ((0, 0), (0, 0)), "lost and doubled, each way");
}

/// A host `a` with two links and the plain host `b`, not bonded yet.
fn beside_a_plain_host() -> Net {
    let fast = LinkSpec::switch(0, Some(RATE));
    let bonded = std::iter::repeat_n(fast.clone(), 2);
    Net::up(Topology::empty("lab", 1).host(bonded).plain_host([fast]))
}

/// One port of a bond is dead for a while, then that of the plain host that it sends to, between these addresses.
#[track_caller]
fn plain_host_is_served_while_a_port_is_dead(net: &Net, [own, theirs]: [&str; 2]) {
    let flow = Flow::between([(net.host("a"), own), (net.host("b"), theirs)]);
    flow.wait_received(100);
    let lane = format!("eth1 > {theirs}");
    let found = |new: &str| {
        let new = new.to_owned();
        let lane = &lane;
        move |event: &EventRecord| {
            event.kind == EventKind::Lane
                && event.new.as_deref() == Some(&new)
                && event.object.starts_with(lane)
        }
    };
    let count = |new: &str| net.show("a").events.iter().filter(|event| found(new)(event)).count();
    wait_until(SOON, "proof through eth1", || count("up"), |n| *n == 1).unwrap_or_else(|e| panic!("{e}"));
    let link = net.host("a").link(1).expect("a link");
    link.cut(Way::Both).expect("cuts");
    wait_until(SOON, "the failure to be found", || count("down"), |n| *n == 1)
        .unwrap_or_else(|e| panic!("{e}"));
    flow.loses_nothing_more();
    link.restore().expect("mends");
    wait_until(SOON, "proof again", || count("up"), |n| *n == 2).unwrap_or_else(|e| panic!("{e}"));
    flow.loses_nothing_more();
    // It does not answer at all any more: no member is to blame.
    net.host("b").link(0).expect("a link").cut(Way::Both).expect("cuts");
    wait_until(SOON, "suspicion", || count("suspect"), |n| *n > 0).unwrap_or_else(|e| panic!("{e}"));
    assert!(net.show("a").members.iter().all(|member| member.live));
}

#[test]
fn a_plain_host_is_served_while_a_port_is_dead() {
    let net = beside_a_plain_host();
    net.bond_all();
    let ends = ["a", "b"].map(|name| net.host(name).ipv4());
    plain_host_is_served_while_a_port_is_dead(&net, ends);
}

#[test]
fn a_plain_host_without_ipv4_is_served_while_a_port_is_dead() {
    let net = beside_a_plain_host();
    let b = net.host("b");
    b.sh("ip -4 address flush dev eth0").expect("takes the address away");
    // A router would forward what is not for itself.
    net.host("a").sh("sysctl -q -w net.ipv6.conf.all.forwarding=1").expect("sets");
    net.bond_all();
    let ends = ["a", "b"].map(|name| net.host(name).ipv6());
    let tap = Tap::open(net.host("a"), BOND, packet::IPV6);
    plain_host_is_served_while_a_port_is_dead(&net, ends);
    // The host has cached where each member's probes come from; neither that nor its answers are the kernel's.
    let cached = b.sh("ip -6 neighbour show dev eth0").expect("reads");
    assert_eq!(cached.matches("fe80::4c42:").count(), 2, "{cached}");
    let is_for_probes = |frame: &Vec<u8>| {
        let to = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, b'L', b'B'];
        frame.get(38..48) == Some(&to[..])
    };
    let taken = tap.take();
    assert!(!taken.is_empty() && !taken.iter().any(is_for_probes), "{taken:02x?}");
}

#[test]
fn plain_hosts_on_separate_switches_are_reached() {
    let link = |switch| LinkSpec::switch(switch, Some(RATE));
    let topology = Topology::empty("lab", 2)
        .host([link(0), link(1)])
        .host([link(0), link(1)])
        .plain_host([link(0)])
        .plain_host([link(1)]);
    let net = Net::bonded(topology);
    let a = net.host("a");
    for plain in ["c", "d"] {
        let host = net.host(plain);
        host.wait_ping(a.ipv4(), SOON).expect("reaches");
        a.wait_ping(host.ipv4(), SOON).expect("reaches");
        let there = Flow::start(&net, "a", plain);
        there.loses_nothing_more();
        let back = Flow::start(&net, plain, "a");
        back.loses_nothing_more();
    }
}

/// Pulls the cable of the second link of a and plugs it in again; how long until the link is used then, if it is by `limit`.
fn flap(net: &Net, limit: Duration) -> Option<Duration> {
    let live = || net.show("a").members[1].live;
    let link = net.host("a").link(1).expect("a link");
    link.carrier(false).expect("pulls");
    wait_until(SOON, "the link to be out", live, |live| !live).unwrap_or_else(|e| panic!("{e}"));
    let begin = Instant::now();
    link.carrier(true).expect("plugs in");
    wait_until(limit, "the link to be used", live, |live| *live).ok().map(|_| begin.elapsed())
}

#[test]
fn a_link_that_flaps_is_kept_out_no_longer_than_hold_max() {
    let net = Net::up(Topology::symmetric(1, 2, None));
    net.start("a", &[]);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1 --hold-max 0s"));
    // What fails soon after a member has joined is no failure of its link (docs/arp-plus.md, 11.13).
    let joined = Instant::now();
    while joined.elapsed() < Duration::from_secs(5) {
        assert!(flap(&net, SOON).is_some(), "it is out for good");
    }
    // By default the sixth time would cost 16 s.
    for time in 1..=6 {
        let took = flap(&net, SOON).unwrap_or_else(|| panic!("it is out for good after time {time}"));
        assert!(took < Duration::from_secs(5), "time {time} took {took:?}");
    }
    // From now on the seventh does.
    net.ok("a", &format!("bond set {BOND} --hold-max 3600s"));
    assert_eq!(flap(&net, Duration::from_secs(4)), None);
    net.kill("a");
    net.start("a", &[]);
    assert_eq!(net.show("a").settings.inspector.hold_max.0, 3_600_000, "the next daemon keeps it");
}

/// What b sends is heard, so it is no dead host.
#[test]
fn a_peer_that_hears_nothing_is_shown() {
    let net = Net::bonded(Topology::symmetric(2, 2, Some(RATE)));
    wait_proven(&net, "a", 4);
    let found = || net.show("a").findings.into_iter().find(|found| found.name == "unproven");
    assert_eq!(found(), None);
    let links = net.host("a").links().expect("two");
    links.iter().for_each(|link| link.cut(Way::Out).expect("cuts"));
    let seen = wait_until(SOON, "it to be shown", found, Option::is_some).unwrap_or_else(|e| panic!("{e}"));
    let text = seen.map(|found| found.text).unwrap_or_default();
    assert_eq!(
        text,
        format!("{} is heard, but answers no probe: frames to it may be lost", net.host("b").ipv4())
    );
    assert_eq!(net.show("a").health, Health::Degraded);
    links.iter().for_each(|link| link.restore().expect("mends"));
    let health = || net.show("a").health;
    wait_until(SOON, "all to be well", health, |health| *health == Health::Ok)
        .unwrap_or_else(|e| panic!("{e}"));
}
