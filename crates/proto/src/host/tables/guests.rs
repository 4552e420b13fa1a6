//! The rows of guests: which MACs and addresses lead to them, and by which aliases their frames come.

use super::{Sources, Tables, Usable, all_macs};
use crate::{
    arp_plus::{ArpPlus, GuestAddress, Peer, alias_of},
    host::{
        image::{GuestPair, MacKind, PLAIN_PLAN, PeerMac},
        written::Key,
    },
};
use linkbraid_wire::{Guest, MacAddr};
use std::collections::BTreeSet;

impl Tables {
    /// The own guests that peers know of; whether there were any and are none, or the other way round: aliases follow from that.
    pub fn set_own_guests(&mut self, guests: &[Guest]) -> bool {
        let had = std::mem::replace(&mut self.has_own_guests, !guests.is_empty());
        let row = |guest: &Guest| {
            let pair = GuestPair { mac: guest.mac, plan: PLAIN_PLAN };
            let vlan = guest.vlan;
            guest.addresses.iter().map(move |address| ((vlan, *address), pair)).collect::<Vec<_>>()
        };
        let rows: Vec<(GuestAddress, GuestPair)> = guests.iter().flat_map(row).collect();
        let wanted: BTreeSet<GuestAddress> = rows.iter().map(|(at, _)| *at).collect();
        self.drop_guests_of(PLAIN_PLAN, |at| wanted.contains(&at));
        rows.into_iter().for_each(|(at, pair)| self.set_guest(at, pair));
        had != self.has_own_guests
    }

    /// The addresses of a peer's guests, as far as they are believed.
    pub(super) fn set_guests_of(
        &mut self,
        number: u32,
        arp_plus: &ArpPlus,
        peer: &Peer,
    ) -> Vec<GuestAddress> {
        let located = &arp_plus.located_guests().addresses;
        let of = |guest: &Guest| {
            let (vlan, mac) = (guest.vlan, guest.mac);
            guest.addresses.iter().map(move |address| ((vlan, *address), mac)).collect::<Vec<_>>()
        };
        let announced = peer.guests.iter().flat_map(of);
        let rows: Vec<(GuestAddress, MacAddr)> =
            announced.filter(|(at, mac)| located.get(at) == Some(&(*mac, peer.key))).collect();
        for (at, mac) in &rows {
            self.set_guest(*at, GuestPair { mac: *mac, plan: number });
        }
        let wanted: BTreeSet<GuestAddress> = rows.into_iter().map(|(at, _)| at).collect();
        let old = self.peers.get(&peer.key).map_or(Vec::new(), |rows| rows.guests.clone());
        for at in old.iter().filter(|at| !wanted.contains(at)) {
            self.drop_guest(*at, number);
        }
        wanted.into_iter().collect()
    }

    /// All MACs that lead to a peer, with their rows.
    pub(super) fn mac_rows(
        &self,
        number: u32,
        has_guests: bool,
        sources: &Sources<'_, impl Usable>,
        peer: &Peer,
    ) -> Vec<(MacAddr, PeerMac)> {
        let (key, arp_plus) = (peer.key, sources.arp_plus);
        let takes_guests = peer.takes_guests();
        let member = PeerMac {
            plan: number,
            primary: peer.mac(),
            broadcast_slot: arp_plus.broadcast_slot(&key),
            kind: MacKind::Member { has_guests, takes_guests },
        };
        let is_its = |mac: &MacAddr| arp_plus.peer_by_mac(*mac).is_some_and(|owner| owner.key == key);
        let was_its = |mac: &MacAddr| self.inherited.get(mac) == Some(&number);
        let mut rows: Vec<(MacAddr, PeerMac)> =
            all_macs(peer).filter(|mac| is_its(mac) || was_its(mac)).map(|mac| (mac, member)).collect();
        if takes_guests && self.has_own_guests {
            //= docs/arp-plus.md#14.3
            let alias = PeerMac { kind: MacKind::Alias { has_guests }, ..member };
            let is_free = |mac: &MacAddr| {
                arp_plus.peer_by_mac(*mac).is_none() && sources.members.iter().all(|own| own.mac != *mac)
            };
            let aliases = peer.members.iter().map(|member| alias_of(member.mac)).filter(is_free);
            rows.extend(aliases.map(|mac| (mac, alias)));
        }
        let located = &arp_plus.located_guests().macs;
        let macs: BTreeSet<MacAddr> = peer.guests.iter().map(|guest| guest.mac).collect();
        let its: Vec<MacAddr> = macs.into_iter().filter(|mac| located.get(mac) == Some(&key)).collect();
        rows.retain(|(mac, _)| !its.contains(mac));
        let guest = |mac| (mac, PeerMac { primary: mac, kind: MacKind::Guest, ..member });
        rows.extend(its.into_iter().map(guest));
        rows
    }

    fn set_guest(&mut self, at: GuestAddress, pair: GuestPair) {
        self.inherited_guests.remove(&at);
        if self.image.guest_pairs.insert(at, pair) != Some(pair) {
            self.written.touch(Key::GuestPair(at));
        }
    }

    /// Drops an address of a guest of that plan, unless it is another's by now.
    fn drop_guest(&mut self, at: GuestAddress, number: u32) {
        if self.image.guest_pairs.get(&at).is_some_and(|pair| pair.plan == number) {
            self.image.guest_pairs.remove(&at);
            self.written.touch(Key::GuestPair(at));
        }
    }

    /// Drops all addresses of guests of that plan that are not to be kept.
    pub(super) fn drop_guests_of(&mut self, number: u32, keep: impl Fn(GuestAddress) -> bool) {
        let of_plan = self.image.guest_pairs.iter().filter(|(at, pair)| pair.plan == number && !keep(**at));
        for at in of_plan.map(|(at, _)| *at).collect::<Vec<_>>() {
            self.drop_guest(at, number);
        }
    }

    /// Forgets the guests of peers that an earlier daemon knew and nobody has announced since.
    pub(super) fn drop_inherited_guests(&mut self) {
        for at in std::mem::take(&mut self.inherited_guests) {
            if let Some(pair) = self.image.guest_pairs.get(&at).copied() {
                self.drop_guest(at, pair.plan);
            }
        }
    }

    /// The own guests that an earlier daemon had announced.
    pub fn former_guests(&self) -> Vec<(GuestAddress, MacAddr)> {
        let own = self.image.guest_pairs.iter().filter(|(_, pair)| pair.plan == PLAIN_PLAN);
        own.map(|(at, pair)| (*at, pair.mac)).collect()
    }
}
