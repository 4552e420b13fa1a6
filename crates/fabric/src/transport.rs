//! What carries frames: the one trait that the engine is written on.

#[cfg(not(loom))]
use crate::Live;
use crate::{Bytes, keys::FrameKeys};
#[cfg(not(loom))]
use std::sync::Arc;
use std::{os::fd::BorrowedFd, time::Duration};

/// One queue of this node on a transport. One thread owns it; nothing here locks, allocates or logs after it is opened.
///
/// What a thread does: [`send`](Self::send) what there is, [`flush`](Self::flush), [`receive`](Self::receive), and again
/// while there is something to do (spin as long as the budget says). Then [`arm`](Self::arm); if it says
/// [`Armed::Sleep`], sleep on [`wake_fd`](Self::wake_fd) and whatever else, at most that long; then
/// [`disarm`](Self::disarm), whether it slept or not.
///
/// A frame that `send` accepted is not lost between nodes that live, unless the transport itself loses (UDP). A
/// frame is received whole, once, from the peer it names, in the order in which that peer sent it.
pub trait Transport: Send {
    /// Its node, nodes and queues, and its limits.
    fn shape(&self) -> Shape;

    /// Sends one frame, `head` and then `body`, to `peer`. Both are borrowed only for the call. The peer can see it at
    /// once if it looks; [`flush`](Self::flush) makes sure that it does.
    ///
    /// # Errors
    /// Nothing was sent, and why.
    fn send(&mut self, peer: u16, head: &[u8], body: &[u8]) -> Result<(), Refused>;

    /// The same, encrypted with the keys of `peer` ([`set_keys`](Self::set_keys)).
    ///
    /// # Errors
    /// As [`send`](Self::send); this transport or this peer has no keys.
    fn send_encrypted(&mut self, _peer: u16, _head: &[u8], _body: &[u8]) -> Result<(), Refused> {
        Err(Refused::Unreachable)
    }

    /// Works with these keys of `peer` from now on. Nothing of `peer` that came encrypted otherwise is lent, nor a frame that was
    /// put together of plain parts. One that came plain and whole still is: [`Bytes::is_encrypted`] says so.
    fn set_keys(&mut self, _peer: u16, _keys: Option<&FrameKeys>) {}

    /// Hands on everything that `send` gathered and wakes the peers that sleep. Cheap if there is nothing.
    fn flush(&mut self);

    /// Lends up to `budget` frames, the peers in turn, to `sink`, which says whether it took each. A frame not taken
    /// stays where it is and ends the call; the peers' queues then fill, which is how back-pressure travels. Says how many
    /// frames were taken.
    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken) -> usize;

    /// Asks to be woken when a frame arrives, or when there is room again for a frame to one of `full`.
    fn arm(&mut self, full: &[u16]) -> Armed;

    /// Ends what [`arm`](Self::arm) began, and takes the wake-up off the descriptor.
    fn disarm(&mut self);

    /// Becomes readable as a wake-up; the same for the life of the transport. None where no wake-up crosses: then the
    /// sleep that [`arm`](Self::arm) allows is all there is.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Discards all that is queued from `peer` and to it: it has ended, or it has restarted with a new epoch. Frames of its new
    /// epoch that came already may be among those.
    fn reset(&mut self, peer: u16);

    /// What happened with `peer` since this was opened. For this node itself: what came from nobody known.
    fn stats(&self, peer: u16) -> Stats;

    /// Where it has the addresses of peers from, if those may change: it follows them when it receives next.
    #[cfg(not(loom))]
    fn directory(&self) -> Option<&Arc<Live>> {
        None
    }

    /// Whether its shared memory is lost, so that it no longer reaches all peers. It is meant to be called many times a second and
    /// seldom makes a system call. What is lost stays lost, and nothing breaks meanwhile.
    fn lost(&mut self) -> Option<Loss> {
        None
    }
}

/// How the shared memory of a [`Transport`] was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// The file of the shared memory is shorter than it was.
    Cut,
    /// Its header was overwritten.
    Overwritten,
    /// Its name belongs to another file, or to none, so that new nodes share another one.
    Removed,
}

