//! Which numbers of a peer came already. It moves only for what was proven, so asking and noting are two steps.

/// Numbers behind the newest that are distinguished (`docs/fabric.md`, 9.7): some milliseconds at 10 Gbit/s, more than lanes differ.
const WINDOW: u64 = 8192;

const WORDS: usize = (WINDOW / 64) as usize;

/// The numbers of one stream of one start of a peer (RFC 4303, section 3.4.3). They do not wrap.
#[derive(Debug, Clone)]
pub struct Window {
    newest: u64,
    /// The bit of number `n` is `n % WINDOW`: it came.
    came: [u64; WORDS],
}

impl Default for Window {
    fn default() -> Self {
        Self { newest: 0, came: [0; WORDS] }
    }
}

impl Window {
    /// Whether a number did not come yet, and is not too old to know.
    pub fn is_new(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        number > self.newest || (self.newest - number < WINDOW && self.came[word] & bit == 0)
    }

    /// It came.
    pub fn take(&mut self, number: u64) {
        if number.saturating_sub(self.newest) >= WINDOW {
            self.came = [0; WORDS];
        } else {
            for passed in self.newest + 1..=number {
                let (word, bit) = place(passed);
                self.came[word] &= !bit;
            }
        }
        self.newest = self.newest.max(number);
        let (word, bit) = place(number);
        self.came[word] |= bit;
    }
}

/// Where a number is remembered.
const fn place(number: u64) -> (usize, u64) {
    ((number % WINDOW / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests;
