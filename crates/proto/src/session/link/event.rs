//! What goes into a link and what comes out.

use crate::session::{Counter, Verdict};
use linkbraid_wire::fabric::{Control, FastPath, Offer};

/// What this node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Own {
    /// Its epoch, not 0.
    pub epoch: u64,
    /// What it says of itself.
    pub offer: Offer,
    /// The port at which it takes frames past the daemons, if it does.
    pub fast_path: Option<u16>,
}

/// What is known of a start of a peer that has proven that it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Known {
    /// Its epoch.
    pub epoch: u64,
    /// The last cookie that came from it; to be echoed.
    pub cookie: u64,
    /// Which of its cookies that is.
    pub number: u32,
    /// What it says of itself.
    pub offer: Offer,
    /// How it takes frames past the daemons, if it does.
    pub fast_path: Option<FastPath>,
}

impl Known {
    /// Whether the message was sent before what is known: its cookie is an earlier one (RFC 1982).
    pub(super) const fn is_stale(&self, control: &Control) -> bool {
        control.number.wrapping_sub(self.number) > u32::MAX / 2
    }
}

/// An input of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkInput {
    /// It is time to say something.
    Resend,
    /// It is time to ask how long a round trip takes; right before [`LinkInput::Resend`].
    Ask {
        /// By a new cookie.
        fresh: bool,
    },
    /// A good control message of this peer for this node.
    Message {
        /// The sender's epoch.
        from: u64,
        /// The receiver's epoch, 0 if the sender does not know it.
        to: u64,
        /// The message.
        control: Control,
    },
    /// Frames of that epoch came.
    Traffic {
        /// The epoch in the frames.
        epoch: u64,
    },
    /// The detection time is over.
    Expired,
    /// The time is over in which the peer that is up had to prove that it lives, since another start of it has.
    Doubted,
    /// The transport lost the peer.
    Gone,
    /// This node's offer is another one.
    Changed,
    /// Whether frames come over the fast path.
    Heard {
        /// They do.
        heard: bool,
    },
    /// This node stops.
    Stop,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Send a message to that epoch of the peer, 0 if it is not known.
    Send(u64, Control),
    /// The link is another one.
    Verdict(Verdict),
    /// The peer lives: its detection time begins again.
    Proof,
    /// The peer spoke, now or at some time since the link came up: the message echoes an earlier cookie.
    Sign,
    /// The time of doubt begins.
    Doubt,
    /// Something was heard while the link is down, or it went down just now: do not wait long to say HELLO.
    Hurry,
    /// A rival is refused: two live nodes have one number.
    Duplicate {
        /// The epoch of the rival.
        rival: u64,
    },
    /// Count this.
    Count(Counter),
}
