//! What a queue keeps of one peer.

use crate::{limits::HELLO_MIN, message::HEAD, talk::Talk};
use linkbraid_fabric::Stats;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// A message that came and is not done with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub slot: usize,
    /// Where its next frame is.
    pub at: usize,
    pub end: usize,
}

pub(super) struct Link {
    pub node: u16,
    /// Its address as the provider writes it, and what it is called in the address vector; none if it refused.
    pub name: Vec<u8>,
    pub address: Option<u64>,
    pub talk: Talk,
    /// The message that frames are added to: its slot, and where it ends.
    pub open: Option<(usize, usize)>,
    /// The open message is to go even if it is not full.
    pub flushed: bool,
    /// Messages that are to go next.
    pub sealed: VecDeque<(usize, usize)>,
    /// Slots for messages with frames, and for those without, that are free.
    pub free: Vec<usize>,
    pub controls: Vec<usize>,
    /// Messages that the library has.
    pub under_way: usize,
    /// Bytes in those of them with frames.
    pub under_way_bytes: usize,
    /// What came.
    /// In order; gaps are messages that others overtook.
    pub inbox: VecDeque<Option<Waiting>>,
    /// It came since the last reset.
    pub heard: bool,
    /// Say hello as soon as it can be sent.
    pub wants_hello: bool,
    /// When to say the next one, how long after that the one after it, and how many were said without an answer.
    pub due: Instant,
    pub pause: Duration,
    pub hellos: u32,
    pub stats: Stats,
}

impl Link {
    pub fn new(
        node: u16,
        (name, address): (Vec<u8>, Option<u64>),
        life: u32,
        window: u16,
        (free, controls): (Vec<usize>, Vec<usize>),
        now: Instant,
    ) -> Self {
        Self {
            node,
            name,
            address,
            talk: Talk::new(life, window),
            open: None,
            flushed: false,
            sealed: VecDeque::with_capacity(window.into()),
            free,
            controls,
            under_way: 0,
            under_way_bytes: 0,
            inbox: VecDeque::with_capacity(window.into()),
            heard: false,
            wants_hello: false,
            due: now,
            pause: HELLO_MIN,
            hellos: 0,
            stats: Stats::default(),
        }
    }

    /// Another frame can be taken, however long.
    pub fn has_room(&self) -> bool {
        self.talk.is_up() && !self.free.is_empty()
    }

    /// The next message came.
    pub fn has_frames(&self) -> bool {
        matches!(self.inbox.front(), Some(Some(_)))
    }

    /// A message with frames could go.
    pub fn has_work(&self) -> bool {
        !self.sealed.is_empty() || self.flushed
    }

    /// Something is to go now that the provider did not take.
    pub fn is_held_up(&self) -> bool {
        self.wants_hello || (self.has_work() && self.talk.has_room())
    }

    /// Something is about to go, or going.
    pub fn is_sending(&self) -> bool {
        self.under_way > 0 || self.is_held_up()
    }

    /// When to say the next hello; none if both know each other.
    pub fn hello_due(&self) -> Option<Instant> {
        (!self.talk.is_up()).then_some(self.due)
    }

    /// Says hello at once, and then again and again.
    pub fn start_hellos(&mut self) {
        (self.due, self.pause, self.hellos) = (Instant::now(), HELLO_MIN, 0);
    }

    /// What there is to know.
    pub fn stats(&self) -> Stats {
        let waiting = self.sealed.iter().chain(&self.open).map(|(_, end)| end - HEAD);
        let waiting: usize = waiting.sum();
        Stats { queued: (waiting + self.under_way_bytes) as u64, ..self.stats }
    }
}
