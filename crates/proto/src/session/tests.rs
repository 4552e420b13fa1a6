//! Whole-session tests on a fake clock; what many nodes do together is in `tests/sim_session.rs`.

use super::*;
use linkbraid_wire::fabric::{
    Control, ControlKind, HEADER_LEN, NODES_MAX, NODES_MIN, RefuseReason, emit_control, parse_control,
};
use std::time::Duration;

mod authentic;
mod bounds;
mod changes;
mod pace;

const HERE: (u16, u64) = (1, 10);
const PEER: (u16, u64) = (2, 20);
const SECRET: Secret = Secret::new([5; 16]);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A node with a clock that its test moves.
struct Node {
    session: Session,
    now: Time,
}

impl Node {
    /// Node 1 of 4, idle.
    fn idle() -> Node {
        let config = Config { node: HERE.0, epoch: HERE.1, settings: Settings::new(4, 1500) };
        Node { session: Session::new(config, 5, SECRET).expect("good settings"), now: Time::from_millis(1) }
    }

    fn running() -> Node {
        let mut node = Node::idle();
        node.handle(Input::Start);
        node
    }

    /// Node 1 of 4, up with node 2.
    fn up() -> Node {
        let mut node = Node::idle();
        let asked = sent(&node.handle(Input::Start), PEER.0)[0];
        let actions = node.hears(PEER, &answer(ControlKind::Accept, &asked));
        assert_eq!(verdicts(&actions), [(PEER.0, Verdict::Up { epoch: PEER.1 })]);
        node
    }

    fn drain(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.session.poll_action()).collect()
    }

    fn handle(&mut self, input: Input<'_>) -> Vec<Action> {
        self.session.handle(self.now, input);
        self.drain()
    }

    fn hears(&mut self, from: (u16, u64), control: &Control) -> Vec<Action> {
        let bytes = emit_control(from, HERE, control).expect("a good message");
        self.handle(Input::Message { node: from.0, bytes: &bytes })
    }

    /// Lets time pass, timeout by timeout; every action on the way.
    fn pass(&mut self, duration: Duration) -> Vec<Action> {
        let end = self.now + duration;
        let mut actions = Vec::new();
        while let Some(at) = self.session.poll_timeout().filter(|at| *at <= end) {
            assert!(at > self.now, "what was due is done");
            self.now = at;
            actions.extend(self.handle(Input::Timeout));
        }
        self.now = end;
        actions
    }

    fn count(&self, counter: Counter) -> u64 {
        self.session.counters().get(counter)
    }
}

fn answer(kind: ControlKind, asked: &Control) -> Control {
    let offer = Settings::new(4, 1500).offer();
    let reason = (kind == ControlKind::Refuse).then_some(RefuseReason::Taken);
    Control { kind, reason, offer, cookie: 77, number: 1, echo: asked.cookie, fast_path: None }
}

fn sent(actions: &[Action], to: u16) -> Vec<Control> {
    let control = |action: &Action| match action {
        Action::Send { node, bytes } if *node == to => Some(parse_control(bytes).expect("a good message").1),
        _ => None,
    };
    actions.iter().filter_map(control).collect()
}

fn verdicts(actions: &[Action]) -> Vec<(u16, Verdict)> {
    let verdict = |action: &Action| match action {
        Action::Link { node, new, .. } => Some((*node, *new)),
        _ => None,
    };
    actions.iter().filter_map(verdict).collect()
}

