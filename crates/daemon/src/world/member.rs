//! One member of a bond.

use linkbraid_api::{MemberSettings, Weight};
use linkbraid_link::{LinkInfo, Speed};
use linkbraid_proto::host;
use linkbraid_wire::MacAddr;

/// A member whose link does not report its speed gets this weight, in Mbit/s.
const WEIGHT_MBIT_UNKNOWN: u32 = 1000;

/// One member.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub slot: u8,
    pub ifindex: u32,
    pub name: String,
    pub mac: MacAddr,
    /// The MTU of its link, in bytes.
    pub mtu: u32,
    /// The least that it has to have, in bytes: the bond's.
    pub mtu_wanted: u32,
    /// Set up by the administrator.
    pub admin_up: bool,
    /// With carrier, as netlink reported last.
    pub carrier: bool,
    /// With carrier, as the poll reported last: it is earlier, where the driver has an answer.
    pub polled: Option<bool>,
    /// In the bond; somebody may take it out.
    pub ours: bool,
    /// Added just now, and not yet known to reach anybody.
    pub joining: bool,
    /// Peers know that it leaves; it still takes frames in.
    pub leaving: bool,
    /// Its MTU is being changed, which resets its link: it carries nothing meanwhile.
    pub withdrawn: bool,
    /// Its link was reset by this daemon, or is about to be; the machine has not heard of it yet.
    pub was_reset: bool,
    /// The link's own speed, if it reports one.
    pub speed_mbit: Option<u32>,
    pub full_duplex: Option<bool>,
    pub settings: MemberSettings,
    /// The number of its class; 0 for none.
    pub class: u8,
    /// How often the kernel has announced something about its link.
    pub announced: u32,
}

impl Member {
    /// Whether it has carrier.
    pub(crate) fn has_carrier(&self) -> bool {
        self.polled.unwrap_or(self.carrier)
    }

    /// Whether it takes whole what the bond sends.
    pub(crate) const fn fits(&self) -> bool {
        self.mtu >= self.mtu_wanted
    }

    /// Why it carries no traffic, in words; `known` is what the machine knows of it.
    pub(crate) fn reason(&self, known: Option<&host::Member>) -> &'static str {
        match (self.ours, self.admin_up, self.has_carrier()) {
            _ if known.is_some_and(host::Member::live) => "",
            _ if self.leaving => "leaving",
            _ if self.withdrawn => "its MTU is being changed",
            (false, ..) => "taken out of the bond",
            (_, false, _) => "set down",
            _ if !self.fits() => "its MTU is less than the bond's",
            (_, true, false) => "no carrier",
            _ if known.is_some_and(|known| known.alive) => "joining: no peer has answered through it yet",
            _ => "carrier is back, waiting until it lasts",
        }
    }

    /// Its share.
    pub(crate) fn weight_mbit(&self) -> u32 {
        match self.settings.weight {
            Weight::Mbit(mbit) => mbit,
            Weight::Auto => self.speed_mbit.filter(|mbit| *mbit > 0).unwrap_or(WEIGHT_MBIT_UNKNOWN),
        }
    }

    /// Takes over name, MAC, MTU and carrier of its link, as a member of the bond with that index.
    pub(crate) fn read_link(&mut self, link: &LinkInfo, bond: u32) {
        self.name.clone_from(&link.name);
        self.ours = link.controller == Some(bond);
        (self.mac, self.mtu) = (link.mac, link.mtu);
        (self.admin_up, self.carrier) = (link.up, link.carrier);
    }

    /// Takes over the speed of its link. A driver knows none while there is no carrier: the last one stays.
    pub(crate) fn read_speed(&mut self, speed: Option<Speed>) {
        if self.admin_up && self.carrier {
            self.speed_mbit = speed.map(|speed| speed.mbit);
            self.full_duplex = speed.and_then(|speed| speed.full_duplex);
        }
    }

    /// The same for the machine.
    pub(crate) fn to_host(&self) -> host::Member {
        host::Member {
            slot: self.slot,
            ifindex: self.ifindex,
            mac: self.mac,
            admin_up: self.admin_up && self.ours && self.fits() && !self.withdrawn,
            carrier: self.has_carrier(),
            speed_mbit: self.speed_mbit,
            full_duplex: self.full_duplex,
            joining: self.joining,
            leaving: self.leaving,
            weight_mbit: self.weight_mbit(),
            weight_fixed: self.settings.weight_fixed,
            class: self.class,
            alive: false,
            sound: true,
        }
    }
}
