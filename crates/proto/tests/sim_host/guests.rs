//! Guests behind bonds, a macvlan each: they speak with MACs of their own, by the one member that `guest_slot()` gives, or, once
//! hosts know of them, over the lanes of peers' plans. A broadcast stands for ARP: by it a guest names its address.
//!
//! What a switch floods of a guest's frame therefore comes in by another member
//! of its host, as if from elsewhere, once. That is counted, and allowed.

use super::{Port, Sent, World, addresses, mac};
use crate::path::{Addresses, Taken};
use linkbraid_wire::MacAddr;

impl World {
    /// How many can send and receive: hosts with and without a daemon, then guests.
    pub fn stations(&self) -> usize {
        self.hosts() + self.guests.len()
    }

    /// The host that a guest is behind; any other station is its own.
    pub fn home(&self, station: usize) -> usize {
        station.checked_sub(self.hosts()).map_or(station, |guest| self.guests[guest])
    }

    fn guests_of(&self, host: usize) -> Vec<usize> {
        (self.hosts()..self.stations()).filter(|guest| self.home(*guest) == host).collect()
    }

    pub(super) fn is_guest(&self, address: MacAddr) -> bool {
        (self.hosts()..self.stations()).any(|guest| mac(guest, 0) == address)
    }

    /// The ports that a station sends and receives by.
    pub(super) fn ports(&self, station: usize) -> Vec<Port> {
        let home = self.home(station);
        if home != station {
            let slot = self.machines[home].path.guest_slot(mac(station, 0));
            return slot.map(|slot| (home, slot)).into_iter().collect();
        }
        self.cables.keys().filter(|port| port.0 == station).copied().collect()
    }

    /// A guest goes on behind another host, and says so. What its former host notes of it stays.
    pub fn move_guest(&mut self, guest: usize, host: usize) {
        let first = self.hosts();
        self.guests[guest - first] = host;
        self.send(guest, None, 0);
    }

    /// The addresses of a frame: stations have one each.
    pub(super) fn addresses_of(&self, number: u64) -> Addresses {
        let Sent { from, to, .. } = self.sent[number as usize];
        let address = |station| addresses(station).next().expect("an address");
        Addresses { source: address(from), destination: to.map(address) }
    }

    /// Whether the IP stack of a host takes a frame that is for the bond's MAC; one for the address of a guest it does not route.
    fn is_for_host(&self, number: u64) -> bool {
        self.sent[number as usize].to.is_none_or(|to| to < self.hosts())
    }

    /// Whether all are on one switch: then hosts that know a third one know each other, too.
    pub fn is_one_network(&self) -> bool {
        self.cables.values().all(|switch| *switch == self.cables[&(0, 0)])
    }

    /// What is passed on comes from a MAC of its sender, or of the host that its sender is behind; from no alias.
    fn check_source(&self, from: usize, source: MacAddr) {
        let of_home =
            self.cables.keys().filter(|port| port.0 == self.home(from)).map(|port| mac(port.0, port.1));
        let own = std::iter::once(mac(from, 0));
        let is_its = own.chain(of_home).any(|mac| mac == source);
        let is_guest = from >= self.hosts();
        let all_know = self.settled && self.is_one_network();
        let is_right = if all_know && is_guest { source == mac(from, 0) } else { is_its };
        assert!(is_right, "a frame of {from} comes from {source} at {:?}: {}", self.now(), self.describe());
    }

    /// An application's frame at a host with a daemon: the host has it, or guests have, or nobody.
    pub(super) fn take(&mut self, number: u64, (host, slot): Port, source: MacAddr, destination: MacAddr) {
        let (now, addresses) = (self.clock(host), self.addresses_of(number));
        let path = &mut self.machines[host].path;
        let (taken, source) = path.take(now, slot, (source, destination), Some(addresses));
        let from = self.sent[number as usize].from;
        let is_taken = matches!(taken, Taken::Accepted | Taken::Guest(_));
        if is_taken && from != host && self.home(from) == host {
            self.returned += 1;
            return self.count(number, host, destination);
        }
        if taken == Taken::Accepted && self.is_for_host(number) {
            self.check_source(from, source);
            self.accept(number, host, slot, destination);
        }
        let is_for = |guest: &usize| match taken {
            Taken::Accepted => destination.is_multicast(),
            Taken::Guest(guest_mac) => mac(*guest, 0) == guest_mac,
            Taken::Own | Taken::Dropped => false,
        };
        for guest in self.guests_of(host).into_iter().filter(is_for) {
            self.check_source(from, source);
            self.accept(number, guest, slot, destination);
        }
    }
}
