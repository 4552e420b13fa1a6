//! Whether lanes carry frames as long as the MTU allows. A switch port or a driver that takes only shorter ones passes every
//! usual probe and loses what is long, so each proven lane is sent a PROBE of full length now and then. Its answer is short:
//! each end learns what becomes of the frames that it sends.
//!
//! A lane that answers usual probes and no long ones is *short*. It is left out while another lane of its peer carries frames
//! of full length. Where none does, nothing is better without it.

use super::{Counter, Event, Inspector, LaneId, LaneState, Usage, lane::Lane};
use crate::{Time, limits};
use linkbraid_wire::{FRAME_HEADER_LEN, ProbeKind};
use std::time::Duration;

/// What is known of one lane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Length {
    /// Whether it carries frames of full length; none: not found out.
    pub carries: Option<bool>,
    /// Long PROBEs in a row without an answer, each with a proof that is later.
    missed: u8,
    /// The nonce of the one that waits, and when it left.
    asked: Option<(u64, Time)>,
    /// When the next one is due.
    pub next: Option<Time>,
}

impl Length {
    /// No more is asked; what is known stays.
    pub const fn rest(&mut self) {
        (self.missed, self.asked, self.next) = (0, None, None);
    }

    /// What was asked does not count.
    pub const fn forget_asked(&mut self) {
        self.asked = None;
    }

    /// Whether that nonce is the one that waits, which it does no more then.
    fn redeem(&mut self, nonce: u64) -> bool {
        self.asked.take_if(|(asked, _)| *asked == nonce).is_some()
    }
}

impl Lane {
    /// Whether it is proven to carry frames of full length.
    fn carries_long(&self) -> bool {
        self.is_trusted() && self.length.carries == Some(true)
    }
}

/// The time between two PROBEs of one lane: at least so long, and so that all lanes keep to a rate.
pub(super) fn spaced(least: Duration, lanes: usize, rate: u32) -> Duration {
    //= docs/arp-plus.md#11.19
    let all = Duration::from_secs(1) * u32::try_from(lanes).unwrap_or(u32::MAX) / rate;
    least.max(all)
}

impl Inspector {
    /// The MTU is another one: nothing is known of any lane.
    pub(super) fn set_mtu(&mut self, now: Time, mtu: u32) {
        if std::mem::replace(&mut self.mtu, mtu) == mtu {
            return;
        }
        for id in self.lane_ids(|_, _| true) {
            self.know_length(id, None);
            self.test_length(now, id);
        }
    }

    /// A lane is proven, or what is to be known of it is another thing: it is asked soon.
    pub(super) fn test_length(&mut self, now: Time, id: LaneId) {
        //= docs/arp-plus.md#11.17
        let window = spaced(limits::LONG_PROBE_SOON, self.lanes, limits::LONG_PROBE_RATE_TESTED);
        let at = now + self.random.between(Duration::ZERO, window);
        let Some(lane) = self.lane_mut(id) else { return };
        lane.length.rest();
        if lane.state == LaneState::Up && !lane.plain {
            lane.length.next = Some(at);
        }
        self.rewake(id);
    }

    /// How often a lane that answers is asked.
    fn length_again(&self, usage: Usage) -> Duration {
        //= docs/arp-plus.md#11.17
        let least =
            if usage == Usage::Busy { limits::LONG_PROBE_AGAIN_BUSY } else { limits::LONG_PROBE_AGAIN };
        spaced(least, self.lanes, limits::LONG_PROBE_RATE)
    }

    /// The lane carries data from now on, and is asked soon; but not before the time that an answer has which it waits for.
    pub(super) fn length_busy(&mut self, now: Time, id: LaneId) {
        let at = now + self.random.between(Duration::ZERO, self.length_again(Usage::Busy));
        if let Some(length) =
            self.lane_mut(id).map(|lane| &mut lane.length).filter(|length| length.asked.is_none())
            && let Some(next) = &mut length.next
        {
            *next = at.min(*next);
        }
    }

