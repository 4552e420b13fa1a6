//! What a link does with each input, without time.

use super::*;
use linkbraid_wire::fabric::{Offer, RefuseReason};

const OFFER: Offer =
    Offer { nodes: 2, mtu: 1500, interval_us: 100_000, multiplier: 4, queues: 1, features: 0 };

/// One end and where its cookies come from.
struct End {
    own: Own,
    link: Link,
    cookies: u64,
}

type Sent = (u64, Control);

impl End {
    fn new(epoch: u64) -> End {
        let mut cookies = epoch * 100;
        let link = Link::new(&mut || draw(&mut cookies));
        End { own: Own { epoch, offer: OFFER, fast_path: None }, link, cookies }
    }

    fn handle(&mut self, input: LinkInput) -> Vec<Effect> {
        let mut out = Vec::new();
        self.link.handle(&self.own, input, &mut || draw(&mut self.cookies), &mut out);
        out
    }

    fn hears(&mut self, from: &End, (to, control): Sent) -> Vec<Effect> {
        self.handle(LinkInput::Message { from: from.own.epoch, to, control })
    }

    fn says(&mut self) -> Sent {
        let effects = self.handle(LinkInput::Resend);
        sent(&effects)[0]
    }
}

fn draw(cookies: &mut u64) -> u64 {
    *cookies += 1;
    *cookies
}

fn sent(effects: &[Effect]) -> Vec<Sent> {
    let message = |effect: &Effect| match effect {
        Effect::Send(to, control) => Some((*to, *control)),
        _ => None,
    };
    effects.iter().filter_map(message).collect()
}

fn kinds(effects: &[Effect]) -> Vec<(u64, ControlKind)> {
    sent(effects).into_iter().map(|(to, control)| (to, control.kind)).collect()
}

fn verdicts(effects: &[Effect]) -> Vec<Verdict> {
    let verdict = |effect: &Effect| match effect {
        Effect::Verdict(verdict) => Some(*verdict),
        _ => None,
    };
    effects.iter().filter_map(verdict).collect()
}

fn counted(effects: &[Effect], counter: Counter) -> bool {
    effects.contains(&Effect::Count(counter))
}

/// Two ends, connected: `a` said HELLO.
fn connected(a: u64, b: u64) -> (End, End) {
    let (mut a, mut b) = (End::new(a), End::new(b));
    let hello = a.says();
    let accept = sent(&b.hears(&a, hello))[0];
    let alive = sent(&a.hears(&b, accept))[0];
    b.hears(&a, alive);
    assert_eq!(a.link.verdict(), Verdict::Up { epoch: b.own.epoch });
    assert_eq!(b.link.verdict(), Verdict::Up { epoch: a.own.epoch });
    (a, b)
}

//= docs/fabric.md#4.3 type=test
//= docs/fabric.md#4.4 type=test
#[test]
fn hello_accept_alive_and_both_are_up() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let hello = a.says();
    assert_eq!((hello.0, hello.1.kind, hello.1.echo), (0, ControlKind::Hello, 0));
    let effects = b.hears(&a, hello);
    assert_eq!(kinds(&effects), [(1, ControlKind::Accept)]);
    assert!(effects.contains(&Effect::Hurry) && verdicts(&effects).is_empty(), "nothing is kept of a HELLO");
    let accept = sent(&effects)[0];
    assert_eq!(accept.1.echo, hello.1.cookie);
    let effects = a.hears(&b, accept);
    assert_eq!(
        effects[..2],
        [Effect::Verdict(Verdict::Up { epoch: 2 }), Effect::Proof],
        "up first, then what is said"
    );
    let alive = sent(&effects)[0];
    assert_eq!((alive.0, alive.1.kind, alive.1.echo), (2, ControlKind::Alive, accept.1.cookie));
    assert_ne!(alive.1.cookie, hello.1.cookie, "a cookie proves once");
    let effects = b.hears(&a, alive);
    assert_eq!(verdicts(&effects), [Verdict::Up { epoch: 1 }]);
    assert_eq!(kinds(&effects), [(1, ControlKind::Alive)]);
    assert!(sent(&a.hears(&b, sent(&effects)[0])).is_empty(), "and then it is quiet");
}

