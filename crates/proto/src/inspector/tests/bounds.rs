//! Limits, settings and what is reported.

use super::*;
use crate::limits;

//= docs/arp-plus.md#11.16 type=test
#[test]
fn lanes_beyond_the_limit_are_not_probed_and_counted() {
    let mut inspector = Inspector::new(Config::new(OWN, 1), 7);
    let members: Vec<MemberReport> = (0..20).map(report).collect();
    inspector.handle(Time::ZERO, Input::Members(members));
    assert_eq!(inspector.counters().get(Counter::LimitMembers), 4);
    let many = (0..60u8).map(|host| {
        let key = PeerKey::Host(HostId([host + 2; 16]));
        let member =
            |index| PeerMemberReport { index, mac: mac(host + 2, index), up: true, heard: (0..16).collect() };
        PeerReport {
            key,
            epoch: Some(1),
            probes: true,
            long_probes: true,
            members: (0..16).map(member).collect(),
        }
    });
    let many: Vec<PeerReport> = many.collect();
    let used = |peer: &PeerReport| LaneUse {
        lane: LaneId { peer: peer.key, slot: 0, index: 0 },
        usage: Usage::Light,
    };
    inspector.handle(Time::ZERO, Input::Plan(many.iter().map(used).collect()));
    inspector.handle(Time::ZERO, Input::Peers(many.clone()));
    assert_eq!(inspector.snapshot(Time::ZERO).lanes.len(), limits::PROBED_LANES_MAX);
    assert_eq!(inspector.counters().get(Counter::LimitLanes), 60 * 256 - limits::PROBED_LANES_MAX as u64);
    assert_eq!(inspector.lane_alive(&many[59].key, 0, 0), Verdict::Unknown);
    // So do those that were tested and never answered: they may be made up.
    let end = Time::from_millis(20_000);
    while let Some(at) = inspector.poll_timeout().filter(|at| *at <= end) {
        inspector.handle(at, Input::Timeout);
        while inspector.poll_action().is_some() {}
    }
    let changed = PeerReport { epoch: Some(2), ..many[59].clone() };
    inspector.handle(end, Input::Peer(changed.key, Some(changed)));
    let of_last = inspector.snapshot(end).lanes.iter().filter(|lane| lane.lane.peer == many[59].key).count();
    assert_eq!(of_last, 256);
    // Those that leave make room, and nothing of them stays.
    inspector.handle(Time::ZERO, Input::Peers(many[59..].to_vec()));
    let lanes = inspector.snapshot(Time::ZERO).lanes;
    assert!(lanes.iter().all(|lane| lane.lane.peer == many[59].key));
    inspector.handle(Time::ZERO, Input::Peers(Vec::new()));
    let snapshot = inspector.snapshot(Time::ZERO);
    assert_eq!((snapshot.lanes.len(), snapshot.probes_wanted), (0, 0));
    assert_eq!(inspector.poll_timeout(), None);
}

#[test]
fn actions_that_nobody_polls_are_bounded() {
    let mut inspector = Inspector::new(Config::new(OWN, 1), 7);
    for flip in 0..10_000u64 {
        let carrier = flip % 2 == 0;
        inspector.handle(Time(flip), Input::Members(vec![MemberReport { carrier, ..report(0) }]));
    }
    assert!(inspector.counters().get(Counter::LimitActions) > 0);
    let actions = std::iter::from_fn(|| inspector.poll_action()).count();
    assert_eq!(actions, limits::ACTIONS_MAX + 1, "and one for the verdicts");
}

#[test]
fn members_are_reported_with_old_new_and_reason() {
    let mut bench = Bench::proven(2);
    bench.events.clear();
    let slow = MemberReport { speed_mbit: Some(100), full_duplex: Some(false), ..report(1) };
    bench.changed.clear();
    bench.handle(Input::Members(vec![report(0), slow]));
    bench.handle(Input::Members(vec![report(0), slow]));
    let expected = [Event::Speed { slot: 1, old: Some(1000), new: Some(100) }, Event::HalfDuplex { slot: 1 }];
    assert_eq!(bench.events, expected, "told once");
    assert_eq!(bench.changed, [Changed::All], "weights follow from speed");
    bench.events.clear();
    bench.handle(Input::Members(vec![report(0)]));
    let left = Event::Member {
        slot: 1,
        old: Some(MemberState::Up),
        new: None,
        reason: MemberReason::Left,
        took: Duration::ZERO,
    };
    assert!(bench.events.contains(&left));
    assert_eq!(bench.inspector.snapshot(bench.now).lanes.len(), 2);
    bench.events.clear();
    bench.handle(Input::Members(vec![MemberReport { admin_up: false, ..report(0) }]));
    bench.handle(Input::Members(vec![report(0)]));
    let reasons: Vec<MemberReason> = bench
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Member { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [MemberReason::SetDown, MemberReason::CarrierBack, MemberReason::OnlyOne]);
}

