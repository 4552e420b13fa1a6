//! The table: who has which hardware addresses.

use super::{
    Conflict, Counter, Event, Peer, PeerKey, PeerState, Reason, Timing, joins::Joins, outbox::Outbox,
};
use crate::{Time, limits};
use linkbraid_wire::{Extension, HostId, Kind, MacAddr, Message};
use std::{collections::BTreeMap, net::IpAddr};

mod claim;

/// A message with where and when it came in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<'a> {
    pub now: Time,
    pub slot: u8,
    pub src: MacAddr,
    pub message: &'a Message,
}

/// A host that left: what it said last, and when.
#[derive(Debug, Clone, Copy)]
struct Tombstone {
    epoch: u64,
    sequence: u32,
    since: Time,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    peers: BTreeMap<PeerKey, Peer>,
    /// Members and aliases of all hosts.
    by_mac: BTreeMap<MacAddr, PeerKey>,
    /// The first host that claimed an address.
    by_address: BTreeMap<IpAddr, PeerKey>,
    tombstones: BTreeMap<HostId, Tombstone>,
    full_told: bool,
    joins: Joins,
}

/// Serial number arithmetic (RFC 1982): whether `a` comes before `b`.
const fn before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) < 1 << 31
}

impl Table {
    pub fn peers(&self) -> impl ExactSizeIterator<Item = &Peer> {
        self.peers.values()
    }

    pub fn len(&self) -> usize {
        self.peers.len()
    }

    pub fn get(&self, key: &PeerKey) -> Option<&Peer> {
        self.peers.get(key)
    }

    pub fn by_mac(&self, mac: MacAddr) -> Option<&Peer> {
        self.by_mac.get(&mac).and_then(|key| self.peers.get(key))
    }

    pub fn by_address(&self, address: IpAddr) -> Option<&Peer> {
        self.by_address.get(&address).and_then(|key| self.peers.get(key))
    }

    /// Learns from a message of a foreign host. Says whether it took it; if not, the table is as it was.
    pub fn learn(&mut self, arrival: Arrival<'_>, timing: &Timing, out: &mut Outbox) -> bool {
        let Some(key) = Peer::key_of(arrival.message) else {
            out.counters.one(Counter::NoIdentity);
            return false;
        };
        if arrival.message.kind == Kind::Clear {
            return self.clear(key, arrival, timing, out);
        }
        match self.freshness(key, &arrival, timing, out) {
            Freshness::Stale => false,
            Freshness::Known => {
                self.refresh(key, &arrival, out);
                true
            }
            Freshness::New if !self.peers.contains_key(&key) && !self.joins.has_room(arrival.now) => {
                out.counters.one(Counter::LimitJoins);
                false
            }
            Freshness::New => {
                let taken = self.claim(key, &arrival, timing, out) && self.has_room(key, out);
                if taken {
                    self.put(key, &arrival, timing, out);
                }
                taken
            }
        }
    }

    /// Compares the message with what is known of the same host.
    fn freshness(&self, key: PeerKey, arrival: &Arrival<'_>, timing: &Timing, out: &mut Outbox) -> Freshness {
        let known = self.peers.get(&key);
        let Some(extension) = &arrival.message.extension else {
            let same = known.is_some_and(|peer| peer.digest == arrival.message.mapping_digest());
            return if same { Freshness::Known } else { Freshness::New };
        };
        if self.is_buried(extension) {
            out.counters.one(Counter::StaleCleared);
            return Freshness::Stale;
        }
        let Some(peer) = known else { return Freshness::New };
        let (epoch, sequence) = (peer.epoch.unwrap_or(0), peer.sequence.unwrap_or(0));
        let same_epoch = extension.epoch == epoch;
        let same = same_epoch && extension.sequence == sequence;
        if same && peer.digest == arrival.message.mapping_digest() {
            return Freshness::Known;
        }
        //= docs/arp-plus.md#6.3
        //= docs/arp-plus.md#6.4
        let stale = extension.epoch < epoch || same_epoch && before(extension.sequence, sequence);
        let known_mac = self.by_mac.get(&arrival.src) == Some(&key);
        if same || stale && !known_mac {
            //= docs/arp-plus.md#8.4
            let conflict = Conflict::PeerHostId { host: extension.host, by: arrival.src };
            out.conflict(arrival.now, timing, conflict);
            return Freshness::Stale;
        }
        if stale {
            out.counters.one(if same_epoch { Counter::StaleSequence } else { Counter::StaleEpoch });
            return Freshness::Stale;
        }
        Freshness::New
    }

