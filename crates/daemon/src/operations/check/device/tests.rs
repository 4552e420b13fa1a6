use super::{Bus, Device};
use crate::io::manager::Roots;
use std::{env, fs, os::unix::fs::symlink, path::PathBuf, process};

/// A sysfs and a procfs of our own, which go with it.
struct Machine(PathBuf);

impl Machine {
    fn new(name: &str) -> Self {
        Self(env::temp_dir().join(format!("linkbraid-{name}-{}", process::id())))
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn look(&self, place: &str) -> Device {
        let roots = Roots { sys: self.0.join("sys"), proc: self.0.join("proc"), ..Roots::default() };
        Device::at(place, &roots)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_card_has_the_lanes_that_it_got_and_interrupts() {
    let machine = Machine::new("pci");
    let card = "sys/bus/pci/devices/0000:03:00.0";
    for (name, text) in [
        ("current_link_speed", "5.0 GT/s PCIe\n"),
        ("current_link_width", "1\n"),
        ("max_link_speed", "8.0 GT/s PCIe\n"),
        ("max_link_width", "4\n"),
        ("msi_irqs/31", "msix\n"),
        ("msi_irqs/32", "msix\n"),
    ] {
        machine.file(&format!("{card}/{name}"), text);
    }
    machine.file("proc/irq/31/effective_affinity_list", "1\n");
    machine.file("proc/irq/32/effective_affinity_list", "3-4,6\n");
    let device = machine.look("0000:03:00.0");
    let bus = Bus::Pci { address: "0000:03:00.0".into(), mbit: 4000, able: 31_507 };
    assert_eq!(device.bus, Some(bus));
    assert_eq!(device.processors, [1, 3, 4, 6].into());

    // One on a bus without lanes, with a wire for its interrupts.
    let old = "sys/bus/pci/devices/0000:00:10.0";
    machine.file(&format!("{old}/current_link_speed"), "Unknown\n");
    machine.file(&format!("{old}/current_link_width"), "0\n");
    machine.file(&format!("{old}/irq"), "11\n");
    machine.file("proc/irq/11/effective_affinity_list", "0\n");
    assert_eq!(machine.look("0000:00:10.0"), Device { bus: None, processors: [0].into() });
    assert_eq!(machine.look("0000:09:00.0"), Device::default(), "a place that sysfs does not have");
    assert_eq!(machine.look("tun"), Device::default());
}

#[test]
fn one_on_a_usb_has_the_speed_of_its_port() {
    let machine = Machine::new("usb");
    for (controller, bus, name, mbit) in [
        ("0000:00:14.0", 2, "2-1", "5000\n"),
        ("0000:00:14.0", 1, "1-2.1", "480\n"),
        ("0000:00:15.0", 3, "3-2.1", "12\n"),
    ] {
        let folder = format!("sys/devices/pci0000:00/{controller}/usb{bus}/{name}");
        machine.file(&format!("{folder}/speed"), mbit);
        let all = machine.0.join("sys/bus/usb/devices");
        fs::create_dir_all(&all).unwrap();
        symlink(machine.0.join(&folder), all.join(name)).unwrap();
    }
    let usb = |mbit, number| Some(Bus::Usb { mbit, number });
    assert_eq!(machine.look("usb-0000:00:14.0-1").bus, usb(5000, 2));
    assert_eq!(machine.look("usb-0000:00:14.0-2.1").bus, usb(480, 1));
    assert_eq!(machine.look("usb-0000:00:15.0-2.1").bus, usb(12, 3));
    assert_eq!(machine.look("usb-0000:00:15.0-9").bus, None);
    assert_eq!(machine.look("usb-nothing").bus, None);
}
