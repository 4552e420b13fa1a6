//! Hosts that announce themselves seldom, and what is waited for of them.

use super::*;
use linkbraid_wire::{FEATURE_INTERVALS, with_interval};
use std::collections::BTreeMap;

/// So many that each announces itself every four seconds.
const CROWD: u8 = 200;
const DOUBLINGS: u8 = 2;

/// What host `number` says.
fn told(number: u8, features: u32) -> Vec<u8> {
    says(Kind::Change, number, features)
}

fn says(kind: Kind, number: u8, features: u32) -> Vec<u8> {
    let mut other = Host::running(number, 1);
    other.handle(Input::Features(features));
    let mut message = other.arp.own.message(kind);
    if let Some(extension) = &mut message.extension {
        extension.features = features;
    }
    emit_frame(MacAddr::BROADCAST, mac(number, 0), &message).expect("a good message")
}

fn seldom() -> u32 {
    with_interval(FEATURE_INTERVALS, DOUBLINGS)
}

/// Host 1 hears all others in turn for so long.
fn among(host: &mut Host, frames: &[Vec<u8>], duration: Duration) -> Vec<Action> {
    let mut actions = Vec::new();
    let step = duration / u32::try_from(frames.len()).expect("few");
    for frame in frames {
        actions.extend(host.hear(0, frame));
        actions.extend(host.pass(step));
    }
    actions
}

/// A host with so many members, to which all that it asks answer.
fn listener(members: u8) -> Host {
    let mut host = Host::running(1, members);
    host.handle(Input::Features(FEATURE_INTERVALS));
    host.proves = true;
    host
}

fn crowd() -> Vec<Vec<u8>> {
    (2..2 + CROWD).map(|number| told(number, seldom())).collect()
}

//= docs/arp-plus.md#5.13 type=test
#[test]
fn the_pace_follows_the_crowd_and_is_a_second_where_anything_speaks_against_it() {
    let frames = crowd();
    let mut host = listener(1);
    let every = |host: &Host| host.arp.announces_every().as_secs();
    among(&mut host, &frames, millis(4000));
    assert_eq!(every(&host), 1, "it has just started");
    among(&mut host, &frames, millis(4000));
    assert_eq!(every(&host), 4);
    let actions = among(&mut host, &frames, millis(4000));
    let own = sent(&actions).into_iter().filter(|(_, frame)| frame.dst == MacAddr::BROADCAST);
    let features = |frame: Frame| frame.parsed.message.extension.expect("ours").features;
    let said: Vec<u32> = own.map(|(_, frame)| features(frame)).collect();
    assert!((1..=2).contains(&said.len()) && said.iter().all(|features| *features == seldom()), "{said:?}");
    // One that knows nothing of it would take the others for gone.
    host.hear(0, &told(250, 0));
    host.pass(millis(600));
    assert_eq!(every(&host), 1);
    let mut host = listener(1);
    host.handle(Input::PublishedOnly(true));
    among(&mut host, &frames, millis(8000));
    assert_eq!(every(&host), 4);
    host.hear(0, &published(Kind::Change, 251, &[mac(251, 0)]));
    host.pass(millis(600));
    assert_eq!(every(&host), 1);
    // Who has a key is to be proven every two seconds.
    let mut host = listener(1);
    host.handle(Input::Appended(48));
    among(&mut host, &frames, millis(8000));
    assert_eq!(every(&host), 1);
    // Nor does who has not said that it may be so.
    let mut host = listener(1);
    host.handle(Input::Features(0));
    among(&mut host, &frames, millis(8000));
    assert_eq!(every(&host), 1);
    // Nobody is believed to be there who answers nothing.
    let mut host = listener(1);
    host.proves = false;
    among(&mut host, &frames, millis(8000));
    assert_eq!(every(&host), 1);
}

