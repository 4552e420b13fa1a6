//! What a NIC is attached to, and which processors take its interrupts, as sysfs and procfs say it. Neither depends on a network
//! namespace there.

use crate::io::manager::Roots;
use std::{collections::BTreeSet, fs, path::Path};

/// PCIe up to 5 GT/s sends ten bits for each byte, later generations 130 for 16 bytes (PCI Express Base, 4.2).
const FAST_GIGATRANSFERS: f64 = 8.0;
const CODING: f64 = 0.8;
const FAST_CODING: f64 = 128.0 / 130.0;
/// What a lane does not have is reported as this width, too.
const WIDTH_UNKNOWN: u32 = 255;

/// Of a NIC that is a device.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Device {
    pub bus: Option<Bus>,
    /// The processors that take its interrupts; none where that is not known.
    pub processors: BTreeSet<u32>,
}

/// How a NIC is attached.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bus {
    /// The bits a second of its port, in Mbit/s, and the number of the bus, which all devices there share.
    Usb { mbit: u32, number: u32 },
    /// Its address, the bits a second that its lanes carry now, and those that it could have, in Mbit/s.
    Pci { address: String, mbit: u32, able: u32 },
}

impl Device {
    /// Looks at the device at that place, as its driver says it.
    pub(super) fn at(place: &str, roots: &Roots) -> Self {
        match place.strip_prefix("usb-") {
            Some(place) => Self { bus: usb(place, &roots.sys), ..Self::default() },
            None => {
                let folder = roots.sys.join("bus/pci/devices").join(place);
                Self { bus: pci(place, &folder), processors: processors(&folder, &roots.proc) }
            }
        }
    }
}

fn read(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// `place`: the controller and the ports on the way, such as `0000:00:14.0-2.1` (`usb_make_path()`).
fn usb(place: &str, sys: &Path) -> Option<Bus> {
    let (controller, ports) = place.rsplit_once('-')?;
    fs::read_dir(sys.join("bus/usb/devices")).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name();
        // A controller has a bus for each generation, and the device is on one of them.
        let (number, own) = name.to_str()?.split_once('-')?;
        let folder = fs::canonicalize(entry.path()).ok()?;
        let is_it = own == ports && folder.iter().any(|part| part == controller);
        // 1.5, 12, 480, 5000 and so on.
        let mbit = is_it.then(|| read(&folder.join("speed"))?.parse::<f64>().ok()).flatten()?;
        Some(Bus::Usb { mbit: mbit as u32, number: number.parse().ok()? })
    })
}

fn pci(address: &str, folder: &Path) -> Option<Bus> {
    let rate = |what: &str| {
        // `5.0 GT/s PCIe`
        let speed = read(&folder.join(format!("{what}_link_speed")))?;
        let gigatransfers: f64 = speed.split_whitespace().next()?.parse().ok()?;
        let width: u32 = read(&folder.join(format!("{what}_link_width")))?.parse().ok()?;
        let coding = if gigatransfers < FAST_GIGATRANSFERS { CODING } else { FAST_CODING };
        ((1..WIDTH_UNKNOWN).contains(&width) && gigatransfers > 0.0)
            .then(|| (gigatransfers * 1000.0 * coding * f64::from(width)) as u32)
    };
    let mbit = rate("current")?;
    Some(Bus::Pci { address: address.to_owned(), mbit, able: rate("max").unwrap_or(mbit) })
}

/// Those of all its message-signalled interrupts, or of its wire.
fn processors(folder: &Path, proc: &Path) -> BTreeSet<u32> {
    let mut irqs: Vec<String> = fs::read_dir(folder.join("msi_irqs"))
        .map(|all| all.flatten().filter_map(|irq| irq.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    if irqs.is_empty() {
        irqs.extend(read(&folder.join("irq")).filter(|irq| irq != "0"));
    }
    let of = |irq: &String| read(&proc.join("irq").join(irq).join("effective_affinity_list"));
    irqs.iter().filter_map(of).flat_map(|list| numbers(&list)).collect()
}

/// `0-2,5` (cpuset(7), list format).
fn numbers(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests;
