//! When a queue's thread spins and when it sleeps.

use std::time::Duration;

/// How a queue waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poll {
    /// Never sleeps, as published: lowest latency, one core a queue.
    Busy,
    /// Spins for as long as that has paid off lately, then sleeps.
    Adaptive,
    /// Sleeps as soon as there is nothing to do.
    Sleep,
}

impl Poll {
    /// As a number that fits into an atomic.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Busy => 0,
            Self::Adaptive => 1,
            Self::Sleep => 2,
        }
    }

    /// Back again.
    pub(super) const fn of_number(number: u8) -> Self {
        match number {
            0 => Self::Busy,
            1 => Self::Adaptive,
            _ => Self::Sleep,
        }
    }
}

/// Longest spin of [`Poll::Adaptive`], as KVM's: longer than a round trip takes when both sides sleep, or two queues that
/// answer each other would never get out of that.
pub const SPIN_MAX: Duration = Duration::from_micros(200);
/// Shortest spin other than none.
const SPIN_MIN: Duration = Duration::from_micros(10);

/// What to do now that there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Look again.
    Spin,
    /// Sleep until something comes.
    Sleep,
}

/// The budget of spinning, in nanoseconds. It doubles when something came soon after the thread fell asleep, so that a
/// longer spin would have caught it, and halves when nothing did (as KVM does with `halt_poll_ns`). An idle queue spins
/// not at all.
#[derive(Debug, Clone, Copy)]
pub struct Spin {
    poll: Poll,
    budget: u64,
    idle_since: Option<u64>,
    /// How long it had been idle when the last nap ended, if nobody has looked since.
    nap: Option<u64>,
}

impl Spin {
    /// Starts without a budget.
    #[must_use]
    pub fn new(poll: Poll) -> Self {
        Self { poll, budget: 0, idle_since: None, nap: None }
    }

    /// Waits another way from now on.
    pub fn set_poll(&mut self, poll: Poll) {
        if poll != self.poll {
            *self = Self::new(poll);
        }
    }

    /// There was something to do.
    pub fn worked(&mut self) {
        if let Some(idle) = self.nap.take() {
            self.learn(idle, true);
        }
        self.idle_since = None;
    }

    /// There was nothing to do at `now`.
    pub fn idle(&mut self, now: u64) -> Idle {
        // Too early to tell, as long as something may still come within the longest spin.
        if let Some(idle) = self.nap.take()
            && idle > SPIN_MAX.as_nanos() as u64
        {
            self.learn(idle, false);
        }
        let since = *self.idle_since.get_or_insert(now);
        let spin = match self.poll {
            Poll::Busy => true,
            Poll::Sleep => false,
            Poll::Adaptive => now.saturating_sub(since) < self.budget,
        };
        if spin { Idle::Spin } else { Idle::Sleep }
    }

    /// Slept from `from` to `to`; whether something had come then.
    pub fn slept(&mut self, from: u64, to: u64, woken: bool) {
        let idle = to.saturating_sub(self.idle_since.take().unwrap_or(from));
        self.learn(idle, woken);
    }

    /// Slept from `from` to `to` where nobody wakes it: the next look tells whether something has come. It goes on being idle.
    pub fn napped(&mut self, from: u64, to: u64) {
        self.nap = Some(to.saturating_sub(*self.idle_since.get_or_insert(from)));
    }

    fn learn(&mut self, idle: u64, caught: bool) {
        let (least, most) = (SPIN_MIN.as_nanos() as u64, SPIN_MAX.as_nanos() as u64);
        self.budget = if caught && idle <= most {
            (self.budget * 2).clamp(least, most)
        } else if self.budget <= least {
            0
        } else {
            self.budget / 2
        };
    }

    /// The budget now.
    #[must_use]
    pub fn budget(&self) -> Duration {
        Duration::from_nanos(self.budget)
    }
}

#[cfg(test)]
mod tests;
