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

/// A report may be lost, and whoever was asked reports once: it is asked again after so long (RFC 3376, section 8.1: robustness).
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// When groups are to be reported again: where other members take them in than before.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The members by which they were reported last.
    elected: Vec<u8>,
    /// They are to be reported now.
    now: bool,
    /// The question is to be asked once more, whenever the time is looked at next.
    repeat: bool,
    /// Then it is.
    again: Option<Time>,
}

impl Groups {
    pub fn follow(&mut self, elected: &[u8]) {
        if elected != self.elected {
            self.elected = elected.to_vec();
            (self.now, self.repeat) = (true, true);
        }
    }

    pub fn look(&mut self, now: Time) {
        if self.again.take_if(|at| *at <= now).is_some() {
            self.now = true;
        }
        if std::mem::take(&mut self.repeat) {
            self.again = Some(now + ASK_AGAIN);
        }
    }

    /// Whether they are to be reported now, and then no more.
    pub fn take(&mut self) -> bool {
        std::mem::take(&mut self.now)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_asked_for_at_once_and_once_more_when_another_member_is_elected() {
        let mut groups = Groups::default();
        // Every 100 ms: whether it asks. Another member is elected at 0.2 s, and again at 0.9 s.
        let asks = |tick: u64, groups: &mut Groups| {
            groups.follow(if (2..9).contains(&tick) { &[1] } else { &[] });
            groups.look(Time::from_millis(tick * 100));
            groups.take()
        };
        let asked: Vec<u64> = (0..40).filter(|tick| asks(*tick, &mut groups)).collect();
        assert_eq!(asked, [2, 9, 19]);
    }
}
