//! What can be asked of the inspector, and how it is said.

use super::*;

#[test]
fn it_is_told_since_when_no_way_to_a_peer_is_proven() {
    let mut bench = Bench::new(2);
    let since = |bench: &Bench| bench.inspector.unproven_since(&KEY);
    let met = bench.now;
    assert_eq!(since(&bench), Some(met));
    assert_eq!(bench.inspector.unproven_since(&PeerKey::Host(OWN)), None, "nobody that is known");
    bench.answers = vec![(0, 0), (1, 1)];
    bench.pass(millis(1000));
    assert_eq!(since(&bench), None);
    bench.answers.clear();
    bench.until(|bench| bench.pass(millis(10)), |bench| bench.verdict(1, 1) == Verdict::Suspect);
    bench.until(|bench| bench.pass(millis(10)), |bench| bench.verdict(0, 0) == Verdict::Suspect);
    let last = [0, 1].map(|slot| bench.lane(slot, slot).since).into_iter().max();
    assert_eq!(since(&bench), last, "they are kept, since nothing is better");
    assert!(last > Some(met));
    let down = |slot| MemberReport { carrier: false, ..report(slot) };
    bench.handle(Input::Members(vec![down(0), down(1)]));
    assert_eq!(since(&bench), None, "none could be");
}

#[test]
fn a_lane_is_named_by_its_peer_and_its_ends() {
    let lane = LaneId { peer: PeerKey::Address(IpAddr::from([198, 18, 0, 9])), slot: 3, index: 1 };
    assert_eq!(lane.to_string(), "198.18.0.9 3-1");
}

#[test]
fn all_counters_are_listed() {
    let bench = Bench::proven(2);
    let listed: Vec<_> = bench.inspector.counters().iter().collect();
    assert!(listed.contains(&(Counter::LaneAdmitted, 2)), "{listed:?}");
}

//= docs/arp-plus.md#11.16 type=test
#[test]
fn who_answers_has_all_lanes_from_his_first_answer_on() {
    let mut bench = Bench::new(2);
    let lanes = |bench: &Bench| bench.inspector.snapshot(bench.now).lanes.len();
    assert_eq!(lanes(&bench), 2, "those by which it was heard");
    bench.until(|bench| bench.pass(millis(1)), |bench| bench.sent.iter().any(|(slot, _)| *slot == 0));
    assert_eq!(lanes(&bench), 2);
    let reply = bench.reply(bench.nonce(0, 0));
    bench.hear(0, 0, &reply);
    assert_eq!(lanes(&bench), 4);
}

#[test]
fn it_is_told_how_long_a_member_took_to_come_up() {
    let mut bench = Bench::proven(2);
    bench.handle(Input::Members(vec![MemberReport { carrier: false, ..report(0) }, report(1)]));
    bench.pass(millis(1000));
    bench.events.clear();
    bench.handle(Input::Members(vec![report(0), report(1)]));
    bench.pass(millis(1000));
    bench.handle(Input::Members(vec![MemberReport { carrier: false, ..report(0) }, report(1)]));
    let told = bench.events.iter().filter_map(|event| match event {
        Event::Member { new: Some(new @ (MemberState::Up | MemberState::Down)), took, .. } => {
            Some((*new, *took > Duration::ZERO))
        }
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(MemberState::Up, true), (MemberState::Down, false)]);
}
