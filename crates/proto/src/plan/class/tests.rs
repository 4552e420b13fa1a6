use super::*;
use linkbraid_wire::MacAddr;
use proptest::prelude::*;

mod any;

/// The class that most tests are about.
const URGENT: u8 = 1;

fn mac(index: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, index])
}

/// Own members of 100 Mbit/s in these classes.
fn own(classes: &[u8]) -> Vec<OwnEnd> {
    let end = |(slot, class): (u8, &u8)| OwnEnd {
        member: PlanMember { slot, weight_mbit: 100, up: true },
        class: *class,
    };
    (0..).zip(classes).map(end).collect()
}

/// Members of a peer of 100 Mbit/s for these purposes.
fn peer(purposes: &[Purpose]) -> Vec<PeerEnd> {
    let end = |(index, purpose): (u8, &Purpose)| PeerEnd {
        member: PlanPeerMember { index, mac: mac(index), weight_mbit: 100, up: true },
        purpose: *purpose,
        lent: false,
    };
    (0..).zip(purposes).map(end).collect()
}

const R: Purpose = Purpose::Default;
const U: Purpose = Purpose::Class(URGENT);
const X: Purpose = Purpose::Unknown;

fn terms() -> ClassTerms {
    ClassTerms { number: URGENT, has_members: true, block: false, lends: false }
}

fn all(_: u8, _: u8) -> bool {
    true
}

/// Lanes as (slot, peer's index, kbit/s, borrowed from).
fn plain(lanes: &[Lane]) -> Vec<(u8, Option<u8>, u32, u8)> {
    lanes.iter().map(|lane| (lane.slot, lane.peer_mac.map(|mac| mac.0[5]), lane.weight, lane.class)).collect()
}

/// Pairs of a class's lanes, and where they come from.
fn class(terms: &ClassTerms, own: &[OwnEnd], peer: &[PeerEnd]) -> (Vec<(u8, u8)>, Source) {
    pairs(&class_lanes(terms, own, Some(peer), all))
}

fn rest(own: &[OwnEnd], peer: &[PeerEnd], heard: impl Fn(u8, u8) -> bool) -> (Vec<(u8, u8)>, Source) {
    pairs(&default_lanes(own, Some(peer), &[terms()], heard))
}

fn pairs(lanes: &ClassLanes) -> (Vec<(u8, u8)>, Source) {
    let pair = |lane: &Lane| (lane.slot, lane.peer_mac.expect("a peer").0[5]);
    (lanes.lanes.iter().map(pair).collect(), lanes.source)
}

fn without<E: Copy>(ends: &[E], at: &[usize], kill: impl Fn(&mut E)) -> Vec<E> {
    let mut ends = ends.to_vec();
    at.iter().for_each(|at| kill(&mut ends[*at]));
    ends
}

fn own_without(ends: &[OwnEnd], at: &[usize]) -> Vec<OwnEnd> {
    without(ends, at, |end| end.member.up = false)
}

fn peer_without(ends: &[PeerEnd], at: &[usize]) -> Vec<PeerEnd> {
    without(ends, at, |end| end.member.up = false)
}

//= docs/arp-plus.md#13.2 type=test
//= docs/arp-plus.md#13.3 type=test
#[test]
fn urgent_pairs_with_urgent_and_the_rest_with_the_rest() {
    let (ours, theirs) = (own(&[0, 0, 0, URGENT]), peer(&[U, R, R, R]));
    assert_eq!(class(&terms(), &ours, &theirs), (vec![(3, 0)], Source::Own));
    let lanes = default_lanes(&ours, Some(&theirs), &[terms()], all);
    let expected = [(0, Some(1), 100_000, 0), (1, Some(2), 100_000, 0), (2, Some(3), 100_000, 0)];
    assert_eq!(plain(&lanes.lanes), expected, "equal shares");
    // Other numbers of members.
    let theirs = peer(&[U, U, R, R]);
    assert_eq!(class(&terms(), &ours, &theirs), (vec![(3, 0), (3, 1)], Source::Own));
    assert_eq!(rest(&ours, &theirs, all).0, [(0, 2), (1, 2), (1, 3), (2, 3)]);
}

