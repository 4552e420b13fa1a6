//! What comes from the world around: members, peers, plans, settings.

use super::{
    Counter, Event, Inspector, LaneId, LaneReason, LaneSignal, LaneState, LaneUse, MemberReason,
    MemberReport, MemberSignal, MemberState, Peer, PeerMemberReport, PeerReport, Plain, Timing, Usage, Wake,
    lane::Lane, member::Member, rate::Demand,
};
use crate::{Time, arp_plus::PeerKey, limits};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

impl Peer {
    /// It may be made up, and then each lane is one too many: only those are made by which it was heard.
    fn is_only_heard(&self) -> bool {
        //= docs/arp-plus.md#11.10
        self.plain.is_none() && !self.answers
    }
}

impl Inspector {
    pub(super) fn set_members(&mut self, now: Time, mut reports: Vec<MemberReport>) {
        if reports.len() > limits::MEMBERS_MAX {
            self.out.counters.add(Counter::LimitMembers, (reports.len() - limits::MEMBERS_MAX) as u64);
            reports.truncate(limits::MEMBERS_MAX);
        }
        // Polls report the same again and again.
        if reports.iter().eq(self.members.values().map(|member| &member.report)) {
            return;
        }
        let reported: BTreeSet<u8> = reports.iter().map(|report| report.slot).collect();
        let gone: Vec<u8> = self.members.keys().copied().filter(|slot| !reported.contains(slot)).collect();
        gone.into_iter().for_each(|slot| self.remove_member(slot));
        for report in reports {
            self.take_report(now, report);
        }
        self.need_one(now);
        let keys: Vec<PeerKey> = self.peers.keys().copied().collect();
        keys.into_iter().for_each(|key| self.make_lanes_of(now, key, false));
    }

    fn take_report(&mut self, now: Time, report: MemberReport) {
        let slot = report.slot;
        let old = self.members.get(&slot).map(|member| (member.report, member.state));
        let changed = match self.members.get_mut(&slot) {
            Some(member) => member.take(now, report, &self.timing),
            None => {
                let member = Member::new(now, report);
                let reason = member.reason;
                self.members.insert(slot, member);
                Some(reason)
            }
        };
        let reported = old.map_or((None, None), |(report, _)| (report.speed_mbit, report.full_duplex));
        if reported.0 != report.speed_mbit && old.is_some() {
            self.out.event(Event::Speed { slot, old: reported.0, new: report.speed_mbit });
            // Weights follow from speed.
            self.out.all = true;
        }
        if report.full_duplex == Some(false) && reported.1 != Some(false) {
            self.out.event(Event::HalfDuplex { slot });
        }
        if let Some(reason) = changed {
            self.member_changed(now, slot, old.map(|(_, state)| state), reason);
        }
    }

    fn remove_member(&mut self, slot: u8) {
        let Some(member) = self.members.remove(&slot) else { return };
        if let Some(until) = member.until {
            self.agenda.remove(&(until, Wake::Member(slot)));
        }
        let gone: Vec<LaneId> = self.lane_ids(|_, lane| lane.0 == slot);
        gone.into_iter().for_each(|id| self.remove_lane(id));
        self.out.all = true;
        let (old, reason) = (Some(member.state), MemberReason::Left);
        self.out.event(Event::Member { slot, old, new: None, reason, took: Duration::ZERO });
    }

    /// A member's state is another one: its lanes follow.
    pub(super) fn member_changed(
        &mut self,
        now: Time,
        slot: u8,
        old: Option<MemberState>,
        reason: MemberReason,
    ) {
        let Some(member) = self.members.get(&slot) else { return };
        let (new, until, found_at) = (member.state, member.until, member.found_at);
        // Whatever waited on the agenda is of the state before.
        self.agenda.retain(|(_, wake)| *wake != Wake::Member(slot));
        if let Some(until) = until {
            self.agenda.insert((until, Wake::Member(slot)));
        }
        let took = if new == MemberState::Up { now.since(found_at) } else { Duration::ZERO };
        if new == MemberState::Down && old.is_some() {
            self.out.counters.one(Counter::MemberDown);
        }
        self.out.all = true;
        self.out.event(Event::Member { slot, old, new: Some(new), reason, took });
        self.lane_ids(|_, lane| lane.0 == slot).into_iter().for_each(|id| self.check_ends(now, id));
    }

