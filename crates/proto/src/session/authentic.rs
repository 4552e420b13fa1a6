//! Control messages of nodes that share keys: each that leaves has a code, and of those that come in only those count that a holder
//! of a key has written. When it was written the protocol itself tells: a message names both starts and the cookie that it answers, so
//! what somebody repeats or holds back is what a network may do anyway.

use super::{Counter, Session, link::LinkInput};
use crate::{
    Time,
    auth::{self, Mode, Why},
    limits,
};
use linkbraid_wire::fabric::{ControlBytes, seal_control, sealed_control};

/// What the code covers first, so that it is one of nothing else.
const CONTEXT: &[u8] = b"linkbraid fabric AUTH 1";

/// What is known of the keys of a peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyed {
    /// The start of it that sent the last message with a right code; 0 if none came.
    proven: u64,
    /// When one was refused last, and why.
    refused: Option<(Time, Why)>,
}

impl Keyed {
    /// Nothing.
    pub const NONE: Keyed = Keyed { proven: 0, refused: None };

    /// Why its messages are refused, if they were lately.
    pub fn refused(&self, now: Time) -> Option<Why> {
        self.refused.filter(|(at, _)| now.since(*at) < limits::AUTH_REFUSED_LIVES).map(|(_, why)| why)
    }
}

impl Session {
    /// The keys from now on, and what is asked of others. Poll actions afterwards.
    pub fn set_auth(&mut self, now: Time, settings: auth::Settings) {
        let begins = settings.mode == Mode::Require && self.auth.mode != Mode::Require;
        self.auth = settings;
        if !begins {
            return;
        }
        //= docs/fabric.md#8.5
        for node in self.nodes() {
            let is_unproven =
                |peer: &super::Peer| peer.link.peer().is_some_and(|known| known.epoch != peer.keyed.proven);
            if self.peers.get(&node).is_some_and(is_unproven) {
                self.drive(now, node, LinkInput::Expired);
            }
        }
    }

    /// Whether frames count as proof that their sender lives: they have no code.
    pub(super) fn frames_prove(&self) -> bool {
        //= docs/fabric.md#8.4
        self.auth.mode != Mode::Require
    }

    /// The message as it is to leave; none if it is not to.
    pub(super) fn seal(&mut self, mut message: ControlBytes) -> Option<ControlBytes> {
        //= docs/fabric.md#8.2
        match (self.auth.mode, self.auth.ring.signing()) {
            (Mode::Off, _) | (Mode::Permit, None) => Some(message),
            (_, Some(key)) => {
                seal_control(&mut message, key.id, |covered| key.code(CONTEXT, covered));
                Some(message)
            }
            (Mode::Require, None) => {
                self.counters.one(Counter::TxUnsigned);
                None
            }
        }
    }

    /// Whether a message that can be read counts. `node` is the peer whose queue it came from, `epoch` the start that it names.
    pub(super) fn admit(&mut self, now: Time, (node, epoch): (u16, u64), bytes: &[u8]) -> bool {
        if self.auth.mode == Mode::Off {
            self.note(node, Keyed::NONE);
            return true;
        }
        //= docs/fabric.md#8.3
        let (counter, why) = match self.judge(bytes) {
            Ok(()) => {
                self.note(node, Keyed { proven: epoch, refused: None });
                return true;
            }
            Err(refused) => refused,
        };
        self.counters.one(counter);
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.keyed.refused = Some((now, why));
        }
        self.auth.mode == Mode::Permit
    }

    fn note(&mut self, node: u16, keyed: Keyed) {
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.keyed = keyed;
        }
    }

    fn judge(&self, bytes: &[u8]) -> Result<(), (Counter, Why)> {
        let sealed = sealed_control(bytes).ok().flatten();
        let sealed = sealed.ok_or((Counter::AuthMissing, Why::NoKey))?;
        let other = (Counter::AuthOtherKey, Why::AnotherKey);
        let key = self.auth.ring.key(sealed.key_id).ok_or(other)?;
        let is_right = key.is_code(CONTEXT, sealed.covered, &sealed.code);
        is_right.then_some(()).ok_or((Counter::AuthBadCode, Why::AnotherKey))
    }
}
