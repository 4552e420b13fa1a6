//! What the data path is to hold, as plain values.

use crate::{arp_plus::GuestAddress, plan::Lane};
use linkbraid_api::Policy;
use linkbraid_wire::MacAddr;
use std::collections::BTreeMap;

/// The number of the plan for plain hosts where the bond has one segment, and for all that has no plan of its own.
pub const PLAIN_PLAN: u32 = 0;
/// Numbers from here on are the plans for plain hosts of one segment each; those of peers and classes are between.
pub const PLAIN_PLAN_FIRST: u32 = 4097;

/// The plan for the plain hosts of the segment where that member is elected.
pub const fn plain_plan(elected: u8) -> u32 {
    PLAIN_PLAN_FIRST + elected as u32
}

/// The bond as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BondRow {
    /// Its MAC.
    pub mac: MacAddr,
    /// Whether duplicate ACKs are damped.
    pub damping: bool,
    /// The elected member of each segment that has a live member.
    pub elected: Vec<u8>,
    /// Members that no frame is to leave by, a bit a slot.
    pub failed_slots: u32,
}

/// One member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberRow {
    /// Its interface.
    pub ifindex: u32,
    /// Its own MAC.
    pub mac: MacAddr,
    /// Whether it carries traffic.
    pub live: bool,
    /// The member that takes in the broadcasts of its segment; none where no live one does.
    pub elected: Option<u8>,
}

/// The lanes to use now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which the data path numbers them.
    pub lanes: Vec<Lane>,
    /// What they are spread by in place of their weights, in kbit/s; empty: by the weights.
    pub rates: Vec<u32>,
    /// How frames spread over them.
    pub policy: Policy,
    /// Of the plan of a class: without a live lane the class takes the plan that it stands in place of; else its frames
    /// are lost.
    pub shares: bool,
}

/// What a MAC is that leads to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MacKind {
    /// A member's, or one that it had lately.
    Member {
        /// The peer has guests, whose frames may come from here.
        has_guests: bool,
        /// It gives guests' frames their MACs back.
        takes_guests: bool,
    },
    /// The alias of a member: by it comes what is for guests here.
    Alias {
        /// As of a member.
        has_guests: bool,
    },
    /// A guest's behind the peer.
    Guest,
}

/// One MAC of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerMac {
    /// The number of the peer's plan, from 1.
    pub plan: u32,
    /// The MAC that neighbours know it by; a guest's is its own.
    pub primary: MacAddr,
    /// The member that takes in its broadcasts.
    pub broadcast_slot: Option<u8>,
    /// What has it.
    pub kind: MacKind,
}

/// Whose an address of a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestPair {
    /// The guest's MAC.
    pub mac: MacAddr,
    /// The plan of the peer that it is behind; 0: it is here, and peers know of it.
    pub plan: u32,
}

/// The member that one plain host is to send to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The member that it is to send to.
    pub slot: u8,
    /// Whether its answers to probes are wanted.
    pub probed: bool,
}

/// The members of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassRow {
    /// Its own, a bit a slot.
    pub slots: u32,
    /// Whether others may use them while it sends nothing.
    pub lends: bool,
}

/// All tables of the data path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableImage {
    /// The bond as a whole.
    pub bond: BondRow,
    /// Members by slot.
    pub members: BTreeMap<u8, MemberRow>,
    /// Classes by number, from 1.
    pub classes: BTreeMap<u8, ClassRow>,
    /// Plans by number: [`PLAIN_PLAN`], those of peers and classes, and those of segments ([`plain_plan`]).
    pub plans: BTreeMap<u32, Plan>,
    /// The number of the plan that a class follows where all other traffic follows the plan `base`, by (base, class).
    pub class_plans: BTreeMap<(u32, u8), u32>,
    /// Every MAC that leads to a peer.
    pub peer_macs: BTreeMap<MacAddr, PeerMac>,
    /// The addresses of guests, here and behind peers, by VLAN.
    pub guest_pairs: BTreeMap<GuestAddress, GuestPair>,
    /// The members that plain hosts are to send to.
    pub answers: BTreeMap<MacAddr, Answer>,
}
