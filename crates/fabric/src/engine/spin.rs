//! When a queue's thread spins and when it sleeps.

use std::time::Duration;

/// How a queue waits for frames.
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
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Busy => 0,
            Self::Adaptive => 1,
            Self::Sleep => 2,
        }
    }

    /// The inverse of `number`.
    pub(crate) const fn of_number(number: u8) -> Self {
        match number {
            0 => Self::Busy,
            1 => Self::Adaptive,
            _ => Self::Sleep,
        }
    }
}

/// Longest spin of [`Poll::Adaptive`], as KVM's: longer than a round trip takes when both sides sleep, or two queues that
/// answer each other would never get out of that. Once they are, each waits for less than [`SPIN_WORTH`].
pub const SPIN_MAX: Duration = Duration::from_micros(200);
/// Shortest spin other than none.
const SPIN_MIN: Duration = Duration::from_micros(10);

/// What a spin may take on average for what it catches: twice what it takes to be woken. Where a link lets the longest frame
/// through every 200 us, spins would catch each of them, and a thread have a processor of its own for nothing.
const SPIN_WORTH: Duration = Duration::from_micros(50);
/// Longest time between two looks of a thread that has its processor: in more, others had it. Where a look itself takes longer,
/// as on an emulated processor, spins are therefore never given up.
const LOOK_MAX: Duration = Duration::from_micros(10);
/// Catches that the average is taken over: two nodes that answer each other catch the first ones late.
const CATCHES: u32 = 32;
/// How long a thread does without spinning after it was not worth it.
const SPIN_PAUSE: Duration = Duration::from_millis(100);

/// What to do now that there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Poll again at once.
    Spin,
    /// Sleep until something comes.
    Sleep,
}

/// The budget of spinning, in nanoseconds. It doubles when something came soon after the thread fell asleep, so that a
/// longer spin would have caught it, and halves when nothing did (as KVM does with `halt_poll_ns`). An idle queue spins
/// not at all, and neither does one whose spins take too long for what they catch ([`SPIN_WORTH`]), for a while.
#[derive(Debug, Clone, Copy)]
pub struct Spin {
    poll: Poll,
    budget: u64,
    idle_since: Option<u64>,
    /// How long it had been idle when the last nap ended, if nobody has looked since.
    nap: Option<u64>,
    /// Nobody wakes it: what a spin catches would have waited for the end of a nap.
    naps: bool,
    /// What spins caught lately, and how long they took for it.
    catches: u32,
    spun: u64,
    /// The last look of this spin, and how much of the spin others had the processor.
    looked: u64,
    away: u64,
    /// The time from which it may spin again.
    pause_until: u64,
}

impl Spin {
    /// Starts without a budget.
    #[must_use]
    pub fn new(poll: Poll) -> Self {
        Self {
            poll,
            budget: 0,
            idle_since: None,
            nap: None,
            naps: false,
            catches: 0,
            spun: 0,
            looked: 0,
            away: 0,
            pause_until: 0,
        }
    }

    /// Waits another way from now on.
    pub fn set_poll(&mut self, poll: Poll) {
        if poll != self.poll {
            *self = Self::new(poll);
        }
    }

    /// There was something to do at `now`.
    pub fn worked(&mut self, now: u64) {
        if let Some(idle) = self.nap.take() {
            self.learn(now, idle, true);
        }
        if let Some(since) = self.idle_since.take()
            && self.poll == Poll::Adaptive
            && !self.naps
        {
            self.catches += 1;
            self.weigh(now, since);
        }
    }

    /// There was nothing to do at `now`.
    pub fn idle(&mut self, now: u64) -> Idle {
        // Too early to decide, as long as something may still arrive within the longest spin.
        if let Some(idle) = self.nap.take()
            && idle > SPIN_MAX.as_nanos() as u64
        {
            self.learn(now, idle, false);
        }
        if self.idle_since.is_none() {
            (self.looked, self.away) = (now, 0);
        }
        self.look(now);
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
        let since = self.idle_since.take().unwrap_or(from);
        self.learn(to, to.saturating_sub(since), woken);
        // What it spun for nothing counts for what it catches otherwise.
        if self.poll == Poll::Adaptive && !self.naps {
            self.weigh(from, since);
        }
    }

    /// Slept from `from` to `to` where nobody wakes it: the next look shows whether something has arrived. It goes on being idle.
    pub fn napped(&mut self, from: u64, to: u64) {
        self.naps = true;
        self.nap = Some(to.saturating_sub(*self.idle_since.get_or_insert(from)));
    }

    /// Notes whether others had the processor since the look before this one.
    fn look(&mut self, now: u64) {
        let between = now.saturating_sub(self.looked);
        if between > LOOK_MAX.as_nanos() as u64 {
            self.away += between;
        }
        self.looked = now;
    }

    /// A spin ended at `now`; others had the processor for a part of it.
    fn weigh(&mut self, now: u64, since: u64) {
        self.look(now);
        self.spun += now.saturating_sub(since).saturating_sub(self.away);
        let dear = self.spun > u64::from(CATCHES) * SPIN_WORTH.as_nanos() as u64;
        if dear {
            self.budget = 0;
            self.pause_until = now + SPIN_PAUSE.as_nanos() as u64;
        }
        if dear || self.catches >= CATCHES {
            (self.catches, self.spun) = (0, 0);
        }
    }

    fn learn(&mut self, now: u64, idle: u64, caught: bool) {
        if now < self.pause_until {
            return;
        }
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