//= docs/arp-plus.md#13.2 type=test
#[test]
fn a_class_takes_the_rest_of_whichever_end_has_none_for_it() {
    let ours = own(&[0, 0, URGENT]);
    assert_eq!(
        class(&terms(), &ours, &peer(&[R, R])),
        (vec![(2, 0), (2, 1)], Source::Own),
        "it has no such class"
    );
    assert_eq!(
        class(&terms(), &ours, &peer(&[X, R])),
        (vec![(2, 1)], Source::Own),
        "a strange one is not its rest"
    );
    let theirs = peer_without(&peer(&[R, R, U]), &[2]);
    assert_eq!(class(&terms(), &ours, &theirs), (vec![(2, 0), (2, 1)], Source::Own), "its own has failed");
    let theirs = peer(&[R, R, U]);
    let (pairs, source) = class(&terms(), &own_without(&ours, &[2]), &theirs);
    assert_eq!((pairs, source), (vec![(0, 2), (1, 2)], Source::Shared), "ours has failed");
    let none = ClassTerms { has_members: false, ..terms() };
    assert_eq!(class(&none, &own(&[0, 0]), &theirs), (vec![(0, 2), (1, 2)], Source::Shared));
    assert_eq!(class(&none, &own(&[0, 0]), &peer(&[R, R])), (vec![(0, 0), (1, 1)], Source::Shared));
    // Nothing is left but members of other classes.
    assert_eq!(class(&none, &own(&[2]), &peer(&[X])), (vec![(0, 0)], Source::Shared));
    assert_eq!(class(&terms(), &own(&[0, URGENT]), &peer(&[X])), (vec![(1, 0)], Source::Own));
}

//= docs/arp-plus.md#13.4 type=test
#[test]
fn a_class_whose_lanes_are_lost_shares_though_its_members_live() {
    let (ours, theirs) = (own(&[0, 0, URGENT]), peer(&[R, R, U]));
    let by = |heard: &dyn Fn(u8, u8) -> bool| pairs(&class_lanes(&terms(), &ours, Some(&theirs), heard));
    assert_eq!(by(&|slot, _| slot != 2), (vec![(0, 2), (1, 2)], Source::Shared), "ours hears nothing");
    assert_eq!(by(&|_, index| index != 2), (vec![(2, 0), (2, 1)], Source::Own), "theirs is not heard");
    assert_eq!(by(&|slot, index| slot != 2 && index != 2), (vec![(0, 0), (1, 1)], Source::Shared));
    assert_eq!(
        by(&|_, _| false),
        (vec![(2, 2)], Source::Own),
        "with nothing heard what is meant for it is tried"
    );
}

//= docs/arp-plus.md#13.5 type=test
#[test]
fn a_blocked_class_takes_nothing_that_is_not_its_own() {
    let block = ClassTerms { block: true, ..terms() };
    let (ours, theirs) = (own(&[0, 0, URGENT]), peer(&[R, R, U]));
    assert_eq!(class(&block, &ours, &theirs), (vec![(2, 2)], Source::Own));
    assert_eq!(class(&block, &own_without(&ours, &[2]), &theirs), (vec![], Source::Blocked));
    assert_eq!(
        class(&block, &own(&[0, 0]), &theirs),
        (vec![], Source::Blocked),
        "its member is not here any more"
    );
    assert_eq!(class(&block, &ours, &peer_without(&theirs, &[2])), (vec![], Source::Blocked));
    assert_eq!(
        class(&block, &ours, &peer(&[R, R])),
        (vec![(2, 0), (2, 1)], Source::Own),
        "the peer never had any"
    );
    let lost = pairs(&class_lanes(&block, &ours, Some(&theirs), |slot, index| slot != 2 && index != 2));
    assert_eq!(lost, (vec![(2, 2)], Source::Own), "a lost lane of its own rather than any other");
    let none = ClassTerms { has_members: false, ..block };
    assert_eq!(
        class(&none, &own(&[0, 0]), &theirs),
        (vec![(0, 2), (1, 2)], Source::Shared),
        "it was given none"
    );
    assert_eq!(class(&none, &own(&[0, 0]), &peer_without(&theirs, &[2])), (vec![], Source::Blocked));
    let plain = class_lanes(&block, &own_without(&ours, &[2]), None, all);
    assert_eq!(plain, ClassLanes { lanes: vec![], source: Source::Blocked });
}