//= docs/arp-plus.md#5.16 type=test
#[test]
fn who_hears_his_own_name_speaks_each_second_for_a_while() {
    let frames = crowd();
    let mut host = listener(1);
    among(&mut host, &frames, millis(8000));
    let mut impostor = Host::running(1, 1);
    impostor.handle(Input::Members(vec![member(99, 0)]));
    let says = emit_frame(MacAddr::BROADCAST, mac(99, 0), &impostor.arp.own.message(Kind::Change));
    host.hear(0, &says.expect("a good message"));
    host.pass(millis(600));
    assert_eq!(host.arp.announces_every(), Duration::from_secs(1));
    among(&mut host, &frames, millis(9000));
    assert_eq!(host.arp.announces_every(), Duration::from_secs(1));
    among(&mut host, &frames, millis(2000));
    assert_eq!(host.arp.announces_every(), Duration::from_secs(4));
}

/// Each of a thousand hosts changes its pace several times when they start, which is no news to who uses them.
#[test]
fn another_pace_is_taken_and_not_reported() {
    let mut host = listener(1);
    let mut other = Host::running(2, 1);
    let mut says = |sequence, features, members: Vec<OwnMember>| {
        other.handle(Input::Members(members));
        let mut message = other.arp.own.message(Kind::Change);
        if let Some(extension) = &mut message.extension {
            (extension.sequence, extension.features) = (sequence, features);
        }
        emit_frame(MacAddr::BROADCAST, mac(2, 0), &message).expect("a good message")
    };
    let both = vec![member(2, 0), member(2, 1)];
    assert_eq!(reasons(&host.hear(0, &says(10, FEATURE_INTERVALS, both.clone()))), [Reason::Joined]);
    assert_eq!(reasons(&host.hear(0, &says(11, seldom(), both))), []);
    let peer = host.arp.peers().next().expect("one");
    assert_eq!((peer.sequence, peer.doublings), (Some(11), DOUBLINGS));
    let one = vec![member(2, 0)];
    assert_eq!(reasons(&host.hear(0, &says(12, seldom(), one.clone()))), [Reason::Changed]);
    assert_eq!(reasons(&host.hear(0, &says(13, seldom() | 1, one))), [Reason::Changed]);
}

//= docs/arp-plus.md#5.15 type=test
#[test]
fn who_speaks_seldom_is_waited_for_longer_unless_he_is_probed() {
    let frame = told(2, seldom());
    let key = PeerKey::Host(HostId([2; 16]));
    let mut host = listener(1);
    host.hear(0, &frame);
    assert_eq!(reasons(&host.pass(millis(13_900))), []);
    assert_eq!(reasons(&host.pass(millis(400))), [Reason::Silent]);
    assert_eq!(reasons(&host.pass(millis(5900))), []);
    assert_eq!(reasons(&host.pass(millis(700))), [Reason::Expired]);
    // Probed, and proven for a while: he is there. Then he is asked, and given up as soon as anybody.
    host.hear(0, &frame);
    let probed = |host: &mut Host, proven: bool| -> (Vec<Reason>, usize) {
        let proof = proven.then_some(host.now);
        let mut actions = host.handle(Input::Probed(BTreeMap::from([(key, proof)])));
        actions.extend(host.pass(millis(250)));
        let asks =
            |frame: &&(u8, Frame)| frame.1.dst == mac(2, 0) && frame.1.parsed.message.kind == Kind::Broadcast;
        (reasons(&actions), sent(&actions).iter().filter(asks).count())
    };
    for _ in 0..48 {
        assert_eq!(probed(&mut host, true), (vec![], 0));
    }
    host.hear(0, &frame);
    let mut said = Vec::new();
    for turn in 0..44 {
        let (reasons, asked) = probed(&mut host, false);
        said.extend(reasons.into_iter().map(|reason| (turn / 4, reason)));
        said.extend((0..asked).map(|_| (turn / 4, Reason::Joined)));
    }
    let of =
        |wanted| said.iter().filter(|(_, reason)| *reason == wanted).map(|(at, _)| *at).collect::<Vec<_>>();
    assert_eq!((of(Reason::Silent), of(Reason::Expired)), (vec![3], vec![10]), "{said:?}");
    assert!((7..=9).contains(&of(Reason::Joined).len()), "asked each second: {said:?}");
    // One that is proven again is there again, before he has said anything.
    host.hear(0, &frame);
    (0..20).for_each(|_| _ = probed(&mut host, false));
    assert_eq!(host.arp.peer(&key).map(|peer| peer.state), Some(PeerState::Silent));
    assert_eq!(probed(&mut host, true).0, [Reason::HeardAgain]);
    // Nobody knows of one that never answered whether he exists.
    let mut host = Host::running(1, 1);
    host.hear(0, &told(3, with_interval(FEATURE_INTERVALS, 7)));
    assert_eq!(reasons(&host.pass(millis(66_000))), [Reason::Silent]);
    assert_eq!(reasons(&host.pass(millis(1000))), [Reason::Expired]);
}

