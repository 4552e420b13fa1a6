//! Which of a peer's messages came already: each is delivered at most once.

/// Sequences behind the newest that are told apart.
const WIDTH: u32 = 64;

/// A sliding window over the sequences of one stream.
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    newest: u32,
    /// Bit n: `newest - n` came. 0 before the first.
    came: u64,
}

impl Window {
    /// Whether `sequence` comes for the first time and is not too old to know.
    pub fn take(&mut self, sequence: u32) -> bool {
        if self.came == 0 {
            *self = Self { newest: sequence, came: 1 };
            return true;
        }
        // Sequences wrap: half of them are ahead, half behind.
        let ahead = sequence.wrapping_sub(self.newest);
        if ahead != 0 && ahead <= u32::MAX / 2 {
            self.came = if ahead < WIDTH { self.came << ahead } else { 0 } | 1;
            self.newest = sequence;
            return true;
        }
        let behind = self.newest.wrapping_sub(sequence);
        let first = behind < WIDTH && self.came & (1 << behind) == 0;
        if first {
            self.came |= 1 << behind;
        }
        first
    }
}

#[cfg(test)]
mod tests;
