//! Keys of a fabric's nodes: who is believed, what goes on while keys change, and what somebody without a key achieves.

mod encryption;

use super::*;
use crate::auth::{Key, Mode, Ring, Settings as AuthSettings, Why};
use linkbraid_wire::fabric::sealed_control;
use zeroize::Zeroizing;

fn key(id: u32) -> Key {
    Key::new(id, Zeroizing::new([id as u8; 32]))
}

fn auth(mode: Mode, ids: &[u32], signs: u32) -> AuthSettings {
    let ring = Ring::new(ids.iter().map(|id| key(*id)).collect(), signs).unwrap_or_default();
    AuthSettings { mode, ring: ring.into() }
}

/// Two nodes, and a network that delivers all at once.
struct Two {
    nodes: [Session; 2],
    now: Time,
    /// All that was sent, by whom.
    heard: Vec<(u16, Vec<u8>)>,
    changes: Vec<(u16, Verdict)>,
}

impl Two {
    fn new(auth: [AuthSettings; 2]) -> Two {
        Two::with(auth, [0, 0])
    }

    /// Nodes that announce these features.
    fn with(auth: [AuthSettings; 2], features: [u16; 2]) -> Two {
        let mut nodes = [0, 1].map(|node| {
            let settings = Settings { features: features[usize::from(node)], ..Settings::new(2, 1500) };
            let config = Config { node, epoch: 10 + u64::from(node), settings };
            Session::new(config, u64::from(node), Secret::new([node as u8; 16])).expect("good settings")
        });
        let now = Time::from_millis(1);
        for (node, auth) in nodes.iter_mut().zip(auth) {
            node.set_auth(now, auth);
            node.handle(now, Input::Start);
        }
        Two { nodes, now, heard: Vec::new(), changes: Vec::new() }
    }