//= docs/arp-plus.md#5.15 type=test
#[test]
fn pairs_of_another_mapping_are_to_be_heard_again_soon() {
    let mut host = Host::running(1, 2);
    host.proves = true;
    let key = PeerKey::Host(HostId([2; 16]));
    let heard = |host: &Host| [0, 1].map(|slot| host.arp.peer(&key).is_some_and(|peer| peer.heard(slot, 0)));
    let frame = told(2, seldom());
    host.hear(0, &frame);
    host.hear(1, &frame);
    host.pass(millis(13_000));
    assert_eq!(heard(&host), [true, true]);
    host.hear(0, &frame);
    let mut other = Host::running(2, 1);
    other.handle(Input::Features(seldom()));
    other.handle(Input::Addresses(vec![ip(77)]));
    let mut message = other.arp.own.message(Kind::Change);
    if let Some(extension) = &mut message.extension {
        extension.features = seldom();
    }
    let moved = emit_frame(MacAddr::BROADCAST, mac(2, 0), &message).expect("a good message");
    assert_eq!(reasons(&host.hear(1, &moved)), [Reason::Changed]);
    host.pass(millis(3000));
    assert_eq!(heard(&host), [true, true]);
    host.pass(millis(1000));
    assert_eq!(heard(&host), [false, true], "the cable is in another switch, maybe");
}

//= docs/arp-plus.md#5.15 type=test
#[test]
fn who_holds_a_mac_that_another_one_speaks_from_is_tested() {
    // One who speaks every second says soon enough by himself that he is there.
    for (features, is_tested) in [(seldom(), true), (FEATURE_INTERVALS, false)] {
        let mut host = listener(1);
        host.hear(0, &told(2, features));
        let mut other = Host::running(3, 1);
        other.handle(Input::Members(vec![member(2, 0)]));
        let frame = emit_frame(MacAddr::BROADCAST, mac(2, 0), &other.arp.own.message(Kind::Change));
        let actions = host.hear(0, &frame.expect("a good message"));
        let challenge = Action::Challenge(PeerKey::Host(HostId([2; 16])));
        assert_eq!(actions.contains(&challenge), is_tested, "{actions:?}");
        assert!(matches!(conflicts(&actions)[..], [Conflict::PeerMac { .. }]));
    }
}

/// So many frames left that way.
fn count(actions: &[Action], slot: u8, dst: MacAddr) -> usize {
    sent(actions).iter().filter(|(from, frame)| (*from, frame.dst) == (slot, dst)).count()
}

/// The kinds of what left for all, and the members that it left by.
fn to_all(actions: &[Action]) -> Vec<(Kind, u8)> {
    let all = sent(actions).into_iter().filter(|(_, frame)| frame.dst == MacAddr::BROADCAST);
    all.map(|(slot, frame)| (frame.parsed.message.kind, slot)).collect()
}

