//! Deadlines: what is allowed for, and what is sent when.

use super::*;

/// Both lanes 0-0 and 1-1 proven and busy: an interval is 50 ms, and they are lost after three.
fn busy() -> Bench {
    busy_of(OWN)
}

fn busy_of(own: HostId) -> Bench {
    let mut bench = Bench::proven_of(own, 2);
    let used = |slot| LaneUse { lane: LaneId { peer: KEY, slot, index: slot }, usage: Usage::Busy };
    bench.handle(Input::Plan(vec![used(0), used(1)]));
    bench.pass(millis(1000));
    bench
}

/// This host does nothing for so long.
fn sleeps(bench: &mut Bench, duration: Duration) {
    bench.now = bench.now + duration;
    bench.handle(Input::Timeout);
}

//= docs/arp-plus.md#11.5 type=test
#[test]
fn own_lateness_gives_a_lane_one_interval_more_and_only_once() {
    let mut bench = busy();
    sleeps(&mut bench, millis(400));
    assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Alive; 2]);
    assert_eq!(bench.count(Counter::OwnDelay), 2);
    bench.answers.retain(|pair| *pair != (0, 0));
    bench.pass(millis(49));
    assert_eq!(bench.verdict(0, 0), Verdict::Alive);
    bench.pass(millis(2));
    assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Failed, Verdict::Alive]);
    // Late twice, and nothing came between: that is no excuse.
    let mut bench = busy();
    bench.answers.clear();
    sleeps(&mut bench, millis(400));
    sleeps(&mut bench, millis(400));
    assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Suspect; 2]);
    // A little late is not late: less than an interval.
    let mut bench = busy();
    bench.answers.clear();
    sleeps(&mut bench, millis(149));
    assert_eq!((bench.verdict(0, 0), bench.count(Counter::OwnDelay)), (Verdict::Suspect, 0));
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn a_deadline_is_no_occasion_to_ask() {
    let mut bench = busy();
    bench.answers.retain(|pair| *pair != (0, 0));
    let of_lane = |bench: &Bench| {
        bench.sent.iter().filter(|(slot, frame)| (*slot, frame.dst) == (0, mac(2, 0))).count()
    };
    let (mut gaps, mut last) = (Vec::new(), bench.now);
    let next = |bench: &mut Bench| {
        let before = of_lane(bench);
        let at = bench.inspector.poll_timeout().expect("probes");
        bench.pass(at.since(bench.now).max(Duration::from_nanos(1)));
        if of_lane(bench) > before {
            assert_eq!(of_lane(bench), before + 1, "one at a time");
            gaps.push(bench.now.since(last));
            last = bench.now;
        }
    };
    bench.until(next, |bench| bench.verdict(0, 0) != Verdict::Alive);
    // Repeated after a quarter of the interval; the last one tells the peer that the lane is lost.
    let hurried = &gaps[1..gaps.len() - 1];
    assert!(hurried.iter().all(|gap| *gap >= millis(12)), "{gaps:?}");
}

/// A lane that is proven by nothing but what [`pause`] makes the peer say.
fn unanswered(own: HostId) -> Bench {
    let mut bench = busy_of(own);
    // The other lane is sound, so this one is not probed for its sake.
    bench.answers.retain(|pair| *pair != (0, 0));
    bench
}

