//! A lost lane casts doubt on those that share a member with it.

use super::*;

/// All four lanes proven; 0-0 and 1-1 carry data, the others nothing.
fn busy() -> Bench {
    let mut bench = Bench::new(2);
    bench.answers = vec![(0, 0), (0, 1), (1, 0), (1, 1)];
    bench.pass(millis(1000));
    let used = |slot| LaneUse { lane: LaneId { peer: KEY, slot, index: slot }, usage: Usage::Busy };
    bench.handle(Input::Plan(vec![used(0), used(1)]));
    bench.pass(millis(1900));
    bench
}

/// Lets time pass until the lane 1-1 is lost.
fn until_lost(bench: &mut Bench) {
    let start = bench.now;
    while bench.verdict(1, 1) == Verdict::Alive {
        assert!(bench.now.since(start) < millis(200), "not lost");
        bench.pass(Duration::from_micros(100));
    }
}

//= docs/arp-plus.md#11.12 type=test
#[test]
fn no_other_lane_of_a_dead_member_is_used_in_its_stead() {
    let mut bench = busy();
    bench.answers.retain(|(slot, _)| *slot != 1);
    until_lost(&mut bench);
    assert_eq!(bench.verdict(1, 0), Verdict::Failed, "the same member, by a lane that nobody looked at");
    assert_eq!((bench.verdict(0, 0), bench.inspector.member_sound(1)), (Verdict::Alive, Verdict::Failed));
    bench.pass(millis(5));
    assert_eq!(bench.verdict(0, 1), Verdict::Alive, "the peer's member has proven itself");
    bench.pass(millis(300));
    assert_eq!(bench.lane(1, 0).state, LaneState::Down, "found soon, though it carries nothing");
}

//= docs/arp-plus.md#11.12 type=test
#[test]
fn lanes_of_the_peers_dead_member_wait_and_ours_come_back() {
    let mut bench = busy();
    bench.answers.retain(|(_, index)| *index != 1);
    until_lost(&mut bench);
    assert_eq!(bench.verdict(0, 1), Verdict::Failed);
    bench.pass(millis(5));
    assert_eq!((bench.verdict(1, 0), bench.inspector.member_sound(1)), (Verdict::Alive, Verdict::Alive));
}

#[test]
fn a_member_that_was_proven_since_is_not_doubted() {
    let mut bench = busy();
    let used = |slot, index| LaneUse { lane: LaneId { peer: KEY, slot, index }, usage: Usage::Busy };
    bench.handle(Input::Plan(vec![used(0, 0), used(1, 1), used(1, 0), used(0, 1)]));
    bench.pass(millis(500));
    bench.answers.retain(|pair| *pair != (1, 1));
    until_lost(&mut bench);
    assert_eq!((bench.verdict(1, 0), bench.verdict(0, 1)), (Verdict::Alive, Verdict::Alive));
}

//= docs/arp-plus.md#11.12 type=test
#[test]
fn whether_a_peer_lives_is_asked_over_lanes_that_share_no_member_with_the_late_one() {
    let mut bench = Bench::new(3);
    bench.answers = (0..9).map(|pair| (pair / 3, pair % 3)).collect();
    bench.pass(millis(1000));
    let lane = LaneId { peer: KEY, slot: 0, index: 0 };
    bench.handle(Input::Plan(vec![LaneUse { lane, usage: Usage::Busy }]));
    bench.pass(millis(1900));
    bench.answers.retain(|pair| *pair != (0, 0));
    let over = |bench: &Bench, late: bool| -> Vec<(u8, u8)> {
        let pairs = bench.sent.iter().map(|(slot, frame)| (*slot, frame.dst.0[5]));
        pairs.filter(|pair| (*pair == (0, 0)) == late).collect()
    };
    // The first one that is not answered may be late; with the second one others are asked.
    bench.sent.clear();
    bench.until(|bench| bench.pass(Duration::from_micros(100)), |bench| over(bench, true).len() == 1);
    bench.sent.clear();
    bench.until(|bench| bench.pass(Duration::from_micros(100)), |bench| over(bench, true).len() == 1);
    let mut others = over(&bench, false);
    others.sort_unstable();
    assert_eq!(others, [(1, 1), (1, 2), (2, 1), (2, 2)]);
}

//= docs/arp-plus.md#11.11 type=test
#[test]
fn a_member_with_a_proven_lane_has_not_failed_whichever_other_lane_of_it_has() {
    for lost in [(0, 0), (0, 1)] {
        let mut bench = busy();
        bench.answers.retain(|pair| *pair != lost);
        bench.until(
            |bench| bench.pass(millis(10)),
            |bench| bench.lane(lost.0, lost.1).state == LaneState::Down,
        );
        bench.pass(millis(500));
        assert_eq!(bench.inspector.member_sound(0), Verdict::Alive, "{lost:?}");
    }
}
