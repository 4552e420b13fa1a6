//! The very times and numbers at which a session begins to do something else, and what changes nothing.

use super::*;
use crate::{
    auth::{self, Key, Mode, Ring, Why},
    random::Random,
};
use linkbraid_wire::fabric::Control;
use zeroize::Zeroizing;

const MOMENT: Duration = Duration::from_millis(1);

/// Node 1 of 4, up with node 2, and the time.
fn up() -> (Node, Time, Settings) {
    let node = Node::up();
    let now = node.now;
    (node, now, Settings::new(4, 1500))
}

fn peer(node: &mut Node) -> &mut Peer {
    node.session.peers.get_mut(&PEER.0).expect("a peer")
}

#[test]
fn settings_that_change_nothing_are_not_told_and_an_idle_node_stays_idle() {
    let (mut node, now, settings) = up();
    assert_eq!((node.session.set(now, settings), node.drain()), (Ok(()), vec![]));
    let mut node = Node::idle();
    assert_eq!((node.session.set(now, Settings::new(5, 1500)), node.drain()), (Ok(()), vec![]));
    assert_eq!(node.session.poll_timeout(), None);
}

#[test]
fn a_refused_peer_is_named_for_ten_seconds() {
    let mut node = Node::running();
    let ring = Ring::new(vec![Key::new(1, Zeroizing::new([1; 32]))], 1).expect("a ring");
    node.session.set_auth(node.now, auth::Settings { mode: Mode::Require, ring: ring.into() });
    node.hears(PEER, &answer(ControlKind::Hello, &NOTHING));
    let named_after = |time| node.session.snapshot(node.now + time).peers[1].unkeyed;
    assert_eq!(named_after(limits::AUTH_REFUSED_LIVES - MOMENT), Some(Why::NoKey));
    assert_eq!(named_after(limits::AUTH_REFUSED_LIVES), None);
}

//= docs/fabric.md#5.13 type=test
#[test]
fn a_peer_that_waits_no_longer_than_usual_is_told_that_its_link_is_used_and_not_asked() {
    let (mut node, ..) = up();
    let mut told = || {
        let actions = node.handle(Input::Used { node: PEER.0 });
        sent(&actions, PEER.0).iter().map(|said| said.kind).collect::<Vec<_>>()
    };
    assert_eq!((told(), told()), (vec![ControlKind::Alive], vec![]));
}

//= docs/fabric.md#5.9 type=test
#[test]
fn the_answer_to_a_question_is_waited_for_for_a_second() {
    let (mut node, now, settings) = up();
    let peer = peer(&mut node);
    let later = now + limits::ASK_PATIENCE;
    assert!(peer.asks(now + millis(100), &settings).is_some());
    assert_eq!(peer.asks(later + millis(99), &settings), None);
    assert!(peer.asks(later + millis(100), &settings).is_some());
}

//= docs/fabric.md#5.9 type=test
#[test]
fn only_an_accept_of_that_start_that_echoes_the_cookie_measures_a_round_trip() {
    let (mut node, now, settings) = up();
    let peer = peer(&mut node);
    assert!(peer.asks(now + millis(100), &settings).is_some());
    let asked = Control { cookie: peer.link.cookie(), ..NOTHING };
    let good = answer(ControlKind::Accept, &asked);
    let mut took = |from, control: &Control| peer.answered(now + millis(107), from, control);
    assert_eq!(took(PEER.1, &Control { echo: good.echo ^ 1, ..good }), None);
    assert_eq!(took(PEER.1 + 1, &good), None);
    assert_eq!(took(PEER.1, &answer(ControlKind::Alive, &asked)), None);
    assert_eq!(took(PEER.1, &good), Some(millis(7)));
}

//= docs/fabric.md#5.11 type=test
#[test]
fn messages_that_echo_earlier_cookies_keep_a_peer_for_ten_seconds_beyond_its_detection_time() {
    let (mut node, now, settings) = up();
    let peer = peer(&mut node);
    let random = &mut Random::new(1);
    peer.follow(now, &Effect::Proof, &settings, random);
    let end = now + detection(&settings.offer()) + limits::SIGN_LIVES;
    peer.follow(end, &Effect::Sign, &settings, random);
    assert_eq!(peer.proven, Some(now));
    peer.follow(end.minus(MOMENT), &Effect::Sign, &settings, random);
    assert_eq!(peer.proven, Some(end.minus(MOMENT)));
}
