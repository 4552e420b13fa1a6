//! What the programs of the data path do with guests' addresses (`crates/dataplane/src/bpf/pairs.bpf.h`), and what they note of
//! guests for the daemon.

use super::{Path, Taken};
use linkbraid_proto::{
    Time,
    arp_plus::{GuestAddress, SeenAddress, SeenGuests},
    host::{GuestPair, MacKind, PLAIN_PLAN},
};
use linkbraid_wire::MacAddr;
use std::{collections::BTreeMap, net::IpAddr, time::Duration};

/// What a switch sends back to its sender it sends back within that time.
const BACK: Duration = Duration::from_millis(500);

/// The addresses of a frame of an application: it is IP, or it is ARP.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    pub source: IpAddr,
    /// None: a broadcast, by which a guest names its address.
    pub destination: Option<IpAddr>,
}

/// An address that was not named for so long is news when it is named again.
const AGAIN: Duration = Duration::from_secs(1);

/// What the data path notes of guests here.
#[derive(Debug, Default, Clone)]
pub struct Notes {
    last_sent: BTreeMap<MacAddr, Time>,
    addresses: BTreeMap<GuestAddress, (MacAddr, Time)>,
    /// How often an address came to the notes.
    pub changes: u64,
    /// The daemon has been alive: until then guests' frames go over lanes.
    pub until: Time,
}

impl Notes {
    /// A guest here sends.
    pub fn note(&mut self, now: Time, guest: MacAddr, addresses: Addresses) {
        self.last_sent.insert(guest, now);
        if addresses.destination.is_none() {
            let at = (0, addresses.source);
            let is_news = |(mac, named): &(MacAddr, Time)| *mac != guest || now.since(*named) > AGAIN;
            self.changes += u64::from(self.addresses.get(&at).is_none_or(is_news));
            self.addresses.insert(at, (guest, now));
        }
    }

    /// A broadcast from a MAC comes in: long after what it sent here, it shows that the guest is elsewhere.
    pub fn hear(&mut self, now: Time, source: MacAddr) {
        if self.last_sent.get(&source).is_some_and(|last| now.since(*last) >= BACK) {
            self.last_sent.remove(&source);
        }
    }

    /// As the daemon reads it.
    pub fn seen(&self) -> SeenGuests {
        let address = |(at, (mac, named)): (&GuestAddress, &(MacAddr, Time))| SeenAddress {
            vlan: at.0,
            address: at.1,
            mac: *mac,
            named: *named,
        };
        SeenGuests {
            last_sent: self.last_sent.iter().map(|(mac, last)| (*mac, *last)).collect(),
            addresses: self.addresses.iter().map(address).collect(),
        }
    }
}

impl Path {
    fn pair(&self, address: IpAddr) -> Option<GuestPair> {
        self.rows.guest_pairs.get(&(0, address)).copied()
    }

    /// `peer_plan()` and `are_paired()`: the plan of the peer over whose lanes a frame leaves, and whether by aliases.
    /// `guest`: the MAC here that it comes from.
    pub fn plan_to_peer(
        &self,
        now: Time,
        to: MacAddr,
        guest: Option<MacAddr>,
        addresses: Addresses,
    ) -> Option<(u32, bool)> {
        let row = self.rows.peer_macs.get(&to)?;
        let for_guest = row.kind == MacKind::Guest;
        match (guest, row.kind) {
            (None, MacKind::Member { .. }) => return Some((row.plan, false)),
            (_, MacKind::Alias { .. }) => return None,
            (Some(_), MacKind::Member { takes_guests: false, .. }) => return None,
            _ => {}
        }
        let is_here = |guest| self.pair(addresses.source) == Some(GuestPair { mac: guest, plan: PLAIN_PLAN });
        let is_there = || {
            addresses.destination.and_then(|ip| self.pair(ip)) == Some(GuestPair { mac: to, plan: row.plan })
        };
        let is_paired = now < self.notes.until && guest.is_none_or(is_here) && (!for_guest || is_there());
        is_paired.then_some((row.plan, for_guest))
    }

    /// `take_by_address()`: the guest that a frame from a peer's MAC is for, if any, and the MAC that its source gets.
    pub fn take_by_address(&self, source: MacAddr, addresses: Addresses) -> (Option<Taken>, MacAddr) {
        let Some(row) = self.rows.peer_macs.get(&source) else { return (None, source) };
        let (has_guests, is_alias) = match row.kind {
            MacKind::Guest => return (None, source),
            MacKind::Member { has_guests, .. } => (has_guests, false),
            MacKind::Alias { has_guests } => (has_guests, true),
        };
        let from = self.pair(addresses.source).filter(|pair| has_guests && pair.plan == row.plan);
        let from = from.map_or(row.primary, |pair| pair.mac);
        if !is_alias {
            return (None, from);
        }
        match addresses.destination.and_then(|ip| self.pair(ip)) {
            None => (None, source),
            Some(pair) if pair.plan == PLAIN_PLAN => (Some(Taken::Guest(pair.mac)), from),
            Some(_) => (Some(Taken::Dropped), from),
        }
    }
}
