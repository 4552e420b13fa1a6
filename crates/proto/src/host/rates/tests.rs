use super::*;

mod bounds;
mod overfull;

const MILLI: u64 = 1_000_000;

/// Lanes of such rates, in kbit/s, that carry what one sender has by the shares of a plan.
struct Bed {
    rates: Rates,
    now: Time,
    lanes: Vec<Lane>,
    /// Slots of members whose weight is their rate.
    fixed: &'static [u8],
    /// What each really carries.
    real: Vec<u64>,
    counts: Vec<LaneCount>,
    /// What all of them together carry, if that is less.
    behind: u64,
    /// A lane on which what waits is not seen.
    blind: Option<usize>,
}

impl Bed {
    /// Lanes that are told to be of these weights, in Mbit/s, and carry so many.
    fn new(told: &[u32], real: &[u64]) -> Bed {
        let lane = |(slot, mbit): (u8, &u32)| Lane {
            slot,
            peer_mac: Some(MacAddr([2, 0, 0, 0, 1, slot])),
            weight: mbit * 1000,
            class: 0,
        };
        Bed {
            rates: Rates::default(),
            now: Time(0),
            lanes: (0u8..).zip(told).map(lane).collect(),
            fixed: &[],
            real: real.iter().map(|mbit| mbit * 1000).collect(),
            counts: vec![LaneCount::default(); told.len()],
            behind: u64::MAX,
            blind: None,
        }
    }

    fn shares(&self) -> Vec<u64> {
        let in_use = self.rates.of(7, &self.lanes);
        let told = || self.lanes.iter().map(|lane| lane.weight).collect();
        (if in_use.is_empty() { told() } else { in_use }).into_iter().map(u64::from).collect()
    }

    /// What the sender has by these shares, in kbit/s: the lane that is full first limits it.
    fn carried(&self) -> u64 {
        let shares = self.shares();
        let sum: u64 = shares.iter().sum();
        let most = self.real.iter().zip(&shares).map(|(real, share)| real * sum / share).min().unwrap();
        most.min(self.behind)
    }

    /// One sender that takes all it gets, or so many kbit/s, for some rounds.
    fn send(&mut self, rounds: u32, most: u64) {
        for _ in 0..rounds {
            let shares = self.shares();
            let sum: u64 = shares.iter().sum();
            let sent = self.carried().min(most);
            let waits_behind = sent == self.behind;
            let blind = self.blind;
            for (at, ((count, real), share)) in
                self.counts.iter_mut().zip(&self.real).zip(&shares).enumerate()
            {
                let kbit = sent * share / sum;
                // 200 ms.
                let bytes = kbit * 25;
                count.bytes += bytes;
                count.tcp_bytes = count.tcp_bytes.wrapping_add(u32::try_from(bytes * 956 / 1000).unwrap());
                if blind != Some(at) && (waits_behind || kbit * 1000 >= real * 999) {
                    count.busy_bytes = count.busy_bytes.wrapping_add(u32::try_from(bytes).unwrap());
                    count.busy_us = count.busy_us.wrapping_add(200_000);
                }
            }
            self.now = Time(self.now.0 + 200 * MILLI);
            let fixed = self.fixed;
            self.rates.take(self.now, 7, &self.lanes, |slot| fixed.contains(&slot), &self.counts);
        }
    }

    /// The part of what all lanes carry that the sender has, in percent.
    fn percent(&self) -> u64 {
        self.carried() * 100 / self.real.iter().sum::<u64>()
    }
}

#[test]
fn lanes_that_are_told_the_same_and_differ_are_all_filled() {
    for real in [[100, 20], [20, 100], [1000, 20], [30, 29]] {
        let mut bed = Bed::new(&[10_000, 10_000], &real);
        bed.send(15, u64::MAX);
        assert!(bed.percent() >= 95, "{real:?}: {:?}", bed.shares());
    }
}

#[test]
fn what_is_told_right_is_what_counts() {
    let mut bed = Bed::new(&[500, 100, 100], &[500, 100, 100]);
    bed.send(50, u64::MAX);
    assert_eq!(bed.rates.in_use().count(), 0);
    assert_eq!(bed.rates.measured(7, &bed.lanes).iter().flatten().count(), 3);
    assert!(!bed.rates.follow_stripe(bed.now, true, |_| 0), "no link carries much less than it told");
}

#[test]
fn what_is_told_wrong_by_ten_is_found() {
    for told in [[1000, 100, 100, 100], [10, 100, 100, 100]] {
        let mut bed = Bed::new(&told, &[100; 4]);
        bed.send(15, u64::MAX);
        assert!(bed.percent() >= 95, "{told:?}: {:?}", bed.shares());
    }
}

