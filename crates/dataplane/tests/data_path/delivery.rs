//! What ACKs say of how fast lanes deliver.

use crate::damp::{STRIPE, ack, at, block, sent};
use crate::frames::Tcp;
use crate::rig::{Rig, own, peer};
use crate::undisturbed::{pass, undisturbed};
use linkbraid_dataplane::{Lane, Plan};
use std::time::{Duration, Instant};

/// The plan of the rig's peer.
const PLAN: u32 = 1;

/// What each lane delivered while something waited on it: bytes, and for how long, us.
fn busy(rig: &Rig) -> Vec<(u32, u32)> {
    let lanes = rig.path.lane_deliveries(PLAN).unwrap();
    lanes.into_iter().map(|lane| (lane.busy_bytes, lane.busy_us)).collect()
}

fn bytes(rig: &Rig) -> Vec<u32> {
    busy(rig).into_iter().map(|(bytes, _)| bytes).collect()
}

/// What of striped flows left by each lane, in stripes.
fn sent_by(rig: &Rig) -> Vec<u32> {
    rig.path.lane_deliveries(PLAN).unwrap().into_iter().map(|lane| lane.sent_bytes / STRIPE).collect()
}

/// What of striped flows was sent again, by the lane that had it first, in stripes.
fn lost_by(rig: &Rig) -> Vec<u32> {
    rig.path.lane_deliveries(PLAN).unwrap().into_iter().map(|lane| lane.lost_bytes / STRIPE).collect()
}

/// Two lanes that have each delivered one stripe at once, so that the least time is known, and have stripes 2 to 9 on their way.
fn under_way() -> Rig {
    let rig = sent(2, 2);
    // The first one follows none.
    ack(&rig, &Tcp::ack(at(0), &[]));
    ack(&rig, &Tcp::ack(at(2), &[]));
    for i in 2..10 {
        rig.sends(&Tcp::data(at(i), STRIPE as usize).frame(peer(0), own(0)));
    }
    assert_eq!(busy(&rig), [(0, 0); 2], "nothing has waited for anything");
    pass(Duration::from_millis(8));
    // The first of each lane has waited for none before it, but took long.
    ack(&rig, &Tcp::ack(at(4), &[]));
    assert_eq!(bytes(&rig), [STRIPE, STRIPE]);
    rig
}

#[test]
fn a_stripe_that_waited_for_another_counts() {
    undisturbed(|| {
        let rig = under_way();
        let (begun, before) = (Instant::now(), busy(&rig)[0].1);
        pass(Duration::from_millis(5));
        ack(&rig, &Tcp::ack(at(5), &[]));
        assert_eq!(bytes(&rig), [2 * STRIPE, STRIPE]);
        let us = busy(&rig)[0].1 - before;
        assert!(
            us >= 5000 && Duration::from_micros(us.into()) <= begun.elapsed() + Duration::from_millis(30),
            "{us}"
        );
        ack(&rig, &Tcp::ack(at(10), &[]));
        assert_eq!(bytes(&rig), [4 * STRIPE, 4 * STRIPE]);
    });
}

#[test]
fn what_sack_blocks_say_counts_once() {
    undisturbed(|| {
        let rig = under_way();
        ack(&rig, &Tcp::ack(at(4), &[block(5, 6)]));
        assert_eq!(bytes(&rig), [STRIPE, 2 * STRIPE]);
        ack(&rig, &Tcp::ack(at(4), &[block(5, 6)]));
        ack(&rig, &Tcp::ack(at(6), &[]));
        assert_eq!(bytes(&rig), [2 * STRIPE, 2 * STRIPE]);
    });
}

