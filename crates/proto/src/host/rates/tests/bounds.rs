//! What counts, and what just does not.

use super::*;
use lane::BUSY_MAX;

const ROUND_US: u32 = 200_000;

fn lane((slot, index): (u8, u8)) -> Lane {
    Lane { slot, peer_mac: Some(peer(index)), weight: 1_000_000, class: 0 }
}

fn peer(index: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, index])
}

/// One round after the other of a plan.
pub(super) struct Rounds {
    pub rates: Rates,
    pub now: Time,
    pub lanes: Vec<Lane>,
    pub counts: Vec<LaneCount>,
    /// Slots of members whose weight is their rate.
    pub fixed: &'static [u8],
}

impl Rounds {
    /// Lanes from slots to the peer's members, all told to be of 1 Gbit/s.
    pub fn new(ends: &[(u8, u8)]) -> Rounds {
        let lanes: Vec<Lane> = ends.iter().copied().map(lane).collect();
        let counts = vec![LaneCount { bytes: 1, ..LaneCount::default() }; lanes.len()];
        let mut rounds =
            Rounds { rates: Rates::default(), now: Time::from_millis(1000), lanes, counts, fixed: &[] };
        assert!(!rounds.look(), "it begins here");
        rounds
    }

    pub fn look(&mut self) -> bool {
        let fixed = self.fixed;
        self.rates.take(self.now, 7, &self.lanes, |slot| fixed.contains(&slot), &self.counts)
    }

    /// Each lane carries so many kbit/s for a round, and something waits on it for so many us; whether rates are others now.
    pub fn take(&mut self, each: &[(u64, u32)]) -> bool {
        for (count, (kbit, busy_us)) in self.counts.iter_mut().zip(each) {
            count.bytes += kbit * 25;
            count.tcp_bytes = count.tcp_bytes.wrapping_add((kbit * 25 * 956 / 1000) as u32);
            count.busy_bytes = count.busy_bytes.wrapping_add((kbit * u64::from(*busy_us) / 8000) as u32);
            count.busy_us = count.busy_us.wrapping_add(*busy_us);
        }
        self.now = self.now + ROUND;
        self.look()
    }

    pub fn measured(&self) -> Vec<Option<u32>> {
        self.rates.measured(7, &self.lanes)
    }

    fn usage(&self) -> Use {
        self.rates.plans[&7].usage
    }
}

#[test]
fn what_members_carried_in_a_busy_round_is_told_once() {
    let mut rounds = Rounds::new(&[(0, 0), (0, 1), (1, 0)]);
    rounds.take(&[(1000, 60_000), (2000, 59_999), (4000, 0)]);
    let end = |end, lanes, kbit, waited| EndCount { end, lanes, kbit, waited };
    let ends = vec![
        end(End::Own(0), 2, 3000, true),
        end(End::Peer(peer(0)), 2, 5000, true),
        end(End::Peer(peer(1)), 1, 2000, false),
        end(End::Own(1), 1, 4000, false),
    ];
    assert_eq!(rounds.rates.take_round(7), Some(Round::Busy(ends)));
    assert_eq!((rounds.rates.take_round(7), rounds.rates.take_round(8)), (None, None));
    // Something has to wait for three tenths of it.
    rounds.take(&[(1000, 59_999), (2000, 59_999), (4000, 0)]);
    assert_eq!(rounds.rates.take_round(7), None);
}

#[test]
fn lanes_are_measured_where_something_waited_for_a_quarter_as_long_as_on_the_busiest() {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1), (2, 2)]);
    rounds.take(&[(5000, 100_000), (6000, 25_000), (7000, 24_999)]);
    assert_eq!(rounds.measured(), [Some(5000), Some(6000), None]);
    // One sample that differs may be wrong; two are not.
    rounds.take(&[(8000, 100_000), (6000, 25_000), (7000, 0)]);
    assert_eq!(rounds.measured(), [Some(5000), Some(6000), None]);
    rounds.take(&[(9000, 100_000), (6000, 25_000), (7000, 0)]);
    assert_eq!(rounds.measured(), [Some(8000), Some(6000), None]);
}

