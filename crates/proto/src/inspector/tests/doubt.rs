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
