//! Plain hosts: proven by ARP or neighbour discovery, since they answer nothing else.
//!
//! A probe of RFC 5227, unicast and with the member's own MAC as the sender, makes any host answer to that very member, and
//! changes no cache. So does a neighbour solicitation from an address that only the member's probes use. The answer holds no
//! nonce: what stands for one is that a probe left over the lane shortly before and has not been answered yet. Whoever repeats
//! answers of a host can keep a failed lane alive; so can whoever forges ARP or neighbour discovery take all its traffic.

use super::{
    Counter, Inspector, LaneId, LaneState, PeerMemberReport, PeerReport, Plain, PlainReport, ration::Ration,
};
use crate::{Time, arp_plus::PeerKey, limits};
use linkbraid_wire::{PlainAnswer, parse_plain_answer};
use std::{collections::BTreeMap, net::IpAddr};

/// A plain host has one member as far as lanes go.
const INDEX: u8 = 0;

impl Inspector {
    pub(super) fn set_plain(&mut self, now: Time, mut reports: Vec<PlainReport>) {
        //= docs/arp-plus.md#12.1
        if reports.len() > limits::PLAIN_PROBED_MAX {
            self.out.counters.add(Counter::LimitPlain, (reports.len() - limits::PLAIN_PROBED_MAX) as u64);
            reports.truncate(limits::PLAIN_PROBED_MAX);
        }
        let reported: BTreeMap<PeerKey, PlainReport> =
            reports.into_iter().map(|report| (PeerKey::Plain(report.mac), report)).collect();
        self.forget(|key, peer| peer.plain.is_some() && !reported.contains_key(key));
        for (key, report) in reported {
            if let Some(peer) = self.peers.get_mut(&key) {
                peer.plain.iter_mut().for_each(|plain| plain.ip = report.ip);
                continue;
            }
            let member = PeerMemberReport { index: INDEX, mac: report.mac, up: true, heard: Vec::new() };
            let peer =
                PeerReport { key, epoch: None, probes: true, long_probes: false, members: vec![member] };
            self.meet(now, peer, true, Some(Plain { ip: report.ip, ration: Ration::default() }));
        }
    }

    /// A frame of ARP or IPv6 came in.
    pub(super) fn plain_frame(&mut self, now: Time, slot: u8, bytes: &[u8]) {
        let answer = match parse_plain_answer(bytes) {
            Ok(answer) => answer,
            Err(refusal) => return self.out.counters.refuse(refusal),
        };
        match self.plain_lane(slot, &answer) {
            Ok(id) => {
                self.out.counters.one(match answer.ip {
                    IpAddr::V4(_) => Counter::RxArpReply,
                    IpAddr::V6(_) => Counter::RxAdvertisement,
                });
                self.plain_answer(now, id);
            }
            Err(counter) => self.out.counters.one(counter),
        }
    }

    /// The lane that an answer came over, or why it counts for nothing.
    fn plain_lane(&self, slot: u8, answer: &PlainAnswer) -> Result<LaneId, Counter> {
        //= docs/arp-plus.md#12.3
        //= docs/arp-plus.md#12.7
        let member = self.members.get(&slot).ok_or(Counter::RxUnknownMember)?;
        if self.members.values().any(|member| member.report.mac == answer.host) {
            return Err(Counter::RxOwn);
        }
        if answer.to != member.report.mac {
            return Err(Counter::RxMisdirected);
        }
        let key = PeerKey::Plain(answer.host);
        let peer = self.peers.get(&key).ok_or(Counter::RxUnknownPeer)?;
        if peer.plain.as_ref().is_none_or(|plain| plain.ip != answer.ip) {
            return Err(Counter::RxUnknownPeer);
        }
        let lane = peer.lanes.get(&(slot, INDEX)).ok_or(Counter::RxUnknownPeer)?;
        if lane.state == LaneState::Cut {
            return Err(Counter::RxCut);
        }
        Ok(LaneId { peer: key, slot, index: INDEX })
    }

    fn plain_answer(&mut self, now: Time, id: LaneId) {
        let timing = self.timing;
        let Some(lane) = self.lane_mut(id) else { return };
        let Some(away) = lane.redeem_all(now, lane.detection(&timing)) else {
            return self.out.counters.one(Counter::RxNoProof);
        };
        if let Some(away) = away {
            lane.rtt = Some(away);
            lane.took(away);
        }
        self.out.counters.one(Counter::RxProof);
        self.proof(now, id, now, false);
    }

    /// Plain hosts have fallen silent: each proven lane is asked now.
    pub(super) fn ask_plain(&mut self, now: Time) {
        //= docs/arp-plus.md#12.6
        let ids = self.lane_ids(|key, _| matches!(key, PeerKey::Plain(_)));
        for id in ids {
            let Some(lane) = self.lane_mut(id).filter(|lane| lane.is_trusted()) else { continue };
            lane.stalled = true;
            if lane.waiting.is_none() {
                (lane.urgent, lane.next_probe) = (true, Some(now));
            }
            self.rewake(id);
        }
    }

    /// A plain host of which no lane was proven answers: the others are tested at once, and are not judged before if
    /// it never answered at all.
    pub(super) fn test_other_lanes(&mut self, now: Time, proven: LaneId, first: bool) {
        //= docs/arp-plus.md#12.4
        let tries = self.timing.multiplier;
        let Some(peer) = self.peers.get_mut(&proven.peer) else { return };
        let mut tested = Vec::new();
        for ((slot, _), lane) in &mut peer.lanes {
            let id = LaneId { slot: *slot, ..proven };
            if id != proven && lane.state == LaneState::Down {
                (lane.tries, lane.fresh) = (tries, lane.fresh || first);
                lane.next_probe = Some(now);
                tested.push(id);
            }
        }
        self.sound.changed(proven.peer);
        tested.into_iter().for_each(|id| self.repace(now, id));
    }
}
