//! Which of a peer's messages came already: each is delivered at most once.

/// Sequences behind the newest that are distinguished (`docs/fabric.md`, 6.4).
pub const WINDOW: u32 = 1024;

const WORDS: usize = WINDOW as usize / 64;

/// A sliding window over the sequences of one stream. It lasts as long as the peer's epoch.
#[derive(Debug, Clone, Default)]
pub struct Window {
    newest: u32,
    /// Whether any sequence was accepted.
    begun: bool,
    /// The bit of sequence `s` is `s % WINDOW`: it came.
    came: [u64; WORDS],
}

impl Window {
    /// Whether `sequence` comes for the first time and is not too old to know.
    pub fn take(&mut self, sequence: u32) -> bool {
        if !self.begun {
            (self.begun, self.newest) = (true, sequence);
        }
        // Sequences wrap: half of them are ahead, half behind.
        let ahead = sequence.wrapping_sub(self.newest);
        if ahead == 0 || ahead > u32::MAX / 2 {
            let behind = self.newest.wrapping_sub(sequence);
            if behind >= WINDOW || self.came[word(sequence)] & bit(sequence) != 0 {
                return false;
            }
        } else {
            self.advance(ahead);
        }
        self.came[word(sequence)] |= bit(sequence);
        true
    }

    fn advance(&mut self, ahead: u32) {
        if ahead >= WINDOW {
            self.came = [0; WORDS];
        } else {
            for passed in 1..=ahead {
                let passed = self.newest.wrapping_add(passed);
                self.came[word(passed)] &= !bit(passed);
            }
        }
        self.newest = self.newest.wrapping_add(ahead);
    }
}

const fn word(sequence: u32) -> usize {
    (sequence % WINDOW / 64) as usize
}

const fn bit(sequence: u32) -> u64 {
    1 << (sequence % 64)
}

#[cfg(test)]
mod tests;
