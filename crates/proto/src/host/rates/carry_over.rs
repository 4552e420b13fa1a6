//! What is known of a plan's lanes when it gets other ones.
//!
//! What was measured of a lane counts on if as many lanes as before share the members at its ends. If not, it says nothing of the lane, but
//! something of the members: a lane waits for the one at its ends that more lanes share, so that one carries what all its lanes do. Other
//! lanes are assumed to have their part of that until they are measured. That keeps a slow member from being sent far too much when another
//! one fails.

use super::{End, LaneRate, both_ends};
use crate::plan::Lane;
use linkbraid_wire::MacAddr;

/// The members at both ends of a lane: the own slot, and the peer's MAC.
type Ends = (u8, Option<MacAddr>);

/// The lanes of a plan, by their ends.
struct Sharing(Vec<Ends>);

impl Sharing {
    /// How many of them end at this member.
    fn of(&self, end: End) -> u64 {
        self.0.iter().map(|lane| u64::from(both_ends(lane.0, lane.1).any(|one| one == end))).sum()
    }

    /// The same of both ends of a lane.
    fn around(&self, (slot, peer_mac): Ends) -> Vec<u64> {
        both_ends(slot, peer_mac).map(|end| self.of(end)).collect()
    }
}

/// What is known of these lanes, in their order, after those.
pub(super) fn carry_over(old: &[LaneRate], lanes: &[Lane]) -> Vec<LaneRate> {
    let before = Sharing(old.iter().map(|lane| (lane.slot, lane.peer_mac)).collect());
    let now = Sharing(lanes.iter().map(|lane| (lane.slot, lane.peer_mac)).collect());
    let known = |lane: &Lane| {
        let at = (lane.slot, lane.peer_mac);
        let same = old.iter().find(|known| known.is(lane) && before.around(at) == now.around(at));
        same.cloned().unwrap_or_else(|| {
            let mut new = LaneRate::new(lane);
            let parts = both_ends(lane.slot, lane.peer_mac)
                .filter_map(|end| Some(carries(old, &before, end)? / now.of(end)));
            if let Some(rate) = parts.min() {
                new.assume(rate);
            }
            new
        })
    };
    lanes.iter().map(known).collect()
}

/// What all lanes at this member carry, if all of them were measured and it is what they wait for.
fn carries(lanes: &[LaneRate], sharing: &Sharing, end: End) -> Option<u64> {
    let shared = sharing.of(end);
    let mut sum = None;
    for lane in lanes.iter().filter(|lane| both_ends(lane.slot, lane.peer_mac).any(|one| one == end)) {
        let is_narrowest = sharing.around((lane.slot, lane.peer_mac)).iter().all(|other| *other <= shared);
        sum = Some(sum.unwrap_or(0) + lane.rate_kbit.filter(|_| lane.measured && is_narrowest)?);
    }
    sum
}
