//! Tags: who is told which, when they are drawn, and when they are no more.

use super::*;
use linkbraid_wire::fabric::FastPath;

/// Two ends that take frames over the fast path, connected.
fn cut(a: u64, b: u64) -> (End, End) {
    let (mut a, mut b) = (End::new(a), End::new(b));
    (a.own.fast_path, b.own.fast_path) = (Some(4789), Some(4790));
    let hello = a.says();
    assert_eq!(hello.1.fast_path, None, "nobody is up yet");
    let accept = sent(&b.hears(&a, hello))[0];
    assert_eq!(accept.1.fast_path, None, "nothing is kept of a HELLO");
    let alive = sent(&a.hears(&b, accept))[0];
    let back = sent(&b.hears(&a, alive))[0];
    a.hears(&b, back);
    (a, b)
}

fn theirs(end: &End) -> Option<FastPath> {
    end.link.peer().and_then(|peer| peer.fast_path)
}

fn told(end: &End) -> Option<FastPath> {
    Some(FastPath { port: end.own.fast_path?, tag: end.link.tag()?, heard: end.link.heard })
}

//= docs/fabric.md#7.1 type=test
//= docs/fabric.md#7.3 type=test
#[test]
fn both_know_the_tag_of_the_other_once_they_are_up() {
    let (a, b) = cut(1, 2);
    assert_eq!((theirs(&a), theirs(&b)), (told(&b), told(&a)));
    assert!(theirs(&a).is_some() && a.link.tag() != b.link.tag());
    let (a, b) = connected(1, 2);
    assert_eq!((a.link.tag(), theirs(&a), theirs(&b)), (None, None, None));
}

//= docs/fabric.md#7.3 type=test
//= docs/fabric.md#7.4 type=test
#[test]
fn a_link_that_comes_up_again_has_another_tag() {
    let (mut a, mut b) = cut(1, 2);
    let before = a.link.tag();
    let effects = a.handle(LinkInput::Expired);
    assert_eq!((verdicts(&effects).len(), a.link.tag(), theirs(&a)), (1, None, None));
    // The other end holds the link as up all the while.
    let hello = a.says();
    let accept = sent(&b.hears(&a, hello))[0];
    assert!(accept.1.fast_path.is_some());
    let alive = sent(&a.hears(&b, accept))[0];
    assert_eq!((alive.1.fast_path, theirs(&a)), (told(&a), told(&b)));
    assert!(a.link.tag().is_some() && a.link.tag() != before);
    assert_eq!(theirs(&b).map(|theirs| theirs.tag), before);
    b.hears(&a, alive);
    assert_eq!(theirs(&b), told(&a));
    // Goodbye, and a start that another one replaces.
    for input in [LinkInput::Stop, LinkInput::Gone] {
        let (mut a, _) = cut(1, 2);
        let effects = a.handle(input);
        assert_eq!((a.link.tag(), theirs(&a)), (None, None));
        assert!(sent(&effects).iter().all(|(_, said)| said.fast_path.is_none()), "not in BYE either");
    }
}

//= docs/fabric.md#7.4 type=test
#[test]
fn only_what_proves_counts() {
    let (mut a, b) = cut(1, 2);
    let good = Control { fast_path: told(&b), ..b.link_says() };
    let forged = FastPath { port: 1, ..told(&b).expect("a fast path") };
    let kinds = [(ControlKind::Alive, 1), (ControlKind::Accept, 1), (ControlKind::Hello, 0)];
    for (kind, wrong) in kinds {
        let message = Control { kind, echo: good.echo ^ wrong, fast_path: Some(forged), ..good };
        a.hears(&b, (1, message));
        assert_eq!(theirs(&a), told(&b), "{kind:?}");
    }
    a.hears(&b, (1, Control { fast_path: None, ..good }));
    assert_eq!(theirs(&a), None, "it takes none any more");
}

//= docs/fabric.md#7.7 type=test
#[test]
fn the_peer_is_told_at_once_that_its_frames_come() {
    let (mut a, mut b) = cut(1, 2);
    let effects = a.handle(LinkInput::Heard { heard: true });
    let says = sent(&effects);
    assert_eq!(kinds(&effects), [(2, ControlKind::Alive)]);
    b.hears(&a, says[0]);
    assert!(theirs(&b).is_some_and(|theirs| theirs.heard));
    assert!(a.handle(LinkInput::Heard { heard: true }).is_empty(), "it is no news");
    a.handle(LinkInput::Expired);
    assert!(a.handle(LinkInput::Heard { heard: true }).is_empty(), "nobody is up");
}

#[test]
fn it_comes_and_goes_while_the_link_is_up() {
    let (mut a, mut b) = connected(1, 2);
    let alive = b.says();
    a.hears(&b, alive);
    a.own.fast_path = Some(4789);
    let alive = sent(&a.handle(LinkInput::Changed))[0];
    b.hears(&a, alive);
    assert_eq!((theirs(&b), a.link.tag().is_some()), (told(&a), true));
    a.own.fast_path = None;
    // The answer to what was said before: the cookie is another one since.
    let answer = b.says();
    a.hears(&b, answer);
    let alive = sent(&a.handle(LinkInput::Changed))[0];
    b.hears(&a, alive);
    assert_eq!((theirs(&b), a.link.tag()), (None, None));
}
