//! What the queues of a node share with each other and with the session.
//!
//! All of it lies in one piece of memory, so that the queues can be those of another process.

use super::{
    Counter, Counters, Mac, MacTable, Poll, Published,
    link::{Link, Linked},
    mac_table::{Entry, MACS_MAX, number},
};
use crate::{
    Loss, Stats,
    keys::FrameKeys,
    ring::{Map, Place, Shareable},
};
use nix::time::{ClockId, clock_gettime};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::*},
};

/// What concerns all peers.
#[derive(Debug)]
#[repr(C, align(128))]
struct All {
    /// Grows after every change of links and of `poll`.
    changes: AtomicU64,
    /// Control messages that the session has sent.
    controls: AtomicU64,
    poll: AtomicU64,
    stop: AtomicU64,
    /// What became of the transport: a place in [`Loss::ALL`] counted from 1, 0 while nothing did.
    loss: AtomicU64,
    /// The address of our interface, as a number; 0 while nobody said it.
    own: AtomicU64,
}

// SAFETY: atomics and padding.
unsafe impl Shareable for All {}

/// Which node it is that shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The number of this node.
    pub node: u16,
    /// The number of nodes.
    pub nodes: u16,
    /// The number of queues of each node.
    pub queues: u16,
    /// This start's epoch.
    pub epoch: u64,
    /// When it began, in nanoseconds of the machine's monotonic clock.
    pub began: u64,
}

impl Identity {
    /// The node that starts now.
    pub(super) fn now(node: u16, nodes: u16, queues: u16, epoch: u64) -> Self {
        Self { node, nodes, queues, epoch, began: monotonic() }
    }

    fn rows(self) -> usize {
        usize::from(self.nodes) * usize::from(self.queues)
    }

    /// Bytes of memory that is shared.
    #[must_use]
    pub fn bytes(self) -> usize {
        let at = after::<All>(0, 1);
        let at = after::<Link>(at, self.nodes.into());
        let at = after::<Entry>(at, MACS_MAX);
        let at = after::<Counters>(at, self.rows());
        after::<Published>(at, self.rows())
    }
}

/// Where `count` values end that follow what ends at `at`.
fn after<T>(at: usize, count: usize) -> usize {
    at.next_multiple_of(align_of::<T>()) + size_of::<T>() * count
}

