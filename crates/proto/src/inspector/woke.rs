//! What this host does to its own links, and what it has slept through: no failures of the links.

use super::{Inspector, LaneId, LaneState, MemberState, Wake, damper::Damper};
use crate::{Time, arp_plus::PeerKey, limits};

impl Inspector {
    /// This host resets the link of a member.
    pub(super) fn reset(&mut self, now: Time, slot: u8) {
        if let Some(member) = self.members.get_mut(&slot) {
            member.excused_until = now + limits::RESET_SETTLES;
        }
    }

    /// This host has slept: nothing that was counted, sent or waited for before says anything of its links now.
    pub(super) fn woke(&mut self, now: Time) {
        //= docs/arp-plus.md#11.14
        let up_delay = self.timing.up_delay;
        for (slot, member) in &mut self.members {
            (member.damper, member.excused_until) = (Damper::default(), now + limits::RESET_SETTLES);
            let soonest = now + up_delay;
            if let Some(until) =
                member.until.filter(|until| member.state == MemberState::Delayed && *until > soonest)
            {
                self.agenda.remove(&(until, Wake::Member(*slot)));
                self.agenda.insert((soonest, Wake::Member(*slot)));
                member.until = Some(soonest);
            }
        }
        let keys: Vec<PeerKey> = self.peers.keys().copied().collect();
        for peer in keys {
            self.woke_towards(now, peer);
        }
    }

    fn woke_towards(&mut self, now: Time, key: PeerKey) {
        let tries = self.timing.multiplier;
        let Some(peer) = self.peers.get_mut(&key) else { return };
        peer.excused_until = now + limits::RESET_SETTLES;
        let mut ids = Vec::new();
        for ((slot, index), lane) in &mut peer.lanes {
            (lane.damper, lane.held_until, lane.judged_from) = (Damper::default(), now, now);
            (lane.waiting, lane.excused) = (None, false);
            lane.nonces.clear();
            lane.length.forget_asked();
            match lane.state {
                LaneState::Down if lane.known || lane.heard => lane.tries = tries,
                LaneState::Init | LaneState::Up | LaneState::Suspect => {}
                LaneState::Cut | LaneState::Down => continue,
            }
            lane.next_probe = Some(now);
            ids.push(LaneId { peer: key, slot: *slot, index: *index });
        }
        ids.into_iter().for_each(|id| self.repace(now, id));
    }
}
