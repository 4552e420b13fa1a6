//! What happens at the very moment at which a time is over, and what is asked of a lane in each state.

use super::{super::lane::Lane, *};
use crate::limits;

const MOMENT: Duration = Duration::from_nanos(1);

fn id(slot: u8) -> LaneId {
    LaneId { peer: KEY, slot, index: slot }
}

impl Bench {
    fn lane_mut(&mut self, id: LaneId) -> &mut Lane {
        self.inspector.lane_mut(id).expect("a lane")
    }
}

/// Both lanes proven and busy: an interval is 50 ms, and they are lost after three.
fn busy() -> Bench {
    let mut bench = Bench::proven(2);
    let used = |slot| LaneUse { lane: id(slot), usage: Usage::Busy };
    bench.handle(Input::Plan(vec![used(0), used(1)]));
    bench.pass(millis(1000));
    bench
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn nobody_looks_who_is_idle_where_all_are_probed_anyway() {
    let looks = |members| Bench::new(members).inspector.idle_look.is_some();
    assert_eq!([limits::IDLE_LANES as u8, limits::IDLE_LANES as u8 + 1].map(looks), [false, true]);
}

//= docs/arp-plus.md#11.16 type=test
#[test]
fn a_peer_that_answers_has_a_lane_for_each_two_members_and_another_one_those_that_are_heard() {
    let wanted = |bench: Bench| bench.inspector.lanes_wanted(&bench.inspector.peers[&KEY]);
    assert_eq!([Bench::new(3), Bench::proven(3)].map(wanted), [3, 9]);
}

//= docs/arp-plus.md#11.6 type=test
#[test]
fn a_lane_fails_if_another_one_was_proven_since_its_own_next_proof_was_due() {
    let verdict_if_proven_after = |time: u64| {
        let mut bench = busy();
        bench.answers.clear();
        let now = bench.now;
        for (slot, proof) in [(0, now), (1, now + millis(time))] {
            let lane = bench.lane_mut(id(slot));
            (lane.last_proof, lane.judged_from, lane.waiting) = (Some(proof), proof, Some(now + millis(10)));
        }
        bench.pass(millis(151));
        bench.verdict(0, 0)
    };
    assert_eq!([49, 50].map(verdict_if_proven_after), [Verdict::Suspect, Verdict::Failed]);
}

//= docs/arp-plus.md#11.13 type=test
#[test]
fn a_peer_that_was_never_silent_as_a_whole_is_excused_nothing() {
    assert_eq!(Bench::proven(1).inspector.peers[&KEY].excused_until, Time::ZERO);
}

//= docs/arp-plus.md#11.13 type=test
#[test]
fn what_fails_when_the_time_after_a_silence_is_over_is_a_failure() {
    for (more, failures) in [(Duration::ZERO, 1), (MOMENT, 0)] {
        let mut bench = busy();
        bench.answers.retain(|pair| *pair != (0, 0));
        let now = bench.now;
        let lane = bench.lane_mut(id(0));
        (lane.last_proof, lane.judged_from) = (Some(now), now);
        let peer = bench.inspector.peers.get_mut(&KEY).expect("a peer");
        peer.excused_until = now + millis(150) + more;
        bench.pass(millis(151));
        assert_eq!((bench.verdict(0, 0), bench.lane(0, 0).failures), (Verdict::Failed, failures));
    }
}

//= docs/arp-plus.md#6.8 type=test
#[test]
fn a_peer_was_proven_lately_for_a_second() {
    let mut bench = Bench::proven(2);
    let proven = [0, 1].map(|slot| bench.lane(slot, slot).last_proof).into_iter().max().flatten();
    let end = proven.expect("it is proven") + limits::PROVEN_LATELY;
    assert!(!bench.inspector.challenge(end, KEY));
    assert!(bench.inspector.challenge(end.minus(MOMENT), KEY));
}

//= docs/arp-plus.md#11.9 type=test
#[test]
fn what_the_limit_kept_from_being_asked_is_not_held_against_a_lane() {
    let mut bench = busy();
    let later = bench.now + Duration::from_secs(1);
    while bench.inspector.probes.take(later) {}
    let now = bench.now;
    bench.lane_mut(id(0)).next_probe = Some(now);
    bench.inspector.ask(now, id(0));
    let put_off = bench.lane_mut(id(0)).next_probe.expect("it is asked").since(now);
    assert!((millis(25)..=millis(50)).contains(&put_off), "an interval at most: {put_off:?}");
    bench.sent.clear();
    bench.pass(millis(900));
    assert!(bench.sent.is_empty() && bench.count(Counter::LimitProbe) > 0);
    assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Alive; 2]);
}

/// Whether the other lane is asked as well when one is asked again in vain that is in that state. The other one is proven, and was
/// asked so long before the first question to this one.
fn asks_the_other(mut bench: Bench, lanes: [LaneId; 2], state: LaneState, asked_before: Duration) -> bool {
    let now = bench.now + Duration::from_secs(10);
    let since = now.minus(millis(10));
    let lane = bench.lane_mut(lanes[0]);
    (lane.state, lane.waiting, lane.next_probe) = (state, Some(since), Some(now));
    let other = bench.lane_mut(lanes[1]);
    (other.state, other.urgent) = (LaneState::Up, false);
    other.last_proof = Some(since.minus(MOMENT));
    other.last_sent = Some(since.minus(asked_before));
    let sent = bench.lane_mut(lanes[0]).sent;
    bench.inspector.ask(now, lanes[0]);
    assert_eq!(bench.lane_mut(lanes[0]).sent, sent + 1);
    bench.lane_mut(lanes[1]).urgent
}

