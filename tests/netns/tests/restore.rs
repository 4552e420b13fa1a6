//! `bond del`, and a `bond add` that fails, leave the machine as it was.

use linkbraid_lab::{Host, Topology, tool};
use linkbraid_netns_tests::{BOND, Net, machine};

/// How to run the daemon, for both kinds of hook.
const HOOKS: [[&str; 2]; 2] = [["--hook", "tcx"], ["--hook", "clsact"]];

/// A host with four links that have a bit of everything: addresses of both families, secondaries, static routes, the
/// default route, MTUs of their own, a qdisc, somebody's filter, promiscuous mode, an alias.
fn furnished() -> Net {
    let net = Net::up(Topology::symmetric(2, 4, Some(100)));
    let host = net.host("a");
    for line in [
        "ip address add 198.18.0.101/24 dev eth0",
        "ip address add 198.18.0.102/24 dev eth0 label eth0:two",
        "ip address add 198.18.1.1/24 brd 198.18.1.255 dev eth0",
        "ip address add 2001:db8:1::1/64 dev eth0",
        "ip address add 2001:db8:2::1/128 dev eth1",
        "ip address add 198.18.2.1/24 dev eth1",
        "ip route add default via 198.18.0.2 dev eth0 metric 50",
        "ip route add 198.18.3.0/24 via 198.18.1.254 dev eth0 src 198.18.1.1",
        "ip route add 198.18.4.0/24 dev eth1 table 100",
        "ip route add 2001:db8:3::/64 via 2001:db8::2 dev eth0 metric 7",
        "ip -6 route add default via 2001:db8::2 dev eth0",
        "ip link set eth1 alias uplink",
        "ip link set eth2 promisc on",
        "tc qdisc add dev eth2 clsact",
        "tc qdisc replace dev eth3 root pfifo limit 77",
        "ip link set eth3 gso_max_size 20000",
    ] {
        host.sh(line).unwrap_or_else(|e| panic!("{e}"));
    }
    // One instruction: never matches.
    let filter = ["filter", "add", "dev", "eth2", "ingress", "prio", "7", "bpf", "bytecode", "1,6 0 0 0,"];
    tool::run(host.command("tc").args(filter)).unwrap_or_else(|e| panic!("{e}"));
    net
}

/// Removes whatever keeps link-local addresses unproven, and reads the state.
#[track_caller]
fn before(net: &Net) -> String {
    machine::settled(net, "a")
}

/// With a bond up, the state shows it: the programs on every interface, and MACs as they were. Without this, "as it
/// was" could mean that nobody looked.
#[track_caller]
fn seen(net: &Net, before: &str, hook: &str) {
    let state = machine::state(net, "a");
    let empty = |text: &str| text.matches("gress: 0 tcx programs, filters:\n#").count();
    for (nic, side) in [("eth0", "ingress"), ("eth1", "ingress"), ("eth3", "ingress"), (BOND, "egress")] {
        let mark = format!("# {nic} {side}: ");
        let programs = state.split(&mark).nth(1).unwrap_or_else(|| panic!("no '{mark}' in {state}"));
        let (tcx, filters) =
            programs.split_once('#').expect("more follows").0.split_once('\n').expect("lines");
        assert_eq!(tcx.starts_with("0 "), hook == "clsact", "{nic} {side}: {tcx}");
        assert_eq!(filters.contains("lb_"), hook == "clsact", "{nic} {side}: {filters}");
    }
    assert!(empty(before) > 6, "{before}");
    for link in 0..4 {
        let mac = net.host("a").mac(link);
        let nic = net.host("a").sh(&format!("ip -o link show eth{link}")).expect("reads");
        assert!(nic.contains(&mac) && nic.contains(&format!("master {BOND}")), "{nic}");
    }
}

#[test]
fn bond_del_leaves_the_machine_as_it_was() {
    let net = furnished();
    let before = before(&net);
    for hook in HOOKS {
        net.start("a", &hook);
        for members in ["eth0,eth1,eth2,eth3", "eth3,eth2,eth1,eth0"] {
            net.ok(
                "a",
                &format!("bond add {BOND} --member {members} --address 198.18.9.1/24 --move-address"),
            );
            assert_eq!(net.show("a").hook, hook[1]);
            seen(&net, &before, hook[1]);
            let default = net.host("a").sh("ip route show default").expect("reads");
            assert!(default.contains(&format!("dev {BOND}")), "{default}");
            net.ok("a", &format!("bond del {BOND}"));
            machine::as_it_was(&net, "a", &before);
        }
        net.stop("a");
    }
}

#[test]
fn bond_del_after_changes_leaves_the_machine_as_it_was() {
    let net = furnished();
    let before = before(&net);
    for hook in HOOKS {
        net.start("a", &hook);
        net.ok("a", &format!("bond add {BOND} --member eth2,eth3"));
        net.ok("a", &format!("bond set {BOND} --mtu 1400 --policy flow"));
        net.ok("a", &format!("member add {BOND} eth1"));
        net.ok("a", &format!("member set {BOND} eth1 --weight 7"));
        net.ok("a", &format!("member del {BOND} eth2"));
        net.ok("a", &format!("bond del {BOND}"));
        machine::as_it_was(&net, "a", &before);
        net.stop("a");
    }
}

