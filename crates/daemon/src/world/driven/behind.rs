//! What is behind a bond: the host itself and its guests. Switches are to find both by the members that they use now.

use super::Driven;
use crate::io::error::About as _;
use linkbraid_api::Error;
use linkbraid_dataplane::GuestSeen;
use linkbraid_link::{ArpPlusSender, group_queries, station_here};
use linkbraid_proto::{
    Time,
    arp_plus::{SeenAddress, SeenGuests},
    host::Input,
    limits,
};
use linkbraid_wire::MacAddr;
use std::time::Duration;

/// Guests' frames go over lanes for so long after the last look: a daemon that is gone does not know where guests went.
const GUESTS_KEPT: Duration = Duration::from_secs(5);

impl Driven {
    /// Has switches learn by which members guests are reached now, by frames in the guests' names.
    pub(super) fn announce_guests(&self, sender: &mut ArpPlusSender, guests: &[MacAddr]) {
        for mac in guests {
            // The data path sends it by the guest's own member.
            if let Err(error) = sender.send(self.port, &station_here(*mac)) {
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

    /// Reads who is behind the bond, where somebody has come or it is time to, and keeps guests' frames on lanes.
    pub(super) fn look_at_guests(&mut self, now: Time) -> Result<(), Error> {
        let what = "cannot read its guests";
        self.tables.keep_guests(GUESTS_KEPT).about(&self.name, what)?;
        let changes = self.tables.guests_seen_changes().about(&self.name, what)?;
        if changes == self.guests_seen && !self.host.wants_guests(now) {
            return Ok(());
        }
        let sent = self.tables.guests(limits::GUEST_LIVES).about(&self.name, what)?;
        let named = self.tables.guests_seen().about(&self.name, what)?;
        let address = |seen: GuestSeen| SeenAddress {
            vlan: seen.address.vlan,
            address: seen.address.ip,
            mac: MacAddr(seen.mac),
            named: now.minus(seen.age),
        };
        let seen = SeenGuests {
            last_sent: sent.into_iter().map(|(mac, age)| (MacAddr(mac), now.minus(age))).collect(),
            addresses: named.into_iter().map(address).collect(),
        };
        self.guests_seen = changes;
        self.host.handle(now, Input::Guests(&seen));
        Ok(())
    }

    /// The MACs of guests that live behind the bond.
    pub(super) fn guests(&self) -> Vec<MacAddr> {
        let guests = self.tables.guests(limits::GUEST_LIVES);
        let guests =
            guests.inspect_err(|error| tracing::error!(bond = %self.name, %error, "guests not read"));
        guests.unwrap_or_default().into_iter().map(|(mac, _)| MacAddr(mac)).collect()
    }
}
