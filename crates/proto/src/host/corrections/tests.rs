use super::*;
use crate::plan::{PlanMember, PlanPeerMember};
use linkbraid_wire::MacAddr;
use std::cell::Cell;

const PEER: PeerKey = PeerKey::Plain(MacAddr([2, 0, 0, 0, 0, 9]));

fn theirs(index: u8) -> End {
    End::Peer(MacAddr([2, 0, 0, 0, 1, index]))
}

/// Lanes by their ends with what they carry, in kbit/s, while something waits on those that carry anything worth mentioning.
fn busy(lanes: &[(u8, u8, u64)]) -> Round {
    let mut ends: BTreeMap<End, EndCount> = BTreeMap::new();
    for (slot, index, kbit) in lanes {
        for end in [End::Own(*slot), theirs(*index)] {
            let count = ends.entry(end).or_insert(EndCount { end, lanes: 0, kbit: 0, waited: false });
            (count.lanes, count.kbit) = (count.lanes + 1, count.kbit + kbit);
            count.waited |= *kbit > 1000;
        }
    }
    Round::Busy(ends.into_values().collect())
}

/// The lanes of a plan among members that told that, where all hear each other.
fn planned(told: &BTreeMap<End, u32>, corrections: &Corrections) -> Vec<Lane> {
    let weight = |end: End| corrections.weight(&PEER, end, told[&end]);
    let up = true;
    let (mut own, mut peer) = (Vec::new(), Vec::new());
    for end in told.keys() {
        let weight_mbit = weight(*end);
        match *end {
            End::Own(slot) => own.push(PlanMember { slot, weight_mbit, up }),
            End::Peer(mac) => peer.push(PlanPeerMember { index: mac.0[5], mac, weight_mbit, up }),
        }
    }
    plan::plan(&own, Some(&peer), |_, _| true)
}

/// What lanes carry, in kbit/s, if each of them has so much of what members carry.
fn carried(lanes: &[Lane], kbit: impl Fn(&Lane) -> u64) -> Round {
    let index = |lane: &Lane| lane.peer_mac.expect("it leads to a peer").0[5];
    busy(&lanes.iter().map(|lane| (lane.slot, index(lane), kbit(lane))).collect::<Vec<_>>())
}

/// All four to the one that told too much.
fn all_to_one() -> Round {
    busy(&[(0, 3, 5000), (1, 3, 5000), (2, 3, 5000), (3, 3, 5000)])
}

/// A bond that learns about a peer, all of whose members told that.
struct Bond {
    learned: Learned,
    told: BTreeMap<End, u32>,
}

impl Bond {
    fn told(own: &[u32], peer: &[u32]) -> Bond {
        let own = (0..).zip(own).map(|(slot, mbit)| (End::Own(slot), *mbit));
        let peer = (0..).zip(peer).map(|(index, mbit)| (theirs(index), *mbit));
        Bond { learned: Learned::default(), told: own.chain(peer).collect() }
    }

    /// Whether plans are to be made again after that round, if the user fixed these weights.
    fn take_fixed(&mut self, round: &Round, fixed: impl Fn(End) -> bool) -> bool {
        let told = &self.told;
        self.learned.take(PEER, round, told, fixed, |corrections| planned(told, corrections))
    }

    fn take(&mut self, round: &Round) -> bool {
        self.take_fixed(round, |_| false)
    }

    /// The weight of that end in plans.
    fn weight(&self, end: End) -> u32 {
        self.learned.corrections().weight(&PEER, end, self.told[&end])
    }

    fn lanes(&self) -> Vec<Lane> {
        planned(&self.told, self.learned.corrections())
    }

    fn is_corrected(&self) -> bool {
        self.told.iter().any(|(end, told)| self.weight(*end) != *told)
    }
}

fn one_liar() -> Bond {
    Bond::told(&[20; 4], &[20, 20, 20, 10_000])
}

