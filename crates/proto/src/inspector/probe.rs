//! Probes leave and come in.

use super::{Action, Counter, Inspector, LaneId, LaneState, Usage, rate};
use crate::{Time, arp_plus::PeerKey, limits};
use linkbraid_wire::{
    Probe, ProbeFrame, ProbeKind, Refusal, VERSION, View, emit_plain_probe, emit_probe, is_arp, is_ipv6,
    pad_to, parse_probe,
};
use std::{net::IpAddr, time::Duration};

impl Inspector {
    /// Sends a PROBE over the lane and says when the next one is due.
    pub(super) fn ask(&mut self, now: Time, id: LaneId) {
        self.repace(now, id);
        let timing = self.timing;
        let probed = self.lane_mut(id).filter(|lane| lane.next_probe.is_some());
        let Some(interval) = probed.map(|lane| lane.interval) else { return };
        if let Err(delay) = self.may_ask(now, id, interval) {
            let Some(lane) = self.lane_mut(id) else { return };
            lane.next_probe = Some(now + delay);
            // What was not asked is not held against the lane.
            if !lane.plain {
                lane.judged_from = lane.judged_from + delay;
            } else if lane.was_asked_too_little(&timing) {
                let answer_by = now + delay + timing.interval;
                lane.judged_from = lane.judged_from.max(answer_by.minus(lane.soonest(&timing)));
            }
            return;
        }
        let jitter = self.random.between(interval * 3 / 4, interval);
        let Some(lane) = self.lane_mut(id) else { return };
        let late = lane.waiting;
        let (echo, hurries) = (lane.peer_nonce, lane.hurries(now, &timing));
        if lane.plain && lane.waiting.is_none() {
            lane.judged_from = now;
        }
        lane.tries = lane.tries.saturating_sub(1);
        lane.waiting.get_or_insert(now);
        (lane.last_sent, lane.urgent) = (Some(now), false);
        //= docs/arp-plus.md#11.8
        let gap = match (hurries || lane.plain && lane.hurries(now, &timing), lane.plain) {
            (true, false) => lane.repeats_after(),
            (true, true) => timing.interval / limits::PLAIN_REPEAT_DIVISOR,
            (false, _) => jitter,
        };
        lane.next_probe = Some(now + gap);
        // A plain host's other lanes would else wait for the suspect, and never be proven while it could be lost.
        let judged = lane.state == LaneState::Up || lane.plain && lane.state == LaneState::Suspect;
        if let Some(since) = late.filter(|_| judged) {
            self.probe_other_lanes(now, id, since);
        }
        self.send(now, id, ProbeKind::Probe, echo, 0);
    }

    /// Whether a PROBE over the lane keeps all limits, which it draws on then; else how long it has to wait.
    fn may_ask(&mut self, now: Time, id: LaneId, interval: Duration) -> Result<(), Duration> {
        let timing = self.timing;
        let Some(lane) = self.lane_mut(id) else { return Ok(()) };
        if lane.plain {
            let urgent = lane.urgent || lane.is_tested() || lane.hurries(now, &timing);
            let peer = self.peers.get(&id.peer);
            if !urgent && peer.is_some_and(|peer| peer.lanes.values().any(|lane| lane.hurries(now, &timing)))
            {
                // What is left of the host's ration goes where an answer is missing.
                return Err(timing.interval);
            }
            if let Err(wait) = self.take_ration(now, id, urgent) {
                self.out.counters.one(Counter::LimitPlainRate);
                // Whoever else waits for the same is to have a chance.
                return Err(wait + self.random.between(Duration::ZERO, timing.interval / 4));
            }
        }
        if self.probes.take(now) {
            return Ok(());
        }
        //= docs/arp-plus.md#11.9
        self.out.counters.one(Counter::LimitProbe);
        Err(self.random.between(interval / 2, interval))
    }

    /// A lane is late. Whether it alone is, or the whole peer, other lanes of the peer can tell: those that share no
    /// member with it first, then those that were not asked for longest.
    fn probe_other_lanes(&mut self, now: Time, id: LaneId, since: Time) {
        if self.other_is_proven(id, since) {
            return;
        }
        let Some(peer) = self.peers.get_mut(&id.peer) else { return };
        let mut others: Vec<(u8, Option<Time>, LaneId)> = Vec::new();
        for ((slot, index), lane) in &peer.lanes {
            let other = LaneId { slot: *slot, index: *index, ..id };
            if other != id && lane.state == LaneState::Up && lane.last_sent.is_none_or(|sent| sent < since) {
                let shared = u8::from(other.slot == id.slot) + u8::from(other.index == id.index);
                others.push((shared, lane.last_sent, other));
            }
        }
        others.sort_unstable();
        let most = if peer.plain.is_some() { limits::PLAIN_OTHERS_MAX } else { limits::PROBED_OTHERS_MAX };
        for (.., other) in others.into_iter().take(most) {
            if let Some(lane) = self.lane_mut(other) {
                (lane.urgent, lane.next_probe) = (true, Some(now));
            }
            self.rewake(other);
        }
    }

