//! Frames made of the pieces of one peer. Memory is taken once; what a peer sends changes nothing about how much.

use super::piece::Piece;
use crate::limits::{FRAME_MAX, FRAMES_REMEMBERED, INSTANCES_REMEMBERED, PIECES_MAX, SLOTS};

const WORD: usize = u64::BITS as usize;

/// A frame that is being put together.
#[derive(Debug, Default, Clone, Copy)]
struct Slot {
    /// Instance and number; None: free.
    frame: Option<(u32, u32)>,
    /// When its first piece came, in slots begun.
    begun: u64,
    total: usize,
    size: usize,
    have: [u64; PIECES_MAX / WORD],
    missing: usize,
}

/// The outcome of adding a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is a frame by itself.
    Whole,
    /// It completes the frame in this slot.
    Complete(usize),
    /// Further pieces are missing.
    Waits,
    /// It came before, or too late.
    Old,
    /// It does not fit the pieces before it.
    Bad,
}

/// What is remembered of one instance of the peer.
#[derive(Debug, Clone, Copy)]
struct Life {
    instance: u32,
    newest: u32,
    /// Which of the [`FRAMES_REMEMBERED`] frames up to the newest are done, by number modulo as many.
    done: [u64; FRAMES_REMEMBERED / WORD],
}

/// What came from one peer.
///
/// An instance is never refused: whoever knows the peer's address can make one up, so an unknown one must not make the
/// known ones strangers. Frames of an earlier start are kept out by the epochs in them.
///
/// A frame in one datagram is handed on whatever its number is. Who reads it finds repeats by what is in it, and a number that
/// somebody made up must not mute the messages by which nodes know each other.
#[derive(Debug)]
pub struct Assembly {
    /// The instances heard last, the latest first.
    lives: [Option<Life>; INSTANCES_REMEMBERED],
    slots: [Slot; SLOTS],
    /// Slots begun so far.
    begun: u64,
    memory: Box<[u8]>,
    /// Frames given up with pieces missing.
    pub incomplete: u64,
}

impl Default for Assembly {
    fn default() -> Self {
        Self::new()
    }
}

impl Assembly {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            lives: [None; INSTANCES_REMEMBERED],
            slots: [Slot::default(); SLOTS],
            begun: 0,
            memory: vec![0; SLOTS * FRAME_MAX].into_boxed_slice(),
            incomplete: 0,
        }
    }

    /// Takes one piece. A frame that is complete stays until [`Assembly::finish`]; the same piece again gives the same answer
    /// until then.
    pub fn take(&mut self, piece: &Piece<'_>) -> Outcome {
        if piece.is_whole() {
            return Outcome::Whole;
        }
        let life = self.life(piece);
        if !life.is_fresh(piece.number) {
            return Outcome::Old;
        }
        life.advance(piece.number);
        let slot = self.slot(piece);
        let entry = &mut self.slots[slot];
        //= docs/fabric.md#10.3
        if (entry.total, entry.size) != (piece.total, piece.size) {
            return Outcome::Bad;
        }
        let (word, bit) = (piece.index / WORD, 1 << (piece.index % WORD));
        if entry.have[word] & bit == 0 {
            entry.have[word] |= bit;
            entry.missing -= 1;
            let at = slot * FRAME_MAX + piece.index * piece.size;
            self.memory[at..at + piece.bytes.len()].copy_from_slice(piece.bytes);
        } else if entry.missing > 0 {
            return Outcome::Old;
        }
        //= docs/fabric.md#10.4
        if entry.missing == 0 { Outcome::Complete(slot) } else { Outcome::Waits }
    }

    /// The frame that is complete in a slot.
    #[must_use]
    pub fn frame(&self, slot: usize) -> &[u8] {
        &self.memory[slot * FRAME_MAX..][..self.slots[slot].total]
    }

    /// The frame of this piece is done with: one of several pieces does not come again.
    pub fn finish(&mut self, piece: &Piece<'_>) {
        if piece.is_whole() {
            return;
        }
        self.life(piece).finish(piece.number);
        let frame = Some((piece.instance, piece.number));
        self.slots.iter_mut().filter(|slot| slot.frame == frame).for_each(|slot| slot.frame = None);
    }

    /// Gives up every frame that is not complete.
    pub fn drop_waiting(&mut self) {
        self.incomplete += self.slots.iter().filter(|slot| slot.frame.is_some()).count() as u64;
        self.slots.iter_mut().for_each(|slot| slot.frame = None);
    }

    /// Gives up every frame that is not complete, and forgets which came.
    pub fn forget(&mut self) {
        self.drop_waiting();
        self.lives = [None; INSTANCES_REMEMBERED];
    }

    /// What is known of the piece's instance; a new one takes the place of the one that was silent for longest.
    fn life(&mut self, piece: &Piece<'_>) -> &mut Life {
        let is_it = |life: &Option<Life>| life.as_ref().is_some_and(|life| life.instance == piece.instance);
        let at = self.lives.iter().position(is_it).unwrap_or(INSTANCES_REMEMBERED - 1);
        if at > 0 {
            self.lives[..=at].rotate_right(1);
        }
        let first = &mut self.lives[0];
        if !is_it(first) {
            *first = None;
        }
        first.get_or_insert(Life {
            instance: piece.instance,
            newest: piece.number,
            done: [0; FRAMES_REMEMBERED / WORD],
        })
    }

    /// The slot of the piece's frame; for the first piece a free one, else the one that was begun first.
    fn slot(&mut self, piece: &Piece<'_>) -> usize {
        let frame = Some((piece.instance, piece.number));
        if let Some(slot) = self.slots.iter().position(|slot| slot.frame == frame) {
            return slot;
        }
        let age = |slot: &Slot| slot.frame.map_or(u64::MAX, |_| self.begun - slot.begun);
        let slot = (0..SLOTS).max_by_key(|slot| age(&self.slots[*slot])).unwrap_or(0);
        self.incomplete += u64::from(self.slots[slot].frame.is_some());
        self.begun += 1;
        self.slots[slot] = Slot {
            frame,
            begun: self.begun,
            total: piece.total,
            size: piece.size,
            have: [0; PIECES_MAX / WORD],
            missing: piece.total.div_ceil(piece.size),
        };
        slot
    }
}

impl Life {
    fn finish(&mut self, number: u32) {
        let (word, bit) = place(number);
        self.done[word] |= bit;
    }

    /// Whether a frame is newer than all, or within what is remembered and not done.
    fn is_fresh(&self, number: u32) -> bool {
        let behind = self.newest.wrapping_sub(number);
        let (word, bit) = place(number);
        self.is_newer(number) || (behind < FRAMES_REMEMBERED as u32 && self.done[word] & bit == 0)
    }

    /// Whether a frame is newer than all. Numbers go around, so that is the half of them that follows.
    fn is_newer(&self, number: u32) -> bool {
        (1..=u32::MAX / 2).contains(&number.wrapping_sub(self.newest))
    }

    fn advance(&mut self, number: u32) {
        if !self.is_newer(number) {
            return;
        }
        let ahead = number.wrapping_sub(self.newest);
        if ahead >= FRAMES_REMEMBERED as u32 {
            self.done.fill(0);
        } else {
            for number in 1..=ahead {
                let (word, bit) = place(self.newest.wrapping_add(number));
                self.done[word] &= !bit;
            }
        }
        self.newest = number;
    }
}

/// Where a frame is remembered.
fn place(number: u32) -> (usize, u64) {
    let at = number as usize % FRAMES_REMEMBERED;
    (at / WORD, 1 << (at % WORD))
}
