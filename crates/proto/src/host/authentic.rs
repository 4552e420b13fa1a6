//! What leaves is signed, and what comes in is judged, before and after the machines of the host.

use super::{Action, Host};
use crate::{
    arp_plus,
    auth::{self, Auth, Port},
};
use linkbraid_wire::{AUTH_TLV_LEN, MacAddr, is_arp_plus};

impl Host {
    /// What authentication is set to.
    pub(super) fn set_auth(&mut self) {
        self.auth.set(self.settings.auth.clone());
        let bytes = if self.auth.signs() { AUTH_TLV_LEN } else { 0 };
        self.arp_plus.handle(self.now, arp_plus::Input::Appended(bytes));
    }

    /// Whether a frame goes on to the machines. Answers of plain hosts do: they hold no code.
    pub(super) fn admits(&mut self, slot: u8, bytes: &[u8]) -> bool {
        if !is_arp_plus(bytes) {
            return true;
        }
        let own: Vec<MacAddr> = self.members.iter().map(|member| member.mac).collect();
        let mac = self.members.iter().find(|member| member.slot == slot).map(|member| member.mac);
        // One that came in on a member that has gone is not for us; the machines count it.
        let port = Port { slot, mac: mac.unwrap_or(MacAddr::ZERO), own: &own };
        let admits = self.auth.admit(self.now, port, bytes);
        while let Some(action) = self.auth.poll_action() {
            match action {
                auth::Action::Send { slot, frame } => self.actions.push_back(Action::Send { slot, frame }),
                auth::Action::Unkeyed(host) => self.actions.push_back(Action::Unkeyed(host)),
                auth::Action::Met { slot, mac, host } => {
                    self.arp_plus.handle(self.now, arp_plus::Input::Met { slot, mac, host });
                }
            }
        }
        admits
    }

    /// Sends a frame of ARP+, or of ARP.
    pub(super) fn send(&mut self, slot: u8, frame: Vec<u8>) {
        let frame = self.auth.sign(self.now, frame);
        self.actions.extend(frame.map(|frame| Action::Send { slot, frame }));
    }

    /// Authentication, for reports.
    pub const fn auth(&self) -> &Auth {
        &self.auth
    }
}
