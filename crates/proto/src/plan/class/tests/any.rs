//! Any members in any classes, any pairs heard.

use super::*;
use std::collections::BTreeSet;

/// Two ends and what is between them.
#[derive(Debug, Clone)]
struct Case {
    own: Vec<OwnEnd>,
    peer: Option<Vec<PeerEnd>>,
    classes: Vec<ClassTerms>,
    heard: [u16; 8],
}

fn weight() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0, 20, 100, 100, 500, 1000])
}

prop_compose! {
    fn own_end()(weight_mbit in weight(), up in prop::bool::weighted(0.7), class in 0u8..4) -> OwnEnd {
        OwnEnd { member: PlanMember { slot: 0, weight_mbit, up }, class }
    }
}

prop_compose! {
    fn peer_end()(
        weight_mbit in weight(),
        up in prop::bool::weighted(0.7),
        lent: bool,
        purpose in prop::sample::select(vec![R, R, U, Purpose::Class(2), Purpose::Class(3), X]),
    ) -> PeerEnd {
        let member = PlanPeerMember { index: 0, mac: mac(0), weight_mbit, up };
        PeerEnd { member, purpose, lent: lent && purpose != R }
    }
}

prop_compose! {
    fn case()(
        mut own in prop::collection::vec(own_end(), 0..=8),
        mut peer in prop::option::weighted(0.9, prop::collection::vec(peer_end(), 0..=8)),
        flags in prop::collection::vec(any::<(bool, bool, bool)>(), 3),
        heard in prop_oneof![any::<[u16; 8]>(), Just([0; 8]), Just([u16::MAX; 8]), any::<[u16; 8]>().prop_map(|bits| bits.map(|bits| bits & 0x11))],
    ) -> Case {
        own.iter_mut().zip(0..).for_each(|(end, slot)| end.member.slot = slot);
        for (end, index) in peer.iter_mut().flatten().zip(0..) {
            (end.member.index, end.member.mac) = (index, mac(index));
        }
        let terms = |((has_members, block, lends), number): ((bool, bool, bool), u8)| {
            let has_members = has_members || own.iter().any(|end| end.class == number);
            ClassTerms { number, has_members, block, lends }
        };
        let classes = flags.into_iter().zip(1..).map(terms).collect();
        Case { own, peer, classes, heard }
    }
}

impl Case {
    fn heard(&self, slot: u8, index: u8) -> bool {
        self.heard[usize::from(slot)] >> index & 1 == 1
    }

    /// The peer as long as it has members.
    fn peer(&self) -> Option<&[PeerEnd]> {
        self.peer.as_deref().filter(|peer| !peer.is_empty())
    }

    fn live_own(&self) -> Vec<OwnEnd> {
        self.own.iter().copied().filter(|end| end.member.up).collect()
    }

    /// All of them if none is.
    fn live_peer(&self) -> Vec<PeerEnd> {
        let all = self.peer().unwrap_or_default();
        let any = all.iter().any(|end| end.member.up);
        all.iter().copied().filter(|end| end.member.up || !any).collect()
    }

    fn rest(&self) -> ClassLanes {
        default_lanes(&self.own, self.peer.as_deref(), &self.classes, |slot, index| self.heard(slot, index))
    }

    fn class(&self, terms: &ClassTerms) -> ClassLanes {
        class_lanes(terms, &self.own, self.peer.as_deref(), |slot, index| self.heard(slot, index))
    }

    /// The ends of a lane.
    fn ends(&self, lane: &Lane) -> (OwnEnd, Option<PeerEnd>) {
        let own = self.own[usize::from(lane.slot)];
        (own, lane.peer_mac.map(|mac| self.peer().expect("a peer")[usize::from(mac.0[5])]))
    }

    fn usable(&self, lane: &Lane) -> bool {
        lane.peer_mac.is_none_or(|mac| self.heard(lane.slot, mac.0[5]))
    }

    /// Whether a pair of live members is usable that are of these kinds; towards plain hosts, whether there is a member.
    fn any(&self, own: impl Fn(u8) -> bool, peer: impl Fn(Purpose) -> bool) -> bool {
        self.live_own().iter().filter(|end| own(end.class)).any(|ours| {
            self.peer().is_none()
                || self
                    .live_peer()
                    .iter()
                    .filter(|end| peer(end.purpose))
                    .any(|theirs| self.heard(ours.member.slot, theirs.member.index))
        })
    }

    fn lives(&self) -> bool {
        !self.live_own().is_empty()
    }
}