//= docs/fabric.md#1.1 type=test
//= docs/fabric.md#1.2 type=test
//= docs/fabric.md#1.4 type=test
#[test]
fn settings_out_of_range_are_refused_by_name() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config { node: 1, epoch: 10, settings: Settings::new(4, 1500) };
        assert_eq!(config.check(), Ok(()));
        change(&mut config);
        let refused = Session::new(config, 1, SECRET).expect_err("out of range");
        refused.to_string()
    };
    assert_eq!(refused(|config| config.node = 4), "node: '4' is outside the allowed range 0 to 3");
    assert_eq!(
        refused(|config| config.settings.nodes = 1),
        "nodes: '1' is outside the allowed range 2 to 512"
    );
    assert!(refused(|config| config.settings.nodes = 513).starts_with("nodes: '513'"));
    assert_eq!(refused(|config| config.epoch = 0), "epoch: '0' is outside the allowed range 1 and above");
    assert_eq!(
        refused(|config| config.settings.mtu = 65_522),
        "mtu: '65522' is outside the allowed range 68 to 65521"
    );
    assert_eq!(
        refused(|config| config.settings.timing.interval = millis(9)),
        "interval: '9ms' is outside the allowed range 10ms to 10s"
    );
    assert!(refused(|config| config.settings.queues = 0).starts_with("queues: '0'"));
    assert!(refused(|config| config.settings.queues = 65).ends_with("allowed range 1 to 64"));
    assert!(refused(|config| config.settings.timing.multiplier = 1).starts_with("multiplier: '1'"));
    assert!(refused(|config| config.settings.timing.retry_min = millis(1001)).starts_with("retry_min"));
    assert_eq!((NODES_MIN, NODES_MAX), (2, 512));
}

#[test]
fn a_session_that_does_not_run_says_and_takes_nothing() {
    let mut node = Node::idle();
    assert_eq!(node.session.poll_timeout(), None);
    assert!(node.handle(Input::Timeout).is_empty());
    let hello = Control {
        kind: ControlKind::Hello,
        ..answer(ControlKind::Accept, &answer(ControlKind::Bye, &NOTHING))
    };
    assert!(node.hears(PEER, &hello).is_empty());
    assert_eq!(node.count(Counter::RxStopped), 1);
    let actions = node.handle(Input::Start);
    assert!([0, 2, 3].iter().all(|peer| sent(&actions, *peer).len() == 1), "a HELLO to each");
}

const NOTHING: Control = Control {
    kind: ControlKind::Hello,
    reason: None,
    offer: linkbraid_wire::fabric::Offer {
        nodes: 4,
        mtu: 1500,
        interval_us: 1,
        multiplier: 1,
        queues: 1,
        features: 0,
    },
    cookie: 1,
    number: 0,
    echo: 0,
    fast_path: None,
};

//= docs/fabric.md#4.4 type=test
#[test]
fn a_cookie_tells_nothing_of_the_next_one() {
    let mut node = Node::idle();
    let asked = sent(&node.handle(Input::Start), PEER.0)[0];
    let foretold = crate::random::foretold(asked.cookie);
    let said = sent(&node.hears(PEER, &answer(ControlKind::Accept, &asked)), PEER.0)[0];
    assert!(said.cookie != asked.cookie && !foretold.contains(&said.cookie), "{said:?}");
}

//= docs/fabric.md#4.10 type=test
#[test]
fn hellos_get_rarer_and_begin_anew_when_the_peer_speaks() {
    let mut node = Node::running();
    let mut count = |duration| sent(&node.pass(duration), 3).len();
    let first = count(millis(100));
    assert!((3..=5).contains(&first), "10, 20, 40 ms: {first}");
    count(millis(5000));
    let later = count(millis(10_000));
    assert!((10..=14).contains(&later), "one a second: {later}");
    let hello = Control { echo: 0, ..answer(ControlKind::Hello, &NOTHING) };
    node.hears((3, 30), &hello);
    let again = sent(&node.pass(millis(100)), 3).len();
    assert!((3..=6).contains(&again), "as at the start: {again}");
}

/// Two nodes of 4 that differ in their MTU.
fn strangers() -> [Session; 2] {
    [(1, 10, 1500), (2, 20, 9000)].map(|(node, epoch, mtu)| {
        let config = Config { node, epoch, settings: Settings::new(4, mtu) };
        Session::new(config, u64::from(node), Secret::new([node as u8; 16])).expect("good settings")
    })
}

