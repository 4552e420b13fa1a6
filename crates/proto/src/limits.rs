//! Every limit of the state machines by name. Reaching one is counted, never silent.

/// Most members of a bond, as many as one message can name.
pub const MEMBERS_MAX: usize = linkbraid_wire::HARDWARE_MAX;

/// Most IP addresses of the own host that are told: the first one and MORE-ADDRESSES.
pub const ADDRESSES_MAX: usize = 1 + linkbraid_wire::MORE_ADDRESSES_MAX;

/// Most hosts in the ARP+ table.
pub const HOSTS_MAX: usize = 4096;

/// Most former MACs remembered for one host.
pub const ALIASES_MAX: usize = 16;

/// Most hosts that left and whose delayed messages are still refused; the oldest gives way.
pub const TOMBSTONES_MAX: usize = 4096;

/// Most conflicts remembered at a time.
pub const CONFLICTS_MAX: usize = 64;

/// Most unicast REPLYs between two broadcasts of the own mapping; one more and a CHANGE to all replaces them.
pub const REPLIES_MAX: usize = 16;

/// Most actions that wait to be polled; further events are dropped and counted, frames are not.
pub const ACTIONS_MAX: usize = 8192;

/// Most lanes of a plan.
pub const LANES_MAX: usize = 16;

/// A lane with less than one part in this many of a plan is not worth having.
pub const LANE_SHARE_MIN: u64 = 1000;
