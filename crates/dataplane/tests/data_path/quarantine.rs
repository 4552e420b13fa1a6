//! Lanes that deliver nothing, ACK by ACK.

use crate::damp::{STALL, ack, at, block, send_anywhere, sent};
use crate::frames::Tcp;
use crate::rig::{LONG, Rig, damping};
use crate::undisturbed::{pass, undisturbed};
use libbpf_rs::{MapCore as _, MapFlags};
use std::time::{Duration, Instant};

#[test]
fn a_stalled_flow_stays_off_the_lane_of_its_hole() {
    undisturbed(|| {
        let rig = sent(2, 8);
        ack(&rig, &Tcp::ack(at(0), &[block(1, 2)]));
        pass(20 * STALL);
        assert_eq!(send_anywhere(&rig, at(8), 6), [1; 6]);
        // ACKs are back.
        ack(&rig, &Tcp::ack(at(12), &[]));
        let lanes = send_anywhere(&rig, at(14), 100);
        assert!(lanes.contains(&0), "{lanes:?}");
    });
}

/// Stripes from `first` on, of which lane 0 swallows all: more than so many in a row are needed for a verdict.
const FLIGHT: u32 = 12;

/// Sends a flight over two lanes and has lane 1's part of it acknowledged, when all of it is old; a stripe of lane 0.
fn swallow(rig: &Rig, first: u32) -> u32 {
    let lanes = send_anywhere(rig, at(first), FLIGHT);
    pass(STALL);
    let arrived = |from: u32| (from..FLIGHT).find(|i| lanes[*i as usize] == 1);
    let hole = (0..FLIGHT).find(|i| lanes[*i as usize] == 0).expect("lane 0 took part");
    let mut blocks = Vec::new();
    let mut from = hole;
    while let Some(i) = arrived(from)
        && blocks.len() < 3
    {
        blocks.insert(0, block(first + i, first + i + 1));
        from = i + 1;
    }
    ack(rig, &Tcp::ack(at(first + hole), &blocks));
    first + hole
}

/// For how long lane 0 stays off, when buffers are sent and acknowledged all the time: from stripe `first` on, and how
/// many that took.
fn off(rig: &Rig, first: u32) -> (Duration, u32) {
    let begun = Instant::now();
    let mut n = 0;
    ack(rig, &Tcp::ack(at(first), &[]));
    while !send_anywhere(rig, at(first + n), 8).contains(&0) {
        n += 8;
        ack(rig, &Tcp::ack(at(first + n), &[]));
        assert!(begun.elapsed() < LONG, "the lane is never tried again");
        pass(Duration::from_micros(100));
    }
    (begun.elapsed(), n + 8)
}

#[test]
fn a_lane_that_swallowed_everything_is_quarantined_and_tried_again_ever_later() {
    undisturbed(|| {
        let mut rig = sent(2, 2);
        ack(&rig, &Tcp::ack(at(0), &[block(1, 2)]));
        rig.change(|bond| bond.damping = Some(damping(Duration::ZERO, Duration::from_nanos(1))));
        ack(&rig, &Tcp::ack(at(2), &[]));
        let mut first = 2;
        let mut times = Vec::new();
        for _ in 0..3 {
            swallow(&rig, first);
            let (time, n) = off(&rig, first + FLIGHT);
            times.push(time);
            first += FLIGHT + n;
            ack(&rig, &Tcp::ack(at(first), &[]));
        }
        assert!(times[0] >= Duration::from_millis(150), "{times:?}");
        assert!(times[1] > times[0] && times[2] > times[1], "{times:?}");
        // It delivers, and has its whole share at once.
        let lanes = send_anywhere(&rig, at(first), 200);
        let share = lanes.iter().filter(|lane| **lane == 0).count();
        assert!((90..=110).contains(&share), "{share} of 200");
    });
}