//= docs/arp-plus.md#5.13 type=test
//= docs/arp-plus.md#5.14 type=test
#[test]
fn members_take_turns_and_tell_each_other_every_second() {
    let frames = crowd();
    let mut host = listener(3);
    let actions = among(&mut host, &frames, millis(8000));
    assert_eq!(host.arp.announces_every().as_secs(), 4);
    assert!(
        to_all(&actions[actions.len() / 4..]).iter().any(|(kind, _)| *kind == Kind::Broadcast),
        "it asks once more"
    );
    let actions = among(&mut host, &frames, millis(12_000));
    let turns: Vec<u8> = to_all(&actions).into_iter().map(|(_, slot)| slot).collect();
    assert!((9..=12).contains(&turns.len()), "three members every four seconds: {turns:?}");
    assert!(turns.windows(2).all(|two| two[1] == (two[0] + 1) % 3), "{turns:?}");
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let told = count(&actions, one, mac(1, other));
        assert!((12..=16).contains(&told), "every second: {told}");
        assert_eq!(count(&actions, other, mac(1, one)), 0, "one of the two is enough");
        assert_eq!(count(&actions, one, mac(1, one)), 0, "nobody tells himself");
    }
    // A member that is down is passed over.
    host.handle(Input::Members(vec![member(1, 0), OwnMember { up: false, ..member(1, 1) }, member(1, 2)]));
    among(&mut host, &frames, millis(12_000));
    let actions = among(&mut host, &frames, millis(12_000));
    let turns: Vec<u8> = to_all(&actions).into_iter().map(|(_, slot)| slot).collect();
    assert!((6..=8).contains(&turns.len()), "two members every four seconds: {turns:?}");
    assert!(turns.windows(2).all(|two| two[1] == 2 - two[0]), "{turns:?}");
    // Who speaks every second to all tells nobody by himself, and asks no more when he speaks seldom again.
    host.hear(0, &told(250, 0));
    host.pass(millis(600));
    assert_eq!(host.arp.announces_every().as_secs(), 1);
    let actions = among(&mut host, &frames, millis(3000));
    assert_eq!(count(&actions, 0, mac(1, 2)), 0);
    let actions = among(&mut host, &frames, millis(24_000));
    assert_eq!(host.arp.announces_every().as_secs(), 4, "it is gone");
    assert!(to_all(&actions).iter().all(|(kind, _)| *kind == Kind::Change));
}

#[test]
fn a_table_of_many_is_looked_at_more_seldom() {
    let mut host = listener(1);
    let gaps = [0, 1, 2, 3, 7].map(|doublings| {
        host.arp.own.doublings = doublings;
        host.arp.sweep_gap().as_millis()
    });
    assert_eq!(gaps, [250, 250, 500, 500, 1000]);
}

//= docs/arp-plus.md#5.15 type=test
#[test]
fn who_is_probed_is_asked_for_when_the_table_is_looked_at_and_somebody_speaks_seldom() {
    let mut host = Host::running(1, 1);
    let follows = |host: &Host| [0, 249, 250].map(|ms| host.arp.follows_probes(host.now + millis(ms)));
    assert_eq!(follows(&host), [false; 3]);
    host.hear(0, &told(3, FEATURE_INTERVALS));
    assert_eq!(follows(&host), [false; 3]);
    host.hear(0, &told(2, seldom()));
    assert_eq!(follows(&host), [false, false, true]);
    // One who speaks every second is not there for having answered a PROBE.
    host.pass(millis(4000));
    let key = PeerKey::Host(HostId([3; 16]));
    assert_eq!(host.arp.peer(&key).map(|peer| peer.state), Some(PeerState::Silent));
    host.handle(Input::Probed(BTreeMap::from([(key, Some(host.now))])));
    assert_eq!(host.arp.peer(&key).map(|peer| peer.state), Some(PeerState::Silent));
}

//= docs/arp-plus.md#5.15 type=test
#[test]
fn who_speaks_every_second_is_waited_for_as_long_as_ever_if_he_is_probed() {
    let mut host = listener(1);
    host.hear(0, &told(2, FEATURE_INTERVALS));
    host.pass(millis(3000));
    let key = PeerKey::Host(HostId([2; 16]));
    let mut actions = host.handle(Input::Probed(BTreeMap::from([(key, None)])));
    actions.extend(host.pass(millis(900)));
    assert_eq!(reasons(&actions), [Reason::Silent]);
    assert!(sent(&actions).iter().all(|(_, frame)| frame.dst != mac(2, 0)), "and he is not asked");
}

