//! What is refused or fails leaves all bonds as they were, and what others wait for.

use linkbraid_lab::{Topology, wait_until};
use linkbraid_netns_tests::{Net, SOON};
use std::{
    fs,
    thread::{self, sleep},
    time::{Duration, Instant},
};

/// How long it is watched that nothing happens.
const STAYS: Duration = Duration::from_secs(2);

/// A host with four links and a daemon.
fn host() -> Net {
    let net = Net::alone();
    net.start("a", &[]);
    net
}

/// What is said where a command is refused.
#[track_caller]
fn refused(net: &Net, command: &str) -> String {
    let said = net.say("a", command);
    assert_eq!(said.code, 1, "{command}: {}{}", said.out, said.err);
    said.err
}

fn absent(net: &Net, bond: &str) -> Vec<String> {
    net.show_of("a", bond).absent
}

fn members(net: &Net, bond: &str) -> Vec<String> {
    net.members("a", bond)
}

#[track_caller]
fn unplug(net: &Net, bond: &str, nic: &str) {
    net.host("a").sh(&format!("ip link del {nic}")).expect("deletes");
    wait_until(SOON, "it is missed", || absent(net, bond), |absent| absent.contains(&nic.to_owned()))
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn a_file_that_fails_gives_members_and_classes_back() {
    let net = host();
    for (class, first, then) in [
        (
            "match = 'priority=6'\npolicy = 'mirror'",
            "['eth0', { name = 'eth1', weight = 300, class = 'c' }, { name = 'eth2', class = 'c' }]",
            "[bond.bond0]\nmember = ['eth0']\n[bond.bond1]\nmember = ['eth1', 'eth2']\n",
        ),
        (
            "match = 'priority=6'",
            "['eth0', { name = 'eth1', class = 'c' }]",
            "[bond.bond0]\nmember = ['eth1']\n[bond.bond1]\nmember = ['eth0', 'eth2']\n",
        ),
    ] {
        let before = format!(
            "[bond.bond0]\nmember = {first}\naddress = '198.19.7.1/24'\n[bond.bond0.class.c]\n{class}\n"
        );
        net.apply(&before);
        let fails = format!("{then}[bond.bond2]\nmember = ['eth3', 'lo']\n");
        let said = refused(&net, &format!("apply {}", net.file(&fails)));
        assert!(said.contains("loopback") && !said.contains("undone"), "{said}");
        assert_eq!(net.apply(&before), ["nothing to do"]);
        // What the file had made is still the file's to remove.
        assert_eq!(net.apply(""), ["linkbraid bond del bond0"]);
    }
}

#[test]
fn a_bond_goes_on_waiting_for_a_link_that_another_one_could_not_take() {
    let net = host();
    net.ok("a", "bond add bond0 --member eth0,eth1");
    net.ok("a", "bond add bond1 --member eth2");
    unplug(&net, "bond0", "eth1");
    assert!(refused(&net, "member add bond1 eth1").contains("no such interface"));
    assert!(refused(&net, "bond add bond2 --member eth1,eth3").contains("no such interface"));
    assert_eq!(absent(&net, "bond0"), ["eth1"]);
    // One that another bond has is not taken from it because it gets that name.
    net.ok("a", "member add bond1 eth3 --force");
    for command in ["set eth3 down", "set eth3 name eth1", "set eth1 up"] {
        net.host("a").sh(&format!("ip link {command}")).expect("sets");
    }
    let until = Instant::now() + STAYS;
    while Instant::now() < until {
        assert_eq!(members(&net, "bond0"), ["eth0"], "{}", net.log("a"));
        sleep(Duration::from_millis(50));
    }
    assert_eq!(members(&net, "bond1"), ["eth2", "eth1"]);
    net.ok("a", "bond set bond0 --policy flow");
    assert_eq!((absent(&net, "bond0"), members(&net, "bond1").len()), (vec!["eth1".to_owned()], 2));
}

#[test]
fn what_changed_while_a_file_waits_is_looked_at_again() {
    let net = host();
    net.apply("[bond.bond0]\nmember = ['eth2']\n[bond.bond1]\nmember = ['eth0']\n");
    net.ok("a", "member add bond1 eth1 --force");
    let wants = "[bond.bond0]\nmember = ['eth2', 'eth3']\n[bond.bond1]\nmember = ['eth1']\n";
    let file = net.file(wants);
    // Nothing comes in over it, so that it takes some seconds until it is in.
    let far = net.lab().switch(0).expect("a switch").name();
    net.host("a").sh(&format!("ip -n {far} link set a-eth3 down")).expect("sets");
    thread::scope(|scope| {
        let applied = scope.spawn(|| net.say("a", &format!("apply {file}")));
        wait_until(SOON, "eth3 joins", || members(&net, "bond0"), |all| all.len() == 2)
            .unwrap_or_else(|e| panic!("{e}"));
        net.ok("a", "member del bond1 eth1");
        let applied = applied.join().expect("no panic");
        assert!(applied.err.contains("cannot remove member 'eth0': it is the last one"), "{}", applied.err);
    });
    assert_eq!(members(&net, "bond1"), ["eth0"]);
}

#[test]
fn a_file_leaves_a_fabric_to_the_bond_that_has_it() {
    let net = host();
    net.apply("[fabric.fab0]\nnode = 0\nnodes = 2\ntransport = 'shm:SHM'\n");
    net.ok("a", "bond add bond0 --member eth0");
    net.ok("a", "member add bond0 fab0 --force");
    let said = refused(&net, &format!("apply {}", net.file("")));
    assert!(said.contains("it is a member of bond 'bond0'"), "{said}");
    assert_eq!(members(&net, "bond0"), ["eth0", "fab0"]);
}

#[test]
fn what_is_asked_for_is_set_though_it_was_asked_for_before() {
    let net = host();
    let text =
        "[bond.bond0]\nmember = ['eth0']\n[bond.bond0.class.c]\nmatch = 'priority=6'\nfallback = 'block'\n";
    net.apply(text);
    net.ok("a", "member add bond0 eth1 --class c --force");
    assert_eq!(net.apply(text), ["nothing to do"]);
    net.host("a").sh("ip link set eth1 mtu 1400").expect("sets");
    net.ok("a", "bond set bond0 --mtu 1500");
    let link = net.host("a").sh("ip -o link show eth1").expect("shows");
    assert!(link.contains("mtu 1500"), "{link}");
}

#[test]
fn what_cannot_be_kept_on_file_is_not_done() {
    let net = host();
    net.ok("a", "bond add bond0 --member eth0,eth1 --address 198.19.7.1/24 --address 198.19.7.3/24");
    let fabric = format!("--node 0 --nodes 2 --transport shm:{}", net.lab().folder().join("shm").display());
    net.ok("a", &format!("fabric add fab0 {fabric} --address 198.19.8.1/24 --address 198.19.8.3/24"));
    for (to, of, ip) in [("198.19.17.0/24", "bond0", "198.19.7.1"), ("198.19.18.0/24", "fab0", "198.19.8.1")]
    {
        net.host("a").sh(&format!("ip route add {to} dev {of} src {ip}")).expect("adds");
    }
    let words = |command: &str, which: [usize; 2]| -> Vec<String> {
        let text = net.host("a").sh(command).expect("shows");
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.map(|words| which.map(|at| words[at]).join(" ")).collect()
    };
    // A machine without control groups has none for classes.
    let namespace = net.namespace("a");
    let find = format!("find /sys/fs/cgroup -type d -path */linkbraid/{namespace}/bond0/*");
    let groups = || net.host("a").sh(&find).unwrap_or_default();
    let links = || {
        let (links, addresses) = (words("ip -o link", [1, 4]), words("ip -o -4 address", [1, 3]));
        let routes = net.host("a").sh("ip route").expect("shows");
        (links, addresses, routes, net.ok("a", "class show bond0"), groups())
    };
    let before = (links(), net.show("a").settings, net.show("a").members[1].weight_mbit);
    // What is written there takes the place of the file.
    let blocks = ["bond0.json.new", "fab0.fabric.new"].map(|name| net.host("a").state_dir().join(name));
    blocks.iter().for_each(|block| fs::create_dir(block).expect("makes a folder"));
    for command in [
        "bond set bond0 --mtu 1400 --address 198.19.7.2/24 --address 198.19.7.3/24 --latency on --policy flow",
        "member set bond0 eth1 --weight 300",
        "class add bond0 c --member eth1 --match dscp=ef",
        "fabric set fab0 --mtu 1400 --address 198.19.8.2/24 --address 198.19.8.3/24",
    ] {
        let said = refused(&net, command);
        assert!(said.contains("cannot write") && !said.contains("undone"), "{said}");
        assert_eq!(links(), before.0, "{command}");
    }
    assert_eq!((net.show("a").settings, net.show("a").members[1].weight_mbit), (before.1, before.2));
    blocks.iter().for_each(|block| fs::remove_dir(block).expect("removes it"));
    net.ok("a", "bond set bond0 --mtu 1400 --address 198.19.7.2/24 --latency on --policy flow");
}

#[test]
fn a_class_made_by_hand_stays_so_when_files_change_the_order() {
    let net = host();
    let bond = "[bond.bond0]\nmember = ['eth0']\n";
    let first = format!("{bond}[bond.bond0.class.x]\nmatch = 'dscp=ef'\n");
    net.apply(&first);
    net.ok("a", "class add bond0 own --match dscp=le");
    let made =
        net.apply(&first.replace(
            "[bond.bond0.class.x]",
            "[bond.bond0.class.y]\nmatch = 'dscp=af41'\n[bond.bond0.class.x]",
        ));
    assert!(made.iter().any(|command| command.starts_with("linkbraid class add bond0 own")), "{made:?}");
    assert_eq!(net.apply(bond), ["linkbraid class del bond0 y", "linkbraid class del bond0 x"]);
    assert!(net.ok("a", "class show bond0").contains("own"));
}

#[test]
fn a_class_that_a_failed_file_gave_a_member_has_none_again() {
    let net = host();
    let class = "[bond.bond0.class.c]\nmatch = 'priority=6'\nfallback = 'block'\n";
    net.apply(&format!("[bond.bond0]\nmember = ['eth0']\n{class}"));
    let uses = || {
        let text = net.ok("a", "class show bond0 --json");
        serde_json::from_str::<Vec<linkbraid_api::ClassRecord>>(&text).expect("records").remove(0).uses
    };
    wait_until(SOON, "eth0 to be used", uses, |uses| *uses == ["eth0"]).unwrap_or_else(|e| panic!("{e}"));
    let gives = "[bond.bond0]\nmember = ['eth0', { name = 'eth1', class = 'c' }]\n";
    let fails = "[bond.bond2]\nmember = ['eth3', 'lo']\n";
    refused(&net, &format!("apply {}", net.file(&format!("{gives}{class}{fails}"))));
    assert_eq!(uses(), ["eth0"], "a class that never had members is not blocked");
}

#[test]
fn a_file_waits_for_a_member_that_may_be_withdrawn() {
    let net = Net::up(Topology::symmetric(2, 2, None));
    for name in ["a", "b"] {
        net.start(name, &[]);
    }
    net.bond("b");
    net.ok("a", "bond add bond0 --member eth0");
    let proven = || net.lanes("a").iter().filter(|lane| lane.state == "up").count();
    wait_until(SOON, "proven lanes", proven, |proven| *proven == 2).unwrap_or_else(|e| panic!("{e}"));
    // With a carrier, and nobody behind it.
    let far = net.lab().switch(0).expect("a switch").name();
    net.host("a").sh(&format!("ip -n {far} link set a-eth1 nomaster")).expect("sets");
    let file = net.file("[bond.bond0]\nmember = ['eth0', 'eth1']\n");
    thread::scope(|scope| {
        let added = scope.spawn(|| net.say("a", "member add bond0 eth1"));
        wait_until(SOON, "eth1 joins", || members(&net, "bond0"), |all| all.len() == 2)
            .unwrap_or_else(|e| panic!("{e}"));
        let applied = refused(&net, &format!("apply {file}"));
        assert!(applied.contains("no peer answers through it"), "{applied}");
        assert_eq!(added.join().expect("no panic").code, 1);
    });
}

#[test]
fn a_member_that_was_renamed_is_waited_for_by_its_new_name() {
    let net = host();
    net.ok("a", "bond add bond0 --member eth0,eth1,eth2");
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let rename = |from: &str, to: &str| {
        for command in [format!("{from} down"), format!("{from} name {to}"), format!("{to} up")] {
            net.host("a").sh(&format!("ip link set {command}")).expect("sets");
        }
    };
    rename("eth1", "lan1");
    wait_until(SOON, "its new name", || members(&net, "bond0"), |all| all.contains(&"lan1".to_owned()))
        .unwrap_or_else(|e| panic!("{e}"));
    let file = net.host("a").state_dir().join("bond0.json");
    let on_file = || fs::read_to_string(&file).expect("reads");
    wait_until(SOON, "it on file", on_file, |text| text.contains("lan1")).unwrap_or_else(|e| panic!("{e}"));
    net.kill("a");
    net.host("a").sh("ip link del lan1").expect("deletes");
    rename("eth2", "lan2");
    net.start("a", &[]);
    assert_eq!((members(&net, "bond0"), absent(&net, "bond0")), (names(&["eth0", "lan2"]), names(&["lan1"])));
    net.kill("a");
    net.host("a").sh("ip link del lan2").expect("deletes");
    net.start("a", &[]);
    assert_eq!((members(&net, "bond0"), absent(&net, "bond0")), (names(&["eth0"]), names(&["lan1", "lan2"])));
}
