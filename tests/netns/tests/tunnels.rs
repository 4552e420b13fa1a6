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
        let length = |interface| a.gso_max_size(interface).unwrap_or_else(|e| panic!("{e}"));
        let own = length(BOND);
        wait_until(SOON, &format!("{name}: {own}"), || length(name), |seen| *seen == own)
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
