//! One interface: whether it can be a member, and what will get in the way.

use super::{
    device::{Bus, Device},
    findings::{Report, list},
};
use crate::{io::manager::Manager, world::record::findings};
use linkbraid_link::{LinkInfo, Offloads, Speed};

/// One interface that was asked for.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    pub name: String,
    /// The bond of ours that it is a member of.
    pub bond: Option<String>,
    /// None where there is none of this name.
    pub nic: Option<Nic>,
}

/// An interface that is there.
#[derive(Debug, Clone)]
pub(super) struct Nic {
    pub link: LinkInfo,
    pub speed: Option<Speed>,
    /// Whether energy-efficient Ethernet is in use, where the driver says.
    pub eee: Option<bool>,
    pub driver: Option<String>,
    pub offloads: Option<Offloads>,
    /// None where the driver names no place on a bus, as that of a veth.
    pub device: Option<Device>,
    /// The user has set its weight, so its speed does not matter.
    pub weighted: bool,
    /// What it is a port of, unless that is the bond it is a member of.
    pub held_by: Option<String>,
    /// Its addresses, `ADDRESS/PREFIX`, without those that IPv6 makes by itself.
    pub addresses: Vec<String>,
    /// One of them ends unless somebody renews it.
    pub leased: bool,
    pub default_route: bool,
    pub managers: Vec<Manager>,
    /// The sides where programs of others come before those of its bond (`ingress`, `egress`), with the command that lists them.
    pub before: Vec<(&'static str, String)>,
    /// Other interfaces here with its MAC.
    pub same_mac: Vec<String>,
    /// Other hosts with its MAC.
    pub elsewhere: Vec<String>,
}

impl Interface {
    /// What is found about it alone.
    pub(super) fn report(&self) -> Report {
        let mut report = Report::new(&self.name, "interface");
        let Some(nic) = &self.nic else {
            report.error("exists", "no such interface", "ip -br link");
            return report;
        };
        if let Some((name, text, hint)) = nic.refusal(&self.name) {
            report.error(name, text, hint);
            return report;
        }
        nic.carrier(self, &mut report);
        nic.speed(self, &mut report);
        nic.bus(&mut report);
        nic.offloads(&self.name, &mut report);
        nic.mac(&self.name, &mut report);
        nic.managers(self, &mut report);
        nic.before(&mut report);
        match &self.bond {
            Some(bond) => nic.own_addresses(&self.name, bond, &mut report),
            None => nic.addresses(&self.name, &mut report),
        }
        if let Some(driver) = &nic.driver {
            report.fine(format!("driver {driver}"));
        }
        report
    }
}

impl Nic {
    /// Why it cannot be a member: the finding's name, the words, the hint.
    pub(super) fn refusal(&self, name: &str) -> Option<(&'static str, String, String)> {
        let link = &self.link;
        let list = || "ip -br link".to_owned();
        let show = || format!("ip -d link show {name}");
        Some(match (link.kind.as_deref(), &self.held_by) {
            _ if link.loopback => ("ethernet", "it is the loopback interface".into(), list()),
            _ if !link.ethernet => ("ethernet", "it is not an Ethernet interface".into(), list()),
            _ if link.wireless => {
                let text = "a wireless station cannot send from other interfaces' addresses";
                ("wireless", text.into(), list())
            }
            (Some(kind @ ("bridge" | "bond" | "team")), _) => {
                ("kind", format!("it is itself a {kind}"), show())
            }
            _ if !link.mac.is_host() => ("mac", "it has no MAC of its own".into(), show()),
            (_, Some(holder)) => {
                let hint = format!("ip link set dev {name} nomaster");
                ("controller", format!("it is in '{holder}' already"), hint)
            }
            _ => return None,
        })
    }

    fn carrier(&self, interface: &Interface, report: &mut Report) {
        let name = &interface.name;
        match (self.link.up, self.link.carrier) {
            (true, true) => report.fine("carrier"),
            (true, false) => {
                report.warn(
                    "carrier",
                    "no carrier: no cable, or the other end is off",
                    format!("ethtool {name}"),
                );
            }
            (false, _) => {
                let text = match &interface.bond {
                    Some(_) => "somebody has set it down: it carries no traffic",
                    None => "it is set down, so whether it has carrier is not known",
                };
                report.warn("carrier", text, format!("ip link set dev {name} up"));
            }
        }
    }

    /// Speed, duplex and energy saving, which a link without carrier does not have.
    fn speed(&self, interface: &Interface, report: &mut Report) {
        let name = &interface.name;
        if !self.link.running() {
            return;
        }
        match (self.speed, &interface.bond) {
            (Some(Speed { mbit, full_duplex: Some(true) }), _) => {
                report.fine(format!("{mbit} Mbit/s full duplex"));
            }
            (Some(Speed { mbit, .. }), _) => report.fine(format!("{mbit} Mbit/s")),
            (None, _) if self.weighted => {}
            (None, bond) => {
                let text = "its driver reports no speed, so its weight is that of 1000 Mbit/s";
                let hint = match bond {
                    Some(bond) => format!("linkbraid member set {bond} {name} --weight 1000"),
                    None => format!("ethtool {name}"),
                };
                report.warn("speed", text, hint);
            }
        }
        if self.speed.is_some_and(|speed| speed.full_duplex == Some(false)) {
            let text = "half duplex: sending and receiving wait for each other, often because one end does not \
                        negotiate";
            report.warn("duplex", text, format!("ethtool -s {name} autoneg on"));
        }
        if self.eee == Some(true) {
            let text = "energy-efficient Ethernet is in use: waking the link takes 20 to 200 us, and the delays of lanes differ by as much";
            report.warn("eee", text, format!("ethtool --set-eee {name} eee off"));
        }
    }