#[test]
fn lanes_are_reported_with_how_long_it_took() {
    let mut bench = Bench::new(2);
    bench.answers = vec![(0, 0), (1, 1)];
    bench.pass(millis(1000));
    let lane = |event: &Event| match event {
        Event::Lane { lane, old, new, reason, took } => Some((lane.slot, *old, *new, *reason, *took)),
        _ => None,
    };
    let told: Vec<_> = bench.events.iter().filter_map(lane).collect();
    assert_eq!(told.len(), 2);
    for (_, old, new, reason, took) in told {
        assert_eq!((old, new, reason), (LaneState::Init, LaneState::Up, LaneReason::Admitted));
        assert!(
            (millis(70)..=millis(100)).contains(&took),
            "two more answers, 3/4 to 4/4 of 50 ms each: {took:?}"
        );
    }
    bench.events.clear();
    bench.answers = vec![(1, 1)];
    bench.pass(millis(5000));
    let told: Vec<_> = bench.events.iter().filter_map(lane).collect();
    let [(0, LaneState::Up, LaneState::Down, LaneReason::NoAnswer, took)] = told[..] else {
        panic!("one event: {told:?}")
    };
    assert_eq!(took, millis(3000), "three intervals of a lane in no plan");
}

#[test]
fn settings_take_effect_at_once() {
    let mut bench = Bench::proven(2);
    let busy =
        [0, 1].map(|slot| LaneUse { lane: LaneId { peer: KEY, slot, index: slot }, usage: Usage::Busy });
    bench.handle(Input::Plan(busy.to_vec()));
    let told = |bench: &Bench| (bench.lane(0, 0).interval, bench.lane(0, 0).detection);
    assert_eq!(told(&bench), (Some(millis(50)), Some(millis(150))));
    let timing = Timing { interval: millis(10), multiplier: 5, ..Timing::default() };
    bench.handle(Input::Timing(timing));
    assert_eq!(told(&bench).1, Some(millis(250)), "the peer asked for no less than 50 ms");
    bench.handle(Input::Timing(Timing { interval: millis(1), ..timing }));
    assert_eq!(bench.inspector.snapshot(bench.now).timing.interval, limits::PROBE_INTERVAL_MIN);
    bench.handle(Input::Timing(Timing { interval: millis(200), multiplier: 2, ..timing }));
    assert_eq!(told(&bench), (Some(millis(200)), Some(millis(400))));
    bench.pass(millis(5000));
    assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Alive; 2]);
}

#[test]
fn own_address_goes_into_probes() {
    let mut bench = Bench::new(1);
    let address = IpAddr::from([198, 18, 0, 1]);
    bench.handle(Input::Address(Some(address)));
    bench.pass(millis(100));
    let (_, frame) = bench.sent.last().expect("a probe");
    assert_eq!((frame.probe.address, frame.probe.host), (Some(address), OWN));
    assert_eq!((frame.probe.interval_us, frame.probe.multiplier), (50_000, 3));
}

#[test]
fn one_peer_told_alone_is_the_same_as_all_told_together() {
    let peers: Vec<PeerReport> = (2..40u8)
        .map(|host| {
            let key = PeerKey::Host(HostId([host; 16]));
            let member =
                |index| PeerMemberReport { index, mac: mac(host, index), up: true, heard: vec![index] };
            PeerReport {
                key,
                epoch: Some(1),
                probes: true,
                long_probes: true,
                members: (0..2).map(member).collect(),
            }
        })
        .collect();
    let lane = |key, n| LaneUse {
        lane: LaneId { peer: key, slot: n, index: n },
        usage: if n == 0 { Usage::Busy } else { Usage::Idle },
    };
    let used = |report: &PeerReport| vec![lane(report.key, 0), lane(report.key, 1)];
    let start = || {
        let mut inspector = Inspector::new(Config::new(OWN, 1), 7);
        inspector.handle(Time::ZERO, Input::Members((0..2).map(report).collect()));
        inspector
    };
    let (mut all, mut each) = (start(), start());
    all.handle(Time::ZERO, Input::Peers(peers.clone()));
    all.handle(Time::ZERO, Input::Plan(peers.iter().flat_map(used).collect()));
    for peer in &peers {
        each.handle(Time::ZERO, Input::Peer(peer.key, Some(peer.clone())));
    }
    for peer in &peers {
        each.handle(Time::ZERO, Input::PlanOf(peer.key, used(peer)));
    }
    assert_eq!(all.snapshot(Time::ZERO), each.snapshot(Time::ZERO));
    // One goes, and takes nothing of others with it.
    all.handle(Time::ZERO, Input::Peers(peers[1..].to_vec()));
    all.handle(Time::ZERO, Input::Plan(peers[1..].iter().flat_map(used).collect()));
    each.handle(Time::ZERO, Input::Peer(peers[0].key, None));
    each.handle(Time::ZERO, Input::PlanOf(peers[0].key, Vec::new()));
    assert_eq!(all.snapshot(Time::ZERO), each.snapshot(Time::ZERO));
    // What was heard of each.
    assert_eq!(each.snapshot(Time::ZERO).lanes.len(), 37 * 2);
}

