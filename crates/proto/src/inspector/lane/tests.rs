use super::*;
use LaneSignal as I;
use LaneState::{Cut, Down, Init, Suspect, Up};

//= docs/arp-plus.md#11.1 type=test
//= docs/arp-plus.md#11.6 type=test
#[test]
fn every_state_and_signal_has_its_row() {
    let rows = [
        (Cut, I::Cut, Cut),
        (Cut, I::Mend, Down),
        (Cut, I::Proof, Cut),
        (Cut, I::Admit, Cut),
        (Cut, I::Fail, Cut),
        (Cut, I::Doubt, Cut),
        (Down, I::Cut, Cut),
        (Down, I::Mend, Down),
        (Down, I::Proof, Init),
        (Down, I::Admit, Up),
        (Down, I::Fail, Down),
        (Down, I::Doubt, Down),
        (Init, I::Cut, Cut),
        (Init, I::Mend, Init),
        (Init, I::Proof, Init),
        (Init, I::Admit, Up),
        (Init, I::Fail, Down),
        (Init, I::Doubt, Down),
        (Up, I::Cut, Cut),
        (Up, I::Mend, Up),
        (Up, I::Proof, Up),
        (Up, I::Admit, Up),
        (Up, I::Fail, Down),
        (Up, I::Doubt, Suspect),
        (Suspect, I::Cut, Cut),
        (Suspect, I::Mend, Suspect),
        (Suspect, I::Proof, Up),
        (Suspect, I::Admit, Up),
        (Suspect, I::Fail, Down),
        (Suspect, I::Doubt, Suspect),
    ];
    assert_eq!(rows.len(), LaneState::ALL.len() * LaneSignal::ALL.len());
    for (at, (state, signal, new)) in rows.into_iter().enumerate() {
        assert_eq!(state, LaneState::ALL[at / 6]);
        assert_eq!(signal, LaneSignal::ALL[at % 6]);
        assert_eq!(step_lane(state, signal), new, "{state:?}, {signal:?}");
    }
}

fn lane() -> Lane {
    Lane::new(Time::ZERO, MacAddr([2, 0, 0, 0, 0, 1]), true, &Timing::default())
}

//= docs/arp-plus.md#11.4 type=test
#[test]
fn nonce_counts_once_and_retires_all_before_it() {
    let mut lane = lane();
    (1..=5).for_each(|nonce| lane.remember(Time::from_millis(nonce), nonce));
    let now = Time::from_millis(10);
    assert_eq!(lane.redeem(now, 3), Some(Duration::from_millis(7)));
    assert_eq!([1, 2, 3, 9].map(|nonce| lane.redeem(now, nonce)), [None; 4]);
    assert_eq!(lane.redeem(now, 5), Some(Duration::from_millis(5)));
    (0..100).for_each(|nonce| lane.remember(now, nonce));
    assert_eq!(lane.nonces.len(), limits::NONCES_MAX);
    assert_eq!(lane.redeem(now, 83), None, "the oldest gave way");
    assert_eq!(lane.redeem(now, 84), Some(Duration::ZERO));
    assert_eq!([0, 5, 84, 85, 99].map(|nonce| lane.is_ours(nonce)), [false, false, true, true, true]);
}

//= docs/arp-plus.md#12.3 type=test
#[test]
fn answer_without_nonce_counts_once_for_all_that_was_asked_in_time() {
    let (at, within) = (Time::from_millis, Duration::from_millis(150));
    let mut lane = lane();
    assert_eq!(lane.redeem_all(at(0), within), None, "nothing was asked");
    lane.remember(at(100), 1);
    assert_eq!(lane.redeem_all(at(103), within), Some(Some(Duration::from_millis(3))));
    assert_eq!(lane.redeem_all(at(103), within), None, "once");
    (200..203).for_each(|time| lane.remember(at(time), time));
    assert_eq!(lane.redeem_all(at(210), within), Some(None), "nobody knows which one it answers");
    assert_eq!(lane.redeem_all(at(211), within), None, "for all of them");
    lane.remember(at(300), 1);
    lane.remember(at(301), 2);
    assert_eq!(
        lane.redeem_all(at(451), within),
        Some(Some(Duration::from_millis(150))),
        "the other is too old"
    );
    lane.remember(at(500), 1);
    assert_eq!(lane.redeem_all(at(651), within), None, "too late");
}

