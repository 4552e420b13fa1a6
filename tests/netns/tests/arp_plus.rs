//! ARP+ on a network that loses frames.

use linkbraid_lab::{LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON};

/// One frame in five lost at the sender's port of the switch: what 20 % loss of ARP+ frames is.
const LOSS_PPM: u32 = 200_000;
const HOSTS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Loses, or no longer, what hosts send.
fn lose(net: &Net, ppm: u32) {
    for link in net.lab().hosts().flat_map(|host| host.links().expect("there")) {
        link.set(|conf| conf.loss_in_ppm = ppm).expect("sets");
    }
}

/// Frames lost on their way from hosts so far.
fn lost(net: &Net) -> u64 {
    let links = net.lab().hosts().flat_map(|host| host.links().expect("there"));
    links.map(|link| link.port_count().expect("readable").lost).sum()
}

#[test]
fn six_tables_are_equal_after_a_fifth_of_all_frames_was_lost() {
    let mut topology = Topology::empty("lab", 1);
    for _ in HOSTS {
        topology = topology.host(std::iter::repeat_n(LinkSpec::switch(0, None), 2));
    }
    let net = Net::up(topology);
    lose(&net, LOSS_PPM);
    // All at once, as after a power cut.
    std::thread::scope(|scope| {
        for name in HOSTS {
            net.start(name, &[]);
            let net = &net;
            scope.spawn(move || net.bond(name));
        }
    });
    net.wait_tables(&HOSTS);
    // And after changes and departures, whose messages are lost as well.
    net.ok("a", &format!("member set {BOND} eth0 --weight 123"));
    net.ok("b", &format!("member del {BOND} eth1"));
    net.host("c").link(1).expect("there").carrier(false).expect("sets");
    net.wait_tables(&HOSTS);
    net.ok("d", &format!("bond del {BOND}"));
    net.wait_tables(&["a", "b", "c", "e", "f"]);
    net.kill("e");
    net.start("e", &[]);
    net.bond("d");
    net.ok("b", &format!("member add {BOND} eth1"));
    net.host("c").link(1).expect("there").carrier(true).expect("sets");
    net.wait_tables(&HOSTS);
    // What repairs a table is what a host says each second; some more of that has to be lost.
    wait_until(SOON, "losses", || lost(&net), |frames| *frames > 60).unwrap_or_else(|e| panic!("{e}"));
    net.wait_tables(&HOSTS);
    // No table has more than it should once nothing is lost any more, either.
    lose(&net, 0);
    net.wait_tables(&HOSTS);
}

#[test]
fn a_host_that_dies_leaves_every_table() {
    let net = Net::bonded(Topology::symmetric(3, 2, None));
    // Without a daemon nobody speaks for it; its data path alone is no peer.
    net.kill("c");
    net.wait_tables(&["a", "b"]);
    let cut = net.host("b").links().expect("there");
    for link in &cut {
        link.cut(linkbraid_lab::Way::Both).expect("cuts");
    }
    net.wait_tables(&["a"]);
    for link in &cut {
        link.restore().expect("restores");
    }
    net.start("c", &[]);
    net.wait_tables(&["a", "b", "c"]);
}