/// Carries what each says to the other until `end`; how many messages that were.
fn talk(pair: &mut [Session; 2], now: &mut Time, end: Time) -> usize {
    let mut said = 0;
    loop {
        for from in 0..2 {
            while let Some(action) = pair[from].poll_action() {
                let (own, to) = (pair[from].node(), pair[1 - from].node());
                if let Action::Send { node, bytes } = action
                    && node == to
                {
                    said += 1;
                    pair[1 - from].handle(*now, Input::Message { node: own, bytes: &bytes });
                }
            }
        }
        let next = pair.iter().filter_map(Session::poll_timeout).min().expect("a deadline");
        if next > end {
            *now = end;
            return said;
        }
        *now = next.max(*now);
        pair.iter_mut().for_each(|session| session.handle(*now, Input::Timeout));
    }
}

//= docs/fabric.md#4.10 type=test
#[test]
fn nodes_that_refuse_each_other_grow_quiet_and_hear_of_a_change_at_once() {
    let mut pair = strangers();
    let mut now = Time::from_millis(1);
    pair.iter_mut().for_each(|session| session.handle(now, Input::Start));
    let end = now + millis(5_000);
    talk(&mut pair, &mut now, end);
    assert!(matches!(pair[0].verdict(2), Some(Verdict::Refused { .. })), "{:?}", pair[0].verdict(2));
    let end = now + millis(10_000);
    let said = talk(&mut pair, &mut now, end);
    assert!((20..=60).contains(&said), "a HELLO and a REFUSE a second each way: {said} in ten");
    pair[0].set(now, Settings::new(4, 9000)).expect("good settings");
    let end = now + millis(20);
    talk(&mut pair, &mut now, end);
    assert!(pair.iter().all(Session::any_up), "{:?}", pair.each_ref().map(Session::any_up));
}

//= docs/fabric.md#5.9 type=test
#[test]
fn a_round_trip_is_measured_once_an_interval_at_most_and_proves_no_deafness() {
    let mut node = Node::up();
    let (mut asked, mut measured) = (0, Vec::new());
    for _ in 0..300 {
        let actions = node.pass(millis(10));
        let said = sent(&actions, PEER.0);
        for (hello, next) in said.iter().zip(said.iter().skip(1)) {
            if hello.kind == ControlKind::Hello {
                asked += 1;
                assert_eq!(next.kind, ControlKind::Alive, "the last that it says is that it hears");
                node.now = node.now + Duration::from_micros(250);
                let wrong = Control { echo: hello.cookie ^ 1, ..answer(ControlKind::Accept, hello) };
                for answered in
                    [wrong, answer(ControlKind::Accept, hello), answer(ControlKind::Accept, hello)]
                {
                    measured.extend(node.hears(PEER, &answered));
                }
            }
        }
        node.handle(Input::Traffic { node: PEER.0, epoch: PEER.1 });
    }
    assert!((15..=30).contains(&asked), "{asked} in three seconds");
    assert_eq!(measured.len(), asked, "once each: {measured:?}");
    // The answer comes 250 us after the end of the 10 ms in which the question left.
    let range = Duration::from_micros(250)..=Duration::from_micros(10_250);
    let good =
        |action: &Action| matches!(action, Action::RoundTrip { node: 2, took } if range.contains(took));
    assert!(measured.iter().all(good), "{measured:?}");
}

//= docs/fabric.md#5.9 type=test
#[test]
fn a_slow_round_trip_is_waited_for_and_measured_whole() {
    let mut node = Node::up();
    let hellos = |actions: &[Action]| {
        sent(actions, PEER.0).into_iter().filter(|said| said.kind == ControlKind::Hello).collect::<Vec<_>>()
    };
    let pass = |node: &mut Node, steps: u32| {
        let mut asked = Vec::new();
        for _ in 0..steps {
            asked.extend(hellos(&node.pass(millis(10))));
            node.handle(Input::Traffic { node: PEER.0, epoch: PEER.1 });
        }
        asked
    };
    // Nothing is asked in between, though its turn came several times.
    let asked = pass(&mut node, 60);
    assert_eq!(asked.len(), 1);
    let answered = node.hears(PEER, &answer(ControlKind::Accept, &asked[0]));
    let took = answered.iter().find_map(|action| match action {
        Action::RoundTrip { took, .. } => Some(*took),
        _ => None,
    });
    assert!(took.is_some_and(|took| (millis(490)..=millis(600)).contains(&took)), "{answered:?}");
    // One that never comes is given up.
    let asked = pass(&mut node, 250);
    assert!((2..=3).contains(&asked.len()), "{} in two and a half seconds", asked.len());
}

