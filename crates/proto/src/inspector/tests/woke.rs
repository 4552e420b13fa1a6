//! What is no failure of a link: what this host does to it, and what either end has slept through.

use super::*;
use crate::limits::RESET_SETTLES;

fn busy() -> Bench {
    let mut bench = Bench::proven(2);
    let used = |slot| LaneUse { lane: LaneId { peer: KEY, slot, index: slot }, usage: Usage::Busy };
    bench.handle(Input::Plan(vec![used(0), used(1)]));
    bench.pass(millis(1000));
    bench
}

/// The carrier of member 0 goes, comes back after 300 ms, and has 700 ms to last.
fn blink(bench: &mut Bench) {
    bench.handle(Input::Members(vec![MemberReport { carrier: false, ..report(0) }, report(1)]));
    bench.pass(millis(300));
    bench.handle(Input::Members(vec![report(0), report(1)]));
    bench.pass(millis(700));
}

fn failures(bench: &Bench) -> u32 {
    bench.inspector.snapshot(bench.now).members[0].failures
}

//= docs/arp-plus.md#11.13 type=test
#[test]
fn what_fails_after_this_host_reset_it_is_no_failure_of_the_link() {
    let mut bench = busy();
    for _ in 0..10 {
        bench.handle(Input::Reset(0));
        blink(&mut bench);
        assert_eq!((failures(&bench), bench.verdict(0, 0)), (0, Verdict::Alive));
    }
    bench.pass(RESET_SETTLES);
    blink(&mut bench);
    blink(&mut bench);
    assert_eq!(failures(&bench), 2, "what the link does by itself counts");
    assert_eq!(bench.inspector.member_alive(0), Verdict::Failed, "and it is held down");
    let held = bench.inspector.held(0, bench.now).expect("it is told");
    assert_eq!((held.left, held.failures), (millis(300), 2), "a second, 700 ms ago");
    assert_eq!(bench.inspector.held(1, bench.now), None);
    // A link that has flapped before is not held down for that when it comes back from a reset.
    bench.pass(millis(2000));
    bench.handle(Input::Reset(0));
    blink(&mut bench);
    assert_eq!((failures(&bench), bench.inspector.member_alive(0)), (2, Verdict::Alive));
}

//= docs/arp-plus.md#11.13 type=test
#[test]
fn lanes_that_fail_after_a_reset_are_not_held_down() {
    let mut bench = busy();
    let back = |bench: &mut Bench| {
        bench.answers.retain(|pair| *pair != (0, 0));
        bench.until(|bench| bench.pass(millis(10)), |bench| bench.verdict(0, 0) == Verdict::Failed);
        let (from, pair) = (bench.now, (0, 0));
        bench.answers.push(pair);
        bench.until(|bench| bench.pass(millis(10)), |bench| bench.verdict(0, 0) == Verdict::Alive);
        bench.now.since(from)
    };
    for _ in 0..5 {
        bench.handle(Input::Reset(0));
        assert!(back(&mut bench) < millis(600));
    }
    assert_eq!(bench.lane(0, 0).failures, 0);
    bench.pass(RESET_SETTLES);
    assert!(back(&mut bench) < millis(600), "the first time is no flapping");
    assert!(back(&mut bench) > millis(900), "the second time is");
}

//= docs/arp-plus.md#11.13 type=test
#[test]
fn a_peer_that_was_silent_as_a_whole_has_no_lane_held_down() {
    let mut bench = busy();
    for _ in 0..5 {
        bench.answers.clear();
        bench.pass(millis(1000));
        assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Suspect; 2]);
        // Its links come back one after the other.
        bench.answers.push((0, 0));
        bench.pass(millis(800));
        assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Alive, Verdict::Failed]);
        bench.answers.push((1, 1));
        bench.pass(millis(600));
        assert_eq!(bench.verdict(1, 1), Verdict::Alive);
        bench.pass(millis(1000));
    }
    assert_eq!(bench.lane(1, 1).failures, 0);
}

