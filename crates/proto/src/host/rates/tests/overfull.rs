//! Lanes that other traffic fills.

use super::bounds::Rounds;
use super::*;

/// Told to be of 1 Gbit/s.
const TOLD: u32 = 1_000_000;

fn four() -> Rounds {
    Rounds::new(&[(0, 0), (1, 1), (2, 2), (3, 3)])
}

impl Rounds {
    /// A round in which nothing waits, and TCP is sent so many bytes over each lane and loses so many. Whether shares are others.
    fn lose(&mut self, each: &[(u32, u32)]) -> bool {
        for (count, (sent, lost)) in self.counts.iter_mut().zip(each) {
            count.bytes += 1_000_000;
            count.tcp_bytes = count.tcp_bytes.wrapping_add(*sent);
            count.lost_bytes = count.lost_bytes.wrapping_add(*lost);
        }
        self.now = self.now + ROUND;
        self.look()
    }

    /// What traffic is spread by, the first lane as 1000.
    fn parts(&self) -> Vec<u64> {
        let in_use = self.rates.of(7, &self.lanes);
        in_use.iter().map(|rate| u64::from(*rate) * 1000 / u64::from(in_use[0])).collect()
    }
}

/// Of four lanes one loses three tenths, and the cleaner half of them an eighth of that.
const JUST: [(u32, u32); 4] = [(80_000, 3000), (80_000, 3000), (80_000, 15_000), (80_000, 24_000)];

#[test]
fn a_lane_on_which_tcp_loses_far_more_than_on_others_counts_for_half_after_three_rounds() {
    let mut rounds = four();
    rounds.counts[3].lost_bytes = u32::MAX - 5;
    rounds.now = rounds.now + ROUND_MAX;
    assert!(!rounds.look(), "it begins again here");
    assert!(!rounds.lose(&JUST) && !rounds.lose(&JUST) && rounds.lose(&JUST));
    assert_eq!(rounds.parts(), [1000, 1000, 1000, 500]);
    // Rounds in which nothing is lost count with the others, and those without TCP change nothing.
    let lossy = |rounds: &mut Rounds| rounds.lose(&JUST);
    assert!(!lossy(&mut rounds) && !rounds.lose(&[(0, 0); 4]) && !lossy(&mut rounds) && lossy(&mut rounds));
    assert_eq!(rounds.parts(), [1000, 1000, 1000, 250]);
    let mut less = JUST;
    less[3] = (80_000, 23_999);
    assert!((0..30).all(|_| !rounds.lose(&less)));
    let mut others = JUST;
    others[0] = (80_000, 3001);
    assert!((0..30).all(|_| !rounds.lose(&others)), "the others lose, too");
    assert_eq!(rounds.measured(), [None; 4]);
}

#[test]
fn a_lane_that_loses_what_it_was_sent_before_is_overfull() {
    let mut rounds = four();
    let late = [(80_000, 0), (80_000, 0), (80_000, 0), (0, 4000)];
    assert!(!rounds.lose(&late) && !rounds.lose(&late) && rounds.lose(&late));
    // But nothing can be said without others.
    let alone = [(0, 0), (0, 0), (0, 0), (80_000, 80_000)];
    assert!((0..9).all(|_| !rounds.lose(&alone)));
}

#[test]
fn a_lane_that_loses_a_few_segments_is_not_overfull() {
    let mut rounds = four();
    let mut lost = |bytes| rounds.lose(&[(80_000, 0), (80_000, 0), (80_000, 0), (0, bytes)]);
    assert!((0..3).all(|_| !lost(3861)));
    assert!(lost(1), "eight segments");
}

#[test]
fn losses_of_five_seconds_count_together() {
    let clean = [(8000, 0); 4];
    let once = [(80_000, 0), (80_000, 0), (80_000, 0), (80_000, 80_000)];
    let mut rounds = four();
    assert!(!rounds.lose(&once) && !rounds.lose(&once), "a window that was too long, and one more");
    assert!((0..23).all(|_| !rounds.lose(&clean)));
    assert!(!rounds.lose(&once), "the first ones are too long ago");
    assert!((0..23).all(|_| !rounds.lose(&clean)) && !rounds.lose(&once));
    assert!(!rounds.lose(&once) && (0..23).all(|_| !rounds.lose(&clean)) && !rounds.lose(&once));
    // Three in 25 rounds are enough.
    let mut rounds = four();
    assert!(!rounds.lose(&once) && !rounds.lose(&once) && (0..22).all(|_| !rounds.lose(&clean)));
    assert!(rounds.lose(&once));
    // Other lanes have lost nothing.
    rounds.lanes.swap(0, 1);
    rounds.counts.swap(0, 1);
    assert!(!rounds.lose(&once) && !rounds.lose(&once));
    rounds.lanes.swap(0, 1);
    assert!(!rounds.lose(&once) && !rounds.lose(&once));
}