//= docs/fabric.md#5.9 type=test
//= docs/fabric.md#5.11 type=test
#[test]
fn a_round_trip_of_seconds_keeps_a_link_up_and_its_cookie_until_it_has_come_back() {
    const TOOK: Duration = Duration::from_secs(4);
    let mut node = Node::up();
    let (begun, mut cookies) = (node.now, Vec::new());
    let mut under_way = std::collections::VecDeque::new();
    // What the peer heard last, before the link was up.
    let mut heard = Control {
        cookie: 1,
        ..answer(ControlKind::Alive, &answer(ControlKind::Alive, &sent(&node.pass(millis(90)), PEER.0)[0]))
    };
    while node.now.since(begun) < Duration::from_secs(30) {
        for said in sent(&node.pass(millis(50)), PEER.0) {
            if cookies.last() != Some(&said.cookie) {
                cookies.push(said.cookie);
            }
            under_way.push_back((node.now + TOOK, said));
        }
        while let Some((_, said)) = under_way.pop_front_if(|(at, _)| *at <= node.now) {
            heard = said;
            if said.kind == ControlKind::Hello {
                node.hears(PEER, &answer(ControlKind::Accept, &said));
            }
        }
        node.hears(PEER, &answer(ControlKind::Alive, &heard));
        assert!(node.session.verdict(PEER.0).is_some_and(|verdict| verdict.is_up()), "{:?}", node.now);
    }
    assert!((7..=9).contains(&cookies.len()), "one for each round trip: {}", cookies.len());
}

//= docs/fabric.md#5.9 type=test
#[test]
fn many_peers_are_asked_less_often() {
    let every = |nodes| Settings::new(nodes, 1500).ask_every();
    assert_eq!((every(2), every(11)), (millis(100), millis(100)));
    assert_eq!((every(101), every(512)), (millis(1000), millis(5110)));
}

#[test]
fn an_answer_that_brings_the_link_down_measures_nothing() {
    let mut node = Node::up();
    let actions = node.pass(millis(100));
    let asked = sent(&actions, PEER.0).into_iter().find(|control| control.kind == ControlKind::Hello);
    let good = answer(ControlKind::Accept, &asked.expect("it asks"));
    let other = Control { offer: Offer { queues: 2, ..good.offer }, ..good };
    let actions = node.hears(PEER, &other);
    assert!(matches!(verdicts(&actions)[..], [(2, Verdict::Refused { .. })]), "{actions:?}");
    let measured = |action: &Action| matches!(action, Action::RoundTrip { .. });
    assert!(!actions.iter().any(measured), "{actions:?}");
}

//= docs/fabric.md#4.4 type=test
#[test]
fn what_is_sent_after_a_link_came_up_comes_after_the_verdict() {
    let mut node = Node::idle();
    let asked = sent(&node.handle(Input::Start), PEER.0)[0];
    let actions = node.hears(PEER, &answer(ControlKind::Accept, &asked));
    assert!(matches!(actions[0], Action::Link { node: 2, .. }));
    assert!(matches!(actions[1], Action::Send { node: 2, .. }));
    assert_eq!(actions.len(), 2);
    let gate = Gate { local: 1, local_epoch: 10, peer: 2, peer_epoch: 20 };
    assert_eq!(node.session.gate(2), Some(gate));
    assert_eq!(node.session.gate(3), None);
    assert!(node.session.any_up());
}

