//! What counts as proof, and what verdicts follow.

use super::*;

/// Plays frames that must not count on a lane whose last PROBE waits for its answer.
fn unanswered() -> (Bench, u64) {
    let mut bench = Bench::proven(2);
    bench.answers.retain(|pair| *pair != (0, 0));
    let seen = bench.sent.len();
    let asks =
        |bench: &Bench| bench.sent[seen..].iter().any(|(slot, frame)| *slot == 0 && frame.dst == mac(2, 0));
    bench.until(|bench| bench.pass(millis(1)), asks);
    let nonce = bench.nonce(0, 0);
    (bench, nonce)
}

//= docs/arp-plus.md#11.4 type=test
#[test]
fn foreign_and_misdirected_frames_prove_nothing() {
    let (mut bench, nonce) = unanswered();
    let before = bench.lane(0, 0).proofs;
    let good = bench.reply(nonce);
    let frame = |dst, src, probe: &Probe| emit_probe(dst, src, probe).expect("a good probe");
    let stranger = Probe { host: HostId([9; 16]), ..good.clone() };
    let stale = Probe { epoch: 4, ..good.clone() };
    let own = Probe { host: OWN, ..good.clone() };
    for (slot, bytes, counter) in [
        (0, frame(mac(1, 0), mac(2, 0), &stranger), Counter::RxUnknownPeer),
        (0, frame(mac(1, 0), mac(2, 9), &good), Counter::RxUnknownMac),
        (0, frame(mac(1, 1), mac(2, 0), &good), Counter::RxMisdirected),
        (1, frame(mac(1, 0), mac(2, 0), &good), Counter::RxMisdirected),
        (7, frame(mac(1, 0), mac(2, 0), &good), Counter::RxUnknownMember),
        (0, frame(mac(1, 0), mac(2, 0), &stale), Counter::RxStaleEpoch),
        (0, frame(mac(1, 0), mac(1, 1), &good), Counter::RxOwn),
        (0, frame(mac(1, 0), mac(2, 0), &own), Counter::RxOwn),
        (1, frame(mac(1, 1), mac(2, 1), &good), Counter::RxNoProof),
    ] {
        let count = bench.count(counter);
        bench.handle(Input::Frame { slot, bytes: &bytes });
        assert_eq!(bench.count(counter), count + 1, "{counter:?}");
        assert_eq!(bench.lane(0, 0).proofs, before, "{counter:?}");
    }
    bench.handle(Input::Frame { slot: 0, bytes: &[0; 60] });
    assert_eq!(bench.inspector.counters().refused(Refusal::NotArpPlus), 1);
    bench.hear(0, 0, &good);
    assert_eq!(bench.lane(0, 0).proofs, before + 1, "the same from the right place does");
}

//= docs/arp-plus.md#11.4 type=test
#[test]
fn repeated_guessed_and_late_echoes_prove_nothing() {
    let (mut bench, nonce) = unanswered();
    let before = bench.lane(0, 0).proofs;
    let guessed = bench.reply(nonce ^ 1);
    bench.hear(0, 0, &guessed);
    assert_eq!(bench.lane(0, 0).proofs, before);
    let good = bench.reply(nonce);
    bench.hear(0, 0, &good);
    bench.hear(0, 0, &good);
    assert_eq!((bench.lane(0, 0).proofs, bench.count(Counter::RxOld)), (before + 1, 1));
    let again = bench.reply(nonce);
    bench.hear(0, 0, &again);
    assert_eq!(bench.lane(0, 0).proofs, before + 1, "a nonce counts once");
    // The lane is in no plan: its interval is a second, so it is lost three after the last proof.
    let (mut bench, nonce) = unanswered();
    let late = bench.reply(nonce);
    bench.pass(millis(1900));
    bench.hear(0, 0, &late);
    assert_eq!(bench.lane(0, 0).proofs, before + 1, "late, but in time");
    let (mut bench, nonce) = unanswered();
    let late = bench.reply(nonce);
    bench.pass(millis(3001));
    bench.hear(0, 0, &late);
    assert_eq!(bench.lane(0, 0).proofs, before, "too late");
}

//= docs/arp-plus.md#11.4 type=test
#[test]
fn probe_is_answered_once_over_the_same_lane() {
    let mut bench = Bench::proven(2);
    let ask = Probe { kind: ProbeKind::Probe, ..bench.reply(0) };
    let seen = bench.sent.len();
    bench.hear(0, 0, &ask);
    let answers = bench.sent[seen..].to_vec();
    let [(slot, frame)] = &answers[..] else { panic!("one answer: {answers:?}") };
    assert_eq!((*slot, frame.src, frame.dst), (0, mac(1, 0), mac(2, 0)));
    assert_eq!((frame.probe.kind, frame.probe.echo), (ProbeKind::Reply, ask.nonce));
    assert_eq!((frame.probe.view, frame.probe.epoch), (View::Up, 1));
    bench.hear(0, 0, &ask);
    assert_eq!(bench.sent.len(), seen + 1, "a repeated one is not");
}

