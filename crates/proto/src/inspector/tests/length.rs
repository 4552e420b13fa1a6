//! PROBEs of full length: which lanes are short, what becomes of them, and how often they are asked.

use super::*;
use crate::limits::{
    self, LONG_PROBE_AGAIN, LONG_PROBE_AGAIN_BUSY, LONG_PROBE_AGAIN_SHORT, LONG_PROBE_RATE,
    LONG_PROBE_RATE_TESTED, LONG_PROBE_REPEAT, LONG_PROBE_SOON, LONG_PROBE_TRIES,
};

const MTU: u32 = 9000;
/// A short lane is found by then.
const FOUND: Duration = Duration::from_secs(5);

/// Two proven lanes, of which these carry no long frames.
fn bench(short: &[(u8, u8)]) -> Bench {
    let mut bench = Bench::proven(2);
    uses(&mut bench, Usage::Busy);
    bench.short = short.to_vec();
    bench.handle(Input::Mtu(MTU));
    bench
}

/// Both lanes are used that way.
fn uses(bench: &mut Bench, usage: Usage) {
    let used = |slot| LaneUse { lane: LaneId { peer: KEY, slot, index: slot }, usage };
    bench.handle(Input::Plan(vec![used(0), used(1)]));
}

/// Events about the lane of that slot: what it carries.
fn told(bench: &Bench, slot: u8) -> Vec<bool> {
    let length = |event: &Event| match event {
        Event::Length { lane, mtu, carries } if lane.slot == slot => {
            assert_eq!(*mtu, MTU);
            Some(*carries)
        }
        _ => None,
    };
    bench.events.iter().filter_map(length).collect()
}

fn short(bench: &Bench) -> Vec<(u8, u8)> {
    bench.inspector.short_lanes().map(|lane| (lane.slot, lane.index)).collect()
}

//= docs/arp-plus.md#11.17 type=test
#[test]
fn each_proven_lane_is_asked_soon_and_then_now_and_then() {
    let mut bench = bench(&[]);
    uses(&mut bench, Usage::Idle);
    bench.pass(LONG_PROBE_SOON);
    let mut asked: Vec<(u8, u8)> = bench.long.drain(..).map(|(_, pair)| pair).collect();
    asked.sort_unstable();
    assert_eq!(asked, [(0, 0), (1, 1)], "those that are proven");
    assert_eq!((bench.count(Counter::RxLong), bench.full), (2, 14 + MTU as usize));
    bench.pass(LONG_PROBE_AGAIN * 10);
    let count = bench.long.len();
    assert!((20..=28).contains(&count), "{count} in ten times as long");
    // Those that carry data are asked more often, from the first moment on.
    uses(&mut bench, Usage::Busy);
    bench.long.clear();
    bench.pass(LONG_PROBE_AGAIN_BUSY * 10);
    let count = bench.long.len();
    assert!((20..=28).contains(&count), "{count} in ten times as long");
    uses(&mut bench, Usage::Idle);
    // Proven again, it is asked again soon: it may be another cable.
    bench.answers.retain(|pair| *pair != (0, 0));
    bench.pass(millis(4000));
    bench.long.clear();
    bench.answers.push((0, 0));
    bench.pass(millis(3000));
    assert!(bench.long.iter().any(|(_, pair)| *pair == (0, 0)));
    assert_eq!((told(&bench, 0), short(&bench)), (vec![], vec![]));
    // Another length is another question.
    bench.long.clear();
    bench.handle(Input::Mtu(1500));
    bench.pass(LONG_PROBE_SOON);
    assert_eq!(bench.long.len(), 2);
}

#[test]
fn who_does_not_read_them_is_not_asked() {
    let mut bench = Bench::proven(2);
    bench.pass(millis(60_000));
    assert_eq!((bench.long.len(), bench.count(Counter::TxLong)), (0, 0), "nor is anybody without an MTU");
    bench.handle(Input::Peers(vec![PeerReport { long_probes: false, ..peer(2) }]));
    bench.handle(Input::Mtu(MTU));
    bench.pass(millis(60_000));
    assert_eq!(bench.long, []);
    // The peer has other software now.
    bench.handle(Input::Peers(vec![peer(2)]));
    bench.pass(LONG_PROBE_AGAIN);
    assert!(bench.long.len() >= 2);
}