    /// Mbit/s, while it has carrier.
    pub(super) fn mbit(&self) -> Option<u32> {
        self.speed.filter(|_| self.link.running()).map(|speed| speed.mbit)
    }

    /// A bus that carries less than the link.
    fn bus(&self, report: &mut Report) {
        let (Some(link), Some(bus)) =
            (self.mbit(), self.device.as_ref().and_then(|device| device.bus.as_ref()))
        else {
            return;
        };
        if usable(bus.mbit()) >= link {
            return;
        }
        match bus {
            Bus::Usb { mbit, .. } => {
                let text = format!(
                    "the link has {link} Mbit/s and its USB port {mbit}: use a faster port, without a hub"
                );
                report.warn("bus", text, "lsusb -t");
            }
            Bus::Pci { address, mbit, able } => {
                let more =
                    if able > mbit { format!("; another slot may give it {able}") } else { String::new() };
                let text = format!("the link has {link} Mbit/s and its PCIe lanes {mbit}{more}");
                report.warn("bus", text, format!("lspci -vv -s {address}"));
            }
        }
    }

    /// Without these the processor handles each frame by itself. Virtual interfaces do without GRO, and the device of one that has no
    /// segmentation leaves it to GSO.
    fn offloads(&self, name: &str, report: &mut Report) {
        let Some(offloads) = self.offloads else { return };
        let (who, on) = match (offloads.gso, offloads.gro || self.device.is_none()) {
            (true, true) => return,
            (false, true) => ("GSO is", "gso on"),
            (true, false) => ("GRO is", "gro on"),
            (false, false) => ("GSO and GRO are", "gso on gro on"),
        };
        let text = format!("{who} off: each frame costs the processor as much as a long buffer");
        report.warn("offloads", text, format!("ethtool -K {name} {on}"));
    }

    fn mac(&self, name: &str, report: &mut Report) {
        let mac = self.link.mac;
        // Locally administered, and as different as the indexes of the interfaces.
        let [a, b, c, d] = self.link.index.to_be_bytes();
        let hint = format!("ip link set dev {name} address 02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}");
        if !self.same_mac.is_empty() {
            let text = format!(
                "its MAC {mac} is that of {} too: a switch sends to one of them at a time",
                list(&self.same_mac)
            );
            report.error("duplicate_mac", text, hint.clone());
        }
        if !self.elsewhere.is_empty() {
            let text = format!(
                "another host has its MAC {mac}, too: {}; frames for one reach the other",
                self.elsewhere.join(", ")
            );
            report.error("mac_elsewhere", text, hint);
        }
        if self.same_mac.is_empty() && self.elsewhere.is_empty() {
            report.fine("a MAC of its own");
        }
    }

    fn managers(&self, interface: &Interface, report: &mut Report) {
        for manager in &self.managers {
            let hint = manager.hint(&interface.name, interface.bond.is_some());
            report.warn(manager.name(), manager.text(), hint);
        }
        if self.managers.is_empty() {
            report.fine("no manager in the way");
        }
    }

    /// What would move to a bond.
    fn addresses(&self, name: &str, report: &mut Report) {
        let join = format!("linkbraid bond add bond0 --member {name}");
        if !self.addresses.is_empty() {
            let text = format!("{} would move to the bond", self.addresses.join(", "));
            report.warn("address", text, format!("ip address show dev {name}"));
        }
        if self.leased && self.managers.is_empty() {
            let text = "its address came by DHCP and ends with its lease: on a bond, a client on the bond must renew \
                        it";
            report.warn("lease", text, format!("ip -4 address show dev {name}"));
        }
        if self.default_route {
            let text =
                "the default route leads through it and would move to the bond, which has to be allowed";
            report.warn("default_route", text, format!("{join} --move-address"));
        }
    }

    /// Programs that see frames first, and may keep them.
    fn before(&self, report: &mut Report) {
        for (side, hint) in &self.before {
            let text = format!(
                "a tc program that is not linkbraid's comes first on {side}: of frames that it does not hand on, the bond sees nothing"
            );
            report.warn("programs_before", text, hint);
        }
    }

    /// What should have moved to the bond.
    fn own_addresses(&self, name: &str, bond: &str, report: &mut Report) {
        report.take(findings::own_addresses(name, bond, &self.addresses));
        if self.default_route {
            report.take([findings::own_default_route(name, bond, false)]);
        }
    }
}

impl Bus {
    pub(super) fn mbit(&self) -> u32 {
        match self {
            Self::Usb { mbit, .. } | Self::Pci { mbit, .. } => *mbit,
        }
    }
}

/// Of what a bus carries, without the headers of its packets.
pub(super) fn usable(mbit: u32) -> u32 {
    mbit - mbit / 8
}
