//! What goes into a session and what comes out.

use linkbraid_wire::fabric::{ControlBytes, Offer, RefuseReason};
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// An input of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input<'a> {
    /// Begin to connect to every peer.
    Start,
    /// A control message came over the queue of a peer.
    Message {
        /// Whose queue it was.
        node: u16,
        /// The message, header first.
        bytes: &'a [u8],
    },
    /// The data path took frames of that epoch of a peer since it was last reported. Saves a live link whose control
    /// messages are late; once an interval is enough.
    Traffic {
        /// The peer.
        node: u16,
        /// The epoch in the frames.
        epoch: u64,
    },
    /// The data path sent frames to a peer alone since it was last reported: the link is in use.
    Used {
        /// The peer.
        node: u16,
    },
    /// The transport knows that the other end of a peer's queues has gone: its process ended, its connection broke.
    Gone {
        /// The peer.
        node: u16,
    },
    /// The time that `poll_timeout` named has come. Too early or once too often does no harm.
    Timeout,
    /// Say goodbye to every peer and forget them. Drain the actions afterwards.
    Stop,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send this over the queue to a peer. If there is no room it may be dropped: it will be said again.
    Send {
        /// The peer.
        node: u16,
        /// The message, header first.
        bytes: ControlBytes,
    },
    /// A link is another one: open or close the data path, follow the carrier, report it.
    Link {
        /// The peer.
        node: u16,
        /// Until now.
        old: Verdict,
        /// From now on.
        new: Verdict,
    },
    /// A peer has answered: how long it took from the question to here.
    RoundTrip {
        /// The peer.
        node: u16,
        /// With the time that both ends needed to take the messages up.
        took: Duration,
    },
    /// Something worth reporting.
    Event(Event),
}

/// What is held of the link to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The peer lives, and has heard this start of this node: frames flow.
    Up {
        /// Its epoch. Another one than before: its sequences begin again.
        epoch: u64,
    },
    /// It does not.
    Down(Down),
    /// It lives, but one of the two does not want the other.
    Refused {
        /// Who refuses.
        by: Side,
        /// Why.
        why: Mismatch,
    },
}

impl Verdict {
    /// Whether frames flow.
    pub const fn is_up(&self) -> bool {
        matches!(self, Verdict::Up { .. })
    }

    /// Whether both refuse for the same reason, whichever side does.
    pub(super) fn says_the_same(&self, other: Verdict) -> bool {
        match (*self, other) {
            (Verdict::Refused { why: one, .. }, Verdict::Refused { why: two, .. }) => one == two,
            _ => false,
        }
    }
}

/// Why a link is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Down {
    /// Nothing was ever heard of the peer that proves that it lives.
    Unheard,
    /// It was up, and nothing was heard for the detection time.
    Silent,
    /// It was up; it speaks, but has not heard this node for the detection time.
    Deaf,
    /// It said that it stops.
    Left,
    /// It has started again; the new start comes up right after.
    Restarted,
    /// The transport said that it has gone.
    Gone,
    /// This node has stopped.
    Stopped,
}

/// One of the two ends of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// This node.
    Local,
    /// The peer.
    Peer,
}

/// Why two nodes do not connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mismatch {
    /// They were given different numbers of nodes.
    Nodes {
        /// This node's.
        ours: u16,
        /// The peer's.
        theirs: u16,
    },
    /// Their interfaces have different MTUs.
    Mtu {
        /// This node's.
        ours: u32,
        /// The peer's.
        theirs: u32,
    },
    /// They have different numbers of queues: what one sends on its last, the other does not hear.
    Queues {
        /// This node's.
        ours: u8,
        /// The peer's.
        theirs: u8,
    },
    /// One of the two encrypts frames, and the other does not.
    Encryption {
        /// Whether this node does.
        ours: bool,
    },
    /// Another live node has this node's number.
    Taken,
}