#[test]
fn two_of_four_lanes_are_overfull_and_three_are_not_known_to_be() {
    let mut rounds = four();
    let two = [(80_000, 0), (80_000, 40_000), (80_000, 0), (80_000, 80_000)];
    (0..3).for_each(|_| _ = rounds.lose(&two));
    assert_eq!(rounds.parts(), [1000, 500, 1000, 500]);
    let mut rounds = four();
    let three = [(80_000, 0), (80_000, 40_000), (80_000, 40_000), (80_000, 40_000)];
    assert!((0..9).all(|_| !rounds.lose(&three)));
}

#[test]
fn where_the_weight_is_the_rate_losses_say_nothing() {
    let mut rounds = four();
    rounds.fixed = &[3];
    assert!((0..9).all(|_| !rounds.lose(&JUST)));
    rounds.fixed = &[];
    assert!(rounds.lose(&JUST), "it was known all the time");
}

#[test]
fn what_the_user_says_next_is_believed() {
    for (fixed, weight, left) in [(true, TOLD, 1), (false, TOLD / 5, 1), (false, TOLD, 8)] {
        let mut lane = LaneRate::new(&four().lanes[0]);
        (0..3).for_each(|_| lane.cut());
        lane.follow(weight, fixed);
        assert_eq!(lane.weight(), u64::from(weight / left), "{fixed}, {weight}");
    }
}

#[test]
fn a_weight_is_halved_eight_times_at_most_and_comes_back_by_and_by() {
    let mut rounds = four();
    (0..60).for_each(|_| _ = rounds.lose(&JUST));
    assert_eq!(rounds.parts(), [1000, 1000, 1000, 3]);
    // Minutes of traffic without losses, each 300 rounds.
    let mut minutes = |n| {
        let clean = [(80_000, 0); 4];
        (0..n * 300).for_each(|_| _ = rounds.lose(&clean));
        rounds.parts()
    };
    assert_eq!(minutes(1), [1000, 1000, 1000, 7]);
    assert_eq!(minutes(5), [1000, 1000, 1000, 250]);
    assert_eq!(minutes(2), Vec::<u64>::new(), "by the weights again");
}

#[test]
fn what_is_measured_counts_and_the_weights_when_all_is() {
    let mut rounds = four();
    let one = [(2000, 0), (2000, 0), (2000, 0), (20_000, 200_000)];
    // One lane is known, and what is known of it is halved, and so is its part of what others are taken to carry.
    rounds.take(&one);
    assert_eq!(rounds.measured(), [None, None, None, Some(20_000)]);
    (0..3).for_each(|_| _ = rounds.lose(&JUST));
    assert_eq!(rounds.rates.of(7, &rounds.lanes), [20_000, 20_000, 20_000, 10_000]);
    // A busy round is none in which it loses.
    rounds.lose(&JUST);
    rounds.lose(&JUST);
    rounds.take(&one);
    rounds.take(&one);
    assert!(!rounds.lose(&JUST));
    assert_eq!(rounds.measured()[3], Some(20_000));
    assert_eq!(rounds.parts(), [1000, 1000, 1000, 500], "the others follow");
    // When all are known they are as equal as they were told.
    (0..3).for_each(|_| _ = rounds.take(&[(20_000, 200_000); 4]));
    assert!(rounds.rates.of(7, &rounds.lanes).is_empty());
}

#[test]
fn a_lane_that_is_overfull_is_not_given_more_at_once() {
    let mut lane = LaneRate::new(&four().lanes[0]);
    lane.cut();
    let waits = |lane: &mut LaneRate| {
        lane.last.tcp_bytes = lane.begun.tcp_bytes.wrapping_add(100_000);
        (0..).take_while(|_| !lane.grow(200_000, 0)).count()
    };
    assert_eq!(waits(&mut lane), 9, "eight rounds, and two that show it");
    // It was given that in vain.
    for pause in [9, 17] {
        assert!(lane.grown_from.is_some());
        lane.cut();
        assert_eq!((lane.grown_from, waits(&mut lane)), (None, pause));
    }
    assert_eq!(lane.weight(), u64::from(TOLD) / 8);
}
