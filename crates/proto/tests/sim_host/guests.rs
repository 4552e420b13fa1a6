//! Guests behind bonds, a macvlan each: they speak with MACs of their own, by the one member that `guest_slot()` gives.
//!
//! No table says which MACs are those of guests. What a switch floods of a guest's frame therefore comes in by another member
//! of its host, as if from elsewhere, once. That is counted, and allowed.

use super::{Port, World, mac};
use crate::path::Taken;
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

    /// An application's frame at a host with a daemon: the host has it, or guests have, or nobody.
    pub(super) fn take(&mut self, number: u64, (host, slot): Port, source: MacAddr, destination: MacAddr) {
        let taken = self.machines[host].path.take(slot, source, destination);
        let from = self.sent[number as usize].from;
        let is_taken = matches!(taken, Taken::Accepted | Taken::Guest);
        if is_taken && from != host && self.home(from) == host {
            self.returned += 1;
            return self.count(number, host, destination);
        }
        if taken == Taken::Accepted {
            self.accept(number, host, slot, destination);
        }
        let is_for = |guest: &usize| match taken {
            Taken::Accepted => destination.is_multicast(),
            Taken::Guest => mac(*guest, 0) == destination,
            Taken::Own | Taken::Dropped => false,
        };
        for guest in self.guests_of(host).into_iter().filter(is_for) {
            self.accept(number, guest, slot, destination);
        }
    }
}
