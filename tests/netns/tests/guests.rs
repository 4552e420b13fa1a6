//! Guests of two bonds: their flows use all links between the bonds, and everything else is as it was.

use linkbraid_lab::iperf::{Cc, Traffic};
use linkbraid_lab::{Fault, Host, LinkSpec, Topology, shape, wait_until};
use linkbraid_netns_tests::{GUEST_NIC, Net, SOON, flow::Flow, sh, traffic};

/// What each link carries, Mbit/s.
const RATE: u32 = 100;
/// Of what the links carry together, what one flow between guests carries at least whose buffers are not longer than [`SHORT`].
const PART: f64 = 0.95;
/// The same with buffers of 64 KiB, as guests have them: 0.91 on a quiet machine. A container's TCP keeps too little queued to fill
/// all links with such pieces (docs/design/guest-lanes.md).
const PART_LONG: f64 = 0.85;
/// Bytes that a guest's TCP hands over at once.
const SHORT: u32 = 16_384;

/// Two hosts with four links each, and a guest behind each of them: `c` behind `a` and `d` behind `b`. A plain host, `e`.
fn two_guests() -> Net {
    let switch = || LinkSpec::switch(0, Some(RATE));
    let lab = Topology::symmetric(2, 4, Some(RATE));
    let net = Net::bonded(lab.plain_host([switch()]).plain_host([switch()]).plain_host([switch()]));
    net.move_in("a", "c", 201);
    net.move_in("b", "d", 202);
    net
}

/// Waits until what one host sends to a guest of the other leaves over lanes.
fn wait_for_lanes(net: &Net, from: &str, guest: &str, address: &str) {
    let sends = || {
        let before = net.counter(from, "tx_for_guest");
        let _ = net.host(guest).sh(&format!("ping -q -c 5 -i 0.01 -W 1 {address}"));
        net.counter(from, "tx_for_guest") >= before + 5
    };
    wait_until(SOON, "its frames to take lanes", sends, |is| *is).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn one_flow_between_guests_uses_all_links() {
    let net = two_guests();
    let (a, b) = (net.host("a"), net.host("b"));
    let (near, far) = (net.host("c"), net.host("d"));
    wait_for_lanes(&net, "a", "c", "198.18.0.202");
    wait_for_lanes(&net, "b", "d", "198.18.0.201");
    let to = |address: &str| Traffic { address: Some(address.to_owned()), ..Traffic::tcp(Cc::Cubic, 4) };
    let flow = |from: Host<'_>, server, address: &str, part: f64| {
        let enough = part * 4.0 * f64::from(RATE) * shape::tcp_share(1500, false);
        let outcome = traffic::reaches(from, server, &to(address), |o| o.mbit() >= enough);
        eprintln!("{} to {address}: {outcome:?}", from.name());
    };
    flow(near, far, "198.18.0.202", PART_LONG);
    for guest in [near, far] {
        sh(guest, &format!("ip link set {GUEST_NIC} gso_max_size {SHORT}"));
    }
    flow(near, far, "198.18.0.202", PART);
    flow(far, near, "198.18.0.201", PART);
    flow(a, far, "198.18.0.202", PART);
    flow(near, b, b.ipv4(), PART);
    for address in ["198.18.0.202", "2001:db8::202", b.ipv4(), b.ipv6(), net.host("e").ipv4()] {
        near.wait_ping(address, SOON).unwrap_or_else(|e| panic!("{address}: {e}"));
        let said = near.sh(&format!("ping -q -c 20 -i 0.01 {address}")).unwrap_or_else(|e| panic!("{e}"));
        assert!(said.contains(" 20 received") && !said.contains("duplicates"), "{address}: {said}");
    }
}

#[test]
fn a_guests_flow_survives_a_silent_member_and_a_daemon() {
    let net = two_guests();
    wait_for_lanes(&net, "a", "c", "198.18.0.202");
    let flow = Flow::between([(net.host("c"), "198.18.0.201"), (net.host("d"), "198.18.0.202")]);
    flow.wait_received(100);
    net.host("a").link(1).expect("there").fail(Fault::Silent).expect("sets");
    let gone = || net.show("a").health != linkbraid_api::Health::Ok;
    wait_until(SOON, "the verdict", gone, |is| *is).unwrap_or_else(|e| panic!("{e}"));
    flow.loses_nothing_more();
    net.kill("a");
    net.start("a", &[]);
    flow.loses_nothing_more();
    assert_eq!(flow.end().1, 0, "nothing came twice");
}

/// A machine without `br_netfilter` has nothing to show: its filters do not see what guests send.
#[test]
fn a_filter_that_keeps_guests_frames_is_shown_with_the_rule_that_admits_them() {
    let net = two_guests();
    let (a, guest) = (net.host("a"), net.host("c"));
    let to = net.host("e").ipv4().to_owned();
    guest.wait_ping(&to, SOON).unwrap_or_else(|e| panic!("{e}"));
    let has_it = a.sh("sysctl -q -w net.bridge.bridge-nf-call-iptables=1").is_ok();
    sh(a, "nft add table inet filter");
    sh(a, "nft add chain inet filter forward { type filter hook forward priority 0; policy drop; }");
    let passes = || guest.sh(&format!("ping -q -c 1 -W 1 {to}")).is_ok();
    let shown = || net.show("a").findings.into_iter().find(|found| found.name == "guests_filtered");
    assert_eq!(passes(), !has_it);
    let Some(found) = shown() else {
        assert!(!has_it, "nothing is shown: {:?}", net.show("a"));
        return;
    };
    assert!(has_it && net.show("a").health == linkbraid_api::Health::Degraded, "{found:?}");
    sh(a, found.hint.as_deref().expect("there is one"));
    assert_eq!(shown(), None);
    guest.wait_ping(&to, SOON).unwrap_or_else(|e| panic!("{e}"));
    let ok = || net.show("a").health;
    wait_until(SOON, "health", ok, |health| *health == linkbraid_api::Health::Ok)
        .unwrap_or_else(|e| panic!("{e}"));
}
