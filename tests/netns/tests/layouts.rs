//! Hosts as docs/guides/switches.md has them cabled: over two switches, one of which loses its power, and by cables alone.

use linkbraid_api::Health;
use linkbraid_lab::{Fault, LinkSpec, Topology, shape, wait_until};
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::{Net, SOON, traffic};

/// What each link carries, Mbit/s.
const RATE: u32 = 50;
/// Of what the links carry together, what one flow of TCP has at least.
const PART: f64 = 0.95;

/// One flow from a to b has so many links.
#[track_caller]
fn one_flow_has(net: &Net, links: u32) {
    let enough = PART * f64::from(links * RATE) * shape::tcp_share(1500, false);
    let (from, to) = (net.host("a"), net.host("b"));
    let outcome = traffic::reaches(from, to, &traffic::tcp(), |outcome| outcome.mbit() >= enough);
    eprintln!("{:.1} Mbit/s of {links} links", outcome.mbit());
}

#[track_caller]
fn wait_health(net: &Net, wanted: Health) {
    for name in ["a", "b"] {
        let health = || net.show(name).health;
        wait_until(SOON, "its health", health, |now| *now == wanted)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn two_switches_one_of_which_loses_its_power() {
    let on = |switch| LinkSpec::switch(switch, Some(RATE));
    let both = || [on(0), on(0), on(1), on(1)];
    let lab = Topology::empty("lab", 2).host(both()).host(both());
    let net = Net::bonded(lab.plain_host([on(0)]).plain_host([on(1)]));
    wait_health(&net, Health::Ok);
    let segments = || net.show("a").members.iter().map(|member| member.segment).collect::<Vec<_>>();
    let are_two = |of: &Vec<u32>| of[0] == of[1] && of[2] == of[3] && of[0] != of[2];
    wait_until(SOON, "two segments", segments, are_two).unwrap_or_else(|e| panic!("{e}"));
    let plain = ["c", "d"].map(|name| net.host(name).ipv4().to_owned());
    for address in &plain {
        net.host("a").wait_ping(address, SOON).unwrap_or_else(|e| panic!("{e}"));
    }
    one_flow_has(&net, 4);

    let flow = Flow::start(&net, "a", "b");
    flow.wait_received(100);
    let power = |on: bool| {
        let ports = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0)];
        ports
            .iter()
            .for_each(|(host, link)| net.host(host).link(*link).expect("there").carrier(on).expect("sets"));
    };
    power(false);
    wait_health(&net, Health::Degraded);
    flow.loses_nothing_more();
    one_flow_has(&net, 2);
    net.host("a").wait_ping(&plain[1], SOON).unwrap_or_else(|e| panic!("{e}"));
    power(true);
    wait_health(&net, Health::Ok);
    flow.loses_nothing_more();
    one_flow_has(&net, 4);
    net.host("a").wait_ping(&plain[0], SOON).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(flow.end().1, 0, "nothing came twice");
}

#[test]
fn cables_without_a_switch() {
    let net = Net::bonded(Topology::cables(4, Some(RATE)));
    wait_health(&net, Health::Ok);
    one_flow_has(&net, 4);
    let flow = Flow::start(&net, "a", "b");
    flow.wait_received(100);
    // Both ends keep their carrier.
    let cable = net.host("a").link(2).expect("there");
    cable.fail(Fault::Silent).expect("fails");
    wait_health(&net, Health::Degraded);
    flow.loses_nothing_more();
    one_flow_has(&net, 3);
    cable.mend().expect("mends");
    wait_health(&net, Health::Ok);
    flow.loses_nothing_more();
    one_flow_has(&net, 4);
    assert_eq!(flow.end().1, 0, "nothing came twice");
}
