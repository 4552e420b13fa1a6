//! What is behind a bond: the host itself and its guests. Switches are to find both by the members that they use now.

use super::Driven;
use linkbraid_link::{ArpPlusSender, group_queries, station_here};
use linkbraid_wire::MacAddr;
use std::time::Duration;

/// A guest that has sent nothing for so long may be gone: as long as a bridge remembers one.
const GUEST_LIVES: Duration = Duration::from_secs(300);

impl Driven {
    /// Has switches learn by which members guests are reached now, by frames in the guests' names.
    pub(super) fn announce_guests(&self, sender: &mut ArpPlusSender) {
        for mac in self.guests() {
            // The data path sends it by the guest's own member.
            if let Err(error) = sender.send(self.port, &station_here(mac)) {
                tracing::debug!(bond = %self.name, %error, "a guest is not announced");
            }
        }
    }

    /// Has the host and its guests report their groups again: a switch that snoops sends them to the port alone that it heard of them
    /// on, which is that of another member now. They take it for the question of a router, which nobody else hears.
    pub(super) fn ask_groups(&self, sender: &mut ArpPlusSender) {
        let Some(end) = self.port_end else { return };
        for query in group_queries(self.own.mac) {
            if let Err(error) = sender.send(end, &query) {
                tracing::debug!(bond = %self.name, %error, "groups are not reported again");
            }
        }
    }

    /// The MACs of guests that live behind the bond.
    pub(super) fn guests(&self) -> Vec<MacAddr> {
        let guests = self.tables.guests(GUEST_LIVES);
        let guests =
            guests.inspect_err(|error| tracing::error!(bond = %self.name, %error, "guests not read"));
        guests.unwrap_or_default().into_iter().map(|(mac, _)| MacAddr(mac)).collect()
    }
}