#[test]
fn both_may_say_hello_at_once() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (from_a, from_b) = (a.says(), b.says());
    let (to_b, to_a) = (sent(&a.hears(&b, from_b))[0], sent(&b.hears(&a, from_a))[0]);
    let (from_a, from_b) = (sent(&a.hears(&b, to_a))[0], sent(&b.hears(&a, to_b))[0]);
    assert!(a.link.verdict().is_up() && b.link.verdict().is_up());
    assert!(sent(&a.hears(&b, from_b)).is_empty() && sent(&b.hears(&a, from_a)).is_empty());
}

//= docs/fabric.md#4.2 type=test
#[test]
fn what_is_for_an_earlier_start_is_ignored() {
    let (mut a, b) = connected(1, 2);
    let before = a.link.clone();
    let control = Control { kind: ControlKind::Bye, ..b.link_says() };
    let effects = a.hears(&b, (9, control));
    assert_eq!(effects, [Effect::Count(Counter::EarlierStart)]);
    assert_eq!(a.link, before);
}

impl End {
    fn link_says(&self) -> Control {
        let Link { cookie, number, .. } = self.link;
        let echo = self.link.peer().map_or(0, |peer| peer.cookie);
        let (kind, offer) = (ControlKind::Alive, self.own.offer);
        Control { kind, reason: None, offer, cookie, number, echo, fast_path: None }
    }
}

//= docs/fabric.md#4.4 type=test
#[test]
fn an_echo_proves_once() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let hello = a.says();
    let accept = sent(&b.hears(&a, hello))[0];
    a.hears(&b, accept);
    assert_eq!(verdicts(&a.handle(LinkInput::Expired)), [Verdict::Down(Down::Silent)]);
    let effects = a.hears(&b, accept);
    assert!(verdicts(&effects).is_empty() && counted(&effects, Counter::Unproven));
    assert_eq!(kinds(&effects), [(2, ControlKind::Hello)]);
    assert_eq!(a.link.verdict(), Verdict::Down(Down::Silent));
}

//= docs/fabric.md#4.8 type=test
#[test]
fn a_peer_that_missed_the_end_of_a_link_is_asked_at_once() {
    let (mut a, mut b) = connected(1, 2);
    a.handle(LinkInput::Expired);
    let alive = b.says();
    let hello = sent(&a.hears(&b, alive))[0];
    assert_eq!((hello.0, hello.1.kind), (2, ControlKind::Hello));
    let accept = sent(&b.hears(&a, hello))[0];
    assert_eq!(verdicts(&a.hears(&b, accept)), [Verdict::Up { epoch: 2 }]);
    assert!(b.link.verdict().is_up(), "who did not miss anybody stays up all the while");
}

//= docs/fabric.md#5.3 type=test
#[test]
fn hello_proves_nothing_and_who_says_nothing_else_is_deaf() {
    let (mut a, mut b) = connected(1, 2);
    b.handle(LinkInput::Expired);
    let hello = b.says();
    let effects = a.hears(&b, hello);
    assert_eq!(kinds(&effects), [(2, ControlKind::Accept)]);
    assert!(!effects.contains(&Effect::Proof));
    // One alone may be the question for a round trip.
    assert_eq!(verdicts(&a.clone_end().handle(LinkInput::Expired)), [Verdict::Down(Down::Silent)]);
    a.hears(&b, b.clone_end().says());
    let deaf = verdicts(&a.clone_end().handle(LinkInput::Expired));
    assert_eq!(deaf, [Verdict::Down(Down::Deaf)]);
    let alive = sent(&b.hears(&a, sent(&effects)[0]))[0];
    assert!(a.hears(&b, alive).contains(&Effect::Proof));
    assert_eq!(verdicts(&a.handle(LinkInput::Expired)), [Verdict::Down(Down::Silent)]);
}