#[test]
fn a_change_is_followed_within_two_seconds() {
    let mut bed = Bed::new(&[10_000, 10_000], &[100, 20]);
    bed.send(20, u64::MAX);
    bed.real.reverse();
    bed.send(10, u64::MAX);
    assert!(bed.percent() >= 90, "{:?}", bed.shares());
    assert!(bed.rates.follow_stripe(bed.now, true, |_| 0));
    assert!(bed.rates.stripe().slowest_kbit.is_some_and(|kbit| (19_000..22_000).contains(&kbit)));
}

#[test]
fn what_is_merely_idle_is_not_slow() {
    let mut bed = Bed::new(&[100, 100], &[100, 100]);
    bed.send(20, 3_000);
    assert_eq!(bed.rates.in_use().count(), 0);
    assert_eq!(bed.rates.measured(7, &bed.lanes), [None, None]);
    // Nor is what was measured forgotten at once.
    let mut bed = Bed::new(&[10_000, 10_000], &[100, 20]);
    bed.send(20, u64::MAX);
    bed.send(20, 3_000);
    assert!(bed.percent() >= 95);
}

#[test]
fn after_a_minute_of_light_traffic_what_is_told_counts_again() {
    let mut bed = Bed::new(&[10_000, 10_000], &[100, 20]);
    bed.send(20, u64::MAX);
    assert_eq!(bed.rates.in_use().collect::<Vec<_>>(), [7]);
    bed.send(5 * 60, 3_000);
    assert_eq!(bed.rates.in_use().count(), 0);
    assert!(!bed.rates.follow_stripe(bed.now, true, |_| 0));
}

#[test]
fn a_pause_in_which_nobody_looked_teaches_nothing() {
    let mut bed = Bed::new(&[10_000, 10_000], &[100, 20]);
    bed.send(15, u64::MAX);
    let known = bed.shares();
    bed.now = Time(bed.now.0 + 61_000 * MILLI);
    bed.send(1, 1000);
    assert_eq!(bed.shares(), known, "a minute without traffic is none of light traffic");
}

#[test]
fn a_bottleneck_behind_all_lanes_brings_shares_back_to_what_is_told() {
    let mut bed = Bed::new(&[1000, 1000], &[1000, 300]);
    bed.send(20, u64::MAX);
    assert_eq!(bed.rates.in_use().count(), 1);
    // Now both are as fast as told, but a host behind them is not.
    (bed.real, bed.behind) = (vec![1_000_000, 1_000_000], 200_000);
    bed.send(5 * 600, u64::MAX);
    assert_eq!(bed.rates.in_use().count(), 0, "{:?}", bed.shares());
}

#[test]
fn a_lane_is_given_more_when_nothing_waited_on_it_in_two_rounds() {
    let mut bed = Bed::new(&[100, 100], &[100, 100]);
    bed.send(5, u64::MAX);
    bed.real[1] = 101_000;
    bed.send(1, u64::MAX);
    bed.real[1] = 100_000;
    bed.send(1, u64::MAX);
    bed.real[1] = 150_000;
    bed.send(1, u64::MAX);
    assert_eq!(bed.rates.in_use().count(), 0, "each time it was one round");
    bed.send(1, u64::MAX);
    assert_eq!(bed.rates.in_use().count(), 1);
}

#[test]
fn what_a_lane_is_given_in_vain_is_taken_back_where_nothing_is_seen_to_wait() {
    let mut bed = Bed::new(&[20, 20], &[20, 20]);
    bed.blind = Some(0);
    let mut rounds_with_less = 0;
    for _ in 0..25 {
        bed.send(1, u64::MAX);
        assert!(bed.percent() >= 95, "a try costs little");
        rounds_with_less += u32::from(bed.percent() < 100);
    }
    assert!((1..=3).contains(&rounds_with_less), "{rounds_with_less} of 25");
    bed.blind = None;
    bed.send(2, u64::MAX);
    assert_eq!(bed.percent(), 100);
}

#[test]
fn a_fixed_weight_stays() {
    let mut bed = Bed::new(&[10_000, 10_000], &[100, 20]);
    bed.fixed = &[0, 1];
    bed.send(20, u64::MAX);
    assert_eq!(bed.rates.in_use().count(), 0);
    assert!(bed.rates.measured(7, &bed.lanes)[1].is_some(), "it can be shown");
}

#[test]
fn a_lane_beside_one_of_fixed_weight_is_given_what_it_can_carry() {
    let mut bed = Bed::new(&[100, 100], &[100, 300]);
    bed.fixed = &[0];
    bed.send(25, u64::MAX);
    assert!(bed.percent() >= 90, "{:?}", bed.shares());
}