impl Loss {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cut, Self::Overwritten, Self::Removed];

    /// In one word, never changed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Overwritten => "overwritten",
            Self::Removed => "removed",
        }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cut => "its shared memory was truncated",
            Self::Overwritten => "its shared memory was overwritten",
            Self::Removed => "its shared memory was removed",
        })
    }
}

/// The parameters of a [`Transport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of this node.
    pub node: u16,
    /// How many nodes there are; they are numbered from 0.
    pub nodes: u16,
    /// Which queue of the node this is, from 0.
    pub queue: u16,
    /// Longest frame, head and body together, in bytes.
    pub frame_max: usize,
    /// Frames may be lost on the way between nodes that live.
    pub lossy: bool,
}

/// Why a frame was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The queue to the peer is full for now: keep the frame; [`Transport::arm`] shows when to try again.
    #[error("the queue is full")]
    Full,
    /// Longer than [`Shape::frame_max`], or empty.
    #[error("the frame is too long or empty")]
    Length,
    /// There is no such peer: out of range, or this node itself.
    #[error("there is no such peer")]
    NoPeer,
    /// The transport lost the peer and [`Transport::reset`] has to come first; or it refuses for good.
    #[error("the transport cannot reach the peer")]
    Unreachable,
}

/// Whether the sink took a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is done with.
    Yes,
    /// It stays the next one of its peer; no more for now.
    Later,
}

/// What [`Transport::arm`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Armed {
    /// Something waits already: do not sleep.
    Ready,
    /// Sleep, but not longer than this, in case a wake-up is lost or none crosses.
    Sleep(Duration),
}

/// What happened with one peer. Every count starts at 0 when the transport is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames taken to be sent.
    pub sent: u64,
    /// Sends refused because the way was full.
    pub full: u64,
    /// Frames lent and taken.
    pub received: u64,
    /// Wake-ups given to the peer.
    pub wakes: u64,
    /// The peer's position in the queue made no sense; what waited was dropped.
    pub bad_position: u64,
    /// A record or datagram of the peer made no sense; what waited of it was dropped.
    pub bad_record: u64,
    /// Frames of which a piece was lost on the way.
    pub incomplete: u64,
    /// Frames the transport could not send after it had taken them.
    pub lost: u64,
    /// Parts of frames that came plain where they must be encrypted.
    pub plain: u64,
    /// Datagrams encrypted with a key that this node does not have.
    pub other_key: u64,
    /// Datagrams whose tag is not that of their bytes.
    pub bad_tag: u64,
    /// Encrypted datagrams that came before, or very late.
    pub repeated: u64,
    /// Bytes that wait in the queue to the peer now, as far as this side knows.
    pub queued: u64,
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn shape(&self) -> Shape {
        (**self).shape()
    }

    fn send(&mut self, peer: u16, head: &[u8], body: &[u8]) -> Result<(), Refused> {
        (**self).send(peer, head, body)
    }

    fn send_encrypted(&mut self, peer: u16, head: &[u8], body: &[u8]) -> Result<(), Refused> {
        (**self).send_encrypted(peer, head, body)
    }

    fn set_keys(&mut self, peer: u16, keys: Option<&FrameKeys>) {
        (**self).set_keys(peer, keys);
    }

    fn flush(&mut self) {
        (**self).flush();
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken) -> usize {
        (**self).receive(budget, sink)
    }

    fn arm(&mut self, full: &[u16]) -> Armed {
        (**self).arm(full)
    }

    fn disarm(&mut self) {
        (**self).disarm();
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        (**self).wake_fd()
    }

    fn reset(&mut self, peer: u16) {
        (**self).reset(peer);
    }

    fn stats(&self, peer: u16) -> Stats {
        (**self).stats(peer)
    }

    #[cfg(not(loom))]
    fn directory(&self) -> Option<&Arc<Live>> {
        (**self).directory()
    }

    fn lost(&mut self) -> Option<Loss> {
        (**self).lost()
    }
}
