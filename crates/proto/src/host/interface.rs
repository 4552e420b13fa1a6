//! What goes into a host, and what comes out.

use super::{LaneCount, Neighbour, Policy, member::Member};
use crate::{Secret, answers, arp_plus, auth, inspector, plan::ClassTerms};
use linkbraid_wire::{HostId, MacAddr};

/// What a host is made with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Identity of this host: the same after every start, another one on every other host.
    pub host_id: HostId,
    /// Grows with every start.
    pub epoch: u64,
    /// Makes jitter, nonces and the index: another one at each start.
    pub secret: Secret,
}

/// An own class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name, by which peers know it.
    pub name: String,
    /// Where its frames may go.
    pub terms: ClassTerms,
    /// How they spread.
    pub policy: Policy,
}

/// What the user may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whether lanes are probed.
    pub probes: bool,
    /// When.
    pub timing: inspector::Timing,
    /// What lanes are to carry, in bytes without the Ethernet header: the bond's MTU.
    pub mtu: u32,
    /// Whether duplicate ACKs are damped where a flow is striped.
    pub damping: bool,
    /// How traffic of no class spreads.
    pub policy: Policy,
    /// Whether hosts may be peers that speak only the published part of ARP+.
    pub published_only: bool,
    /// Whose ARP+ is believed.
    pub auth: auth::Settings,
    /// The classes.
    pub classes: Vec<Class>,
}

/// An input of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<'a> {
    /// Join: from here on the host speaks.
    Start,
    /// Leave. Drain the actions afterwards.
    Stop,
    /// The settings now.
    Settings(Settings),
    /// The own members now, all of them, the primary one first.
    Members(Vec<Member>),
    /// What this host is to others.
    Own(answers::Own),
    /// A frame for the daemon came in on a member.
    Frame {
        /// The member.
        slot: u8,
        /// Whole, with its Ethernet header.
        bytes: &'a [u8],
        /// Whether its sender is a stranger who was heard before (docs/arp-plus.md, 7.13).
        heard_again: bool,
    },
    /// All that is known of guests here: when one has named an address, and when [`Host::wants_guests`] says so.
    ///
    /// [`Host::wants_guests`]: super::Host::wants_guests
    Guests(&'a arp_plus::SeenGuests),
    /// The neighbour table has changed.
    NeighboursChanged,
    /// The neighbour table that was asked for ([`Action::AskNeighbours`]); none: it could not be read.
    Neighbours(Option<Vec<Neighbour>>, Vec<(MacAddr, u8)>),
    /// What each lane of some plans has counted ([`Host::plans_to_read`]), by plan.
    LaneCounts(Vec<(u32, Vec<LaneCount>)>),
    /// Unicast frames that plain hosts have sent so far, without their answers to probes. At the time of
    /// [`Input::LaneCounts`], after it.
    PlainFrames(u64),
    /// The kernel has advertised to everyone the bond's MAC, or the daemon has.
    Broadcast,
    /// Peers of an earlier daemon that have not spoken are plain hosts from now on.
    DropInherited,
    /// This host resets the link of that member (slot), or is about to: it sets its MTU, or has put it into the bond.
    Reset(u8),
    /// This host has slept, and its clock has stood still meanwhile.
    Woke,
    /// The time that `poll_timeout` named has come. Too early or once too often does no harm.
    Timeout,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes, a whole Ethernet frame, out of that member as they are.
    Send {
        /// The member.
        slot: u8,
        /// The frame.
        frame: Vec<u8>,
    },
    /// No frame is to leave by these members, a bit a slot: one row, before all plans, which follow.
    FailedSlots(u32),
    /// The tables are other ones: write the difference ([`Host::write`]).
    Tables,
    /// Read the kernel's neighbour table ([`Input::Neighbours`]), and, with several segments, where plain hosts were heard.
    AskNeighbours,
    /// Have switches learn by which members these guests are reached, by frames in the guests' names.
    AnnounceGuests(Vec<MacAddr>),
    /// Other members carry traffic than before, or they are faster or slower than was known: the stripe length follows.
    Stripe,
    /// There are more plans than numbers: some classes go where all other traffic goes. Once.
    PlansShort,
    /// Something of the inspector worth reporting.
    Inspector(inspector::Event),
    /// Something of ARP+ worth reporting.
    ArpPlus(arp_plus::Event),
    /// A host that was not heard before speaks ARP+ without a key of ours.
    Unkeyed(auth::Unkeyed),
}
