//! Interfaces that get another name or another MAC.

use super::{sh, until, wait_proven};
use linkbraid_api::Health;
use linkbraid_lab::Topology;
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::{BOND, Net, SOON, machine};
use std::fs;

#[test]
fn a_bond_renamed_while_no_daemon_looks_is_taken_over() {
    let net = Net::up(Topology::symmetric(2, 3, None));
    let (a, b) = (net.host("a"), net.host("b"));
    let before = machine::settled(&net, "a");
    net.start("a", &[]);
    net.start("b", &[]);
    for name in ["a", "b"] {
        net.ok(name, &format!("bond add {BOND} --member eth0,eth1"));
    }
    net.wait_tables(&["a", "b"]);
    net.kill("a");
    sh(a, &format!("ip link set {BOND} down name lan0"));
    sh(a, "ip link set lan0 up");
    net.start("a", &[]);
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    assert_eq!(
        sh(a, "ip -br link show master lan0").lines().filter(|line| line.starts_with("eth")).count(),
        2
    );
    // Peers are heard before their lanes are proven.
    let is_ok = |bonds: &String| bonds.starts_with("lan0: ok, 2 of 2 members");
    until("lan0 to be ok", || net.ok("a", "show lan0"), is_ok);
    // A daemon that dies while it renames the bond leaves both files; whichever is read first, it is one bond.
    net.kill("a");
    let dir = a.state_dir();
    let text = fs::read_to_string(dir.join("lan0.json")).expect("is there");
    for name in [BOND, "zan0"] {
        let text = text.replace("\"name\": \"lan0\"", &format!("\"name\": \"{name}\""));
        fs::write(dir.join(format!("{name}.json")), text).expect("writes");
    }
    net.start("a", &[]);
    until("lan0 to be ok", || net.ok("a", "show"), is_ok);
    let files = fs::read_dir(&dir).expect("lists").flatten().map(|file| file.path());
    let bonds: Vec<_> = files.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect();
    assert_eq!(bonds, [dir.join("lan0.json")]);
    // The name it had is free, and so is its place.
    net.ok("a", &format!("bond add {BOND} --member eth2"));
    net.kill("a");
    net.start("a", &[]);
    until("lan0 to be ok", || net.ok("a", "show lan0"), is_ok);
    assert_eq!(net.show("a").members.len(), 1);
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    net.ok("a", &format!("bond del {BOND}"));
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    net.ok("a", "bond del lan0");
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn a_bond_renamed_under_its_daemon_is_deleted_whole() {
    let net = Net::up(Topology::symmetric(2, 2, None));
    let a = net.host("a");
    let before = machine::settled(&net, "a");
    net.start("a", &[]);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1"));
    sh(a, &format!("ip link set {BOND} down name lan0"));
    sh(a, "ip link set lan0 up");
    let told = || net.show("a").events.iter().any(|event| event.reason == "renamed");
    until("the event", told, |told| *told);
    net.ok("a", &format!("bond del {BOND}"));
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn two_bonds_that_swapped_their_names_are_told_apart() {
    let net = Net::up(Topology::symmetric(2, 4, None));
    let a = net.host("a");
    let before = machine::settled(&net, "a");
    net.start("a", &[]);
    net.ok("a", "bond add bond0 --member eth0,eth1");
    net.ok("a", "bond add bond1 --member eth2,eth3");
    net.kill("a");
    for line in ["bond0 down name x", "bond1 down name bond0", "x name bond1", "bond0 up", "bond1 up"] {
        sh(a, &format!("ip link set {line}"));
    }
    // Refused, and nothing is touched.
    net.start("a", &[]);
    assert_eq!(net.ok("a", "show --json").trim(), "[]");
    assert!(net.log("a").contains("which is the name of another bond"), "{}", net.log("a"));
    assert_eq!(
        sh(a, "ip -br link show master bond1").lines().filter(|line| line.starts_with("eth")).count(),
        2
    );
    for name in ["bond0", "bond1"] {
        net.ok("a", &format!("bond del {name}"));
    }
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn a_member_that_gets_another_mac_is_used_with_it() {
    let net = Net::up(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    // A macvlan shows what a NIC does whose MAC is changed while it is up.
    for link in 0..2 {
        sh(a, &format!("ip link add link eth{link} name mv{link} type macvlan mode passthru"));
    }
    for address in &a.spec().addresses {
        sh(a, &format!("ip address del {address} dev eth0"));
        sh(a, &format!("ip address add {address} dev mv0 nodad"));
    }
    net.start("a", &[]);
    net.start("b", &[]);
    net.ok("a", &format!("bond add {BOND} --member mv0,mv1"));
    net.ok("b", &format!("bond add {BOND} --member eth0,eth1"));
    net.wait_tables(&["a", "b"]);
    wait_proven(&net, "a", 4);
    // Of the second member, then of the one that gave the bond its MAC.
    for (link, mac) in [(1, "02:00:5e:10:00:01"), (0, "02:00:5e:10:00:02")] {
        sh(a, &format!("ip link set mv{link} address {mac}"));
        until("its MAC to be known", || net.show("a").members[link].mac.clone(), |now| now == mac);
        net.wait_tables(&["a", "b"]);
        wait_proven(&net, "a", 4);
        wait_proven(&net, "b", 4);
        a.wait_ping(b.ipv4(), SOON).expect("reaches");
        b.wait_ping(a.ipv4(), SOON).expect("reaches");
        let bond = net.show("a");
        assert!(bond.members.iter().any(|member| member.mac == bond.mac), "{bond:?}");
        assert_eq!(bond.health, Health::Ok, "{bond:?}");
    }
    let flow = Flow::start(&net, "b", "a");
    flow.loses_nothing_more();
}
