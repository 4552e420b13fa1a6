//! Which lanes frames to a peer take, and in what shares.
//!
//! In: the own members, the peer's members, and which pairs hear each other. Out: lanes with weights. The task is a
//! transport problem: own members send at most their weight, the peer's members take at most theirs, only pairs
//! that hear each other can be used, and as much as possible is to get through. Of all such plans this one loads
//! each side as evenly as it can, then pairs equals with equals, then uses few lanes.
//!
//! 4 x 100 against 2 x 100 gives four lanes of 50, two into each; 5:1 against 5:1 gives fast to fast and slow to slow;
//! one fast member of a peer gets a lane from each of ours; separate switches give one lane a switch.
//!
//! [`plan`] makes lanes of whatever members it is given; [`default_lanes`] and [`class_lanes`] say which members those are.

use crate::limits;
use linkbraid_wire::MacAddr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

mod balance;
mod class;
mod flow;
#[cfg(test)]
mod tests;

pub use class::{
    ClassLanes, ClassTerms, OwnEnd, PeerEnd, Purpose, Source, class_lanes, default_lanes, peer_ends,
};
use flow::Flow;

/// Weights above this (4 Tbit/s) count as this, so that no sum overflows.
const WEIGHT_MBIT_MAX: u32 = 4_000_000;

/// Loads are computed in bit/s, so that shares of shares lose nothing that counts.
const BITS_PER_MBIT: u64 = 1_000_000;

/// A [`Lane::weight`] is in kbit/s.
const BITS_PER_KBIT: u64 = 1000;

/// An own member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanMember {
    /// Its number.
    pub slot: u8,
    /// Its share in Mbit/s; 0 counts as 1.
    pub weight_mbit: u32,
    /// Whether it takes and gives traffic.
    pub up: bool,
}

/// A member of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPeerMember {
    /// The peer's number of it.
    pub index: u8,
    /// Its MAC.
    pub mac: MacAddr,
    /// Its share in Mbit/s; 0 counts as 1.
    pub weight_mbit: u32,
    /// Whether the peer takes traffic there.
    pub up: bool,
}

/// One (own member, peer's member) pair and what it is to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// The own member.
    pub slot: u8,
    /// The MAC to send to; none: the frame keeps its destination (a plain host).
    pub peer_mac: Option<MacAddr>,
    /// The rate it is to carry, in kbit/s; the shares of a plan are these over their sum.
    pub weight: u32,
    /// The own class it is borrowed from, for use while that is idle; 0: not borrowed.
    pub class: u8,
}

/// The plan towards a peer, or, with no peer, towards plain hosts. Lanes ascend by slot, then by the peer's index.
///
/// No lane leaves by a failed member: without a live one the plan is empty. A peer whose members have all failed, or of
/// which no pair is heard, is tried on every pair: suspicion never takes the last lane.
pub fn plan(
    own: &[PlanMember],
    peer: Option<&[PlanPeerMember]>,
    heard: impl Fn(u8, u8) -> bool,
) -> Vec<Lane> {
    let mut rows: Vec<PlanMember> = own.iter().copied().filter(|member| member.up).collect();
    rows.sort_by_key(|member| (std::cmp::Reverse(member.weight_mbit), member.slot));
    let mut lanes = match peer.filter(|members| !members.is_empty()) {
        None => plain(&rows),
        Some(members) => {
            let any_up = members.iter().any(|member| member.up);
            let mut columns: Vec<PlanPeerMember> =
                members.iter().copied().filter(|member| member.up || !any_up).collect();
            columns.sort_by_key(|member| (std::cmp::Reverse(member.weight_mbit), member.index));
            paired(&rows, &columns, heard)
        }
    };
    lanes.sort_by_key(|(_, index, lane)| (lane.slot, *index));
    lanes.into_iter().map(|(_, _, lane)| lane).collect()
}