//= docs/arp-plus.md#11.18 type=test
#[test]
fn a_short_lane_is_left_out_while_another_one_is_not() {
    let mut bench = bench(&[(1, 1)]);
    bench.pass(FOUND);
    assert_eq!((bench.verdict(0, 0), bench.verdict(1, 1)), (Verdict::Alive, Verdict::Failed));
    assert_eq!((told(&bench, 0), told(&bench, 1), short(&bench)), (vec![], vec![false], vec![(1, 1)]));
    assert_eq!(bench.lane(1, 1).state, LaneState::Up, "it is no less proven");
    assert_eq!(bench.inspector.member_sound(1), Verdict::Alive);
    assert!(bench.changed.contains(&Changed::Peers(vec![KEY])), "plans follow");
    let asked = bench.long.iter().filter(|(_, pair)| *pair == (1, 1)).count();
    assert!(asked >= usize::from(LONG_PROBE_TRIES), "{asked}");
    // It is better than none.
    bench.answers.retain(|pair| *pair != (0, 0));
    bench.pass(millis(4000));
    assert_eq!((bench.verdict(0, 0), bench.verdict(1, 1)), (Verdict::Failed, Verdict::Alive));
    bench.answers.push((0, 0));
    bench.pass(millis(4000));
    assert_eq!((bench.verdict(0, 0), bench.verdict(1, 1)), (Verdict::Alive, Verdict::Failed));
    // Somebody mends the switch.
    bench.changed.clear();
    bench.short.clear();
    bench.pass(LONG_PROBE_AGAIN_SHORT);
    assert_eq!(
        (bench.verdict(1, 1), told(&bench, 1), short(&bench)),
        (Verdict::Alive, vec![false, true], vec![])
    );
    assert!(bench.changed.contains(&Changed::Peers(vec![KEY])));
    let lost = [Counter::LaneLost, Counter::PlainLaneLost].map(|counter| bench.count(counter));
    assert_eq!(lost, [1, 0], "that of the lane 0-0");
}

#[test]
fn a_port_that_takes_less_than_before_is_found_soon_while_data_flow() {
    let mut bench = bench(&[]);
    uses(&mut bench, Usage::Idle);
    bench.pass(LONG_PROBE_AGAIN * 2);
    assert_eq!(bench.verdict(1, 1), Verdict::Alive);
    bench.short = vec![(1, 1)];
    uses(&mut bench, Usage::Busy);
    bench.pass(FOUND);
    assert_eq!((short(&bench), bench.verdict(1, 1)), (vec![(1, 1)], Verdict::Failed));
}

//= docs/arp-plus.md#11.18 type=test
#[test]
fn an_answer_has_its_time_however_often_a_lane_begins_to_carry_data() {
    let mut bench = bench(&[]);
    bench.pass(LONG_PROBE_AGAIN);
    // None is answered for half as long as it takes to find a lane short.
    bench.short = vec![(1, 1)];
    let begun = bench.long.len();
    while bench.long.iter().skip(begun).filter(|(_, pair)| *pair == (1, 1)).count() == 0 {
        bench.pass(millis(10));
    }
    for _ in 0..(LONG_PROBE_REPEAT * u32::from(LONG_PROBE_TRIES / 2)).as_millis() {
        uses(&mut bench, Usage::Idle);
        uses(&mut bench, Usage::Busy);
        bench.pass(millis(1));
    }
    assert_eq!((short(&bench), bench.verdict(1, 1)), (vec![], Verdict::Alive));
}

