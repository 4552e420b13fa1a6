//! What libfabric's C headers declare, as far as it is used: structures and numbers of its interface 1.17, which later
//! versions keep for programs that ask for it (`fi_getinfo(3)`, symbol version FABRIC_1.3).
//!
//! Most functions of those headers are inline and call through tables of pointers, so the layouts are the interface.
//! Each is asserted here, and a test compares every offset with the headers themselves. Pointers that are not used are
//! [`Unused`].

use std::ffi::{c_char, c_int, c_void};

/// A pointer, to a function or to whatever, that is not used here.
pub type Unused = *mut c_void;

/// `FI_VERSION(1, 17)`.
pub const VERSION: u32 = 1 << 16 | 17;

/// The interface's address of a peer that is none.
pub const ADDR_UNSPEC: u64 = u64::MAX;

/// Capabilities, and flags of operations.
pub const MSG: u64 = 1 << 1;
pub const RECV: u64 = 1 << 10;
pub const SEND: u64 = 1 << 11;
pub const NUMERICHOST: u64 = 1 << 55;
/// For `fi_getinfo`: what is named is this side's.
pub const SOURCE: u64 = 1 << 57;

/// Modes of operation that the caller can live with.
pub const CONTEXT: u64 = 1 << 59;
pub const CONTEXT2: u64 = 1 << 52;

/// Messages of one sender to one receiver come in order.
pub const ORDER_SAS: u64 = 1 << 8;

/// Formats of addresses.
pub const SOCKADDR: u32 = 1;
pub const SOCKADDR_IN: u32 = 2;
pub const SOCKADDR_IN6: u32 = 3;

/// What a provider may want of memory.
pub const MR_LOCAL: c_int = 1 << 2;
pub const MR_VIRT_ADDR: c_int = 1 << 4;
pub const MR_ALLOCATED: c_int = 1 << 5;
pub const MR_PROV_KEY: c_int = 1 << 6;
pub const MR_ENDPOINT: c_int = 1 << 9;

pub const THREAD_DOMAIN: c_int = 3;
pub const EP_RDM: c_int = 3;
pub const AV_TABLE: c_int = 2;
pub const RM_ENABLED: c_int = 2;
pub const CQ_FORMAT_MSG: c_int = 2;
pub const WAIT_NONE: c_int = 0;
pub const WAIT_FD: c_int = 3;

/// Commands of [`Ops::control`].
pub const GETWAIT: c_int = 5;
pub const ENABLE: c_int = 6;

/// Errors that are none of the system's.
pub const EAVAIL: isize = 259;

macro_rules! structure {
    ($(#[$doc:meta])* $name:ident is $c:literal, $size:literal bytes { $($field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        pub struct $name { $(pub $field: $kind,)* }
        const _: () = assert!(size_of::<$name>() == $size);
        #[cfg(test)]
        impl $name {
            /// The structure and the offset of every field, as assertions in C.
            pub fn assertions() -> String {
                let mut text = format!("_Static_assert(sizeof({}) == {}, \"{}\");\n", $c, $size, $c);
                $(
                    let offset = std::mem::offset_of!($name, $field);
                    let field = stringify!($field).trim_start_matches("r#");
                    text += &format!("_Static_assert(offsetof({}, {field}) == {offset}, \"{} {field}\");\n", $c, $c);
                )*
                text
            }
        }
    };
}

structure! {
    /// What a provider offers, or is asked for.
    Info is "struct fi_info", 120 bytes {
        next: *mut Info,
        caps: u64,
        mode: u64,
        addr_format: u32,
        src_addrlen: usize,
        dest_addrlen: usize,
        src_addr: *mut c_void,
        dest_addr: *mut c_void,
        handle: Unused,
        tx_attr: *mut TxAttr,
        rx_attr: *mut RxAttr,
        ep_attr: *mut EpAttr,
        domain_attr: *mut DomainAttr,
        fabric_attr: *mut FabricAttr,
        nic: Unused,
    }
}

structure! {
    /// Of sending.
    TxAttr is "struct fi_tx_attr", 80 bytes {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        inject_size: usize,
        size: usize,
        iov_limit: usize,
        rma_iov_limit: usize,
        tclass: u32,
    }
}

structure! {
    /// Of receiving.
    RxAttr is "struct fi_rx_attr", 64 bytes {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        total_buffered_recv: usize,
        size: usize,
        iov_limit: usize,
    }
}

structure! {
    /// Of an endpoint.
    EpAttr is "struct fi_ep_attr", 96 bytes {
        r#type: c_int,
        protocol: u32,
        protocol_version: u32,
        max_msg_size: usize,
        msg_prefix_size: usize,
        max_order_raw_size: usize,
        max_order_war_size: usize,
        max_order_waw_size: usize,
        mem_tag_format: u64,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
        auth_key_size: usize,
        auth_key: *mut u8,
    }
}

structure! {
    /// Of a domain.
    DomainAttr is "struct fi_domain_attr", 192 bytes {
        domain: Unused,
        name: *mut c_char,
        threading: c_int,
        control_progress: c_int,
        data_progress: c_int,
        resource_mgmt: c_int,
        av_type: c_int,
        mr_mode: c_int,
        mr_key_size: usize,
        cq_data_size: usize,
        cq_cnt: usize,
        ep_cnt: usize,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
        max_ep_tx_ctx: usize,
        max_ep_rx_ctx: usize,
        max_ep_stx_ctx: usize,
        max_ep_srx_ctx: usize,
        cntr_cnt: usize,
        mr_iov_limit: usize,
        caps: u64,
        mode: u64,
        auth_key: *mut u8,
        auth_key_size: usize,
        max_err_data: usize,
        mr_cnt: usize,
        tclass: u32,
    }
}

structure! {
    /// Of a fabric, and whose it is.
    FabricAttr is "struct fi_fabric_attr", 32 bytes {
        fabric: Unused,
        name: *mut c_char,
        prov_name: *mut c_char,
        prov_version: u32,
        api_version: u32,
    }
}

mod objects;
#[cfg(test)]
mod tests;

pub use objects::*;
