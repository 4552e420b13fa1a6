//! How often a peer is told that this node lives, with a peer that a test plays.

use super::*;
use linkbraid_wire::fabric::Offer;

/// So many peers that are up.
const PEERS: u16 = 40;
/// Their offer.
const OFFER: Offer =
    Offer { nodes: PEERS + 1, mtu: 1500, interval_us: 640_000, multiplier: 4, queues: 1, features: 0 };

fn epoch(peer: u16) -> u64 {
    1000 + u64::from(peer)
}

fn answers(kind: ControlKind, asked: &Control, features: u16) -> Control {
    Control { offer: Offer { features, ..OFFER }, ..answer(kind, asked) }
}

/// Node 0 of many, up with all others.
fn crowd() -> Node {
    let config = Config { node: 0, epoch: 5, settings: Settings::new(PEERS + 1, 1500) };
    let session = Session::new(config, 5, SECRET).expect("good settings");
    let mut node = Node { session, now: Time::from_millis(1) };
    let asked = node.handle(Input::Start);
    for peer in 1..=PEERS {
        let asked = sent(&asked, peer)[0];
        say(&mut node, peer, &answers(ControlKind::Accept, &asked, 0));
    }
    node
}

fn say(node: &mut Node, peer: u16, control: &Control) -> Vec<Action> {
    let bytes = emit_control((peer, epoch(peer)), (0, 5), control).expect("a good message");
    node.handle(Input::Message { node: peer, bytes: &bytes })
}

/// What the node says to one peer in that time, and those answer its HELLOs that `answering` names.
fn listen(node: &mut Node, peer: u16, time: Duration, answering: fn(u16) -> bool) -> Vec<Control> {
    let (end, mut all) = (node.now + time, Vec::new());
    while node.now < end {
        let actions = node.pass(millis(10));
        for other in 1..=PEERS {
            for said in sent(&actions, other) {
                if answering(other) && said.kind == ControlKind::Hello {
                    say(node, other, &answers(ControlKind::Accept, &said, 0));
                }
                all.extend((other == peer).then_some(said));
            }
        }
    }
    all
}

fn all(_: u16) -> bool {
    true
}

fn nobody(_: u16) -> bool {
    false
}

fn alive(said: &[Control]) -> usize {
    said.iter().filter(|said| said.kind == ControlKind::Alive).count()
}

//= docs/fabric.md#5.12 type=test
#[test]
fn a_longer_interval_is_kept_to_once_the_peer_knows_it() {
    let mut node = crowd();
    let said = listen(&mut node, 3, millis(100), nobody);
    assert!(said.iter().any(|said| said.offer.interval_us == 640_000), "{said:?}");
    // Nothing comes back: the peer may still wait for one each 100 ms.
    let said = listen(&mut node, 3, millis(500), nobody);
    assert!(alive(&said) >= 5, "{said:?}");
    let last = said.last().expect("it speaks");
    say(&mut node, 3, &answers(ControlKind::Alive, last, 0));
    let said = listen(&mut node, 3, millis(1900), all);
    assert!((2..=5).contains(&alive(&said)), "{said:?}");
    assert!(said.iter().all(|said| said.offer.interval_us == 640_000 && !said.offer.uses_link()));
}

//= docs/fabric.md#5.12 type=test
#[test]
fn a_link_that_either_end_uses_has_the_usual_interval_at_once() {
    let mut node = crowd();
    listen(&mut node, 3, millis(3000), all);
    let said = sent(&node.handle(Input::Used { node: 3 }), 3);
    assert!(said.iter().all(|said| said.offer.interval_us == 100_000 && said.offer.uses_link()));
    assert_eq!(
        said.iter().map(|said| said.kind).collect::<Vec<_>>(),
        [ControlKind::Alive, ControlKind::Hello, ControlKind::Alive]
    );
    say(&mut node, 3, &answers(ControlKind::Accept, &said[1], 0));
    assert!(alive(&listen(&mut node, 3, millis(1000), all)) >= 9);
    assert!(alive(&listen(&mut node, 4, millis(1000), all)) <= 3, "of others it is told nothing");
    // Ten seconds after the last frame.
    listen(&mut node, 3, millis(8500), all);
    let said = listen(&mut node, 3, millis(2000), all);
    assert!(said.last().is_some_and(|said| said.offer.interval_us == 640_000 && !said.offer.uses_link()));
    // The peer begins to use it.
    let last = said.last().expect("it speaks");
    let actions =
        say(&mut node, 3, &answers(ControlKind::Alive, last, linkbraid_wire::fabric::IN_USE_FEATURE));
    let said = sent(&actions, 3);
    assert_eq!(said.len(), 1, "it is told at once");
    assert!(said[0].offer.interval_us == 100_000 && !said[0].offer.uses_link());
}

//= docs/fabric.md#5.13 type=test
#[test]
fn who_begins_to_use_a_link_waits_no_longer_than_usual() {
    let mut node = crowd();
    listen(&mut node, 3, millis(3000), all);
    let used = node.now;
    let said = sent(&node.handle(Input::Used { node: 3 }), 3);
    assert_eq!(node.session.verdict(4), Some(Verdict::Up { epoch: epoch(4) }));
    // And the round trip, which is up to 10 ms here.
    let down = verdicts(&node.pass(millis(410)));
    assert!(down.contains(&(3, Verdict::Down(Down::Silent))), "{down:?}");
    assert!(node.session.verdict(4).is_some_and(|verdict| verdict.is_up()));
    // One that answers is waited for as it offers.
    let mut node = crowd();
    listen(&mut node, 3, millis(3000), all);
    assert_eq!(node.now, used);
    assert_eq!(sent(&node.handle(Input::Used { node: 3 }), 3), said);
    say(&mut node, 3, &answers(ControlKind::Accept, &said[1], 0));
    let down = verdicts(&node.pass(millis(1000)));
    assert!(down.is_empty(), "{down:?}");
    // One that is far away is waited for longer.
    let mut node = crowd();
    listen(&mut node, 3, millis(3000), all);
    let is_hello = |said: &&Control| said.kind == ControlKind::Hello;
    let ask = |node: &mut Node| {
        // Its frames prove that it lives.
        node.handle(Input::Traffic { node: 3, epoch: epoch(3) });
        listen(node, 3, millis(10), |peer| peer != 3).iter().find(is_hello).copied()
    };
    let asked = std::iter::repeat_with(|| ask(&mut node)).take(300).flatten().next();
    node.pass(millis(390));
    say(&mut node, 3, &answers(ControlKind::Accept, &asked.expect("a round trip is measured"), 0));
    node.handle(Input::Used { node: 3 });
    let is_down = |node: &mut Node, time| {
        verdicts(&node.pass(millis(time))).contains(&(3, Verdict::Down(Down::Silent)))
    };
    assert!(!is_down(&mut node, 780));
    assert!(is_down(&mut node, 30));
}