//= docs/arp-plus.md#11.5 type=test
#[test]
fn peer_that_lost_the_lane_ends_it_at_once_unless_it_brings_proof() {
    let mut bench = Bench::proven(2);
    let redeemed = bench.nonce(0, 0);
    let lost = Probe { view: View::Lost, ..bench.reply(redeemed) };
    let old = Probe { number: 1, nonce: 1, ..lost.clone() };
    bench.hear(0, 0, &old);
    assert_eq!(bench.verdict(0, 0), Verdict::Alive, "old news");
    let anybodys = Probe { echo: u64::MAX, nonce: 2, ..lost.clone() };
    bench.hear(0, 0, &anybodys);
    assert_eq!(bench.verdict(0, 0), Verdict::Alive, "whoever says so has heard nothing over this lane");
    let (seen, changed) = (bench.sent.len(), bench.changed.len());
    bench.hear(0, 0, &lost);
    assert_eq!(bench.verdict(0, 0), Verdict::Failed);
    assert_eq!(bench.lane(0, 0).reason, LaneReason::PeerLost);
    assert_eq!(bench.changed[changed..], [Changed::All], "it was the only lane of the member");
    bench.pass(Duration::ZERO);
    let told = bench.sent[seen..].iter().any(|(slot, frame)| *slot == 0 && frame.probe.view == View::Lost);
    assert!(told, "the peer learns at once");
    // With proof the lane carries frames both ways, whatever the peer holds of it.
    let (mut bench, nonce) = unanswered();
    let lost = Probe { view: View::Lost, ..bench.reply(nonce) };
    bench.hear(0, 0, &lost);
    assert_eq!(bench.verdict(0, 0), Verdict::Alive);
    // And the only lane stays in use.
    let mut bench = Bench::proven(1);
    let redeemed = bench.nonce(0, 0);
    let lost = Probe { view: View::Lost, ..bench.reply(redeemed) };
    bench.hear(0, 0, &lost);
    assert_eq!(bench.verdict(0, 0), Verdict::Suspect);
}

//= docs/arp-plus.md#11.7 type=test
#[test]
fn what_is_heard_decides_until_something_is_proven() {
    assert_eq!([true, false].map(|heard| Verdict::Unknown.usable(heard)), [true, false]);
    assert_eq!([true, false].map(|heard| Verdict::Alive.usable(heard)), [true, true]);
    assert_eq!([true, false].map(|heard| Verdict::Suspect.usable(heard)), [true, true]);
    assert_eq!([true, false].map(|heard| Verdict::Failed.usable(heard)), [false, false]);

    let mut bench = Bench::new(2);
    let verdicts = |bench: &Bench| [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(slot, at)| bench.verdict(slot, at));
    assert_eq!(verdicts(&bench), [Verdict::Unknown; 4], "just met");
    bench.pass(millis(2000));
    assert_eq!(verdicts(&bench), [Verdict::Unknown; 4], "no lane is proven");
    bench.answers = vec![(0, 0)];
    bench.pass(millis(2000));
    assert_eq!(verdicts(&bench), [Verdict::Alive, Verdict::Failed, Verdict::Failed, Verdict::Failed]);
    // A member that joins later is proven before it carries anything.
    let mut members: Vec<MemberReport> = (0..3).map(report).collect();
    bench.handle(Input::Members(members.clone()));
    assert_eq!(bench.verdict(2, 0), Verdict::Failed);
    bench.answers.push((2, 0));
    bench.pass(millis(400));
    assert_eq!(bench.verdict(2, 0), Verdict::Alive);
    members[0].carrier = false;
    bench.handle(Input::Members(members));
    assert_eq!((bench.verdict(0, 0), bench.verdict(2, 0)), (Verdict::Failed, Verdict::Alive));
}

