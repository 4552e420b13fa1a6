//! What concerns several interfaces: those of one bond, or those that might become one.

use super::{
    device::Bus,
    facts::{Bond, Facts},
    findings::{Report, list},
    interface::{Interface, Nic, usable},
};
use crate::world::record::findings;
use std::{cmp::Ordering, collections::BTreeMap};

/// What one processor receives without effort, in Mbit/s.
const INTERRUPTS_MBIT: u64 = 2500;
/// What jumbo frames commonly have.
const JUMBO_MTU: u32 = 9000;

/// Holds an interface against the others of its group.
pub(super) fn compare(interface: &Interface, facts: &Facts, report: &mut Report) {
    let Some(nic) = &interface.nic else { return };
    let group: Vec<(&str, &Nic)> = facts
        .interfaces
        .iter()
        .filter(|other| other.bond == interface.bond)
        .filter_map(|other| Some((other.name.as_str(), other.nic.as_ref()?)))
        .filter(|(name, nic)| nic.refusal(name).is_none())
        .collect();
    // One that cannot be a member is held against nothing.
    if !group.iter().any(|(name, _)| *name == interface.name) {
        return;
    }
    speed(interface, nic, &group, report);
    shared_bus(interface, nic, &group, report);
    interrupts(interface, nic, facts.machine.processors, &group, report);
    let bond = facts.bonds.iter().find(|bond| Some(&bond.name) == interface.bond.as_ref());
    mtu(&interface.name, nic, bond, &group, report);
    max_mtu(&interface.name, nic, &group, report);
}

/// Warns of a driver that takes no jumbo frames, where others do: it limits the whole bond.
fn max_mtu(name: &str, nic: &Nic, group: &[(&str, &Nic)], report: &mut Report) {
    let most = |nic: &Nic| nic.link.max_mtu.unwrap_or(u32::MAX);
    let Some(own) = nic.link.max_mtu.filter(|own| *own < JUMBO_MTU) else { return };
    if let Some((other, _)) = group.iter().find(|(_, other)| most(other) >= JUMBO_MTU) {
        let text = format!(
            "its driver takes an MTU of {own} at most, and so does a bond with it; '{other}' takes {JUMBO_MTU}"
        );
        report.warn("max_mtu", text, format!("ip -d link show {name}"));
    }
}

/// Warns of a link that is slower than the fastest.
fn speed(interface: &Interface, nic: &Nic, group: &[(&str, &Nic)], report: &mut Report) {
    let fastest = group.iter().filter_map(|(name, nic)| Some((nic.mbit()?, *name)));
    let (Some(own), Some((most, fastest))) = (nic.mbit(), fastest.max_by_key(|(mbit, _)| *mbit)) else {
        return;
    };
    if own >= most {
        return;
    }
    let text = match nic.weighted {
        true => format!("{own} Mbit/s, while '{fastest}' has {most}; its weight was set by hand"),
        false => format!(
            "{own} Mbit/s, while '{fastest}' has {most}: weights follow speed, so it gets less traffic"
        ),
    };
    report.warn("speed_mismatch", text, format!("ethtool {}", interface.name));
}

/// Warns of links on one USB that carry more together than it does; said of all but the first.
fn shared_bus(interface: &Interface, nic: &Nic, group: &[(&str, &Nic)], report: &mut Report) {
    let usb = |nic: &Nic| match nic.device.as_ref()?.bus {
        Some(Bus::Usb { mbit, number }) => Some((mbit, number)),
        _ => None,
    };
    let Some((_, number)) = usb(nic) else { return };
    let there: Vec<_> =
        group.iter().filter(|(_, other)| usb(other).is_some_and(|bus| bus.1 == number)).collect();
    // A bus has the speed of its fastest device.
    let bus = there.iter().filter_map(|(_, nic)| usb(nic)).map(|bus| bus.0).max().unwrap_or(0);
    let links: u64 =
        there.iter().filter_map(|(_, nic)| Some(nic.mbit()?.min(usb(nic)?.0))).map(u64::from).sum();
    let Some((first, _)) = there.first().filter(|(first, _)| *first != interface.name) else { return };
    if links > u64::from(usable(bus)) {
        let text =
            format!("it shares a USB of {bus} Mbit/s with '{first}', and their links have {links} together");
        report.warn("shared_bus", text, "lsusb -t");
    }
}