//= docs/fabric.md#4.1 type=test
#[test]
fn messages_of_wrong_queues_and_of_our_own_number_are_ignored() {
    let mut node = Node::up();
    let bye = answer(ControlKind::Bye, &NOTHING);
    let send = |node: &mut Node, queue, from, to| {
        let bytes = emit_control(from, to, &bye).expect("a good message");
        node.handle(Input::Message { node: queue, bytes: &bytes })
    };
    assert!(send(&mut node, 2, PEER, (3, 10)).is_empty());
    assert_eq!(node.count(Counter::OtherReceiver), 1);
    assert!(send(&mut node, 3, PEER, HERE).is_empty());
    assert_eq!(node.count(Counter::OtherSender), 1);
    assert!(send(&mut node, 9, (9, 90), HERE).is_empty());
    assert_eq!(node.count(Counter::UnknownNode), 1);
    assert_eq!(send(&mut node, 2, (1, 11), (2, 20)), [Action::Event(Event::OwnNumber { epoch: 11 })]);
    assert!(send(&mut node, 2, (1, 11), (2, 20)).is_empty(), "told once");
    assert!(send(&mut node, 2, HERE, (2, 20)).is_empty(), "a loop");
    assert_eq!(node.count(Counter::OwnNumber), 3);
    assert!(node.session.any_up());
    assert_eq!(verdicts(&send(&mut node, 2, PEER, HERE)), [(2, Verdict::Down(Down::Left))]);
}

//= docs/fabric.md#2.8 type=test
#[test]
fn hostile_bytes_change_nothing_but_a_counter() {
    let mut node = Node::up();
    let good = emit_control(PEER, HERE, &answer(ControlKind::Bye, &NOTHING)).expect("a good message");
    let before = node.session.snapshot(node.now);
    for (at, value, counter) in [
        (0, 9, Counter::RefusedVersion),
        (1, 9, Counter::RefusedKind),
        (2, 9, Counter::RefusedNode),
        (31, 33, Counter::RefusedLengthMismatch),
        (31, 31, Counter::RefusedLength),
        (HEADER_LEN, 9, Counter::RefusedControlType),
        (HEADER_LEN + 1, 1, Counter::RefusedReason),
        (HEADER_LEN + 2, 9, Counter::RefusedNodes),
        (HEADER_LEN + 4, 9, Counter::RefusedMtu),
        (HEADER_LEN + 12, 0, Counter::RefusedTiming),
    ] {
        let mut bytes = good.to_vec();
        bytes[at] = value;
        let counted = node.count(counter);
        assert!(node.handle(Input::Message { node: 2, bytes: &bytes }).is_empty());
        assert_eq!(node.count(counter), counted + 1, "{}", counter.name());
    }
    for short in 0..good.len() {
        assert!(node.handle(Input::Message { node: 2, bytes: &good[..short] }).is_empty());
    }
    let after = node.session.snapshot(node.now);
    assert_eq!(Snapshot { counters: before.counters.clone(), ..after }, before);
}

//= docs/fabric.md#5.1 type=test
#[test]
fn detection_follows_the_offer_of_the_peer_within_bounds() {
    let offer = |interval_us, multiplier| Offer { interval_us, multiplier, ..NOTHING.offer };
    assert_eq!(detection(&offer(50_000, 3)), millis(150));
    assert_eq!(detection(&offer(1, 1)), millis(20));
    assert_eq!(detection(&offer(u32::MAX, 255)), Duration::from_secs(500));
    let mut node = Node::up();
    let actions = node.pass(millis(400));
    assert_eq!(verdicts(&actions), [(2, Verdict::Down(Down::Silent))]);
    let alive = sent(&actions, 2).iter().filter(|said| said.kind == ControlKind::Alive).count();
    assert!((4..=5).contains(&alive), "{alive}");
    assert_eq!(node.count(Counter::Silent), 1);
}

