//! Deadlines and proofs: what becomes of lanes, and how often each is probed.

use super::{
    Action, Counter, Event, Inspector, LaneId, LaneReason, LaneSignal, LaneState, MemberReason, MemberSignal,
    Wake, lane::Lane, step_lane,
};
use crate::{Time, arp_plus::PeerKey, limits};
use std::time::Duration;

impl Inspector {
    /// Does all that is due.
    pub(super) fn run_timers(&mut self, now: Time) {
        while let Some((at, wake)) = self.agenda.first().copied() {
            if at > now {
                return;
            }
            self.agenda.pop_first();
            match wake {
                Wake::Idle => self.look_at_idle(now),
                Wake::Member(slot) => {
                    self.member_signal(now, slot, MemberSignal::Waited, MemberReason::Waited);
                }
                Wake::Lane(id) => {
                    if let Some(lane) = self.lane_mut(id) {
                        lane.wake = None;
                    }
                    self.lane_due(now, id);
                    self.length_due(now, id);
                    self.rewake(id);
                }
            }
        }
    }

    fn lane_due(&mut self, now: Time, id: LaneId) {
        let timing = self.timing;
        let Some(lane) = self.lane_mut(id) else { return };
        let step = lane.step(&timing);
        if let Some(deadline) = lane.deadline(&timing).filter(|deadline| *deadline <= now) {
            if now.since(deadline) >= step && !lane.excused {
                //= docs/arp-plus.md#11.5
                // This host was late itself, so its silence says nothing of the lane: one interval more.
                lane.excused = true;
                lane.judged_from = lane.judged_from + (now.since(deadline) + step);
                lane.next_probe = Some(now);
                self.out.counters.one(Counter::OwnDelay);
            } else if lane.state.is_live() && lane.was_asked_too_little(&timing) {
                lane.judged_from = lane.judged_from + step / limits::PLAIN_REPEAT_DIVISOR;
            } else {
                self.expire(now, id);
            }
        }
        let Some(lane) = self.lane_mut(id) else { return };
        if lane.next_probe.is_none_or(|at| at > now) {
            return;
        }
        if lane.state == LaneState::Down && lane.tries == 0 && lane.fresh {
            // Tested and found wanting. What is heard no longer counts, if any lane of the peer is proven.
            lane.fresh = false;
            lane.next_probe = None;
            self.out.peers.insert(id.peer);
            self.sound.changed(id.peer);
            return self.repace(now, id);
        }
        self.ask(now, id);
    }

    /// No proof within the detection time.
    fn expire(&mut self, now: Time, id: LaneId) {
        let timing = self.timing;
        let Some(lane) = self.lane_mut(id) else { return };
        let missed = match lane.waiting {
            // Proofs are rare: what matters is who has answered since this one did not.
            Some(asked) if lane.plain => asked,
            _ => lane.last_proof.unwrap_or(lane.since) + lane.interval,
        };
        let (may_wait, step) =
            (lane.plain && now.since(missed) < lane.detection(&timing), lane.step(&timing));
        if self.other_is_proven(id, missed) {
            self.signal_lane(now, id, LaneSignal::Fail, LaneReason::NoAnswer);
            self.doubt_siblings(now, id, missed);
        } else if let Some(lane) = self.lane_mut(id).filter(|_| may_wait) {
            // A plain host that answers nowhere may be slow.
            lane.judged_from = lane.judged_from + step;
        } else {
            self.signal_lane(now, id, LaneSignal::Doubt, LaneReason::NoneAnswers);
            // A suspect that was doubted again waits for the next proof of any other lane.
            if let Some(lane) = self.lane_mut(id) {
                lane.armed = false;
            }
        }
    }

