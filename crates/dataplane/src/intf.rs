//! The layouts of `bpf/intf.h`, field by field; sizes are asserted on both sides.

use bytemuck::{Pod, Zeroable};

/// Members of one bond.
pub const MEMBERS_MAX: usize = 16;
/// Interfaces with a smaller index are found without a hash.
pub const NEAR_INTERFACES: u32 = 4096;
/// Places of peers' MACs that are found without a hash.
pub const NEAR_PEERS: u32 = 1024;
/// Lanes of one plan.
pub const LANES_MAX: usize = 16;
/// Plain hosts that are told a member of their own to send to, and four more that are probed.
pub const ANSWERS_MAX: usize = 1028;
/// The first plan for the plain hosts of one segment; those before belong to peers, number 0 to plain hosts.
pub const PLAIN_PLAN_FIRST: u32 = 4097;
/// Plans.
pub const PLANS_MAX: u32 = PLAIN_PLAN_FIRST + MEMBERS_MAX as u32;
/// The number of the plan for the plain hosts of a segment, which is named by the slot of its elected member. Used
/// while the bond has several segments; where it has no lanes, plan 0 is.
pub const fn plain_plan(elected: u8) -> u32 {
    PLAIN_PLAN_FIRST + elected as u32
}

/// Classes of one bond, number 0 among them: all traffic that no rule chooses.
pub const CLASSES_MAX: usize = 8;
/// Rules of one bond.
pub const RULES_MAX: usize = 64;
/// "No member".
pub const NO_SLOT: u8 = 0xff;
/// `lb_config.flags`: damping is on.
pub const CONFIG_DAMPING: u32 = 1;
/// `lb_config.flags`: latency is measured.
pub const CONFIG_LATENCY: u32 = 2;

/// `lb_config.flags`: the rules in force are in the second half of `lb_rules`.
pub const CONFIG_SECOND_RULES: u32 = 4;
/// `lb_config.flags`: from this bit on a bit a slot.
pub const CONFIG_HELD_SHIFT: u32 = 16;
/// `lb_plan.flags`: while no member of its lanes lives the plan of all other traffic is used.
pub const PLAN_SHARES: u8 = 1;
/// `lb_plan.flags`: some lanes belong to classes that may be busy.
pub const PLAN_BORROWS: u8 = 2;
/// `lb_rule.conditions`
pub const RULE_PRIORITY: u32 = 1;
/// `lb_rule.conditions`
pub const RULE_MARK: u32 = 2;
/// `lb_rule.conditions`
pub const RULE_DSCP: u32 = 4;
/// `lb_rule.conditions`
pub const RULE_PORT: u32 = 8;
/// `lb_rule.conditions`
pub const RULE_HOST: u32 = 16;
/// `lb_rule.conditions`
pub const RULE_ETHERTYPE: u32 = 32;
/// `lb_rule.conditions`
pub const RULE_CGROUP: u32 = 64;

/// `lb_answer.flags`: the daemon probes this host.
pub const ANSWER_PROBED: u8 = 1;

/// `struct lb_config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawConfig {
    pub bond_ifindex: u32,
    pub flags: u32,
    pub damp_ns_min: u64,
    pub damp_ns_max: u64,
    pub mac: [u8; 6],
    pub n_rules: u8,
    pub n_segments: u8,
    pub elected: [u8; MEMBERS_MAX],
    pub dead_slots: u32,
    pub epoch: u32,
}

/// `struct lb_member`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawMember {
    pub ifindex: u32,
    pub mac: [u8; 6],
    pub live: u8,
    pub elected: u8,
}

/// `struct lb_mac_key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawMacKey {
    pub mac: [u8; 6],
    pub pad: [u8; 2],
}

/// `struct lb_peer_mac`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawPeerMac {
    pub plan: u32,
    pub primary: [u8; 6],
    pub broadcast_slot: u8,
    pub pad: u8,
}

/// `struct lb_near_peer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawNearPeer {
    pub peer: RawPeerMac,
    pub mac: [u8; 6],
    pub pad: [u8; 2],
}

/// `struct lb_answer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawAnswer {
    pub slot: u8,
    pub flags: u8,
    pub pad: [u8; 2],
}

/// `struct lb_lane`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawLane {
    pub peer_mac: [u8; 6],
    pub slot: u8,
    pub class: u8,
    pub byte_cost: u32,
    pub hash_below: u32,
}

/// `struct lb_plan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawPlan {
    pub generation: u32,
    pub n_lanes: u32,
    pub slots: u32,
    pub policy: u8,
    pub flags: u8,
    pub pad: [u8; 2],
    pub lanes: [RawLane; LANES_MAX],
}

/// `struct lb_rule`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawRule {
    pub cgroup: u64,
    pub cgroup_level: u32,
    pub conditions: u32,
    pub priority: u32,
    pub mark: u32,
    pub mark_mask: u32,
    pub host: [u8; 16],
    pub host_mask: [u8; 16],
    pub ethertype: [u8; 2],
    pub port_first: u16,
    pub port_last: u16,
    pub port_protocol: u8,
    pub dscp: u8,
    pub class: u8,
    pub is_ipv6: u8,
    pub pad: [u8; 2],
}

/// `struct lb_class`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawClass {
    pub sent_ns: u64,
    pub slots: u32,
    pub lends: u32,
}

/// `struct lb_class_plans`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawClassPlans {
    pub number: [u16; CLASSES_MAX],
}

/// `struct lb_count`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawCount {
    pub frames: u64,
    pub bytes: u64,
}

/// `struct lb_lane_counts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawLaneCounts {
    pub generation: u32,
    pub pad: u32,
    pub lanes: [RawCount; LANES_MAX],
}

/// `struct lb_member_counts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawMemberCounts {
    pub tx: RawCount,
    pub rx: RawCount,
}

/// The head of `struct lb_arp_plus_record`; the frame follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RawArpPlusHead {
    pub slot: u32,
    pub bytes: u32,
}

const _: () = {
    assert!(size_of::<RawConfig>() == 56);
    assert!(size_of::<RawMember>() == 12);
    assert!(size_of::<RawPeerMac>() == 12);
    assert!(size_of::<RawNearPeer>() == 20);
    assert!(size_of::<RawAnswer>() == 4);
    assert!(size_of::<RawLane>() == 16);
    assert!(size_of::<RawPlan>() == 272);
    assert!(size_of::<RawRule>() == 72);
    assert!(size_of::<RawClass>() == 16);
    assert!(size_of::<RawClassPlans>() == 16);
};