//= docs/arp-plus.md#11.12 type=test
#[test]
fn other_lanes_are_asked_where_a_proven_one_is_late_and_to_plain_hosts_where_one_is_suspect() {
    use LaneState::{Init, Suspect, Up};
    let towards_peer = |state| asks_the_other(busy(), [id(0), id(1)], state, MOMENT);
    assert_eq!([Up, Suspect, Init].map(towards_peer), [true, false, false]);
    let plain = |slot| LaneId { peer: plain::PLAIN, slot, index: 0 };
    let towards_plain = |state| asks_the_other(plain::bench(), [plain(0), plain(1)], state, MOMENT);
    assert_eq!([Up, Suspect, Init].map(towards_plain), [true, true, false]);
    assert!(
        !asks_the_other(busy(), [id(0), id(1)], Up, Duration::ZERO),
        "it was asked together with this one"
    );
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn a_lane_that_was_given_up_is_tested_again_when_the_peer_is_heard_over_it_after_all() {
    let mut bench = Bench::new(2);
    bench.answers = vec![(0, 0), (1, 1)];
    bench.pass(millis(1000));
    let asked = |bench: &Bench| {
        let over = |(slot, frame): &&(u8, ProbeFrame)| {
            (*slot, frame.dst, frame.probe.kind) == (0, mac(2, 1), ProbeKind::Probe)
        };
        bench.sent.iter().filter(over).count()
    };
    let before = asked(&bench);
    let ask = Probe { kind: ProbeKind::Probe, ..bench.reply(0) };
    bench.hear(0, 1, &ask);
    bench.pass(millis(1000));
    assert_eq!(asked(&bench) - before, usize::from(Timing::default().multiplier));
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn a_lane_that_works_again_is_no_occasion_to_test_others() {
    let mut bench = Bench::proven(2);
    bench.answers.retain(|pair| *pair != (0, 0));
    bench.until(|bench| bench.pass(millis(10)), |bench| bench.verdict(0, 0) == Verdict::Failed);
    bench.sent.clear();
    bench.answers.push((0, 0));
    bench.until(|bench| bench.pass(millis(10)), |bench| bench.verdict(0, 0) == Verdict::Alive);
    let crossed = |(slot, frame): &&(u8, ProbeFrame)| frame.dst != mac(2, *slot);
    assert_eq!(bench.sent.iter().filter(crossed).count(), 0);
}

//= docs/arp-plus.md#11.16 type=test
#[test]
fn answers_give_a_peer_no_further_lanes_once_it_has_answered() {
    let mut bench = busy();
    bench.inspector.lanes = limits::PROBED_LANES_MAX;
    bench.inspector.peers.get_mut(&KEY).expect("a peer").lanes.remove(&(0, 1));
    let proofs = bench.lane(0, 0).proofs;
    bench.pass(millis(500));
    assert!(bench.lane(0, 0).proofs > proofs);
    assert_eq!(bench.count(Counter::LimitLanes), 0, "nor are they tried");
}

//= docs/arp-plus.md#11.9 type=test
#[test]
fn a_peer_is_told_the_longer_interval_of_many_lanes_with_light_traffic_over_these_alone() {
    let mut bench = Bench::proven(2);
    let used = |slot, usage| LaneUse { lane: id(slot), usage };
    bench.handle(Input::Plan(vec![used(0, Usage::Light), used(1, Usage::Busy)]));
    let light = super::super::rate::Pace::Light(millis(50), millis(250)).demand();
    (0..200).for_each(|_| bench.inspector.load.replace(Default::default(), light));
    bench.sent.clear();
    [0, 1].into_iter().for_each(|slot| _ = bench.inspector.send(bench.now, id(slot), ProbeKind::Probe, 0, 0));
    bench.handle(Input::Timeout);
    let told = [0, 1].map(|slot| {
        let sent = bench.sent.iter().find(|(from, _)| *from == slot);
        sent.expect("a PROBE").1.probe.interval_us
    });
    assert!(told[0] > 60_000 && told[1] == 50_000, "{told:?}");
}

#[test]
fn a_member_is_held_down_by_a_lane_that_is_answered_often_enough_until_its_time_is_over() {
    let held = |(state, answered, left)| {
        let mut bench = Bench::new(1);
        let now = bench.now;
        let lane = bench.lane_mut(id(0));
        (lane.state, lane.answered, lane.held_until) = (state, answered, now + left);
        bench.inspector.held(0, now).map(|held| held.left)
    };
    let admit = Timing::default().admit;
    assert_eq!(held((LaneState::Init, admit, MOMENT)), Some(MOMENT));
    for other in [
        (LaneState::Init, admit, Duration::ZERO),
        (LaneState::Init, admit - 1, MOMENT),
        (LaneState::Down, admit, MOMENT),
    ] {
        assert_eq!(held(other), None, "{other:?}");
    }
}
