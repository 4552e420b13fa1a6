//! Guests of the bond: when they are looked at, and when switches are reminded of them.

use super::{Action, Host};
use crate::{
    Time,
    arp_plus::{self, SeenGuests},
    limits,
};
use linkbraid_wire::MacAddr;

/// When something is due.
#[derive(Debug, Default)]
pub(super) struct GuestTimes {
    /// They were looked at last then.
    looked: Option<Time>,
    /// Some had an address.
    any: bool,
    /// Switches are to be reminded then; none while no guest is announced.
    remind: Option<Time>,
}

impl Host {
    /// Whether [`super::Input::Guests`] is wanted now, though no guest has named an address since the last one.
    #[must_use]
    pub fn wants_guests(&self, now: Time) -> bool {
        let any = self.guest_times.any;
        let contested = self.arp_plus.are_guests_contested();
        let after = if contested { limits::GUEST_LOOK_CONTESTED } else { limits::GUEST_LOOK };
        self.guest_times.looked.is_none_or(|at| (any || contested) && now.since(at) >= after)
    }

    pub(super) fn see_guests(&mut self, seen: &SeenGuests) {
        self.guest_times.looked = Some(self.now);
        self.guest_times.any = !seen.addresses.is_empty();
        self.arp_plus.handle(self.now, arp_plus::Input::Guests(seen));
    }

    /// Other own guests are announced.
    pub(super) fn take_own_guests(&mut self) {
        let guests = self.arp_plus.announced_guests();
        self.differ.all |= self.tables.set_own_guests(guests);
        self.guest_times.remind = match self.guest_times.remind {
            _ if guests.is_empty() => None,
            None => Some(self.now + limits::GUEST_REMIND),
            at => at,
        };
        self.written_or_not();
    }

    pub(super) fn next_reminder(&self) -> Option<Time> {
        self.guest_times.remind
    }

    /// Switches forget where a guest is whose frames all leave under members' MACs.
    pub(super) fn remind_switches(&mut self) {
        //= docs/arp-plus.md#14.7
        if self.guest_times.remind.is_some_and(|at| at <= self.now) {
            self.guest_times.remind = Some(self.now + limits::GUEST_REMIND);
            let mut macs: Vec<MacAddr> =
                self.arp_plus.announced_guests().iter().map(|guest| guest.mac).collect();
            macs.sort_unstable();
            macs.dedup();
            self.actions.push_back(Action::AnnounceGuests(macs));
        }
    }
}