impl Mismatch {
    /// What two offers differ in; the number of nodes first. `grown`: the link is up, and one end may know more nodes.
    pub const fn between(ours: &Offer, theirs: &Offer, grown: bool) -> Option<Mismatch> {
        if ours.nodes != theirs.nodes && !grown {
            return Some(Mismatch::Nodes { ours: ours.nodes, theirs: theirs.nodes });
        }
        if ours.mtu != theirs.mtu {
            return Some(Mismatch::Mtu { ours: ours.mtu, theirs: theirs.mtu });
        }
        //= docs/fabric.md#4.12
        if ours.queues != theirs.queues {
            return Some(Mismatch::Queues { ours: ours.queues, theirs: theirs.queues });
        }
        //= docs/fabric.md#9.1
        if ours.encrypts() != theirs.encrypts() {
            return Some(Mismatch::Encryption { ours: ours.encrypts() });
        }
        None
    }

    /// What a peer means that refuses for that reason and has that offer.
    pub(super) const fn of(reason: RefuseReason, ours: &Offer, theirs: &Offer) -> Mismatch {
        match reason {
            RefuseReason::Nodes => Mismatch::Nodes { ours: ours.nodes, theirs: theirs.nodes },
            RefuseReason::Mtu => Mismatch::Mtu { ours: ours.mtu, theirs: theirs.mtu },
            RefuseReason::Queues => Mismatch::Queues { ours: ours.queues, theirs: theirs.queues },
            RefuseReason::Encryption => Mismatch::Encryption { ours: ours.encrypts() },
            RefuseReason::Taken => Mismatch::Taken,
        }
    }

    /// How it is sent to the peer.
    pub(super) const fn reason(&self) -> RefuseReason {
        match self {
            Mismatch::Nodes { .. } => RefuseReason::Nodes,
            Mismatch::Mtu { .. } => RefuseReason::Mtu,
            Mismatch::Queues { .. } => RefuseReason::Queues,
            Mismatch::Encryption { .. } => RefuseReason::Encryption,
            Mismatch::Taken => RefuseReason::Taken,
        }
    }
}

impl fmt::Display for Mismatch {
    /// Half a sentence that names both sides, without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Nodes { ours, theirs } => write!(f, "it was given {theirs} nodes, this node {ours}"),
            Mismatch::Mtu { ours, theirs } => write!(f, "its MTU is {theirs}, this node's {ours}"),
            Mismatch::Queues { ours, theirs } => write!(f, "its queues are {theirs}, this node's {ours}"),
            Mismatch::Encryption { ours: true } => f.write_str("it does not encrypt frames, this node does"),
            Mismatch::Encryption { ours: false } => f.write_str("it encrypts frames, this node does not"),
            Mismatch::Taken => f.write_str("another live node has this node's number"),
        }
    }
}

impl fmt::Display for Verdict {
    /// Half a sentence about the peer, without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Up { epoch } => write!(f, "up in epoch {epoch}"),
            Verdict::Down(why) => write!(f, "down: {why}"),
            Verdict::Refused { by: Side::Local, why } => write!(f, "refused: {why}"),
            Verdict::Refused { by: Side::Peer, why } => write!(f, "refused by the peer: {why}"),
        }
    }
}

impl fmt::Display for Down {
    /// Half a sentence about the peer, without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Down::Unheard => "not heard yet",
            Down::Silent => "silent for the detection time",
            Down::Deaf => "it speaks but does not hear this node",
            Down::Left => "it has stopped",
            Down::Restarted => "it has started again",
            Down::Gone => "the transport lost it",
            Down::Stopped => "this node has stopped",
        })
    }
}

/// Something worth reporting that changes no link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Two live nodes have one number. The one that was there first stays; reported once for each rival.
    Duplicate {
        /// The number.
        node: u16,
        /// Who stays, by epoch.
        epoch: u64,
        /// Who is refused, by epoch.
        rival: u64,
    },
    /// Somebody else speaks with this node's own number; reported once for each.
    OwnNumber {
        /// Its epoch.
        epoch: u64,
    },
}

impl fmt::Display for Event {
    /// One sentence without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Duplicate { node, epoch, rival } => {
                write!(f, "two live nodes have number {node}: epoch {epoch} stays, {rival} is refused")
            }
            Event::OwnNumber { epoch } => {
                write!(f, "another live node, in epoch {epoch}, has this node's number")
            }
        }
    }
}
