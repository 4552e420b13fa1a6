//! Segments while members come, go and change places.

use super::*;

/// What each member of this host says comes back on these others.
fn heard(host: &mut Host, pairs: &[(u8, u8)]) {
    for (from, at) in pairs {
        let members = host.arp.own.members.clone();
        let src = members.iter().find(|member| member.slot == *from).expect("a member").mac;
        let message = host.arp.own.message(Kind::Change);
        let frame = emit_frame(MacAddr::BROADCAST, src, &message).expect("good");
        host.hear(*at, &frame);
    }
}

fn slots(host: &Host) -> Vec<Vec<u8>> {
    host.arp.segments().iter().map(|segment| segment.slots.clone()).collect()
}

/// A member that was added later, in a slot that another one had.
fn other(slot: u8) -> OwnMember {
    OwnMember { mac: mac(1, slot + 100), ..member(1, slot) }
}

//= docs/arp-plus.md#9.1 type=test
#[test]
fn a_member_in_the_slot_of_a_former_one_is_not_where_that_one_was() {
    let mut host = Host::running(1, 4);
    heard(&mut host, &[(0, 1), (2, 3)]);
    host.hear(2, &Host::running(2, 1).says(Kind::Change));
    let key = PeerKey::Host(HostId([2; 16]));
    assert!(host.arp.peer(&key).expect("known").heard_on(2));
    assert_eq!(slots(&host), [[0, 1], [2, 3]]);
    // Away and back between two looks: the slot is never empty.
    host.handle(Input::Members(vec![member(1, 0), member(1, 1), other(2), member(1, 3)]));
    assert_eq!(slots(&host), [vec![0, 1], vec![2], vec![3]]);
    assert!(!host.arp.peer(&key).expect("known").heard_on(2));
    heard(&mut host, &[(2, 0)]);
    assert_eq!(slots(&host), [vec![0, 1, 2], vec![3]], "it is on the first switch, and takes nobody there");
    // Away for a while, and then another one.
    heard(&mut host, &[(0, 1), (0, 2)]);
    host.handle(Input::Members(vec![member(1, 0), other(2), member(1, 3)]));
    host.handle(Input::Members(vec![member(1, 0), member(1, 1), other(2), member(1, 3)]));
    assert_eq!(slots(&host), [vec![0, 2], vec![1], vec![3]]);
}

//= docs/arp-plus.md#9.1 type=test
#[test]
fn segments_of_an_earlier_machine_hold_until_they_are_heard_or_not() {
    let mut host = Host::stopped(1, 2, 0);
    host.handle(Input::Segments(vec![vec![0, 1, 3], vec![2]]));
    host.handle(Input::Members((0..4).map(|slot| member(1, slot)).collect()));
    host.handle(Input::Start);
    assert_eq!(slots(&host), [vec![0, 1, 3], vec![2]]);
    let actions = host.pass(millis(3000));
    assert!(!actions.contains(&Action::Segments));
    heard(&mut host, &[(0, 1)]);
    assert!(host.pass(millis(1000)).contains(&Action::Segments));
    assert_eq!(slots(&host), [vec![0, 1], vec![2], vec![3]], "3 has been moved meanwhile");
}

//= docs/arp-plus.md#9.2 type=test
#[test]
fn a_member_that_joins_takes_in_nothing_until_it_is_heard_or_admitted() {
    let mut host = Host::running(1, 2);
    heard(&mut host, &[(0, 1)]);
    let joining = |joining| OwnMember { joining, ..member(1, 2) };
    let elected = |host: &Host| host.arp.segments().iter().map(|segment| segment.elected).collect::<Vec<_>>();
    host.handle(Input::Members(vec![member(1, 0), member(1, 1), joining(true)]));
    assert_eq!(elected(&host), [Some(0), None]);
    host.hear(2, &Host::running(2, 1).says(Kind::Change));
    assert_eq!(host.arp.broadcast_slot(&PeerKey::Host(HostId([2; 16]))), None);
    let sequence = host.arp.own.sequence;
    host.handle(Input::Members(vec![member(1, 0), member(1, 1), joining(false)]));
    assert_eq!(elected(&host), [Some(0), Some(2)], "it is on a switch of its own");
    assert_eq!(host.arp.own.sequence, sequence, "peers are not told");
    host.handle(Input::Members(vec![member(1, 0), member(1, 1), joining(true)]));
    heard(&mut host, &[(2, 1)]);
    assert_eq!(elected(&host), [Some(0)], "it is on that of the others");
}