#[test]
fn bond_del_by_a_later_daemon_leaves_the_machine_as_it_was() {
    let net = furnished();
    let before = before(&net);
    for hook in HOOKS {
        net.start("a", &hook);
        net.ok("a", &format!("bond add {BOND} --member eth0,eth1,eth2,eth3 --move-address"));
        net.kill("a");
        net.start("a", &hook);
        net.ok("a", &format!("bond del {BOND}"));
        machine::as_it_was(&net, "a", &before);
        net.stop("a");
    }
}

#[test]
fn a_member_that_leaves_is_as_it_was() {
    let net = furnished();
    net.start("a", &[]);
    let before = before(&net);
    net.ok("a", &format!("bond add {BOND} --member eth3"));
    let with_one = machine::settled(&net, "a");
    net.ok("a", &format!("member add {BOND} eth2"));
    net.ok("a", &format!("member del {BOND} eth2"));
    // The bond's state file tells of the same members, and nothing else of eth2 is left.
    machine::as_it_was(&net, "a", &with_one);
    net.ok("a", &format!("bond del {BOND}"));
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn two_bonds_do_not_touch_each_other() {
    let net = furnished();
    let before = before(&net);
    net.start("a", &[]);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1 --move-address"));
    let with_one = machine::settled(&net, "a");
    net.ok("a", "bond add bond1 --member eth2,eth3");
    net.ok("a", "bond del bond1");
    machine::as_it_was(&net, "a", &with_one);
    net.ok("a", "bond add bond1 --member eth2,eth3");
    net.ok("a", &format!("bond del {BOND}"));
    net.ok("a", "bond del bond1");
    machine::as_it_was(&net, "a", &before);
}

/// Why a `bond add` fails: what to set up, the members and options to give, what to take down again, and what the
/// error says.
type Failure = (&'static str, fn(Host<'_>), &'static str, fn(Host<'_>), &'static str);

fn sh(host: Host<'_>, lines: &[&str]) {
    for line in lines {
        host.sh(line).unwrap_or_else(|e| panic!("{e}"));
    }
}

const FAILURES: [Failure; 4] = [
    (
        "the third member cannot join: a macvlan holds it",
        |host| sh(host, &["ip link add link eth2 name mv0 type macvlan"]),
        "--member eth0,eth1,eth2 --move-address",
        |host| sh(host, &["ip link del mv0"]),
        "cannot join the bond",
    ),
    (
        "the second member cannot have the MTU: the link under it has less",
        |host| sh(host, &["ip link add link eth2 name mv0 type macvlan"]),
        "--member eth0,mv0 --mtu 9000 --move-address",
        |host| sh(host, &["ip link del mv0"]),
        "cannot set MTU 9000",
    ),
    (
        "the last address is already the bond's",
        |_| {},
        "--member eth0,eth1 --address 198.18.0.1/24 --move-address",
        |_| {},
        "cannot add address '198.18.0.1/24'",
    ),
    (
        "a route of the second member cannot be put back: it has a nexthop object",
        |host| {
            sh(host, &["ip nexthop add id 5 via 198.18.2.9 dev eth1", "ip route add 198.18.8.0/24 nhid 5"])
        },
        "--member eth0,eth1 --move-address",
        |host| sh(host, &["ip nexthop del id 5"]),
        "cannot read the interface",
    ),
];

#[test]
fn a_failed_bond_add_leaves_the_machine_as_it_was() {
    let net = furnished();
    let host = net.host("a");
    for hook in HOOKS {
        net.start("a", &hook);
        for (why, prepare, words, undo, error) in FAILURES {
            let bare = before(&net);
            prepare(host);
            let before = before(&net);
            let said = net.say("a", &format!("bond add {BOND} {words}"));
            assert_eq!((said.code, said.out.as_str()), (1, ""), "{why}: {said:?}");
            assert!(said.err.contains(error), "{why}: {said:?}");
            machine::as_it_was(&net, "a", &before);
            assert_eq!(net.ok("a", "show --json").trim(), "[]");
            undo(host);
            machine::as_it_was(&net, "a", &bare);
        }
        // And after all that it can be done.
        let before = before(&net);
        net.ok("a", &format!("bond add {BOND} --member eth0,eth1,eth2 --move-address"));
        net.ok("a", &format!("bond del {BOND}"));
        machine::as_it_was(&net, "a", &before);
        net.stop("a");
    }
}

#[test]
fn a_failed_member_add_leaves_bond_and_machine_as_they_were() {
    let net = furnished();
    let host = net.host("a");
    net.start("a", &[]);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth2 --move-address"));
    // It has addresses and routes, which move before it turns out that it cannot join.
    sh(host, &["ip link add link eth1 name mv0 type macvlan"]);
    let before = before(&net);
    let bond = net.show("a");
    let said = net.say("a", &format!("member add {BOND} eth1"));
    assert_eq!(said.code, 1, "{said:?}");
    machine::as_it_was(&net, "a", &before);
    let now = net.show("a");
    assert_eq!((now.members.len(), now.addresses, now.moved), (2, bond.addresses, bond.moved));
}
