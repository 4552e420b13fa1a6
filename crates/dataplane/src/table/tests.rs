use super::{Lane, Plan, Policy, generation, raw_plan};
use crate::intf::{LB_PLAN_BORROWS, LB_PLAN_SHARES, PLANS_MAX};

fn lane(weight: u32) -> Lane {
    Lane { slot: 0, peer_mac: None, weight, rate: None, class: 0 }
}

#[test]
fn equal_lanes_cost_the_same_and_share_the_hash_space() {
    let raw = raw_plan(&Plan { lanes: vec![lane(1000); 4], ..Plan::default() });
    assert_eq!(raw.n_lanes, 4);
    assert!(raw.lanes[..4].iter().all(|lane| lane.byte_cost == 256));
    assert_eq!(raw.lanes.map(|lane| lane.hash_below)[..4], [1 << 14, 2 << 14, 3 << 14, 1 << 16]);
}

#[test]
fn a_byte_costs_more_on_a_slower_lane() {
    let raw = raw_plan(&Plan { lanes: vec![lane(500), lane(100)], ..Plan::default() });
    assert_eq!((raw.lanes[0].byte_cost, raw.lanes[1].byte_cost), (256, 5 * 256));
    assert_eq!(raw.lanes[1].hash_below, 1 << 16);
}

#[test]
fn a_weight_of_zero_is_taken_as_one() {
    let raw = raw_plan(&Plan { lanes: vec![lane(0)], ..Plan::default() });
    assert_eq!((raw.lanes[0].byte_cost, raw.lanes[0].hash_below), (256, 1 << 16));
}

#[test]
fn borrowed_lanes_have_no_part_of_the_hash_space() {
    let lanes = [(1, 0), (4, 2), (2, 0), (5, 3)];
    let lanes = lanes.map(|(slot, class)| Lane { slot, class, ..lane(1000) }).to_vec();
    let raw = raw_plan(&Plan { lanes, policy: Policy::Flow, shares: true });
    assert_eq!(raw.lanes.map(|lane| lane.hash_below)[..4], [1 << 15, 1 << 15, 1 << 16, 1 << 16]);
    assert_eq!(raw.lanes.map(|lane| lane.class)[..4], [0, 2, 0, 3]);
    assert_eq!((raw.slots, raw.policy, raw.flags), (0b11_0110, 1, (LB_PLAN_SHARES | LB_PLAN_BORROWS) as u8));
}

#[test]
fn no_two_plans_are_ever_of_one_generation() {
    for number in [0, 1, PLANS_MAX - 1] {
        let mut last = 0;
        for _ in 0..100_000 {
            let next = generation(number, last);
            assert!(next != 0 && next != last && next < 1 << 28);
            assert_eq!(next >> 15, number);
            last = next;
        }
    }
}
