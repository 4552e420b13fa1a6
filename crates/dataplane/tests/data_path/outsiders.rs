//! What reports of plain hosts do to lanes that all of them share.

use crate::damp::{LATE, STALL, STRIPE, at, block};
use crate::frames::{Tcp, V4, V6, read_sack};
use crate::rig::{PLAIN, Rig, damping, own};
use crate::undisturbed::{pass, undisturbed};
use std::time::Duration;

/// Stripes of which lane 0 swallows all.
const FLIGHT: u32 = 12;

/// A flow of ours to a plain host, all of them behind one router.
struct Flow<'r> {
    rig: &'r Rig,
    far: u8,
    protocol: u16,
    next: u32,
}

impl<'r> Flow<'r> {
    /// To host `far`. Two stripes have gone, and the first one was reported late.
    fn new(rig: &'r Rig, far: u8, protocol: u16) -> Self {
        let mut flow = Self { rig, far, protocol, next: 0 };
        flow.send(2);
        flow.ack(0, &[block(1, 2)]);
        flow.ack(2, &[]);
        flow
    }

    /// The lanes of the next `n` stripes.
    fn send(&mut self, n: u32) -> Vec<usize> {
        let lane = |i: u32| {
            let data = Tcp { far: self.far, protocol: self.protocol, ..Tcp::data(at(i), STRIPE as usize) };
            let source = self.rig.out(&data.frame(PLAIN, own(0))).source();
            (0..self.rig.members.len()).find(|lane| own(*lane as u8) == source).expect("one of ours")
        };
        let lanes = (self.next..self.next + n).map(lane).collect();
        self.next += n;
        lanes
    }

    /// The reason that counted it, and the blocks that are left.
    fn ack(&self, to: u32, blocks: &[(u32, u32)]) -> (&'static str, Vec<(u32, u32)>) {
        let tcp = Tcp { far: self.far, protocol: self.protocol, ..Tcp::ack(at(to), blocks) };
        let ran = self.rig.arrives(0, &tcp.frame(own(0), PLAIN));
        (ran.reasons[0], read_sack(&ran.frame).0)
    }

    /// Sends a flight and acknowledges lane 1's part of it alone, when all of it is old.
    fn swallow(&mut self) {
        let first = self.next;
        let lanes = self.send(FLIGHT);
        pass(STALL);
        let hole = lanes.iter().position(|lane| *lane == 0).expect("lane 0 took part") as u32;
        let arrived = (hole..FLIGHT).filter(|i| lanes[*i as usize] == 1).take(3);
        let blocks: Vec<_> = arrived.map(|i| block(first + i, first + i + 1)).collect();
        self.ack(first + hole, &blocks.into_iter().rev().collect::<Vec<_>>());
        self.ack(self.next, &[]);
    }

    /// Sends a flight of which what lane 0 carries fills its hole late.
    fn fill_late(&mut self) {
        let first = self.next;
        let lanes = self.send(FLIGHT);
        let hole = lanes.iter().position(|lane| *lane == 0).map(|i| i as u32);
        // What costs 8 times as much has no turn in every flight.
        if let Some(hole) = hole.filter(|hole| hole + 1 < FLIGHT && lanes[*hole as usize + 1] != 0) {
            self.ack(first + hole, &[block(first + hole + 1, first + hole + 2)]);
            pass(3 * LATE);
        }
        self.ack(self.next, &[]);
    }

    /// How many of 400 stripes leave over lane 0.
    fn share_of_lane_0(&mut self) -> usize {
        let share = self.send(400).iter().filter(|lane| **lane == 0).count();
        self.ack(self.next, &[]);
        share
    }
}

/// Two lanes to plain hosts, for which every hole is old at once.
fn rig() -> Rig {
    let mut rig = Rig::new(2);
    rig.change(|bond| bond.damping = Some(damping(Duration::ZERO, Duration::from_nanos(1))));
    rig
}

#[test]
fn what_one_plain_host_reports_keeps_its_own_flow_off_a_lane() {
    undisturbed(|| {
        let rig = rig();
        let (mut liar, mut other) = (Flow::new(&rig, 2, V4), Flow::new(&rig, 3, V4));
        for _ in 0..3 {
            liar.swallow();
            assert_eq!(liar.send(8), [1; 8]);
            let share = other.share_of_lane_0();
            assert!((190..=210).contains(&share), "{share} of 400");
            // Its own flow comes back when the time of a quarantine is over.
            pass(Duration::from_millis(170));
            assert!(liar.send(8).contains(&0));
            liar.ack(liar.next, &[]);
        }
    });
}

#[test]
fn what_two_plain_hosts_report_counts_for_all() {
    undisturbed(|| {
        let rig = rig();
        let (mut one, mut two, mut other) =
            (Flow::new(&rig, 2, V4), Flow::new(&rig, 3, V4), Flow::new(&rig, 4, V4));
        one.swallow();
        assert!(other.send(8).contains(&0));
        other.ack(other.next, &[]);
        two.swallow();
        assert_eq!(other.send(8), [1; 8]);
    });
}

#[test]
fn two_addresses_of_one_ipv6_network_are_one_witness() {
    undisturbed(|| {
        let rig = rig();
        let (mut one, mut two, mut other) =
            (Flow::new(&rig, 2, V6), Flow::new(&rig, 3, V6), Flow::new(&rig, 4, V6));
        one.swallow();
        two.swallow();
        assert!(other.send(8).contains(&0));
    });
}

#[test]
fn one_plain_host_makes_a_lane_dear_only_to_a_limit() {
    undisturbed(|| {
        let rig = Rig::new(2);
        let (mut liar, mut other) = (Flow::new(&rig, 2, V4), Flow::new(&rig, 3, V4));
        for _ in 0..20 {
            liar.fill_late();
        }
        // A ninth of what both carry, and some more because it fades.
        let share = other.share_of_lane_0();
        assert!((35..100).contains(&share), "{share} of 400");
        // Another one says the same: no limit holds.
        for _ in 0..20 {
            liar.fill_late();
            other.fill_late();
        }
        let share = other.share_of_lane_0();
        assert!(share < 35, "{share} of 400");
    });
}
