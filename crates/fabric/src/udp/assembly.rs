//! Frames made of the pieces of one peer. Memory is taken once; what a peer sends changes nothing about how much.

use super::piece::Piece;
use crate::limits::{FRAME_MAX, FRAMES_REMEMBERED, PIECES_MAX, SLOTS};

const WORD: usize = u64::BITS as usize;

/// A frame that is being put together.
#[derive(Debug, Default, Clone, Copy)]
struct Slot {
    /// None: free.
    number: Option<u32>,
    total: usize,
    size: usize,
    have: [u64; PIECES_MAX / WORD],
    missing: usize,
}

/// What became of a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is a whole frame.
    Whole,
    /// It completes the frame in this slot.
    Complete(usize),
    /// More is to come.
    Waits,
    /// It came before, or too late.
    Old,
    /// It does not fit the pieces before it.
    Bad,
}

/// What came from one peer.
#[derive(Debug)]
pub struct Assembly {
    instance: Option<u32>,
    /// The instance before: what still comes from it is late.
    previous: Option<u32>,
    newest: u32,
    /// Which of the [`FRAMES_REMEMBERED`] frames up to the newest are done, by number modulo as many.
    done: [u64; FRAMES_REMEMBERED / WORD],
    slots: [Slot; SLOTS],
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
            instance: None,
            previous: None,
            newest: 0,
            done: [0; FRAMES_REMEMBERED / WORD],
            slots: [Slot::default(); SLOTS],
            memory: vec![0; SLOTS * FRAME_MAX].into_boxed_slice(),
            incomplete: 0,
        }
    }

    /// Takes one piece. A frame that is whole or complete stays until [`Assembly::finish`]; the same piece again gives
    /// the same answer until then.
    pub fn take(&mut self, piece: &Piece<'_>) -> Outcome {
        if self.instance != Some(piece.instance) {
            if self.previous == Some(piece.instance) {
                return Outcome::Old;
            }
            self.previous = self.instance.replace(piece.instance);
            self.drop_waiting();
            self.done.fill(0);
            self.newest = piece.number;
        }
        if !self.is_fresh(piece.number) {
            return Outcome::Old;
        }
        self.advance(piece.number);
        if piece.is_whole() {
            return Outcome::Whole;
        }
        let slot = self.slot(piece);
        let entry = &mut self.slots[slot];
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
        if entry.missing == 0 { Outcome::Complete(slot) } else { Outcome::Waits }
    }

    /// The frame that is complete in a slot.
    #[must_use]
    pub fn frame(&self, slot: usize) -> &[u8] {
        &self.memory[slot * FRAME_MAX..][..self.slots[slot].total]
    }

    /// The frame is done with: it does not come again.
    pub fn finish(&mut self, number: u32) {
        let (word, bit) = place(number);
        self.done[word] |= bit;
        self.slots.iter_mut().filter(|slot| slot.number == Some(number)).for_each(|slot| slot.number = None);
    }

    /// Gives up every frame that is not complete.
    pub fn drop_waiting(&mut self) {
        self.incomplete += self.slots.iter().filter(|slot| slot.number.is_some()).count() as u64;
        self.slots.iter_mut().for_each(|slot| slot.number = None);
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

    /// The slot of the piece's frame; for the first piece a free one, else that of the oldest frame.
    fn slot(&mut self, piece: &Piece<'_>) -> usize {
        if let Some(slot) = self.slots.iter().position(|slot| slot.number == Some(piece.number)) {
            return slot;
        }
        let age = |slot: &Slot| slot.number.map_or(u32::MAX, |number| self.newest.wrapping_sub(number));
        let slot = (0..SLOTS).max_by_key(|slot| age(&self.slots[*slot])).unwrap_or(0);
        self.incomplete += u64::from(self.slots[slot].number.is_some());
        self.slots[slot] = Slot {
            number: Some(piece.number),
            total: piece.total,
            size: piece.size,
            have: [0; PIECES_MAX / WORD],
            missing: piece.total.div_ceil(piece.size),
        };
        slot
    }
}

/// Where a frame is remembered.
fn place(number: u32) -> (usize, u64) {
    let at = number as usize % FRAMES_REMEMBERED;
    (at / WORD, 1 << (at % WORD))
}
