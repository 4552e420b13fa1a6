//! A daemon that takes over from one of another version, whose maps have another layout.

use super::mounts::{Both, HOSTS, wait_bonds};
use super::{sh, until};
use linkbraid_lab::{Topology, Way};
use linkbraid_netns_tests::{BOND, Net, SOON, build, machine};

/// Bonds of two hosts, made by daemons of the other version.
fn bonds_of_another_version(options: &[&str]) -> Net {
    let net = Net::up(Topology::symmetric(2, 2, None));
    let other = build::with_another_layout(&net.lab().folder());
    for name in HOSTS {
        net.start_build(name, &other, options);
        net.ok(name, &format!("bond add {BOND} --member eth0,eth1"));
    }
    wait_bonds(&net);
    net
}

fn nothing_is_lost(options: &[&str]) {
    let net = bonds_of_another_version(options);
    let old = machine::programs(&net, "a");
    let flows = Both::start(&net);
    flows.more();
    HOSTS.iter().for_each(|name| net.kill(name));
    flows.more();
    HOSTS.iter().for_each(|name| net.start(name, options));
    wait_bonds(&net);
    flows.more();
    flows.end();
    for name in HOSTS {
        assert!(net.log(name).contains("its programs are of another version"), "{}", net.log(name));
    }
    let new = machine::programs(&net, "a");
    assert_eq!(new.len(), old.len(), "one in place of each");
    assert!(new.iter().all(|id| !old.contains(id)), "{old:?} {new:?}");
    until(
        "the old ones to be freed",
        || old.iter().filter(|id| machine::has_program(**id)).count(),
        |left| *left == 0,
    );
    // And the next daemon, of the same build, keeps them.
    net.kill("a");
    net.start("a", options);
    wait_bonds(&net);
    assert_eq!(machine::programs(&net, "a"), new);
}

#[test]
fn an_upgrade_with_other_maps_loses_nothing() {
    nothing_is_lost(&[]);
}

#[test]
fn an_upgrade_with_other_maps_loses_nothing_on_clsact() {
    nothing_is_lost(&["--hook", "clsact"]);
}

#[test]
fn an_upgrade_that_is_broken_off_is_ended_by_the_next_daemon() {
    let net = bonds_of_another_version(&[]);
    let old = machine::programs(&net, "a");
    net.kill("a");
    net.start("a", &[]);
    until("it to wait for peers", || net.log("a"), |log| log.contains("its programs are of another version"));
    net.kill("a");
    assert_eq!(machine::programs(&net, "a"), old, "the old ones go on");
    // A link whose port dies meanwhile is found.
    net.start("a", &[]);
    net.host("a").link(1).expect("a link").cut(Way::Both).expect("cuts");
    let (a, b) = (net.host("a"), net.host("b"));
    until("the silent link to be found", || net.show("a").reason, |reason| reason.contains("eth1"));
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    b.wait_ping(a.ipv4(), SOON).expect("reaches");
    net.ok("a", &format!("bond del {BOND}"));
    assert!(machine::programs(&net, "a").is_empty());
    assert!(!sh(a, "ip -br link").contains(BOND));
}
