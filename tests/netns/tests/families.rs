//! Kinds of traffic: both IP families, frames of every size, routed packets, TCP without its usual options.

use linkbraid_api::{Health, LaneRecord, PeerRecord, Policy};
use linkbraid_lab::iperf::{self, Cc, Direction, Traffic};
use linkbraid_lab::{Host, LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::{BOND, Net, SOON, check_hint, traffic};

/// Link rate of most labs here, Mbit/s: what two cores can send several times over.
const RATE: u32 = 20;

/// Two hosts with two links each, after the measure of one link.
fn two_by_two() -> (Net, f64) {
    let net = Net::up(Topology::symmetric(2, 2, Some(RATE)));
    let single = traffic::measure(net.host("a"), net.host("b"));
    net.bond_all();
    (net, single)
}

/// Writes a setting below `/proc/sys/net` of a host.
#[track_caller]
fn sysctl(host: Host<'_>, key: &str, value: &str) {
    let path = format!("/proc/sys/net/{key}");
    host.run(|| std::fs::write(&path, value)).expect("enters").unwrap_or_else(|e| panic!("{path}: {e}"));
}

/// Pings with every payload from nothing to what fills the MTU, without fragments; those that got no answer.
fn unanswered(from: Host<'_>, to: &str, largest: u32) -> String {
    let line = format!(
        "for s in $(seq 0 {largest}); do ping -c 1 -W 2 -M do -q -s $s {to} >/dev/null || echo -n \"$s \"; done"
    );
    let said = from.command("sh").args(["-c", &line]).output().expect("runs");
    String::from_utf8_lossy(&said.stdout).into_owned()
}

#[test]
fn ipv6_has_the_rate_of_both_links() {
    let (net, single) = two_by_two();
    let (a, b) = (net.host("a"), net.host("b"));
    a.wait_ping(b.ipv6(), SOON).expect("reaches");
    for (from, to) in [(a, b), (b, a)] {
        traffic::reaches(from, to, &traffic::tcp().to(to.ipv6()), |o| o.mbit() / single > 1.8);
    }
    // Link-local addresses too: the bond's own, made of its MAC.
    let link_local = net.show("b").addresses.into_iter().find(|address| address.starts_with("fe80"));
    let link_local = link_local.expect("a link-local address");
    let address = link_local.split('/').next().expect("an address");
    a.wait_ping(&format!("{address}%{BOND}"), SOON).expect("reaches");
}

#[test]
fn pings_of_every_size_up_to_the_mtu_are_answered() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    // Less the headers of IP and ICMP.
    assert_eq!(unanswered(a, b.ipv4(), 1500 - 20 - 8), "");
    assert_eq!(unanswered(a, b.ipv6(), 1500 - 40 - 8), "");
    assert!(a.sh(&format!("ping -c 1 -W 1 -M do -s 1473 {}", b.ipv4())).is_err(), "longer than the MTU");
    // And with fragments, up to the longest packet of IPv4.
    a.sh(&format!("ping -c 3 -i 0.01 -W 2 -s 65507 {}", b.ipv4())).expect("reaches");
}

#[test]
fn jumbo_frames_cross_at_the_rate_of_both_links() {
    let links = || std::iter::repeat_n(LinkSpec::switch(0, Some(RATE)).mtu(9000), 2);
    let net = Net::up(Topology::empty("lab", 1).host(links()).host(links()));
    let (a, b) = (net.host("a"), net.host("b"));
    let single = traffic::measure(a, b);
    net.bond_all();
    assert_eq!((net.show("a").mtu, net.show("b").mtu), (9000, 9000));
    for (address, headers) in [(b.ipv4(), 28), (b.ipv6(), 48)] {
        let largest = 9000 - headers;
        a.sh(&format!("ping -c 3 -i 0.01 -W 2 -M do -s {largest} {address}")).expect("reaches");
        assert!(a.sh(&format!("ping -c 1 -W 1 -M do -s {} {address}", largest + 1)).is_err());
    }
    traffic::reaches(a, b, &traffic::tcp(), |o| o.mbit() / single > 1.8);
}

