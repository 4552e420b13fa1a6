//! The side that writes frames.

use super::{
    ALIGN, SKIP, WORD,
    memory::{Data, Fulfilled, Place, ToConsumer, ToProducer, Wish, full_fence},
    record_bytes, size_fits,
};
use crate::Refused;

#[cfg(loom)]
use loom::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::sync::atomic::Ordering;

/// The side of a ring that writes frames. One at a time.
pub struct Producer {
    to_consumer: Place<ToConsumer>,
    to_producer: Place<ToProducer>,
    data: Data,
    size: u64,
    frame_max: usize,
    /// Ours: the copy in the consumer's memory is never read again.
    head: u64,
    /// As it was when last looked at.
    tail: u64,
    /// Bytes that the frame refused last would take, padding before it included.
    wanted: u64,
    for_room: Wish,
    /// The sleep of the consumer that was ended last.
    woken: Fulfilled,
    /// Something was sent since the consumer was last asked whether it sleeps.
    unflushed: bool,
    bad_position: u64,
}

impl Producer {
    /// Goes on where the producer before this one ended: at what it had published. None if the ring is too small for
    /// frames of `frame_max` bytes.
    #[must_use]
    pub fn attach(
        to_consumer: Place<ToConsumer>,
        to_producer: Place<ToProducer>,
        data: Data,
        frame_max: usize,
    ) -> Option<Self> {
        let size = data.size();
        if !size_fits(size, frame_max) {
            return None;
        }
        let head = to_consumer.head.load(Ordering::Relaxed) / ALIGN * ALIGN;
        to_consumer.head.store(head, Ordering::Release);
        let for_room = Wish::attach(&to_consumer.wants_room);
        // Full, until the consumer's own word is looked at.
        let tail = head.wrapping_sub(size);
        Some(Self {
            to_consumer,
            to_producer,
            data,
            size,
            frame_max,
            head,
            tail,
            wanted: 0,
            for_room,
            woken: Fulfilled::default(),
            unflushed: false,
            bad_position: 0,
        })
    }

    /// Writes one frame and shows it to the consumer.
    ///
    /// # Errors
    /// There is no room, or the frame is empty or too long.
    #[inline]
    pub fn send(&mut self, head: &[u8], body: &[u8]) -> Result<(), Refused> {
        let len = head.len() + body.len();
        if len == 0 || len > self.frame_max {
            return Err(Refused::Length);
        }
        let record = record_bytes(len);
        let offset = self.head & (self.size - 1);
        let before_end = self.size - offset;
        let skip = if record > before_end { before_end } else { 0 };
        if !self.fits(skip + record) {
            self.look();
            if !self.fits(skip + record) {
                self.wanted = skip + record;
                return Err(Refused::Full);
            }
        }
        let at = if skip > 0 {
            self.data.store_word(offset, SKIP);
            0
        } else {
            offset
        };
        self.data.store_word(at, len as u64);
        self.data.store(at + WORD, head);
        self.data.store(at + WORD + head.len() as u64, body);
        self.head = self.head.wrapping_add(skip + record);
        self.to_consumer.head.store(self.head, Ordering::Release);
        self.unflushed = true;
        Ok(())
    }

    /// Whether the consumer sleeps and has to be woken for what was sent since the last call.
    #[inline]
    pub fn must_wake(&mut self) -> bool {
        if !std::mem::take(&mut self.unflushed) {
            return false;
        }
        full_fence();
        self.woken.take(&self.to_producer.sleeps)
    }

    /// Asks to be woken when there is room. To be followed by [`full_fence`] and [`Producer::has_room`].
    pub fn want_room(&mut self) {
        self.for_room.begin(&self.to_consumer.wants_room);
    }

    /// Whether the frame that was refused last would fit now.
    pub fn has_room(&mut self) -> bool {
        self.look();
        self.fits(self.wanted)
    }

    /// Bytes that wait in the ring, as far as the consumer said.
    #[must_use]
    pub fn queued(&self) -> u64 {
        let tail = self.to_producer.tail.load(Ordering::Relaxed);
        self.head.wrapping_sub(tail).min(self.size)
    }

    /// How often the consumer's position made no sense.
    #[must_use]
    pub fn bad_position(&self) -> u64 {
        self.bad_position
    }

    /// What a consumer needs to attach.
    #[cfg(all(test, loom))]
    pub(super) fn shared(&self) -> (Place<ToConsumer>, Place<ToProducer>, Data) {
        (self.to_consumer.clone(), self.to_producer.clone(), self.data.clone())
    }

    fn fits(&self, bytes: u64) -> bool {
        bytes <= self.size - self.head.wrapping_sub(self.tail)
    }

    /// Takes over the consumer's position if it can be one: no more than a ring behind. Else the ring stays full.
    fn look(&mut self) {
        let tail = self.to_producer.tail.load(Ordering::Acquire);
        if self.head.wrapping_sub(tail) <= self.size {
            self.tail = tail;
        } else {
            self.bad_position += 1;
        }
    }
}
