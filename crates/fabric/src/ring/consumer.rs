//! The side that reads frames.

use super::{
    ALIGN, SKIP, WORD,
    memory::{Data, Fulfilled, Place, ToConsumer, ToProducer, Wish, full_fence},
    record_bytes, size_fits,
};
use crate::{Bytes, Taken};

#[cfg(loom)]
use loom::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::sync::atomic::Ordering;

/// How much of the ring is consumed before the tail is published within a batch: a quarter.
const PUBLISH_SHIFT: u32 = 2;

/// The side of a ring that reads frames. One at a time.
pub struct Consumer {
    to_consumer: Place<ToConsumer>,
    to_producer: Place<ToProducer>,
    data: Data,
    size: u64,
    frame_max: usize,
    /// Ours: the copy in the producer's memory is never read again.
    tail: u64,
    /// The tail that was published to the producer.
    published: u64,
    asleep: Wish,
    /// The wait of the producer that was ended last.
    woken: Fulfilled,
    bad_position: u64,
    bad_record: u64,
}

/// The record at the tail of the ring.
enum Record {
    Frame { at: u64, len: usize, bytes: u64 },
    Skip(u64),
    Bad,
}

impl Consumer {
    /// Starts at the end of what waits: that was meant for the consumer before this one. None if the ring is too small
    /// for frames of `frame_max` bytes.
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
        let asleep = Wish::attach(&to_producer.sleeps);
        let mut consumer = Self {
            to_consumer,
            to_producer,
            data,
            size,
            frame_max,
            tail: 0,
            published: 0,
            asleep,
            woken: Fulfilled::default(),
            bad_position: 0,
            bad_record: 0,
        };
        consumer.drop_waiting();
        Some(consumer)
    }

    /// Whether there is anything to look at.
    #[must_use]
    #[inline]
    pub fn has_frames(&self) -> bool {
        self.head() != self.tail
    }

    /// Where the producer says that it is, in whole cache lines.
    fn head(&self) -> u64 {
        self.to_consumer.head.load(Ordering::Acquire) / ALIGN * ALIGN
    }

    /// Lends up to `budget` frames. Says how many were taken, and whether all that was seen was.
    #[inline]
    pub fn receive(&mut self, budget: usize, mut sink: impl FnMut(Bytes<'_>) -> Taken) -> (usize, bool) {
        let head = self.head();
        if head == self.tail {
            return (0, true);
        }
        if head.wrapping_sub(self.tail) > self.size {
            self.bad_position += 1;
            self.give_up(head);
            return (0, true);
        }
        let mut taken = 0;
        while self.tail != head && taken < budget {
            match self.record(head) {
                Record::Skip(bytes) => self.tail = self.tail.wrapping_add(bytes),
                Record::Frame { at, len, bytes } => {
                    if self.data.lend(at, len, &mut sink) == Taken::Later {
                        break;
                    }
                    self.tail = self.tail.wrapping_add(bytes);
                    taken += 1;
                }
                Record::Bad => {
                    self.bad_record += 1;
                    self.give_up(head);
                    return (taken, true);
                }
            }
            if self.tail.wrapping_sub(self.published) >= self.size >> PUBLISH_SHIFT {
                self.publish();
            }
        }
        if self.tail != self.published {
            self.publish();
        }
        (taken, self.tail == head)
    }

    /// Reads what lies at the tail, its word once. It ends at `head` or before.
    #[inline]
    fn record(&self, head: u64) -> Record {
        let waits = head.wrapping_sub(self.tail);
        let offset = self.tail & (self.size - 1);
        let before_end = self.size - offset;
        let word = self.data.load_word(offset);
        if word == SKIP {
            return if before_end <= waits { Record::Skip(before_end) } else { Record::Bad };
        }
        let Some(len) = usize::try_from(word).ok().filter(|len| (1..=self.frame_max).contains(len)) else {
            return Record::Bad;
        };
        let bytes = record_bytes(len);
        if bytes > waits || bytes > before_end {
            return Record::Bad;
        }
        Record::Frame { at: offset + WORD, len, bytes }
    }

    /// Whether the producer waits for room and has to be woken. To be asked after frames were taken.
    #[inline]
    pub fn must_wake(&mut self) -> bool {
        full_fence();
        self.woken.take(&self.to_consumer.wants_room)
    }

    /// Says that this side sleeps. To be followed by [`full_fence`] and [`Consumer::has_frames`].
    pub fn say_asleep(&mut self) {
        self.asleep.begin(&self.to_producer.sleeps);
    }

    /// Says that it is awake.
    pub fn say_awake(&mut self) {
        self.asleep.end(&self.to_producer.sleeps);
    }

    /// Drops what waits.
    pub fn drop_waiting(&mut self) {
        self.give_up(self.head());
    }

    /// How often the producer's position made no sense.
    #[must_use]
    pub fn bad_position(&self) -> u64 {
        self.bad_position
    }

    /// How often a record made no sense.
    #[must_use]
    pub fn bad_record(&self) -> u64 {
        self.bad_record
    }

    fn give_up(&mut self, head: u64) {
        self.tail = head;
        self.publish();
    }

    fn publish(&mut self) {
        self.published = self.tail;
        self.to_producer.tail.store(self.tail, Ordering::Release);
    }
}