#[test]
fn a_member_that_goes_down_is_counted_and_one_that_never_was_up_is_not() {
    let mut bench = Bench::new(1);
    let down = |slot| MemberReport { carrier: false, ..report(slot) };
    bench.handle(Input::Members(vec![report(0), down(1)]));
    assert_eq!(bench.count(Counter::MemberDown), 0);
    bench.handle(Input::Members(vec![down(0), down(1)]));
    assert_eq!(bench.count(Counter::MemberDown), 1);
    bench.handle(Input::Members(vec![report(0), report(1)]));
    bench.pass(millis(1000));
    assert_eq!(bench.inspector.member_alive(1), Verdict::Alive);
    assert_eq!(bench.count(Counter::MemberDown), 1);
}

#[test]
fn of_new_lanes_those_that_plans_use_are_tested_first() {
    let mut bench = Bench::new(4);
    bench.handle(Input::Peers(Vec::new()));
    let mut heard = peer(4);
    heard.members.iter_mut().for_each(|member| member.heard = (0..4).collect());
    bench.handle(Input::Peers(vec![heard]));
    bench.pass(millis(60));
    let mut first: Vec<(u8, u8)> = Vec::new();
    for (slot, frame) in &bench.sent {
        if !first.contains(&(*slot, frame.dst.0[5])) {
            first.push((*slot, frame.dst.0[5]));
        }
    }
    let turns: Vec<u8> = first.iter().map(|(slot, index)| (4 + index - slot) % 4).collect();
    assert_eq!(turns, [[0; 4], [1; 4], [2; 4], [3; 4]].concat(), "{first:?}");
}

#[test]
fn what_was_refused_is_counted_by_its_reason() {
    let mut bench = Bench::new(1);
    let refused = |bench: &Bench| {
        Refusal::ALL.iter().map(|refusal| bench.inspector.counters().refused(*refusal)).collect::<Vec<_>>()
    };
    assert!(refused(&bench).iter().all(|count| *count == 0));
    let probe = emit_probe(mac(1, 0), mac(2, 0), &bench.reply(1)).expect("a good probe");
    (0..3).for_each(|_| bench.handle(Input::Frame { slot: 0, bytes: &probe[..30] }));
    assert_eq!(refused(&bench).iter().filter(|count| **count == 3).count(), 1);
    assert_eq!(refused(&bench).iter().sum::<u64>(), 3);
}

//= docs/arp-plus.md#11.4 type=test
#[test]
fn who_asks_in_anybodys_name_leaves_answers_for_those_who_are_known() {
    let mut bench = Bench::proven(2);
    bench.pass(millis(1000));
    let echo = bench.nonce(0, 0);
    let seen = bench.sent.len();
    for _ in 0..limits::PROBE_BURST {
        let ask = Probe { kind: ProbeKind::Probe, ..bench.reply(0) };
        bench.hear(0, 0, &ask);
    }
    assert_eq!((bench.sent.len() - seen) as u64, limits::PROBE_BURST / 2);
    assert_eq!(bench.count(Counter::LimitReply), limits::PROBE_BURST / 2);
    for _ in 0..limits::PROBE_BURST {
        let ask = Probe { kind: ProbeKind::Probe, ..bench.reply(echo) };
        bench.hear(0, 0, &ask);
    }
    assert_eq!((bench.sent.len() - seen) as u64, limits::PROBE_BURST, "they have the rest");
}

//= docs/arp-plus.md#11.16 type=test
#[test]
fn who_never_answered_keeps_lanes_as_long_as_there_is_room() {
    let of = |host: u8, members: u8| {
        let heard = || (0..10).collect();
        let member = |index| PeerMemberReport { index, mac: mac(host, index), up: true, heard: heard() };
        let key = PeerKey::Host(HostId([host; 16]));
        PeerReport { key, members: (0..members).map(member).collect(), ..peer(0) }
    };
    let mut bench = Bench::new(10);
    bench.handle(Input::Peers(vec![of(3, 10)]));
    bench.pass(Duration::from_secs(10));
    let lanes = |bench: &Bench, host: u8| {
        let lanes = bench.inspector.snapshot(bench.now).lanes;
        lanes.iter().filter(|lane| lane.lane.peer == PeerKey::Host(HostId([host; 16]))).count()
    };
    assert_eq!(lanes(&bench, 3), 100);
    let newcomer = of(4, 9);
    bench.handle(Input::Peer(newcomer.key, Some(newcomer)));
    assert_eq!((lanes(&bench, 3), lanes(&bench, 4)), (100, 90));
}
