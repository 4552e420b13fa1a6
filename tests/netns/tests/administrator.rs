//! What administrators and cables do to interfaces while they are in a bond.

mod bridge;
mod commands;
mod resets;

use linkbraid_api::Health;
use linkbraid_lab::iperf::{self, Traffic};
use linkbraid_lab::{Topology, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, machine, traffic};

#[test]
fn cables_pulled_and_plugged_under_a_connection() {
    let net = Net::up(Topology::symmetric(2, 3, Some(20)));
    let (a, b) = (net.host("a"), net.host("b"));
    let single = traffic::measure(a, b);
    net.bond_all();
    let mut flow = iperf::start(a, b, &Traffic { seconds: 5, ..traffic::tcp() }).expect("starts");
    let carried = || net.show("b").members.iter().map(|m| m.rx_bytes).sum::<u64>();
    let goes_on = || {
        let before = carried();
        wait_until(SOON, "more of the flow", carried, |now| *now > before + 300_000)
            .unwrap_or_else(|e| panic!("{e}"));
    };
    goes_on();
    for (host, link) in [(a, 0), (b, 1), (a, 2), (b, 2)] {
        let link = host.link(link).expect("there");
        link.carrier(false).expect("sets");
        wait_until(SOON, "a degraded bond", || net.show(host.name()).health, |h| *h == Health::Degraded)
            .unwrap_or_else(|e| panic!("{e}"));
        goes_on();
        link.carrier(true).expect("sets");
        wait_until(SOON, "a whole bond", || net.show(host.name()).health, |h| *h == Health::Ok)
            .unwrap_or_else(|e| panic!("{e}"));
        goes_on();
    }
    assert!(!flow.ended(), "the cables took longer than the flow");
    let outcome = flow.finish().expect("the connection lives to its end");
    assert!(outcome.mbit() > single, "one link has {single}, and this was {outcome:?}");
}

#[test]
fn a_bond_without_any_cable_says_so_and_comes_back() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    for (up, health) in [(false, Health::Down), (true, Health::Ok)] {
        for link in a.links().expect("there") {
            link.carrier(up).expect("sets");
        }
        wait_until(SOON, "its health", || net.show("a").health, |h| *h == health)
            .unwrap_or_else(|e| panic!("{e}"));
    }
    net.wait_tables(&["a", "b"]);
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
}

#[test]
fn members_set_down_and_up_by_hand() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    for nic in ["eth0", "eth1"] {
        a.sh(&format!("ip link set {nic} down")).expect("sets");
        wait_until(SOON, "a reason", || net.show("a").reason, |r| r.contains(nic))
            .unwrap_or_else(|e| panic!("{e}"));
        net.wait_tables(&["a", "b"]);
        a.wait_ping(b.ipv4(), SOON).expect("reaches");
        b.wait_ping(a.ipv4(), SOON).expect("reaches");
        a.sh(&format!("ip link set {nic} up")).expect("sets");
        net.wait_tables(&["a", "b"]);
    }
    // The last one waits for its up-delay.
    wait_until(SOON, "its health", || net.show("a").health, |h| *h == Health::Ok)
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn a_member_renamed_by_hand_keeps_its_place() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let host = net.host("a");
    let names = || net.show("a").members.into_iter().map(|m| m.interface).collect::<Vec<_>>();
    for line in ["ip link set eth1 down", "ip link set eth1 name lan1", "ip link set lan1 up"] {
        host.sh(line).unwrap_or_else(|e| panic!("{e}"));
    }
    wait_until(SOON, "the new name", names, |names| names[1] == "lan1").unwrap_or_else(|e| panic!("{e}"));
    net.ok("a", &format!("member set {BOND} lan1 --weight 5"));
    net.kill("a");
    net.start("a", &[]);
    assert_eq!(names(), ["eth0", "lan1"]);
    net.wait_tables(&["a", "b"]);
    net.ok("a", &format!("member del {BOND} lan1"));
    net.ok("a", &format!("bond del {BOND}"));
    assert_eq!(host.sh("ip -br link show master bond0").map_or(0, |text| text.lines().count()), 0);
}

#[test]
fn a_member_that_vanishes_and_one_that_takes_its_place() {
    let net = Net::bonded(Topology::symmetric(2, 3, None));
    let (a, b) = (net.host("a"), net.host("b"));
    // The first one, which gave the bond its MAC.
    a.sh("ip link del eth0").expect("deletes");
    let count = || net.show("a").members.len();
    wait_until(SOON, "two members", count, |n| *n == 2).unwrap_or_else(|e| panic!("{e}"));
    net.wait_tables(&["a", "b"]);
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    b.wait_ping(a.ipv4(), SOON).expect("reaches");
    a.sh("ip link add eth0 type veth peer name far0").expect("adds");
    // It joins by itself; nobody is at its other end.
    wait_until(SOON, "three members", count, |n| *n == 3).unwrap_or_else(|e| panic!("{e}"));
    let said = net.say("a", &format!("member add {BOND} eth0"));
    assert_eq!(
        said.refused(1, "bond0: cannot add member 'eth0': it is already in 'bond0'"),
        format!("linkbraid member del {BOND} eth0")
    );
    net.ok("a", &format!("bond del {BOND}"));
}

#[test]
fn a_member_that_vanishes_while_no_daemon_looks() {
    let net = Net::bonded(Topology::symmetric(2, 3, None));
    let (a, b) = (net.host("a"), net.host("b"));
    net.kill("a");
    a.sh("ip link del eth0").expect("deletes");
    net.start("a", &[]);
    let bond = net.show("a");
    assert_eq!((bond.members.len(), bond.mac), (2, a.mac(1)));
    net.wait_tables(&["a", "b"]);
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    b.wait_ping(a.ipv4(), SOON).expect("reaches");
    net.ok("a", &format!("bond del {BOND}"));
}

