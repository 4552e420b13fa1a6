//! TCP in VXLAN over a bond: what its receiver reports of holes is damped as that of bare TCP is.

use linkbraid_lab::iperf::{self, Outcome};
use linkbraid_lab::{Host, Topology, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, traffic};

/// Of each link, Mbit/s: what two cores can send several times over.
const RATE: u32 = 20;
/// Without damping, for each segment that is sent again with it. It is more like a hundred.
const TIMES: u64 = 8;

/// VXLAN over IPv4 on IANA's port, and over IPv6 on the one that Linux has as its default. The data path's own tests have the
/// other kinds of tunnels, which not every kernel has.
const KINDS: [(&str, &str); 2] = [
    ("vxlan4", "id 7 dstport 4789 local LOCAL4 remote REMOTE4"),
    ("vxlan6", "id 8 dstport 8472 local LOCAL6 remote REMOTE6"),
];

/// Makes one end of the `i`th tunnel; its address.
fn add(host: Host<'_>, other: Host<'_>, i: usize) -> String {
    let (name, words) = KINDS[i];
    let words = words.replace("LOCAL4", host.ipv4()).replace("REMOTE4", other.ipv4());
    let words = words.replace("LOCAL6", host.ipv6()).replace("REMOTE6", other.ipv6());
    let address = format!("198.19.{i}.{}", host.index() + 1);
    for line in [
        format!("link add {name} type vxlan {words} dev {BOND}"),
        format!("address add {address}/24 dev {name}"),
        format!("link set {name} up"),
    ] {
        host.sh(&format!("ip {line}")).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    address
}

/// The longest buffer that TCP builds for an interface, in bytes.
fn stripe_bytes(host: Host<'_>, interface: &str) -> String {
    let said = host.sh(&format!("ip -d link show {interface}")).expect("shows");
    said.split_once("gso_max_size ").expect("has one").1.split(' ').next().expect("a number").to_owned()
}

/// Reports that damping dropped or changed so far.
fn damped(net: &Net) -> u64 {
    ["rx_ack_damped", "rx_ack_masked"].map(|counter| net.counter("a", counter)).iter().sum()
}

#[test]
fn tcp_in_vxlan_is_damped() {
    let net = Net::bonded(Topology::symmetric(2, 4, Some(RATE)));
    let (a, b) = (net.host("a"), net.host("b"));
    for (i, (name, _)) in KINDS.iter().enumerate() {
        add(a, b, i);
        let address = add(b, a, i);
        a.wait_ping(&address, SOON).unwrap_or_else(|e| panic!("{name}: {e}"));
        let flow = traffic::tcp().to(&address);
        // TCP's buffers for it are as long as the bond's own.
        let length = stripe_bytes(a, BOND);
        wait_until(SOON, &format!("{name}: {length}"), || stripe_bytes(a, name), |seen| *seen == length)
            .unwrap_or_else(|e| panic!("{e}"));
        net.ok("a", &format!("bond set {BOND} --damping off"));
        let (before, without) = (damped(&net), iperf::run(a, b, &flow).expect("the flow runs"));
        assert_eq!(damped(&net), before, "{name}: damping is off");
        net.ok("a", &format!("bond set {BOND} --damping on"));
        let is_good = |o: &Outcome| {
            o.segments_again * TIMES < without.segments_again && o.mbit() > 0.95 * without.mbit()
        };
        let with = traffic::reaches(a, b, &flow, is_good);
        assert!(damped(&net) > before, "{name}");
        eprintln!(
            "{name}: {:.1} Mbit/s, {} of {} segments again; without damping {:.1}, {} of {}",
            with.mbit(),
            with.segments_again,
            with.segments,
            without.mbit(),
            without.segments_again,
            without.segments
        );
    }
}