    /// The peer says that it has lost the lane, in a frame that brought no proof.
    pub(super) fn peer_lost(&mut self, now: Time, id: LaneId) {
        if self.other_is_proven(id, Time::ZERO) {
            let missed =
                self.lane_mut(id).map_or(now, |lane| lane.last_proof.unwrap_or(lane.since) + lane.interval);
            self.signal_lane(now, id, LaneSignal::Fail, LaneReason::PeerLost);
            self.doubt_siblings(now, id, missed);
        } else {
            self.signal_lane(now, id, LaneSignal::Doubt, LaneReason::NoneAnswers);
        }
    }

    /// Whether another lane of the peer is up and was proven since.
    pub(super) fn other_is_proven(&self, id: LaneId, since: Time) -> bool {
        //= docs/arp-plus.md#11.6
        let Some(peer) = self.peers.get(&id.peer) else { return false };
        peer.lanes.iter().any(|(at, lane)| {
            *at != (id.slot, id.index)
                && lane.state == LaneState::Up
                && lane.last_proof.is_some_and(|proof| proof >= since)
        })
    }

    /// A nonce that left at `sent` has come back, with a PROBE (`asked`) or a PROBE-REPLY.
    pub(super) fn proof(&mut self, now: Time, id: LaneId, sent: Time, asked: bool) {
        let timing = self.timing;
        let admit = timing.admit;
        let Some(peer) = self.peers.get_mut(&id.peer) else { return };
        let answered_before = std::mem::replace(&mut peer.answers, true);
        if !answered_before && peer.plain.is_none() {
            self.make_lanes_of(now, id.peer, true);
        }
        let Some(peer) = self.peers.get_mut(&id.peer) else { return };
        let leads = peer.leads;
        let alone = !peer.lanes.values().any(|lane| lane.state == LaneState::Up);
        let plain = peer.plain.is_some();
        let Some(lane) = peer.lanes.get_mut(&(id.slot, id.index)) else { return };
        if alone && answered_before && lane.state == LaneState::Suspect {
            //= docs/arp-plus.md#11.13
            peer.excused_until = now + limits::RESET_SETTLES;
        }
        let speaks = plain && alone && lane.state == LaneState::Down;
        // Asked before it was given up, and answered later than an interval: it was slow and has lost nothing.
        //= docs/arp-plus.md#11.20
        let slow = lane.state == LaneState::Down && lane.known && sent < lane.since;
        let slow = slow && !asked && now.since(sent) > timing.interval;
        if slow {
            lane.damper.forgive();
            lane.held_until = now;
        }
        (lane.last_proof, lane.judged_from, lane.waiting) = (Some(now), now, None);
        (lane.excused, lane.armed, lane.stalled) = (false, true, false);
        lane.proofs += 1;
        let is_told = lane.proofs == 1 || peer.told_from.take_if(|from| *from <= sent).is_some();
        if is_told && !plain {
            let action = Action::Proven { peer: id.peer, mac: lane.mac, asked: sent };
            self.out.push(action);
        }
        if std::mem::take(&mut lane.doubted) {
            self.out.peers.insert(id.peer);
            self.sound.changed(id.peer);
        }
        match lane.state {
            LaneState::Down => (lane.answered, lane.first_answer) = (1, now),
            LaneState::Init => lane.answered = lane.answered.saturating_add(1),
            LaneState::Cut | LaneState::Up | LaneState::Suspect => {}
        }
        //= docs/arp-plus.md#11.3
        let trusted = now >= lane.held_until || alone;
        let (signal, reason) = match lane.state {
            LaneState::Suspect => (LaneSignal::Proof, LaneReason::ProvenAgain),
            _ if slow => (LaneSignal::Admit, LaneReason::Slow),
            _ if lane.answered >= admit && trusted => (LaneSignal::Admit, LaneReason::Admitted),
            _ => (LaneSignal::Proof, LaneReason::Answered),
        };
        self.signal_lane(now, id, signal, reason);
        self.repace(now, id);
        //= docs/arp-plus.md#11.8
        let Some(lane) = self.lane_mut(id) else { return };
        let (interval, slowest) = (lane.interval, lane.slowest);
        //= docs/arp-plus.md#11.20
        let gap = if asked && !leads && slowest <= interval {
            self.random.between(interval * 9 / 8, interval * 5 / 4)
        } else {
            self.random.between(interval * 3 / 4, interval)
        };
        if let Some(lane) = self.lane_mut(id) {
            lane.next_probe = Some(now + gap);
        }
        self.rewake(id);
        self.arm_suspects(now, id);
        if speaks {
            self.test_other_lanes(now, id, !answered_before);
        }
    }