//= docs/arp-plus.md#11.10 type=test
#[test]
fn published_only_peer_has_no_lanes_here() {
    let mut bench = Bench::new(2);
    let address = PeerKey::Address(IpAddr::from([198, 18, 0, 9]));
    let published = PeerReport { key: address, epoch: None, probes: false, ..peer(2) };
    bench.handle(Input::Peers(vec![published]));
    bench.sent.clear();
    bench.pass(millis(5000));
    assert_eq!((bench.sent.len(), bench.inspector.poll_timeout()), (0, None));
    assert_eq!(bench.inspector.lane_alive(&address, 0, 0), Verdict::Unknown);
    assert_eq!(bench.inspector.snapshot(bench.now).lanes, []);
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn unanswered_probe_is_repeated_soon_and_unheard_pairs_are_left_alone() {
    let mut bench = Bench::proven(2);
    let lane = LaneId { peer: KEY, slot: 0, index: 0 };
    bench.handle(Input::Plan(vec![LaneUse { lane, usage: Usage::Busy }]));
    bench.pass(millis(1000));
    bench.sent.clear();
    bench.answers.retain(|pair| *pair != (0, 0));
    let began = bench.now;
    while bench.verdict(0, 0) == Verdict::Alive {
        bench.pass(millis(1));
        assert!(bench.now.since(began) <= millis(151), "{:?}", bench.lane(0, 0));
    }
    assert_eq!(
        bench.verdict(0, 0),
        Verdict::Failed,
        "lanes in no plan are asked at once whether the peer lives"
    );
    let tries = bench.sent.iter().filter(|(_, frame)| frame.dst == mac(2, 0)).count();
    assert!((8..=13).contains(&tries), "{tries} PROBEs before the lane was given up");
    // Neither heard nor ever proven: tested, then silent, until the peer is heard there.
    let crossed = |bench: &Bench| {
        bench.sent.iter().filter(|(slot, frame)| *slot == 0 && frame.dst == mac(2, 1)).count()
    };
    let mut bench = Bench::new(2);
    bench.answers = vec![(0, 0), (1, 1)];
    bench.pass(millis(1000));
    assert_eq!(crossed(&bench), 3);
    bench.pass(millis(60_000));
    assert_eq!(crossed(&bench), 3);
    let mut heard = peer(2);
    heard.members[1].heard = vec![0, 1];
    bench.handle(Input::Peers(vec![heard]));
    bench.pass(millis(1000));
    assert!(crossed(&bench) > 5);
}

//= docs/arp-plus.md#11.15 type=test
#[test]
fn frames_that_are_no_proof_change_nothing() {
    let mut bench = Bench::proven(2);
    let before = [0, 1].map(|slot| bench.lane(slot, slot).interval);
    let highest = bench.number + (1 << 31) - 1;
    for (slot, epoch) in [(0, 5), (1, 5), (0, u64::MAX), (1, u64::MAX)] {
        let made_up = Probe {
            kind: ProbeKind::Probe,
            epoch,
            nonce: 77,
            number: highest,
            view: View::Lost,
            interval_us: u32::MAX,
            ..Probe { echo: 0, ..bench.reply(1) }
        };
        bench.hear(slot, slot, &made_up);
    }
    assert_eq!([0, 1].map(|slot| bench.lane(slot, slot).peer_view), [View::Up; 2]);
    assert_eq!(bench.count(Counter::RxEarlyEpoch), 2, "of an epoch that ARP+ does not know");
    // The true peer is believed and answered as before.
    let (old, seen) = (bench.count(Counter::RxOld), bench.sent.len());
    let ask = Probe { kind: ProbeKind::Probe, ..bench.reply(0) };
    bench.hear(0, 0, &ask);
    assert_eq!((bench.sent.len(), bench.count(Counter::RxOld)), (seen + 1, old));
    bench.pass(millis(4000));
    assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Alive; 2]);
    assert_eq!([0, 1].map(|slot| bench.lane(slot, slot).interval), before);
    assert_eq!(bench.count(Counter::RxOld), old);
}

/// Whether a PROBE of the peer without proof is answered.
fn is_answered(bench: &mut Bench) -> bool {
    let ask = Probe { kind: ProbeKind::Probe, ..bench.reply(0) };
    let seen = bench.sent.len();
    bench.hear(0, 0, &ask);
    bench.sent[seen..].iter().any(|(_, frame)| frame.probe.echo == ask.nonce)
}

//= docs/arp-plus.md#11.5 type=test
#[test]
fn who_hears_a_nonce_and_makes_up_a_number_stops_no_lane_for_good() {
    let forged = || {
        let (mut bench, nonce) = unanswered();
        let number = bench.number + (1 << 30);
        let made_up = Probe { number, nonce: 77, ..bench.reply(nonce) };
        bench.hear(0, 0, &made_up);
        assert!(!is_answered(&mut bench), "its number is earlier than that of the latest proof");
        bench
    };
    // The next proof is the peer's, and the number that counts is its number.
    let mut bench = forged();
    let proofs = bench.lane(0, 0).proofs;
    bench.answers.push((0, 0));
    bench.until(|bench| bench.pass(millis(1)), |bench| bench.lane(0, 0).proofs > proofs);
    assert!(is_answered(&mut bench));
    // If the peer waits for an answer as well, nothing proves the lane any more: once it is lost, no number is compared.
    let mut bench = forged();
    bench.until(|bench| bench.pass(millis(1)), |bench| bench.verdict(0, 0) == Verdict::Failed);
    assert!(is_answered(&mut bench));
}

