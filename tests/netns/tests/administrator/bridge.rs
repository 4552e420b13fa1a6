//! `bridge` and `ip link ... type bridge`: what they set of a bond's bridge and of its ports is put back.

use super::commands::{wait_event, wait_ok};
use linkbraid_lab::{LinkSpec, Topology};
use linkbraid_netns_tests::{BOND, Net, SOON, sh, until};

/// What `bridge -d link` says of a port.
fn port(net: &Net, nic: &str) -> String {
    sh(net.host("a"), &format!("bridge -d link show dev {nic}"))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn flags_of_members_and_of_the_internal_port_are_put_back() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    let all = sh(a, "ip -br link show type veth");
    let internal = all.split([' ', '@']).find(|word| word.starts_with("lbint")).expect("is there").to_owned();
    for (nic, reason) in [("eth1", "flags_put_back"), (&internal, "port_put_back")] {
        let before = port(&net, nic);
        for flag in [
            "isolated off",
            "learning on",
            "locked on",
            "neigh_suppress on",
            "state 0",
            "state blocking",
            "flood FLOOD mcast_flood FLOOD bcast_flood FLOOD",
        ] {
            let flood = if before.contains(" flood on") { "off" } else { "on" };
            sh(a, &format!("bridge link set dev {nic} {}", flag.replace("FLOOD", flood)));
            until(&format!("{nic}: {flag}"), || port(&net, nic), |now| *now == before);
            wait_event(&net, "a", reason);
            wait_ok(&net, "a");
        }
    }
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
}

#[test]
fn what_the_bridge_is_told_to_do_is_put_back() {
    let net = Net::bonded(Topology::symmetric(2, 2, None).plain_host([LinkSpec::switch(0, None)]));
    let (a, c) = (net.host("a"), net.host("c"));
    // A port of somebody's, which forwards again, too.
    for line in [
        "ip link add port0 type veth peer name guest0",
        "ip link set guest0 up",
        "ip link set port0 master bond0 up",
    ] {
        sh(a, line);
    }
    for switch in ["stp_state", "vlan_filtering", "mcast_snooping"] {
        match a.sh(&format!("ip link set {BOND} type bridge {switch} 1")) {
            // Nobody can switch on what the kernel does not have.
            Err(error) if switch == "vlan_filtering" && error.to_string().contains("not supported") => {
                continue;
            }
            set => _ = set.unwrap_or_else(|e| panic!("{e}")),
        }
        let value = || {
            let said = sh(a, &format!("ip -d -o link show {BOND}"));
            let is_name = |word: &&str| *word != switch;
            said.split_whitespace().skip_while(is_name).nth(1).unwrap_or_default().to_owned()
        };
        until(switch, value, |value| value == "0");
        let text = wait_event(&net, "a", "bridge_put_back");
        assert!(text.contains(switch), "{text}");
        for nic in ["eth0", "eth1", "port0"] {
            until("a port that forwards", || port(&net, nic), |port| port.contains("state forwarding"));
        }
        wait_ok(&net, "a");
        a.wait_ping(c.ipv4(), SOON).expect("reaches");
    }
    assert!(sh(a, &format!("ip -d link show {BOND}")).contains("forward_delay 0 "));
    // While no daemon runs, too: the next one puts it back.
    net.kill("a");
    sh(a, &format!("ip link set {BOND} type bridge mcast_snooping 1"));
    sh(a, "bridge link set dev eth0 isolated off");
    net.start("a", &[]);
    wait_event(&net, "a", "bridge_put_back");
    until("a member's flags", || port(&net, "eth0"), |port| port.contains("isolated on"));
    wait_ok(&net, "a");
}