/// Nanoseconds since the machine started.
fn monotonic() -> u64 {
    // 500 years fit. A thread without a clock would forget addresses and time no probe: it fails, and the fabric is restarted.
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the machine has a clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// The state that threads share. Nobody waits for anybody.
#[derive(Debug)]
pub struct Shared {
    identity: Identity,
    all: Place<[All]>,
    links: Place<[Link]>,
    macs: MacTable,
    /// A row for each queue, in it one for each node; this node's own is for what concerns no peer.
    counters: Place<[Counters]>,
    /// The same for the transports' counters.
    transports: Place<[Published]>,
}

impl Shared {
    /// What lies in this memory, which is zeroed at first; none if it has another length.
    pub(super) fn new(map: &Arc<Map>, identity: Identity) -> Option<Self> {
        fn next<T: Shareable>(map: &Arc<Map>, at: &mut usize, count: usize) -> Option<Place<[T]>> {
            let row = map.row(at.next_multiple_of(align_of::<T>()), count);
            *at = after::<T>(*at, count);
            row
        }
        let mut at = 0;
        let at = &mut at;
        let shared = Self {
            identity,
            all: next(map, at, 1)?,
            links: next(map, at, identity.nodes.into())?,
            macs: MacTable::new(next(map, at, MACS_MAX)?),
            counters: next(map, at, identity.rows())?,
            transports: next(map, at, identity.rows())?,
        };
        (map.len() == identity.bytes()).then_some(shared)
    }

    fn all(&self) -> &All {
        &self.all[0]
    }

    /// The identity of this start of the node.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Its place in a row for each queue with one for each node.
    fn place(&self, queue: usize, peer: u16) -> Option<usize> {
        let Identity { nodes, queues, .. } = self.identity;
        (queue < queues.into() && peer < nodes).then(|| queue * usize::from(nodes) + usize::from(peer))
    }

    /// The number of this node.
    #[must_use]
    pub fn node(&self) -> u16 {
        self.identity.node
    }

    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.identity.nodes
    }

    /// This node's epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.identity.epoch
    }

    /// The learned addresses.
    #[must_use]
    pub fn macs(&self) -> &MacTable {
        &self.macs
    }

    /// The counters of one queue for one peer; for this node itself: what concerns no peer.
    #[must_use]
    pub fn counters(&self, queue: usize, peer: u16) -> Option<&Counters> {
        self.counters.get(self.place(queue, peer)?)
    }

    /// One counter over all queues.
    #[must_use]
    pub fn total(&self, peer: u16, counter: Counter) -> u64 {
        let of = |queue| self.counters(queue, peer).map_or(0, |counters| counters.get(counter));
        (0..self.identity.queues.into()).map(of).sum()
    }

    /// The sum of the counters that the transports of all queues have of `peer`, at most some 10 ms old.
    #[must_use]
    pub fn transport(&self, peer: u16) -> Stats {
        let of = |queue| self.published(queue, peer).map_or_else(Stats::default, Published::get);
        (0..self.identity.queues.into()).map(of).fold(Stats::default(), Stats::and)
    }

    pub(super) fn published(&self, queue: usize, peer: u16) -> Option<&Published> {
        self.transports.get(self.place(queue, peer)?)
    }

    /// How the queues wait for frames.
    #[must_use]
    pub fn poll(&self) -> Poll {
        Poll::of_number(self.all().poll.load(Relaxed) as u8)
    }

    pub(super) fn set_poll(&self, poll: Poll) {
        self.all().poll.store(poll.number().into(), Relaxed);
        self.all().changes.fetch_add(1, Release);
    }

    /// Nanoseconds since the engines were made.
    #[must_use]
    pub fn now(&self) -> u64 {
        monotonic().saturating_sub(self.identity.began)
    }

    /// Connects `peer` under `epoch`, or with none disconnects it; whatever of it waits in a queue is forgotten. With keys its
    /// frames are encrypted.
    pub(super) fn set_link(&self, peer: u16, epoch: Option<u64>, keys: Option<&FrameKeys>) {
        let Some(link) = self.links.get(usize::from(peer)) else { return };
        link.set(epoch.unwrap_or(0), keys);
        if epoch.is_none() {
            self.macs.forget_node(peer);
        }
        self.all().changes.fetch_add(1, Release);
    }

    pub(super) fn changes(&self) -> u64 {
        self.all().changes.load(Acquire)
    }

    /// What the session says of a peer, if it has said something new after `version`.
    pub(super) fn link(&self, peer: u16, version: u64) -> Option<Linked> {
        self.links[usize::from(peer)].get(version)
    }

    /// One more control message waits for the first queue.
    pub(super) fn add_control(&self) {
        self.all().controls.fetch_add(1, Release);
    }

    /// The number of control messages so far.
    pub(super) fn controls(&self) -> u64 {
        self.all().controls.load(Acquire)
    }

    pub(super) fn set_mac(&self, mac: Mac) {
        self.all().own.store(number(mac), Relaxed);
        self.macs.forget(mac);
    }

    /// Whether our interface has that address.
    pub(super) fn is_own(&self, mac: Mac) -> bool {
        self.all().own.load(Relaxed) == number(mac)
    }

    /// What became of the transport, if it reaches nobody any more or not everybody: all that is left to do is to stop.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        Loss::ALL.get((self.all().loss.load(Relaxed) as usize).wrapping_sub(1)).copied()
    }

    /// Notes the loss; says whether it is the first one.
    pub(super) fn set_loss(&self, loss: Loss) -> bool {
        self.all().loss.compare_exchange(0, loss as u64 + 1, Relaxed, Relaxed).is_ok()
    }

    pub(super) fn stop(&self) {
        self.all().stop.store(1, Relaxed);
    }

    /// Whether the queues are to end.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.all().stop.load(Relaxed) != 0
    }
}
