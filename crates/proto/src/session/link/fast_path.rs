//! What a link holds of the fast path: the tag that the peer's frames must carry, and whether some came.

use super::{Call, Known, Link, State};
use linkbraid_wire::fabric::{ControlKind, FastPath, Tag};

impl Link {
    /// What frames of the start that is up must carry to be taken over the fast path; none while they are not.
    pub const fn tag(&self) -> Option<Tag> {
        self.tag
    }

    /// Whether the peer is informed that its frames come over the fast path.
    pub const fn heard(&self) -> bool {
        self.heard
    }

    /// There is a tag while the link is up and this node takes frames over the fast path: a new one each time that begins.
    pub(super) fn fit_tag(&mut self, call: &mut Call<'_>) {
        //= docs/fabric.md#7.3
        let wanted = matches!(self.state, State::Up { .. }) && call.own.fast_path.is_some();
        if wanted != self.tag.is_some() {
            self.tag = wanted.then(|| Tag::of_random((call.fresh)()));
            self.heard = false;
        }
    }

    pub(super) fn hears(&mut self, call: &mut Call<'_>, heard: bool, peer: &Known) {
        //= docs/fabric.md#7.7
        if self.tag.is_some() && self.heard != heard {
            self.heard = heard;
            self.send(call, ControlKind::Alive, peer.epoch, peer.cookie);
        }
    }

    /// What that start is sent of the fast path.
    pub(super) fn fast_path(&self, call: &Call<'_>, kind: ControlKind, to: u64) -> Option<FastPath> {
        //= docs/fabric.md#7.1
        let says_so = matches!(kind, ControlKind::Hello | ControlKind::Accept | ControlKind::Alive);
        let is_up = says_so && self.peer().is_some_and(|peer| peer.epoch == to);
        let (port, tag) = (call.own.fast_path?, self.tag?);
        is_up.then_some(FastPath { port, tag, heard: self.heard })
    }
}
