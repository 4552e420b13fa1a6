use super::{Lane, Plan, raw_plan};

fn lane(weight: u32) -> Lane {
    Lane { slot: 0, peer_mac: None, weight }
}

#[test]
fn equal_lanes_cost_the_same_and_share_the_hash_space() {
    let raw = raw_plan(&Plan { lanes: vec![lane(1000); 4] });
    assert_eq!(raw.n_lanes, 4);
    assert!(raw.lanes[..4].iter().all(|lane| lane.byte_cost == 256));
    assert_eq!(raw.lanes.map(|lane| lane.hash_below)[..4], [1 << 14, 2 << 14, 3 << 14, 1 << 16]);
}

#[test]
fn a_byte_costs_more_on_a_slower_lane() {
    let raw = raw_plan(&Plan { lanes: vec![lane(500), lane(100)] });
    assert_eq!((raw.lanes[0].byte_cost, raw.lanes[1].byte_cost), (256, 5 * 256));
    assert_eq!(raw.lanes[1].hash_below, 1 << 16);
}

#[test]
fn a_weight_of_zero_is_taken_as_one() {
    let raw = raw_plan(&Plan { lanes: vec![lane(0)] });
    assert_eq!((raw.lanes[0].byte_cost, raw.lanes[0].hash_below), (256, 1 << 16));
}
