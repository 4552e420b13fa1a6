//! Deadlines: what is allowed for, and what is sent when.

use super::*;

/// Both lanes 0-0 and 1-1 proven and busy: an interval is 50 ms, and they are lost after three.
fn busy() -> Bench {
    let mut bench = Bench::proven(2);
    let used = |slot| LaneUse { lane: LaneId { peer: KEY, slot, index: slot }, busy: true };
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
    assert_eq!([0, 1].map(|slot| bench.verdict(slot, slot)), [Verdict::Dead, Verdict::Alive]);
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
    let of_lane = |bench: &Bench| bench.sent.iter().filter(|(slot, _)| *slot == 0).count();
    let mut gaps = Vec::new();
    let mut last = bench.now;
    while bench.verdict(0, 0) == Verdict::Alive {
        let before = of_lane(&bench);
        let at = bench.inspector.poll_timeout().expect("probes");
        bench.pass(at.since(bench.now));
        if of_lane(&bench) > before {
            assert_eq!(of_lane(&bench), before + 1, "one at a time");
            gaps.push(bench.now.since(last));
            last = bench.now;
        }
    }
    // Repeated after a quarter of the interval; the last one tells the peer that the lane is lost.
    let hurried = &gaps[1..gaps.len() - 1];
    assert!(hurried.iter().all(|gap| *gap >= millis(12)), "{gaps:?}");
}