impl End {
    fn clone_end(&self) -> End {
        End { own: self.own, link: self.link.clone(), cookies: self.cookies }
    }
}

//= docs/fabric.md#5.7 type=test
#[test]
fn frames_of_the_start_that_is_up_are_proof() {
    let (mut a, _) = connected(1, 2);
    assert_eq!(a.handle(LinkInput::Traffic { epoch: 2 }), [Effect::Proof]);
    assert_eq!(a.handle(LinkInput::Traffic { epoch: 3 }), []);
    a.handle(LinkInput::Gone);
    assert_eq!(a.link.verdict(), Verdict::Down(Down::Gone));
    assert_eq!(a.handle(LinkInput::Traffic { epoch: 2 }), []);
}

//= docs/fabric.md#4.9 type=test
#[test]
fn who_says_goodbye_is_down_for_good() {
    let (mut a, mut b) = connected(1, 2);
    let last = b.says();
    let effects = b.handle(LinkInput::Stop);
    assert_eq!(kinds(&effects), [(1, ControlKind::Bye)]);
    assert_eq!(verdicts(&a.hears(&b, sent(&effects)[0])), [Verdict::Down(Down::Left)]);
    assert!(verdicts(&a.hears(&b, last)).is_empty(), "what it said before proves nothing");
    assert!(counted(&a.hears(&b, sent(&effects)[0]), Counter::OtherEpoch), "nor is it taken down twice");
    let stranger = End::new(3);
    let bye = Control { kind: ControlKind::Bye, ..stranger.link_says() };
    let (mut a, _) = connected(1, 2);
    assert!(counted(&a.hears(&stranger, (1, bye)), Counter::OtherEpoch));
    assert!(a.link.verdict().is_up(), "only for itself");
}

//= docs/fabric.md#4.11 type=test
#[test]
fn what_was_said_before_what_is_known_is_ignored() {
    let (mut a, mut b) = connected(1, 2);
    let early = b.says();
    b.own.offer.features = 7;
    let late = sent(&b.handle(LinkInput::Changed))[0];
    assert_eq!(late.1.kind, ControlKind::Alive);
    assert!(a.hears(&b, late).contains(&Effect::Proof));
    assert_eq!(a.hears(&b, early), [Effect::Count(Counter::Stale)]);
    assert_eq!(a.link.peer().map(|peer| (peer.offer.features, peer.cookie)), Some((7, late.1.cookie)));
}

//= docs/fabric.md#4.11 type=test
#[test]
fn numbers_of_cookies_go_round() {
    let stale = |ahead: u32| {
        let (mut a, b) = connected(1, 2);
        let known = a.link.peer().expect("it is up").number;
        let said = Control { number: known.wrapping_add(ahead), ..b.link_says() };
        counted(&a.hears(&b, (1, said)), Counter::Stale)
    };
    assert_eq!([0, (1 << 31) - 1, 1 << 31, u32::MAX].map(stale), [false, false, true, true]);
}

/// `a` is up with start 2 of its peer and hears start 3, which proves that it lives.
fn doubt() -> (End, End, End, Vec<Effect>) {
    let (mut a, b) = connected(1, 2);
    let mut c = End::new(3);
    let hello = c.says();
    let effects = a.hears(&c, hello);
    assert_eq!(kinds(&effects), [(3, ControlKind::Hello)], "not ACCEPT, or it took the link for up");
    let effects = c.hears(&a, sent(&effects)[0]);
    assert_eq!(kinds(&effects), [(1, ControlKind::Accept)]);
    assert!(!c.link.verdict().is_up());
    let effects = a.hears(&c, sent(&effects)[0]);
    assert!(effects.contains(&Effect::Doubt) && verdicts(&effects).is_empty());
    assert_eq!(kinds(&effects), [(2, ControlKind::Hello)]);
    assert_eq!(a.link.rival().map(|rival| rival.epoch), Some(3));
    (a, b, c, effects)
}