#[test]
fn of_lanes_that_are_sent_twice_what_they_seem_to_carry_nothing_is_learned() {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1), (2, 2)]);
    // Counters wrap.
    rounds.counts[0].tcp_bytes = u32::MAX - 5;
    rounds.now = rounds.now + ROUND_MAX;
    assert!(!rounds.look(), "it begins again here");
    // Lanes count together, by the time that passed, those on which something waits: 60 Mbit/s are 1.5 MB, of which TCP has 1,434,000.
    let mut after = |more: u32| {
        rounds.counts[0].tcp_bytes = rounds.counts[0].tcp_bytes.wrapping_add(1_000_000 + more);
        rounds.counts[1].tcp_bytes += 566_000;
        rounds.counts[2].tcp_bytes += 4_000_000;
        let changed =
            rounds.take(&[(40_000, ROUND_US), (20_000, ROUND_US / BUSY_PART), (9_000, ROUND_US / 5)]);
        (changed, rounds.measured(), rounds.rates.take_round(7).is_some())
    };
    assert_eq!(after(25), (false, vec![None; 3], false));
    let measured = vec![Some(40_000), Some(20_000), None];
    assert_eq!(after(0), (true, measured.clone(), true));
    // Where something waits on half of the lanes or on less, one flow may have lost much.
    let mut few = Rounds::new(&[(0, 0), (1, 1)]);
    few.counts[0].tcp_bytes = 10_000_000;
    few.take(&[(40_000, ROUND_US), (20_000, ROUND_US / 5)]);
    assert_eq!(few.measured(), [Some(40_000), None]);
    // Nor is forgotten what was measured before.
    for _ in 0..400 {
        assert_eq!(after(25), (false, measured.clone(), false));
    }
}

#[test]
fn a_round_has_its_length_and_one_without_a_look_for_a_second_does_not_count() {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    let mut after = |millis| {
        rounds.counts.iter_mut().for_each(|count| {
            (count.bytes, count.busy_bytes) = (count.bytes + 50_000, count.busy_bytes + 50_000);
            count.busy_us += 400_000;
        });
        rounds.now = rounds.now + Duration::from_millis(millis);
        rounds.look();
        rounds.rates.take_round(7).is_some()
    };
    assert!(!after(199));
    assert!(after(1), "both looks are one round");
    assert!(after(999 / 2));
    assert!(!after(1000));
    assert!(after(200), "the next one counts from there");
}

#[test]
fn counters_that_begin_again_are_no_round() {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    (0..3).for_each(|_| _ = rounds.take(&[(100_000, ROUND_US), (20_000, ROUND_US)]));
    let known = rounds.measured();
    assert_eq!(known, [Some(100_000), Some(20_000)]);
    // At zero again, or with other numbers that happen to be higher; twice, so that it is no single sample.
    let restarts = [
        LaneCount::default(),
        LaneCount { bytes: 1 << 40, busy_bytes: 9, busy_us: 9, ..LaneCount::default() },
        LaneCount { bytes: 77, busy_bytes: u32::MAX, busy_us: 1 << 30, ..LaneCount::default() },
    ];
    for counts in restarts {
        rounds.counts = vec![counts; 2];
        for _ in 0..2 {
            rounds.now = rounds.now + ROUND;
            assert!(!rounds.look());
        }
        assert_eq!(rounds.measured(), known, "{counts:?}");
    }
    // Fewer bytes alone show it, too.
    for _ in 0..2 {
        rounds.counts.iter_mut().for_each(|count| count.bytes = 5);
        rounds.now = rounds.now + ROUND;
        assert!(!rounds.look());
    }
    assert_eq!(rounds.measured(), known);
    // A lane that is merely idle did not begin again.
    rounds.rates.take_round(7);
    rounds.take(&[(8000, ROUND_US), (0, 0)]);
    assert_ne!(rounds.rates.take_round(7), None);
    // Several flows may each count the time once more.
    rounds.take(&[(8000, BUSY_MAX * ROUND_US), (20_000, ROUND_US)]);
    assert_ne!(rounds.rates.take_round(7), None);
    rounds.take(&[(8000, BUSY_MAX * ROUND_US + 1), (20_000, ROUND_US)]);
    assert_eq!(rounds.rates.take_round(7), None);
}

