//! A daemon that dies at an awkward step, and what an administrator does to the machine meanwhile: the next daemon ends
//! what was begun, touches nothing that is not the bond's, and the host stays reachable.

mod clock;
mod clsact;
mod ending;
mod join;
mod mounts;
mod removal;
mod rename;
mod rights;
mod upgrade;

use linkbraid_lab::{Topology, Way};
use linkbraid_netns_tests::{BOND, Net, machine, sh, until};
use std::fs;
use std::path::PathBuf;

/// All lanes between a and b are proven.
#[track_caller]
fn wait_proven(net: &Net, name: &str, lanes: usize) {
    let up = || net.lanes(name).iter().filter(|lane| lane.state == "up").count();
    until(&format!("{lanes} proven lanes of {name}"), up, |up| *up == lanes);
}

fn member_names(net: &Net) -> Vec<String> {
    net.show("a").members.into_iter().map(|member| member.interface).collect()
}

/// Host a with a bond of these members, one of its other links free, and b with a bond of two.
fn with_free_links(links: usize, members: &str, options: &[&str]) -> Net {
    let net = Net::up(Topology::symmetric(2, links, None));
    net.start("a", options);
    net.start("b", &[]);
    net.ok("a", &format!("bond add {BOND} --member {members}"));
    net.ok("b", &format!("bond add {BOND} --member eth0,eth1"));
    net.wait_tables(&["a", "b"]);
    wait_proven(&net, "a", 2 * members.split(',').count());
    net
}

fn is_joining(net: &Net, nic: &str) -> bool {
    net.show("a").members.iter().any(|member| member.interface == nic && !member.live)
}

/// A daemon dies while a link, whose port is dead, is joining.
fn die_while_joining(net: &Net, link: usize) {
    let nic = format!("eth{link}");
    net.host("a").link(link).expect("a link").cut(Way::Both).expect("cuts");
    std::thread::scope(|scope| {
        scope.spawn(|| net.say("a", &format!("member add {BOND} {nic}")));
        until("it to join", || is_joining(net, &nic), |joining| *joining);
        net.kill("a");
    });
}

/// The file that holds what the daemon of a knows of its bond.
fn state_file(net: &Net) -> PathBuf {
    net.host("a").state_dir().join(format!("{BOND}.json"))
}

#[test]
fn a_join_is_rolled_back_once_and_never_again() {
    let net = with_free_links(3, "eth0,eth1", &[]);
    let a = net.host("a");
    die_while_joining(&net, 2);
    net.start("a", &[]);
    assert_eq!(member_names(&net), ["eth0", "eth1"]);
    // It is somebody else's from now on.
    sh(a, "ip address add 198.18.7.1/24 dev eth2");
    sh(a, "ip link set eth2 mtu 1400 up");
    sh(a, "ip route add 198.18.8.0/24 via 198.18.7.9");
    let before = machine::settled(&net, "a");
    net.kill("a");
    net.start("a", &[]);
    net.wait_tables(&["a", "b"]);
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn what_could_not_be_put_back_is_tried_again_and_nothing_else() {
    let net = Net::up(Topology::symmetric(2, 3, None));
    let a = net.host("a");
    let before = machine::settled(&net, "a");
    net.start("a", &[]);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1,eth2"));
    net.kill("a");
    // No interface takes such an MTU.
    let text = fs::read_to_string(state_file(&net)).expect("is there");
    let mut state: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
    state["members"][1]["before"]["link"]["mtu"] = 1_000_000.into();
    fs::write(state_file(&net), state.to_string()).expect("writes");
    sh(a, &format!("ip link del {BOND}"));
    // One of them is somebody else's already.
    sh(a, "ip link add br9 type bridge");
    sh(a, "ip link set eth2 master br9");
    for _ in 0..2 {
        net.start("a", &[]);
        assert_eq!(net.ok("a", "show --json").trim(), "[]");
        assert!(sh(a, "ip -br link show master br9").contains("eth2"));
        net.kill("a");
        // And of the next daemon's no more than eth2 is.
        sh(a, "ip link set eth0 mtu 1400");
    }
    net.start("a", &[]);
    assert_eq!(net.ok("a", "show --json").trim(), "[]");
    assert!(sh(a, "ip link show eth0").contains("mtu 1400"));
    let said = net.say("a", &format!("bond del {BOND}"));
    assert!(said.code == 1 && said.err.contains("eth1: cannot put the interface back"), "{said:?}");
    fs::write(state_file(&net), text).expect("writes");
    for line in ["eth2 nomaster", "eth0 mtu 1500"] {
        sh(a, &format!("ip link set {line}"));
    }
    sh(a, "ip link del br9");
    net.ok("a", &format!("bond del {BOND}"));
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn a_member_that_somebody_took_is_forgotten_whole() {
    let net = with_free_links(3, "eth0,eth1,eth2", &[]);
    let a = net.host("a");
    net.kill("a");
    sh(a, "ip link set eth2 nomaster");
    sh(a, "ip link add br9 type bridge");
    sh(a, "ip link set eth2 master br9");
    net.start("a", &[]);
    assert_eq!(member_names(&net), ["eth0", "eth1"]);
    // Neither in the file that the next daemon reads, nor with a program of ours on it.
    net.kill("a");
    sh(a, "ip link set eth2 nomaster");
    net.start("a", &[]);
    assert_eq!(member_names(&net), ["eth0", "eth1"]);
    let state = machine::state(&net, "a");
    assert!(state.contains("# eth2 ingress: 0 tcx programs, filters:\n#"), "{state}");
}