    /// Sends the next PROBE of full length over the lane if it is due.
    pub(super) fn length_due(&mut self, now: Time, id: LaneId) {
        let (timing, mtu) = (self.timing, self.mtu as usize);
        let tested = |least, lanes| spaced(least, lanes, limits::LONG_PROBE_RATE_TESTED);
        let (lanes, peer) = (self.lanes, self.peers.get(&id.peer));
        let reads = mtu > 0 && peer.is_some_and(|peer| peer.report.long_probes);
        let Some(lane) = self.lane_mut(id).filter(|lane| lane.length.next.is_some_and(|at| at <= now)) else {
            return;
        };
        if !reads {
            lane.length.rest();
            lane.length.next = Some(now + limits::LONG_PROBE_AGAIN);
            return self.know_length(id, None);
        }
        //= docs/arp-plus.md#11.18
        let asked = lane.length.asked.take();
        if let Some((_, asked_at)) = asked
            && lane.last_proof.is_some_and(|proof| proof > asked_at)
        {
            lane.length.missed = lane.length.missed.saturating_add(1);
        }
        let is_short = lane.length.missed >= limits::LONG_PROBE_TRIES;
        let wait = match is_short {
            true => tested(limits::LONG_PROBE_AGAIN_SHORT, lanes),
            false => {
                let detection = lane.patience(timing.interval, timing.multiplier);
                tested(limits::LONG_PROBE_REPEAT.max(detection), lanes)
            }
        };
        lane.length.next = Some(now + wait);
        if asked.is_some() {
            // A lane that is seldom proven would be found late. Not at the same time: what is overtaken is not answered.
            let short = now + wait / 2;
            lane.next_probe = Some(lane.next_probe.map_or(short, |at| at.min(short)));
        }
        let echo = lane.peer_nonce;
        if is_short {
            self.know_length(id, Some(false));
        }
        if !self.probes.take(now) {
            return self.out.counters.one(Counter::LimitProbe);
        }
        let nonce = self.send(now, id, ProbeKind::Probe, echo, FRAME_HEADER_LEN + mtu);
        if let (Some(nonce), Some(lane)) = (nonce, self.lane_mut(id)) {
            lane.length.asked = Some((nonce, now));
            self.out.counters.one(Counter::TxLong);
        }
    }

    /// A nonce has come back over the lane: that of its long PROBE, perhaps.
    pub(super) fn length_answered(&mut self, now: Time, id: LaneId, nonce: u64) {
        let again = self.length_again(self.usage_of(id));
        let at = now + self.random.between(again * 3 / 4, again);
        let Some(lane) = self.lane_mut(id) else { return };
        if lane.length.redeem(nonce) {
            lane.length.rest();
            lane.length.next = Some(at);
            self.out.counters.one(Counter::RxLong);
            self.know_length(id, Some(true));
            self.rewake(id);
        }
    }

    /// What is known of a lane is another thing: plans follow, and a lane that is short, or is no more, is an event.
    fn know_length(&mut self, id: LaneId, carries: Option<bool>) {
        let mtu = self.mtu;
        let Some(lane) = self.lane_mut(id).filter(|lane| lane.length.carries != carries) else { return };
        let old = std::mem::replace(&mut lane.length.carries, carries);
        self.out.peers.insert(id.peer);
        match (old, carries) {
            (_, Some(false)) => self.out.event(Event::Length { lane: id, mtu, carries: false }),
            (Some(false), Some(true)) => self.out.event(Event::Length { lane: id, mtu, carries: true }),
            _ => {}
        }
    }

    /// Whether a lane is left out because it is short and another one of its peer is not.
    pub(super) fn is_left_out_as_short(peer: &super::Peer, lane: &Lane) -> bool {
        //= docs/arp-plus.md#11.18
        lane.length.carries == Some(false) && peer.lanes.values().any(|lane| lane.carries_long())
    }

    /// Lanes that answer probes, but none as long as the MTU allows.
    pub fn short_lanes(&self) -> impl Iterator<Item = LaneId> {
        let of = |(key, peer): (&crate::arp_plus::PeerKey, &super::Peer)| {
            let key = *key;
            let short = |lane: &Lane| lane.state == LaneState::Up && lane.length.carries == Some(false);
            let lanes = peer.lanes.iter().filter(|(_, lane)| short(lane));
            lanes
                .map(|((slot, index), _)| LaneId { peer: key, slot: *slot, index: *index })
                .collect::<Vec<_>>()
        };
        self.peers.iter().flat_map(of)
    }
}