//= docs/arp-plus.md#11.18 type=test
#[test]
fn where_no_lane_carries_long_frames_all_stay() {
    let mut bench = bench(&[(0, 0), (1, 1)]);
    bench.pass(FOUND);
    assert_eq!((bench.verdict(0, 0), bench.verdict(1, 1)), (Verdict::Alive, Verdict::Alive));
    assert_eq!((told(&bench, 0), told(&bench, 1)), (vec![false], vec![false]));
    assert_eq!(short(&bench), [(0, 0), (1, 1)]);
    // A smaller MTU: nothing is known against them.
    bench.handle(Input::Mtu(100));
    assert_eq!(short(&bench), []);
}

//= docs/arp-plus.md#11.18 type=test
#[test]
fn what_no_probe_gets_through_says_nothing_of_length() {
    let mut bench = bench(&[]);
    bench.pass(FOUND);
    bench.short = vec![(0, 0), (1, 1)];
    bench.answers.clear();
    bench.pass(millis(60_000));
    assert_eq!((told(&bench, 0), told(&bench, 1)), (vec![], vec![]));
    // Long ones get lost now and then, with others.
    bench.answers = vec![(0, 0), (1, 1)];
    bench.short.clear();
    for round in 0..200u64 {
        bench.short = if round % 4 == 0 { vec![] } else { vec![(0, 0)] };
        bench.pass(millis(300));
    }
    assert!(told(&bench, 0).is_empty(), "one answer is enough");
    assert_eq!(bench.verdict(0, 0), Verdict::Alive);
}

//= docs/arp-plus.md#11.19 type=test
#[test]
fn many_lanes_are_asked_less_often() {
    let (members, peers) = (16, 8);
    let reports = (2..2 + peers).map(|host: u8| {
        let key = PeerKey::Host(HostId([host; 16]));
        let member = |index| PeerMemberReport { index, mac: mac(host, index), up: true, heard: vec![index] };
        let members = (0..members).map(member).collect();
        PeerReport { key, epoch: Some(5), probes: true, long_probes: true, members }
    });
    let mut inspector = Inspector::new(Config::new(OWN, 1), 7);
    let mut now = Time::from_millis(1000);
    inspector.handle(now, Input::Mtu(MTU));
    inspector.handle(now, Input::Members((0..members).map(report).collect()));
    inspector.handle(now, Input::Peers(reports.collect()));
    let in_use = (2..2 + peers).map(|host| LaneUse {
        lane: LaneId { peer: PeerKey::Host(HostId([host; 16])), slot: 0, index: 0 },
        usage: Usage::Light,
    });
    inspector.handle(now, Input::Plan(in_use.collect()));
    let (mut number, mut long, mut answers) = (0, Vec::new(), true);
    while now < Time::from_millis(180_000) {
        now = inspector.poll_timeout().expect("there is always something").max(now);
        inspector.handle(now, Input::Timeout);
        let mut replies = Vec::new();
        while let Some(action) = inspector.poll_action() {
            let Action::Send { slot, frame } = action else { continue };
            let is_long = frame.len() > LONG;
            if is_long {
                long.push(now);
            }
            let asked = parse_probe(&frame).expect("a good frame");
            if is_long && !answers || asked.probe.kind == ProbeKind::Reply {
                continue;
            }
            number += 1;
            let host = HostId([asked.dst.0[4]; 16]);
            let (kind, nonce) = (ProbeKind::Reply, u64::from(number));
            let reply = Probe {
                kind,
                host,
                epoch: 5,
                nonce,
                echo: asked.probe.nonce,
                number,
                view: View::Up,
                ..Probe::default()
            };
            replies.push((slot, emit_probe(asked.src, asked.dst, &reply).expect("a good probe")));
        }
        for (slot, reply) in replies {
            inspector.handle(now, Input::Frame { slot, bytes: &reply });
        }
        // Then none is answered any more.
        answers &= now < Time::from_millis(100_000);
    }
    let lanes = inspector.snapshot(now).lanes.iter().filter(|lane| lane.state == LaneState::Up).count();
    assert_eq!(lanes, 2048);
    let most = |from: u64, to: u64| {
        (from..to).map(|second| long.iter().filter(|at| at.0 / 1_000_000_000 == second).count()).max()
    };
    let most = most(1, 180).expect("seconds");
    assert!(most <= LONG_PROBE_RATE_TESTED as usize * 6 / 5, "{most} in one second");
    let mean = long.iter().filter(|at| (40..100).contains(&(at.0 / 1_000_000_000))).count() / 60;
    assert!(mean <= LONG_PROBE_RATE as usize * 6 / 5, "{mean} a second while all answer");
    assert_eq!(inspector.short_lanes().count(), 2048);
}

