//! What builds up to November 2026 pinned in BPF file systems: maps, and tcx links, in a folder for each bond.

use libbpf_rs::{Link, query::LinkTypeInfo};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folders with one for each network namespace, which has one for each bond.
const PLACES: [&str; 2] = ["/sys/fs/bpf/linkbraid", "/run/linkbraid/bpf/linkbraid"];

/// Removes the pins of bonds without a program that only a pin keeps on an interface: in the folder of this network namespace,
/// and in those of others where the interfaces of all links are gone. Others may still have daemons of earlier builds.
pub fn sweep_pins(namespace: &Path) {
    for place in PLACES.map(Path::new) {
        let own = place.join(namespace);
        for folder in entries(place) {
            for bond in entries(&folder) {
                let links: Vec<bool> = entries(&bond).filter_map(|pin| holds_program(&pin)).collect();
                if !links.contains(&true) && (folder == own || !links.is_empty()) {
                    let _ = fs::remove_dir_all(&bond);
                }
            }
            // Unless something is in it.
            let _ = fs::remove_dir(&folder);
        }
        let _ = fs::remove_dir(place);
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whether the interface of this pinned link is there; none for what is no link.
fn holds_program(pin: &Path) -> Option<bool> {
    // The names of maps begin otherwise. Beside links there are folders that mark filters.
    let name = pin.file_name()?.to_str()?;
    if !(name.starts_with("egress_") || name.starts_with("ingress_")) || pin.is_dir() {
        return None;
    }
    let info = Link::open(pin).and_then(|link| link.info());
    // What cannot be opened is left alone.
    Some(info.map_or(true, |info| !matches!(info.info, LinkTypeInfo::Tcx(tcx) if tcx.ifindex == 0)))
}
