//! What the queues of a node share with each other and with the session.

use super::{Counter, Counters, Mac, MacTable, Poll, Published, mac_table::number};
use crate::{Loss, Stats};
use std::{
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::*},
    time::Instant,
};

/// What the session says of one peer.
#[derive(Debug, Default)]
struct Link {
    /// The peer's epoch; 0 while it is not connected.
    epoch: AtomicU64,
    /// How often all that waits for the peer or from it was to be forgotten.
    resets: AtomicU64,
}

/// The state that threads share. Nobody waits for anybody.
#[derive(Debug)]
pub struct Shared {
    node: u16,
    epoch: u64,
    start: Instant,
    /// Grows after every change below it.
    changes: AtomicU64,
    links: Box<[Link]>,
    poll: AtomicU8,
    stop: AtomicBool,
    /// What became of the transport: a place in [`Loss::ALL`] counted from 1, 0 while nothing did.
    loss: AtomicU8,
    macs: MacTable,
    /// The address of our interface, as a number; 0 while nobody said it.
    own: AtomicU64,
    /// A row for each queue, in it one for each node; this node's own is for what concerns no peer.
    counters: Box<[Box<[Counters]>]>,
    /// The same for what the transports tell.
    transports: Box<[Box<[Published]>]>,
}

impl Shared {
    pub(super) fn new(node: u16, nodes: u16, epoch: u64, queues: usize, poll: Poll) -> Self {
        let rows = (0..queues).map(|_| (0..nodes).map(|_| Counters::default()).collect());
        let transports = (0..queues).map(|_| (0..nodes).map(|_| Published::default()).collect());
        Self {
            node,
            epoch,
            start: Instant::now(),
            changes: AtomicU64::new(0),
            links: (0..nodes).map(|_| Link::default()).collect(),
            poll: AtomicU8::new(poll.number()),
            stop: AtomicBool::new(false),
            loss: AtomicU8::new(0),
            macs: MacTable::default(),
            own: AtomicU64::new(0),
            counters: rows.collect(),
            transports: transports.collect(),
        }
    }

    /// This node.
    #[must_use]
    pub fn node(&self) -> u16 {
        self.node
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        // As many as one could number.
        self.links.len() as u16
    }

    /// This node's epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The learned addresses.
    #[must_use]
    pub fn macs(&self) -> &MacTable {
        &self.macs
    }

    /// The counters of one queue for one peer; for this node itself: what concerns no peer.
    #[must_use]
    pub fn counters(&self, queue: usize, peer: u16) -> Option<&Counters> {
        self.counters.get(queue)?.get(usize::from(peer))
    }

    /// One counter over all queues.
    #[must_use]
    pub fn total(&self, peer: u16, counter: Counter) -> u64 {
        let of = |row: &[Counters]| row.get(usize::from(peer)).map_or(0, |counters| counters.get(counter));
        self.counters.iter().map(|row| of(row)).sum()
    }

    /// What the transports of all queues told of `peer` lately, in sum; some 10 ms old.
    #[must_use]
    pub fn transport(&self, peer: u16) -> Stats {
        let of = |row: &[Published]| row.get(usize::from(peer)).map_or_else(Stats::default, Published::get);
        self.transports.iter().map(|row| of(row)).fold(Stats::default(), Stats::and)
    }

    pub(super) fn published(&self, queue: usize, peer: u16) -> Option<&Published> {
        self.transports.get(queue)?.get(usize::from(peer))
    }

    /// How the queues wait.
    #[must_use]
    pub fn poll(&self) -> Poll {
        Poll::of_number(self.poll.load(Relaxed))
    }

    pub(super) fn set_poll(&self, poll: Poll) {
        self.poll.store(poll.number(), Relaxed);
        self.changes.fetch_add(1, Release);
    }

    /// Nanoseconds since the engines were made.
    #[must_use]
    pub fn now(&self) -> u64 {
        // 500 years fit.
        self.start.elapsed().as_nanos() as u64
    }

    /// Connects `peer` under `epoch`, or with none disconnects it; whatever of it waits in a queue is forgotten.
    pub(super) fn set_link(&self, peer: u16, epoch: Option<u64>) {
        let Some(link) = self.links.get(usize::from(peer)) else { return };
        link.epoch.store(epoch.unwrap_or(0), Relaxed);
        if epoch.is_none() {
            link.resets.fetch_add(1, Relaxed);
            self.macs.forget_node(peer);
        }
        self.changes.fetch_add(1, Release);
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Acquire)
    }

    /// The peer's epoch (0: not connected), and how often it was to be forgotten.
    pub(super) fn link(&self, peer: u16) -> (u64, u64) {
        let link = &self.links[usize::from(peer)];
        (link.epoch.load(Relaxed), link.resets.load(Relaxed))
    }

    pub(super) fn set_mac(&self, mac: Mac) {
        self.own.store(number(mac), Relaxed);
        self.macs.forget(mac);
    }

    /// Whether our interface has that address.
    pub(super) fn is_own(&self, mac: Mac) -> bool {
        self.own.load(Relaxed) == number(mac)
    }

    /// What became of the transport, if it reaches nobody any more or not everybody: all that is left to do is to stop.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        Loss::ALL.get(usize::from(self.loss.load(Relaxed)).wrapping_sub(1)).copied()
    }

    /// Whether that is news.
    pub(super) fn set_loss(&self, loss: Loss) -> bool {
        self.loss.compare_exchange(0, loss as u8 + 1, Relaxed, Relaxed).is_ok()
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}
