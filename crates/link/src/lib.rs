//! Everything linkbraid asks of the kernel's network configuration: interfaces, addresses, routes, their changes as
//! they happen, link speed, and one socket that sends ARP+ frames.
//!
//! A [`Netlink`] belongs to the network namespace of the thread that made it. Nothing here reads sysfs, which shows
//! the namespace of whoever mounted it.

mod address;
mod announce;
mod carrier;
mod control;
mod error;
mod filters;
mod fingerprint;
mod forward;
mod internal_port;
mod ioctl;
mod ipv6;
mod link;
mod listener;
mod moved;
mod neighbour;
mod netlink;
mod next_hop;
mod promote;
mod query;
mod queue;
mod recheck;
mod route;
mod rtnl;
mod saved;
mod sender;
mod settings;
mod tap;
mod vxlan;
mod watch;

pub use address::Address;
pub use announce::{announcements, gratuitous_arp, station_here};
pub use carrier::CarrierPoll;
pub use control::{
    Offloads, Speed, bus, driver, eee, heeds_pause, lro, offloads, set_udp_segmentation, speed,
};
pub use error::{Error, Kind, Result};
pub use filters::has_filters;
pub use forward::{ForwardChain, forward_drops};
pub use ipv6::forwards_ipv6;
pub use link::{BridgeSwitches, LinkInfo, OperState, PortFlags};
pub use linkbraid_wire::MacAddr;
pub use listener::ArpPlusListener;
pub use moved::Moved;
pub use neighbour::{NEIGHBOURS_MAX, Neighbour, NeighbourReader, NeighbourState};
pub use netlink::Netlink;
pub use next_hop::{NextHop, Packet, RouteKind, group_mac};
pub use query::group_queries;
pub use queue::Queue;
pub use route::Route;
pub use saved::Saved;
pub use sender::{ArpPlusSender, Sent};
pub use tap::{
    TAP_FRAME_MAX, TAP_MTU_MAX, TAP_MTU_MIN, TAP_QUEUE_LEN, TAP_QUEUES_MAX, Tap, TapCause, TapConfig,
    TapError, TapOffloads, TapQueue, TapRefusal, VNET_HDR_LEN,
};
pub use vxlan::{is_up, vxlan_name, vxlan_serves};
pub use watch::{LinkEvent, Watch};