#[test]
fn a_bond_deleted_by_hand_can_be_deleted_and_made_anew() {
    let net = Net::up(Topology::symmetric(2, 2, None));
    let before = machine::settled(&net, "a");
    net.bond_all();
    let host = net.host("a");
    for restart in [false, true] {
        host.sh(&format!("ip link del {BOND}")).expect("deletes");
        if restart {
            net.kill("a");
            net.start("a", &[]);
        }
        // Either the daemon has seen it and holds no bond any more, or it holds one that can be deleted.
        if net.ok("a", "show --json").trim() != "[]" {
            net.ok("a", &format!("bond del {BOND}"));
        }
        machine::as_it_was(&net, "a", &before);
        net.bond("a");
        net.wait_tables(&["a", "b"]);
        host.wait_ping(net.host("b").ipv4(), SOON).expect("reaches");
    }
    net.ok("a", &format!("bond del {BOND}"));
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn addresses_given_to_the_bond_by_hand() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let host = net.host("a");
    let known = |host: &str| net.peers(host).into_iter().filter_map(|peer| peer.address).collect::<Vec<_>>();
    host.sh(&format!("ip address add 198.18.5.1/24 dev {BOND}")).expect("adds");
    host.sh(&format!("ip address del 198.18.0.1/24 dev {BOND}")).expect("deletes");
    wait_until(SOON, "the new address", || known("b"), |all| *all == ["198.18.5.1"])
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(net.show("a").addresses.contains(&"198.18.5.1/24".to_owned()));
    net.wait_tables(&["a", "b"]);
    net.host("b").sh(&format!("ip address add 198.18.5.2/24 dev {BOND}")).expect("adds");
    net.host("b").wait_ping("198.18.5.1", SOON).expect("reaches");
}

#[test]
fn hosts_without_addresses_find_each_other() {
    let mut topology = Topology::symmetric(2, 2, None);
    for host in &mut topology.hosts {
        host.addresses.clear();
    }
    let net = Net::bonded(topology);
    for (name, address) in [("a", "198.18.0.1"), ("b", "198.18.0.2")] {
        net.host(name).sh(&format!("ip address add {address}/24 dev {BOND}")).expect("adds");
    }
    net.host("a").wait_ping("198.18.0.2", SOON).expect("reaches");
}

/// Host a with its address and a default route on eth0, the member that is about to go.
fn reached_by_eth0() -> Net {
    let net = Net::up(Topology::symmetric(2, 3, None));
    net.host("a").sh("ip route add default via 198.18.0.2 dev eth0").expect("adds");
    net.start("a", &[]);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1,eth2 --move-address"));
    net
}

/// After `bond del` the host is reached by eth1, which inherited the address and the default route.
fn is_reached_by_eth1(net: &Net) {
    net.ok("a", &format!("bond del {BOND}"));
    let (a, b) = (net.host("a"), net.host("b"));
    let addresses = a.sh("ip -4 -o addr show dev eth1").expect("lists");
    assert!(addresses.contains(" 198.18.0.1/24 "), "{addresses}");
    let route = a.sh("ip route show default").expect("lists");
    assert!(route.contains("via 198.18.0.2 dev eth1"), "{route}");
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
}

#[test]
fn what_a_removed_member_brought_is_put_on_the_first_one_left() {
    let net = reached_by_eth0();
    net.ok("a", &format!("member del {BOND} eth0"));
    is_reached_by_eth1(&net);
}

#[test]
fn what_a_vanished_member_brought_is_put_on_the_first_one_left() {
    let net = reached_by_eth0();
    net.host("a").sh("ip link del eth0").expect("deletes");
    wait_until(SOON, "two members", || net.show("a").members.len(), |n| *n == 2)
        .unwrap_or_else(|e| panic!("{e}"));
    is_reached_by_eth1(&net);
}

#[test]
fn a_member_that_somebody_took_out_is_put_back() {
    let net = Net::bonded(Topology::symmetric(2, 3, None));
    let (a, b) = (net.host("a"), net.host("b"));
    let flags = || a.sh("bridge -d link show dev eth2").unwrap_or_default();
    let is_member = |text: &String| {
        text.contains("master bond0")
            && text.contains("learning off flood off")
            && text.contains("isolated on")
    };
    // More often in a row than it is put back at once.
    for _ in 0..7 {
        // As a manager does that configures it.
        a.sh("sysctl -qw net.ipv6.conf.eth2.disable_ipv6=0").expect("sets");
        a.sh("ip link set eth2 nomaster").expect("sets");
        wait_until(SOON, "a member's port", flags, is_member).unwrap_or_else(|e| panic!("{e}"));
    }
    wait_until(SOON, "a whole bond", || net.show("a").health, |h| *h == Health::Ok)
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(a.sh("sysctl -n net.ipv6.conf.eth2.disable_ipv6").expect("reads").trim(), "1");
    let said = net.show("a").events;
    assert!(said.iter().any(|event| event.object == "eth2" && event.reason == "put_back"), "{said:?}");
    net.wait_tables(&["a", "b"]);
    b.wait_ping(a.ipv4(), SOON).expect("reaches");
    // What a user takes out stays out.
    net.ok("a", &format!("member del {BOND} eth2"));
    assert!(!flags().contains("master"), "{}", flags());
    net.ok("a", &format!("bond del {BOND}"));
}
