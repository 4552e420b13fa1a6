//! One lane is lost: what of the others that share a member with it?
//!
//! Lanes that carry nothing are proven seldom, so when a member dies the one that carried data is lost first, and a plan
//! made again would use the same failed member by a lane that was proven a second ago. So those that were not proven since
//! are not used until they are, which takes a sound one a round trip.

use super::{Inspector, LaneId, LaneState};
use crate::Time;

impl Inspector {
    /// The lane was lost for want of a proof since `missed`: others of its two members must prove themselves, unless one
    /// of that member's lanes already has, for then the member is not to blame.
    pub(super) fn doubt_siblings(&mut self, now: Time, lost: LaneId, missed: Time) {
        //= docs/arp-plus.md#11.12
        let by_member = |id: &LaneId| id.slot == lost.slot;
        let by_theirs = |id: &LaneId| id.peer == lost.peer && id.index == lost.index;
        let mut doubted = Vec::new();
        for shares in [&by_member as &dyn Fn(&LaneId) -> bool, &by_theirs] {
            let stale = self.stale_siblings(missed, shares);
            doubted.extend(stale.into_iter().flatten());
        }
        for id in doubted {
            if let Some(lane) = self.lane_mut(id) {
                lane.doubted = true;
                lane.next_probe = Some(now);
            }
            self.sound.changed(id.peer);
            self.out.peers.insert(id.peer);
            self.repace(now, id);
        }
    }

    /// The proven lanes that share a member with the lost one, which is not proven, and were not proven since; none if any was.
    fn stale_siblings(&self, missed: Time, shares: &dyn Fn(&LaneId) -> bool) -> Option<Vec<LaneId>> {
        let mut stale = Vec::new();
        for (key, peer) in &self.peers {
            for ((slot, index), lane) in &peer.lanes {
                let id = LaneId { peer: *key, slot: *slot, index: *index };
                if lane.state != LaneState::Up || !shares(&id) {
                    continue;
                }
                if lane.last_proof.is_some_and(|proof| proof >= missed) {
                    return None;
                }
                if !lane.doubted {
                    stale.push(id);
                }
            }
        }
        Some(stale)
    }
}
