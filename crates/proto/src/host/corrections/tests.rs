use super::*;
use linkbraid_wire::MacAddr;

const PEER: PeerKey = PeerKey::Plain(MacAddr([2, 0, 0, 0, 0, 9]));

fn theirs(index: u8) -> End {
    End::Peer(MacAddr([2, 0, 0, 0, 1, index]))
}

/// Four members at each end, which told so many Mbit/s.
fn told(own: [u32; 4], peer: [u32; 4]) -> BTreeMap<End, u32> {
    let own = (0..).zip(own).map(|(slot, mbit)| (End::Own(slot), mbit));
    own.chain((0..).zip(peer).map(|(index, mbit)| (theirs(index), mbit))).collect()
}

/// Lanes by their ends with what they carry, in kbit/s, while something waits on all of them.
fn busy(lanes: &[(u8, u8, u64)]) -> Round {
    let mut ends: BTreeMap<End, EndCount> = BTreeMap::new();
    for (slot, index, kbit) in lanes {
        for end in [End::Own(*slot), theirs(*index)] {
            let count = ends.entry(end).or_insert(EndCount { end, lanes: 0, kbit: 0, waited: true });
            (count.lanes, count.kbit) = (count.lanes + 1, count.kbit + kbit);
        }
    }
    Round::Busy(ends.into_values().collect())
}

/// All four to the one that told too much.
fn all_to_one() -> Round {
    busy(&[(0, 3, 5000), (1, 3, 5000), (2, 3, 5000), (3, 3, 4600), (3, 0, 5000), (3, 1, 5000), (3, 2, 5000)])
}

/// No weight is the user's.
fn free(_: End) -> bool {
    false
}

fn weight(learned: &Learned, end: End, told: u32) -> u32 {
    learned.corrections().weight(&PEER, end, told)
}

#[test]
fn who_told_far_too_much_is_taken_for_what_it_carries() {
    let told = told([20; 4], [20, 20, 20, 10_000]);
    let mut learned = Learned::default();
    for _ in 1..SUSPECT_ROUNDS {
        assert!(!learned.take(PEER, &all_to_one(), &told, free, |_| unreachable!("not so soon")));
    }
    let have = |tried: &Corrections| {
        assert_eq!(tried.weight(&PEER, theirs(3), 10_000), 20, "as the others");
        80_000
    };
    assert!(learned.take(PEER, &all_to_one(), &told, free, have));
    assert_eq!(weight(&learned, theirs(3), 10_000), 20);
    assert_eq!(weight(&learned, theirs(3), 1000), 1000, "it tells something else now");
    assert_eq!(weight(&learned, End::Own(3), 20), 20, "which was only kept back");
    learned.retain(|_| false);
    assert_eq!(weight(&learned, theirs(3), 10_000), 10_000);
}

#[test]
fn our_own_too_unless_the_user_said_it() {
    let told = told([20, 20, 20, 10_000], [20; 4]);
    let one_to_all =
        busy(&[(3, 0, 5000), (3, 1, 5000), (3, 2, 5000), (3, 3, 4600), (0, 3, 40), (1, 3, 40), (2, 3, 40)]);
    let mut learned = Learned::default();
    let took =
        (0..SUSPECT_ROUNDS).filter(|_| learned.take(PEER, &one_to_all, &told, free, |_| 80_000)).count();
    assert_eq!((took, weight(&learned, End::Own(3), 10_000)), (1, 20));

    let mut learned = Learned::default();
    let fixed = |end| end == End::Own(3);
    for _ in 0..2 * SUSPECT_ROUNDS {
        assert!(!learned.take(PEER, &one_to_all, &told, fixed, |_| 80_000));
    }
}