//= docs/fabric.md#5.4 type=test
#[test]
fn another_start_alone_changes_nothing() {
    let (mut a, _) = connected(1, 2);
    let mut c = End::new(3);
    let before = a.link.clone();
    let hello = c.says();
    let effects = a.hears(&c, hello);
    assert!(counted(&effects, Counter::OtherEpoch));
    assert_eq!(a.link, before);
    let bluff = Control { echo: 77, ..c.link_says() };
    assert_eq!(a.hears(&c, (1, bluff)), [Effect::Count(Counter::OtherEpoch)]);
    assert_eq!(a.link, before);
}

//= docs/fabric.md#5.5 type=test
#[test]
fn a_restarted_peer_comes_up_when_the_doubt_runs_out() {
    let (mut a, _, mut c, _) = doubt();
    let effects = a.handle(LinkInput::Doubted);
    assert_eq!(verdicts(&effects), [Verdict::Down(Down::Restarted), Verdict::Up { epoch: 3 }]);
    assert_eq!(kinds(&effects), [(3, ControlKind::Alive)]);
    assert_eq!(verdicts(&c.hears(&a, sent(&effects)[0])), [Verdict::Up { epoch: 1 }]);
    let (mut a, ..) = doubt();
    let effects = a.handle(LinkInput::Gone);
    assert_eq!(verdicts(&effects), [Verdict::Down(Down::Gone), Verdict::Up { epoch: 3 }]);
}

//= docs/fabric.md#5.6 type=test
#[test]
fn two_live_starts_are_found_and_the_first_one_stays() {
    let (mut a, mut b, mut c, effects) = doubt();
    let accept = sent(&b.hears(&a, sent(&effects)[0]))[0];
    let effects = a.hears(&b, accept);
    assert!(effects.contains(&Effect::Duplicate { rival: 3 }) && verdicts(&effects).is_empty());
    assert_eq!(kinds(&effects), [(3, ControlKind::Refuse)]);
    let refused = Verdict::Refused { by: Side::Peer, why: Mismatch::Taken };
    assert_eq!(verdicts(&c.hears(&a, sent(&effects)[0])), [refused]);
    assert_eq!(a.handle(LinkInput::Doubted), [], "there is no doubt left");
    assert_eq!(a.link.verdict(), Verdict::Up { epoch: 2 });
}

#[test]
fn what_the_start_that_is_up_said_before_the_doubt_proves_nothing_in_it() {
    let (mut a, mut b) = connected(1, 2);
    let before = b.says();
    let mut c = End::new(3);
    let hello = c.says();
    let challenge = sent(&a.hears(&c, hello))[0];
    let accept = sent(&c.hears(&a, challenge))[0];
    a.hears(&c, accept);
    let effects = a.hears(&b, before);
    assert_eq!(effects, [Effect::Sign], "it lived, but when");
    assert!(a.link.rival().is_some());
}

//= docs/fabric.md#4.5 type=test
//= docs/fabric.md#4.7 type=test
#[test]
fn other_mtus_are_refused_and_both_ends_name_both() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    b.own.offer.mtu = 9000;
    let hello = a.says();
    let effects = b.hears(&a, hello);
    let theirs = Verdict::Refused { by: Side::Local, why: Mismatch::Mtu { ours: 9000, theirs: 1500 } };
    assert_eq!(verdicts(&effects), [theirs]);
    assert_eq!(kinds(&effects), [(1, ControlKind::Refuse)]);
    let refuse = sent(&effects)[0];
    assert_eq!(refuse.1.reason, Some(RefuseReason::Mtu));
    let ours = Verdict::Refused { by: Side::Peer, why: Mismatch::Mtu { ours: 1500, theirs: 9000 } };
    assert_eq!(verdicts(&a.hears(&b, refuse)), [ours]);
    assert!(verdicts(&a.hears(&b, refuse)).is_empty(), "told once");
    let forged = Control { echo: 5, ..refuse.1 };
    assert_eq!(a.hears(&b, (1, forged)), [Effect::Count(Counter::Unproven)]);
    a.own.offer.mtu = 9000;
    a.handle(LinkInput::Changed);
    let hello = a.says();
    let accept = sent(&b.hears(&a, hello))[0];
    assert_eq!(verdicts(&a.hears(&b, accept)), [Verdict::Up { epoch: 2 }]);
}