#[test]
fn who_told_far_too_much_is_taken_for_what_it_carries() {
    let mut bond = one_liar();
    for _ in 1..SUSPECT_ROUNDS {
        assert!(!bond.take(&all_to_one()), "not so soon");
    }
    assert!(bond.take(&all_to_one()));
    assert_eq!(bond.weight(theirs(3)), 20, "as the others");
    assert_eq!(
        bond.learned.corrections().weight(&PEER, theirs(3), 1000),
        1000,
        "it tells something else now"
    );
    assert_eq!(bond.weight(End::Own(3)), 20, "which was only kept back");
    assert_eq!(bond.lanes().len(), 4, "each has one of its own");
    bond.learned.retain(|_| false);
    assert_eq!(bond.weight(theirs(3)), 10_000);
}

#[test]
fn our_own_too_unless_the_user_said_it() {
    let one_to_all = busy(&[(3, 0, 5000), (3, 1, 5000), (3, 2, 5000), (3, 3, 5000), (0, 3, 40), (1, 3, 40)]);
    let liar = || Bond::told(&[20, 20, 20, 10_000], &[20; 4]);
    let mut bond = liar();
    let took = (0..SUSPECT_ROUNDS).filter(|_| bond.take(&one_to_all)).count();
    assert_eq!((took, bond.weight(End::Own(3))), (1, 20));
    assert_eq!(bond.weight(End::Own(0)), 20, "it carries little since it is given little");

    let mut bond = liar();
    for _ in 0..2 * SUSPECT_ROUNDS {
        assert!(!bond.take_fixed(&one_to_all, |end| end == End::Own(3)));
    }
}

/// Links of 100 Mbit/s whose members tell what is at hand, at both ends.
#[test]
fn members_that_all_tell_as_much_too_much_are_left_alone() {
    for (own, peer) in [(2, 4), (4, 2), (3, 4), (4, 3), (1, 4), (4, 1), (3, 8), (4, 4)] {
        for (own_told, peer_told) in [(10_000, 10_000), (10_000, 100), (100, 10_000), (10_000, 1000)] {
            let mut bond = Bond::told(&vec![own_told; own], &vec![peer_told; peer]);
            let lanes = bond.lanes();
            // The fewer ones are the bottleneck, and their lanes share what they carry.
            let share = |lane: &Lane| {
                let of_slot = lanes.iter().filter(|other| other.slot == lane.slot).count();
                let of_mac = lanes.iter().filter(|other| other.peer_mac == lane.peer_mac).count();
                95_000 / if own <= peer { of_slot } else { of_mac } as u64
            };
            let (round, plans) = (carried(&lanes, share), Cell::new(0));
            for rounds in 1..=10 * SUSPECT_ROUNDS {
                let planned = |corrections: &Corrections| {
                    plans.set(plans.get() + 1);
                    planned(&bond.told, corrections)
                };
                let is_new = bond.learned.take(PEER, &round, &bond.told, |_| false, planned);
                assert!(!is_new, "{own} to {peer}, {own_told} and {peer_told}");
                assert!(plans.get() <= rounds, "other lanes are not even looked for");
            }
        }
    }
}

/// Who shares a member of the other end seems slower than it is.
#[test]
fn members_at_one_end_are_corrected_if_those_at_the_other_end_were_kept_back() {
    let mut bond = Bond::told(&[100_000; 4], &[100, 100, 100_000, 100_000]);
    let to_two = busy(&[(0, 2, 47_000), (1, 2, 47_000), (2, 3, 47_000), (3, 3, 47_000)]);
    assert_eq!(bond.lanes().len(), 4);
    assert!((0..SUSPECT_ROUNDS).any(|_| bond.take(&to_two)));
    assert_eq!([2, 3].map(|index| bond.weight(theirs(index))), [100; 2]);
    assert_eq!(bond.weight(End::Own(0)), 100_000);
}

/// A pair of members that tell far too much has a lane that leaves nothing worth having to others.
#[test]
fn two_that_are_paired_are_corrected_together() {
    let mut bond = Bond::told(&[20, 20, 20, 100_000], &[20, 20, 100_000]);
    assert_eq!(bond.lanes().len(), 1);
    assert!((0..SUSPECT_ROUNDS).any(|_| bond.take(&busy(&[(3, 2, 19_000)]))));
    assert_eq!((bond.weight(End::Own(3)), bond.weight(theirs(2))), (20, 20));
    assert!(bond.lanes().len() >= 4);
}