#[test]
fn what_brings_nothing_stays_as_it_was() {
    let told = told([20; 4], [20, 20, 20, 10_000]);
    let mut learned = Learned::default();
    for _ in 0..10 * SUSPECT_ROUNDS {
        assert!(!learned.take(PEER, &all_to_one(), &told, free, |_| 36_000));
    }
    // One lane each: there is no way past a slow one.
    let pairs = busy(&[(0, 0, 5000), (1, 1, 5000), (2, 2, 5000), (3, 3, 5000)]);
    for _ in 0..10 * SUSPECT_ROUNDS {
        assert!(!learned.take(PEER, &pairs, &told, free, |_| 80_000));
    }
}

#[test]
fn suspicion_needs_the_same_member_in_rounds_one_after_the_other() {
    let told = told([20; 4], [20, 20, 20, 10_000]);
    let fine = busy(&[(0, 0, 20_000), (1, 1, 20_000)]);
    let mut learned = Learned::default();
    for _ in 0..10 {
        for _ in 1..SUSPECT_ROUNDS {
            assert!(!learned.take(PEER, &all_to_one(), &told, free, |_| 80_000));
        }
        assert!(!learned.take(PEER, &fine, &told, free, |_| 80_000));
    }
}

#[test]
fn who_carries_more_again_or_is_forgotten_is_what_it_told() {
    let told = told([20; 4], [20, 20, 20, 10_000]);
    let corrected = || {
        let mut learned = Learned::default();
        assert!((0..SUSPECT_ROUNDS).any(|_| learned.take(PEER, &all_to_one(), &told, free, |_| 80_000)));
        learned
    };
    let mut learned = corrected();
    assert!(!learned.take(PEER, &busy(&[(3, 3, 30_000)]), &told, free, |_| 0));
    assert!(learned.take(PEER, &busy(&[(3, 3, 30_001)]), &told, free, |_| 0));
    assert_eq!(weight(&learned, theirs(3), 10_000), 10_000);

    let mut learned = corrected();
    assert!(learned.take(PEER, &Round::Forgotten, &told, free, |_| 0));
    assert!(!learned.take(PEER, &Round::Forgotten, &told, free, |_| 0));
    assert_eq!(weight(&learned, theirs(3), 10_000), 10_000);
}

#[test]
fn of_members_that_are_believed_another_one_still_has_its_lanes() {
    let told = told([20; 4], [20, 20, 20, 10_000]);
    let mut learned = Learned::default();
    assert!((0..SUSPECT_ROUNDS).any(|_| learned.take(PEER, &all_to_one(), &told, End::is_own, |_| 80_000)));
    assert_eq!(weight(&learned, theirs(3), 10_000), 20);
}

#[test]
fn two_that_are_suspected_in_turn_are_not_corrected() {
    let told = told([20; 4], [20, 20, 10_000, 10_000]);
    let all_to = |index| {
        let lanes: Vec<_> = (0..4).map(|slot| (slot, index, 5000)).collect();
        busy(&lanes)
    };
    let mut learned = Learned::default();
    for round in 0..10 * SUSPECT_ROUNDS {
        assert!(!learned.take(PEER, &all_to(2 + (round % 2) as u8), &told, free, |_| 80_000));
    }
    // Of two at once the one is suspected that carries least of what it told.
    let both = busy(&[(0, 3, 2000), (1, 3, 2000), (2, 2, 4000), (3, 2, 4000)]);
    assert!((0..SUSPECT_ROUNDS).any(|_| learned.take(PEER, &both, &told, free, |_| 80_000)));
    assert_eq!([2, 3].map(|index| weight(&learned, theirs(index), 10_000)), [10_000, 4]);
}

#[test]
fn what_is_carried_is_a_told_weight_if_it_is_near_to_one() {
    let like = |kbit| like_others(kbit, [20, 100].into_iter());
    assert_eq!([17_777, 17_778, 20_000, 22_857, 22_858].map(like), [18, 20, 20, 20, 23]);
    assert_eq!([88_888, 88_889, 114_285, 114_286].map(like), [89, 100, 100, 115]);
    assert_eq!([0, 1, 1000, 1001].map(like), [1, 1, 1, 2], "it carries something");
    assert_eq!(like_others(7001, std::iter::empty()), 8);
}