    /// Asks a peer over some of its proven lanes whether it is what it was ([`Action::Proven`] says that it is); false where
    /// none was proven lately.
    pub fn challenge(&mut self, now: Time, key: PeerKey) -> bool {
        //= docs/arp-plus.md#6.8
        if self.peers.get(&key).is_some_and(|peer| peer.unprobed && peer.answers) {
            self.probe_again(now, key);
            let Some(peer) = self.peers.get_mut(&key) else { return false };
            peer.told_from = Some(now);
            return !peer.lanes.is_empty();
        }
        let Some(peer) = self.peers.get_mut(&key) else { return false };
        let proven = |lane: &Lane| lane.last_proof.filter(|proof| now.since(*proof) < limits::PROVEN_LATELY);
        let up = peer.lanes.iter().filter(|(_, lane)| lane.state == LaneState::Up);
        let mut up: Vec<_> = up.filter_map(|(at, lane)| Some((proven(lane)?, *at))).collect();
        up.sort_unstable();
        if up.is_empty() {
            return false;
        }
        peer.told_from = Some(now);
        for (_, (slot, index)) in up.into_iter().rev().take(limits::PROBED_OTHERS_MAX) {
            let id = LaneId { peer: key, slot, index };
            if let Some(lane) = self.lane_mut(id) {
                (lane.urgent, lane.next_probe) = (true, Some(now));
            }
            self.rewake(id);
        }
        true
    }

    /// The peer answers on one lane: suspects get the detection time to do so, too.
    fn arm_suspects(&mut self, now: Time, proven: LaneId) {
        let Some(peer) = self.peers.get_mut(&proven.peer) else { return };
        let mut armed = Vec::new();
        for ((slot, index), lane) in &mut peer.lanes {
            if lane.state == LaneState::Suspect && !lane.armed {
                (lane.armed, lane.judged_from, lane.next_probe) = (true, now, Some(now));
                if lane.plain {
                    // What was asked before was asked while the host did not answer at all.
                    (lane.urgent, lane.waiting) = (true, None);
                    lane.nonces.clear();
                }
                armed.push(LaneId { slot: *slot, index: *index, ..proven });
            }
        }
        armed.into_iter().for_each(|id| self.rewake(id));
    }

