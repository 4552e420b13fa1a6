//! What [`super::Tables`] writes into: the maps of the data path, or a list that a test reads.

use linkbraid_dataplane::{Bond, DataPath, Member, PeerMac, Plan, Result};

/// The rows that the data path follows. Each call is at least one system call.
pub(crate) trait Rows {
    /// [`DataPath::set_member`]
    fn set_member(&self, slot: u8, member: Option<&Member>) -> Result<()>;
    /// [`DataPath::clear_member_counts`]
    fn clear_member_counts(&self, slot: u8) -> Result<()>;
    /// [`DataPath::forget_plain_hosts`]
    fn forget_plain_hosts(&self, slot: u8) -> Result<()>;
    /// [`DataPath::set_bond`]
    fn set_bond(&self, bond: &Bond) -> Result<()>;
    /// [`DataPath::set_plan`]
    fn set_plan(&self, number: u32, plan: &Plan) -> Result<()>;
    /// [`DataPath::set_class_plan`]
    fn set_class_plan(&self, base: u32, class: u8, number: Option<u32>) -> Result<()>;
    /// [`DataPath::set_peer_mac`]
    fn set_peer_mac(&self, mac: [u8; 6], peer: &PeerMac) -> Result<()>;
    /// [`DataPath::delete_peer_mac`]
    fn delete_peer_mac(&self, mac: [u8; 6]) -> Result<()>;
}

impl Rows for DataPath {
    fn set_member(&self, slot: u8, member: Option<&Member>) -> Result<()> {
        Self::set_member(self, slot, member)
    }

    fn clear_member_counts(&self, slot: u8) -> Result<()> {
        Self::clear_member_counts(self, slot)
    }

    fn forget_plain_hosts(&self, slot: u8) -> Result<()> {
        Self::forget_plain_hosts(self, slot)
    }

    fn set_bond(&self, bond: &Bond) -> Result<()> {
        Self::set_bond(self, bond)
    }

    fn set_plan(&self, number: u32, plan: &Plan) -> Result<()> {
        Self::set_plan(self, number, plan)
    }

    fn set_class_plan(&self, base: u32, class: u8, number: Option<u32>) -> Result<()> {
        Self::set_class_plan(self, base, class, number)
    }

    fn set_peer_mac(&self, mac: [u8; 6], peer: &PeerMac) -> Result<()> {
        Self::set_peer_mac(self, mac, peer)
    }

    fn delete_peer_mac(&self, mac: [u8; 6]) -> Result<()> {
        Self::delete_peer_mac(self, mac)
    }
}
