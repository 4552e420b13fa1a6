//! Classes: told, changed, hostile, and what they mean for broadcasts.

use super::*;
use crate::limits;
use linkbraid_wire::{Class, FEATURE_MIRROR};

fn class(number: u8, name: &str) -> Class {
    Class { number, may_borrow: number == 3, name: name.to_owned() }
}

/// A member of a class.
fn of_class(host: u8, slot: u8, class: u8) -> OwnMember {
    OwnMember { class, ..member(host, slot) }
}

fn key(number: u8) -> PeerKey {
    PeerKey::Host(HostId([number; 16]))
}

/// Member `from` of `other` says its mapping, heard on these slots.
fn says_on(host: &mut Host, other: &Host, from: u8, slots: &[u8]) {
    let frame = emit_frame(MacAddr::BROADCAST, mac(other.number, from), &other.arp.own.message(Kind::Change));
    let frame = frame.expect("a good message");
    slots.iter().for_each(|slot| _ = host.hear(*slot, &frame));
}

/// Own members hear each other.
fn one_segment(host: &mut Host, slots: &[u8]) {
    let message = host.arp.own.message(Kind::Change);
    for slot in slots {
        let frame = emit_frame(MacAddr::BROADCAST, mac(host.number, slots[0]), &message).expect("good");
        host.hear(*slot, &frame);
    }
}

fn elected(host: &Host) -> Vec<Option<u8>> {
    host.arp.segments().iter().map(|segment| segment.elected).collect()
}

//= docs/arp-plus.md#6.7 type=test
#[test]
fn a_change_of_classes_or_features_is_a_change_of_the_mapping() {
    let (mut host, mut other) = (Host::running(1, 1), Host::running(2, 2));
    host.hear(0, &other.says(Kind::Change));
    for (input, classes, features) in [
        (Input::Classes(vec![class(3, "urgent"), class(1, "bulk")]), 2, 0),
        (Input::Features(FEATURE_MIRROR), 2, FEATURE_MIRROR),
        (Input::Classes(vec![class(3, "urgent")]), 1, FEATURE_MIRROR),
        (Input::Members(vec![of_class(2, 0, 0), of_class(2, 1, 3)]), 1, FEATURE_MIRROR),
    ] {
        let sequence = other.arp.own.sequence;
        let actions = other.handle(input.clone());
        assert!(kinds(&actions).iter().all(|kind| matches!(kind, Kind::Broadcast | Kind::Change)));
        assert_eq!(sent(&actions).len(), 2, "at once, on each member");
        assert_eq!(other.arp.own.sequence, sequence + 1);
        assert_eq!(sent(&other.handle(input)), [], "the same once more is no change");
        assert_eq!(reasons(&host.hear(0, &other.says(Kind::Change))), [Reason::Changed]);
        let peer = host.arp.peer(&key(2)).expect("known");
        assert_eq!((peer.classes.len(), peer.features), (classes, features));
        assert_eq!(peer.takes_mirrored(), features == FEATURE_MIRROR);
    }
    let peer = host.arp.peer(&key(2)).expect("known");
    assert_eq!(peer.class_of(&peer.members[0]), PeerClass::Default);
    assert_eq!(peer.class_of(&peer.members[1]), PeerClass::Named("urgent"));
    // Somebody who has the id but not the sequence tells other classes: two hosts.
    other.arp.own.classes[0].name.push('2');
    let conflict = Conflict::PeerHostId {
        host: HostId([2; 16]),
        owner: Some(ip(2)),
        address: Some(ip(2)),
        by: mac(2, 0),
    };
    assert_eq!(conflicts(&host.hear(0, &other.says(Kind::Change))), [conflict]);
    assert!(host.arp.peer(&key(2)).is_some_and(|peer| peer.class_named("urgent").is_some()));
}

//= docs/arp-plus.md#3.11 type=test
//= docs/arp-plus.md#13.1 type=test
#[test]
fn a_class_is_its_name_and_one_without_a_name_is_not_the_rest() {
    let (mut host, mut other) = (Host::with_published_only(1, 1), Host::stopped(2, 1, 0));
    other.handle(Input::Classes(vec![class(5, "urgent"), class(7, "bulk")]));
    other.handle(Input::Members(
        [0, 5, 7, 6].iter().zip(0..).map(|(c, slot)| of_class(2, slot, *c)).collect(),
    ));
    other.handle(Input::Start);
    host.hear(0, &other.says(Kind::Change));
    let peer = host.arp.peer(&key(2)).expect("known");
    let classes: Vec<_> = peer.members.iter().map(|member| peer.class_of(member)).collect();
    assert_eq!(
        classes,
        [PeerClass::Default, PeerClass::Named("urgent"), PeerClass::Named("bulk"), PeerClass::Unknown]
    );
    assert_eq!(peer.class_named("urgent").map(|class| class.number), Some(5));
    assert_eq!(peer.class_named("rest"), None);
    host.hear(0, &published(Kind::Change, 9, &[mac(9, 0)]));
    let peer = host.arp.peer(&PeerKey::Address(ip(9))).expect("known");
    assert_eq!((peer.class_of(&peer.members[0]), peer.features), (PeerClass::Default, 0));
}

