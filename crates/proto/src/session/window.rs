//! Which sequences of a stream have come: a frame that a network delivers twice is taken once.

/// Sequences below the highest one that are remembered. A frame that is overtaken by more than that is given up.
pub const WINDOW: u32 = 1024;

const WORDS: usize = WINDOW as usize / 64;

/// Why a sequence is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Seen {
    /// It has come before.
    Twice,
    /// It lies so far back that nobody knows.
    Late,
}

/// The memory of one stream of one epoch of a peer. Make a new one when the peer's epoch changes, and only then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Window {
    top: u32,
    started: bool,
    /// The bit of sequence `s` is `s % WINDOW`.
    bits: [u64; WORDS],
}

impl Window {
    /// Takes the frame of that sequence, or says why not.
    ///
    /// # Errors
    /// It was there before, or may have been.
    pub fn take(&mut self, sequence: u32) -> Result<(), Seen> {
        //= docs/fabric.md#6.4
        if !self.started {
            self.started = true;
            self.top = sequence;
        }
        // Serial numbers (RFC 1982): what is less than half the circle ahead is newer.
        let ahead = sequence.wrapping_sub(self.top);
        if ahead == 0 || ahead > u32::MAX / 2 {
            if self.top.wrapping_sub(sequence) >= WINDOW {
                return Err(Seen::Late);
            }
            if self.has(sequence) {
                return Err(Seen::Twice);
            }
        } else {
            self.advance(ahead, sequence);
        }
        self.bits[Self::word(sequence)] |= Self::bit(sequence);
        Ok(())
    }

    fn advance(&mut self, ahead: u32, sequence: u32) {
        if ahead >= WINDOW {
            self.bits = [0; WORDS];
        } else {
            for passed in 1..=ahead {
                let passed = self.top.wrapping_add(passed);
                self.bits[Self::word(passed)] &= !Self::bit(passed);
            }
        }
        self.top = sequence;
    }

    const fn has(&self, sequence: u32) -> bool {
        self.bits[Self::word(sequence)] & Self::bit(sequence) != 0
    }

    const fn word(sequence: u32) -> usize {
        (sequence % WINDOW / 64) as usize
    }

    const fn bit(sequence: u32) -> u64 {
        1 << (sequence % 64)
    }
}

#[cfg(test)]
mod tests {
    use super::{Seen, WINDOW, Window};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    //= docs/fabric.md#6.4 type=test
    #[test]
    fn late_and_repeated_sequences_are_told_apart() {
        let mut window = Window::default();
        assert_eq!(window.take(5), Ok(()));
        assert_eq!(window.take(5), Err(Seen::Twice));
        assert_eq!(window.take(4), Ok(()), "overtaken by the first that came");
        assert_eq!(window.take(5 + WINDOW), Ok(()));
        assert_eq!(window.take(5), Err(Seen::Late));
        assert_eq!(window.take(6), Ok(()), "the last one that is remembered");
        assert_eq!(window.take(6), Err(Seen::Twice));
        // Up to half the circle ahead is later, the rest is earlier.
        let mut window = Window::default();
        assert_eq!([0, u32::MAX / 2].map(|sequence| window.take(sequence)), [Ok(()), Ok(())]);
        assert_eq!(window.take(0), Err(Seen::Late));
        assert_eq!(window.take(u32::MAX - 1), Ok(()));
        assert_eq!(window.take(u32::MAX / 2), Err(Seen::Late));
    }

    proptest! {
        //= docs/fabric.md#6.4 type=test
        #[test]
        fn nothing_is_taken_twice_and_what_is_recent_is_taken(
            start: u32, steps in prop::collection::vec((-1500i64..1500, 1usize..4), 1..400),
        ) {
            let (mut window, mut model) = (Window::default(), BTreeSet::new());
            let (mut at, mut top) = (0i64, None);
            for (step, times) in steps {
                at += step;
                for _ in 0..times {
                    let sequence = start.wrapping_add(at as u32);
                    let highest = *top.get_or_insert(at);
                    let expected = if highest - at >= i64::from(WINDOW) {
                        Err(Seen::Late)
                    } else if model.insert(at) {
                        Ok(())
                    } else {
                        Err(Seen::Twice)
                    };
                    prop_assert_eq!(window.take(sequence), expected, "{} below {}", at, highest);
                    top = Some(highest.max(at));
                }
            }
        }
    }
}
