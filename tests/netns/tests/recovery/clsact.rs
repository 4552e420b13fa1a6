//! clsact hooks, of which the queueing discipline may be somebody else's.

use super::{die_while_joining, member_names, sh, wait_proven};
use linkbraid_lab::{Host, Topology};
use linkbraid_netns_tests::{BOND, Net, machine};

const CLSACT: [&str; 2] = ["--hook", "clsact"];

#[test]
fn clsact_hooks_of_a_join_that_was_begun_are_gone() {
    let net = Net::up(Topology::symmetric(2, 4, None));
    let a = net.host("a");
    // A queueing discipline of somebody's, which stays.
    sh(a, "tc qdisc add dev eth3 clsact");
    let bare = [2, 3].map(|link| (link, tc(a, link)));
    net.start("a", &CLSACT);
    net.start("b", &[]);
    for name in ["a", "b"] {
        net.ok(name, &format!("bond add {BOND} --member eth0,eth1"));
    }
    net.wait_tables(&["a", "b"]);
    for (link, before) in bare {
        wait_proven(&net, "a", 4);
        die_while_joining(&net, link);
        assert!(tc(a, link).contains("lb_ingress"), "{}", tc(a, link));
        net.start("a", &CLSACT);
        assert_eq!(member_names(&net), ["eth0", "eth1"]);
        assert_eq!(tc(a, link), before);
    }
}

/// Queueing disciplines and filters of a link.
fn tc(host: Host<'_>, link: usize) -> String {
    let shows = ["qdisc show dev", "filter show ingress dev", "filter show egress dev"];
    shows.map(|show| sh(host, &format!("tc {show} eth{link}"))).concat()
}

#[test]
fn clsact_hooks_of_a_bond_that_somebody_deleted_are_gone() {
    let net = Net::up(Topology::symmetric(2, 3, None));
    let a = net.host("a");
    sh(a, "tc qdisc add dev eth2 clsact");
    let before = machine::settled(&net, "a");
    net.start("a", &CLSACT);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1,eth2"));
    net.kill("a");
    sh(a, &format!("ip link del {BOND}"));
    net.start("a", &CLSACT);
    assert_eq!(net.ok("a", "show --json").trim(), "[]");
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn a_clsact_hook_removed_by_hand_does_not_keep_the_bond() {
    let net = Net::up(Topology::symmetric(2, 2, None));
    let a = net.host("a");
    let before = machine::settled(&net, "a");
    net.start("a", &CLSACT);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1"));
    sh(a, "tc qdisc del dev eth1 clsact");
    net.ok("a", &format!("bond del {BOND}"));
    machine::as_it_was(&net, "a", &before);
}