#[test]
fn what_brings_nothing_stays_as_it_was() {
    // One lane each: there is no way past a slow one.
    let pairs = busy(&[(0, 0, 20_000), (1, 1, 20_000), (2, 2, 20_000), (3, 3, 1000)]);
    let mut bond = Bond::told(&[20; 4], &[20; 4]);
    for _ in 0..10 * SUSPECT_ROUNDS {
        assert!(!bond.take(&pairs));
    }
    // Others could have a little more than a quarter, and then a little less.
    let gains = |others: u32| {
        let mut bond = Bond::told(&[others; 4], &[others, others, others, 10_000]);
        (0..SUSPECT_ROUNDS)
            .any(|_| bond.take(&busy(&[(0, 3, 20_000), (1, 3, 20_000), (2, 3, 20_000), (3, 3, 20_000)])))
    };
    assert!(gains(40), "three of 40 beside one of 80 are 160 for 80");
    assert!(!gains(9), "three of 9 beside one of 80 leave the sum of the own ones");
}

#[test]
fn rounds_that_show_it_follow_each_other() {
    let fine = busy(&[(0, 0, 20_000), (1, 1, 20_000)]);
    let mut bond = one_liar();
    for _ in 0..10 {
        for _ in 1..SUSPECT_ROUNDS {
            assert!(!bond.take(&all_to_one()));
        }
        assert!(!bond.take(&fine));
    }
}

#[test]
fn who_carries_more_again_or_is_forgotten_is_what_it_told() {
    let corrected = || {
        let mut bond = one_liar();
        assert!((0..SUSPECT_ROUNDS).any(|_| bond.take(&all_to_one())));
        bond
    };
    let mut bond = corrected();
    assert!(!bond.take(&busy(&[(3, 3, 30_000)])));
    assert!(bond.take(&busy(&[(3, 3, 30_001)])));
    assert!(!bond.is_corrected());

    let mut bond = corrected();
    assert!(bond.take(&Round::Forgotten));
    assert!(!bond.take(&Round::Forgotten));
    assert!(!bond.is_corrected());
}

#[test]
fn beside_members_that_are_believed_others_are_corrected() {
    let mut bond = one_liar();
    assert!((0..SUSPECT_ROUNDS).any(|_| bond.take_fixed(&all_to_one(), End::is_own)));
    assert_eq!(bond.weight(theirs(3)), 20);
}

#[test]
fn who_carries_less_than_it_told_but_not_far_less_is_believed() {
    let mut bond = one_liar();
    let round = busy(&[(0, 3, 5000), (1, 3, 5000), (2, 3, 5000), (3, 3, 5000), (3, 0, 12_000)]);
    assert!((0..SUSPECT_ROUNDS).any(|_| bond.take(&round)));
    assert_eq!([0, 3].map(|index| bond.weight(theirs(index))), [20; 2]);
}

#[test]
fn two_that_told_too_much_are_corrected_at_once() {
    let mut bond = Bond::told(&[20; 4], &[20, 20, 10_000, 10_000]);
    let both = busy(&[(0, 3, 10_000), (1, 3, 10_000), (2, 2, 9000), (3, 2, 9000)]);
    assert!((0..SUSPECT_ROUNDS).any(|_| bond.take(&both)));
    assert_eq!([2, 3].map(|index| bond.weight(theirs(index))), [20; 2]);
}

#[test]
fn what_is_carried_is_a_told_weight_if_it_is_near_to_one() {
    let like = |kbit| like_others(kbit, [20, 100].into_iter());
    assert_eq!([13_999, 14_000, 20_000, 22_500, 22_501].map(like), [14, 20, 20, 20, 23]);
    assert_eq!([69_999, 70_000, 112_500, 112_501].map(like), [70, 100, 100, 113]);
    assert_eq!([0, 1, 1000, 1001].map(like), [1, 1, 1, 2], "it carries something");
    assert_eq!(like_others(7001, std::iter::empty()), 8);
}
