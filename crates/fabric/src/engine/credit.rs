//! How long frames wait for a peer whose queue is full.
//!
//! A frame that waits holds up those behind it, to whomever they go. So a peer earns waiting with what it takes: one
//! that takes data slowly slows the sender down, which is what TCP wants; one that takes next to nothing, failed or hostile,
//! gets loss instead, and the others get their frames.

use std::time::Duration;

/// Longest wait for one peer. A busy machine keeps a process waiting for tens of milliseconds; TCP takes what is
/// delayed by 200 ms and more for lost (`TCP_RTO_MIN`), and the flows to others wait as long.
pub const HOLD_MAX: Duration = Duration::from_millis(100);
/// Waiting that a byte earns: a peer that takes less than 100 Mbit/s when it matters loses frames.
const NANOS_A_BYTE: u64 = 80;

/// The waiting that a peer has earned, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Credit {
    left: u64,
    waiting_since: Option<u64>,
}

impl Default for Credit {
    fn default() -> Self {
        Self { left: HOLD_MAX.as_nanos() as u64, waiting_since: None }
    }
}

impl Credit {
    /// The peer took `bytes` at `now`.
    pub fn took(&mut self, bytes: usize, now: u64) {
        self.settle(now);
        self.waiting_since = None;
        let earned = (bytes as u64).saturating_mul(NANOS_A_BYTE);
        self.left = self.left.saturating_add(earned).min(HOLD_MAX.as_nanos() as u64);
    }

    /// The peer's queue was full at `now`; whether its frame may wait.
    pub fn may_wait(&mut self, now: u64) -> bool {
        self.settle(now);
        let waits = self.left > 0;
        self.waiting_since = waits.then_some(now);
        waits
    }

    /// How long it may still wait, from when it was last asked.
    #[must_use]
    pub fn left(&self) -> Duration {
        Duration::from_nanos(self.left)
    }

    fn settle(&mut self, now: u64) {
        if let Some(since) = self.waiting_since {
            self.left = self.left.saturating_sub(now.saturating_sub(since));
        }
    }
}

#[cfg(test)]
mod tests;
