//! What is known of a plan's lanes when it gets other ones.
//!
//! What was measured of a lane counts on if as many lanes as before share the members at its ends, and again when that is so once more: a link
//! that failed comes back. Else it says something of the members: a lane waits for the one at its ends that more lanes share, so that one
//! carries what all its lanes do. Until a lane is measured it is assumed to have its part of that, by the weights of the lanes that share
//! the member now. That keeps a slow member from being sent far too much when another one fails.

use super::{End, LaneRate, both_ends, in_proportion};
use crate::{limits, plan::Lane};
use linkbraid_wire::MacAddr;

/// So many lanes are remembered: those of four plans.
const PAST_MAX: usize = 4 * limits::LANES_MAX;

/// The members at both ends of a lane: the own slot, and the peer's MAC.
type Ends = (u8, Option<MacAddr>);

fn is_at(end: End, (slot, peer_mac): Ends) -> bool {
    both_ends(slot, peer_mac).any(|one| one == end)
}

/// How many lanes share the members at both ends of this one.
fn sharing((slot, peer_mac): Ends, all: &[Ends]) -> Vec<usize> {
    let lanes = |end| all.iter().filter(|lane| is_at(end, **lane)).count();
    both_ends(slot, peer_mac).map(lanes).collect()
}

/// Lanes that a plan had, with how many shared the members at their ends; the latest one last.
#[derive(Debug, Default)]
pub(super) struct Past(Vec<(Vec<usize>, LaneRate)>);

impl Past {
    /// What is known of these lanes, in their order, after those.
    pub fn carry_over(&mut self, old: &[LaneRate], lanes: &[Lane]) -> Vec<LaneRate> {
        let before: Vec<Ends> = old.iter().map(|lane| (lane.slot, lane.peer_mac)).collect();
        let now: Vec<Ends> = lanes.iter().map(|lane| (lane.slot, lane.peer_mac)).collect();
        for (lane, ends) in old.iter().zip(&before).filter(|(lane, _)| lane.measured) {
            let shared = sharing(*ends, &before);
            self.0.retain(|(known, past)| *known != shared || (past.slot, past.peer_mac) != *ends);
            self.0.push((shared, lane.clone()));
        }
        self.0.drain(..self.0.len().saturating_sub(PAST_MAX));
        let weights_at = |end| -> u64 {
            let there = lanes.iter().zip(&now).filter(|(_, ends)| is_at(end, **ends));
            there.map(|(lane, _)| u64::from(lane.weight)).sum()
        };
        let known = |(lane, ends): (&Lane, &Ends)| {
            let shared = sharing(*ends, &now);
            let is_same = |(known, past): &&(Vec<usize>, LaneRate)| *known == shared && past.is(lane);
            self.0.iter().find(is_same).map(|(_, past)| past.clone()).unwrap_or_else(|| {
                let part = |end| {
                    Some(in_proportion(lane.weight.into(), carried_at(end, old, &before)?, weights_at(end)))
                };
                let mut new = LaneRate::new(lane);
                if let Some(rate) = both_ends(lane.slot, lane.peer_mac).filter_map(part).min() {
                    new.assume(rate);
                }
                new
            })
        };
        lanes.iter().zip(&now).map(known).collect()
    }

    /// Nothing counts any more.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

/// What a member carries: that is known if all its lanes were measured and no member at their other ends has more lanes.
fn carried_at(end: End, lanes: &[LaneRate], all: &[Ends]) -> Option<u64> {
    let there = || lanes.iter().zip(all).filter(|(_, ends)| is_at(end, **ends));
    let shared = there().count();
    let is_widest = |ends| sharing(ends, all).iter().all(|others| *others <= shared);
    let rates = there().map(|(lane, ends)| lane.rate_kbit.filter(|_| lane.measured && is_widest(*ends)));
    rates.reduce(|sum, rate| Some(sum? + rate?))?
}
