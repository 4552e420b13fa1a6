//! What ends an entry, and what must wait before it may: a host that answers PROBEs in the epoch that is known has neither left
//! nor started again, whatever a message in its name says.

use super::{Arrival, Table, Tombstone, before};
use crate::{
    Time,
    arp_plus::{Conflict, Counter, Peer, PeerKey, PeerState, Reason, Timing, outbox::Outbox},
    limits,
};
use linkbraid_wire::{Extension, Kind, MacAddr, Message};
use std::collections::btree_map::Entry;

/// A message that waits until the host that it speaks of has had time to object.
#[derive(Debug, Clone)]
pub(in crate::arp_plus) struct Waiting {
    pub slot: u8,
    pub src: MacAddr,
    pub message: Message,
    since: Time,
    until: Time,
}

impl Table {
    /// Whether the message has to wait, which it does then.
    pub(super) fn waits(
        &mut self,
        key: PeerKey,
        arrival: &Arrival<'_>,
        timing: &Timing,
        out: &mut Outbox,
    ) -> bool {
        //= docs/arp-plus.md#6.8
        let Some(peer) = self.peers.get(&key).filter(|peer| peer.answers && peer.state == PeerState::Alive)
        else {
            return false;
        };
        let later = arrival.message.extension.as_ref().is_some_and(|new| peer.epoch < Some(new.epoch));
        if !later && arrival.message.kind != Kind::Clear {
            return false;
        }
        let Arrival { now, slot, src, message, .. } = *arrival;
        match self.waiting.entry(key) {
            Entry::Vacant(place) => {
                let until = now + timing.objection;
                place.insert(Waiting { slot, src, message: message.clone(), since: now, until });
                out.challenge(key);
            }
            // A host may leave before it is believed that it started. The time for objections remains the same.
            Entry::Occupied(mut place) if is_later(message, &place.get().message) => {
                let waiting = place.get_mut();
                (waiting.slot, waiting.src, waiting.message) = (slot, src, message.clone());
            }
            Entry::Occupied(_) => {}
        }
        true
    }

    /// When the next message has waited long enough.
    pub fn next_waited(&self) -> Option<Time> {
        self.waiting.values().map(|waiting| waiting.until).min()
    }

    /// A message that nobody objected to in time.
    pub fn take_waited(&mut self, now: Time) -> Option<Waiting> {
        let (key, _) = self.waiting.iter().find(|(_, waiting)| waiting.until <= now)?;
        let key = *key;
        self.waiting.remove(&key)
    }

    /// Nobody can object: no lane of the host is proven.
    pub fn nobody_objects(&mut self, now: Time, key: PeerKey) {
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.until = now;
        }
    }

    /// A PROBE that left at `asked` was answered from that MAC of a host, in the epoch that is known.
    pub fn proven(&mut self, now: Time, proof: (PeerKey, MacAddr, Time), timing: &Timing, out: &mut Outbox) {
        let (key, mac, asked) = proof;
        self.speaks(key, mac, out);
        if self.peers.get_mut(&key).is_some_and(|peer| !std::mem::replace(&mut peer.answers, true)) {
            out.peer_changed(key);
        }
        if let Some(waiting) = self.waiting.remove(&key) {
            if asked < waiting.since {
                self.waiting.insert(key, waiting);
            } else if let PeerKey::Host(host) = key {
                out.counters.one(Counter::Disproved);
                if let Some(peer) = self.peers.get(&key) {
                    let conflict = Conflict::peer_host_id(peer, host, waiting.src, &waiting.message);
                    out.conflict(now, timing, conflict);
                }
            }
        }
    }

    /// CLEAR: deletes the sender's entry.
    pub(super) fn clear(&mut self, key: PeerKey, arrival: Arrival<'_>, out: &mut Outbox) -> bool {
        let Some(peer) = self.peers.get(&key) else {
            // Whoever is not known cannot leave: that nobody may return because of it would be for the asking.
            out.counters.one(Counter::ClearUnknown);
            return false;
        };
        if self.by_mac.get(&arrival.src) != Some(&key) {
            //= docs/arp-plus.md#6.5
            out.counters.one(Counter::ClearNotOwner);
            return false;
        }
        if let Some(extension) = &arrival.message.extension {
            //= docs/arp-plus.md#6.6
            // Nothing proves a later epoch than the known one, and of that the true host may speak on.
            if peer.epoch >= Some(extension.epoch) {
                self.remember_departure(extension, arrival.now, out);
            }
        }
        out.counters.one(Counter::PeerLeft);
        self.remove(key, Reason::Left, out);
        true
    }

    fn remember_departure(&mut self, extension: &Extension, since: Time, out: &mut Outbox) {
        if self.tombstones.len() >= limits::TOMBSTONES_MAX && !self.tombstones.contains_key(&extension.host) {
            out.counters.one(Counter::LimitTombstones);
            let oldest =
                self.tombstones.iter().min_by_key(|(_, tombstone)| tombstone.since).map(|(host, _)| *host);
            oldest.map(|host| self.tombstones.remove(&host));
        }
        let tombstone = Tombstone { epoch: extension.epoch, sequence: extension.sequence, since };
        self.tombstones.insert(extension.host, tombstone);
    }

    /// Whether an earlier mapping than the one that is known may be the true one: its host has not repeated the known one, as
    /// it must every second, nor answered in its epoch.
    pub(super) fn may_go_back(peer: &Peer, same_epoch: bool, now: Time, timing: &Timing) -> bool {
        //= docs/arp-plus.md#6.9
        (same_epoch || !peer.answers) && now.since(peer.last_heard) >= timing.repeated
    }

    /// Makes room for another host: that of whom nothing is proven and who has been silent for longest.
    pub(super) fn evict(&mut self, out: &mut Outbox) -> bool {
        //= docs/arp-plus.md#7.9
        let unproven = self.peers.values().filter(|peer| !peer.answers);
        let Some(key) = unproven.min_by_key(|peer| peer.last_heard).map(|peer| peer.key) else {
            return false;
        };
        out.counters.one(Counter::PeerEvicted);
        self.remove(key, Reason::Evicted, out);
        true
    }
}

/// Whether a host said the first message after the second one.
fn is_later(message: &Message, than: &Message) -> bool {
    let said = |message: &Message| message.extension.as_ref().map(|said| (said.epoch, said.sequence));
    let (Some((epoch, sequence)), Some((earlier_epoch, earlier))) = (said(message), said(than)) else {
        return false;
    };
    epoch > earlier_epoch || epoch == earlier_epoch && before(earlier, sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_later_by_its_epoch_and_within_one_by_its_number() {
        let said = |(epoch, sequence)| Message {
            kind: Kind::Change,
            address: None,
            hardware: Vec::new(),
            extension: Some(Extension { epoch, sequence, ..Extension::default() }),
        };
        let later = |message, than| is_later(&said(message), &said(than));
        assert!(later((2, 1), (1, 5)) && later((1, 6), (1, 5)) && later((1, 0), (1, u32::MAX)));
        assert!(!later((1, 5), (2, 1)) && !later((1, 5), (1, 5)) && !later((1, 4), (1, 5)));
        let published = Message { extension: None, ..said((1, 1)) };
        assert!(!is_later(&published, &said((1, 1))) && !is_later(&said((1, 1)), &published));
    }
}