/// Which of these rates of the second lane are worth another plan, each from the same plan on; `busy`: something waits on the first.
fn worth(rates: &[u64], busy: bool) -> Vec<bool> {
    let changes = |rate: &u64| {
        let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
        assert!(rounds.take(&[(100_000, ROUND_US), (20_000, ROUND_US)]));
        (0..3).for_each(|_| assert!(!rounds.take(&[(100_000, ROUND_US), (20_000, ROUND_US)])));
        // What carries half of what it can is not given more.
        let first = if busy { (100_000, ROUND_US) } else { (50_000, 0) };
        (0..3).any(|_| rounds.take(&[first, (*rate, ROUND_US)]))
    };
    rates.iter().map(changes).collect()
}

#[test]
fn little_is_not_worth_another_plan_and_least_of_all_where_all_lanes_are_full() {
    // Shares are parts of what all lanes have: 1 % of the second one's is 12 of 1000 of its rate.
    assert_eq!(worth(&[19_750, 19_800, 20_200, 20_300], false), [true, false, false, true]);
    assert_eq!(worth(&[18_900, 19_100, 20_900, 21_100], true), [true, false, false, true]);
}

#[test]
fn what_carries_a_tenth_of_its_weights_carries_much_and_where_something_waits_most_of_the_time_it_is_full() {
    // In TCP data, of which there is less than in frames.
    const TENTH: u64 = 104_603;
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    let mut after = |each: &[(u64, u32)]| {
        rounds.take(each);
        rounds.usage()
    };
    assert_eq!(after(&[(TENTH - 1, 0), (TENTH - 1, 0)]), Use::Little);
    assert_eq!(after(&[(TENTH, 0), (TENTH, 0)]), Use::Much(1));
    assert_eq!(after(&[(TENTH, 149_999), (TENTH, 0)]), Use::Much(2));
    assert_eq!(after(&[(TENTH, 0), (TENTH, 0)]), Use::Much(3));
    assert_eq!(after(&[(TENTH, 150_000), (TENTH, 0)]), Use::Full);
    assert_eq!(after(&[(TENTH, 0), (TENTH, 0)]), Use::Much(1));
    assert_eq!(after(&[(10, 150_000), (10, 0)]), Use::Full, "however little that is");
}

/// The slowest member after a member was measured at these rates, in kbit/s, each a time after the one before.
fn slowest(steps: &[(u64, u64)]) -> Vec<Option<u32>> {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    let after = |(seconds, kbit): &(u64, u64)| {
        (0..3).for_each(|_| _ = rounds.take(&[(*kbit, ROUND_US), (900_000, ROUND_US)]));
        let before = rounds.rates.stripe();
        rounds.now = rounds.now + Duration::from_secs(*seconds);
        let changed = rounds.rates.follow_stripe(rounds.now, true, |_| 0);
        assert_eq!(changed, rounds.rates.stripe() != before);
        rounds.rates.stripe().slowest_kbit
    };
    steps.iter().map(after).collect()
}

#[test]
fn stripes_follow_the_slowest_member_if_it_is_far_slower_than_told() {
    assert_eq!(slowest(&[(0, 250_000), (0, 249_999)]), [None, Some(249_999)], "a quarter of what was told");
    // Of another rate if that differs by more than a quarter; a higher one not so soon.
    let steps =
        [(0, 100_000), (0, 75_000), (0, 74_999), (0, 93_749), (0, 110_000), (8, 110_000), (10, 110_000)];
    let known = [100_000, 100_000, 74_999, 74_999, 74_999, 74_999, 110_000].map(Some);
    assert_eq!(slowest(&steps), known);
    let steps = [(0, 80_000), (20, 100_000), (0, 100_001)];
    assert_eq!(slowest(&steps), [80_000, 80_000, 100_001].map(Some), "by a quarter, and by more");
    // Once it is, it stays so up to half of what was told, or to what is not slow at all.
    assert_eq!(slowest(&[(0, 240_000), (20, 299_999)]), [Some(240_000), Some(240_000)]);
    assert_eq!(slowest(&[(0, 200_000), (20, 299_999)]), [Some(200_000), Some(299_999)]);
    assert_eq!(slowest(&[(0, 200_000), (20, 300_000)]), [Some(200_000), None]);
    assert_eq!(slowest(&[(0, 200_000), (5, 300_000)]), [Some(200_000), Some(200_000)], "not so soon");
}

