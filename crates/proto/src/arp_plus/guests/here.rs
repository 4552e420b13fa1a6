//! Guests behind the own bond.

use super::{Claim, Claims, GuestAddress, SeenGuests, Taken, live};
use crate::{
    Time,
    arp_plus::{Conflict, Counter, PeerKey, Timing, outbox::Outbox, table::Table},
    limits,
};
use linkbraid_wire::{GUEST_ADDRESSES_MAX, Guest, MacAddr};
use std::collections::BTreeMap;

/// One guest.
#[derive(Debug)]
struct GuestHere {
    /// It was seen first then.
    since: Time,
    /// It sent a frame last then.
    last: Time,
    /// Its addresses, and when it named each last.
    addresses: BTreeMap<GuestAddress, Time>,
}

#[derive(Debug, Default)]
pub(super) struct Here {
    guests: BTreeMap<MacAddr, GuestHere>,
    /// Guests were looked at first then; those that an earlier machine had announced need not have sent since.
    started: Time,
    /// Guests that were here and went elsewhere then; what they sent before says nothing.
    given_up: BTreeMap<MacAddr, Time>,
}

impl Here {
    pub fn inherit(&mut self, addresses: &[(GuestAddress, MacAddr)]) {
        for (at, mac) in addresses {
            let new = || GuestHere { since: Time::ZERO, last: Time::ZERO, addresses: BTreeMap::new() };
            self.guests.entry(*mac).or_insert_with(new).addresses.insert(*at, Time::ZERO);
        }
    }

    /// Takes what was seen; whether anything follows from it.
    pub fn take(
        &mut self,
        now: Time,
        seen: &SeenGuests,
        claims: &Claims,
        taken: &Taken<'_>,
        out: &mut Outbox,
    ) -> bool {
        let before = self.all();
        if self.started == Time::ZERO {
            self.started = now;
        }
        //= docs/arp-plus.md#14.6
        let lives = |(_, last): &&(MacAddr, Time)| now.since(*last) < limits::GUEST_LIVES;
        let last_sent: BTreeMap<MacAddr, Time> = seen.last_sent.iter().filter(lives).copied().collect();
        self.given_up.retain(|mac, at| last_sent.get(mac).is_some_and(|last| last <= at));
        self.guests.retain(|mac, _| last_sent.contains_key(mac));
        for (mac, guest) in &mut self.guests {
            guest.last = last_sent[mac];
        }
        let mut addresses = seen.addresses.clone();
        addresses.sort_unstable_by_key(|seen| (seen.named, seen.vlan, seen.address));
        let mut owners = self.owners();
        for seen in &addresses {
            let at = (seen.vlan, seen.address);
            // Whoever named it last has it.
            let former = owners.remove(&at).filter(|former| *former != seen.mac);
            if let Some(guest) = former.and_then(|former| self.guests.get_mut(&former)) {
                guest.addresses.remove(&at);
            }
            let Some(last) = last_sent.get(&seen.mac).filter(|_| !self.given_up.contains_key(&seen.mac))
            else {
                continue;
            };
            // A peer's guest has taken it over since.
            let lost =
                claims.of_address(at).is_some_and(|by| by.values().any(|claim| claim.heard > seen.named));
            let is_known = self.guests.get(&seen.mac).is_some_and(|guest| guest.addresses.contains_key(&at));
            //= docs/arp-plus.md#14.1
            let is_old = *last < self.started && !self.guests.contains_key(&seen.mac);
            if taken.mac(seen.mac) || taken.address(at) || is_old || lost && !is_known {
                continue;
            }
            let new = || GuestHere { since: now, last: *last, addresses: BTreeMap::new() };
            let guest = self.guests.entry(seen.mac).or_insert_with(new);
            if guest.make_room(now, at, out) {
                guest.addresses.insert(at, seen.named);
                owners.insert(at, seen.mac);
            }
        }
        self.guests.retain(|_, guest| !guest.addresses.is_empty());
        before != self.all() || self.guests.keys().any(|mac| claims.has(*mac))
    }

    /// Forgets what turned out to be another's.
    pub fn drop_taken(&mut self, taken: &Taken<'_>) {
        for guest in self.guests.values_mut() {
            guest.addresses.retain(|at, _| !taken.address(*at));
        }
        self.guests.retain(|mac, guest| !taken.mac(*mac) && !guest.addresses.is_empty());
    }