//= docs/arp-plus.md#13.4 type=test
#[test]
fn the_rest_falls_back_on_anything_before_it_has_no_lane() {
    let (ours, theirs) = (own(&[0, URGENT]), peer(&[R, U]));
    assert_eq!(rest(&ours, &theirs, all), (vec![(0, 0)], Source::Own));
    assert_eq!(rest(&own_without(&ours, &[0]), &theirs, all), (vec![(1, 0)], Source::Shared));
    assert_eq!(rest(&ours, &peer_without(&theirs, &[0]), all), (vec![(0, 1)], Source::Own));
    assert_eq!(rest(&own_without(&ours, &[0]), &peer(&[X, U]), all), (vec![(1, 0), (1, 1)], Source::Shared));
    // Both rests live, but there is no way between them: two switches, the members crossed.
    assert_eq!(rest(&ours, &theirs, |slot, index| (slot, index) == (0, 1)), (vec![(0, 1)], Source::Own));
    assert_eq!(rest(&ours, &theirs, |slot, index| (slot, index) == (1, 0)), (vec![(1, 0)], Source::Shared));
    assert_eq!(rest(&ours, &theirs, |slot, index| (slot, index) == (1, 1)), (vec![(1, 1)], Source::Shared));
    assert_eq!(rest(&ours, &theirs, |_, _| false), (vec![(0, 0)], Source::Own), "nothing is heard");
    assert_eq!(rest(&ours, &peer_without(&theirs, &[0, 1]), |_, _| false), (vec![(0, 0)], Source::Own));
}

//= docs/arp-plus.md#13.7 type=test
#[test]
fn plain_hosts_get_the_members_of_the_class_or_those_of_the_rest() {
    let ours = own(&[0, 0, URGENT]);
    let slots = |lanes: ClassLanes| {
        assert!(lanes.lanes.iter().all(|lane| lane.peer_mac.is_none() && lane.class == 0));
        (lanes.lanes.iter().map(|lane| lane.slot).collect::<Vec<_>>(), lanes.source)
    };
    assert_eq!(slots(class_lanes(&terms(), &ours, None, all)), (vec![2], Source::Own));
    assert_eq!(slots(default_lanes(&ours, None, &[terms()], all)), (vec![0, 1], Source::Own));
    let failed = own_without(&ours, &[2]);
    assert_eq!(slots(class_lanes(&terms(), &failed, None, all)), (vec![0, 1], Source::Shared));
    let failed = own_without(&ours, &[0, 1]);
    assert_eq!(slots(default_lanes(&failed, None, &[terms()], all)), (vec![2], Source::Shared));
    assert_eq!(slots(default_lanes(&[], None, &[], all)), (vec![], Source::Own));
}

//= docs/arp-plus.md#13.6 type=test
#[test]
fn borrowed_lanes_come_last_and_cost_the_rest_nothing() {
    let lends = ClassTerms { lends: true, ..terms() };
    let (ours, theirs) = (own(&[URGENT, 0, 0]), peer(&[U, R, R]));
    let lent = without(&theirs, &[0], |end| end.lent = true);
    let lanes =
        |peer: Option<&[PeerEnd]>, terms: ClassTerms| plain(&default_lanes(&ours, peer, &[terms], all).lanes);
    let alone = [(1, Some(1), 100_000, 0), (2, Some(2), 100_000, 0)];
    let both = [&alone[..], &[(0, Some(0), 100_000, URGENT)]].concat();
    assert_eq!(lanes(Some(&lent), lends), both);
    assert_eq!(lanes(Some(&theirs), lends), alone, "the peer does not lend");
    assert_eq!(lanes(Some(&lent), terms()), alone, "we do not lend");
    let failed = peer_without(&lent, &[0]);
    assert_eq!(lanes(Some(&failed), lends), alone, "nobody borrows what has failed");
    // A peer without such a class: its rest members take in what is borrowed, too.
    let theirs = peer(&[R, R]);
    let more = [(0, Some(0), 50_000, URGENT), (0, Some(1), 50_000, URGENT)];
    let expected = [&[(1, Some(0), 100_000, 0), (2, Some(1), 100_000, 0)][..], &more].concat();
    assert_eq!(lanes(Some(&theirs), lends), expected);
    assert_eq!(
        lanes(None, lends),
        [(1, None, 100_000, 0), (2, None, 100_000, 0), (0, None, 100_000, URGENT)]
    );
    // Where nothing else lives it is not borrowed but used.
    let left = own_without(&ours, &[1, 2]);
    let used = default_lanes(&left, Some(&theirs), &[lends], all);
    assert_eq!(plain(&used.lanes), [(0, Some(0), 50_000, 0), (0, Some(1), 50_000, 0)]);
    // What does not work is not borrowed.
    let lost = default_lanes(&ours, Some(&lent), &[lends], |slot, _| slot != 0);
    assert_eq!(plain(&lost.lanes), alone);
}