#[test]
fn stripes_of_a_member_that_is_no_longer_as_slow_become_longer_ten_seconds_after_the_last_change() {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    (0..3).for_each(|_| _ = rounds.take(&[(100_000, ROUND_US), (900_000, ROUND_US)]));
    let changed = rounds.now;
    assert!(rounds.rates.follow_stripe(changed, true, |_| 0));
    (0..3).for_each(|_| _ = rounds.take(&[(200_000, ROUND_US), (900_000, ROUND_US)]));
    assert!(!rounds.rates.follow_stripe(changed + Duration::from_millis(9999), true, |_| 0));
    assert!(rounds.rates.follow_stripe(changed + Duration::from_secs(10), true, |_| 0));
}

#[test]
fn what_a_member_carries_to_a_peer_where_nothing_waits_counts_for_a_second() {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    rounds.take(&[(100_000, ROUND_US), (900_000, ROUND_US)]);
    let mut other = Rounds::new(&[(0, 2), (1, 3)]);
    other.take(&[(900_000, 0), (0, 0)]);
    rounds.rates.plans.insert(8, other.rates.plans.remove(&7).expect("a plan"));
    assert!(!rounds.rates.follow_stripe(rounds.now + Duration::from_millis(999), true, |_| 0));
    assert!(rounds.rates.follow_stripe(rounds.now + Duration::from_secs(1), true, |_| 0));
    assert_eq!(rounds.rates.stripe().slowest_kbit, Some(100_000));
}

#[test]
fn stripes_are_long_by_rounds_of_the_last_second_and_for_ten_seconds_after_them() {
    let long_at = |millis: &[u64]| {
        let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
        (0..2).for_each(|_| _ = rounds.take(&[(900_000, 0), (900_000, 0)]));
        let look = |millis: &u64| {
            rounds.rates.follow_stripe(rounds.now + Duration::from_millis(*millis), true, |_| 0);
            rounds.rates.stripe().long
        };
        millis.iter().map(look).collect::<Vec<_>>()
    };
    assert_eq!(long_at(&[1000]), [false]);
    assert_eq!(long_at(&[999, 999 + 9999, 999 + 10_000]), [true, true, false]);
}

#[test]
fn traffic_is_light_if_it_is_less_than_half_of_what_the_lanes_carry() {
    // Of 200 Mbit/s each; in TCP data, of which there is less than in frames.
    const HALF: u64 = 104_603;
    let after_a_minute_of = |kbit| {
        let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
        rounds.take(&[(200_000, ROUND_US), (200_000, ROUND_US)]);
        rounds.rates.take_round(7);
        (0..299).for_each(|_| _ = rounds.take(&[(kbit, 0), (kbit, 0)]));
        assert_eq!(rounds.rates.take_round(7), None, "not so soon");
        rounds.take(&[(kbit, 0), (kbit, 0)]);
        rounds.rates.take_round(7)
    };
    assert_eq!([HALF - 1, HALF].map(after_a_minute_of), [Some(Round::Forgotten), None]);
    assert_eq!(after_a_minute_of(0), None, "where nothing is sent, nothing is learned");
}

#[test]
fn a_lane_that_was_given_more_is_as_the_others_once_that_is_forgotten() {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    let busy = [(100_000, ROUND_US), (104_603, 0)];
    (0..2).for_each(|_| _ = rounds.take(&busy));
    assert_eq!(rounds.rates.of(7, &rounds.lanes), [100_000, 106_000]);
    while rounds.rates.take_round(7) != Some(Round::Forgotten) {
        rounds.take(&[(1000, 0), (1000, 0)]);
    }
    rounds.take(&busy);
    assert!(rounds.rates.of(7, &rounds.lanes).is_empty(), "nothing is known of one");
}

/// What else is sent is not measured: with it, a lane would seem to carry far more than was measured of the others.
#[test]
fn a_lane_is_given_more_than_it_carried_of_tcp() {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    for _ in 0..2 {
        rounds.counts.iter_mut().for_each(|count| count.bytes += 5_000_000);
        rounds.take(&[(100_000, ROUND_US), (104_603, 0)]);
    }
    assert_eq!(rounds.rates.of(7, &rounds.lanes), [100_000, 106_000]);
}

