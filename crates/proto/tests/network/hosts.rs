//! Who hosts are.

use linkbraid_wire::{HostId, MacAddr};

pub fn mac(host: usize, slot: u8) -> MacAddr {
    let [.., high, low] = (host as u32).to_be_bytes();
    MacAddr([2, 0, 0, high, low, slot])
}

pub fn id(host: usize) -> HostId {
    let mut id = [0xB0; 16];
    id[..8].copy_from_slice(&(host as u64).to_be_bytes());
    HostId(id)
}