//= docs/fabric.md#5.10 type=test
#[test]
fn a_node_that_did_not_run_does_not_take_others_for_dead() {
    let mut node = Node::up();
    node.now = node.now + millis(700);
    assert!(verdicts(&node.handle(Input::Timeout)).is_empty(), "all stood still, perhaps");
    assert_eq!(node.count(Counter::Late), 1);
    assert!(verdicts(&node.pass(millis(99))).is_empty());
    assert_eq!(verdicts(&node.pass(millis(1))), [(2, Verdict::Down(Down::Silent))]);
}

//= docs/fabric.md#5.7 type=test
#[test]
fn frames_keep_a_link_up_whose_control_messages_are_late() {
    let mut node = Node::up();
    for _ in 0..20 {
        assert!(verdicts(&node.pass(millis(100))).is_empty());
        node.handle(Input::Traffic { node: 2, epoch: PEER.1 });
    }
    node.handle(Input::Traffic { node: 2, epoch: 21 });
    assert_eq!(verdicts(&node.pass(millis(401))), [(2, Verdict::Down(Down::Silent))]);
}

#[test]
fn a_peer_that_the_transport_lost_is_down_at_once_and_asked_soon() {
    let mut node = Node::up();
    let actions = node.handle(Input::Gone { node: 2 });
    assert_eq!(verdicts(&actions), [(2, Verdict::Down(Down::Gone))]);
    let asked = sent(&node.pass(millis(10)), 2);
    assert_eq!(asked.iter().map(|said| said.kind).collect::<Vec<_>>(), [ControlKind::Hello]);
    assert!(node.handle(Input::Gone { node: 2 }).is_empty());
}

//= docs/fabric.md#5.5 type=test
#[test]
fn the_start_that_is_up_has_one_interval_to_prove_itself() {
    let mut node = Node::up();
    node.pass(millis(10));
    let other = (2, 21);
    let hello = Control { echo: 0, ..answer(ControlKind::Hello, &NOTHING) };
    let asked = sent(&node.hears(other, &hello), 2)[0];
    assert_eq!(asked.kind, ControlKind::Hello);
    let actions = node.hears(other, &answer(ControlKind::Accept, &asked));
    assert_eq!(sent(&actions, 2)[0].kind, ControlKind::Hello, "the one that is up is asked");
    assert_eq!(node.session.snapshot(node.now).peers[1].rival, Some(21));
    let actions = node.pass(millis(99));
    assert!(verdicts(&actions).is_empty());
    let asked = sent(&actions, 2).iter().filter(|said| said.kind == ControlKind::Hello).count();
    assert!(asked >= 3, "and asked again, for a message may be lost: {asked}");
    let expected = [(2, Verdict::Down(Down::Restarted)), (2, Verdict::Up { epoch: 21 })];
    assert_eq!(verdicts(&node.pass(millis(1))), expected);
    assert_eq!(node.session.gate(2).map(|gate| gate.peer_epoch), Some(21));
}

#[test]
fn whoever_stops_says_goodbye_and_is_quiet_for_ever() {
    let mut node = Node::up();
    let actions = node.handle(Input::Stop);
    assert_eq!(sent(&actions, 2).iter().map(|said| said.kind).collect::<Vec<_>>(), [ControlKind::Bye]);
    assert_eq!(verdicts(&actions).len(), 3, "every link is told");
    assert_eq!(node.session.poll_timeout(), None);
    assert!(node.handle(Input::Start).is_empty(), "an epoch is used once");
    assert!(!node.session.is_running() && !node.session.any_up());
}

//= docs/fabric.md#4.6 type=test
#[test]
fn nodes_are_added_and_never_taken_away() {
    let mut node = Node::up();
    let set = |node: &mut Node, nodes| node.session.set(node.now, Settings::new(nodes, 1500));
    let refused = set(&mut node, 3).expect_err("fewer");
    assert_eq!(refused.to_string(), "nodes: '3' is outside the allowed range 4 to 512");
    assert_eq!(set(&mut node, 6), Ok(()));
    let actions = node.drain();
    assert_eq!(sent(&actions, 2)[0].offer.nodes, 6, "told at once");
    assert!(verdicts(&actions).is_empty());
    assert!([4, 5].iter().all(|peer| sent(&actions, *peer)[0].kind == ControlKind::Hello));
    let snapshot = node.session.snapshot(node.now);
    assert_eq!(snapshot.peers.len(), 5);
    assert_eq!(snapshot.peers[1].queues, Queues { send: 6 + 2, receive: 6 * 2 + 1 });
}

