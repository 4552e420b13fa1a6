//! Plain hosts: what counts as an answer, and what is bounded.

use super::*;
use crate::limits;
use linkbraid_wire::{emit_advertisement, emit_plain_probe, probe_address};
use std::net::{Ipv4Addr, Ipv6Addr};

#[path = "../../../tests/network/answer.rs"]
mod answers;
mod silent;

const HOST: MacAddr = MacAddr([2, 0, 0, 0, 7, 0]);
const IP: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 7);
const IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);
pub const PLAIN: PeerKey = PeerKey::Plain(HOST);

/// A reply as any host writes it: who it goes to, who sends it, for which address, and the target as ARP tells it.
fn answer(to: MacAddr, host: MacAddr, ip: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let head = [8, 6, 0, 1, 8, 0, 6, 4, 0, 2];
    [&to.0[..], &host.0, &head, &host.0, &ip.octets(), &to.0, &target.octets(), &[0; 18]].concat()
}

fn good(slot: u8) -> Vec<u8> {
    answer(mac(1, slot), HOST, IP, Ipv4Addr::UNSPECIFIED)
}

/// Two members and one plain host that has not answered yet.
pub fn bench() -> Bench {
    let mut bench = Bench::new(2);
    bench.handle(Input::Peers(Vec::new()));
    bench.handle(Input::Plain(vec![PlainReport { mac: HOST, ip: IpAddr::V4(IP) }]));
    bench
}

fn hear(bench: &mut Bench, slot: u8, bytes: &[u8]) {
    bench.handle(Input::Frame { slot, bytes });
}

/// Time goes on; the host answers at once over these members.
fn pass(bench: &mut Bench, duration: Duration, over: &[u8]) {
    let end = bench.now + duration;
    while bench.now < end {
        let seen = bench.asked.len();
        bench.pass(millis(1));
        let asked: Vec<u8> = bench.asked[seen..].iter().map(|(_, slot, _)| *slot).collect();
        asked.iter().filter(|slot| over.contains(slot)).for_each(|slot| hear(bench, *slot, &good(*slot)));
    }
}

fn verdicts(bench: &Bench) -> [Verdict; 2] {
    [0, 1].map(|slot| bench.inspector.lane_alive(&PLAIN, slot, 0))
}

fn proofs(bench: &Bench) -> u64 {
    bench.lane(0, 0).proofs
}

/// Both lanes proven; then a probe over the first one leaves and waits for its answer.
fn unanswered() -> Bench {
    let mut bench = bench();
    pass(&mut bench, millis(1000), &[0, 1]);
    assert_eq!(verdicts(&bench), [Verdict::Alive; 2]);
    let seen = bench.asked.len();
    let asks = |bench: &Bench| bench.asked[seen..].iter().any(|(_, slot, _)| *slot == 0);
    bench.until(|bench| pass(bench, millis(1), &[1]), asks);
    bench
}

//= docs/arp-plus.md#12.3 type=test
#[test]
fn only_the_exact_answer_on_the_member_that_asked_is_proof() {
    let mut bench = unanswered();
    let before = proofs(&bench);
    let (other, zero) = (MacAddr([2, 0, 0, 0, 7, 1]), Ipv4Addr::UNSPECIFIED);
    for (slot, bytes, counter) in [
        (0, good(1), Counter::RxMisdirected),
        (1, good(0), Counter::RxMisdirected),
        (7, good(0), Counter::RxUnknownMember),
        (0, answer(mac(1, 0), other, IP, zero), Counter::RxUnknownPeer),
        (0, answer(mac(1, 0), HOST, Ipv4Addr::new(198, 18, 0, 8), zero), Counter::RxUnknownPeer),
        (0, answer(mac(1, 0), mac(1, 1), IP, zero), Counter::RxOwn),
    ] {
        let count = bench.count(counter);
        hear(&mut bench, slot, &bytes);
        assert_eq!((bench.count(counter), proofs(&bench)), (count + 1, before), "{counter:?}");
    }
    hear(&mut bench, 0, &answer(mac(1, 0), HOST, IP, Ipv4Addr::new(198, 18, 0, 1)));
    assert_eq!(bench.inspector.counters().refused(Refusal::ArpNotForProbe), 1, "the kernel's own business");
    assert_eq!(proofs(&bench), before);
    hear(&mut bench, 0, &good(0));
    assert_eq!(proofs(&bench), before + 1, "the same from the right place does");
    hear(&mut bench, 0, &good(0));
    assert_eq!((proofs(&bench), bench.count(Counter::RxNoProof)), (before + 1, 1), "one proof a probe");
}

/// The same of a host that is asked by a neighbour solicitation.
fn solicited(to: MacAddr, host: MacAddr, ip: Ipv6Addr) -> Vec<u8> {
    let asked = emit_plain_probe(host, to, IpAddr::V6(ip)).expect("good addresses");
    answers::answer(&asked, IpAddr::V6(ip)).expect("a probe").to_vec()
}