//= docs/arp-plus.md#5.15 type=test
#[test]
fn who_has_many_members_is_waited_for_as_long_as_it_takes_him_to_use_one() {
    let mut host = Host::running(1, 1);
    host.proves = true;
    let frame = |index: u8| {
        let mut other = Host::running(2, 4);
        other.handle(Input::Features(FEATURE_INTERVALS));
        let mut message = other.arp.own.message(Kind::Change);
        if let Some(extension) = &mut message.extension {
            extension.features = seldom();
        }
        emit_frame(MacAddr::BROADCAST, mac(2, index), &message).expect("a good message")
    };
    // 14 s over two, and not less than of anybody.
    for (members, silent) in [(1, 14_000), (2, 7000), (4, 3500)] {
        (0..members).for_each(|index| _ = host.hear(0, &frame(index)));
        assert_eq!(reasons(&host.pass(millis(silent - 100))), [], "{members} members");
        assert_eq!(reasons(&host.pass(millis(500))), [Reason::Silent], "{members} members");
        let actions = host.hear(0, &frame(0));
        assert_eq!(reasons(&actions), [Reason::HeardAgain]);
        host.pass(millis(200));
    }
}

//= docs/arp-plus.md#5.16 type=test
#[test]
fn who_finds_his_members_on_another_network_speaks_each_second_for_a_while() {
    let frames = crowd();
    let mut host = listener(2);
    among(&mut host, &frames, millis(16_000));
    assert_eq!(host.arp.announces_every().as_secs(), 4);
    let own = host.says(Kind::Change);
    let actions = host.hear(1, &own);
    assert!(actions.contains(&Action::Segments));
    assert!(to_all(&actions).iter().any(|(kind, _)| *kind == Kind::Broadcast), "it asks who is there");
    let is_heard = |host: &Host| {
        let peer = host.arp.peer(&PeerKey::Host(HostId([1 + CROWD; 16])));
        peer.expect("it speaks seldom").heard(0, 0)
    };
    assert!(is_heard(&host));
    host.pass(millis(600));
    assert_eq!(host.arp.announces_every().as_secs(), 1);
    host.pass(millis(4400));
    assert!(!is_heard(&host), "who hears whom may be otherwise");
    // Who speaks each second anyway needs no more than that.
    let mut host = Host::running(1, 2);
    host.pass(millis(3000));
    let own = host.says(Kind::Change);
    let actions = host.hear(1, &own);
    assert!(actions.contains(&Action::Segments) && sent(&actions).is_empty());
}

/// A cable between two switches makes all hosts of both speak more often.
//= docs/arp-plus.md#5.16 type=test
#[test]
fn among_very_many_nobody_speaks_each_second() {
    let frames = crowd();
    let mut host = listener(4);
    // Some 800 pairs.
    let hear_all = |host: &mut Host| {
        for frame in &frames {
            (0..4).for_each(|slot| _ = host.hear(slot, frame));
            host.pass(millis(20));
        }
    };
    hear_all(&mut host);
    host.pass(millis(600));
    assert_eq!(host.arp.announces_every().as_secs(), 1, "it has just started");
    hear_all(&mut host);
    assert_eq!(host.arp.announces_every().as_secs(), 16);
    let own = host.says(Kind::Change);
    host.hear(1, &own);
    host.pass(millis(1000));
    assert_eq!(host.arp.announces_every().as_secs(), 4);
    (0..2).for_each(|_| hear_all(&mut host));
    assert_eq!(host.arp.announces_every().as_secs(), 4);
    (0..2).for_each(|_| hear_all(&mut host));
    assert_eq!(host.arp.announces_every().as_secs(), 16);
    // All ask, again and again: it answers some of them, and then all of them together, and not at once again.
    let asking: Vec<Vec<u8>> = (2..2 + CROWD).map(|number| says(Kind::Broadcast, number, seldom())).collect();
    let mut actions = Vec::new();
    for _ in 0..10 {
        asking.iter().for_each(|frame| actions.extend(host.hear(0, frame)));
        actions.extend(host.pass(millis(600)));
    }
    assert!((1..=2).contains(&count(&actions, 0, MacAddr::BROADCAST)), "{:?}", to_all(&actions));
}