    /// One step of the lane's machine, and what it entails.
    pub(super) fn signal_lane(&mut self, now: Time, id: LaneId, signal: LaneSignal, reason: LaneReason) {
        let timing = self.timing;
        let member = self.members.get(&id.slot);
        let Some(peer) = self.peers.get_mut(&id.peer) else { return };
        //= docs/arp-plus.md#11.13
        let is_excused = now < peer.excused_until || member.is_some_and(|member| member.is_excused(now));
        let Some(lane) = peer.lanes.get_mut(&(id.slot, id.index)) else { return };
        let (old, new) = (lane.state, step_lane(lane.state, signal));
        if old == new {
            return;
        }
        let held_for = lane.last_proof.unwrap_or(lane.since);
        (lane.state, lane.reason, lane.since) = (new, reason, now);
        lane.doubted = false;
        if old == LaneState::Up {
            // If somebody made both ends believe numbers that will never come, neither would answer the other one.
            //= docs/arp-plus.md#11.5
            lane.peer_seen = None;
        }
        peer.live = peer.live + usize::from(new.is_live()) - usize::from(old.is_live());
        let took = match new {
            LaneState::Up if old == LaneState::Suspect => Duration::ZERO,
            LaneState::Up => now.since(lane.first_answer),
            LaneState::Down | LaneState::Suspect => now.since(held_for),
            LaneState::Cut | LaneState::Init => Duration::ZERO,
        };
        match (old, new) {
            (_, LaneState::Cut) => {
                (lane.fresh, lane.waiting, lane.answered, lane.tries) = (false, None, 0, 0);
                lane.nonces.clear();
            }
            (LaneState::Cut, _) => {
                (lane.tries, lane.judged_from) = (timing.multiplier, now);
            }
            (LaneState::Up | LaneState::Suspect, LaneState::Down) => {
                if !is_excused {
                    lane.damper.fail(now, &timing);
                    lane.held_until = now + lane.damper.hold(now, &timing);
                }
                (lane.answered, lane.tries, lane.waiting) = (0, 0, None);
                // The peer learns at once that it is lost.
                lane.next_probe = Some(now);
            }
            (LaneState::Init, LaneState::Down) => {
                // What was heard no longer counts.
                self.out.peers.insert(id.peer);
                (lane.fresh, lane.answered, lane.tries, lane.waiting) = (false, 0, 0, None);
            }
            (_, LaneState::Up) => (lane.known, lane.fresh, lane.armed) = (true, false, true),
            (_, LaneState::Suspect) => lane.armed = false,
            (_, LaneState::Init | LaneState::Down) => {}
        }
        self.sound.changed(id.peer);
        self.report(id, old, new, reason, took);
        self.test_length(now, id);
        self.repace(now, id);
    }

    fn report(&mut self, id: LaneId, old: LaneState, new: LaneState, reason: LaneReason, took: Duration) {
        if old.is_live() || new.is_live() || LaneState::Cut == old || LaneState::Cut == new {
            self.out.peers.insert(id.peer);
        }
        match (old, new) {
            (LaneState::Suspect, LaneState::Up) => {}
            (_, LaneState::Up) => self.out.counters.one(Counter::LaneAdmitted),
            (_, LaneState::Suspect) => self.out.counters.one(Counter::LaneSuspect),
            (LaneState::Up | LaneState::Suspect, LaneState::Down) => {
                self.out.counters.one(Counter::LaneLost);
                if self.peers.get(&id.peer).is_some_and(|peer| peer.plain.is_some()) {
                    self.out.counters.one(Counter::PlainLaneLost);
                }
            }
            _ => {}
        }
        if old.is_live() || new.is_live() {
            self.out.event(Event::Lane { lane: id, old, new, reason, took });
        }
    }

    /// How often the lane is probed from now on.
    pub(super) fn repace(&mut self, now: Time, id: LaneId) {
        let (timing, spacing, crowded) = (&self.timing, self.spacing(id), self.unprobed > 0);
        let Some(peer) = self.peers.get_mut(&id.peer) else { return };
        let Some(lane) = peer.lanes.get_mut(&(id.slot, id.index)) else { return };
        let pace = lane.pace_towards(now, peer.answers, spacing, timing);
        let pace = if crowded && !peer.in_use { lane.pace_in_crowd(pace, peer.near, timing) } else { pace };
        self.load.replace(lane.demand, pace.demand());
        lane.demand = pace.demand();
        //= docs/arp-plus.md#11.9
        let Some(interval) = self.load.interval(pace) else {
            lane.next_probe = None;
            return self.rewake(id);
        };
        let shorter = interval * 5 / 4 < lane.interval;
        lane.interval = interval;
        if shorter && !lane.plain {
            // The detection time shrinks, but leaves two intervals for answers at the new pace.
            let spent = interval * u32::from(timing.multiplier.saturating_sub(limits::PROBE_MULTIPLIER_MIN));
            lane.judged_from = lane.judged_from.max(now.minus(spent));
        }
        if shorter || lane.next_probe.is_none() {
            let soon = interval.min(timing.interval) / limits::PROBE_REPEAT_DIVISOR;
            let at = now + self.random.between(Duration::ZERO, soon);
            lane.next_probe = Some(lane.next_probe.map_or(at, |next| next.min(at)));
        }
        self.rewake(id);
    }
}