/// A flow whose TCP waits by itself: what a block newly reports at its end is looked at, and all else only sometimes.
#[test]
fn what_arrived_last_counts_at_once_over_a_long_round_trip() {
    undisturbed(|| {
        let rig = sent(2, 12);
        pass(Duration::from_millis(25));
        for n in [0, 2] {
            ack(&rig, &Tcp::ack(at(n), &[]));
        }
        // What comes after these has waited, however slowly the stripes left.
        pass(Duration::from_millis(15));
        ack(&rig, &Tcp::ack(at(5), &[]));
        assert_eq!(bytes(&rig), [0, 0]);
        let counted = |blocks: &[(u32, u32)]| {
            ack(&rig, &Tcp::ack(at(5), blocks));
            bytes(&rig)
        };
        // The first ACK with SACK: all is looked at.
        assert_eq!(counted(&[block(6, 7)]), [STRIPE, 0]);
        assert_eq!(ack(&rig, &Tcp::ack(at(5), &[block(6, 8)])).0, "rx_ack_tolerated");
        assert_eq!(counted(&[block(6, 8)]), [STRIPE, STRIPE], "once");
        assert_eq!(counted(&[(at(6), at(8) + STRIPE / 2)]), [STRIPE, STRIPE], "half of one");
        assert_eq!(counted(&[block(9, 11), block(6, 8)]), [2 * STRIPE, 2 * STRIPE], "two at once");
        assert_eq!(counted(&[block(6, 11)]), [3 * STRIPE, 2 * STRIPE], "a gap in the midst");
    });
}

#[test]
fn what_was_sent_again_says_nothing() {
    undisturbed(|| {
        let rig = under_way();
        let again = rig.out(&Tcp::data(at(4), STRIPE as usize).frame(peer(0), own(0))).source();
        assert_eq!(sent_by(&rig), if again == own(0) { [6, 5] } else { [5, 6] });
        ack(&rig, &Tcp::ack(at(6), &[]));
        assert_eq!(bytes(&rig), [STRIPE, 2 * STRIPE]);
    });
}

#[test]
fn what_is_sent_again_was_lost_on_the_lane_that_had_it_first() {
    let rig = sent(2, 10);
    let again = |n| rig.out(&Tcp::data(at(n), STRIPE as usize).frame(peer(0), own(0))).source();
    assert_eq!(lost_by(&rig), [0, 0]);
    let by = [again(3), again(3)];
    assert!(by.contains(&own(0)), "the other lane");
    assert_eq!(lost_by(&rig), [0, 2]);
    again(4);
    assert_eq!(lost_by(&rig), [1, 2]);
    // What is known to have arrived was not lost; TCP may not have seen that ACK yet.
    ack(&rig, &Tcp::ack(at(4), &[block(5, 6)]));
    again(5);
    assert_eq!(lost_by(&rig), [1, 2]);
    let lane = |slot| Lane { slot, peer_mac: Some(peer(slot)), weight: 1000, rate: None, class: 0 };
    rig.path.set_plan(PLAN, &Plan { lanes: vec![lane(1), lane(0)], ..Plan::default() }).unwrap();
    again(6);
    assert_eq!(lost_by(&rig), [0, 0], "nor by lanes of another plan");
}

/// A router forwards what the sender's lanes have reordered.
#[test]
fn what_is_overtaken_on_its_way_here_counts_with_its_lane() {
    undisturbed(|| {
        let rig = under_way();
        rig.sends(&Tcp::data(at(11), STRIPE as usize).frame(peer(0), own(0)));
        let late = rig.out(&Tcp::data(at(10), STRIPE as usize).frame(peer(0), own(0))).source();
        assert_eq!(late, own(1), "the other lane");
        ack(&rig, &Tcp::ack(at(6), &[]));
        assert_eq!(bytes(&rig), [2 * STRIPE, 3 * STRIPE]);
        ack(&rig, &Tcp::ack(at(8), &[]));
        assert_eq!(bytes(&rig), [3 * STRIPE, 4 * STRIPE], "once");
        assert_eq!((sent_by(&rig), lost_by(&rig)), (vec![6, 6], vec![0, 0]));
    });
}

#[test]
fn what_left_by_another_plan_says_nothing() {
    undisturbed(|| {
        let rig = under_way();
        let lane = |slot| Lane { slot, peer_mac: Some(peer(slot)), weight: 1000, rate: None, class: 0 };
        rig.path.set_plan(PLAN, &Plan { lanes: vec![lane(1), lane(0)], ..Plan::default() }).unwrap();
        ack(&rig, &Tcp::ack(at(10), &[]));
        assert_eq!(bytes(&rig), [0, 0]);
    });
}