/// Warns where one of several processors takes the interrupts of all links, and these are fast; said of the first.
fn interrupts(
    interface: &Interface,
    nic: &Nic,
    processors: usize,
    group: &[(&str, &Nic)],
    report: &mut Report,
) {
    let of = |nic: &Nic| nic.device.as_ref().map(|device| device.processors.clone()).unwrap_or_default();
    let own = of(nic);
    let (Some(one), true) = (own.first(), processors > 1 && group.len() > 1 && own.len() == 1) else {
        return;
    };
    // Virtual interfaces claim what they are asked to.
    let mbit: u64 = group.iter().filter_map(|(_, nic)| nic.mbit()).map(u64::from).sum();
    let is_first = group.first().is_some_and(|(first, _)| *first == interface.name);
    if is_first && mbit > INTERRUPTS_MBIT && group.iter().all(|(_, nic)| of(nic) == own) {
        let others: Vec<String> = group[1..].iter().map(|(name, _)| (*name).to_owned()).collect();
        let text = format!(
            "processor {one} of {processors} takes all its interrupts, and those of {}: only one receives frames",
            list(&others)
        );
        report.warn("interrupts", text, "grep . /proc/irq/*/effective_affinity_list");
    }
}

fn mtu(name: &str, nic: &Nic, bond: Option<&Bond>, group: &[(&str, &Nic)], report: &mut Report) {
    let own = nic.link.mtu;
    if let Some(bond) = bond {
        match own.cmp(&bond.mtu) {
            Ordering::Equal => report.fine(format!("MTU {own}")),
            Ordering::Less => report.take([findings::mtu(name, &bond.name, own, bond.mtu, None)]),
            Ordering::Greater => report.warn(
                "mtu",
                format!("MTU {own}, while that of '{}' is {}", bond.name, bond.mtu),
                format!("ip link set dev {name} mtu {}", bond.mtu),
            ),
        }
        return;
    }
    match group.iter().find(|(_, other)| other.link.mtu < own) {
        Some((other, nic)) => {
            let least = group.iter().map(|(_, nic)| nic.link.mtu).min().unwrap_or(nic.link.mtu);
            let text = format!("MTU {own}, while '{other}' has {}: members must have one MTU", nic.link.mtu);
            report.warn("mtu", text, format!("ip link set dev {name} mtu {least}"));
        }
        None => report.fine(format!("MTU {own}")),
    }
}

impl Bond {
    /// Which of its members hear each other.
    pub(super) fn report(&self) -> Report {
        let mut report = Report::new(&self.name, "segments");
        report.take(self.filtered.iter().cloned());
        for (one, other, peer) in &self.split {
            let text = format!(
                "'{one}' and '{other}' both hear {peer}, but not each other: the switch does not forward between their \
                 ports, so broadcasts are accepted twice"
            );
            report.warn("segments_split", text, format!("linkbraid lanes {}", self.name));
        }
        if !self.split.is_empty() {
            return report;
        }
        if self.members.is_empty() {
            let text = "it has no members, so it carries nothing";
            report.warn("members", text, "ip -br link");
        }
        let mut segments: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for member in &self.members {
            if let Some(segment) = member.segment {
                segments.entry(segment).or_default().push(member.name.clone());
            }
        }
        let groups: Vec<&Vec<String>> = segments.values().collect();
        match groups.as_slice() {
            // Each interface says itself that it has no carrier.
            [] => {}
            [one] if one.len() == 1 => report.fine(format!("{} carries its traffic", list(one))),
            [all] => report.fine(format!("{} hear each other", list(all))),
            several => {
                let apart = several.iter().map(|group| list(group)).collect::<Vec<_>>().join(" | ");
                let text = "do not hear each other, as it should be on separate switches or cables";
                report.fine(format!("{apart} {text}"));
            }
        }
        report
    }
}
