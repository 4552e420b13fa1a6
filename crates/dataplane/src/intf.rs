//! What the programs and this side share: the structs and limits of `bpf/intf.h`, `bpf/latency.h`, `bpf/explain.h` and
//! `bpf/fast_path.h`, under their names in C, as `build.rs` generates them; and those limits that users of this crate need.

#[allow(dead_code, non_camel_case_types, clippy::pub_underscore_fields)]
mod layouts {
    include!(concat!(env!("OUT_DIR"), "/layouts.rs"));
}
pub(crate) use layouts::*;

/// The most members of a bond.
pub const MEMBERS_MAX: usize = LB_MEMBERS_MAX as usize;
/// The most lanes of a plan.
pub const LANES_MAX: usize = LB_LANES_MAX as usize;
/// Plain hosts that get a member of their own to send to, and four more that are probed.
pub const ANSWERS_MAX: usize = LB_ANSWERS_MAX as usize;
/// The first plan for the plain hosts of one segment; those before belong to peers, number 0 to plain hosts.
pub const PLAIN_PLAN_FIRST: u32 = LB_PLAIN_PLAN_FIRST;
/// The number of plans in the map.
pub const PLANS_MAX: u32 = LB_PLANS_MAX;
/// Classes of one bond, with number 0, the default class: all traffic that no rule matches.
pub const CLASSES_MAX: usize = LB_CLASSES_MAX as usize;
/// The most rules of a bond.
pub const RULES_MAX: usize = LB_RULES_MAX as usize;
/// Addresses of guests, here and behind peers.
pub const GUEST_PAIRS_MAX: usize = LB_GUEST_PAIRS_MAX as usize;
/// Addresses that guests here were seen to use; the least recently used one makes room.
pub const GUESTS_SEEN_MAX: usize = LB_GUESTS_SEEN_MAX as usize;
/// The bit of a MAC's first byte in which a member's alias differs from its MAC: locally administered.
pub const ALIAS_BIT: u8 = LB_ALIAS_BIT as u8;
/// The slot number that stands for "no member".
pub const NO_SLOT: u8 = LB_NO_SLOT as u8;

/// The number of the plan for the plain hosts of a segment, which is named by the slot of its elected member. Used
/// while the bond has several segments; where it has no lanes, plan 0 is.
pub const fn plain_plan(elected: u8) -> u32 {
    PLAIN_PLAN_FIRST + elected as u32
}