    /// A probe leaves over the lane, padded to so many bytes; its nonce.
    pub(super) fn send(
        &mut self,
        now: Time,
        id: LaneId,
        kind: ProbeKind,
        echo: u64,
        bytes: usize,
    ) -> Option<u64> {
        let src = self.members.get(&id.slot)?.report.mac;
        let nonce = self.nonces.next();
        let bearable = self.bearable(id);
        let peer = self.peers.get_mut(&id.peer)?;
        let plain = peer.plain.as_ref().map(|plain| plain.ip);
        let lane = peer.lanes.get_mut(&(id.slot, id.index))?;
        lane.sent += 1;
        lane.remember(now, nonce);
        if let Some(ip) = plain {
            let counter = match ip {
                IpAddr::V4(_) => Counter::TxArpProbe,
                IpAddr::V6(_) => Counter::TxSolicitation,
            };
            let frame = emit_plain_probe(lane.mac, src, ip);
            self.push_frame(id.slot, frame, counter);
            return Some(nonce);
        }
        let (mac, view) = (lane.mac, lane.view());
        let probe = self.message(kind, (nonce, echo), view, bearable);
        let mut frame = emit_probe(mac, src, &probe);
        if let Ok(frame) = &mut frame {
            pad_to(frame, bytes);
        }
        let counter = match kind {
            ProbeKind::Probe => Counter::TxProbe,
            ProbeKind::Reply => Counter::TxReply,
        };
        self.push_frame(id.slot, frame, counter);
        Some(nonce)
    }

    fn message(
        &mut self,
        kind: ProbeKind,
        (nonce, echo): (u64, u64),
        view: View,
        bearable: Duration,
    ) -> Probe {
        //= docs/arp-plus.md#15.7
        self.number = self.number.wrapping_add(1).max(1);
        Probe {
            kind,
            address: self.address,
            version: VERSION,
            host: self.host_id,
            epoch: self.epoch,
            nonce,
            echo,
            number: self.number,
            view,
            interval_us: u32::try_from(bearable.as_micros()).unwrap_or(u32::MAX),
            multiplier: self.timing.multiplier,
            auth: None,
        }
    }

    /// The shortest interval of PROBEs over that lane that this host can bear.
    fn bearable(&self, id: LaneId) -> Duration {
        //= docs/arp-plus.md#11.9
        let all = rate::stretched(self.timing.interval, self.load.stretch_test());
        let light = rate::Pace::Light(self.timing.interval, self.timing.idle);
        let own = self.load.interval(light).filter(|_| self.usage.get(&id) == Some(&Usage::Light));
        own.unwrap_or(all).max(all)
    }

    fn push_frame(&mut self, slot: u8, frame: Result<Vec<u8>, Refusal>, counter: Counter) {
        match frame {
            Ok(frame) => {
                self.out.counters.one(counter);
                self.out.push(Action::Send { slot, frame });
            }
            Err(_) => self.out.counters.one(Counter::TxRefused),
        }
    }

    pub(super) fn frame(&mut self, now: Time, slot: u8, bytes: &[u8]) {
        if is_arp(bytes) || is_ipv6(bytes) {
            return self.plain_frame(now, slot, bytes);
        }
        let frame = match parse_probe(bytes) {
            Ok(frame) => frame,
            Err(refusal) => return self.out.counters.refuse(refusal),
        };
        self.out.counters.add(Counter::UnknownTlv, u64::from(frame.unknown_tlvs));
        match self.lane_of(slot, &frame) {
            Ok(id) => self.take(now, id, &frame.probe),
            Err(Counter::RxUnprobed) => self.answer_unprobed(now, slot, &frame),
            Err(counter) => self.out.counters.one(counter),
        }
    }

    /// The lane that a frame came over, or why it counts for nothing.
    fn lane_of(&self, slot: u8, frame: &ProbeFrame) -> Result<LaneId, Counter> {
        //= docs/arp-plus.md#11.4
        let member = self.members.get(&slot).ok_or(Counter::RxUnknownMember)?;
        let own = self.members.values().any(|member| member.report.mac == frame.src);
        if own || frame.probe.host == self.host_id {
            return Err(Counter::RxOwn);
        }
        if frame.dst != member.report.mac {
            return Err(Counter::RxMisdirected);
        }
        let key = PeerKey::Host(frame.probe.host);
        let peer = self.peers.get(&key).ok_or(Counter::RxUnknownPeer)?;
        if peer.report.epoch.is_some_and(|epoch| frame.probe.epoch < epoch) {
            return Err(Counter::RxStaleEpoch);
        }
        let theirs = peer.report.members.iter().find(|member| member.mac == frame.src);
        let index = theirs.ok_or(Counter::RxUnknownMac)?.index;
        let has_lane = peer.lanes.contains_key(&(slot, index));
        if peer.unprobed || peer.only_lane.is_some() && !has_lane {
            // Who is answered uses the lane.
            let ends = self.ends(LaneId { peer: key, slot, index });
            return Err(ends.map_or(Counter::RxCut, |()| Counter::RxUnprobed));
        }
        let lane = peer.lanes.get(&(slot, index)).ok_or(Counter::RxUnknownPeer)?;
        if lane.state == LaneState::Cut {
            return Err(Counter::RxCut);
        }
        Ok(LaneId { peer: key, slot, index })
    }

