//! What lies where in the shared memory.
//!
//! ```text
//!   header, one page: magic, version, nodes, queues, ring size, file size
//!   node 0: for every queue and peer a ToConsumer and a ToProducer; rounded up to a page
//!           for every queue and peer the records that the peer sends to node 0
//!   node 1: ...
//! ```
//!
//! A node reads only its own part. Its size is
//! `queues x (nodes - 1) x (ring + 256)` bytes, the second addend rounded up to a page for all together.

use crate::{
    limits::{FRAME_MAX, NODES_MAX, QUEUES_MAX},
    ring::{Map, Place, ToConsumer, ToProducer, size_fits},
};
use std::{
    fs::{File, Metadata},
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// `linkbrd` and a sign, as a number, so that another byte order does not match.
const MAGIC: u64 = u64::from_be_bytes(*b"linkbrd\x01");

/// Changes whenever anything here or in a record does.
pub(super) const VERSION: u64 = 1;

const PAGE: u64 = 4096;

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = PAGE as usize;

/// Words of the header.
const WORDS: usize = 6;

/// Smallest ring: twice the longest record, as a power of two.
pub(super) const RING_MIN: u64 = 256 << 10;

/// Largest ring.
pub(super) const RING_MAX: u64 = 64 << 20;

const _: () = assert!(size_fits(RING_MIN, FRAME_MAX));

/// Bytes of the two lines of a pair of nodes.
const LINES: u64 = (size_of::<ToConsumer>() + size_of::<ToProducer>()) as u64;

/// Whether a ring may have this size.
pub(super) fn ring_fits(size: u64) -> bool {
    size.is_power_of_two() && (RING_MIN..=RING_MAX).contains(&size)
}

/// What all nodes must agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub nodes: u16,
    pub queues: u16,
    pub ring: u64,
}

/// Where things lie for a number of nodes and queues and a size of ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    shape: Shape,
    lines: u64,
    node: u64,
}

/// The state of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// It is all zeros: nothing was written yet.
    Blank,
    /// It is not that of a fabric.
    Foreign,
    /// That of another version.
    Version(u64),
    /// Its values are invalid.
    Broken,
    /// It is valid, and this is the layout.
    Good(Layout),
}

impl Layout {
    /// The layout for `nodes` nodes with `queues` queues each and `ring` bytes a ring. None if a number is out of
    /// range.
    #[must_use]
    pub fn new(nodes: u16, queues: u16, ring: u64) -> Option<Self> {
        let sound = (2..=NODES_MAX).contains(&nodes) && (1..=QUEUES_MAX).contains(&queues) && ring_fits(ring);
        let pairs = u64::from(queues) * u64::from(nodes.saturating_sub(1));
        let lines = (pairs * LINES).next_multiple_of(PAGE);
        let layout = || Self { shape: Shape { nodes, queues, ring }, lines, node: lines + pairs * ring };
        sound.then(layout)
    }

    pub(super) fn of(shape: Shape) -> Option<Self> {
        Self::new(shape.nodes, shape.queues, shape.ring)
    }

    /// Bytes of memory for each node.
    #[must_use]
    pub fn node_bytes(&self) -> u64 {
        self.node
    }

    /// Bytes of memory for all.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        PAGE + u64::from(self.shape.nodes) * self.node
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    fn base(&self, node: u16) -> u64 {
        PAGE + u64::from(node) * self.node
    }

    /// Which of its peers, queue by queue, `peer` is for `node`.
    fn pair(&self, node: u16, queue: u16, peer: u16) -> u64 {
        let peers = u64::from(self.shape.nodes - 1);
        u64::from(queue) * peers + u64::from(peer) - u64::from(peer > node)
    }

    /// What `from` writes for `to` as the producer; in the memory of `to`.
    pub(super) fn to_consumer(&self, queue: u16, from: u16, to: u16) -> u64 {
        self.base(to) + self.pair(to, queue, from) * LINES
    }

    /// What `to` writes for `from` as the consumer; in the memory of `from`.
    pub(super) fn to_producer(&self, queue: u16, from: u16, to: u16) -> u64 {
        self.base(from) + self.pair(from, queue, to) * LINES + size_of::<ToConsumer>() as u64
    }

    /// The records from `from` to `to`; in the memory of `to`.
    pub(super) fn records(&self, queue: u16, from: u16, to: u16) -> u64 {
        self.base(to) + self.lines + self.pair(to, queue, from) * self.shape.ring
    }

    /// Writes the header; its magic last, so that a reader who finds it finds everything. False if `map` is too small.
    pub(super) fn write(&self, map: &Arc<Map>) -> bool {
        let Some(words) = words(map) else { return false };
        let Shape { nodes, queues, ring } = self.shape;
        let values = [MAGIC, VERSION, nodes.into(), queues.into(), ring, self.total_bytes()];
        for (word, value) in words.iter().zip(values).rev() {
            word.store(value, Ordering::Release);
        }
        true
    }
}

/// Reads the header, each word once.
pub(super) fn read(map: &Arc<Map>) -> Header {
    let Some(words) = words(map) else { return Header::Foreign };
    parse(words.map(|word| word.load(Ordering::Acquire)))
}

/// What the header of a file says, where it is a good one and can be read; a device's can only be mapped.
pub(super) fn of_file(path: &Path) -> Option<Layout> {
    let mut bytes = [0; WORDS * size_of::<u64>()];
    // Opening anything else may wait.
    std::fs::metadata(path).ok().filter(Metadata::is_file)?;
    File::open(path).and_then(|file| file.read_exact_at(&mut bytes, 0)).ok()?;
    let mut words = bytes.chunks_exact(size_of::<u64>()).filter_map(|word| word.try_into().ok());
    match parse(std::array::from_fn(|_| words.next().map_or(0, u64::from_ne_bytes))) {
        Header::Good(layout) => Some(layout),
        _ => None,
    }
}

fn parse([magic, version, nodes, queues, ring, total]: [u64; WORDS]) -> Header {
    match magic {
        0 => return Header::Blank,
        MAGIC => {}
        _ => return Header::Foreign,
    }
    if version != VERSION {
        return Header::Version(version);
    }
    let (Ok(nodes), Ok(queues)) = (u16::try_from(nodes), u16::try_from(queues)) else {
        return Header::Broken;
    };
    match Layout::new(nodes, queues, ring) {
        Some(layout) if layout.total_bytes() == total => Header::Good(layout),
        _ => Header::Broken,
    }
}

fn words(map: &Arc<Map>) -> Option<[Place<AtomicU64>; WORDS]> {
    let words: Vec<_> = (0..WORDS).map_while(|word| map.place(word * size_of::<AtomicU64>())).collect();
    words.try_into().ok()
}