#[test]
fn classes_beyond_the_limit_and_bad_ones_are_counted() {
    let mut host = Host::running(1, 1);
    host.handle(Input::Classes((1..=9).map(|number| class(number, &format!("class{number}"))).collect()));
    assert_eq!((host.arp.own.classes.len(), host.count(Counter::LimitClasses)), (7, 2));
    assert_eq!(host.count(Counter::TxRefused), 0);
    let actions = host.handle(Input::Classes(vec![class(1, "Not A Name")]));
    assert_eq!((sent(&actions).len(), host.count(Counter::TxRefused)), (0, 1));
}

//= docs/arp-plus.md#9.2 type=test
#[test]
fn broadcasts_are_taken_in_by_the_rest_unless_it_is_deaf_or_dead() {
    let mut host = Host::running(1, 4);
    one_segment(&mut host, &[0, 1, 2, 3]);
    let members = |deaf: &[u8], failed: &[u8]| {
        let member = |slot| OwnMember {
            sound: !deaf.contains(&slot),
            up: !failed.contains(&slot),
            ..of_class(1, slot, [1, 0, 0, 2][usize::from(slot)])
        };
        Input::Members((0..4).map(member).collect())
    };
    for (deaf, failed, expected) in [
        (&[][..], &[][..], 1),
        (&[1], &[], 2),
        (&[1, 2], &[], 0),
        (&[0, 1, 2, 3], &[], 1),
        (&[0, 1, 2, 3], &[1], 2),
        (&[], &[1, 2], 0),
        (&[0], &[1, 2], 3),
    ] {
        host.handle(members(deaf, failed));
        one_segment(&mut host, &[0, 1, 2, 3]);
        let all: Vec<u8> = elected(&host).into_iter().flatten().collect();
        assert_eq!(all, [expected], "deaf {deaf:?}, failed {failed:?}");
    }
}

//= docs/arp-plus.md#9.3 type=test
#[test]
fn broadcasts_of_a_peer_are_taken_in_where_its_rest_is_heard() {
    // Three switches; on the first ours is in a class, on the second the peer's is.
    let mut host = Host::running(1, 3);
    host.handle(Input::Members(vec![of_class(1, 0, 1), member(1, 1), member(1, 2)]));
    let mut other = Host::running(2, 3);
    let members = |second, third| vec![member(2, 0), of_class(2, 1, second), of_class(2, 2, third)];
    let slot = |host: &Host| host.arp.broadcast_slot(&key(2));
    let all = |host: &mut Host, other: &Host| (0..3).for_each(|at| says_on(host, other, at, &[at]));
    other.handle(Input::Members(members(1, 0)));
    all(&mut host, &other);
    assert_eq!(slot(&host), Some(2), "the default class at both ends");
    other.handle(Input::Members(members(1, 1)));
    all(&mut host, &other);
    assert_eq!(slot(&host), Some(0), "its rest speaks there only");
    other.handle(Input::Members(vec![of_class(2, 0, 1), of_class(2, 1, 1), of_class(2, 2, 1)]));
    all(&mut host, &other);
    assert_eq!(slot(&host), Some(1), "it has no rest; ours is as good as any");
    host.handle(Input::Members(
        (0..3).map(|at| OwnMember { sound: at == 0, ..of_class(1, at, u8::from(at == 0)) }).collect(),
    ));
    assert_eq!(slot(&host), Some(0), "the only one that is sound");
}

/// Whether the mapping is announced as another one.
fn announces(host: &mut Host, input: Input<'_>) -> bool {
    let sequence = host.arp.own.sequence;
    let said = !kinds(&host.handle(input)).is_empty();
    assert_eq!(said, host.arp.own.sequence != sequence);
    said
}

#[test]
fn what_is_the_same_as_before_is_not_announced() {
    let mut host = Host::running(1, 1);
    for (appended, is_other) in [(40, true), (40, false), (0, true)] {
        assert_eq!(announces(&mut host, Input::Appended(appended)), is_other);
        host.pass(millis(500));
    }
    for (features, is_other) in [(1, true), (1, false), (0, true)] {
        assert_eq!(announces(&mut host, Input::Features(features)), is_other);
        host.pass(millis(500));
    }
}

#[test]
fn members_beyond_the_limit_are_left_out_and_counted() {
    let mut host = Host::running(1, 0);
    let members = |count: usize| (0..count as u8).map(|slot| member(1, slot)).collect();
    host.handle(Input::Members(members(limits::MEMBERS_MAX)));
    assert_eq!(host.count(Counter::LimitMembers), 0);
    host.handle(Input::Members(members(limits::MEMBERS_MAX + 3)));
    assert_eq!(host.count(Counter::LimitMembers), 3);
    assert_eq!(host.arp.own.message(Kind::Change).hardware.len(), limits::MEMBERS_MAX);
}