#[test]
fn what_a_lane_carried_beside_others_says_nothing_without_them() {
    let known =
        |bed: &Bed| -> Vec<bool> { bed.rates.measured(7, &bed.lanes).iter().map(Option::is_some).collect() };
    let mut bed = Bed::new(&[100; 4], &[100; 4]);
    bed.send(5, u64::MAX);
    assert_eq!(known(&bed), [true; 4]);
    // Another lane by the own member of the first, and into the peer's of the second; then it is as before.
    for (with, wanted) in [(true, [false, false, true, true]), (false, [true; 4])] {
        match with {
            true => bed.lanes.push(Lane { slot: 0, ..bed.lanes[1] }),
            false => _ = bed.lanes.pop(),
        }
        bed.counts = vec![LaneCount::default(); bed.lanes.len()];
        bed.rates.take(bed.now, 7, &bed.lanes, |_| false, &bed.counts);
        assert_eq!(known(&bed)[..4], wanted, "with it: {with}");
    }
    // A lane that goes with the members at its ends is nothing to the others.
    bed.lanes.remove(3);
    bed.counts.pop();
    bed.rates.take(bed.now, 7, &bed.lanes, |_| false, &bed.counts);
    assert_eq!(known(&bed), [true; 3]);
    // What is measured while others share a member is nothing without them.
    bed.lanes.push(Lane { slot: 2, ..bed.lanes[0] });
    bed.counts = vec![LaneCount::default(); 4];
    bed.real = vec![100_000; 4];
    bed.send(5, u64::MAX);
    assert_eq!(known(&bed), [true; 4]);
    bed.lanes.pop();
    bed.counts = vec![LaneCount::default(); 3];
    bed.rates.take(bed.now, 7, &bed.lanes, |_| false, &bed.counts);
    assert_eq!(known(&bed), [true; 3], "as before");
}

#[test]
fn a_slow_member_is_not_sent_far_too_much_when_another_one_fails() {
    let mut bed = Bed::new(&[100; 3], &[100, 20, 100]);
    bed.send(10, u64::MAX);
    let [first, second, _] = bed.lanes[..] else { panic!("three lanes") };
    // The third own member fails, and the second one leads to its peer's member too.
    bed.lanes[2].slot = 1;
    bed.counts = vec![LaneCount::default(); 3];
    bed.rates.take(bed.now, 7, &bed.lanes, |_| false, &bed.counts);
    let parts = |shares: Vec<u64>| -> Vec<u64> {
        let sum: u64 = shares.iter().sum();
        shares.iter().map(|share| (share * 120 + sum / 2) / sum).collect()
    };
    assert_eq!(parts(bed.shares()), [100, 10, 10]);
    let known: Vec<bool> = bed.rates.measured(7, &bed.lanes).iter().map(Option::is_some).collect();
    assert_eq!(known, [true, false, false]);
    // It is back.
    bed.real = vec![100_000, 10_000, 10_000];
    bed.send(10, u64::MAX);
    let third = Lane { slot: 2, ..bed.lanes[2] };
    bed.lanes = vec![first, second, third];
    bed.counts = vec![LaneCount::default(); 3];
    bed.rates.take(bed.now, 7, &bed.lanes, |_| false, &bed.counts);
    assert_eq!(parts(bed.shares()), [55, 11, 55], "as before");
}

#[test]
fn what_was_measured_long_ago_is_not_remembered() {
    let mut bed = Bed::new(&[100; 2], &[100, 20]);
    bed.send(10, u64::MAX);
    let both = bed.lanes.clone();
    let known_again = |bed: &mut Bed| {
        for lanes in [both[..1].to_vec(), both.clone()] {
            bed.counts = vec![LaneCount::default(); lanes.len()];
            bed.rates.follow(7, &lanes, |_| false);
            bed.lanes = lanes;
        }
        bed.rates.measured(7, &bed.lanes).iter().all(Option::is_some)
    };
    assert!(known_again(&mut bed));
    bed.send(400, 10_000);
    assert!(!known_again(&mut bed));
}

#[test]
fn what_all_lanes_of_a_member_carry_says_nothing_of_the_members_at_their_other_ends() {
    let mut bed = Bed::new(&[100; 3], &[25; 3]);
    let own = bed.lanes.clone();
    bed.lanes.iter_mut().for_each(|lane| lane.slot = 0);
    bed.send(5, u64::MAX);
    bed.lanes = own;
    bed.counts = vec![LaneCount::default(); 3];
    bed.rates.take(bed.now, 7, &bed.lanes, |_| false, &bed.counts);
    let known: Vec<Option<u64>> =
        bed.rates.plans[&7].lanes.iter().map(|lane| Some(lane.rate_kbit? / 1000)).collect();
    assert_eq!(known, [Some(75), None, None]);
}

