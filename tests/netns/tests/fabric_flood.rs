//! Control messages that a stranger sends in a node's name, as many as he can: no link goes down, traffic goes on, and what they cost is
//! bounded.

use crate::nodes::Nodes;
use crate::nodes::control::{CONTROL, COOKIE, HELLO, IPV4, RECEIVER_EPOCH, SENDER_EPOCH, alives};
use crate::nodes::keys::{counter, new_key, two_nodes, two_of};
use linkbraid_api::NodeState;
use linkbraid_lab::flow::Flood;
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::packet::{Tap, mac};
use linkbraid_netns_tests::until;
use std::time::{Duration, Instant};

/// Messages in a second: five times as many as are looked at.
const PACE: u32 = 10_000;
/// Of what a node sends, so much gets lost at most, in percent: nothing on a quiet machine, but the messages wait in the same queue of the
/// kernel's as its frames, which a busy one does not empty in time.
const LOST_PERCENT: u64 = 5;
const LASTS: Duration = Duration::from_secs(2);
/// What a daemon logs of it at most.
const LINES: usize = 20;

/// Puts that number at that place.
fn put(frame: &mut [u8], at: usize, number: u64) {
    frame[at..at + 8].copy_from_slice(&number.to_be_bytes());
}

/// A stranger sends what `frame` makes of a message of b's and a number, again and again.
fn flood(nodes: &Nodes, frame: impl Fn(&mut Vec<u8>, u64) + Send + 'static) {
    let mut heard = alives(nodes, 1).remove(0);
    // From its own MAC: else the switch would send it what is for b.
    heard[6..12].copy_from_slice(&mac(&nodes.net.host("c").mac(0)));
    let stranger = Tap::open(nodes.net.host("c"), "eth0", IPV4);
    let (dropped, lines) = (counter(nodes, 0, "control_drop_storm"), nodes.net.log("a").lines().count());
    let flood = Flood::start(stranger, PACE, move |number| {
        let mut forged = heard.clone();
        frame(&mut forged, number);
        forged
    });
    let begun = Instant::now();
    while begun.elapsed() < LASTS {
        assert_eq!(nodes.show(0).peers[0].state, NodeState::Up);
    }
    let flooded = flood.stop().expect("sent");
    eprintln!("{flooded:?}, {:.0} a second", flooded.per_second());
    assert!(counter(nodes, 0, "control_drop_storm") > dropped, "more than is looked at");
    let lines = nodes.net.log("a").lines().count() - lines;
    assert!(lines <= LINES, "{lines} lines: {}", nodes.net.log("a"));
}

#[test]
fn a_flood_of_control_messages_ends_no_link() {
    let nodes = Nodes::hosts(3);
    new_key(&nodes, 2);
    let transport = two_of(&nodes);
    two_nodes(&nodes, &transport, "");
    let ends = [(nodes.net.host("a"), Nodes::ip(0)), (nodes.net.host("b"), Nodes::ip(1))];
    let flow = Flow::between([(ends[0].0, &ends[0].1), (ends[1].0, &ends[1].1)]);
    flow.wait_received(200);
    let hello = |frame: &mut Vec<u8>, number: u64| {
        frame[CONTROL] = HELLO;
        put(frame, SENDER_EPOCH, number + 1);
        put(frame, RECEIVER_EPOCH, 0);
        put(frame, COOKIE, number + 1);
    };
    flood(&nodes, hello);
    // What he has heard, as it was.
    flood(&nodes, |_, _| {});
    // All that is sent from now on comes.
    flow.loses_nothing_more();
    let received = flow.received();
    let (lost, twice) = flow.end();
    assert_eq!(twice, 0);
    assert!(lost * 100 <= (received + lost) * LOST_PERCENT, "{lost} lost, {received} received");
    // And where nothing else says that b lives.
    flood(&nodes, hello);
    flood(&nodes, |_, _| {});
    for node in 0..2 {
        let events = nodes.show(node).events;
        assert!(events.iter().all(|event| event.new.as_deref() != Some("down")), "{events:?}");
    }
    let is_up = || nodes.show(1).peers[0].state;
    until("the other side, too", is_up, |state| *state == NodeState::Up);
}