//= docs/arp-plus.md#11.19 type=test
#[test]
fn lanes_are_asked_less_often_the_more_there_are_of_them() {
    let spaced = |lanes| super::super::length::spaced(millis(5000), lanes, 10);
    assert_eq!([0, 10, 50, 51, 500].map(|lanes| spaced(lanes).as_millis()), [5000, 5000, 5000, 5100, 50_000]);
}

/// So many times each long PROBE over the lane 1-1 gets lost, and each time this is done, given when it left; whether the lane is short
/// then.
fn is_short_after(times: u8, mut each: impl FnMut(&mut Bench, Time)) -> bool {
    let mut bench = bench(&[(1, 1)]);
    bench.long.clear();
    for _ in 0..times {
        let over = |bench: &Bench| bench.long.iter().find(|(_, pair)| *pair == (1, 1)).copied();
        bench.until(|bench| bench.pass(millis(1)), |bench| over(bench).is_some());
        let (left, _) = over(&bench).expect("it is asked");
        bench.long.clear();
        each(&mut bench, left);
    }
    short(&bench) == [(1, 1)]
}

//= docs/arp-plus.md#11.14 type=test
#[test]
fn what_was_asked_before_a_sleep_says_nothing_of_length() {
    assert!(is_short_after(LONG_PROBE_TRIES + 1, |_, _| ()));
    assert!(!is_short_after(LONG_PROBE_TRIES * 2, |bench, _| bench.handle(Input::Woke)));
}

//= docs/arp-plus.md#11.18 type=test
#[test]
fn only_a_proof_that_is_later_shows_that_a_long_probe_was_lost() {
    let proven = |bench: &mut Bench, left: Time| {
        let lane = LaneId { peer: KEY, slot: 1, index: 1 };
        let lane = bench.inspector.lane_mut(lane).expect("a lane");
        (lane.last_proof, lane.judged_from) = (Some(left), left + millis(1000));
    };
    // Nothing is heard, but the lane is not judged by that.
    let unheard = |later: Duration| {
        let mut is_first = true;
        is_short_after(LONG_PROBE_TRIES + 2, |bench, left| {
            if std::mem::take(&mut is_first) {
                bench.answers.clear();
                bench.handle(Input::Timing(Timing {
                    multiplier: limits::PROBE_MULTIPLIER_MAX,
                    ..Timing::default()
                }));
            }
            proven(bench, left + later);
        })
    };
    assert_eq!([Duration::ZERO, Duration::from_nanos(1)].map(unheard), [false, true]);
}

//= docs/arp-plus.md#11.18 type=test
#[test]
fn a_lane_in_no_plan_is_asked_whether_it_lives_while_long_probes_get_lost() {
    let mut bench = bench(&[(1, 1)]);
    bench.handle(Input::Plan(Vec::new()));
    let long = |bench: &Bench| bench.long.iter().filter(|(_, pair)| *pair == (1, 1)).count();
    let usual = |bench: &Bench| {
        let over = |(slot, frame): &&(u8, ProbeFrame)| (*slot, frame.dst) == (1, mac(2, 1));
        bench.sent.iter().filter(over).count() - long(bench)
    };
    for lost in 2..usize::from(LONG_PROBE_TRIES) {
        bench.until(|bench| bench.pass(millis(1)), |bench| long(bench) == lost);
        let before = usual(&bench);
        bench.pass(LONG_PROBE_REPEAT / 2);
        assert!(usual(&bench) > before, "{lost}");
    }
}
