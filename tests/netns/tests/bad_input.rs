//! Bad input of users: one line, one hint that works, the right exit status, and nothing left behind.

use linkbraid_lab::{LinkSpec, Topology, daemon};
use linkbraid_netns_tests::{BOND, Net, Said, check_hint, machine};
use std::fs;
use std::process::Command;

/// A host with three links and a daemon.
fn one_host() -> Net {
    let net = Net::up(Topology::symmetric(1, 3, None));
    net.start("a", &[]);
    net
}

/// `line` must be refused with status 1, the error and the hint given, and change nothing; then the hint must work.
#[track_caller]
fn refused(net: &Net, line: &str, error: &str, hint: &str) -> Said {
    let before = machine::settled(net, "a");
    let said = net.say("a", line).refused(1, error);
    assert_eq!(said, hint);
    machine::as_it_was(net, "a", &before);
    check_hint(net.host("a"), hint)
}

#[test]
fn interfaces_that_cannot_join() {
    let net = one_host();
    let add = format!("bond add {BOND} --member");
    let cannot = |name: &str, cause: &str| format!("{BOND}: cannot add member '{name}': {cause}");
    refused(&net, &format!("{add} eth0,eth9"), &cannot("eth9", "no such interface"), "ip -br link");
    refused(&net, &format!("{add} eth0,lo"), &cannot("lo", "it is the loopback interface"), "ip -br link");
    net.ok("a", "bond add bond1 --member eth1,eth2");
    refused(
        &net,
        &format!("{add} eth0,eth1"),
        &cannot("eth1", "it is already in 'bond1'"),
        "linkbraid member del bond1 eth1",
    );
    refused(
        &net,
        &format!("{add} bond1"),
        &cannot("bond1", "it is itself a bridge"),
        "ip -d link show bond1",
    );
    net.ok("a", "bond del bond1");
    let host = net.host("a");
    host.sh("ip link add br7 type bridge").expect("adds");
    host.sh("ip link set eth2 master br7").expect("sets");
    refused(
        &net,
        &format!("{add} eth0,eth2"),
        &cannot("eth2", "it is already in 'br7'"),
        "ip link set eth2 nomaster",
    );
    host.sh("ip link add veth7 type veth peer name veth8").expect("adds");
    host.sh(&format!("ip link set veth7 address {}", host.mac(0))).expect("sets");
    refused(
        &net,
        &format!("{add} eth0,veth7"),
        &cannot("veth7", &format!("its MAC {} is that of 'eth0' too", host.mac(0))),
        "ip link set veth7 address 02:00:00:00:00:01",
    );
    // And now they can all join.
    net.ok("a", &format!("{add} eth0,eth1,eth2,veth7"));
}

#[test]
fn the_default_route_moves_only_when_asked() {
    for family in ["-4", "-6"] {
        let net = one_host();
        let gateway = if family == "-4" { "198.18.0.9" } else { "2001:db8::9" };
        let host = net.host("a");
        host.sh(&format!("ip {family} route add default via {gateway} dev eth0")).expect("adds");
        let before = machine::settled(&net, "a");
        let cause = "it carries the default route, and its addresses would move to the bond";
        let error = format!("{BOND}: cannot add member 'eth0': {cause}");
        let done = refused(
            &net,
            &format!("bond add {BOND} --member eth1,eth0"),
            &error,
            &format!("linkbraid bond add {BOND} --member eth1,eth0 --move-address"),
        );
        assert!(done.err.starts_with("linkbraid: warning: "), "what happens to the route is said: {done:?}");
        let route = host.sh(&format!("ip {family} route show default")).expect("reads");
        assert!(route.contains(gateway) && route.contains(&format!("dev {BOND}")), "{route}");
        net.ok("a", &format!("bond del {BOND}"));
        machine::as_it_was(&net, "a", &before);
        net.ok("a", &format!("bond add {BOND} --member eth1"));
        refused(
            &net,
            &format!("member add {BOND} eth0"),
            &error,
            &format!("linkbraid member add {BOND} eth0 --move-address"),
        );
        net.ok("a", &format!("bond del {BOND}"));
        machine::as_it_was(&net, "a", &before);
    }
}