/// The most that these lanes to a peer carry together, whatever their shares, if the members at their ends carry so much.
pub fn most(lanes: &[Lane], own: impl Fn(u8) -> u64, peer: impl Fn(MacAddr) -> u64) -> u64 {
    let slots: BTreeSet<u8> = lanes.iter().map(|lane| lane.slot).collect();
    let macs: BTreeSet<MacAddr> = lanes.iter().filter_map(|lane| lane.peer_mac).collect();
    let is_lane = |slot, mac| lanes.iter().any(|lane| (lane.slot, lane.peer_mac) == (slot, Some(mac)));
    let allowed: Vec<Vec<bool>> =
        slots.iter().map(|slot| macs.iter().map(|mac| is_lane(*slot, *mac)).collect()).collect();
    let rows: Vec<u64> = slots.into_iter().map(own).collect();
    let columns: Vec<u64> = macs.into_iter().map(peer).collect();
    Flow::maximal(&rows, &columns, &allowed).total()
}

/// A lane with its load in bit/s and the peer's index.
type Loaded = (u64, u8, Lane);

fn bits(weight_mbit: u32) -> u64 {
    u64::from(weight_mbit.clamp(1, WEIGHT_MBIT_MAX)) * BITS_PER_MBIT
}

fn lane(bits: u64, slot: u8, peer: Option<(u8, MacAddr)>) -> Loaded {
    let weight = u32::try_from(bits.div_ceil(BITS_PER_KBIT)).unwrap_or(u32::MAX);
    let peer_mac = peer.map(|(_, mac)| mac);
    (bits, peer.map_or(0, |(index, _)| index), Lane { slot, peer_mac, weight, class: 0 })
}

/// Every live member in proportion to its weight; destinations stay as they are.
fn plain(rows: &[PlanMember]) -> Vec<Loaded> {
    rows.iter().map(|member| lane(bits(member.weight_mbit), member.slot, None)).collect()
}

/// Rows and columns are live and stand in the order of pairing: by weight, then by number.
fn paired(rows: &[PlanMember], columns: &[PlanPeerMember], heard: impl Fn(u8, u8) -> bool) -> Vec<Loaded> {
    let pair = |row: &PlanMember, column: &PlanPeerMember| heard(row.slot, column.index);
    let mut allowed: Vec<Vec<bool>> =
        rows.iter().map(|row| columns.iter().map(|column| pair(row, column)).collect()).collect();
    if !allowed.iter().flatten().any(|allowed| *allowed) {
        allowed = vec![vec![true; columns.len()]; rows.len()];
    }
    let rows_cap: Vec<u64> = rows.iter().map(|member| bits(member.weight_mbit)).collect();
    let columns_cap: Vec<u64> = columns.iter().map(|member| bits(member.weight_mbit)).collect();
    let loads = solve(&rows_cap, &columns_cap, &allowed);
    let mut lanes = Vec::new();
    for (row, loads) in rows.iter().zip(&loads) {
        for (column, load) in columns.iter().zip(loads) {
            lanes.push(lane(*load, row.slot, Some((column.index, column.mac))));
        }
    }
    worth_having(lanes)
}

/// The loads of all pairs, in bit/s.
fn solve(rows: &[u64], columns: &[u64], allowed: &[Vec<bool>]) -> Vec<Vec<u64>> {
    let total = Flow::maximal(rows, columns, allowed).total();
    // Neither side is loaded more than it must be, member by member, so both end up with the same sum.
    let rows = balance::even(rows, columns, allowed, total);
    let turned = balance::transposed(allowed, columns.len());
    let columns = balance::even(columns, &rows, &turned, total);
    let mut flow = Flow::empty(&rows, &columns, allowed);
    flow.pair_equals();
    flow.fill_in_order();
    flow.complete();
    flow.cancel_cycles();
    flow.loads
}

/// Leaves out lanes too thin to matter, then the thinnest above the limit.
fn worth_having(mut lanes: Vec<Loaded>) -> Vec<Loaded> {
    let total: u64 = lanes.iter().map(|(bits, ..)| bits).sum();
    lanes.retain(|(bits, ..)| bits.saturating_mul(limits::LANE_SHARE_MIN) >= total);
    lanes.sort_by_key(|(bits, index, lane)| (std::cmp::Reverse(*bits), lane.slot, *index));
    lanes.truncate(limits::LANES_MAX);
    lanes
}
