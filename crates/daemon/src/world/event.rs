//! What tasks and threads have to tell the loop.

use crate::world::told::Told;
use linkbraid_link::Neighbour;

/// What the tasks of the bonds send to the loop.
pub(crate) enum Event {
    /// An ARP+ frame came in.
    Frame {
        /// The bond.
        ifindex: u32,
        /// The member.
        slot: u8,
        /// Whole, with its Ethernet header.
        frame: Vec<u8>,
    },
    /// A member has carrier, or has none any more.
    Carrier {
        /// The member.
        ifindex: u32,
        /// Whether it has.
        carrier: bool,
    },
    /// The threads of a fabric tell something.
    Fabric {
        /// Which start of it.
        start: u64,
        /// What.
        told: Told,
    },
    /// The neighbours of a bond, as they were asked for.
    Neighbours {
        /// The bond.
        ifindex: u32,
        /// All of them.
        list: linkbraid_link::Result<Vec<Neighbour>>,
    },
}
