//! What is known of a plan's lanes when it gets other ones.
//!
//! What was measured of a lane counts on if as many lanes as before share the members at its ends. If not, it says nothing of the lane, but
//! something of the members: a lane waits for the one at its ends that more lanes share, so that one carries what all its lanes do. Until
//! a new lane is measured it is assumed to have its part of that, by the weights of the lanes that share the member now. That keeps a slow
//! member from being sent far too much when another one fails.

use super::{End, LaneRate, both_ends, in_proportion};
use crate::plan::Lane;
use linkbraid_wire::MacAddr;

/// The members at both ends of a lane: the own slot, and the peer's MAC.
type Ends = (u8, Option<MacAddr>);

fn is_at(end: End, (slot, peer_mac): Ends) -> bool {
    both_ends(slot, peer_mac).any(|one| one == end)
}

/// The lanes of a plan, by their ends.
struct Sharing(Vec<Ends>);

impl Sharing {
    /// How many lanes share the members at both ends of this one.
    fn around(&self, (slot, peer_mac): Ends) -> Vec<usize> {
        both_ends(slot, peer_mac).map(|end| self.of(end)).collect()
    }

    fn of(&self, end: End) -> usize {
        self.0.iter().filter(|lane| is_at(end, **lane)).count()
    }
}

/// What is known of these lanes, in their order, after those.
pub(super) fn carry_over(old: &[LaneRate], lanes: &[Lane]) -> Vec<LaneRate> {
    let before = Sharing(old.iter().map(|lane| (lane.slot, lane.peer_mac)).collect());
    let now = Sharing(lanes.iter().map(|lane| (lane.slot, lane.peer_mac)).collect());
    let weights_at = |end| -> u64 {
        let there = lanes.iter().filter(|lane| is_at(end, (lane.slot, lane.peer_mac)));
        there.map(|lane| u64::from(lane.weight)).sum()
    };
    let known = |lane: &Lane| {
        let ends = (lane.slot, lane.peer_mac);
        let same = old.iter().find(|known| known.is(lane) && before.around(ends) == now.around(ends));
        let known = same.cloned().unwrap_or_else(|| {
            let part = |end| {
                let all = carried_at(end, old, &before)?;
                Some(in_proportion(lane.weight.into(), all, weights_at(end)))
            };
            let mut new = LaneRate::new(lane);
            if let Some(rate) = both_ends(lane.slot, lane.peer_mac).filter_map(part).min() {
                new.assume(rate);
            }
            new
        });
        LaneRate { weight_kbit: lane.weight.max(1).into(), ..known }
    };
    lanes.iter().map(known).collect()
}

/// What a member carries: that is known if all its lanes were measured and no member at their other ends has more lanes.
fn carried_at(end: End, lanes: &[LaneRate], sharing: &Sharing) -> Option<u64> {
    let ends = |lane: &LaneRate| (lane.slot, lane.peer_mac);
    let is_widest = |lane| sharing.around(lane).iter().all(|shared| *shared <= sharing.of(end));
    let there = lanes.iter().filter(|lane| is_at(end, ends(lane)));
    let rates = there.map(|lane| lane.rate_kbit.filter(|_| lane.measured && is_widest(ends(lane))));
    rates.reduce(|sum, rate| Some(sum? + rate?))?
}
