//! Plain hosts that fall silent: how soon that is found, and how often they are asked for it.

use super::*;

/// Both lanes proven, and used that way.
fn used(usage: Usage) -> Bench {
    let mut bench = bench();
    pass(&mut bench, millis(1000), &[0, 1]);
    let used = |slot| LaneUse { lane: LaneId { peer: PLAIN, slot, index: 0 }, usage };
    bench.handle(Input::PlanOf(PLAIN, vec![used(0), used(1)]));
    pass(&mut bench, millis(3000), &[0, 1]);
    assert_eq!(verdicts(&bench), [Verdict::Alive; 2]);
    bench
}

/// How long after the first probe that is not answered the lane of slot 0 is given up, and as what, if the host answers
/// over these members alone.
fn given_up(over: &[u8]) -> (u128, Verdict) {
    let mut bench = used(Usage::Busy);
    let seen = bench.asked.len();
    bench.until(|bench| pass(bench, millis(1), over), |bench| verdicts(bench)[0] != Verdict::Alive);
    let first = bench.asked[seen..].iter().find(|(_, slot, _)| *slot == 0).expect("it is asked").0;
    (bench.now.since(first).as_millis(), verdicts(&bench)[0])
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn a_plain_host_that_answers_nowhere_may_be_slow_and_has_more_time() {
    let (alone, all) = (given_up(&[1]), given_up(&[]));
    assert_eq!((alone.1, all.1), (Verdict::Failed, Verdict::Suspect));
    let interval = Timing::default().interval.as_millis();
    assert!(all.0 >= alone.0 + interval, "{alone:?} {all:?}");
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn what_a_plain_host_does_not_answer_is_repeated_after_half_an_interval() {
    let mut bench = used(Usage::Busy);
    let seen = bench.asked.len();
    let times = |bench: &Bench| -> Vec<Time> {
        bench.asked[seen..].iter().filter(|(_, slot, _)| *slot == 0).map(|(at, ..)| *at).collect()
    };
    bench.until(|bench| pass(bench, millis(1), &[1]), |bench| times(bench).len() == 2);
    let [first, second] = times(&bench)[..] else { panic!("two") };
    assert_eq!(second.since(first), Timing::default().interval / 2);
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn where_traffic_stalls_each_proven_lane_is_asked_at_once() {
    let mut bench = used(Usage::Idle);
    let asks = |bench: &mut Bench, input: Option<Input<'_>>| {
        let seen = bench.asked.len();
        input.into_iter().for_each(|input| bench.handle(input));
        bench.pass(millis(1));
        let mut slots: Vec<u8> = bench.asked[seen..].iter().map(|(_, slot, _)| *slot).collect();
        slots.sort_unstable();
        slots
    };
    while !asks(&mut bench, None).is_empty() {
        [0, 1].into_iter().for_each(|slot| hear(&mut bench, slot, &good(slot)));
    }
    assert_eq!(asks(&mut bench, Some(Input::PlainStalled)), [0, 1]);
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn no_port_of_a_plain_host_sends_fifteen_answers_a_second_however_many_lanes_are_tested() {
    let mut bench = Bench::new(8);
    bench.handle(Input::Peers(Vec::new()));
    bench.handle(Input::Plain(vec![PlainReport { mac: HOST, ip: IpAddr::V4(IP) }]));
    pass(&mut bench, millis(3000), &[]);
    pass(&mut bench, millis(3000), &[0]);
    pass(&mut bench, millis(3000), &[]);
    let times: Vec<Time> = bench.asked.iter().map(|(at, ..)| *at).collect();
    let second =
        |from: &Time| times.iter().filter(|at| *at >= from && at.since(*from) < millis(1000)).count();
    let most = times.iter().map(second).max().expect("it is asked");
    assert!((8..15).contains(&most), "{most} in one second");
    assert!(bench.count(Counter::LimitPlainRate) > 0);
}

/// The same where answers came at once, and ports may send what they like; `is_stalled`: traffic stalls.
fn given_up_exactly(over: &[u8], is_stalled: bool) -> (Duration, Verdict) {
    let mut bench = used(Usage::Busy);
    let lane = LaneId { peer: PLAIN, slot: 0, index: 0 };
    bench.inspector.lane_mut(lane).expect("a lane").slowest = Duration::ZERO;
    let seen = bench.asked.len();
    if is_stalled {
        bench.handle(Input::PlainStalled);
    }
    let step = |bench: &mut Bench| {
        bench.inspector.members.values_mut().for_each(|member| member.ration = Default::default());
        let plain = bench.inspector.peers.values_mut().filter_map(|peer| peer.plain.as_mut());
        plain.for_each(|plain| plain.ration = Default::default());
        pass(bench, millis(1), over);
    };
    bench.until(step, |bench| verdicts(bench)[0] != Verdict::Alive);
    let first = bench.asked[seen..].iter().find(|(_, slot, _)| *slot == 0).expect("it is asked").0;
    (bench.lane(0, 0).since.since(first), verdicts(&bench)[0])
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn a_lane_to_a_plain_host_is_given_up_once_it_was_asked_often_enough_and_not_before_its_time() {
    assert_eq!(given_up_exactly(&[1], false), (millis(125), Verdict::Failed));
    assert_eq!(given_up_exactly(&[], false), (millis(175), Verdict::Suspect));
    assert_eq!(given_up_exactly(&[], true), (millis(150), Verdict::Suspect));
}
