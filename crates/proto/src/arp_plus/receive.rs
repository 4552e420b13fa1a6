//! A frame comes in: ours, a claim on what is ours, or news of another host.

use super::{
    ArpPlus, Conflict, Counter, Effect, Event, Signal, State, step,
    table::{Arrival, Waiting},
};
use crate::Time;
use linkbraid_wire::{Kind, MacAddr, Message, parse_frame};

impl ArpPlus {
    pub(super) fn frame(&mut self, now: Time, slot: u8, bytes: &[u8], heard_again: bool) {
        let frame = match parse_frame(bytes) {
            Ok(frame) => frame,
            Err(refusal) => return self.out.counters.one(Counter::from(refusal)),
        };
        self.out.counters.add(Counter::UnknownTlv, u64::from(frame.parsed.unknown_tlvs));
        if self.own.member(slot).is_none() {
            return self.out.counters.one(Counter::RxUnknownMember);
        }
        if self.state == State::S0 {
            return self.out.counters.one(Counter::RxStopped);
        }
        let (src, message) = (frame.src, frame.parsed.message);
        if self.is_own(src, &message) {
            return self.own_frame(now, slot, src);
        }
        if let Some(conflict) = self.claim_on_own(src, &message) {
            if matches!(conflict, Conflict::OwnHostId { .. }) {
                self.speak_often(now);
            }
            return self.out.conflict(now, &self.timing, conflict);
        }
        //= docs/arp-plus.md#7.2
        if !message.hardware.contains(&src) {
            return self.out.counters.one(Counter::SourceNotListed);
        }
        if message.extension.is_none() && !self.published_only {
            //= docs/arp-plus.md#7.11
            self.out.counters.one(Counter::PublishedOnly);
            if !std::mem::replace(&mut self.published_only_told, true) {
                self.out.event(Event::PublishedOnly { mac: src });
            }
            return;
        }
        self.foreign(Arrival { now, slot, src, message: &message, heard_again }, false);
    }

    /// Messages that have waited long enough for the hosts to object.
    pub(super) fn take_waited(&mut self, now: Time) {
        while let Some(Waiting { slot, src, message, .. }) = self.table.take_waited(now) {
            self.foreign(Arrival { now, slot, src, message: &message, heard_again: true }, true);
        }
    }

    /// An own MAC with the own identity: a switch brought it back. An earlier epoch was this host before it started
    /// again, with frames still under way; a later one is somebody else.
    fn is_own(&self, src: MacAddr, message: &Message) -> bool {
        message.extension.as_ref().is_some_and(|extension| {
            extension.host == self.own.host
                && extension.epoch <= self.own.epoch
                && (self.own.slot_of(src).is_some() || self.own.is_former(src))
        })
    }

    fn own_frame(&mut self, now: Time, at: u8, src: MacAddr) {
        //= docs/arp-plus.md#8.2
        self.out.counters.one(Counter::RxOwn);
        if let Some(from) = self.own.slot_of(src) {
            self.segments.hear(now, from, at);
            self.update_segments(now);
        }
    }

    /// What of ours a foreign message claims, the gravest first.
    fn claim_on_own(&self, by: MacAddr, message: &Message) -> Option<Conflict> {
        //= docs/arp-plus.md#8.1
        if message.extension.as_ref().is_some_and(|extension| extension.host == self.own.host) {
            return Some(Conflict::own_host_id(by, message));
        }
        let claimed = std::iter::once(&by).chain(&message.hardware);
        if let Some(mac) = claimed.copied().find(|mac| self.own.slot_of(*mac).is_some()) {
            return Some(Conflict::OwnMac { mac, by });
        }
        let address = message.all_addresses().find(|address| self.own.addresses.contains(address))?;
        Some(Conflict::OwnAddress { address, by })
    }

    /// A message of another host: S1, then S2 or S3, then S1 again.
    fn foreign(&mut self, arrival: Arrival<'_>, waited: bool) {
        let Arrival { now, slot, src, message, .. } = arrival;
        let (working, effect) = step(self.state, Signal::Received(message.kind));
        self.state = working;
        let learned = match effect {
            Effect::MakeEntry | Effect::UpdateTable => {
                self.table.learn(arrival, waited, &self.timing, &mut self.out)
            }
            _ => false,
        };
        let (rest, effect) = step(self.state, if learned { Signal::Done } else { Signal::Refused });
        self.state = rest;
        if learned {
            self.out.counters.one(Counter::received(message.kind));
        }
        if effect == Effect::Reply {
            self.schedule_reply(now, slot, src);
        }
        if learned && message.kind == Kind::Reply {
            self.agenda.answered();
        }
    }
}