#[test]
fn borrowed_lanes_stop_at_the_limit_the_thinnest_left_out() {
    let classes: Vec<u8> = (0..16).map(|slot| u8::from(slot >= 10)).collect();
    let mut ours = own(&classes);
    ours[12].member.weight_mbit = 300;
    let purposes: Vec<Purpose> = classes.iter().map(|class| if *class == 0 { R } else { U }).collect();
    let mut theirs = without(&peer(&purposes), &[10, 11, 12, 13, 14, 15], |end| end.lent = true);
    // One more of theirs: 300 into 100s makes three lanes, so that there are more than there is room for.
    theirs.extend(without(&peer(&[U; 19])[16..], &[0, 1, 2], |end| end.lent = true));
    let lends = ClassTerms { lends: true, ..terms() };
    let lanes = default_lanes(&ours, Some(&theirs), &[lends], all).lanes;
    assert_eq!(lanes.len(), limits::LANES_MAX);
    assert!(lanes[..10].iter().all(|lane| lane.class == 0 && lane.weight == 100_000));
    assert!(lanes[10..].iter().all(|lane| lane.class == URGENT));
    assert!(lanes[10..].is_sorted_by_key(|lane| lane.slot));
}

#[test]
fn ends_of_a_peer_follow_names_and_lending() {
    use crate::{Time, arp_plus::*};
    use linkbraid_wire::{Class, HostId};
    let mut arp = [1, 2].map(|host| ArpPlus::new(Config::new(HostId([host; 16]), 1), 1));
    let member = |host: u8, slot: u8, class| OwnMember {
        slot,
        mac: MacAddr([2, 0, 0, 0, host, slot]),
        up: slot != 1,
        sound: true,
        joining: false,
        weight_mbit: 100,
        class,
    };
    let class = |number, may_borrow, name: &str| Class { number, may_borrow, name: name.to_owned() };
    let classes = vec![class(3, true, "urgent"), class(4, false, "bulk"), class(5, true, "strange")];
    arp[1].handle(Time::ZERO, Input::Classes(classes));
    let members = [0, 3, 4, 5, 6].iter().zip(0..).map(|(class, slot)| member(2, slot, *class)).collect();
    arp[1].handle(Time::ZERO, Input::Members(members));
    arp[0].handle(Time::ZERO, Input::Members(vec![member(1, 0, 0)]));
    arp.iter_mut().for_each(|arp| arp.handle(Time::ZERO, Input::Start));
    let frames = std::iter::from_fn(|| arp[1].poll_action()).filter_map(|action| match action {
        Action::Send { frame, .. } => Some(frame),
        _ => None,
    });
    let frames: Vec<Vec<u8>> = frames.collect();
    let mut hear =
        |frame: &[u8]| arp[0].handle(Time::ZERO, Input::Frame { slot: 0, bytes: frame, heard_again: false });
    // What the last one would say is lost.
    frames[..frames.len() - 1].iter().for_each(|frame| hear(frame));
    let known = arp[0].peers().next().expect("known");
    let ends = peer_ends(
        known,
        |name| ["urgent", "bulk"].iter().position(|ours| *ours == name).map(|at| at as u8 + 1),
        7,
    );
    let told: Vec<_> = ends.iter().map(|end| (end.purpose, end.lent, end.member.up)).collect();
    let expected = [
        (R, false, true),
        (Purpose::Class(1), true, false),
        (Purpose::Class(2), false, true),
        (X, true, true),
        (X, false, false),
    ];
    assert_eq!(told, expected);
    assert!(ends.iter().all(|end| end.member.weight_mbit == 100));
}
