//! What must survive a restart of the daemon: one JSON file a fabric, beside those of the bonds.

use crate::io::state::OnFile;
use linkbraid_api::{FabricSettings, LinkName, value::Number};
use linkbraid_link::LinkInfo;
use serde::{Deserialize, Serialize};
use std::{fs, os::unix::fs::MetadataExt as _};

/// One fabric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedFabric {
    #[serde(deserialize_with = "LinkName::read_of_link")]
    pub name: LinkName,
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
        self.name = LinkName::of_link(&link.name);
        self.settings.mtu = Number(link.mtu);
        self.mac = link.mac.0;
    }
}

/// The number of this thread's network namespace; 0 where the kernel does not say.
pub(crate) fn namespace() -> u64 {
    fs::metadata("/proc/thread-self/ns/net").map_or(0, |found| found.ino())
}

impl OnFile for SavedFabric {
    const EXTENSION: &str = "fabric";
    const KIND: &str = "fabric";

    fn name(&self) -> &str {
        &self.name
    }

    fn boot_id(&self) -> &str {
        &self.boot_id
    }
}