    fn set(&mut self, node: usize, auth: AuthSettings) {
        self.nodes[node].set_auth(self.now, auth);
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            let mut calm = true;
            for at in 0..2 {
                while let Some(action) = self.nodes[at].poll_action() {
                    calm = false;
                    match action {
                        Action::Send { bytes, .. } => {
                            self.heard.push((at as u16, bytes.to_vec()));
                            let input = Input::Message { node: at as u16, bytes: &bytes };
                            self.nodes[1 - at].handle(self.now, input);
                        }
                        Action::Link { new, .. } => self.changes.push((at as u16, new)),
                        _ => {}
                    }
                }
            }
            if calm {
                return;
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        while let Some(at) = self.nodes.iter().filter_map(Session::poll_timeout).min().filter(|at| *at <= end)
        {
            self.now = at;
            for node in &mut self.nodes {
                if node.poll_timeout().is_some_and(|due| due <= at) {
                    node.handle(at, Input::Timeout);
                }
            }
            self.settle();
        }
        self.now = end;
    }

    fn are_up(&self) -> [bool; 2] {
        [0, 1].map(|at| self.nodes[at].verdict(1 - at as u16).is_some_and(|verdict| verdict.is_up()))
    }

    fn count(&self, at: usize, counter: Counter) -> u64 {
        self.nodes[at].counters().get(counter)
    }

    fn unkeyed(&self, at: usize) -> Option<Why> {
        self.nodes[at].snapshot(self.now).peers[0].unkeyed
    }
}

//= docs/fabric.md#8.2 type=test
//= docs/fabric.md#8.3 type=test
//= docs/fabric.md#8.6 type=test
#[test]
fn nodes_connect_only_with_a_key_of_both_and_say_why_not() {
    let require = |id| auth(Mode::Require, &[id], id);
    let mut same = Two::new([require(1), require(1)]);
    same.pass(millis(500));
    assert_eq!((same.are_up(), same.unkeyed(0)), ([true; 2], None));
    assert!(same.heard.iter().all(|(_, bytes)| matches!(sealed_control(bytes), Ok(Some(_)))));

    let mut other = Two::new([require(1), require(2)]);
    other.pass(millis(500));
    assert_eq!((other.are_up(), other.unkeyed(0)), ([false; 2], Some(Why::AnotherKey)));
    assert!(other.count(0, Counter::AuthOtherKey) > 0 && other.count(0, Counter::RxHello) == 0);

    let mut none = Two::new([require(1), AuthSettings::default()]);
    none.pass(millis(500));
    assert_eq!((none.are_up(), none.unkeyed(0), none.unkeyed(1)), ([false; 2], Some(Why::NoKey), None));
    assert!(none.count(0, Counter::AuthMissing) > 0);

    let mut permits = Two::new([auth(Mode::Permit, &[1], 1), AuthSettings::default()]);
    permits.pass(millis(500));
    assert_eq!((permits.are_up(), permits.unkeyed(0)), ([true; 2], Some(Why::NoKey)));

    // Keys that cannot be read: it says nothing, and believes nobody.
    let mut lost = Two::new([auth(Mode::Require, &[], 0), require(1)]);
    lost.pass(millis(500));
    assert_eq!(lost.are_up(), [false; 2]);
    assert!(lost.heard.iter().all(|(from, _)| *from == 1) && lost.count(0, Counter::TxUnsigned) > 0);
}

//= docs/fabric.md#8.3 type=test
#[test]
fn a_message_that_differs_in_any_byte_counts_for_nothing() {
    let mut pair = Two::new([auth(Mode::Require, &[1], 1), auth(Mode::Require, &[1], 1)]);
    pair.pass(millis(500));
    let (_, alive) = pair.heard.iter().rev().find(|(from, _)| *from == 1).expect("it speaks").clone();
    for at in 0..alive.len() {
        let mut bytes = alive.clone();
        bytes[at] ^= 1;
        let before = pair.nodes[0].snapshot(pair.now).peers[0].heard;
        pair.nodes[0].handle(pair.now + millis(1), Input::Message { node: 1, bytes: &bytes });
        assert_eq!(pair.nodes[0].snapshot(pair.now).peers[0].heard, before, "byte {at}");
        assert_eq!(pair.nodes[0].poll_action(), None, "byte {at}");
    }
    assert!(pair.count(0, Counter::AuthBadCode) > 40);
}

//= docs/fabric.md#8.5 type=test
#[test]
fn keys_come_and_change_while_links_stay_up_and_who_has_none_goes() {
    let mut pair = Two::new([AuthSettings::default(), AuthSettings::default()]);
    pair.pass(millis(500));
    let ups = pair.changes.len();
    // To a key, to another one, each node by itself.
    for (mode, ids, signs) in [
        (Mode::Permit, &[1][..], 1),
        (Mode::Require, &[1], 1),
        (Mode::Require, &[1, 2], 1),
        (Mode::Require, &[1, 2], 2),
        (Mode::Require, &[2], 2),
    ] {
        for node in [0, 1] {
            pair.set(node, auth(mode, ids, signs));
            pair.pass(millis(700));
        }
    }
    assert_eq!((pair.are_up(), pair.changes.len()), ([true; 2], ups), "{:?}", pair.changes);
    // One that never had a key, and offers to be silent for minutes.
    let mut pair = Two::new([auth(Mode::Permit, &[1], 1), AuthSettings::default()]);
    pair.pass(millis(500));
    pair.set(0, auth(Mode::Require, &[1], 1));
    assert_eq!(pair.are_up(), [false, true], "at once");
    pair.pass(millis(900));
    assert_eq!(pair.are_up(), [false; 2]);
}

//= docs/fabric.md#8.4 type=test
#[test]
fn frames_prove_nothing_where_keys_are_required() {
    for (mode, lives) in [(Mode::Permit, true), (Mode::Require, false)] {
        let mut node = Node::idle();
        node.session.set_auth(node.now, auth(Mode::Permit, &[1], 1));
        let asked = sent(&node.handle(Input::Start), PEER.0)[0];
        let reply = answer(ControlKind::Accept, &asked);
        let mut bytes = emit_control(PEER, HERE, &reply).expect("a good message");
        linkbraid_wire::fabric::seal_control(&mut bytes, 1, |covered| {
            key(1).code(b"linkbraid fabric AUTH 1", covered)
        });
        node.handle(Input::Message { node: PEER.0, bytes: &bytes });
        node.session.set_auth(node.now, auth(mode, &[1], 1));
        for _ in 0..10 {
            node.pass(millis(100));
            node.handle(Input::Traffic { node: PEER.0, epoch: PEER.1 });
        }
        assert_eq!(node.session.verdict(PEER.0).is_some_and(|verdict| verdict.is_up()), lives, "{mode:?}");
    }
}

/// What one without a key does who sees all: he says goodbye in everybody's name, refuses, and answers.
fn forge(pair: &mut Two) {
    for (from, bytes) in pair.heard.split_off(pair.heard.len().saturating_sub(4)) {
        let (header, seen) = parse_control(&bytes).expect("a good message");
        let (sender, receiver) = ((from, header.sender_epoch), (1 - from, header.receiver_epoch));
        for kind in [ControlKind::Bye, ControlKind::Refuse, ControlKind::Alive] {
            let reason = (kind == ControlKind::Refuse).then_some(RefuseReason::Taken);
            let echo = seen.echo.max(1);
            let offer = linkbraid_wire::fabric::Offer { mtu: 1400, ..seen.offer };
            let forged = Control { kind, reason, echo, offer, number: seen.number, ..seen };
            let Ok(forged) = emit_control(sender, receiver, &forged) else { continue };
            pair.nodes[usize::from(1 - from)].handle(pair.now, Input::Message { node: from, bytes: &forged });
        }
        // And what was said before, once more.
        pair.nodes[usize::from(1 - from)].handle(pair.now, Input::Message { node: from, bytes: &bytes });
        pair.settle();
    }
}

//= docs/fabric.md#8.3 type=test
#[test]
fn who_sees_all_and_has_no_key_takes_no_link_down() {
    for (mode, stands) in [(Mode::Off, false), (Mode::Require, true)] {
        let mut pair = Two::new([auth(mode, &[1], 1), auth(mode, &[1], 1)]);
        pair.pass(millis(500));
        let ups = pair.changes.len();
        for _ in 0..20 {
            pair.pass(millis(50));
            forge(&mut pair);
        }
        assert_eq!(pair.changes.len() == ups, stands, "{mode:?}: {:?}", pair.changes);
    }
}

//= docs/fabric.md#5.11 type=test
#[test]
fn a_node_that_died_does_not_live_by_what_it_said() {
    let require = || auth(Mode::Require, &[1], 1);
    let mut two = Two::new([require(), require()]);
    two.pass(millis(3000));
    assert_eq!(two.are_up(), [true; 2]);
    // Somebody has recorded all that it said, and repeats it.
    let said: Vec<Vec<u8>> = two.heard.drain(..).filter(|(by, _)| *by == 1).map(|(_, bytes)| bytes).collect();
    let died = two.now;
    while two.are_up()[0] {
        two.now = two.now + millis(25);
        two.nodes[0].handle(two.now, Input::Timeout);
        for bytes in &said {
            two.nodes[0].handle(two.now, Input::Message { node: 1, bytes });
        }
        while two.nodes[0].poll_action().is_some() {}
        assert!(two.now.since(died) < millis(12_000), "it still lives");
    }
    let lived = two.now.since(died);
    assert!(lived > millis(10_000), "a network may have kept them for {lived:?}");
    // And it stays dead.
    for bytes in &said {
        two.nodes[0].handle(two.now, Input::Message { node: 1, bytes });
    }
    assert!(!two.are_up()[0]);
}