    /// Gives up what peers announce and what was not seen here since; whether an address is contested.
    pub fn contest(
        &mut self,
        now: Time,
        claims: &Claims,
        table: &Table,
        timing: &Timing,
        out: &mut Outbox,
    ) -> bool {
        for mac in self.guests.keys().copied().collect::<Vec<_>>() {
            let guest = &self.guests[&mac];
            for (claim, key) in claims.of_mac(mac).into_iter().flat_map(|by| live(by, table)) {
                let (is_silent, is_news) = (guest.last < claim.heard, claim.since != Time::ZERO);
                //= docs/arp-plus.md#14.5
                if is_silent && (is_news || guest.last < self.started) {
                    if now.since(claim.heard) >= limits::GUEST_CONTEST {
                        self.guests.remove(&mac);
                        self.given_up.insert(mac, now);
                        break;
                    }
                } else if !is_silent && now.since(claim.heard.max(guest.since)) >= limits::GUEST_MOVES {
                    let by = table.get(&key).map_or(MacAddr::ZERO, |peer| peer.mac());
                    out.conflict(now, timing, Conflict::OwnGuest { mac, by });
                }
            }
        }
        let mut is_open = false;
        for (mac, guest) in &mut self.guests {
            guest.addresses.retain(|at, named| {
                let of_other = |(claim, key): &(Claim, PeerKey)| {
                    claim.heard > *named && claims.mac_of(*key, *at) != Some(*mac)
                };
                let by = claims.of_address(*at);
                let Some(heard) =
                    by.and_then(|by| live(by, table).filter(of_other).map(|(claim, _)| claim.heard).max())
                else {
                    return true;
                };
                is_open = true;
                now.since(heard) < limits::GUEST_CONTEST
            });
        }
        self.guests.retain(|_, guest| !guest.addresses.is_empty());
        is_open
    }

    /// All guests, those that came first in front.
    pub fn all(&self) -> Vec<Guest> {
        let mut order: Vec<(&MacAddr, &GuestHere)> = self.guests.iter().collect();
        order.sort_unstable_by_key(|(mac, guest)| (guest.since, **mac));
        let mut all = Vec::new();
        for (mac, guest) in order {
            let addresses: Vec<GuestAddress> = guest.addresses.keys().copied().collect();
            for run in addresses.chunk_by(|a, b| a.0 == b.0) {
                let addresses = run.iter().map(|(_, address)| *address).collect();
                all.push(Guest { vlan: run[0].0, mac: *mac, addresses });
            }
        }
        all
    }

    pub fn has(&self, mac: MacAddr) -> bool {
        self.guests.contains_key(&mac)
    }

    pub fn has_address(&self, at: GuestAddress) -> bool {
        self.guests.values().any(|guest| guest.addresses.contains_key(&at))
    }

    /// Whose each address is.
    pub fn owners(&self) -> BTreeMap<GuestAddress, MacAddr> {
        let of = |(mac, guest): (&MacAddr, &GuestHere)| {
            let mac = *mac;
            guest.addresses.keys().map(move |at| (*at, mac)).collect::<Vec<_>>()
        };
        self.guests.iter().flat_map(of).collect()
    }

    pub fn is_given_up(&self, mac: MacAddr) -> bool {
        self.given_up.contains_key(&mac)
    }
}

impl GuestHere {
    /// Whether there is room for an address: one that has not been named for long makes room.
    fn make_room(&mut self, now: Time, at: GuestAddress, out: &mut Outbox) -> bool {
        let of_vlan = || self.addresses.iter().filter(|((vlan, _), _)| *vlan == at.0);
        if self.addresses.contains_key(&at) || of_vlan().count() < GUEST_ADDRESSES_MAX {
            return true;
        }
        let oldest = of_vlan().min_by_key(|(_, named)| **named).map(|(at, named)| (*at, *named));
        match oldest.filter(|(_, named)| now.since(*named) >= limits::GUEST_LIVES) {
            Some((oldest, _)) => {
                self.addresses.remove(&oldest);
                true
            }
            None => {
                out.counters.one(Counter::LimitGuestAddresses);
                false
            }
        }
    }
}
