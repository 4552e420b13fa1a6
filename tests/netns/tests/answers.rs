//! Plain hosts are told different members, so that they send to the bond over all its links.

use linkbraid_lab::{LinkSpec, Topology, Way, wait_until};
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::{BOND, Net, SOON};
use std::collections::BTreeSet;

const RATE: u32 = 100;
const PLAIN: [&str; 3] = ["b", "c", "d"];

/// A host with three links, and three plain hosts.
fn three_plain() -> Net {
    let link = || LinkSpec::switch(0, Some(RATE));
    let topology = Topology::empty("lab", 1).host([link(), link(), link()]);
    Net::bonded(topology.plain_host([link()]).plain_host([link()]).plain_host([link()]))
}

/// The MAC that a plain host sends to for an address.
fn told(net: &Net, name: &str, address: &str) -> String {
    let text = net.host(name).sh(&format!("ip neigh show {address}")).unwrap_or_default();
    let mut words = text.split_whitespace().skip_while(|word| *word != "lladdr").skip(1);
    words.next().unwrap_or_default().to_owned()
}

#[track_caller]
fn wait_told(net: &Net, address: &str, wanted: impl Fn(&BTreeSet<String>) -> bool) -> Vec<String> {
    let all = || PLAIN.map(|name| told(net, name, address)).to_vec();
    wait_until(SOON, "plain hosts to be spread", all, |all| wanted(&all.iter().cloned().collect()))
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn plain_hosts_send_over_different_members() {
    let net = three_plain();
    let a = net.host("a");
    let macs: BTreeSet<String> = (0..3).map(|link| a.mac(link)).collect();
    for address in [a.ipv4(), a.ipv6()] {
        for name in PLAIN {
            net.host(name).wait_ping(address, SOON).expect("reaches");
        }
        wait_told(&net, address, |told| *told == macs);
    }
    // A question of ours to everyone names the bond's MAC; all are put right again.
    a.sh(&format!("ip neigh flush dev {BOND}")).expect("flushes");
    for name in PLAIN {
        a.wait_ping(net.host(name).ipv4(), SOON).expect("reaches");
    }
    wait_told(&net, a.ipv4(), |told| *told == macs);
    // What they send really comes in over each.
    let before: Vec<u64> = net.show("a").members.iter().map(|member| member.rx_frames).collect();
    let flows: Vec<Flow> = PLAIN.iter().map(|name| Flow::start(&net, name, "a")).collect();
    flows.iter().for_each(Flow::loses_nothing_more);
    let after = net.show("a").members;
    let moved: Vec<bool> = after.iter().zip(&before).map(|(m, before)| m.rx_frames > before + 100).collect();
    assert_eq!(moved, [true; 3], "{after:?}");
}

#[test]
fn plain_hosts_follow_when_a_member_fails() {
    let net = three_plain();
    let a = net.host("a");
    let macs: BTreeSet<String> = (0..3).map(|link| a.mac(link)).collect();
    for name in PLAIN {
        net.host(name).wait_ping(a.ipv4(), SOON).expect("reaches");
    }
    let all = wait_told(&net, a.ipv4(), |told| *told == macs);
    let flows: Vec<Flow> = PLAIN.iter().map(|name| Flow::start(&net, name, "a")).collect();
    let back: Vec<Flow> = PLAIN.iter().map(|name| Flow::start(&net, "a", name)).collect();
    flows.iter().chain(&back).for_each(|flow| flow.wait_received(100));
    for (link, silent) in [(1, false), (2, true), (0, true)] {
        let (mac, link) = (a.mac(link), a.link(link).expect("a link"));
        if silent { link.cut(Way::Both) } else { link.carrier(false) }.expect("fails");
        let left = macs.iter().filter(|other| **other != mac).cloned().collect();
        wait_told(&net, a.ipv4(), |told| *told == left);
        flows.iter().chain(&back).for_each(Flow::loses_nothing_more);
        if silent { link.restore() } else { link.carrier(true) }.expect("mends");
        wait_told(&net, a.ipv4(), |told| *told == macs);
        flows.iter().chain(&back).for_each(Flow::loses_nothing_more);
    }
    assert_eq!(all.len(), 3);
}