//= docs/fabric.md#4.5 type=test
#[test]
fn a_link_whose_mtus_part_goes_down_at_both_ends() {
    let (mut a, mut b) = connected(1, 2);
    a.own.offer.mtu = 9000;
    let ours = Verdict::Refused { by: Side::Local, why: Mismatch::Mtu { ours: 9000, theirs: 1500 } };
    assert_eq!(verdicts(&a.handle(LinkInput::Changed)), [ours]);
    let hello = a.says();
    let theirs = Verdict::Refused { by: Side::Local, why: Mismatch::Mtu { ours: 1500, theirs: 9000 } };
    assert_eq!(verdicts(&b.hears(&a, hello)), [theirs]);
}

//= docs/fabric.md#4.12 type=test
//= docs/fabric.md#4.7 type=test
#[test]
fn other_queues_are_refused_and_both_ends_name_both() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    b.own.offer.queues = 4;
    let hello = a.says();
    let effects = b.hears(&a, hello);
    let why = Mismatch::Queues { ours: 4, theirs: 1 };
    assert_eq!(verdicts(&effects), [Verdict::Refused { by: Side::Local, why }]);
    assert_eq!(why.to_string(), "its queues are 1, this node's 4");
    let refuse = sent(&effects)[0];
    assert_eq!(refuse.1.reason, Some(RefuseReason::Queues));
    let why = Mismatch::Queues { ours: 1, theirs: 4 };
    assert_eq!(verdicts(&a.hears(&b, refuse)), [Verdict::Refused { by: Side::Peer, why }]);
}

//= docs/fabric.md#4.6 type=test
#[test]
fn a_fabric_grows_without_losing_a_link_and_strangers_must_agree() {
    let (mut a, mut b) = connected(1, 2);
    a.own.offer.nodes = 3;
    let alive = sent(&a.handle(LinkInput::Changed))[0];
    assert!(b.hears(&a, alive).contains(&Effect::Sign), "{:?}", b.link);
    let mut c = End::new(3);
    let hello = c.says();
    let effects = a.hears(&c, hello);
    assert_eq!(kinds(&effects), [(3, ControlKind::Refuse)]);
    assert_eq!(a.link.verdict(), Verdict::Up { epoch: 2 }, "for another start nothing goes down");
    let refuse = sent(&effects)[0];
    let why = Mismatch::Nodes { ours: 2, theirs: 3 };
    assert_eq!(verdicts(&c.hears(&a, refuse)), [Verdict::Refused { by: Side::Peer, why }]);
    assert_eq!(why.to_string(), "it was given 3 nodes, this node 2");
    b.handle(LinkInput::Expired);
    let hello = b.says();
    let why = Mismatch::Nodes { ours: 3, theirs: 2 };
    let effects = a.hears(&b, hello);
    assert_eq!(verdicts(&effects), [], "the start that is up is still up here");
    a.handle(LinkInput::Expired);
    let hello = b.says();
    assert_eq!(verdicts(&a.hears(&b, hello)), [Verdict::Refused { by: Side::Local, why }]);
}

//= docs/fabric.md#5.5 type=test
#[test]
fn a_rival_that_proves_itself_again_does_not_prolong_the_doubt() {
    let (mut a, mut b, mut c, challenge) = doubt();
    let hello = c.says();
    let asked = sent(&a.hears(&c, hello))[0];
    let accept = sent(&c.hears(&a, asked))[0];
    let effects = a.hears(&c, accept);
    assert!(!effects.contains(&Effect::Doubt), "{effects:?}");
    let accept = sent(&b.hears(&a, sent(&challenge)[0]))[0];
    assert!(a.hears(&b, accept).contains(&Effect::Duplicate { rival: 3 }), "nor does it void the challenge");
}