//= docs/arp-plus.md#6.8 type=test
#[test]
fn a_peer_is_asked_and_its_answer_told_if_it_was_proven_lately() {
    let mut bench = Bench::proven(2);
    assert!(!bench.proven.is_empty(), "the first proofs are told");
    bench.proven.clear();
    bench.pass(millis(2000));
    assert_eq!(bench.proven, [], "later ones are not");
    let asked = bench.now;
    assert!(bench.inspector.challenge(asked, KEY));
    bench.pass(millis(5));
    assert_eq!(bench.proven, [asked], "an answer to what was asked since");
    bench.answers.clear();
    bench.pass(millis(1001));
    assert!(!bench.inspector.challenge(bench.now, KEY), "none was proven lately");
}

//= docs/arp-plus.md#11.20 type=test
#[test]
fn only_an_answer_says_how_long_the_way_takes() {
    for (kind, told) in [(ProbeKind::Reply, true), (ProbeKind::Probe, false)] {
        let (mut bench, nonce) = unanswered();
        let (proofs, rtt) = (bench.lane(0, 0).proofs, bench.lane(0, 0).rtt);
        bench.pass(millis(40));
        let says = Probe { kind, ..bench.reply(nonce) };
        bench.hear(0, 0, &says);
        assert_eq!(bench.lane(0, 0).proofs, proofs + 1, "both are proof");
        assert_eq!(bench.lane(0, 0).rtt != rtt, told, "a PROBE comes when it is due");
    }
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn a_lane_is_tried_at_once_where_the_peer_is_newly_heard_and_not_for_other_news() {
    let mut bench = Bench::proven(2);
    bench.pass(millis(5000));
    let heard_on_both = |long_probes| {
        let mut heard = peer(2);
        heard.members[1].heard = vec![0, 1];
        PeerReport { long_probes, ..heard }
    };
    // So many PROBEs over a lane that nobody answers, in so short a time.
    let tries = |bench: &mut Bench, report: PeerReport| {
        bench.sent.clear();
        bench.handle(Input::Peers(vec![report]));
        bench.pass(millis(300));
        bench.sent.iter().filter(|(slot, frame)| *slot == 0 && frame.dst == mac(2, 1)).count()
    };
    assert!(tries(&mut bench, heard_on_both(true)) >= 3);
    bench.pass(millis(90_000));
    assert!(tries(&mut bench, heard_on_both(true)) <= 1, "nothing is new");
    assert!(tries(&mut bench, heard_on_both(false)) <= 1, "it was heard there before");
    assert!(tries(&mut bench, peer(2)) <= 1, "and is not any more");
}

//= docs/arp-plus.md#11.8 type=test
#[test]
fn a_lost_lane_is_not_asked_more_often_because_the_peer_still_speaks_over_it() {
    let mut bench = Bench::proven(2);
    bench.answers.retain(|pair| *pair != (0, 0));
    bench.until(|bench| bench.pass(millis(10)), |bench| bench.verdict(0, 0) == Verdict::Failed);
    bench.pass(millis(1000));
    bench.sent.clear();
    for _ in 0..100 {
        bench.pass(millis(100));
        let ask = Probe { kind: ProbeKind::Probe, ..bench.reply(0) };
        bench.hear(0, 0, &ask);
    }
    let asks = |(slot, frame): &&(u8, ProbeFrame)| {
        (*slot, frame.dst, frame.probe.kind) == (0, mac(2, 0), ProbeKind::Probe)
    };
    let asked = bench.sent.iter().filter(asks).count();
    let retry = Timing::default().retry;
    assert!(retry * asked as u32 <= Duration::from_secs(14), "{asked} in ten seconds");
}

#[test]
fn a_lane_to_a_member_that_has_another_mac_now_is_another_lane() {
    let mut bench = Bench::proven(2);
    let mut other = peer(2);
    other.members[0].mac = mac(2, 9);
    bench.handle(Input::Peer(KEY, Some(other)));
    assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Failed, Verdict::Alive]);
    assert_eq!(bench.lane(0, 0).proofs, 0);
}
