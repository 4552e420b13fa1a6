//! Guests: machines and containers behind hosts, with MACs of their own, and which host each is behind.
//!
//! Own guests are those that were seen to name an address as theirs ([`SeenGuests`]); others are what peers announce. A MAC is
//! behind one host at a time: who announced it last has it, and the earlier host gives it up unless the guest sends there.

use super::{
    ArpPlus, Conflict, Counter, Peer, PeerKey, PeerState, Signal, Timing, outbox::Outbox, own::Own,
    table::Table,
};
use crate::{Time, limits};
use linkbraid_wire::MacAddr;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

mod claims;
mod here;

use claims::{By, Claim, Claims};
use here::Here;

/// An address in its VLAN (0: none).
pub type GuestAddress = (u16, IpAddr);

/// An address that a guest here named as its own, in ARP or neighbour discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenAddress {
    /// Its VLAN; 0: none.
    pub vlan: u16,
    /// The address.
    pub address: IpAddr,
    /// The guest's MAC.
    pub mac: MacAddr,
    /// When it named the address last.
    pub named: Time,
}

/// All that is known of guests here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenGuests {
    /// When each sent a frame last.
    pub last_sent: Vec<(MacAddr, Time)>,
    /// What addresses they named.
    pub addresses: Vec<SeenAddress>,
}

/// Which peer each guest is behind that is not here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Located {
    /// By MAC.
    pub macs: BTreeMap<MacAddr, PeerKey>,
    /// By address: the MAC that has it, and the peer.
    pub addresses: BTreeMap<GuestAddress, (MacAddr, PeerKey)>,
}

/// What is known of all guests.
#[derive(Debug, Default)]
pub(super) struct Guests {
    here: Here,
    claims: Claims,
    located: Located,
    /// MACs that lead out of the network; a guest's they cannot be.
    gateways: BTreeSet<MacAddr>,
    /// Something is contested or refused: it is looked at again while that is so.
    is_open: bool,
    /// It is to be looked at again now.
    is_stale: bool,
}

impl Guests {
    pub fn look_again(&mut self) {
        self.is_stale |= self.is_open;
    }

    /// The own addresses are others now: some may have been believed to be guests'.
    pub const fn own_addresses_differ(&mut self) {
        self.is_stale = true;
    }

    /// Whether a guest has what a host has.
    fn has_any_of(&self, peer: &Peer) -> bool {
        let mut macs = peer.members.iter().flat_map(|member| [member.mac, alias_of(member.mac)]);
        let mut addresses = peer.addresses.iter().map(|address| (0, *address));
        macs.any(|mac| self.claims.has(mac) || self.here.has(mac))
            || addresses.any(|at| self.located.addresses.contains_key(&at) || self.here.has_address(at))
    }
}

/// The MAC under which a member sends what is for a guest.
pub fn alias_of(member: MacAddr) -> MacAddr {
    //= docs/arp-plus.md#14.3
    let [first, rest @ ..] = member.0;
    let [b, c, d, e, f] = rest;
    MacAddr([first ^ 2, b, c, d, e, f])
}

/// What a MAC or address is that no guest may have.
struct Taken<'a> {
    own: &'a Own,
    table: &'a Table,
    gateways: &'a BTreeSet<MacAddr>,
}

impl Taken<'_> {
    fn mac(&self, mac: MacAddr) -> bool {
        //= docs/arp-plus.md#14.4
        let is_member = |mac| {
            self.own.slot_of(mac).is_some() || self.own.is_former(mac) || self.table.by_mac(mac).is_some()
        };
        is_member(mac) || is_member(alias_of(mac)) || self.gateways.contains(&mac)
    }

    /// Hosts' own addresses are in no VLAN.
    fn address(&self, (vlan, address): GuestAddress) -> bool {
        vlan == 0 && (self.own.addresses.contains(&address) || self.table.by_address(address).is_some())
    }
}

