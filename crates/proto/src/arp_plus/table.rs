//! The table: who has which hardware addresses.

use super::{
    Conflict, Counter, Event, Peer, PeerKey, PeerState, Reason, Timing, outbox::Outbox, pace::Crowd,
    tokens::Rate,
};
use crate::{Time, limits};
use linkbraid_wire::{Extension, FEATURE_INTERVALS, HostId, Kind, MacAddr, Message};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

mod claim;
mod index;
mod leave;
mod newcomers;

pub(super) use leave::Waiting;
use newcomers::Newcomers;

const CHANGES: Rate = Rate { at_once: limits::CHANGES_AT_ONCE, a_second: limits::CHANGE_RATE };

/// A message with where and when it came in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<'a> {
    pub now: Time,
    pub slot: u8,
    pub src: MacAddr,
    pub message: &'a Message,
    pub heard_again: bool,
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
    /// Members and aliases of all hosts, those that ARP+ has come from; and primary MACs that it has not, where they are free.
    by_mac: BTreeMap<MacAddr, PeerKey>,
    /// The first host that claimed an address.
    by_address: BTreeMap<IpAddr, PeerKey>,
    /// MACs that plain hosts have, once that is known.
    taken: Option<BTreeSet<MacAddr>>,
    tombstones: BTreeMap<HostId, Tombstone>,
    waiting: BTreeMap<PeerKey, Waiting>,
    full_told: bool,
    newcomers: Newcomers,
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

    /// Learns from a message of a foreign host, which has waited if it had to. Says whether it took it; if not, the table is as
    /// it was.
    pub fn learn(&mut self, arrival: Arrival<'_>, waited: bool, timing: &Timing, out: &mut Outbox) -> bool {
        let Some(key) = Peer::key_of(arrival.message) else {
            out.counters.one(Counter::NoIdentity);
            return false;
        };
        let freshness = self.freshness(key, &arrival, timing, out);
        if freshness == Freshness::Stale {
            return false;
        }
        if !waited && self.waits(key, &arrival, timing, out) {
            return false;
        }
        if arrival.message.kind == Kind::Clear {
            return self.clear(key, arrival, out);
        }
        if freshness == Freshness::Known {
            return self.refresh(key, &arrival, timing, out);
        }
        let taken = self.may_change(key, &arrival, out)
            && self.claim(key, &arrival, timing, out)
            && self.has_room(key, out);
        if taken {
            self.put(key, &arrival, timing, out);
        }
        taken
    }

    /// Whether one more host may enter, or one more change of this one.
    fn may_change(&mut self, key: PeerKey, arrival: &Arrival<'_>, out: &mut Outbox) -> bool {
        let (may, limit) = match self.peers.get_mut(&key) {
            //= docs/arp-plus.md#7.10
            Some(peer) => (peer.changes.take(arrival.now, CHANGES), Counter::LimitChanges),
            None => (self.newcomers.may_enter(arrival.now, arrival.heard_again), Counter::LimitJoins),
        };
        if !may {
            out.counters.one(limit);
        }
        may
    }

    /// Compares the message with what is known of the same host.
    fn freshness(&self, key: PeerKey, arrival: &Arrival<'_>, timing: &Timing, out: &mut Outbox) -> Freshness {
        let known = self.peers.get(&key);
        let Some(extension) = &arrival.message.extension else {
            return match known {
                Some(peer) if peer.digest == arrival.message.mapping_digest() => Freshness::Known,
                Some(peer) if self.is_stranger(peer, arrival, out) => Freshness::Stale,
                _ => Freshness::New,
            };
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
        let stale = stale && !Self::may_go_back(peer, same_epoch, arrival.now, timing);
        let known_mac = self.is_its(peer, arrival.src);
        if same || stale && !known_mac {
            //= docs/arp-plus.md#8.4
            let conflict = Conflict::peer_host_id(peer, extension.host, arrival.src, arrival.message);
            out.conflict(arrival.now, timing, conflict);
            return Freshness::Stale;
        }
        if stale {
            out.counters.one(if same_epoch { Counter::StaleSequence } else { Counter::StaleEpoch });
            return Freshness::Stale;
        }
        if !self.is_stranger(peer, arrival, out) {
            return Freshness::New;
        }
        //= docs/arp-plus.md#8.7
        if !arrival.message.hardware.iter().any(|mac| self.is_its(peer, *mac)) {
            let conflict = Conflict::peer_host_id(peer, extension.host, arrival.src, arrival.message);
            out.conflict(arrival.now, timing, conflict);
        }
        Freshness::Stale
    }

    /// Whether the host has that MAC, as it says, or had it.
    fn is_its(&self, peer: &Peer, mac: MacAddr) -> bool {
        peer.member(mac).is_some() || self.by_mac.get(&mac) == Some(&peer.key)
    }

    /// Whether news of a live host come from a MAC that is not one of its own, so far.
    fn is_stranger(&self, peer: &Peer, arrival: &Arrival<'_>, out: &mut Outbox) -> bool {
        //= docs/arp-plus.md#6.10
        let stranger = !self.is_its(peer, arrival.src)
            && peer.state == PeerState::Alive
            && arrival.message.kind != Kind::Clear;
        if stranger {
            out.counters.one(Counter::Stranger);
        }
        stranger
    }

    fn is_buried(&self, extension: &Extension) -> bool {
        //= docs/arp-plus.md#6.6
        self.tombstones.get(&extension.host).is_some_and(|tombstone| {
            extension.epoch < tombstone.epoch
                || extension.epoch == tombstone.epoch && !before(tombstone.sequence, extension.sequence)
        })
    }

    /// The host says again what is known of it. False, and nothing changed, where the MAC that it says so from is another's.
    fn refresh(&mut self, key: PeerKey, arrival: &Arrival<'_>, timing: &Timing, out: &mut Outbox) -> bool {
        let spoke = self.peers.get(&key).is_some_and(|peer| peer.spoke_from(arrival.src));
        if !spoke && !self.claim(key, arrival, timing, out) {
            return false;
        }
        self.speaks(key, arrival.src, out);
        self.link_silent_primary(key);
        let Some(peer) = self.peers.get_mut(&key) else { return false };
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
        true
    }

    fn has_room(&mut self, key: PeerKey, out: &mut Outbox) -> bool {
        //= docs/arp-plus.md#7.3
        if self.peers.len() < limits::HOSTS_MAX || self.peers.contains_key(&key) || self.evict(out) {
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
            self.newcomers.enter(arrival.now);
        }
        let is_news = old.as_ref().is_none_or(|old| reason != Reason::Changed || !peer.is_used_as(old));
        if let Some(mut old) = old {
            // Those that lead to another host by now are no more its own.
            old.aliases.retain(|alias| !self.by_mac.contains_key(&alias.mac));
            out.counters.add(Counter::LimitAliases, peer.inherit(arrival.now, old, timing) as u64);
            peer.hear_again(arrival.now, timing);
        }
        peer.hear(arrival.now, arrival.slot, arrival.src);
        peer.members
            .iter_mut()
            .filter(|member| member.mac == arrival.src)
            .for_each(|member| member.spoke = true);
        if let PeerKey::Host(host) = key {
            self.tombstones.remove(&host);
        }
        if is_news {
            report(&peer, old_state, Some(PeerState::Alive), reason, out);
        } else {
            out.peer_changed(key);
        }
        self.link(peer, out);
    }

    fn remove(&mut self, key: PeerKey, reason: Reason, out: &mut Outbox) {
        self.waiting.remove(&key);
        if let Some(peer) = self.unlink(key) {
            report(&peer, Some(peer.state), None, reason, out);
            self.full_told = false;
        }
    }

    /// Silence, expiry, pairs and aliases that have run out. Returns where to ask published-only hosts whether they are there.
    pub fn sweep(&mut self, now: Time, timing: &Timing, out: &mut Outbox) -> Vec<(u8, MacAddr)> {
        self.tombstones.retain(|_, tombstone| now.since(tombstone.since) < timing.tombstone);
        let (mut expired, mut asked) = (Vec::new(), Vec::new());
        let mut silent = 0;
        for peer in self.peers.values_mut() {
            for alias in peer.aliases.extract_if(.., |alias| alias.until <= now) {
                self.by_mac.remove(&alias.mac);
                out.peer_changed(peer.key);
            }
            let quiet = now.since(peer.last_heard);
            let lives = peer.pair_lives(timing);
            //= docs/arp-plus.md#5.5
            if !peer.is_extended() {
                if quiet >= timing.forget && expired.len() < limits::EXPIRED_AT_ONCE {
                    expired.push(peer.key);
                } else if quiet >= timing.ask && now.since(peer.asked_at) >= timing.ask_again {
                    peer.asked_at = now;
                    asked.extend(peer.last_heard_at());
                }
                continue;
            }
            //= docs/arp-plus.md#5.4
            let (silent_after, expires_after, since) = peer.patience(timing);
            let quiet = now.since(since);
            //= docs/arp-plus.md#5.15
            if peer.probed.is_some()
                && peer.doublings > 0
                && quiet >= timing.silent / 2
                && now.since(peer.asked_at) >= timing.announce_max
            {
                peer.asked_at = now;
                asked.extend(peer.last_heard_at());
            }
            if quiet >= expires_after && expired.len() < limits::EXPIRED_AT_ONCE {
                expired.push(peer.key);
            } else if quiet >= silent_after
                && peer.state == PeerState::Alive
                && silent < limits::EXPIRED_AT_ONCE
            {
                silent += 1;
                peer.state = PeerState::Silent;
                out.counters.one(Counter::PeerSilent);
                report(peer, Some(PeerState::Alive), Some(PeerState::Silent), Reason::Silent, out);
            }
            if peer.retain_heard(|_, when| now.since(when) < lives) {
                out.peer_changed(peer.key);
            }
        }
        for key in expired {
            out.counters.one(Counter::PeerExpired);
            self.remove(key, Reason::Expired, out);
        }
        asked
    }

    /// What there is of hosts, as far as the own pace follows from it. Nothing is believed of those that are not proven.
    pub fn crowd(&self) -> Crowd {
        let proven = || self.peers.values().filter(|peer| peer.answers || !peer.is_extended());
        let pairs = |peer: &Peer| peer.members.iter().map(|member| member.heard.len()).sum::<usize>();
        Crowd {
            pairs: proven().map(pairs).sum(),
            hasty: proven().any(|peer| peer.features & FEATURE_INTERVALS == 0),
        }
    }

    /// This host was late by that: who seems not to have been heard for so long may have spoken.
    pub fn did_not_listen(&mut self, now: Time, late: Duration) {
        self.peers.values_mut().for_each(|peer| peer.did_not_listen(now, late));
    }

    /// Who hears whom may be otherwise now.
    pub fn hear_again(&mut self, now: Time, timing: &Timing) {
        self.peers.values_mut().for_each(|peer| peer.hear_again(now, timing));
    }

    /// Takes who is probed, and when he was proven.
    pub fn take_probed(&mut self, now: Time, probed: &BTreeMap<PeerKey, Option<Time>>, out: &mut Outbox) {
        for peer in self.peers.values_mut() {
            let proof = probed.get(&peer.key);
            peer.probed = proof.map(|_| peer.probed.unwrap_or(now));
            peer.proven_at = proof.copied().flatten().or(peer.proven_at);
            let is_proven = peer.proven_at.is_some_and(|at| now.since(at) < limits::PROVEN_LATELY);
            if peer.doublings > 0 && is_proven && peer.state == PeerState::Silent {
                peer.state = PeerState::Alive;
                report(peer, Some(PeerState::Silent), Some(PeerState::Alive), Reason::HeardAgain, out);
            }
        }
    }

    /// Published-only hosts are plain hosts from now on.
    pub fn drop_published_only(&mut self, out: &mut Outbox) {
        let dropped = self.peers.values().filter(|peer| !peer.is_extended()).map(|peer| peer.key);
        dropped.collect::<Vec<_>>().into_iter().for_each(|key| self.remove(key, Reason::PublishedOnly, out));
    }

    /// The primary MACs that nothing was heard from.
    pub fn silent_primaries(&self) -> BTreeSet<MacAddr> {
        self.peers.values().filter_map(Peer::silent_primary).collect()
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
        *self = Table { taken: self.taken.take(), ..Table::default() };
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
    let (key, address, mac, proven) = (peer.key, peer.address(), peer.mac(), peer.answers);
    out.event(Event::Peer { key, address, mac, old, new, reason, proven });
}
