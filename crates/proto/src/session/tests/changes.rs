//! What is counted and told of links that come and go.

use super::*;

#[test]
fn a_session_runs_from_its_start_to_its_end() {
    let mut node = Node::idle();
    let running = |node: &Node| node.session.is_running();
    assert!(!running(&node));
    node.handle(Input::Start);
    assert!(running(&node));
    node.handle(Input::Stop);
    assert!(!running(&node));
}

#[test]
fn settings_of_a_session_that_does_not_run_are_said_to_nobody() {
    let mut node = Node::idle();
    node.session.set(node.now, Settings::new(4, 9000)).expect("good settings");
    assert!(node.drain().is_empty());
    assert_eq!(sent(&node.handle(Input::Start), PEER.0)[0].offer.mtu, 9000);
}

//= docs/fabric.md#4.7 type=test
#[test]
fn a_disagreement_is_counted_where_it_ends_a_link() {
    let mut node = Node::running();
    let asked = sent(&node.handle(Input::Timeout), PEER.0).first().copied();
    let asked = asked.unwrap_or_else(|| sent(&node.pass(millis(20)), PEER.0)[0]);
    let other = |asked: &Control| {
        let offer = Settings::new(4, 9000).offer();
        Control { offer, ..answer(ControlKind::Alive, asked) }
    };
    assert!(matches!(verdicts(&node.hears(PEER, &other(&asked)))[..], [(2, Verdict::Refused { .. })]));
    assert_eq!(node.count(Counter::Disagreed), 0, "it was not up");
    let mut node = Node::up();
    let said = sent(&node.pass(millis(150)), PEER.0)[0];
    assert!(matches!(verdicts(&node.hears(PEER, &other(&said)))[0], (2, Verdict::Refused { .. })));
    assert_eq!(node.count(Counter::Disagreed), 1);
}

//= docs/fabric.md#5.6 type=test
#[test]
fn two_nodes_of_one_number_are_told_once_until_the_link_comes_up_anew() {
    let mut node = Node::up();
    let told = |actions: &[Action]| {
        let of = |action: &Action| match action {
            Action::Event(Event::Duplicate { node, epoch, rival }) => Some((*node, *epoch, *rival)),
            _ => None,
        };
        actions.iter().filter_map(of).collect::<Vec<_>>()
    };
    // Another start proves that it lives, and so does the one that is up.
    let meets = |node: &mut Node, rival: u64| {
        let hello = Control { echo: 0, ..answer(ControlKind::Hello, &NOTHING) };
        let asked = sent(&node.hears((PEER.0, rival), &hello), PEER.0)[0];
        let doubted = node.hears((PEER.0, rival), &answer(ControlKind::Accept, &asked));
        let asked = sent(&doubted, PEER.0)[0];
        let number = node.count(Counter::Duplicates);
        let actions = node.hears(PEER, &Control { number: 9, ..answer(ControlKind::Accept, &asked) });
        assert_eq!(node.count(Counter::Duplicates), number + 1);
        told(&actions)
    };
    assert_eq!(meets(&mut node, 30), [(PEER.0, PEER.1, 30)]);
    assert_eq!(meets(&mut node, 30), [], "each once");
    assert_eq!(meets(&mut node, 40), [(PEER.0, PEER.1, 40)]);
}

#[test]
fn what_is_reported_is_said_in_words() {
    let told = [
        Event::Duplicate { node: 2, epoch: 20, rival: 30 }.to_string(),
        Event::OwnNumber { epoch: 40 }.to_string(),
        Verdict::Down(Down::Deaf).to_string(),
    ];
    assert_eq!(
        told,
        [
            "two live nodes have number 2: epoch 20 stays, 30 is refused",
            "another live node, in epoch 40, has this node's number",
            "down: it speaks but does not hear this node",
        ]
    );
}