//= docs/fabric.md#5.2 type=test
#[test]
fn intervals_stretch_with_many_peers() {
    assert_eq!(Settings::new(16, 1500).interval(), millis(100));
    assert_eq!(Settings::new(101, 1500).interval(), millis(100));
    assert_eq!(Settings::new(512, 1500).interval(), millis(511));
    assert_eq!(Settings::new(512, 1500).offer().interval_us, 511_000);
}

//= docs/fabric.md#6.5 type=test
#[test]
fn carrier_follows_whether_any_link_is_up() {
    assert!(!Node::running().session.any_up());
    let mut node = Node::up();
    assert!(node.session.any_up());
    node.handle(Input::Gone { node: 2 });
    assert!(!node.session.any_up());
}

#[test]
fn actions_that_nobody_polls_are_bounded() {
    let mut node = Node::up();
    let hello = answer(ControlKind::Hello, &NOTHING);
    let bytes = emit_control(PEER, HERE, &hello).expect("a good message");
    for _ in 0..limits::ACTIONS_MAX + 5 {
        node.session.handle(node.now, Input::Message { node: 2, bytes: &bytes });
    }
    assert_eq!(node.count(Counter::LimitActions), 5);
    assert_eq!(node.drain().len(), limits::ACTIONS_MAX);
}

#[test]
fn what_a_peer_offers_is_known_while_it_is_up() {
    let node = Node::up();
    assert_eq!(node.session.offer(PEER.0), Some(&Settings::new(4, 1500).offer()));
    assert_eq!([1, 3, 9].map(|other| node.session.offer(other)), [None; 3]);
    assert_eq!(Node::running().session.offer(PEER.0), None);
}

//= docs/fabric.md#7.7 type=test
#[test]
fn a_peer_is_informed_once_that_its_frames_come_over_the_fast_path() {
    let settings = Settings { fast_path: Some(4789), ..Settings::new(4, 1500) };
    let config = Config { node: HERE.0, epoch: HERE.1, settings };
    let session = Session::new(config, 5, SECRET).expect("good settings");
    let mut node = Node { session, now: Time::from_millis(1) };
    let says = |node: &mut Node, heard| {
        node.session.set_heard(node.now, PEER.0, heard);
        let told = sent(&node.drain(), PEER.0);
        (
            told.iter().map(|told| told.fast_path.expect("it is up").heard).collect::<Vec<_>>(),
            node.session.hears(PEER.0),
        )
    };
    assert_eq!(says(&mut node, true), (vec![], false), "nobody is there yet");
    let asked = sent(&node.handle(Input::Start), PEER.0)[0];
    assert_eq!((node.session.tag(PEER.0), says(&mut node, true)), (None, (vec![], false)));
    node.hears(PEER, &answer(ControlKind::Accept, &asked));
    assert!(node.session.tag(PEER.0).is_some() && node.session.fast_path(PEER.0).is_none());
    assert_eq!(says(&mut node, false), (vec![], false), "that is what it knows");
    assert_eq!(says(&mut node, true), (vec![true], true));
    assert_eq!(says(&mut node, true), (vec![], true));
    assert_eq!(says(&mut node, false), (vec![false], false));
    assert!(!node.session.hears(9));
    let theirs = sent(&node.pass(millis(200)), PEER.0)[0];
    let said = Control { number: 9, ..answer(ControlKind::Alive, &theirs) };
    node.hears(PEER, &Control { fast_path: theirs.fast_path, ..said });
    assert_eq!((node.session.fast_path(PEER.0), theirs.fast_path.is_some()), (theirs.fast_path, true));
}