    fn is_buried(&self, extension: &Extension) -> bool {
        //= docs/arp-plus.md#6.6
        self.tombstones.get(&extension.host).is_some_and(|tombstone| {
            extension.epoch < tombstone.epoch
                || extension.epoch == tombstone.epoch && !before(tombstone.sequence, extension.sequence)
        })
    }

    fn refresh(&mut self, key: PeerKey, arrival: &Arrival<'_>, out: &mut Outbox) {
        let Some(peer) = self.peers.get_mut(&key) else { return };
        if peer.hear(arrival.now, arrival.slot, arrival.src) {
            out.peer_changed(key);
        }
        if peer.state == PeerState::Silent {
            peer.state = PeerState::Alive;
            report(peer, Some(PeerState::Silent), Some(PeerState::Alive), Reason::HeardAgain, out);
        }
        // An address that two hosts claimed goes to the one that is left.
        let addresses: Vec<IpAddr> = arrival.message.all_addresses().collect();
        self.take_addresses(key, &addresses);
    }

    fn has_room(&mut self, key: PeerKey, out: &mut Outbox) -> bool {
        //= docs/arp-plus.md#7.3
        if self.peers.len() < limits::HOSTS_MAX || self.peers.contains_key(&key) {
            return true;
        }
        out.counters.one(Counter::LimitHosts);
        if !std::mem::replace(&mut self.full_told, true) {
            out.event(Event::TableFull { hosts: limits::HOSTS_MAX });
        }
        false
    }

    /// Makes or replaces the entry of the sender; all claims have been checked.
    fn put(&mut self, key: PeerKey, arrival: &Arrival<'_>, timing: &Timing, out: &mut Outbox) {
        let mut peer = Peer::new(arrival.now, key, arrival.message);
        let old = self.unlink(key);
        let old_state = old.as_ref().map(|old| old.state);
        let reason = match (&old, peer.epoch) {
            (None, _) => Reason::Joined,
            (Some(Peer { epoch: Some(old_epoch), .. }), Some(new_epoch)) if *old_epoch < new_epoch => {
                Reason::Restarted { old_epoch: *old_epoch, new_epoch }
            }
            (Some(_), _) => Reason::Changed,
        };
        out.counters.one(match reason {
            Reason::Joined => Counter::PeerJoined,
            Reason::Restarted { .. } => Counter::PeerRestarted,
            _ => Counter::PeerChanged,
        });
        if reason == Reason::Joined {
            self.joins.one(arrival.now);
        }
        if let Some(old) = old {
            out.counters.add(Counter::LimitAliases, peer.inherit(arrival.now, old, timing) as u64);
        }
        peer.hear(arrival.now, arrival.slot, arrival.src);
        if let PeerKey::Host(host) = key {
            self.tombstones.remove(&host);
        }
        report(&peer, old_state, Some(PeerState::Alive), reason, out);
        self.link(peer, out);
    }

    /// Enters a peer into the indexes.
    fn link(&mut self, peer: Peer, out: &mut Outbox) {
        for mac in peer.members.iter().map(|member| member.mac) {
            // A MAC that was a former one of another host belongs to its new owner at once.
            if let Some(other) = self.by_mac.insert(mac, peer.key).filter(|other| *other != peer.key)
                && let Some(other) = self.peers.get_mut(&other)
            {
                other.aliases.retain(|alias| alias.mac != mac);
                out.peer_changed(other.key);
            }
        }
        peer.aliases.iter().for_each(|alias| _ = self.by_mac.entry(alias.mac).or_insert(peer.key));
        self.take_addresses(peer.key, &peer.addresses);
        self.peers.insert(peer.key, peer);
    }

    /// Enters a host for its addresses where nobody else alive is.
    fn take_addresses(&mut self, key: PeerKey, addresses: &[IpAddr]) {
        for address in addresses {
            if self.by_address(*address).is_none_or(|owner| owner.state == PeerState::Silent) {
                self.by_address.insert(*address, key);
            }
        }
    }

    /// Takes a peer out of table and indexes.
    fn unlink(&mut self, key: PeerKey) -> Option<Peer> {
        let peer = self.peers.remove(&key)?;
        let macs =
            peer.members.iter().map(|member| member.mac).chain(peer.aliases.iter().map(|alias| alias.mac));
        for mac in macs {
            if self.by_mac.get(&mac) == Some(&key) {
                self.by_mac.remove(&mac);
            }
        }
        for address in &peer.addresses {
            if self.by_address.get(address) == Some(&key) {
                self.by_address.remove(address);
            }
        }
        Some(peer)
    }