    /// Without a member that is up, the one that has waited longest waits no more.
    pub(super) fn need_one(&mut self, now: Time) {
        //= docs/arp-plus.md#11.2
        if self.members.values().any(|member| member.state == MemberState::Up) {
            return;
        }
        let waiting = self.members.iter().filter_map(|(slot, member)| Some((member.until?, *slot)));
        let Some((_, slot)) = waiting.min() else { return };
        self.member_signal(now, slot, MemberSignal::Needed, MemberReason::OnlyOne);
    }

    pub(super) fn member_signal(&mut self, now: Time, slot: u8, signal: MemberSignal, reason: MemberReason) {
        let Some(member) = self.members.get_mut(&slot) else { return };
        let old = member.state;
        if let Some(reason) = member.signal(now, signal, reason) {
            self.member_changed(now, slot, Some(old), reason);
        }
    }

    pub(super) fn set_peers(&mut self, now: Time, reports: Vec<PeerReport>) {
        let reported: BTreeMap<PeerKey, PeerReport> =
            reports.into_iter().map(|report| (report.key, report)).collect();
        self.forget(|key, peer| peer.plain.is_none() && !reported.contains_key(key));
        for (key, report) in reported {
            self.set_peer(now, key, Some(report));
        }
    }

    pub(super) fn set_peer(&mut self, now: Time, key: PeerKey, report: Option<PeerReport>) {
        //= docs/arp-plus.md#11.10
        let PeerKey::Host(host) = key else { return };
        match (self.peers.get_mut(&key), report.filter(|report| report.probes)) {
            (Some(_), None) => self.forget_one(key),
            (Some(peer), Some(report)) if peer.report != report => {
                let restarted = peer.report.epoch != report.epoch;
                if restarted {
                    peer.told_from = Some(now);
                }
                let macs = |report: &PeerReport| -> Vec<_> {
                    report.members.iter().map(|member| (member.index, member.mac)).collect()
                };
                let is_another = restarted || macs(&peer.report) != macs(&report);
                peer.report = report;
                if is_another {
                    self.test_again(now, key);
                }
                self.make_lanes_of(now, key, false);
            }
            (None, Some(report)) => self.meet(now, report, self.host_id < host, None),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    /// A peer, or a plain host, is met.
    pub(super) fn meet(&mut self, now: Time, report: PeerReport, leads: bool, plain: Option<Plain>) {
        let (key, lanes) = (report.key, BTreeMap::new());
        let (told_from, excused_until) = (Some(now), Time::ZERO);
        let peer = Peer {
            report,
            plain,
            leads,
            answers: false,
            told_from,
            lanes,
            live: 0,
            excused_until,
            in_use: self.is_in_use(&key),
            near: false,
            only_lane: None,
            unprobed: false,
            idle_from: now + limits::IDLE_AFTER_MET,
        };
        self.peers.insert(key, peer);
        self.ask_by_one(key);
        self.make_lanes_of(now, key, true);
    }

    /// Forgets all that are `gone`.
    pub(super) fn forget(&mut self, gone: impl Fn(&PeerKey, &Peer) -> bool) {
        let keys = self.peers.iter().filter(|(key, peer)| gone(key, peer)).map(|(key, _)| *key);
        keys.collect::<Vec<PeerKey>>().into_iter().for_each(|key| self.forget_one(key));
    }

    fn forget_one(&mut self, key: PeerKey) {
        self.remove_lanes_of(key);
        if self.peers.remove(&key).is_some_and(|peer| peer.unprobed) {
            self.unprobed -= 1;
        }
    }

    pub(super) fn remove_lanes_of(&mut self, key: PeerKey) {
        self.lanes_of(key).into_iter().for_each(|id| self.remove_lane(id));
    }

    fn lanes_of(&self, peer: PeerKey) -> Vec<LaneId> {
        let lanes = self.peers.get(&peer).into_iter().flat_map(|peer| peer.lanes.keys());
        lanes.map(|(slot, index)| LaneId { peer, slot: *slot, index: *index }).collect()
    }

    pub(super) fn repace_lanes_of(&mut self, now: Time, key: PeerKey) {
        self.lanes_of(key).into_iter().for_each(|id| self.repace(now, id));
    }

    /// How many lanes a peer is to have: each own member with each of its own. One that has not answered has those that are heard.
    pub(super) fn lanes_wanted(&self, peer: &Peer) -> usize {
        let heard = |member: &PeerMemberReport| {
            self.members.keys().filter(|slot| member.heard.contains(slot)).count()
        };
        let wanted = match peer.is_only_heard() || peer.only_lane.is_some() {
            true => peer.report.members.iter().map(heard).sum(),
            false => peer.report.members.len() * self.members.len(),
        };
        if peer.only_lane.is_some() { wanted.min(1) } else { wanted }
    }

    /// Gives a peer the lanes that it is to have.
    pub(super) fn make_lanes_of(&mut self, now: Time, key: PeerKey, fresh: bool) {
        let Some(peer) = self.peers.get(&key).filter(|peer| !peer.unprobed) else { return };
        let members = peer.report.members.clone();
        let (only_heard, wanted) = (peer.is_only_heard(), self.lanes_wanted(peer));
        let stale = |at: &(u8, u8), lane: &Lane| {
            !members.iter().any(|member| member.index == at.1 && member.mac == lane.mac)
        };
        let gone: Vec<(u8, u8)> =
            peer.lanes.iter().filter(|(at, lane)| stale(at, lane)).map(|(at, _)| *at).collect();
        gone.into_iter().for_each(|(slot, index)| self.remove_lane(LaneId { peer: key, slot, index }));
        let only = self.only_lane(key);
        let slots: Vec<u8> = self.members.keys().copied().collect();
        self.make_room(key, wanted);
        for (row, slot) in slots.into_iter().enumerate() {
            for (column, member) in members.iter().enumerate() {
                let id = LaneId { peer: key, slot, index: member.index };
                let heard = member.heard.contains(&slot);
                if self.lane_mut(id).is_some() {
                    self.set_heard(now, id, heard);
                    self.check_ends(now, id);
                } else if only_heard && !heard || only.is_some_and(|only| only != Some((slot, member.index)))
                {
                    // Once it has answered, or something is sent to it.
                } else if self.lanes < limits::PROBED_LANES_MAX {
                    // Equal numbers first: those are the lanes that plans use.
                    let turn = (column + members.len() - row % members.len()) % members.len();
                    self.add_lane(now, id, member.mac, (fresh, heard), turn as u32);
                } else {
                    self.out.counters.one(Counter::LimitLanes);
                }
            }
        }
    }

    /// Lets a peer have the lanes of those that never answered a probe: they are judged by what is heard from now on. So are
    /// those that nothing is sent to, if something is sent to this one.
    fn make_room(&mut self, key: PeerKey, wanted: usize) {
        //= docs/arp-plus.md#11.16
        let has = self.peers.get(&key).map_or(0, |peer| peer.lanes.len());
        while self.lanes + wanted.saturating_sub(has) > limits::PROBED_LANES_MAX {
            let tested =
                |peer: &Peer| !peer.lanes.is_empty() && !peer.lanes.values().any(|lane| lane.is_tested());
            let useless = |other: &PeerKey, peer: &Peer| {
                *other != key && peer.plain.is_none() && !peer.answers && tested(peer)
            };
            let other = self.peers.iter().find(|(other, peer)| useless(other, peer)).map(|(other, _)| *other);
            match other {
                Some(other) => self.forget_one(other),
                //= docs/arp-plus.md#11.21
                None if self.peers.get(&key).is_some_and(|peer| peer.in_use)
                    && self.make_room_of_idle(&key) => {}
                None => return,
            }
        }
    }

    fn add_lane(
        &mut self,
        now: Time,
        id: LaneId,
        mac: linkbraid_wire::MacAddr,
        known: (bool, bool),
        turn: u32,
    ) {
        let usage = self.usage_of(id);
        let (fresh, heard) = known;
        let fresh = fresh && self.ends(id).is_ok();
        let step = self.timing.interval / limits::PROBE_REPEAT_DIVISOR;
        let first = now + step * turn + self.random.between(Duration::ZERO, step);
        let Some(peer) = self.peers.get_mut(&id.peer) else { return };
        let mut lane = Lane::new(now, mac, fresh, &self.timing);
        lane.plain = peer.plain.is_some();
        (lane.heard, lane.usage, lane.next_probe) = (heard, usage, Some(first));
        peer.lanes.insert((id.slot, id.index), Box::new(lane));
        self.lanes += 1;
        self.check_ends(now, id);
    }

    fn remove_lane(&mut self, id: LaneId) {
        let Some(peer) = self.peers.get_mut(&id.peer) else { return };
        let Some(lane) = peer.lanes.remove(&(id.slot, id.index)) else { return };
        peer.live -= usize::from(lane.state.is_live());
        self.lanes -= 1;
        self.load.replace(lane.demand, Demand::default());
        if let Some(at) = lane.wake {
            self.agenda.remove(&(at, Wake::Lane(id)));
        }
        self.out.peers.insert(id.peer);
        self.sound.changed(id.peer);
    }

    fn set_heard(&mut self, now: Time, id: LaneId, heard: bool) {
        let tries = self.timing.multiplier;
        let Some(lane) = self.lane_mut(id) else { return };
        let newly = heard && !lane.heard;
        lane.heard = heard;
        if newly && lane.state == LaneState::Down {
            lane.tries = tries;
            lane.next_probe = Some(now);
        }
        self.repace(now, id);
    }

    /// Why a lane cannot carry anything, if so.
    pub(super) fn ends(&self, id: LaneId) -> Result<(), LaneReason> {
        if self.members.get(&id.slot).is_none_or(|member| member.state != MemberState::Up) {
            return Err(LaneReason::MemberDown);
        }
        let report = self.peers.get(&id.peer).map(|peer| &peer.report);
        let reported =
            report.and_then(|report| report.members.iter().find(|member| member.index == id.index));
        if reported.is_none_or(|member| !member.up) { Err(LaneReason::PeerMemberDown) } else { Ok(()) }
    }

    /// Tells the lane's machine of the members at both ends.
    fn check_ends(&mut self, now: Time, id: LaneId) {
        match self.ends(id) {
            Ok(()) => self.signal_lane(now, id, LaneSignal::Mend, LaneReason::MembersUp),
            Err(reason) => self.signal_lane(now, id, LaneSignal::Cut, reason),
        }
    }

    pub(super) fn set_plan(&mut self, now: Time, lanes: Vec<LaneUse>) {
        let new: BTreeMap<LaneId, Usage> = lanes.into_iter().map(|used| (used.lane, used.usage)).collect();
        let old = std::mem::replace(&mut self.usage, new);
        let touched: BTreeSet<LaneId> = old.keys().chain(self.usage.keys()).copied().collect();
        let peers: BTreeSet<PeerKey> = touched.iter().map(|id| id.peer).collect();
        peers.into_iter().for_each(|key| self.follow_use(now, key));
        touched.into_iter().for_each(|id| self.use_changed(now, id));
    }

    pub(super) fn set_plan_of(&mut self, now: Time, peer: PeerKey, lanes: Vec<LaneUse>) {
        let at = |number| LaneId { peer, slot: number, index: number };
        let old: Vec<LaneId> = self.usage.range(at(0)..=at(u8::MAX)).map(|(id, _)| *id).collect();
        old.iter().for_each(|id| _ = self.usage.remove(id));
        let new = lanes.into_iter().filter(|used| used.lane.peer == peer);
        let new: Vec<(LaneId, Usage)> = new.map(|used| (used.lane, used.usage)).collect();
        self.usage.extend(new.iter().copied());
        let touched: BTreeSet<LaneId> = old.into_iter().chain(new.into_iter().map(|(id, _)| id)).collect();
        self.follow_use(now, peer);
        touched.into_iter().for_each(|id| self.use_changed(now, id));
    }

    /// What something is sent to is probed.
    fn follow_use(&mut self, now: Time, key: PeerKey) {
        //= docs/arp-plus.md#11.21
        let in_use = self.is_in_use(&key);
        let Some(peer) = self.peers.get_mut(&key) else { return };
        let was_in_use = std::mem::replace(&mut peer.in_use, in_use);
        if in_use {
            self.probe_again(now, key);
        }
        if in_use != was_in_use {
            self.repace_lanes_of(now, key);
        }
    }

    fn use_changed(&mut self, now: Time, id: LaneId) {
        let usage = self.usage_of(id);
        if let Some(lane) = self.lane_mut(id).filter(|lane| lane.usage != usage) {
            lane.usage = usage;
            if usage == Usage::Busy {
                self.length_busy(now, id);
            }
            self.repace(now, id);
        }
    }

    pub(super) fn usage_of(&self, id: LaneId) -> Usage {
        self.usage.get(&id).copied().unwrap_or(Usage::Unused)
    }

    pub(super) fn set_timing(&mut self, now: Time, timing: Timing) {
        self.timing = timing.bounded();
        self.lane_ids(|_, _| true).into_iter().for_each(|id| self.repace(now, id));
    }

    pub(super) fn lane_ids(&self, wanted: impl Fn(&PeerKey, &(u8, u8)) -> bool) -> Vec<LaneId> {
        let mut found = Vec::new();
        for (key, peer) in &self.peers {
            let ids = peer.lanes.keys().filter(|at| wanted(key, at));
            found.extend(ids.map(|(slot, index)| LaneId { peer: *key, slot: *slot, index: *index }));
        }
        found
    }
}