//= docs/arp-plus.md#12.7 type=test
#[test]
fn host_without_ipv4_is_proven_by_the_exact_answers_to_solicitations() {
    let mut bench = bench();
    let good = |slot| solicited(mac(1, slot), HOST, IPV6);
    bench.handle(Input::Plain(vec![PlainReport { mac: HOST, ip: IpAddr::V6(IPV6) }]));
    let asks = |bench: &mut Bench| {
        let seen = bench.asked.len();
        bench.pass(millis(1));
        let asked = bench.asked[seen..].iter().map(|(_, slot, frame)| (*slot, frame.clone()));
        asked.collect::<Vec<(u8, Vec<u8>)>>()
    };
    let answered = |bench: &mut Bench| {
        for (slot, frame) in asks(bench) {
            assert_eq!(frame.len(), 86, "a solicitation");
            hear(bench, slot, &good(slot));
        }
    };
    bench.until(answered, |bench| verdicts(bench) == [Verdict::Alive; 2]);
    let mut waits = false;
    while !waits {
        for (slot, _) in asks(&mut bench) {
            if slot == 1 { hear(&mut bench, 1, &good(1)) } else { waits = true }
        }
    }
    let before = proofs(&bench);
    let other = MacAddr([2, 0, 0, 0, 7, 1]);
    let arp = answer(mac(1, 0), HOST, IP, Ipv4Addr::UNSPECIFIED);
    for (slot, bytes, counter) in [
        (0, good(1), Counter::RxMisdirected),
        (1, good(0), Counter::RxMisdirected),
        (7, good(0), Counter::RxUnknownMember),
        (0, solicited(mac(1, 0), other, IPV6), Counter::RxUnknownPeer),
        (0, solicited(mac(1, 0), HOST, Ipv6Addr::LOCALHOST), Counter::RxUnknownPeer),
        (0, arp, Counter::RxUnknownPeer),
        (0, solicited(mac(1, 0), mac(1, 1), IPV6), Counter::RxOwn),
    ] {
        let count = bench.count(counter);
        hear(&mut bench, slot, &bytes);
        assert_eq!((bench.count(counter), proofs(&bench)), (count + 1, before), "{counter:?}");
    }
    let unasked = emit_advertisement(mac(1, 0), probe_address(mac(1, 0)), HOST, IPV6, false);
    hear(&mut bench, 0, &unasked.expect("good addresses"));
    assert_eq!(bench.inspector.counters().refused(Refusal::AdvertisementNotForProbe), 1);
    assert_eq!(proofs(&bench), before);
    hear(&mut bench, 0, &good(0));
    assert_eq!(proofs(&bench), before + 1, "the same from the right place does");
    hear(&mut bench, 0, &good(0));
    assert_eq!((proofs(&bench), bench.count(Counter::RxNoProof)), (before + 1, 1), "one proof a probe");
    let asked = (bench.count(Counter::TxArpProbe), bench.count(Counter::TxSolicitation));
    assert_eq!(asked, (0, bench.asked.len() as u64));
}

//= docs/arp-plus.md#12.3 type=test
#[test]
fn answers_to_what_was_not_asked_prove_nothing() {
    let mut bench = bench_without_probes();
    let before = proofs(&bench);
    hear(&mut bench, 0, &good(0));
    assert_eq!((proofs(&bench), bench.count(Counter::RxNoProof)), (before, 1));
    assert_eq!(verdicts(&bench)[0], Verdict::Failed);
}

/// A member whose carrier was away: what was sent before counts no more, and nothing was sent since.
fn bench_without_probes() -> Bench {
    let mut bench = unanswered();
    let down = MemberReport { carrier: false, ..report(0) };
    bench.handle(Input::Members(vec![down, report(1)]));
    hear(&mut bench, 0, &good(0));
    assert_eq!(bench.count(Counter::RxCut), 1);
    bench.handle(Input::Members(vec![report(0), report(1)]));
    let waits = |bench: &mut Bench| {
        bench.now = bench.inspector.poll_timeout().expect("an up-delay");
        bench.inspector.handle(bench.now, Input::Timeout);
        while bench.inspector.poll_action().is_some() {}
    };
    bench.until(waits, |bench| bench.inspector.member_alive(0) == Verdict::Alive);
    bench
}