/// One lane that has carried so many kbit/s in a round.
fn carrying(lane: &mut LaneRate, kbit: u64) {
    lane.last.tcp_bytes = (kbit * 25) as u32;
    assert_eq!(lane.carried_tcp(ROUND_US.into()), kbit);
}

/// How many rounds pass until a lane that carries all that it has is given more.
fn waits(lane: &mut LaneRate) -> u32 {
    for round in 0..1000 {
        carrying(lane, lane.rate_kbit.unwrap_or(1000));
        if lane.grow(ROUND_US.into(), 0) {
            return round;
        }
    }
    panic!("never");
}

#[test]
fn what_is_never_waited_on_is_given_a_little_more_and_then_much() {
    let mut new = LaneRate::new(&lane((0, 0)));
    assert_eq!(waits(&mut new), 1, "it showed it in two rounds");
    assert_eq!((new.rate_kbit, new.grown_from), (Some(1060), Some(1000)));
    assert_eq!(waits(&mut new), 0);
    assert_eq!((new.rate_kbit, new.grown_from), (Some(3180), Some(1000)));
    // One that carried less than it has shows nothing.
    carrying(&mut new, 3020);
    assert!(!new.grow(ROUND_US.into(), 0));
    assert_eq!((waits(&mut new), new.rate_kbit), (1, Some(9540)));
    carrying(&mut new, 9540 * 95 / 100);
    assert!(new.grow(ROUND_US.into(), 0), "nearly all is enough");
    // One that was measured is not far from what it can carry.
    let mut known = LaneRate::new(&lane((0, 0)));
    (known.measured, known.rate_kbit) = (true, Some(1000));
    assert_eq!((waits(&mut known), known.rate_kbit), (1, Some(1060)));
    assert_eq!((waits(&mut known), known.rate_kbit), (0, Some(1590)));
    // What carries more than it was known to have is known to have that.
    let mut faster = LaneRate::new(&lane((0, 0)));
    (faster.measured, faster.rate_kbit) = (true, Some(1000));
    carrying(&mut faster, 2000);
    assert!(!faster.grow(ROUND_US.into(), 0) && faster.grow(ROUND_US.into(), 0));
    assert_eq!((faster.rate_kbit, faster.grown_from), (Some(2120), Some(2000)));
    // Nothing carried shows nothing.
    let mut idle = LaneRate::new(&lane((0, 0)));
    assert!((0..10).all(|_| !idle.grow(ROUND_US.into(), 0)));
}

#[test]
fn what_was_never_measured_is_given_more_than_the_others_suggest() {
    let mut beside = LaneRate::new(&lane((0, 0)));
    carrying(&mut beside, 799);
    assert!((0..10).all(|_| !beside.grow(ROUND_US.into(), 1000)), "it did not carry that");
    carrying(&mut beside, 800);
    assert!(!beside.grow(ROUND_US.into(), 1000) && beside.grow(ROUND_US.into(), 1000));
    assert_eq!((beside.rate_kbit, beside.grown_from), (Some(1060), Some(1000)), "no less than before");
}

#[test]
fn what_was_given_in_vain_is_given_again_later_and_later() {
    let mut tried = LaneRate::new(&lane((0, 0)));
    let mut rounds = Vec::new();
    for _ in 0..8 {
        rounds.push(waits(&mut tried));
        // Something waits on it now, at hardly more than it had.
        let from = tried.grown_from.expect("it was given more");
        tried.last.busy_bytes = tried.begun.busy_bytes + (from as u32 * 25 * 115).div_ceil(100) - 1;
        tried.measure(ROUND_US);
        assert_eq!(tried.grown_from, None);
        let sample = tried.rate_kbit.expect("measured");
        assert_eq!(tried.samples, [sample; 3], "what it was given was no sample");
    }
    assert_eq!(rounds, [1, 9, 17, 33, 65, 129, 257, 257]);
    for (kbit, next) in [(1149, 9), (1150, 1)] {
        let mut tried = LaneRate::new(&lane((0, 0)));
        waits(&mut tried);
        assert_eq!(tried.grown_from, Some(1000));
        tried.last.busy_bytes = tried.begun.busy_bytes + kbit * 25;
        tried.measure(ROUND_US);
        assert_eq!(waits(&mut tried), next, "{kbit}");
    }
    // It was worth it: the next time comes as soon as the first.
    waits(&mut tried);
    let from = tried.grown_from.expect("it was given more");
    tried.last.busy_bytes = tried.begun.busy_bytes + (from as u32 * 25 * 115).div_ceil(100) + 25;
    tried.measure(ROUND_US);
    assert_eq!(waits(&mut tried), 1);
    // And taken back it is what it was before.
    let from = tried.grown_from.expect("it was given more");
    tried.take_back();
    assert_eq!((tried.rate_kbit, tried.grown_from), (Some(from), None));
    assert_eq!(waits(&mut tried), 9);
    let rate = tried.rate_kbit;
    tried.measured = true;
    tried.grown_from = None;
    tried.take_back();
    assert_eq!(tried.rate_kbit, rate, "what was not given stays");
}

