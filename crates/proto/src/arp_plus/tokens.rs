//! How often something may happen in a short time: a token bucket.

use crate::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many at once, and how many a second after those.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub at_once: u32,
    pub a_second: u32,
}

/// What is left of a rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// The bucket is full again at that time.
    full_at: Time,
}

impl Tokens {
    /// Takes one, if one is left.
    pub(crate) fn take(&mut self, now: Time, rate: Rate) -> bool {
        let has_room = self.has_room(now, rate);
        if has_room {
            self.full_at = self.full_at.max(now) + rate.token();
        }
        has_room
    }

    /// Whether one is left.
    pub(crate) fn has_room(&self, now: Time, rate: Rate) -> bool {
        now.until(self.full_at.max(now) + rate.token()) <= rate.token() * rate.at_once
    }
}

impl Rate {
    const fn token(self) -> Duration {
        Duration::from_nanos(1_000_000_000 / self.a_second as u64)
    }
}