//= docs/arp-plus.md#12.4 type=test
#[test]
fn nothing_is_judged_before_the_first_answer_and_then_all_is_tested() {
    let mut bench = bench();
    pass(&mut bench, millis(5000), &[]);
    assert_eq!((verdicts(&bench), bench.events.len()), ([Verdict::Unknown; 2], 2), "two members joined");
    let before = bench.asked.iter().filter(|(_, slot, _)| *slot == 1).count();
    bench.until(|bench| pass(bench, millis(1), &[0]), |bench| bench.count(Counter::RxProof) > 0);
    assert_eq!(verdicts(&bench), [Verdict::Unknown; 2], "one answer admits no lane");
    let began = bench.now;
    bench.until(
        |bench| pass(bench, millis(1), &[0]),
        |bench| verdicts(bench) == [Verdict::Alive, Verdict::Failed],
    );
    let tested = bench.asked.iter().filter(|(_, slot, _)| *slot == 1).count() - before;
    assert!((3..=5).contains(&tested), "three, and those in its turn: {tested} probes over the other lane");
    assert!(bench.now.since(began) < millis(1000), "all that the ration allows at once");
    assert_eq!(bench.inspector.member_sound(1), Verdict::Unknown);
}

#[test]
fn lost_lanes_to_plain_hosts_are_counted_apart() {
    let mut bench = bench();
    bench.until(|bench| pass(bench, millis(1), &[0, 1]), |bench| verdicts(bench) == [Verdict::Alive; 2]);
    bench.until(|bench| pass(bench, millis(1), &[0]), |bench| verdicts(bench)[1] == Verdict::Failed);
    assert_eq!([Counter::LaneLost, Counter::PlainLaneLost].map(|counter| bench.count(counter)), [1, 1]);
}

//= docs/arp-plus.md#12.1 type=test
#[test]
fn few_are_probed_and_those_left_out_are_forgotten() {
    let mut bench = bench();
    let host =
        |last| PlainReport { mac: MacAddr([2, 0, 0, 0, 8, last]), ip: IpAddr::from([198, 18, 1, last]) };
    let hosts: Vec<PlainReport> = (1..=6).map(host).collect();
    bench.handle(Input::Plain(hosts.clone()));
    assert_eq!(bench.count(Counter::LimitPlain), 6 - limits::PLAIN_PROBED_MAX as u64);
    let keys = |bench: &Bench| {
        let lanes = bench.inspector.snapshot(bench.now).lanes.into_iter();
        lanes.map(|lane| (lane.lane.peer, lane.lane.slot)).collect::<Vec<_>>()
    };
    let both = |report: &PlainReport| [0, 1].map(|slot| (PeerKey::Plain(report.mac), slot));
    assert_eq!(keys(&bench), hosts[..4].iter().flat_map(both).collect::<Vec<_>>());
    // Peers that come and go touch no plain host, and the other way round.
    bench.handle(Input::Peers(vec![peer(2)]));
    bench.handle(Input::Plain(vec![hosts[1]]));
    assert_eq!(keys(&bench).len(), 2 + 2, "a peer that never answered has the lanes that were heard");
    bench.handle(Input::Peers(vec![PeerReport { key: PLAIN, ..peer(2) }]));
    assert_eq!(keys(&bench), both(&hosts[1]), "ARP+ knows no plain hosts");
    bench.handle(Input::Plain(Vec::new()));
    assert_eq!((keys(&bench).len(), bench.inspector.poll_timeout()), (0, None));
}