#[test]
fn what_was_measured_goes_back_towards_the_weights_by_a_little() {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    let each = [(100_000, ROUND_US), (20_000, ROUND_US)];
    (1..BACK_ROUNDS).for_each(|_| _ = rounds.take(&each));
    assert_eq!(rounds.measured(), [Some(100_000), Some(20_000)]);
    rounds.take(&each);
    assert_eq!(rounds.measured(), [Some(97_999), Some(20_401)], "two parts of a hundred, and one");
    // A lane that was just given more stays, too.
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    (0..BACK_ROUNDS - 2).for_each(|_| _ = rounds.take(&each));
    (0..2).for_each(|_| _ = rounds.take(&[(100_000, ROUND_US), (20_921, 0)]));
    assert_eq!(rounds.measured()[1], Some(21_200));
    // A lane that is right where it is stays.
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    let each = [(100_000, ROUND_US), (100_000, ROUND_US)];
    (0..BACK_ROUNDS).for_each(|_| _ = rounds.take(&each));
    assert_eq!(rounds.measured(), [Some(100_000); 2]);
}

#[test]
fn a_lane_keeps_a_part_of_the_fastest_ones_share_and_an_unknown_one_has_what_the_others_suggest() {
    let mut rounds = Rounds::new(&[(0, 0), (1, 1), (2, 2)]);
    rounds.take(&[(900_000, ROUND_US), (1000, ROUND_US), (1, 0)]);
    assert_eq!(rounds.rates.of(7, &rounds.lanes), [900_000, 900_000 / 256, 901_000 / 2]);
    assert_eq!((rounds.rates.member_kbit(0), rounds.rates.member_kbit(2)), (Some(900_000), None));
    // Of two lanes of a member in one plan both count, and of plans the one with most.
    let mut rounds = Rounds::new(&[(0, 0), (0, 1), (1, 1)]);
    rounds.take(&[(3000, ROUND_US), (2000, ROUND_US), (9000, ROUND_US)]);
    assert_eq!(rounds.rates.member_kbit(0), Some(5000));
    let mut other = Rounds::new(&[(0, 0), (1, 1)]);
    other.take(&[(6000, ROUND_US), (1000, ROUND_US)]);
    rounds.rates.plans.insert(8, other.rates.plans.remove(&7).expect("a plan"));
    assert_eq!([0, 1, 2].map(|slot| rounds.rates.member_kbit(slot)), [Some(6000), Some(9000), None]);
    assert_eq!([0, 1, 2].map(|slot| rounds.rates.is_in_use(slot)), [true, true, false]);
    rounds.rates.retain(|number| number == 7);
    assert_eq!(rounds.rates.member_kbit(0), Some(5000));
}

#[test]
fn rates_near_the_weights_are_the_weights() {
    // Of two equal weights one is as far from the half as the other: 8 of 100 of the larger one.
    let changes = |kbit| {
        let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
        rounds.take(&[(100_000, ROUND_US), (kbit, ROUND_US)])
    };
    assert_eq!([85_000, 85_300, 100_000, 118_000].map(changes), [true, false, false, true]);
    // Once rates are in use they are given up only where they are nearer.
    let mut rounds = Rounds::new(&[(0, 0), (1, 1)]);
    let mut in_use = |kbit| {
        (0..2).for_each(|_| _ = rounds.take(&[(100_000, ROUND_US), (kbit, ROUND_US)]));
        !rounds.rates.of(7, &rounds.lanes).is_empty()
    };
    assert_eq!([50_000, 90_000, 95_000].map(&mut in_use), [true, true, false]);
}