#[test]
fn other_lanes_keep_what_is_known_of_those_that_stay() {
    let mut bed = Bed::new(&[10_000, 10_000, 10_000], &[100, 20, 100]);
    bed.send(20, u64::MAX);
    bed.lanes.remove(2);
    (bed.real, bed.counts) = (vec![100_000, 20_000], vec![LaneCount::default(); 2]);
    bed.send(1, 1_000);
    assert!(bed.percent() >= 90, "{:?}", bed.shares());
    bed.lanes.truncate(1);
    assert!(bed.rates.take(bed.now, 7, &bed.lanes, |_| false, &bed.counts[..1]));
    assert!(bed.rates.of(7, &bed.lanes).is_empty());
}

#[test]
fn members_to_slow_peers_are_as_fast_as_to_fast_ones() {
    let mut slow = Bed::new(&[1000, 1000], &[10, 10]);
    slow.send(10, u64::MAX);
    assert!(slow.rates.follow_stripe(slow.now, true, |_| 0) && slow.rates.stripe().slowest_kbit.is_some());
    let mut fast = Bed::new(&[1000, 1000], &[1000, 1000]);
    fast.send(10, u64::MAX);
    slow.rates.plans.insert(8, fast.rates.plans.remove(&7).unwrap());
    assert!(!slow.rates.follow_stripe(slow.now, true, |_| 0), "not so soon");
    let later = Time(slow.now.0 + 11_000 * MILLI);
    assert!(slow.rates.follow_stripe(later, true, |_| 0) && slow.rates.stripe().slowest_kbit.is_none());
}

/// The lanes of a plan have what the peer told.
#[test]
fn who_is_slow_told_much_more_itself() {
    let slow = || {
        let mut bed = Bed::new(&[100, 100], &[90, 90]);
        bed.send(10, u64::MAX);
        bed
    };
    let (mut bed, now) = (slow(), slow().now);
    assert!(!bed.rates.follow_stripe(now, true, |_| 100), "it told the truth");
    assert!(!bed.rates.follow_stripe(now, true, |_| 0), "nor does the user's weight say anything else");
    assert!(bed.rates.follow_stripe(now, true, |_| 10_000));
    assert!(bed.rates.stripe().slowest_kbit.is_some_and(|kbit| (80_000..=90_000).contains(&kbit)));
    // It sends more to another peer, without anything that waits there.
    let mut bed = slow();
    let mut fast = Bed::new(&[10_000, 10_000], &[10_000, 10_000]);
    fast.send(10, 900_000);
    assert_eq!(fast.rates.measured(7, &fast.lanes), [None, None]);
    bed.rates.plans.insert(8, fast.rates.plans.remove(&7).unwrap());
    assert!(!bed.rates.follow_stripe(now, true, |_| 10_000));
    // Which it has done long ago.
    bed.now = Time(now.0 + 2000 * MILLI);
    bed.send(2, u64::MAX);
    assert!(bed.rates.follow_stripe(bed.now, true, |_| 10_000));
}

#[test]
fn lanes_to_plain_hosts_are_not_measured() {
    let mut plain = Bed::new(&[1000, 1000], &[100, 10]);
    plain.lanes.iter_mut().for_each(|lane| lane.peer_mac = None);
    plain.send(10, u64::MAX);
    assert_eq!(plain.rates.measured(7, &plain.lanes), [None, None]);
}

#[test]
fn a_link_that_moves_about_a_limit_does_not_change_stripes_each_time() {
    let mut bed = Bed::new(&[1000, 1000], &[240, 1000]);
    let mut changes = 0;
    for i in 0..60 {
        bed.real[0] = if i % 2 == 0 { 240_000 } else { 260_000 };
        bed.send(5, u64::MAX);
        changes += u32::from(bed.rates.follow_stripe(bed.now, true, |_| 0));
    }
    assert!(changes <= 2, "{changes}");
}

#[test]
fn what_is_told_nearly_right_loses_next_to_nothing() {
    for real in [[100, 98], [100, 97], [1000, 960]] {
        let told = [real[0] as u32, real[0] as u32];
        let mut bed = Bed::new(&told, &real);
        let by_told = bed.carried();
        let mut sum = 0;
        for _ in 0..300 {
            bed.send(1, u64::MAX);
            sum += bed.carried();
        }
        assert!(sum / 300 >= by_told * 99 / 100, "{real:?}: {} of {by_told}", sum / 300);
    }
}