//= docs/fabric.md#5.8 type=test
#[test]
fn a_start_that_another_one_followed_does_not_come_back() {
    let (mut a, mut b, mut c, _) = doubt();
    let effects = a.handle(LinkInput::Doubted);
    c.hears(&a, sent(&effects)[0]);
    // It lives after all. It is asked, proves it, and is refused.
    b.handle(LinkInput::Expired);
    let hello = b.says();
    let asked = sent(&a.hears(&b, hello))[0];
    assert_eq!((asked.0, asked.1.kind), (2, ControlKind::Hello));
    let accept = sent(&b.hears(&a, asked))[0];
    let effects = a.hears(&b, accept);
    assert!(effects.contains(&Effect::Duplicate { rival: 2 }));
    let refused = Verdict::Refused { by: Side::Peer, why: Mismatch::Taken };
    assert_eq!(verdicts(&b.hears(&a, sent(&effects)[0])), [refused]);
    // Nor when nobody else is up.
    a.handle(LinkInput::Gone);
    let hello = b.says();
    let effects = a.hears(&b, hello);
    assert_eq!(kinds(&effects), [(2, ControlKind::Refuse)]);
    let hello = a.says();
    let accept = sent(&b.hears(&a, hello))[0];
    let effects = a.hears(&b, accept);
    assert_eq!(kinds(&effects), [(2, ControlKind::Refuse)]);
    assert!(verdicts(&effects).is_empty());
    // The other one may.
    let hello = a.says();
    let accept = sent(&c.hears(&a, hello))[0];
    assert_eq!(verdicts(&a.hears(&c, accept)), [Verdict::Up { epoch: 3 }]);
}

//= docs/fabric.md#5.8 type=test
#[test]
fn what_a_start_that_another_one_followed_said_before_is_not_answered() {
    let (mut a, mut b, mut c, _) = doubt();
    let effects = a.handle(LinkInput::Doubted);
    c.hears(&a, sent(&effects)[0]);
    // Neither while the other one is up nor when nobody is.
    for verdict in [Verdict::Up { epoch: 3 }, Verdict::Down(Down::Silent)] {
        assert_eq!(a.link.verdict(), verdict);
        let before = a.link.clone();
        let late = b.says();
        assert_eq!(
            (late.1.kind, a.hears(&b, late)),
            (ControlKind::Alive, vec![Effect::Count(Counter::OtherEpoch)])
        );
        assert_eq!(a.link, before);
        a.handle(LinkInput::Expired);
    }
}

//= docs/fabric.md#4.9 type=test
#[test]
fn a_rival_that_says_goodbye_is_none_any_more_and_nobody_else_says_it_for_him() {
    for (from, rival) in [(3, None), (9, Some(3))] {
        let (mut a, _, c, _) = doubt();
        let control = Control { kind: ControlKind::Bye, ..c.link_says() };
        let effects = a.handle(LinkInput::Message { from, to: 1, control });
        assert_eq!(counted(&effects, Counter::OtherEpoch), rival.is_some());
        assert_eq!(a.link.rival().map(|rival| rival.epoch), rival);
        assert_eq!(a.link.verdict(), Verdict::Up { epoch: 2 });
    }
}

//= docs/fabric.md#4.7 type=test
#[test]
fn only_the_start_that_is_up_ends_a_link_by_refusing_it() {
    let (a, mut b) = connected(1, 2);
    let taken = Some(RefuseReason::Taken);
    let refuse =
        |end: &End, echo| Control { kind: ControlKind::Refuse, reason: taken, echo, ..end.link_says() };
    let control = refuse(&a, b.link.cookie());
    assert_eq!(
        b.handle(LinkInput::Message { from: 9, to: 2, control }),
        [Effect::Count(Counter::OtherEpoch)]
    );
    assert!(b.link.verdict().is_up());
    let refused = Verdict::Refused { by: Side::Peer, why: Mismatch::Taken };
    assert_eq!(verdicts(&b.handle(LinkInput::Message { from: 1, to: 2, control })), [refused]);
}

mod fast_path;