/// How long after a proof in such a frame the lane is asked again.
fn pause(bench: &mut Bench, kind: ProbeKind) -> Duration {
    let asked = |bench: &Bench| {
        let probes = |(slot, frame): &&(u8, ProbeFrame)| {
            (*slot, frame.dst, frame.probe.kind) == (0, mac(2, 0), ProbeKind::Probe)
        };
        bench.sent.iter().filter(probes).count()
    };
    let before = asked(bench);
    bench.until(|bench| bench.pass(millis(1)), |bench| asked(bench) > before);
    let proof = Probe { kind, ..bench.reply(bench.nonce(0, 0)) };
    bench.hear(0, 0, &proof);
    let (began, before) = (bench.now, asked(bench));
    bench.until(|bench| bench.pass(Duration::from_micros(100)), |bench| asked(bench) > before);
    bench.now.since(began)
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn who_leads_asks_and_the_others_wait_for_his_probes() {
    let (leads, follows) = (OWN, HostId([9; 16]));
    let soon = Duration::from_micros(37_500)..=Duration::from_micros(50_100);
    let late = Duration::from_micros(56_250)..=Duration::from_micros(62_600);
    for (own, kind, expected) in [
        (leads, ProbeKind::Probe, &soon),
        (leads, ProbeKind::Reply, &soon),
        (follows, ProbeKind::Reply, &soon),
        (follows, ProbeKind::Probe, &late),
    ] {
        let pause = pause(&mut unanswered(own), kind);
        assert!(expected.contains(&pause), "{kind:?} at {own:?}: {pause:?}");
    }
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn who_follows_waits_for_random_times() {
    let mut bench = unanswered(HostId([9; 16]));
    let pauses: Vec<Duration> = (0..8).map(|_| pause(&mut bench, ProbeKind::Probe)).collect();
    let spread = pauses.iter().max().expect("eight").saturating_sub(*pauses.iter().min().expect("eight"));
    assert!(spread > millis(1), "{pauses:?}");
}

//= docs/arp-plus.md#11.5 type=test
#[test]
fn a_peer_that_was_forgotten_and_kept_its_lanes_takes_what_is_sent_then() {
    let mut bench = busy();
    let numbers = |bench: &Bench| bench.sent.iter().map(|(_, frame)| frame.probe.number).collect::<Vec<_>>();
    let last = numbers(&bench).into_iter().max().expect("probes");
    bench.sent.clear();
    bench.handle(Input::Peers(Vec::new()));
    bench.handle(Input::Peers(vec![peer(2)]));
    bench.pass(millis(1000));
    let later = numbers(&bench);
    assert!(!later.is_empty() && later.iter().all(|number| *number > last), "{last} and then {later:?}");
}

//= docs/arp-plus.md#11.6 type=test
#[test]
fn suspects_get_the_detection_time_once_another_lane_is_proven() {
    let mut bench = busy();
    bench.answers.clear();
    bench.pass(millis(2000));
    let verdicts = |bench: &Bench| [0, 1].map(|slot| bench.verdict(slot, slot));
    assert_eq!(verdicts(&bench), [Verdict::Suspect; 2]);
    bench.events.clear();
    bench.answers = vec![(0, 0)];
    bench.until(|bench| bench.pass(millis(1)), |bench| bench.verdict(0, 0) == Verdict::Alive);
    let reason = |event: &Event| match event {
        Event::Lane { lane, new, reason, took, .. } => Some((lane.slot, *new, *reason, *took)),
        _ => None,
    };
    let told: Vec<_> = bench.events.iter().filter_map(reason).collect();
    assert_eq!(told, [(0, LaneState::Up, LaneReason::ProvenAgain, Duration::ZERO)]);
    let counts = |bench: &Bench| {
        [Counter::LaneAdmitted, Counter::LaneSuspect, Counter::LaneLost].map(|counter| bench.count(counter))
    };
    assert_eq!(counts(&bench), [2, 2, 0], "proven again is not admitted again");
    bench.pass(millis(140));
    assert_eq!(verdicts(&bench), [Verdict::Alive, Verdict::Suspect]);
    bench.pass(millis(15));
    assert_eq!(verdicts(&bench), [Verdict::Alive, Verdict::Failed]);
    assert_eq!(counts(&bench), [2, 2, 1]);
    // Lanes in no plan are asked at once, too.
    let mut bench = Bench::proven(2);
    bench.answers.clear();
    bench.pass(millis(10_000));
    assert_eq!(verdicts(&bench), [Verdict::Suspect; 2]);
    bench.answers = vec![(0, 0)];
    let step = |bench: &mut Bench| {
        bench.sent.clear();
        bench.pass(millis(1));
    };
    bench.until(step, |bench| bench.verdict(0, 0) == Verdict::Alive);
    bench.pass(millis(1));
    assert!(bench.sent.iter().any(|(slot, frame)| (*slot, frame.dst) == (1, mac(2, 1))));
}

#[test]
fn plans_are_made_anew_when_a_lane_comes_goes_or_is_cut() {
    let mut bench = Bench::new(2);
    bench.answers = vec![(0, 0)];
    bench.pass(millis(2000));
    assert_eq!(bench.verdict(0, 0), Verdict::Alive);
    let of_peer = |bench: &mut Bench, report: &PeerReport| {
        bench.changed.clear();
        bench.handle(Input::Peer(KEY, Some(report.clone())));
        std::mem::take(&mut bench.changed)
    };
    let one = || vec![Changed::Peers(vec![KEY])];
    // The other member of the peer was never proven, so no own member is judged by it.
    let mut report = peer(2);
    report.members[1].up = false;
    assert_eq!(of_peer(&mut bench, &report), one(), "cut");
    report.members[1].up = true;
    assert_eq!(of_peer(&mut bench, &report), one(), "mended");
    // A second lane of a member that is proven already.
    report.members[1].heard = vec![0, 1];
    of_peer(&mut bench, &report);
    bench.changed.clear();
    bench.answers.push((0, 1));
    bench.until(|bench| bench.pass(millis(1)), |bench| bench.verdict(0, 1) == Verdict::Alive);
    assert_eq!(bench.changed, one(), "admitted");
    bench.changed.clear();
    bench.answers.pop();
    bench.until(|bench| bench.pass(millis(1)), |bench| bench.verdict(0, 1) == Verdict::Failed);
    assert!(bench.changed.contains(&one()[0]), "lost");
}

#[test]
fn what_is_heard_decides_again_once_no_lane_is_left() {
    let mut bench = Bench::proven(2);
    let members =
        |carrier| vec![MemberReport { carrier, ..report(0) }, MemberReport { carrier, ..report(1) }];
    bench.handle(Input::Members(members(false)));
    assert_eq!(bench.verdict(0, 0), Verdict::Failed);
    bench.answers.clear();
    bench.handle(Input::Members(members(true)));
    bench.until(|bench| bench.pass(millis(1)), |bench| bench.inspector.member_alive(0) == Verdict::Alive);
    assert_eq!(bench.verdict(0, 0), Verdict::Unknown);
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn a_lane_that_data_begins_to_take_has_two_intervals_to_answer() {
    let mut bench = Bench::proven(2);
    bench.handle(Input::Timing(Timing { multiplier: 5, ..Timing::default() }));
    bench.pass(millis(2000));
    bench.answers.retain(|pair| *pair != (0, 0));
    bench.pass(millis(900));
    let used = |slot| LaneUse { lane: LaneId { peer: KEY, slot, index: slot }, usage: Usage::Busy };
    bench.handle(Input::Plan(vec![used(0), used(1)]));
    bench.pass(millis(99));
    assert_eq!(bench.verdict(0, 0), Verdict::Alive);
    bench.pass(millis(3));
    assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Failed, Verdict::Alive]);
}

/// The lane 0-0 is lost, and these nonces left over it before: the earliest since its last proof, and the last.
fn lost() -> (Bench, [u64; 2]) {
    let mut bench = busy();
    bench.answers.retain(|pair| *pair != (0, 0));
    bench.sent.clear();
    bench.until(|bench| bench.pass(millis(1)), |bench| bench.verdict(0, 0) == Verdict::Failed);
    let mut nonces = bench.sent.iter().filter(|(slot, frame)| (*slot, frame.dst) == (0, mac(2, 0)));
    let nonces = [nonces.next(), nonces.next_back()].map(|sent| sent.expect("probes").1.probe.nonce);
    (bench, nonces)
}

//= docs/arp-plus.md#11.20 type=test
#[test]
fn late_answer_brings_a_lane_back_at_once_and_its_queue_is_remembered() {
    let (mut bench, [first, _]) = lost();
    bench.pass(millis(20));
    let late = bench.reply(first);
    bench.hear(0, 0, &late);
    assert_eq!((bench.verdict(0, 0), bench.lane(0, 0).reason), (Verdict::Alive, LaneReason::Slow));
    let took = bench.lane(0, 0).rtt.expect("an answer");
    assert!((millis(100)..millis(170)).contains(&took), "{took:?}");
    assert_eq!(bench.lane(0, 0).detection, Some(millis(150) + took));
    // It was no failure: the next one is the first, which holds nothing down.
    bench.until(|bench| bench.pass(millis(1)), |bench| bench.verdict(0, 0) == Verdict::Failed);
    bench.answers.push((0, 0));
    bench.pass(millis(900));
    assert_eq!(bench.verdict(0, 0), Verdict::Alive);
}

//= docs/arp-plus.md#11.20 type=test
#[test]
fn only_an_answer_that_was_on_its_way_for_long_says_that_a_lane_is_slow() {
    // A PROBE with an old nonce may have left just now.
    let (mut bench, [first, _]) = lost();
    let asked = Probe { kind: ProbeKind::Probe, ..bench.reply(first) };
    bench.hear(0, 0, &asked);
    assert_ne!(bench.lane(0, 0).reason, LaneReason::Slow);
    // So may what was answered soon: it was sent again and again, and one has come through.
    let (mut bench, [_, last]) = lost();
    let soon = bench.reply(last);
    bench.hear(0, 0, &soon);
    assert_ne!(bench.lane(0, 0).reason, LaneReason::Slow);
    // Nor does a late one once the lane was proven since: it is tested as any other.
    let (mut bench, [first, last]) = lost();
    let proofs = bench.lane(0, 0).proofs;
    let asked = Probe { kind: ProbeKind::Probe, ..bench.reply(first) };
    bench.hear(0, 0, &asked);
    bench.pass(millis(60));
    let late = bench.reply(last);
    bench.hear(0, 0, &late);
    let lane = bench.lane(0, 0);
    assert_eq!((lane.state, lane.reason, lane.proofs), (LaneState::Init, LaneReason::Answered, proofs + 2));
    // And nothing is proven by what is older than any queue.
    let (mut bench, [first, _]) = lost();
    let proofs = bench.lane(0, 0).proofs;
    bench.pass(millis(900));
    let stale = bench.reply(first);
    bench.hear(0, 0, &stale);
    assert_eq!(bench.lane(0, 0).proofs, proofs);
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn a_lane_that_data_begins_to_take_is_asked_within_a_quarter_of_an_interval() {
    let mut bench = busy();
    let used = |slot, usage| LaneUse { lane: LaneId { peer: KEY, slot, index: slot }, usage };
    for _ in 0..8 {
        bench.handle(Input::Plan(Vec::new()));
        bench.pass(millis(3000));
        bench.sent.clear();
        bench.handle(Input::Plan(vec![used(0, Usage::Busy), used(1, Usage::Busy)]));
        bench.pass(Duration::from_micros(12_500));
        for slot in 0..2 {
            assert!(bench.sent.iter().any(|(from, frame)| (*from, frame.dst) == (slot, mac(2, slot))));
        }
    }
}

#[test]
fn what_is_heard_decides_again_once_the_member_of_the_last_proven_lane_is_gone() {
    let mut bench = busy();
    bench.answers.retain(|pair| *pair != (0, 0));
    bench.until(|bench| bench.pass(millis(1)), |bench| bench.verdict(0, 0) == Verdict::Failed);
    bench.handle(Input::Members(vec![report(0)]));
    assert_eq!(bench.verdict(0, 0), Verdict::Unknown);
}

//= docs/arp-plus.md#11.20 type=test
#[test]
fn an_answer_is_late_if_it_took_more_than_an_interval_and_was_asked_for_before_the_lane_was_given_up() {
    let reason = |bench: &Bench| bench.lane(0, 0).reason;
    // The last one left when it was given up.
    let (mut bench, [_, last]) = lost();
    bench.pass(millis(60));
    let late = bench.reply(last);
    bench.hear(0, 0, &late);
    assert_eq!(reason(&bench), LaneReason::Answered);
    for (more, expected) in [(0, LaneReason::Answered), (1, LaneReason::Slow)] {
        let (mut bench, _) = lost();
        let given_up = bench.lane(0, 0).since;
        let lane = LaneId { peer: KEY, slot: 0, index: 0 };
        let nonces = &bench.inspector.lane_mut(lane).expect("a lane").nonces;
        let (nonce, sent) = *nonces.iter().rfind(|(_, sent)| *sent < given_up).expect("it was asked");
        let at = sent + Timing::default().interval + Duration::from_nanos(more);
        bench.pass(at.since(bench.now));
        let answer = bench.reply(nonce);
        bench.hear(0, 0, &answer);
        assert_eq!(reason(&bench), expected);
    }
}