#[test]
fn counters_of_an_earlier_daemon_or_plan_are_not_taken_for_a_round() {
    let mut bed = Bed::new(&[1000, 1000, 1000], &[1000, 900, 1000]);
    let old =
        LaneCount { bytes: 1 << 50, busy_bytes: u32::MAX - 7, busy_us: 1 << 31, ..LaneCount::default() };
    bed.counts = vec![old; 3];
    bed.send(10, u64::MAX);
    let sum: u64 = bed.real.iter().sum();
    assert!(bed.carried() >= sum * 90 / 100, "{:?}", bed.shares());
    // The data path begins at zero again though the lanes are the same, and has counted more bytes by now.
    let again = LaneCount { bytes: 1 << 51, busy_bytes: 1000, busy_us: 1000, ..LaneCount::default() };
    bed.counts = vec![again; 3];
    bed.send(10, u64::MAX);
    assert!(bed.carried() >= sum * 90 / 100, "{:?}", bed.shares());
}

#[test]
fn other_lanes_with_known_rates_are_written_at_once() {
    let mut bed = Bed::new(&[10_000, 10_000, 10_000], &[100, 20, 100]);
    bed.send(20, u64::MAX);
    bed.lanes.remove(2);
    let counts = [LaneCount::default(); 2];
    assert!(bed.rates.take(bed.now, 7, &bed.lanes, |_| false, &counts));
    assert!(!bed.rates.of(7, &bed.lanes).is_empty());
}

#[test]
fn a_lane_that_hardly_carried_anything_comes_back() {
    let mut bed = Bed::new(&[1000, 1000], &[1000, 1]);
    bed.send(50, u64::MAX);
    bed.real = vec![1_000_000, 1_000_000];
    bed.send(20, u64::MAX);
    assert!(bed.percent() >= 90, "{:?}", bed.shares());
}

#[test]
fn steady_traffic_without_a_queue_forgets_nothing() {
    let mut bed = Bed::new(&[10_000, 10_000], &[100, 20]);
    bed.send(20, u64::MAX);
    bed.send(5 * 120, 110_000);
    assert!(bed.percent() >= 95, "{:?}", bed.shares());
}

#[test]
fn where_no_lane_is_full_stripes_become_long() {
    // What limits is the processor, at less or at more than what the links tell.
    for most in [700_000, 20_000_000] {
        let mut bed = Bed::new(&[1000; 4], &[10_000; 4]);
        bed.send(2, most);
        assert!(!bed.rates.follow_stripe(bed.now, true, |_| 0), "one round may be chance");
        bed.send(1, most);
        assert!(bed.rates.follow_stripe(bed.now, true, |_| 0) && bed.rates.stripe().long, "{most}");
        // And short again after some time of little traffic.
        bed.send(5, 30_000);
        assert!(!bed.rates.follow_stripe(bed.now, true, |_| 0));
        bed.send(50, 30_000);
        assert!(bed.rates.follow_stripe(bed.now, true, |_| 0) && !bed.rates.stripe().long);
    }
}

#[test]
fn full_lanes_have_short_stripes_at_once_and_for_long() {
    let mut bed = Bed::new(&[1000; 4], &[1000; 4]);
    bed.send(20, u64::MAX);
    assert!(!bed.rates.follow_stripe(bed.now, true, |_| 0));
    bed.send(3, 2_000_000);
    assert!(bed.rates.follow_stripe(bed.now, true, |_| 0) && bed.rates.stripe().long);
    bed.send(1, u64::MAX);
    assert!(bed.rates.follow_stripe(bed.now, true, |_| 0) && !bed.rates.stripe().long);
    bed.send(45, 2_000_000);
    assert!(
        !bed.rates.follow_stripe(bed.now, true, |_| 0),
        "a sender that stops and goes changes nothing each time"
    );
    bed.send(6, 2_000_000);
    assert!(bed.rates.follow_stripe(bed.now, true, |_| 0) && bed.rates.stripe().long);
}

#[test]
fn where_nothing_is_measured_stripes_stay_short() {
    let mut bed = Bed::new(&[1000; 4], &[10_000; 4]);
    bed.send(10, 700_000);
    assert!(!bed.rates.follow_stripe(bed.now, false, |_| 0));
    assert!(bed.rates.follow_stripe(bed.now, true, |_| 0));
    assert!(
        bed.rates.follow_stripe(bed.now, false, |_| 0) && !bed.rates.stripe().long,
        "damping was switched off"
    );
}
