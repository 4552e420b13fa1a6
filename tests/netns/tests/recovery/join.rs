//! A member that joins, and what is said of one that is not proven.

use super::{is_joining, member_names, sh, until, with_free_links};
use linkbraid_api::Health;
use linkbraid_lab::{LinkSpec, Topology, Way};
use linkbraid_netns_tests::{BOND, Net, SOON};
use std::time::Duration;

#[test]
fn the_last_proven_member_is_kept_while_another_joins() {
    let net = with_free_links(2, "eth0", &[]);
    let (a, b) = (net.host("a"), net.host("b"));
    a.link(1).expect("a link").cut(Way::Both).expect("cuts");
    std::thread::scope(|scope| {
        let add = scope.spawn(|| net.say("a", &format!("member add {BOND} eth1")));
        until("it to join", || is_joining(&net, "eth1"), |joining| *joining);
        let said = net.say("a", &format!("member del {BOND} eth0"));
        let hint = said.refused(1, "bond0: cannot remove member 'eth0': the others are still joining");
        assert_eq!(hint, format!("linkbraid show {BOND}"));
        a.wait_ping(b.ipv4(), SOON).expect("reaches");
        // By force: that leaves nobody, and is no proof of the other one.
        net.ok("a", &format!("member del {BOND} eth0 --force"));
        let said = add.join().expect("ends");
        said.refused(1, "bond0: cannot add member 'eth1': no peer answers through it");
    });
    assert!(net.show("a").members.is_empty());
    // The address has gone back with the member that brought it, and that one reaches the others.
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
}

#[test]
fn a_good_link_joins_though_probes_are_rare() {
    let net = with_free_links(3, "eth0,eth1", &[]);
    for name in ["a", "b"] {
        net.ok(name, &format!("bond set {BOND} --probe-interval 3s"));
    }
    net.ok("a", &format!("member add {BOND} eth2"));
    assert!(net.show("a").members.iter().all(|member| member.live));
}

#[test]
fn a_member_without_a_carrier_is_given_its_time_from_the_carrier_on() {
    let net = with_free_links(3, "eth0,eth1", &[]);
    for name in ["a", "b"] {
        net.ok(name, &format!("bond set {BOND} --probe-interval 2s --up-delay 1s"));
    }
    let link = net.host("a").link(2).expect("a link");
    link.carrier(false).expect("pulls");
    std::thread::scope(|scope| {
        let add = scope.spawn(|| net.say("a", &format!("member add {BOND} eth2")));
        until("it to join", || is_joining(&net, "eth2"), |joining| *joining);
        // A switch's port that takes three seconds until it forwards.
        std::thread::park_timeout(Duration::from_secs(3));
        link.carrier(true).expect("plugs in");
        let said = add.join().expect("ends");
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    });
    assert!(net.show("a").members.iter().all(|member| member.live));
}

#[test]
fn a_member_of_which_no_lane_is_proven_is_not_said_to_carry_traffic() {
    let net = with_free_links(3, "eth0,eth1", &[]);
    let headline = || net.ok("a", &format!("show {BOND}")).lines().next().unwrap_or_default().to_owned();
    assert_eq!(net.show("a").health, Health::Ok);
    // One that was forced in, over a dead port.
    net.host("a").link(2).expect("a link").cut(Way::Both).expect("cuts");
    assert_eq!(net.say("a", &format!("member add {BOND} eth2 --force")).code, 0);
    let bond = net.show("a");
    assert_eq!(bond.health, Health::Degraded);
    assert_eq!(bond.reason, "'eth2': no lane of it is proven");
    assert_eq!(
        headline(),
        "bond0: degraded, 2 of 3 members carry traffic, 1 peer: 'eth2': no lane of it is proven"
    );
    net.host("a").link(2).expect("a link").restore().expect("mends");
    until("a whole bond", || net.show("a").health, |health| *health == Health::Ok);
    // One whose port died later.
    net.host("a").link(1).expect("a link").cut(Way::Both).expect("cuts");
    until("a degraded bond", || net.show("a").reason, |r| r == "'eth1': no lane of it is proven");
    net.host("a").link(1).expect("a link").restore().expect("mends");
    until("a whole bond", || net.show("a").health, |health| *health == Health::Ok);
}

#[test]
fn plain_hosts_alone_speak_against_no_member() {
    let link = || LinkSpec::switch(0, None);
    let net = Net::bonded(Topology::empty("lab", 1).host([link(), link()]).plain_host([link()]));
    net.host("a").wait_ping(net.host("b").ipv4(), SOON).expect("reaches");
    assert_eq!(net.show("a").health, Health::Ok);
}

#[test]
fn a_member_that_joins_inherits_no_addresses() {
    // Of one that is gone while no daemon looks, and while one does.
    for dies in [true, false] {
        let net = Net::alone();
        let (a, far) = (net.host("a"), net.lab().switch(0).expect("a switch").name());
        net.start("a", &[]);
        net.ok("a", &format!("bond add {BOND} --member eth0"));
        sh(a, &format!("ip -n {far} link set a-eth1 down"));
        let addresses = || sh(a, &format!("ip -4 -o address show dev {BOND}"));
        let has_its_own = || assert!(addresses().contains(a.ipv4()), "{}", addresses());
        has_its_own();
        std::thread::scope(|scope| {
            scope.spawn(|| net.say("a", &format!("member add {BOND} eth1 --force")));
            until("it to join", || is_joining(&net, "eth1"), |joining| *joining);
            if dies {
                net.kill("a");
            }
            sh(a, "ip link del eth0");
            if dies {
                net.start("a", &[]);
            } else {
                until("eth0 to be missed", || net.show("a").absent, |absent| absent == &["eth0"]);
                net.ok("a", &format!("member del {BOND} eth1 --force"));
            }
        });
        has_its_own();
        sh(a, &format!("ip link add eth0 type veth peer name a-eth0 netns {far}"));
        sh(a, &format!("ip -n {far} link set a-eth0 master br0 up"));
        until("eth0 to be back", || member_names(&net), |names| names == &["eth0"]);
        has_its_own();
    }
}