//= docs/arp-plus.md#11.14 type=test
#[test]
fn who_has_slept_probes_at_once_and_holds_nothing_from_before_against_a_lane() {
    let mut bench = busy();
    bench.answers.retain(|pair| *pair != (0, 0));
    for _ in 0..4 {
        bench.until(|bench| bench.pass(millis(10)), |bench| bench.verdict(0, 0) == Verdict::Failed);
        bench.answers.push((0, 0));
        bench.until(|bench| bench.pass(millis(10)), |bench| bench.verdict(0, 0) == Verdict::Alive);
        bench.answers.retain(|pair| *pair != (0, 0));
    }
    bench.until(|bench| bench.pass(millis(10)), |bench| bench.verdict(0, 0) == Verdict::Failed);
    assert!(bench.lane(0, 0).failures > 3 && bench.lane(0, 0).held_until > bench.now + millis(2000));
    assert_eq!(bench.inspector.held(0, bench.now), None, "it is not answered: that is why");
    bench.answers.push((0, 0));
    bench.pass(millis(1000));
    let (held, lane) = (bench.inspector.held(0, bench.now).expect("it is told"), bench.lane(0, 0));
    assert_eq!((held.left, held.failures), (bench.now.until(lane.held_until), lane.failures));
    bench.answers.retain(|pair| *pair != (0, 0));
    bench.pass(millis(300));
    let nonce = bench.nonce(1, 1);
    let (sent, proofs) = (bench.sent.len(), bench.lane(1, 1).proofs);
    bench.handle(Input::Woke);
    // What was sent before the sleep proves nothing after it.
    let reply = bench.reply(nonce);
    bench.hear(1, 1, &reply);
    assert_eq!(bench.lane(1, 1).proofs, proofs);
    bench.handle(Input::Timeout);
    for slot in 0..2 {
        let asked = |(from, frame): &(u8, ProbeFrame)| (*from, frame.dst) == (slot, mac(2, slot));
        assert!(bench.sent[sent..].iter().any(asked), "member {slot} asks at once");
    }
    assert_eq!(bench.lane(0, 0).failures, 0);
    bench.answers.push((0, 0));
    bench.pass(millis(600));
    assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Alive; 2]);
    // The detection time runs from the sleep's end.
    bench.answers.clear();
    bench.pass(millis(80));
    bench.handle(Input::Woke);
    bench.pass(millis(140));
    assert_eq!(bench.verdict(1, 1), Verdict::Alive);
    bench.pass(millis(20));
    assert_eq!(bench.verdict(1, 1), Verdict::Suspect);
}

//= docs/arp-plus.md#11.14 type=test
#[test]
fn a_member_that_is_held_down_waits_no_longer_than_a_new_one_after_a_sleep() {
    let until = |bench: &Bench| bench.inspector.snapshot(bench.now).members[0].until;
    let up_delay = Timing::default().up_delay;
    let mut bench = busy();
    blink(&mut bench);
    assert_eq!(bench.inspector.held(0, bench.now), None, "one failure holds nothing down");
    (0..3).for_each(|_| blink(&mut bench));
    assert!(until(&bench).expect("it is held down") > bench.now + up_delay);
    bench.handle(Input::Woke);
    assert_eq!(until(&bench), Some(bench.now + up_delay));
    // One that has waited already does not begin again.
    bench.pass(millis(60));
    let before = until(&bench);
    bench.handle(Input::Woke);
    assert_eq!(until(&bench), before);
    bench.pass(millis(40));
    assert_eq!((until(&bench), bench.inspector.member_alive(0)), (None, Verdict::Alive));
    bench.handle(Input::Woke);
    assert_eq!(until(&bench), None, "who is up waits for nothing");
    // A first failure is told by nobody as flapping, however long its carrier waits.
    let mut bench = busy();
    bench.handle(Input::Members(vec![MemberReport { carrier: false, ..report(0) }, report(1)]));
    bench.pass(millis(300));
    bench.handle(Input::Members(vec![report(0), report(1)]));
    assert!(until(&bench).is_some() && failures(&bench) == 1);
    assert_eq!(bench.inspector.held(0, bench.now), None);
}

//= docs/arp-plus.md#11.14 type=test
#[test]
fn after_a_sleep_lost_lanes_are_tested_where_the_peer_was_ever_proven_or_is_heard() {
    let mut bench = busy();
    // 0-0 was proven and is not heard, 0-1 is heard and was never proven, 1-0 is neither.
    let mut heard = peer(2);
    heard.members[0].heard.clear();
    heard.members[1].heard = vec![0, 1];
    bench.handle(Input::Peers(vec![heard]));
    bench.answers.retain(|pair| *pair != (0, 0));
    bench.pass(millis(200_000));
    assert_eq!(bench.verdict(0, 0), Verdict::Failed);
    bench.sent.clear();
    bench.handle(Input::Woke);
    bench.pass(millis(400));
    let tries = |slot, index| {
        bench.sent.iter().filter(|(from, frame)| (*from, frame.dst) == (slot, mac(2, index))).count()
    };
    assert!(tries(0, 0) >= 3 && tries(0, 1) >= 3, "{} {}", tries(0, 0), tries(0, 1));
    assert_eq!(tries(1, 0), 0);
}