    fn remove(&mut self, key: PeerKey, reason: Reason, out: &mut Outbox) {
        if let Some(peer) = self.unlink(key) {
            report(&peer, Some(peer.state), None, reason, out);
            self.full_told = false;
        }
    }

    /// CLEAR: deletes the sender's entry.
    fn clear(&mut self, key: PeerKey, arrival: Arrival<'_>, timing: &Timing, out: &mut Outbox) -> bool {
        if self.freshness(key, &arrival, timing, out) == Freshness::Stale {
            return false;
        }
        let known = self.by_mac.get(&arrival.src) == Some(&key);
        if self.peers.contains_key(&key) && !known {
            //= docs/arp-plus.md#6.5
            out.counters.one(Counter::ClearNotOwner);
            return false;
        }
        if let Some(extension) = &arrival.message.extension {
            self.remember_departure(extension, arrival.now, out);
        }
        if !known {
            out.counters.one(Counter::ClearUnknown);
            return false;
        }
        out.counters.one(Counter::PeerLeft);
        self.remove(key, Reason::Left, out);
        true
    }

    fn remember_departure(&mut self, extension: &Extension, now: Time, out: &mut Outbox) {
        if self.tombstones.len() >= limits::TOMBSTONES_MAX && !self.tombstones.contains_key(&extension.host) {
            out.counters.one(Counter::LimitTombstones);
            let oldest =
                self.tombstones.iter().min_by_key(|(_, tombstone)| tombstone.since).map(|(host, _)| *host);
            oldest.map(|host| self.tombstones.remove(&host));
        }
        let tombstone = Tombstone { epoch: extension.epoch, sequence: extension.sequence, since: now };
        self.tombstones.insert(extension.host, tombstone);
    }

    /// Silence, expiry, pairs and aliases that have run out.
    pub fn sweep(&mut self, now: Time, timing: &Timing, out: &mut Outbox) {
        self.tombstones.retain(|_, tombstone| now.since(tombstone.since) < timing.tombstone);
        let mut expired = Vec::new();
        let mut silent = 0;
        for peer in self.peers.values_mut() {
            for alias in peer.aliases.extract_if(.., |alias| alias.until <= now) {
                self.by_mac.remove(&alias.mac);
                out.peer_changed(peer.key);
            }
            //= docs/arp-plus.md#5.5
            if !peer.is_extended() {
                continue;
            }
            //= docs/arp-plus.md#5.4
            let quiet = now.since(peer.last_heard);
            if quiet >= timing.expire && expired.len() < limits::EXPIRED_AT_ONCE {
                expired.push(peer.key);
            } else if quiet >= timing.silent
                && peer.state == PeerState::Alive
                && silent < limits::EXPIRED_AT_ONCE
            {
                silent += 1;
                peer.state = PeerState::Silent;
                out.counters.one(Counter::PeerSilent);
                report(peer, Some(PeerState::Alive), Some(PeerState::Silent), Reason::Silent, out);
            }
            if peer.retain_heard(|_, when| now.since(when) < timing.heard) {
                out.peer_changed(peer.key);
            }
        }
        for key in expired {
            out.counters.one(Counter::PeerExpired);
            self.remove(key, Reason::Expired, out);
        }
    }

    /// Drops heard pairs of own members that have gone.
    pub fn retain_slots(&mut self, keep: impl Fn(u8) -> bool, out: &mut Outbox) {
        for peer in self.peers.values_mut() {
            if peer.retain_heard(|slot, _| keep(slot)) {
                out.peer_changed(peer.key);
            }
        }
    }

    /// Forgets all hosts; says whether there were any.
    pub fn forget(&mut self) -> bool {
        let had = !self.peers.is_empty();
        *self = Table::default();
        had
    }
}

/// What a message is to what is known of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// Earlier than what is known, or a conflict; counted.
    Stale,
    /// The very mapping that is known.
    Known,
    /// A later one, or the first.
    New,
}

fn report(peer: &Peer, old: Option<PeerState>, new: Option<PeerState>, reason: Reason, out: &mut Outbox) {
    out.peer_changed(peer.key);
    out.event(Event::Peer { key: peer.key, address: peer.address(), mac: peer.mac(), old, new, reason });
}