#[test]
fn other_rates_leave_counters_and_lanes_as_they_are() {
    undisturbed(|| {
        let rig = under_way();
        ack(&rig, &Tcp::ack(at(6), &[]));
        let lane = |(slot, rate)| Lane {
            slot,
            peer_mac: Some(peer(slot)),
            weight: 1000,
            rate: Some(rate),
            class: 0,
        };
        let plan = Plan { lanes: [(0, 300), (1, 100)].map(lane).into(), ..Plan::default() };
        rig.path.set_plan(PLAN, &plan).unwrap();
        assert_eq!(bytes(&rig), [2 * STRIPE, 2 * STRIPE]);
        let before = rig.path.lane_counts(PLAN).unwrap()[0].frames;
        for i in 10..50 {
            rig.sends(&Tcp::data(at(i), STRIPE as usize).frame(peer(0), own(0)));
        }
        let by_first = rig.path.lane_counts(PLAN).unwrap()[0].frames - before;
        assert!((29..=31).contains(&by_first), "{by_first} of 40");
    });
}

#[test]
fn a_flow_with_much_in_flight_has_longer_stripes() {
    undisturbed(|| {
        let rig = sent(2, 2);
        ack(&rig, &Tcp::ack(at(2), &[]));
        let lanes: Vec<[u8; 6]> = (2..402)
            .map(|i| rig.out(&Tcp::data(at(i), STRIPE as usize).frame(peer(0), own(0))).source())
            .collect();
        let stripes = |lanes: &[[u8; 6]]| lanes.chunk_by(|one, other| one == other).count();
        // What a long round trip has in flight is remembered while stripes are short: long ones wait for each other at the sender.
        assert_eq!(stripes(&lanes[..180]), 180);
        let last = stripes(&lanes[200..]);
        assert!(last <= 200 / 2, "{last} stripes of 200 buffers");
        let first = lanes.iter().filter(|source| **source == own(0)).count();
        assert!((190..=210).contains(&first), "{first} of 400 by the first lane");
    });
}

#[test]
fn however_much_is_in_flight_both_lanes_are_used() {
    undisturbed(|| {
        let rig = sent(2, 2);
        ack(&rig, &Tcp::ack(at(2), &[]));
        for block in 0..4 {
            let frame = |i: u32| Tcp::data(at(2).wrapping_add(i * 2 * STRIPE), 2 * STRIPE as usize);
            let by_first = (block * 1000..(block + 1) * 1000)
                .filter(|i| rig.out(&frame(*i).frame(peer(0), own(0))).source() == own(0))
                .count();
            assert!((400..=600).contains(&by_first), "{by_first} of 1000 in block {block}");
        }
    });
}

#[test]
fn lanes_are_measured_when_more_is_in_flight_than_is_remembered() {
    undisturbed(|| {
        let rig = sent(2, 2);
        ack(&rig, &Tcp::ack(at(0), &[]));
        ack(&rig, &Tcp::ack(at(2), &[]));
        assert_eq!(bytes(&rig), [0, 0]);
        for i in 2..2000 {
            rig.sends(&Tcp::data(at(i), STRIPE as usize).frame(peer(0), own(0)));
        }
        // One that comes long after the last one says nothing.
        ack(&rig, &Tcp::ack(at(2), &[]));
        pass(Duration::from_millis(8));
        ack(&rig, &Tcp::ack(at(2000), &[]));
        assert!(bytes(&rig).iter().all(|bytes| *bytes > STRIPE), "{:?}", bytes(&rig));
    });
}

#[test]
fn nobody_has_what_was_not_sent() {
    undisturbed(|| {
        let rig = under_way();
        ack(&rig, &Tcp::ack(at(20), &[]));
        assert_eq!(bytes(&rig), [STRIPE, STRIPE]);
        ack(&rig, &Tcp::ack(at(6), &[]));
        assert_eq!(bytes(&rig), [2 * STRIPE, 2 * STRIPE], "what was claimed before hides nothing");
    });
}

#[test]
fn an_ack_that_may_have_waited_says_nothing() {
    undisturbed(|| {
        let rig = under_way();
        pass(Duration::from_millis(40));
        ack(&rig, &Tcp::ack(at(6), &[]));
        assert_eq!(bytes(&rig), [STRIPE, STRIPE]);
    });
}