    fn take(&mut self, now: Time, id: LaneId, probe: &Probe) {
        let (timing, admit_tries) = (self.timing, self.timing.multiplier);
        let asked = probe.kind == ProbeKind::Probe;
        let known = self.peers.get(&id.peer).and_then(|peer| peer.report.epoch);
        if known.is_some_and(|epoch| epoch != probe.epoch) {
            // It may have started again, which ARP+ is to say. An answer does no harm; nothing else follows from it.
            self.out.counters.one(Counter::RxEarlyEpoch);
            if asked {
                self.answer(now, id, probe.nonce, false);
            }
            return;
        }
        let Some(lane) = self.lane_mut(id) else { return };
        let (repeated, ours) = (probe.nonce == lane.peer_nonce, lane.is_ours(probe.echo));
        let redeemed = lane.redeem(now, probe.echo);
        // A nonce comes back once, so that is no earlier frame, whatever its number and whatever somebody said before in the peer's name.
        //= docs/arp-plus.md#11.5
        let new = !repeated && (redeemed.is_some() || lane.is_new(probe.epoch, probe.number));
        // An answer leaves at once, so what it takes is the way; a PROBE comes when it is due.
        let latest = lane.detection(&timing);
        let latest = if asked { latest } else { latest.max(limits::ANSWER_MAX) };
        let away = redeemed.filter(|away| *away <= latest);
        if new {
            // What is sent back; whoever did not say this does not take it for proof.
            lane.peer_nonce = probe.nonce;
        }
        if new && ours {
            lane.peer_view = probe.view;
        }
        if new && away.is_some() {
            //= docs/arp-plus.md#11.15
            lane.peer_seen = Some((probe.epoch, probe.number));
            let bearable = Duration::from_micros(u64::from(probe.interval_us));
            lane.peer_interval = bearable.min(limits::PROBE_INTERVAL_MAX);
        }
        match away {
            Some(_) if asked => lane.took(Duration::ZERO),
            Some(away) => {
                lane.rtt = Some(away);
                lane.took(away);
            }
            None => {}
        }
        if new && lane.state == LaneState::Down && lane.next_probe.is_none() {
            // Something comes this way after all.
            lane.tries = admit_tries;
        }
        let lost = probe.view == View::Lost;
        let up = lane.state == LaneState::Up;
        self.out.counters.one(match (new, asked) {
            (false, _) => Counter::RxOld,
            (true, true) => Counter::RxProbe,
            (true, false) => Counter::RxReply,
        });
        self.out.counters.one(if away.is_some() { Counter::RxProof } else { Counter::RxNoProof });
        match away {
            Some(away) => self.proof(now, id, now.minus(away), asked),
            //= docs/arp-plus.md#11.5
            None if new && ours && lost && up => self.peer_lost(now, id),
            None => self.repace(now, id),
        }
        self.length_answered(now, id, probe.echo);
        if new && asked {
            self.answer(now, id, probe.nonce, ours);
        }
    }

    /// Answers a PROBE at once. Where it may be anybody's, something is left for those that are not.
    fn answer(&mut self, now: Time, id: LaneId, nonce: u64, ours: bool) {
        //= docs/arp-plus.md#11.4
        let spare = if ours { 0 } else { limits::PROBE_BURST / 2 };
        if self.replies.take_if(now, spare) {
            self.send(now, id, ProbeKind::Reply, nonce, 0);
        } else {
            self.out.counters.one(Counter::LimitReply);
        }
    }

    /// The same to a peer that is not probed itself: what it asks for, and nothing is kept of it.
    fn answer_unprobed(&mut self, now: Time, slot: u8, frame: &ProbeFrame) {
        self.out.counters.one(Counter::RxUnprobed);
        let Some(src) = self.members.get(&slot).map(|member| member.report.mac) else { return };
        if frame.probe.kind == ProbeKind::Reply {
            return;
        }
        if !self.replies.take_if(now, limits::PROBE_BURST / 2) {
            return self.out.counters.one(Counter::LimitReply);
        }
        let bearable = rate::stretched(self.timing.interval, self.load.stretch_test());
        let nonces = (self.nonces.next(), frame.probe.nonce);
        let reply = self.message(ProbeKind::Reply, nonces, View::Unjudged, bearable);
        self.push_frame(slot, emit_probe(frame.src, src, &reply), Counter::TxReply);
    }
}