impl ArpPlus {
    /// Which peer each guest is behind that is not here.
    pub const fn located_guests(&self) -> &Located {
        &self.guests.located
    }

    /// The own guests that peers know of.
    pub fn announced_guests(&self) -> &[linkbraid_wire::Guest] {
        &self.own.guests
    }

    /// All own guests with an address, announced or not.
    pub fn guests_here(&self) -> Vec<linkbraid_wire::Guest> {
        self.guests.here.all()
    }

    /// Whether that guest lives behind another host now.
    pub fn is_guest_elsewhere(&self, mac: MacAddr) -> bool {
        self.guests.located.macs.contains_key(&mac) || self.guests.here.is_given_up(mac)
    }

    /// Whether what guests here do is worth looking at often: one may be here that a peer announces.
    pub const fn are_guests_contested(&self) -> bool {
        self.guests.is_open
    }

    /// What an earlier machine had announced.
    pub(super) fn inherit_guests(&mut self, addresses: &[(GuestAddress, MacAddr)]) {
        self.guests.here.inherit(addresses);
        self.guests.is_stale = true;
    }

    pub(super) fn see_guests(&mut self, now: Time, seen: &SeenGuests) {
        let Guests { here, claims, gateways, .. } = &mut self.guests;
        let taken = Taken { own: &self.own, table: &self.table, gateways };
        self.guests.is_stale |= here.take(now, seen, claims, &taken, &mut self.out);
    }

    pub(super) fn set_gateways(&mut self, gateways: BTreeSet<MacAddr>) {
        self.guests.is_stale |= gateways != self.guests.gateways;
        self.guests.gateways = gateways;
    }

    /// After each input: what follows from it for guests.
    pub(super) fn follow_guests(&mut self, now: Time) {
        let guests = &mut self.guests;
        for key in self.out.changed_peers() {
            let peer = self.table.get(key);
            //= docs/arp-plus.md#14.11
            let announced = peer.filter(|peer| peer.answers).map(|peer| peer.announced_guests());
            let Guests { claims, here, .. } = guests;
            let any = claims.follow(now, *key, announced, |mac| here.has(mac));
            guests.is_stale |= any;
            // Whose MACs become a member's is no guest any more, and a host's own address is none's.
            guests.is_stale |= peer.is_some_and(|peer| guests.has_any_of(peer));
        }
        if self.out.have_all_changed() {
            let table = &self.table;
            guests.claims.retain(|key| table.get(key).is_some());
            // Own members may be others, and have MACs that guests were believed to have.
            guests.is_stale = true;
        }
        if std::mem::take(&mut guests.is_stale) {
            self.locate_guests(now);
        }
    }

    fn locate_guests(&mut self, now: Time) {
        let guests = &mut self.guests;
        let taken = Taken { own: &self.own, table: &self.table, gateways: &guests.gateways };
        guests.here.drop_taken(&taken);
        let open = guests.here.contest(now, &guests.claims, &self.table, &self.timing, &mut self.out);
        let (located, refused) = locate(now, guests, &taken, &self.timing, &mut self.out);
        guests.is_open = open || refused;
        let old = std::mem::replace(&mut guests.located, located);
        changed_keys(&old, &guests.located).into_iter().for_each(|key| self.out.peer_changed(key));
        if self.fit_guests() {
            self.signal(now, Signal::OwnChange);
        }
    }

    /// Announces as many guests as fit from now on; whether that are others than before.
    pub(super) fn fit_guests(&mut self) -> bool {
        let differ = self.own.fit_guests(self.guests.here.all(), &mut self.out);
        if differ {
            self.out.guests_changed();
        }
        differ
    }
}

