//! What must survive a restart of the daemon: one JSON file a fabric, beside those of the bonds.

use crate::io::{
    error::About as _,
    state::{StateDir, boot_id},
};
use linkbraid_api::{Error, FabricSettings, value::Number};
use linkbraid_link::LinkInfo;
use serde::{Deserialize, Serialize};
use std::{fs, os::unix::fs::MetadataExt as _, path::PathBuf};

/// One fabric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedFabric {
    pub name: String,
    /// Its interface.
    pub ifindex: u32,
    pub node: u16,
    pub nodes: u16,
    pub transport: String,
    pub queues: u16,
    pub mac: [u8; 6],
    /// Its number in addresses that are derived from nodes.
    pub number: u8,
    #[serde(flatten)]
    pub settings: FabricSettings,
    /// The boot in which this is true.
    pub boot_id: String,
    /// The network namespace of the interface.
    pub namespace: u64,
    /// Whether a configuration file made it.
    #[serde(default)]
    pub applied: bool,
    /// The addresses that it was given, `ADDRESS/PREFIX`.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Those of them that a configuration file gave it.
    #[serde(default)]
    pub applied_addresses: Vec<String>,
}

impl SavedFabric {
    /// What somebody changed of the interface is how it is.
    pub(crate) fn follow(&mut self, link: &LinkInfo) {
        self.name.clone_from(&link.name);
        self.settings.mtu = Number(link.mtu);
        self.mac = link.mac.0;
    }
}

/// The number of this thread's network namespace; 0 where the kernel does not tell.
pub(crate) fn namespace() -> u64 {
    fs::metadata("/proc/thread-self/ns/net").map_or(0, |found| found.ino())
}

impl StateDir {
    fn fabric_file(&self, name: &str) -> PathBuf {
        self.path().join(format!("{name}.fabric"))
    }

    /// Writes a fabric's file, whole or not at all.
    pub(crate) fn write_fabric(&self, fabric: &SavedFabric) -> Result<(), Error> {
        let file = self.fabric_file(&fabric.name);
        let new = self.path().join(format!("{}.fabric.new", fabric.name));
        let text = serde_json::to_vec_pretty(fabric)
            .map_err(|error| Error::new(&fabric.name, "cannot save the fabric's state", error.to_string()))?;
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &file))
            .about(&fabric.name, format!("cannot write '{}'", file.display()))
    }

    /// Removes a fabric's file.
    pub(crate) fn remove_fabric(&self, name: &str) -> Result<(), Error> {
        let file = self.fabric_file(name);
        match fs::remove_file(&file) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                Err(cause).about(name, format!("cannot remove '{}'", file.display()))
            }
            _ => Ok(()),
        }
    }

    /// All fabrics on file that were made since this boot, by name; what an earlier boot left is removed.
    pub(crate) fn read_fabrics(&self) -> Vec<SavedFabric> {
        let Ok(entries) = fs::read_dir(self.path()) else { return Vec::new() };
        let paths = entries.flatten().map(|entry| entry.path());
        let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "fabric"));
        let read = |path: PathBuf| {
            let bytes = fs::read(&path).map_err(|error| error.to_string());
            let read = bytes.and_then(|bytes| {
                serde_json::from_slice::<SavedFabric>(&bytes).map_err(|error| error.to_string())
            });
            read.inspect_err(|error| tracing::error!(%error, ?path, "damaged state of a fabric")).ok()
        };
        let mut fabrics: Vec<SavedFabric> = files.filter_map(read).collect();
        fabrics.retain(|fabric| {
            let current = fabric.boot_id == boot_id();
            if !current {
                tracing::info!(fabric = %fabric.name, "from before the last boot; discarded");
                let _ = self.remove_fabric(&fabric.name);
            }
            current
        });
        fabrics.sort_by(|a, b| a.name.cmp(&b.name));
        fabrics
    }
}
