//! The layouts of `bpf/shortcut.h`, field by field.

use bytemuck::{Pod, Zeroable};

/// `struct lb_way_config`
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct RawConfig {
    pub mac: [u8; 6],
    pub v6: u8,
    pub pad: u8,
    pub port: u16,
    pub pad2: u16,
    pub tap: u32,
    pub vxlan: u32,
    pub local: [u32; 4],
}

/// `struct lb_way_out`
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct RawOut {
    pub remote: [u32; 4],
    pub network: u32,
    pub group: u32,
    pub room: u32,
    pub frame: u32,
}

/// `struct lb_way_in`
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct RawIn {
    pub remote: [u32; 4],
    pub network: u32,
    pub group: u32,
}

/// `struct lb_way_counts`
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct RawCounts {
    pub tx_frames: u64,
    pub tx_bytes: u64,
    pub rx_frames: u64,
    pub rx_bytes: u64,
    pub probes: u64,
}

const _: () = assert!(
    size_of::<RawConfig>() == 36
        && size_of::<RawOut>() == 32
        && size_of::<RawIn>() == 24
        && size_of::<RawCounts>() == 40
);
