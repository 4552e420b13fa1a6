//! Keys of a fabric: who has none is no node, what is forged takes no link down, and keys are exchanged under traffic.

use crate::nodes::Nodes;
use crate::nodes::control::{BYE, CONTROL, IPV4, alives};
use crate::nodes::keys::{counter, exchange_keys, headline, key_file, new_key, set, two_of};
use linkbraid_api::NodeState;
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::packet::Tap;
use linkbraid_netns_tests::until;
use std::fs;

#[test]
fn who_has_another_key_or_none_is_no_node_and_show_says_so() {
    let nodes = Nodes::hosts(3);
    nodes.net.ok("a", &format!("key new {}", key_file(&nodes, 0)));
    nodes.net.ok("b", &format!("key new {}", key_file(&nodes, 1)));
    let transport = nodes.transport("udp");
    for (node, name) in nodes.names.iter().enumerate() {
        let keys = match node {
            2 => String::new(),
            _ => format!("--key {} --auth require", key_file(&nodes, node)),
        };
        let line = format!("fabric add fab0 --node {node} --nodes 3 --transport {transport} {keys}");
        nodes.net.ok(name, line.trim());
    }
    let reasons =
        || nodes.show(0).peers.into_iter().map(|peer| (peer.state, peer.reason)).collect::<Vec<_>>();
    let wanted = [(NodeState::Refused, "another key".to_owned()), (NodeState::Refused, "no key".to_owned())];
    until("both to be named", reasons, |seen| *seen == wanted);
    assert!(
        headline(&nodes, 0).ends_with("0 of 2 other nodes up: node 1: another key"),
        "{}",
        headline(&nodes, 0)
    );
    // The key of the first, and none has to start again.
    fs::copy(key_file(&nodes, 0), key_file(&nodes, 1)).expect("copies");
    until("the key to be taken over", || nodes.show(0).peers[0].state, |state| *state == NodeState::Up);
    fs::copy(key_file(&nodes, 0), key_file(&nodes, 2)).expect("copies");
    set(&nodes, 2, &format!("--key {} --auth require", key_file(&nodes, 2)));
    nodes.wait_up();
    assert_eq!(nodes.show(2).keys.len(), 1);
    // A file that cannot be used is refused, and what was read before goes on.
    let refused = nodes.net.say("a", "fabric set fab0 --key /nonexistent/key");
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("hint: linkbraid key new /nonexistent/key"), "{}", refused.err);
    fs::write(key_file(&nodes, 0), "nonsense\n").expect("writes");
    until(
        "its headline",
        || headline(&nodes, 0),
        |line| line.contains("fab0: degraded") && line.contains("cannot use the keys"),
    );
    nodes.wait_up();
    let first = headline(&nodes, 0);
    assert!(!nodes.net.ok("a", "fabric show fab0 --json").contains("secret"), "{first}");
}

/// Goodbyes of b to a, each made of a message that says that it lives.
fn goodbyes(nodes: &Nodes) -> Vec<Vec<u8>> {
    let mut heard = alives(nodes, 4);
    heard.iter_mut().for_each(|frame| frame[CONTROL] = BYE);
    heard
}

#[test]
fn who_sees_all_and_has_no_key_ends_no_link() {
    let nodes = Nodes::hosts(3);
    new_key(&nodes, 2);
    let transport = two_of(&nodes);
    for keys in [false, true] {
        for node in 0..2 {
            let keys =
                if keys { format!("--key {} --auth require", key_file(&nodes, node)) } else { String::new() };
            let line = format!("fabric add fab0 --node {node} --nodes 2 --transport {transport} {keys}");
            nodes.net.ok(&nodes.names[node], line.trim());
        }
        nodes.wait_all_up(0);
        nodes.wait_all_up(1);
        let (before, refused) =
            (counter(&nodes, 0, "session_left"), counter(&nodes, 0, "session_auth_bad_code"));
        let stranger = Tap::open(nodes.net.host("c"), "eth0", IPV4);
        let forged = goodbyes(&nodes);
        for frame in &forged {
            stranger.send(frame).expect("sends");
        }
        if keys {
            let count = || counter(&nodes, 0, "session_auth_bad_code");
            until("them to be refused", count, |count| *count >= refused + 4);
            assert_eq!(counter(&nodes, 0, "session_left"), before);
            assert_eq!(nodes.show(0).peers[0].state, NodeState::Up);
            assert!(headline(&nodes, 0).ends_with("1 of 1 other node up"), "{}", headline(&nodes, 0));
        } else {
            // What they do where nobody asks for a key.
            until("a goodbye", || counter(&nodes, 0, "session_left"), |count| *count > before);
        }
        (0..2).for_each(|node| drop(nodes.net.ok(&nodes.names[node], "fabric del fab0")));
    }
}

#[test]
fn keys_come_and_change_under_traffic_and_nothing_is_lost() {
    let nodes = Nodes::up(2, "udp", "");
    new_key(&nodes, 2);
    let ends = [(nodes.net.host("a"), Nodes::ip(0)), (nodes.net.host("b"), Nodes::ip(1))];
    nodes.ping(0, 1);
    let flow = Flow::between([(ends[0].0, &ends[0].1), (ends[1].0, &ends[1].1)]);
    flow.wait_received(200);
    let both = |step: &dyn Fn(usize)| {
        for node in 0..2 {
            step(node);
            flow.loses_nothing_more();
        }
    };
    both(&|node| set(&nodes, node, &format!("--key {} --auth permit", key_file(&nodes, node))));
    assert!(headline(&nodes, 0).contains("fab0: ok") && headline(&nodes, 0).contains("protects nothing"));
    both(&|node| set(&nodes, node, "--auth require"));
    exchange_keys(&nodes, &flow);
    assert_eq!(flow.end(), (0, 0), "lost, and twice");
    let downs = nodes.show(0).events.iter().filter(|event| event.new.as_deref() == Some("down")).count();
    assert_eq!(downs, 0, "{:?}", nodes.show(0).events);
    // A daemon that comes back has the key.
    nodes.net.kill("a");
    nodes.net.start("a", &[]);
    nodes.wait_up();
    nodes.ping(0, 1);
}
