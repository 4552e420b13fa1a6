//! What the data path needs of the fast path, and reports of it (`docs/fabric.md`, section 7).

use super::{Phase, Session, link::LinkInput};
use crate::Time;
use linkbraid_wire::fabric::{FastPath, Tag};

impl Session {
    /// Says whether frames of a peer come over the fast path; the peer is informed at once if that is another answer than before.
    /// Actions and timeout as after [`Session::handle`].
    pub fn set_heard(&mut self, now: Time, node: u16, heard: bool) {
        if self.phase == Phase::Running {
            self.drive(now, node, LinkInput::Heard { heard });
        }
    }

    /// What frames of a peer must carry to be taken over the fast path; none while none may be.
    pub fn tag(&self, node: u16) -> Option<Tag> {
        self.peers.get(&node)?.link.tag()
    }

    /// Whether a peer is informed that its frames come over the fast path.
    pub fn hears(&self, node: u16) -> bool {
        self.peers.get(&node).is_some_and(|peer| peer.link.heard())
    }

    /// How a peer takes frames over the fast path; none while it is not up or takes none.
    pub fn fast_path(&self, node: u16) -> Option<FastPath> {
        self.peers.get(&node)?.link.peer()?.fast_path
    }
}