/// The peers for which the two differ.
fn changed_keys(old: &Located, new: &Located) -> BTreeSet<PeerKey> {
    let macs = |a: &Located, b: &Located| {
        let lost = a.macs.iter().filter(|(mac, key)| b.macs.get(mac) != Some(key));
        lost.map(|(_, key)| *key).collect::<Vec<_>>()
    };
    let addresses = |a: &Located, b: &Located| {
        let lost = a.addresses.iter().filter(|(at, owner)| b.addresses.get(at) != Some(owner));
        lost.map(|(_, (_, key))| *key).collect::<Vec<_>>()
    };
    [macs(old, new), macs(new, old), addresses(old, new), addresses(new, old)].into_iter().flatten().collect()
}

/// Which peer each guest is behind, and whether anything is contested or refused.
fn locate(
    now: Time,
    guests: &Guests,
    taken: &Taken<'_>,
    timing: &Timing,
    out: &mut Outbox,
) -> (Located, bool) {
    let mut located = Located::default();
    let mut is_open = false;
    let primary = |key: PeerKey| taken.table.get(&key).map_or(MacAddr::ZERO, |peer| peer.mac());
    for (mac, claims) in guests.claims.macs() {
        let claims = in_force(claims, taken.table);
        let Some((Claim { heard, .. }, key)) = claims.last().copied() else { continue };
        if taken.mac(mac) {
            is_open = true;
            out.conflict(now, timing, Conflict::GuestMac { mac, by: primary(key) });
            continue;
        }
        if guests.here.has(mac) {
            is_open = true;
            continue;
        }
        if let [.., (_, earlier), _] = claims[..] {
            is_open = true;
            //= docs/arp-plus.md#14.5
            let is_late = now.since(heard) >= limits::GUEST_MOVES;
            if is_late {
                out.conflict(now, timing, Conflict::PeerGuest { mac, owner: earlier, by: primary(key) });
            }
            let is_unknown = claims.iter().any(|(claim, _)| claim.since == Time::ZERO);
            if is_late || is_unknown {
                continue;
            }
        }
        located.macs.insert(mac, key);
    }
    let here = guests.here.owners();
    let mut addresses: Vec<(Time, GuestAddress, MacAddr, PeerKey)> = Vec::new();
    for (at, claims) in guests.claims.addresses() {
        if taken.address(at) {
            is_open = true;
            continue;
        }
        if here.contains_key(&at) {
            continue;
        }
        let claims = in_force(claims, taken.table);
        let owner = claims.iter().rev().find_map(|(claim, key)| {
            let mac = guests.claims.mac_of(*key, at)?;
            (located.macs.get(&mac) == Some(key)).then_some((claim.since, at, mac, *key))
        });
        addresses.extend(owner);
    }
    if addresses.len() > limits::GUEST_ADDRESSES_MAX {
        // Who came first stays.
        addresses.sort_unstable();
        out.counters
            .add(Counter::LimitGuestAddresses, (addresses.len() - limits::GUEST_ADDRESSES_MAX) as u64);
        addresses.truncate(limits::GUEST_ADDRESSES_MAX);
    }
    located.addresses = addresses.into_iter().map(|(_, at, mac, key)| (at, (mac, key))).collect();
    let named: BTreeSet<MacAddr> = located.addresses.values().map(|(mac, _)| *mac).collect();
    located.macs.retain(|mac, _| named.contains(mac));
    (located, is_open)
}

/// The claims of hosts that live.
fn live<'a>(claims: &'a By, table: &'a Table) -> impl Iterator<Item = (Claim, PeerKey)> + 'a {
    let is_alive = |key: &PeerKey| table.get(key).is_some_and(|peer| peer.state == PeerState::Alive);
    claims.iter().filter(move |(key, _)| is_alive(key)).map(|(key, claim)| (*claim, *key))
}

/// The claims that count, the earliest first: those of hosts that live, or of silent ones if there are no others.
fn in_force(claims: &By, table: &Table) -> Vec<(Claim, PeerKey)> {
    let mut all: Vec<(Claim, PeerKey)> = live(claims, table).collect();
    if all.is_empty() {
        all = claims.iter().map(|(key, claim)| (*claim, *key)).collect();
    }
    all.sort_unstable();
    all
}
