//! A token bucket: how many frames a second may go to everyone.

/// Lets `rate` frames a second pass, and `burst` at once after a silence. A rate of 0 lets everything pass.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    /// Nanoseconds that a frame costs.
    price: u64,
    most: u64,
    level: u64,
    last: u64,
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub fn new(rate: u32, burst: u32) -> Self {
        let price = 1_000_000_000u64.checked_div(u64::from(rate)).unwrap_or(0);
        let most = price * u64::from(burst.max(1));
        Self { price, most, level: most, last: 0 }
    }

    /// Takes one frame's token at `now` (nanoseconds, never going back); whether there was one.
    pub fn take(&mut self, now: u64) -> bool {
        let passed = now.saturating_sub(self.last);
        self.last = now;
        self.level = self.most.min(self.level.saturating_add(passed));
        let enough = self.level >= self.price;
        if enough {
            self.level -= self.price;
        }
        enough
    }
}

#[cfg(test)]
mod tests;