fn of_rest(purpose: Purpose) -> bool {
    purpose == R
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_rest_keeps_off_members_of_classes_unless_nothing_else_works(case in case()) {
        let (own_rest, peer_rest) = (
            case.live_own().iter().any(|end| end.class == 0),
            case.peer().is_none() || case.live_peer().iter().any(|end| end.purpose == R),
        );
        for lane in case.rest().lanes.iter().filter(|lane| lane.class == 0) {
            let (ours, theirs) = case.ends(lane);
            if ours.class != 0 {
                prop_assert!(!case.any(|class| class == 0, |_| true), "{lane:?}");
                prop_assert!(!own_rest || case.usable(lane), "{lane:?}");
            }
            if theirs.is_some_and(|end| end.purpose != R) {
                prop_assert!(!case.any(|class| class == 0, of_rest), "{lane:?}");
                prop_assert!(!peer_rest || case.usable(lane), "{lane:?}");
            }
        }
    }

    #[test]
    fn a_host_with_a_live_member_always_has_a_lane_for_the_rest_and_a_usable_one_if_there_is_any(case in case()) {
        let lanes = case.rest().lanes;
        prop_assert_eq!(lanes.iter().any(|lane| lane.class == 0), case.lives());
        prop_assert!(lanes.len() <= limits::LANES_MAX);
        if case.any(|_| true, |_| true) {
            prop_assert!(lanes.iter().all(|lane| case.usable(lane)));
        }
        let pairs: BTreeSet<_> = lanes.iter().map(|lane| (lane.slot, lane.peer_mac)).collect();
        prop_assert_eq!(pairs.len(), lanes.len(), "no pair twice");
        for lane in &lanes {
            prop_assert!(case.ends(lane).0.member.up && lane.weight > 0);
        }
    }

    #[test]
    fn lanes_are_borrowed_from_lenders_only_and_take_nothing_off_the_others(case in case()) {
        let lanes = case.rest().lanes;
        let alone: Vec<ClassTerms> = case.classes.iter().map(|class| ClassTerms { lends: false, ..*class }).collect();
        let alone = Case { classes: alone, ..case.clone() }.rest().lanes;
        prop_assert_eq!(&lanes[..alone.len()], &alone[..]);
        for lane in &lanes[alone.len()..] {
            let terms = case.classes.iter().find(|class| class.number == lane.class).expect("of a class");
            let (ours, theirs) = case.ends(lane);
            prop_assert!(terms.lends && ours.class == lane.class && case.usable(lane));
            let Some(theirs) = theirs else { continue };
            let same = Purpose::Class(lane.class);
            match case.peer().expect("a peer").iter().any(|end| end.purpose == same) {
                true => prop_assert!(theirs.purpose == same && theirs.lent),
                false => prop_assert_eq!(theirs.purpose, R),
            }
        }
    }

    #[test]
    fn without_classes_all_is_as_the_plan_alone(case in case()) {
        let own: Vec<OwnEnd> = case.own.iter().map(|end| OwnEnd { class: 0, ..*end }).collect();
        let theirs = |peer: &Vec<PeerEnd>| peer.iter().map(|end| PeerEnd { purpose: R, ..*end }).collect::<Vec<_>>();
        let peer = case.peer.as_ref().map(theirs);
        let members: Vec<PlanMember> = own.iter().map(|end| end.member).collect();
        let told = peer.as_ref().map(|peer| peer.iter().map(|end| end.member).collect::<Vec<_>>());
        let alone = plan(&members, told.as_deref(), |slot, index| case.heard(slot, index));
        let case = Case { own, peer, ..case };
        prop_assert_eq!(case.rest().lanes, alone.clone());
        // A class without members is the default class by another name.
        let none = ClassTerms { number: 1, has_members: false, block: false, lends: false };
        prop_assert_eq!(case.class(&none).lanes, alone);
    }

    #[test]
    fn a_class_takes_what_is_meant_for_it_then_the_rest_then_anything(case in case()) {
        for terms in &case.classes {
            let ours = |class: u8| class == terms.number;
            let theirs = |purpose| purpose == Purpose::Class(terms.number);
            let ClassLanes { lanes, source } = case.class(terms);
            prop_assert!(lanes.iter().all(|lane| lane.class == 0 && case.ends(lane).0.member.up));
            prop_assert!(source != Source::Blocked || lanes.is_empty());
            prop_assert!(terms.block || !lanes.is_empty() || !case.lives());
            let block_at_peer = terms.block && case.peer().is_some_and(|peer| peer.iter().any(|end| theirs(end.purpose)));
            for lane in &lanes {
                let (own, peer) = case.ends(lane);
                prop_assert_eq!(source == Source::Own, ours(own.class), "{:?}", lane);
                prop_assert!(!(terms.block && terms.has_members) || ours(own.class), "blocked, but {lane:?}");
                prop_assert!(!block_at_peer || peer.is_some_and(|end| theirs(end.purpose)), "blocked, but {lane:?}");
                if case.any(ours, theirs) && case.peer().is_some() {
                    prop_assert!(ours(own.class) && peer.is_some_and(|end| theirs(end.purpose)), "{lane:?}");
                }
                let foreign = !ours(own.class) && own.class != 0
                    || peer.is_some_and(|end| !theirs(end.purpose) && end.purpose != R);
                let fit = case.any(|class| ours(class) || class == 0, |purpose| theirs(purpose) || purpose == R);
                prop_assert!(!foreign || !fit || terms.block, "of another class: {lane:?}");
            }
        }
    }

    /// Weights are those of the plan between the members that are meant.
    #[test]
    fn shares_are_those_of_the_plan_between_the_members_meant(case in case()) {
        for terms in &case.classes {
            let own: Vec<PlanMember> =
                case.own.iter().filter(|end| end.class == terms.number).map(|end| end.member).collect();
            let wanted = |end: &&PeerEnd| end.purpose == Purpose::Class(terms.number);
            let peer: Vec<PlanPeerMember> =
                case.live_peer().iter().filter(wanted).map(|end| end.member).collect();
            if peer.is_empty() || !case.any(|class| class == terms.number, |purpose| purpose == Purpose::Class(terms.number)) {
                continue;
            }
            let expected = plan(&own, Some(&peer), |slot, index| case.heard(slot, index));
            prop_assert_eq!(case.class(terms).lanes, expected);
        }
    }
}