#[test]
fn a_changed_mtu_holds_on_bond_and_members() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    let reaches = |size: u32| a.sh(&format!("ping -c 1 -W 1 -M do -s {size} {}", b.ipv4())).is_ok();
    for name in ["a", "b"] {
        net.ok(name, &format!("bond set {BOND} --mtu 1400"));
        assert_eq!(net.show(name).mtu, 1400);
    }
    assert!(reaches(1400 - 28) && !reaches(1400 - 27));
    for name in ["a", "b"] {
        net.ok(name, &format!("bond set {BOND} --mtu 1500"));
    }
    assert!(reaches(1500 - 28) && !reaches(1500 - 27));
}

#[test]
fn a_switch_port_with_a_smaller_mtu_is_told_and_left_out_until_it_is_mended() {
    let link = |mtu| LinkSpec::switch(0, None).mtu(mtu);
    let links = |second| [9000, second, 9000].map(link);
    let net = Net::up(Topology::empty("lab", 1).host(links(1500)).host(links(9000)));
    let (a, b) = (net.host("a"), net.host("b"));
    // The NIC takes it, and its switch port does not.
    a.sh("ip link set eth1 mtu 9000").expect("sets it");
    net.bond_all();
    let short = |name: &str| {
        let found = net.show(name).findings.into_iter().filter(|finding| finding.name == "short");
        found.map(|finding| finding.object).collect::<Vec<String>>()
    };
    wait_until(SOON, "a to find out", || short("a"), |short| *short == ["eth1"])
        .unwrap_or_else(|e| panic!("{e}"));
    // Each member of b has one lane there.
    let each = ["eth0", "eth1", "eth2"];
    wait_until(SOON, "b to find out", || short("b"), |short| *short == each)
        .unwrap_or_else(|e| panic!("{e}"));
    for name in ["a", "b"] {
        let lanes = || net.show(name).events.iter().filter(|event| event.reason == "short").count();
        wait_until(SOON, "each of three lanes", lanes, |lanes| *lanes == 3).unwrap_or_else(|e| panic!("{e}"));
    }
    assert_eq!(short("a"), ["eth1"]);
    let show = net.show("a");
    assert_eq!(show.health, Health::Degraded);
    assert!(
        show.reason.starts_with("'eth1': packets of 9000 bytes sent by it do not reach 198.18.0.2"),
        "{}",
        show.reason
    );
    let text = net.ok("a", "show");
    assert!(
        text.lines().any(|line| line.contains("lane eth1 > 198.18.0.2") && line.ends_with("up -> short")),
        "{text}"
    );
    // All of them, whatever lane they would take.
    for (from, to) in [(a, b), (b, a)] {
        let text =
            from.sh(&format!("ping -c 60 -i 0.005 -W 2 -M do -s 8972 {}", to.ipv4())).expect("reaches");
        assert!(text.contains(" 0% packet loss"), "{text}");
    }
    let hint = show.findings.iter().find_map(|finding| finding.hint.clone()).expect("a hint");
    assert_eq!(hint, format!("linkbraid bond set {BOND} --mtu 1500"));
    for host in [a, b] {
        assert_eq!(check_hint(host, &hint).code, 0);
    }
    for name in ["a", "b"] {
        wait_until(SOON, "nothing to be told", || short(name), Vec::is_empty)
            .unwrap_or_else(|e| panic!("{e}"));
        wait_until(SOON, "all to be well", || net.show(name), |show| show.health == Health::Ok)
            .unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_bonded_router_forwards_between_two_bonds_and_to_a_plain_host() {
    // a (bonded) - switch 0 - b (a bond on each side) - switch 1 - c (bonded), d (plain, faster than one link)
    let link = |switch| LinkSpec::switch(switch, Some(RATE));
    let mut topology = Topology::empty("lab", 2)
        .host([link(0), link(0)])
        .host([link(0), link(0), link(1), link(1)])
        .host([link(1), link(1)])
        .plain_host([LinkSpec::switch(1, Some(100))]);
    topology.hosts[1].addresses.clear();
    for (host, number) in [(2, 3), (3, 4)] {
        topology.hosts[host].addresses =
            vec![format!("198.18.1.{number}/24"), format!("2001:db8:1::{number}/64")];
    }
    let net = Net::up(topology);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| net.host(name));
    let single = traffic::measure(c, d);
    for name in ["a", "b", "c"] {
        net.start(name, &[]);
    }
    net.bond("a");
    net.bond("c");
    for (bond, members, subnet) in [("bond0", "eth0,eth1", 0), ("bond1", "eth2,eth3", 1)] {
        net.ok("b", &format!("bond add {bond} --member {members} --address 198.18.{subnet}.2/24"));
        b.sh(&format!("ip address add 2001:db8:{subnet}::2/64 dev {bond}")).expect("adds");
        for member in members.split(',') {
            net.ok("b", &format!("member set {bond} {member} --weight {RATE}"));
        }
    }
    sysctl(b, "ipv4/ip_forward", "1");
    sysctl(b, "ipv6/conf/all/forwarding", "1");
    for (host, device, subnet, far) in [(a, BOND, 0, 1), (c, BOND, 1, 0), (d, "eth0", 1, 0)] {
        host.sh(&format!("ip route add 198.18.{far}.0/24 via 198.18.{subnet}.2 dev {device}")).expect("adds");
        host.sh(&format!("ip route add 2001:db8:{far}::/64 via 2001:db8:{subnet}::2 dev {device}"))
            .expect("adds");
    }
    // b is one peer of each, c is not heard by a.
    let peers = || ["a", "b", "c"].map(|name| net.peers(name).len());
    linkbraid_lab::wait_until(SOON, "peers", peers, |seen| *seen == [1, 2, 1])
        .unwrap_or_else(|e| panic!("{e}"));
    // Of the peers of both bonds one is picked by what it is called.
    let all = net.peers("b");
    for one in &all {
        let names = [one.address.clone(), one.host_id.clone(), Some(one.mac.clone())];
        for name in names.map(|name| name.expect("has all three")) {
            let picked: Vec<PeerRecord> = net.records("b", &format!("peers --peer {name}"));
            assert_eq!(picked.iter().map(|peer| &peer.mac).collect::<Vec<_>>(), [&one.mac], "{name}");
            let lanes: Vec<LaneRecord> = net.records("b", &format!("lanes --peer {name}"));
            assert!(!lanes.is_empty() && lanes.iter().all(|lane| lane.bond == one.bond), "{name}: {lanes:?}");
        }
    }
    for (from, to) in [(a, c.ipv4()), (a, d.ipv4()), (c, a.ipv4()), (a, c.ipv6()), (d, a.ipv6())] {
        from.wait_ping(to, SOON).unwrap_or_else(|e| panic!("{e}"));
    }
    assert_eq!(unanswered(a, c.ipv4(), 64), "");
    for (from, to, address) in [(a, c, c.ipv4()), (c, a, a.ipv6()), (a, d, d.ipv4())] {
        traffic::reaches(from, to, &traffic::tcp().to(address), |o| o.mbit() / single > 1.8);
    }
}

#[test]
fn tcp_without_sack_or_timestamps_is_no_slower_than_one_link() {
    let (net, single) = two_by_two();
    let (a, b) = (net.host("a"), net.host("b"));
    for (key, sack, timestamps) in [("no SACK", "0", "1"), ("no timestamps", "1", "0"), ("neither", "0", "0")]
    {
        for host in [a, b] {
            sysctl(host, "ipv4/tcp_sack", sack);
            sysctl(host, "ipv4/tcp_timestamps", timestamps);
        }
        for cc in [Cc::Cubic, Cc::Bbr] {
            let outcome = traffic::reaches(a, b, &Traffic::tcp(cc, 2), |o| o.mbit() / single > 0.95);
            eprintln!("{key}, {}: {:.2} of one link", cc.name(), outcome.mbit() / single);
        }
    }
}

#[test]
fn tcp_without_timestamps_has_the_rate_of_both_links() {
    let (net, single) = two_by_two();
    let (a, b) = (net.host("a"), net.host("b"));
    for host in [a, b] {
        sysctl(host, "ipv4/tcp_timestamps", "0");
    }
    traffic::reaches(a, b, &traffic::tcp(), |o| o.mbit() / single > 1.8);
}

#[test]
fn both_directions_at_once_have_the_rate_of_both_links_each() {
    let (net, single) = two_by_two();
    let both = Traffic { direction: Direction::Both, ..traffic::tcp() };
    // Each way carries the other's acknowledgements too.
    traffic::reaches(net.host("a"), net.host("b"), &both, |o| {
        let back = o.back.expect("a way back");
        o.way.mbit / single > 1.7 && back.mbit / single > 1.7
    });
}

#[test]
fn many_flows_and_udp_have_the_rate_of_both_links() {
    let (net, single) = two_by_two();
    let (a, b) = (net.host("a"), net.host("b"));
    traffic::reaches(a, b, &traffic::tcp().flows(8), |o| o.mbit() / single > 1.8);
    let udp = Traffic::udp(2 * RATE - 3, 2);
    traffic::reaches(a, b, &udp, |o| o.way.lost == 0 && o.mbit() / single > 1.8);
}

#[test]
fn every_policy_carries_traffic() {
    let (net, single) = two_by_two();
    let (a, b) = (net.host("a"), net.host("b"));
    let share = |name: &str| {
        let sent: Vec<u64> = net.show(name).members.iter().map(|m| m.tx_bytes).collect();
        sent.iter().max().copied().unwrap_or(0) as f64 / sent.iter().sum::<u64>().max(1) as f64
    };
    let keep_flows = Policy::all().iter().filter(|policy| policy.is_of_bonds() && !policy.spreads());
    for policy in keep_flows.map(|policy| policy.word()) {
        for name in ["a", "b"] {
            net.ok(name, &format!("bond set {BOND} --policy {policy}"));
        }
        traffic::reaches(a, b, &traffic::tcp(), |o| (0.9..1.1).contains(&(o.mbit() / single)));
    }
    // They may have chosen the same link, or each another one; spreading evens it out from here on.
    let before = share("a");
    for name in ["a", "b"] {
        net.ok(name, &format!("bond set {BOND} --policy round-robin"));
    }
    // A frame a link, and nothing is damped: TCP takes some of that for loss.
    traffic::reaches(a, b, &traffic::tcp(), |o| o.mbit() / single > 1.2);
    for name in ["a", "b"] {
        net.ok(name, &format!("bond set {BOND} --policy spread"));
    }
    let outcome = iperf::run(a, b, &traffic::tcp()).expect("runs");
    assert!(outcome.mbit() / single > 1.7 && share("a") <= before, "{outcome:?}");
}

#[test]
fn policies_change_under_load_and_lose_nothing() {
    let (net, _) = two_by_two();
    let set = |line: &str| ["a", "b"].map(|name| net.ok(name, line));
    let flow = Flow::start(&net, "a", "b");
    flow.wait_received(100);
    let bonds = || Policy::all().iter().copied().filter(Policy::is_of_bonds).map(Policy::word);
    for policy in bonds().chain(bonds()) {
        set(&format!("bond set {BOND} --policy {policy}"));
        flow.loses_nothing_more();
    }
    set(&format!("class add {BOND} all --match udp-port=1-65535"));
    for policy in Policy::all().iter().rev().chain(Policy::all()) {
        set(&format!("class set {BOND} all --policy {}", policy.word()));
        flow.loses_nothing_more();
    }
    assert_eq!(flow.end(), (0, 0), "lost, and came twice");
}