//= docs/arp-plus.md#12.4 type=test
#[test]
fn plain_hosts_are_tried_rarely_where_peers_would_be_heard() {
    let timing = Timing::default();
    let mut lane = lane();
    (lane.state, lane.fresh) = (Down, false);
    let plain = Some(Duration::from_millis(100));
    let mut pace = |spacing, seconds: u64, known| {
        lane.known = known;
        lane.pace_towards(Time::from_millis(seconds * 1000), false, spacing, &timing)
    };
    assert_eq!(pace(None, 1, false), Pace::Silent);
    assert_eq!(pace(plain, 59, false), Pace::Other(timing.discovery));
    assert_eq!(pace(plain, 60, false), Pace::Other(limits::PLAIN_INTERVAL_LATE));
    assert_eq!(
        [pace(plain, 1, true), pace(plain, 60, true)],
        [timing.retry, timing.retry_late].map(Pace::Other)
    );
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn plain_hosts_are_asked_as_rarely_as_their_ports_demand_but_for_tests() {
    let timing = Timing::default();
    let mut lane = lane();
    let spacing = Duration::from_millis(400);
    let mut pace = |state, usage| {
        (lane.state, lane.usage) = (state, usage);
        lane.pace_towards(Time::from_millis(100), true, Some(spacing), &timing)
    };
    for usage in [Usage::Idle, Usage::Light, Usage::Busy] {
        assert_eq!(pace(Up, usage), Pace::InUse(spacing));
    }
    assert_eq!(pace(Up, Usage::Unused), Pace::Other(timing.discovery));
    assert_eq!(pace(Suspect, Usage::Unused), Pace::Other(spacing));
    assert_eq!(pace(Init, Usage::Unused), Pace::Test(timing.interval));
}

//= docs/arp-plus.md#11.5 type=test
#[test]
fn only_frames_after_the_last_proof_are_new() {
    let mut lane = lane();
    assert!(lane.is_new(5, 7), "nothing is proven yet");
    lane.peer_seen = Some((5, 7));
    let new = [7, 6, 8, 7 + (1 << 30), u32::MAX].map(|number| lane.is_new(5, number));
    assert_eq!(new, [false, false, true, true, false]);
    lane.peer_seen = Some((5, u32::MAX));
    assert!(lane.is_new(5, 0), "numbers wrap");
    assert!(lane.is_new(6, 1), "numbers begin again with an epoch");
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn pace_follows_use() {
    let timing = Timing::default();
    let now = Time::from_millis(100);
    let mut lane = lane();
    let mut pace = |state, edit: fn(&mut Lane)| {
        lane.state = state;
        edit(&mut lane);
        lane.pace(now, true, &timing)
    };
    assert_eq!(pace(Cut, |_| ()), Pace::Silent);
    assert_eq!(pace(Down, |_| ()), Pace::Test(timing.interval), "fresh");
    assert_eq!(pace(Down, |lane| lane.fresh = false), Pace::Silent, "neither heard nor ever proven");
    assert_eq!(pace(Down, |lane| lane.heard = true), Pace::Other(timing.retry));
    assert_eq!(pace(Init, |_| ()), Pace::Test(timing.interval));
    assert_eq!(pace(Init, |lane| lane.answered = 3), Pace::Other(timing.retry), "held down");
    assert_eq!(pace(Up, |_| ()), Pace::Other(timing.discovery));
    assert_eq!(pace(Suspect, |_| ()), Pace::Other(timing.retry));
    assert_eq!(pace(Up, |lane| lane.usage = Usage::Idle), Pace::InUse(timing.idle));
    assert_eq!(pace(Up, |lane| lane.usage = Usage::Busy), Pace::InUse(timing.interval));
    assert_eq!(pace(Up, |lane| lane.usage = Usage::Light), Pace::Light(timing.interval, timing.idle));
    let slow = Duration::from_millis(400);
    lane.peer_interval = slow;
    assert_eq!(lane.pace(now, true, &timing), Pace::Light(slow, slow), "the peer can bear no more");
    lane.usage = Usage::Busy;
    assert_eq!(lane.pace(now, true, &timing), Pace::InUse(slow), "the peer can bear no more");
    (lane.peer_interval, lane.state) = (Duration::ZERO, Down);
    assert_eq!(lane.pace(now, false, &timing), Pace::Other(timing.discovery), "the peer knows no probes");
    lane.known = true;
    let later = now + timing.retry_for;
    assert_eq!(lane.pace(later, true, &timing), Pace::Other(timing.retry_late));
}

#[test]
fn only_what_was_known_is_called_lost() {
    let mut lane = lane();
    let views = |lane: &mut Lane| {
        LaneState::ALL.map(|state| {
            lane.state = state;
            lane.view()
        })
    };
    assert_eq!(views(&mut lane), [View::Unjudged, View::Unjudged, View::Init, View::Up, View::Init]);
    lane.known = true;
    assert_eq!(views(&mut lane), [View::Lost, View::Lost, View::Init, View::Up, View::Init]);
}

//= docs/arp-plus.md#11.12 type=test
#[test]
fn only_what_is_proven_and_not_doubted_is_trusted() {
    let mut lane = lane();
    let mut trusted = |doubted| {
        lane.doubted = doubted;
        LaneState::ALL.map(|state| {
            lane.state = state;
            lane.is_trusted()
        })
    };
    assert_eq!(trusted(false), [false, false, false, true, false]);
    assert_eq!(trusted(true), [false; 5]);
}

#[test]
fn nothing_is_hurried_once_it_is_lost() {
    let timing = Timing::default();
    let mut lane = lane();
    lane.state = Up;
    let deadline = lane.deadline(&timing).expect("it can be lost");
    assert_eq!([0, 1].map(|nanos| lane.hurries(Time(deadline.0 - nanos), &timing)), [false, true]);
}

//= docs/arp-plus.md#11.20 type=test
#[test]
fn what_answers_take_is_added_and_forgotten() {
    let (timing, millis) = (Timing::default(), Duration::from_millis);
    let mut lane = lane();
    (lane.interval, lane.plain) = (millis(50), false);
    assert_eq!([lane.detection(&timing), lane.repeats_after()], [millis(150), Duration::from_micros(12_500)]);
    lane.took(millis(240));
    assert_eq!([lane.detection(&timing), lane.repeats_after()], [millis(390), millis(30)]);
    lane.took(millis(100));
    assert_eq!(lane.slowest, Duration::from_micros(236_250));
    (0..400).for_each(|_| lane.took(millis(3)));
    assert_eq!(lane.slowest, millis(3));
    (0..64).for_each(|_| lane.took(Duration::ZERO));
    assert!(lane.slowest < millis(2), "{:?}", lane.slowest);
    lane.took(Duration::from_secs(5));
    assert_eq!(lane.slowest, limits::ANSWER_MAX);
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn a_plain_hosts_lane_is_asked_some_more_times_than_a_peers_before_it_is_given_up() {
    let timing = Timing::default();
    // The number of unanswered probes from which on it was asked enough.
    let enough = |lane: &mut Lane, timing: &Timing| {
        lane.nonces.clear();
        while lane.was_asked_too_little(timing) {
            lane.nonces.push_back((1, Time::ZERO));
        }
        lane.nonces.len()
    };
    let mut plain = lane();
    assert_eq!(enough(&mut plain, &timing), 0, "a peer's is judged by time alone");
    plain.plain = true;
    assert_eq!(enough(&mut plain, &timing), usize::from(timing.multiplier + limits::PLAIN_ASKED_MORE));
    plain.stalled = true;
    assert_eq!(enough(&mut plain, &timing), usize::from(timing.multiplier), "traffic says so, too");
    let most = Timing { multiplier: limits::PROBE_MULTIPLIER_MAX, ..timing };
    assert_eq!(enough(&mut plain, &most), limits::NONCES_MAX, "no more are remembered");
}

//= docs/arp-plus.md#11.5 type=test
#[test]
fn a_frame_is_new_if_it_is_later_than_the_latest_proof_of_its_epoch() {
    let mut lane = lane();
    assert!(lane.is_new(5, 0), "nothing is known");
    lane.peer_seen = Some((5, 100));
    assert_eq!([99, 100, 101].map(|number| lane.is_new(5, number)), [false, false, true]);
    lane.peer_seen = Some((5, u32::MAX));
    assert_eq!(
        [u32::MAX - 1, u32::MAX, 0, 1].map(|number| lane.is_new(5, number)),
        [false, false, true, true]
    );
    lane.peer_seen = Some((5, 100));
    assert!(lane.is_new(6, 1) && lane.is_new(4, 1), "each epoch counts for itself");
}

//= docs/arp-plus.md#11.12 type=test
#[test]
fn a_lane_is_tested_until_it_was_judged_and_again_when_it_is_doubted() {
    let mut lane = lane();
    let mut tested = |tries, fresh, doubted| {
        (lane.tries, lane.fresh, lane.doubted) = (tries, fresh, doubted);
        [Cut, Down, Init, Up, Suspect].map(|state| {
            lane.state = state;
            lane.is_tested()
        })
    };
    assert_eq!(tested(0, false, false), [false, false, true, false, false]);
    assert_eq!(tested(1, false, false), [false, true, true, false, false]);
    assert_eq!(tested(0, true, false), [false, true, true, false, false]);
    assert_eq!(tested(0, false, true), [false, false, true, true, false]);
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn in_a_crowd_proven_lanes_of_the_nearest_and_all_of_the_others_are_asked_more_seldom() {
    let (mut lane, timing) = (lane(), Timing::default());
    let base = Duration::from_millis(200);
    let mut slower = |state, near| {
        lane.state = state;
        [Pace::Other(base), Pace::InUse(base), Pace::Test(base), Pace::Silent]
            .map(|pace| lane.pace_in_crowd(pace, near, &timing))
    };
    let same = [Pace::Other(base), Pace::InUse(base), Pace::Test(base), Pace::Silent];
    let proven = Pace::Other(base * limits::IDLE_SLOWER);
    let seldom = Pace::Other(timing.discovery * limits::IDLE_SLOWER);
    assert_eq!(slower(Up, true), [proven, Pace::InUse(base), Pace::Test(base), Pace::Silent]);
    assert_eq!(slower(Up, false), [proven, seldom, Pace::Test(base), Pace::Silent]);
    for state in [Cut, Down, Init, Suspect] {
        assert_eq!(slower(state, true), same);
        assert_eq!(slower(state, false), [seldom, seldom, Pace::Test(base), Pace::Silent]);
    }
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn a_plain_hosts_lane_is_lost_one_interval_earlier_while_another_one_answers() {
    let timing = Timing::default();
    let mut lane = lane();
    for (plain, less) in [(false, 0), (true, 1)] {
        (lane.plain, lane.interval) = (plain, timing.interval);
        assert_eq!(lane.soonest(&timing), timing.interval * u32::from(timing.multiplier - less));
    }
    // What is cut is not asked, whoever's lane it is.
    (lane.state, lane.fresh, lane.plain) = (Cut, false, true);
    let spacing = Some(Duration::from_millis(400));
    assert_eq!(lane.pace_towards(Time::ZERO, false, spacing, &timing), Pace::Silent);
}
