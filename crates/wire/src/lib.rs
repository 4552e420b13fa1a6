//! Byte layouts of ARP+: Ethernet frames and messages, and the few frames of ARP and neighbour discovery that plain hosts
//! are probed and answered with; and, in [`fabric`], those of the messages between the nodes of a fabric. No I/O, no unsafe.
//!
//! The format is specified in `docs/arp-plus.md`; code cites its clauses as `//= docs/arp-plus.md#N.M`.
//! [`Message::parse`] and [`Message::emit`] keep the same rules, so what cannot be read cannot be written either.
#![forbid(unsafe_code)]

mod advertisement;
mod arp;
mod auth;
mod checksum;
mod class;
mod digest;
mod emit;
pub mod fabric;
mod frame;
mod guest;
mod interval;
mod mac;
mod message;
mod parse;
mod plain;
mod probe;
mod refusal;
mod solicitation;
mod tlv;

pub use advertisement::{emit_advertisement, emit_advertisement_to_all};
pub use arp::{emit_arp_reply, is_arp};
pub use auth::{AUTH_CODE_LEN, AUTH_TLV_LEN, Sealed, is_arp_plus, seal, sealed};
pub use checksum::checksum;
pub use class::{CLASS_NAME_MAX, CLASSES_MAX, Class, FEATURE_MIRROR, REST, is_class_name};
pub use frame::{FRAME_HEADER_LEN, FRAME_LEN_MIN, Frame, emit_frame, pad_to, parse_frame};
pub use guest::{FEATURE_GUESTS, GUEST_ADDRESSES_MAX, GUESTS_MAX, Guest, VLAN_MAX};
pub use interval::{FEATURE_INTERVALS, INTERVAL_DOUBLINGS_MAX, split_interval, with_interval};
pub use mac::{BadMac, MacAddr};
pub use message::{Auth, Extension, HostId, Kind, Member, Message};
pub use parse::Parsed;
pub use plain::{PlainAnswer, emit_plain_probe, is_plain_answer, parse_plain_answer};
pub use probe::{FEATURE_LONG_PROBES, Probe, ProbeFrame, ProbeKind, View, emit_probe, is_probe, parse_probe};
pub use refusal::Refusal;
pub use solicitation::{is_ipv6, probe_address};

/// EtherType of ARP+: the first of the two that IEEE 802 reserves for local experiments.
pub const ETHERTYPE_ARP_PLUS: u16 = 0x88B5;

/// Version of the extension written in the VERSION TLV.
pub const VERSION: u8 = 1;

/// Most hardware addresses (members) in one message.
pub const HARDWARE_MAX: usize = 16;

/// Most further IP addresses (MORE-ADDRESSES) in one message.
pub const MORE_ADDRESSES_MAX: usize = 32;

/// Longest authentication tag in bytes.
pub const AUTH_TAG_MAX: usize = 32;

/// Longest message in bytes, without the Ethernet header: the MTU every Ethernet has.
pub const MESSAGE_LEN_MAX: usize = 1500;
