//! The own members, as the machine knows them.

use crate::inspector::MemberReport;
use linkbraid_wire::MacAddr;

/// One member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its number; stays while other members come and go.
    pub slot: u8,
    /// Its interface: another one in the same slot is another member.
    pub ifindex: u32,
    /// Its own MAC.
    pub mac: MacAddr,
    /// Whether it is set up and in the bond.
    pub admin_up: bool,
    /// Whether it has carrier.
    pub carrier: bool,
    /// The link's own speed in Mbit/s, if it is known.
    pub speed_mbit: Option<u32>,
    /// Whether it sends and receives at once, if known.
    pub full_duplex: Option<bool>,
    /// Whether it was added just now and is not yet known to reach anybody.
    pub joining: bool,
    /// Whether it is to leave: peers were informed, and it still takes frames in.
    pub leaving: bool,
    /// Its share in Mbit/s.
    pub weight_mbit: u32,
    /// Whether that is its rate whatever is measured.
    pub weight_fixed: bool,
    /// The class that has it for itself; 0: none.
    pub class: u8,
    /// Whether it is fit to carry traffic, as the inspector says of its own link. What an input says of it is ignored.
    pub alive: bool,
    /// Whether no lane says otherwise; a member whose switch port has failed keeps its carrier. Ignored in an input, too.
    pub sound: bool,
}

impl Member {
    /// Whether it carries traffic.
    pub const fn live(&self) -> bool {
        self.alive && !self.joining && !self.leaving
    }

    pub(super) const fn report(&self) -> MemberReport {
        MemberReport {
            slot: self.slot,
            mac: self.mac,
            admin_up: self.admin_up,
            carrier: self.carrier,
            speed_mbit: self.speed_mbit,
            full_duplex: self.full_duplex,
        }
    }
}