#[test]
fn mixed_mtus() {
    let net = Net::up(
        Topology::empty("lab", 1).host([LinkSpec::switch(0, None), LinkSpec::switch(0, None).mtu(9000)]),
    );
    net.start("a", &[]);
    let before = machine::settled(&net, "a");
    refused(
        &net,
        &format!("bond add {BOND} --member eth0,eth1"),
        &format!("{BOND}: cannot add the bond: mixed MTUs: 'eth0' has 1500, 'eth1' has 9000"),
        &format!("linkbraid bond add {BOND} --member eth0,eth1 --mtu 1500"),
    );
    assert_eq!(net.show("a").mtu, 1500);
    net.ok("a", &format!("bond del {BOND}"));
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn names_in_use_and_names_of_nothing() {
    let net = one_host();
    refused(
        &net,
        "bond add eth2 --member eth0,eth1",
        "eth2: cannot add the bond: an interface of this name exists (a veth)",
        "ip -d link show eth2",
    );
    refused(&net, "bond del bond7", "bond7: no such bond: there are no bonds", "linkbraid show");
    net.ok("a", &format!("bond add {BOND} --member eth0"));
    refused(
        &net,
        &format!("bond add {BOND} --member eth1,eth2"),
        &format!("{BOND}: cannot add the bond: a bond of this name is there already"),
        &format!("linkbraid show {BOND}"),
    );
    for line in ["show", "peers", "lanes", "stats", "bond del", "bond set --mtu 1500"] {
        let error = format!("bond7: no such bond: the bonds are {BOND}");
        refused(&net, &format!("{line} bond7"), &error, "linkbraid show");
    }
    for line in ["peers", "lanes"] {
        let cause = "none of its peers has that address, MAC or host id; it may be a plain host";
        let error = format!("{BOND}: no peer '198.18.0.9': {cause}");
        refused(
            &net,
            &format!("{line} {BOND} --peer 198.18.0.9"),
            &error,
            &format!("linkbraid peers {BOND}"),
        );
    }
    for line in ["member add bond7 eth1", "member del bond7 eth1", "member set bond7 eth1 --weight 5"] {
        refused(&net, line, &format!("bond7: no such bond: the bonds are {BOND}"), "linkbraid show");
    }
    for line in ["member del bond0 eth1", "member set bond0 eth1 --weight 5"] {
        refused(
            &net,
            line,
            &format!("{BOND}: no member 'eth1': its members are eth0"),
            &format!("linkbraid show {BOND}"),
        );
    }
    refused(
        &net,
        &format!("member del {BOND} eth0"),
        &format!("{BOND}: cannot remove member 'eth0': it is the last one"),
        &format!("linkbraid bond del {BOND}"),
    );
}

#[test]
fn wrong_words_change_nothing() {
    let net = one_host();
    let before = machine::settled(&net, "a");
    for line in [
        "bond add",
        "bond add bond0",
        "bond add a-name-that-is-too-long --member eth0",
        "bond add bond0 --member eth0 --address 198.18.0.1",
        "bond add bond0 --member eth0 --address 198.18.0.1/33",
        "bond add bond0 --member eth0 --mtu 100",
        "bond add bond0 --member eth0 --stripe 7",
        "bond add bond0 --member eth0 --policy fast",
        "member set bond0 eth0 --weight 0",
        "member set bond0 eth0 --weight many",
        "bond sett bond0",
        "daemon --hook none",
        "daemon --log a=b=c",
    ] {
        let said = net.say("a", line);
        let error = said.err.lines().next().and_then(|line| line.strip_prefix("linkbraid: error: "));
        let hint = said.refused(2, error.unwrap_or_else(|| panic!("{line}: {said:?}")));
        if !hint.starts_with("linkbraid daemon") {
            check_hint(net.host("a"), &hint);
        }
    }
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn classes_that_cannot_be() {
    let net = one_host();
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1,eth2"));
    let add = format!("class add {BOND}");
    let cannot = |name: &str, cause: &str| format!("{BOND}: cannot add class '{name}': {cause}");
    let show = format!("linkbraid class show {BOND}");
    let no_rest = "it would leave no member for the default class";
    refused(
        &net,
        &format!("{add} urgent --member eth0,eth1,eth2 --match priority=6"),
        &cannot("urgent", no_rest),
        &format!("linkbraid show {BOND}"),
    );
    refused(
        &net,
        &format!("{add} urgent --member eth9 --match priority=6"),
        &format!("{BOND}: no member 'eth9': its members are eth0, eth1, eth2"),
        &format!("linkbraid show {BOND}"),
    );
    refused(
        &net,
        &format!("{add} urgent --member eth2 --match priority=6 --policy mirror"),
        &cannot("urgent", "class 'urgent' mirrors, which needs at least two members"),
        &format!("linkbraid show {BOND}"),
    );
    net.ok("a", &format!("{add} urgent --member eth2 --match udp-port=7000-7010"));
    refused(
        &net,
        &format!("{add} urgent --match priority=6"),
        &cannot("urgent", "a class of this name is there already"),
        &show,
    );
    refused(
        &net,
        &format!("{add} other --match udp-port=7005,host=198.18.0.9"),
        &cannot(
            "other",
            "rule 'udp-port=7005,host=198.18.0.9' can't match: 'udp-port=7000-7010' of class 'urgent' comes first",
        ),
        &show,
    );
    refused(
        &net,
        &format!("class del {BOND} other"),
        &format!("{BOND}: no class 'other': the classes are urgent"),
        &show,
    );
    refused(
        &net,
        "run --class other -- true",
        "other: no such class: the classes are urgent",
        "linkbraid class show",
    );
    refused(
        &net,
        &format!("{add} other --member eth2 --match priority=6"),
        &format!("{BOND}: cannot add class 'other': member 'eth2': it is in class 'urgent' already"),
        &format!("linkbraid class set {BOND} urgent --no-members"),
    );
    net.ok("a", &format!("class set {BOND} urgent --member eth1,eth2"));
    refused(
        &net,
        &format!("member del {BOND} eth0"),
        &format!("{BOND}: cannot remove member 'eth0': it is the last one that is in no class"),
        &format!("linkbraid class set {BOND} urgent --no-members"),
    );
    let mirror = net.say("a", &format!("bond set {BOND} --policy mirror"));
    let error = "bond set: option '--policy': 'mirror' is of classes only; allowed are spread, flow, active-backup, round-robin, \
                 hash=layer2, hash=layer2+3, hash=layer3+4 and hash=vlan+srcmac";
    check_hint(net.host("a"), &mirror.refused(2, error));
}

#[test]
fn rules_that_cannot_match() {
    let net = one_host();
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1,eth2"));
    let hint = "linkbraid class add --help";
    for (rule, error) in [
        ("tcp-port=70000", "rule 'tcp-port=70000': port out of range: 1 to 65535"),
        ("udp-port=9-7", ""),
        ("tcp-port=1,udp-port=1", ""),
        ("dscp=46,ethertype=0x88f7", ""),
    ] {
        let before = machine::settled(&net, "a");
        let said = net.say("a", &format!("class add {BOND} urgent --match {rule}"));
        match error {
            "" => assert_eq!(said.code, 2, "{said:?}"),
            error => assert_eq!(said.refused(2, error), hint),
        }
        machine::as_it_was(&net, "a", &before);
    }
    check_hint(net.host("a"), hint);
    // A class without rules is stopped by the command.
    assert_eq!(net.say("a", &format!("class add {BOND} urgent --member eth2")).code, 2);
}

#[test]
fn a_member_named_twice() {
    let net = one_host();
    let before = machine::settled(&net, "a");
    let said = net.say("a", &format!("bond add {BOND} --member eth0,eth1,eth0"));
    let hint = said.refused(1, &format!("{BOND}: cannot add member 'eth0': it is named twice"));
    machine::as_it_was(&net, "a", &before);
    check_hint(net.host("a"), &hint);
    assert_eq!(net.show("a").members.len(), 2);
}

#[test]
fn no_daemon_is_status_3_and_the_hint_starts_one() {
    let net = Net::up(Topology::symmetric(1, 1, None));
    let socket = net.host("a").socket().display().to_string();
    let error = format!("{socket}: cannot reach the daemon: none is running on this socket");
    for line in ["show", "peers", "lanes", "stats", "bond add bond0 --member eth0", "member del bond0 eth0"] {
        let hint = net.say("a", line).refused(3, &error);
        assert_eq!(hint, format!("linkbraid daemon --socket {socket}"), "{line}");
    }
    check_hint(net.host("a"), &format!("linkbraid daemon --socket {socket}"));
    // One that was killed leaves its socket; that is no daemon either, and a new one takes the place.
    net.start("a", &[]);
    net.kill("a");
    assert!(fs::exists(&socket).expect("readable"));
    net.say("a", "show").refused(3, &error);
    net.start("a", &[]);
    net.ok("a", "show");
    net.stop("a");
    assert!(!fs::exists(&socket).expect("readable"));
}

#[test]
fn two_daemons_on_one_socket() {
    let net = one_host();
    let socket = net.host("a").socket().display().to_string();
    net.ok("a", &format!("bond add {BOND} --member eth0"));
    let before = machine::settled(&net, "a");
    let hint = net
        .say("a", "daemon")
        .refused(1, &format!("{socket}: cannot listen: another daemon listens on this socket"));
    machine::as_it_was(&net, "a", &before);
    assert!(net.runs("a"));
    assert!(check_hint(net.host("a"), &hint).out.contains(BOND));
}

#[test]
fn a_user_who_is_not_root() {
    let net = one_host();
    // Where nobody may read and run it, whatever the rights of the build's folder.
    let copy = net.lab().folder().join("linkbraid");
    let built = daemon::binary().expect("built");
    for name in ["linkbraid", "linkbraid-lab"] {
        fs::copy(built.with_file_name(name), copy.with_file_name(name)).expect("copies");
    }
    let socket = net.host("a").socket();
    let as_nobody = |words: &[&str]| {
        let mut command: Command = net.host("a").linkbraid_command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).args(words);
        Said::by(&mut command)
    };
    let before = machine::settled(&net, "a");
    let said = as_nobody(&["daemon", "--socket", "/tmp/linkbraid-not-root.sock"]);
    let hint = said.refused(1, "daemon: cannot start: needs root");
    assert_eq!(hint, "sudo linkbraid daemon");
    let error = format!(
        "{}: cannot reach the daemon: permission denied; only root may use this socket",
        socket.display()
    );
    let hint = as_nobody(&["show", "--json"]).refused(1, &error);
    assert_eq!(hint, "sudo linkbraid show --json");
    check_hint(net.host("a"), &hint);
    as_nobody(&["bond", "add", BOND, "--member", "eth0"]).refused(1, &error);
    let hint = as_nobody(&["lab", "demo"]).refused(1, "lab: cannot start: network namespaces need root");
    assert_eq!(hint, "sudo linkbraid lab demo");
    machine::as_it_was(&net, "a", &before);
}