/// Virtual time of all lanes of all plans (`lb_progress.time`).
fn times(rig: &Rig) -> Vec<u64> {
    let map = rig.path.maps().find(|map| map.name() == "lb_progresses").expect("is there");
    let row =
        |number: u32| map.lookup(&number.to_ne_bytes(), MapFlags::ANY).unwrap().expect("an array's row");
    let times = |row: Vec<u8>| row[8..8 + 16 * 8].chunks_exact(8).map(number).collect::<Vec<_>>();
    (0..map.max_entries()).flat_map(|number| times(row(number))).collect()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
}

#[test]
fn the_lead_of_a_quarantined_lane_does_not_add_up() {
    undisturbed(|| {
        let mut rig = sent(2, 2);
        ack(&rig, &Tcp::ack(at(0), &[block(1, 2)]));
        rig.change(|bond| bond.damping = Some(damping(Duration::ZERO, Duration::from_nanos(1))));
        ack(&rig, &Tcp::ack(at(2), &[]));
        swallow(&rig, 2);
        let mut first = 2 + FLIGHT;
        ack(&rig, &Tcp::ack(at(first), &[]));
        // The other one dies: only the quarantined lane is left, and the failed one is taken along.
        rig.change(|bond| bond.failed_slots = 1 << 1);
        assert_eq!(send_anywhere(&rig, at(first), 8), [0; 8]);
        assert!(times(&rig).iter().any(|time| *time >= LEAD), "the lane was quarantined");
        rig.change(|bond| bond.failed_slots = 0);
        first += 8;
        let begun = Instant::now();
        while times(&rig).iter().any(|time| *time >= LEAD) {
            assert!(begun.elapsed() < LONG, "the lead stays");
            ack(&rig, &Tcp::ack(at(first), &[]));
            pass(Duration::from_millis(1));
        }
        let lanes = send_anywhere(&rig, at(first), 200);
        let share = lanes.iter().filter(|lane| **lane == 0).count();
        assert!((90..=110).contains(&share), "{share} of 200");
    });
}

/// What a quarantined lane is ahead, in virtual time (`QUARANTINE_LEAD`).
const LEAD: u64 = 1 << 58;

#[test]
fn a_lane_that_was_only_late_is_used_as_before_when_a_duplicate_shows_it() {
    undisturbed(|| {
        let mut rig = sent(2, 2);
        ack(&rig, &Tcp::ack(at(0), &[block(1, 2)]));
        rig.change(|bond| bond.damping = Some(damping(Duration::ZERO, Duration::from_nanos(1))));
        ack(&rig, &Tcp::ack(at(2), &[]));
        let hole = swallow(&rig, 2);
        assert!(!send_anywhere(&rig, at(2 + FLIGHT), 8).contains(&0), "the lane is quarantined");
        // All of it was sent again and has arrived. A duplicate of what left by the other lane says nothing.
        let first = 2 + FLIGHT + 8;
        let other = if hole == 2 { 3 } else { 2 };
        ack(&rig, &Tcp::ack(at(first), &[block(other, other + 1)]));
        assert!(!send_anywhere(&rig, at(first), 8).contains(&0), "the lane is quarantined");
        ack(&rig, &Tcp::ack(at(first + 8), &[block(hole, hole + 1)]));
        let lanes = send_anywhere(&rig, at(first + 8), 100);
        let share = lanes.iter().filter(|lane| **lane == 0).count();
        assert!((40..=60).contains(&share), "{share} of 100");
    });
}

#[test]
fn a_lane_that_lost_one_stripe_is_used_as_before() {
    undisturbed(|| {
        let mut rig = sent(2, 12);
        ack(&rig, &Tcp::ack(at(0), &[block(1, 2)]));
        rig.change(|bond| bond.damping = Some(damping(Duration::ZERO, Duration::from_nanos(1))));
        pass(STALL);
        ack(&rig, &Tcp::ack(at(0), &[block(1, 4), block(5, 12)]));
        let lanes = send_anywhere(&rig, at(12), 200);
        let share = lanes.iter().filter(|lane| **lane == 0).count();
        assert!((90..=110).contains(&share), "{share} of 200");
    });
}