#[test]
fn host_with_another_address_is_asked_for_that() {
    let mut bench = unanswered();
    let ip = Ipv4Addr::new(198, 18, 0, 99);
    bench.handle(Input::Plain(vec![PlainReport { mac: HOST, ip: IpAddr::V4(ip) }]));
    let before = proofs(&bench);
    hear(&mut bench, 0, &good(0));
    assert_eq!((proofs(&bench), verdicts(&bench)), (before, [Verdict::Alive; 2]));
    bench.asked.clear();
    let over_first = |bench: &Bench| bench.asked.iter().any(|(_, slot, _)| *slot == 0);
    bench.until(|bench| bench.pass(millis(1)), over_first);
    assert!(bench.asked.iter().all(|(.., frame)| frame[38..42] == ip.octets()));
    hear(&mut bench, 0, &answer(mac(1, 0), HOST, ip, Ipv4Addr::UNSPECIFIED));
    assert_eq!(proofs(&bench), before + 1);
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn lanes_of_plain_hosts_share_what_a_port_may_send() {
    let each = Duration::from_secs(1) / 7;
    let mut bench = bench();
    pass(&mut bench, millis(1000), &[0, 1]);
    let used = |slot| LaneUse { lane: LaneId { peer: PLAIN, slot, index: 0 }, usage: Usage::Busy };
    bench.handle(Input::PlanOf(PLAIN, vec![used(0), used(1)]));
    let interval = |bench: &Bench| bench.lane(0, 0).interval.expect("it is probed");
    // A gap is 7/8 of the interval in the middle.
    assert_eq!(interval(&bench).as_micros(), (each * 2 * 8 / 7).as_micros());
    // So the host sends at most seven a second.
    pass(&mut bench, millis(2000), &[0, 1]);
    let seen = bench.asked.len();
    pass(&mut bench, millis(10_000), &[0, 1]);
    let asked = bench.asked.len() - seen;
    assert!((60..=72).contains(&asked), "{asked} in ten seconds");
}

//= docs/arp-plus.md#7.8 type=test
#[test]
fn whether_a_plain_host_is_there_is_known_once_each_lane_was_tested() {
    let mut bench = bench();
    let answers = |bench: &Bench| bench.inspector.plain_answers(HOST);
    let down = MemberReport { carrier: false, ..report(1) };
    bench.handle(Input::Members(vec![report(0), down]));
    assert_eq!((answers(&bench), bench.inspector.plain_answers(mac(2, 0))), (None, None));
    bench.until(|bench| pass(bench, millis(10), &[]), |bench| answers(bench).is_some());
    assert_eq!(answers(&bench), Some(false));
    assert!(bench.asked.iter().filter(|(_, slot, _)| *slot == 0).count() >= 3, "it was asked before");
    bench.until(|bench| pass(bench, millis(10), &[0]), |bench| answers(bench) == Some(true));
}

//= docs/arp-plus.md#12.4 type=test
#[test]
fn a_member_that_was_down_when_a_plain_host_answered_first_is_proven_before_it_is_used() {
    let mut bench = bench();
    bench.handle(Input::Members(vec![report(0), MemberReport { carrier: false, ..report(1) }]));
    bench.until(|bench| pass(bench, millis(1), &[0]), |bench| verdicts(bench)[0] == Verdict::Alive);
    bench.handle(Input::Members(vec![report(0), report(1)]));
    let is_back = |bench: &Bench| bench.inspector.member_alive(1) == Verdict::Alive;
    bench.until(|bench| pass(bench, millis(1), &[0]), is_back);
    assert_eq!(verdicts(&bench), [Verdict::Alive, Verdict::Failed]);
}

//= docs/arp-plus.md#12.4 type=test
#[test]
fn a_plain_host_that_does_not_answer_is_asked_each_second_over_each_member() {
    let mut bench = bench();
    pass(&mut bench, millis(3000), &[]);
    bench.asked.clear();
    pass(&mut bench, millis(10_000), &[]);
    let asked = [0, 1].map(|member| bench.asked.iter().filter(|(_, slot, _)| *slot == member).count());
    assert!(asked.iter().all(|asked| (9..=14).contains(asked)), "{asked:?}");
}

//= docs/arp-plus.md#12.4 type=test
#[test]
fn only_the_first_answer_of_a_plain_host_is_an_occasion_to_test_its_other_lanes() {
    let lane = LaneId { peer: PLAIN, slot: 1, index: 0 };
    let mut bench = bench();
    bench.until(|bench| pass(bench, millis(1), &[0]), |bench| verdicts(bench)[1] == Verdict::Failed);
    let before = proofs(&bench);
    for _ in 0..2000 {
        pass(&mut bench, millis(1), &[0]);
        assert_eq!(bench.inspector.lane_mut(lane).expect("a lane").tries, 0);
    }
    assert!(proofs(&bench) > before);
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn one_that_may_not_be_asked_yet_is_asked_soon_after_it_may() {
    let each = Duration::from_secs(1) / limits::PLAIN_RATE as u32;
    let lane = LaneId { peer: PLAIN, slot: 0, index: 0 };
    let mut bench = bench();
    pass(&mut bench, millis(1000), &[0, 1]);
    let now = bench.now + Duration::from_secs(10);
    let mut put_off = || {
        bench.inspector.lane_mut(lane).expect("a lane").next_probe = Some(now);
        bench.inspector.ask(now, lane);
        bench.inspector.lane_mut(lane).expect("a lane").next_probe.expect("it is asked").since(now)
    };
    (0..=limits::PLAIN_URGENT_MAX).for_each(|_| _ = put_off());
    let put_off: Vec<Duration> = (0..30).map(|_| put_off()).collect();
    let soon = each..=each + Timing::default().interval / 4;
    assert!(put_off.iter().all(|time| soon.contains(time)), "{put_off:?}");
    assert_eq!(bench.count(Counter::LimitPlainRate), 30);
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn a_port_may_send_again_after_a_seventh_of_a_second() {
    let (each, moment) = (Duration::from_secs(1) / limits::PLAIN_RATE as u32, Duration::from_nanos(1));
    let lane = LaneId { peer: PLAIN, slot: 0, index: 0 };
    let mut bench = bench();
    let now = bench.now + Duration::from_secs(10);
    let mut may_at = |at| bench.inspector.take_ration(at, lane, false);
    assert_eq!(may_at(now), Ok(()));
    assert_eq!(may_at(now + (each - moment)), Err(moment));
    assert_eq!(may_at(now + each), Ok(()));
}
