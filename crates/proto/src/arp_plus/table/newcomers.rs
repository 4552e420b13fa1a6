//! How many hosts enter the table that it has not had. Whoever is on the wire can make up as many as he likes, so beyond the first
//! ones only those enter that say a second time who they are, as true hosts do.

use crate::{
    Time,
    arp_plus::{
        PeerKey,
        tokens::{Rate, Tokens},
    },
    limits,
};
use std::hash::{DefaultHasher, Hash, Hasher};

const FIRST: Rate = Rate { at_once: limits::JOINS_AT_ONCE_UNKNOWN, a_second: limits::JOIN_RATE_UNKNOWN };
const AGAIN: Rate = Rate { at_once: limits::JOINS_AT_ONCE, a_second: limits::JOIN_RATE };

#[derive(Debug, Default)]
pub(super) struct Newcomers {
    first: Tokens,
    again: Tokens,
    /// Those that were refused lately, each at one of the two places that its hash names: a later one takes an earlier one's. Empty
    /// before the first one.
    refused: Vec<Refused>,
    /// Nobody else knows which host has which place.
    seed: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Refused {
    hash: u64,
    at: Time,
}

impl Newcomers {
    pub(super) fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The same for a table that is empty again.
    pub(super) fn anew(&self) -> Self {
        Self::seeded(self.seed)
    }

    /// Whether a host may enter now.
    pub(super) fn may_enter(&mut self, now: Time, key: PeerKey) -> bool {
        //= docs/arp-plus.md#7.12
        if self.first.has_room(now, FIRST) {
            return true;
        }
        self.is_heard_again(now, key) && self.again.has_room(now, AGAIN)
    }

    /// A host has entered.
    pub(super) fn enter(&mut self, now: Time) {
        if !self.first.take(now, FIRST) {
            self.again.take(now, AGAIN);
        }
    }

    /// Whether the host was refused before, in another message than one that came over several members. It is remembered else.
    fn is_heard_again(&mut self, now: Time, key: PeerKey) -> bool {
        if self.refused.is_empty() {
            self.refused = vec![Refused::default(); limits::REFUSED_MAX];
        }
        let mut hasher = DefaultHasher::new();
        (self.seed, key).hash(&mut hasher);
        let hash = hasher.finish();
        let places = [hash, hash >> 32].map(|hash| (hash % limits::REFUSED_MAX as u64) as usize);
        if let Some(known) = places.iter().map(|place| self.refused[*place]).find(|known| known.hash == hash)
        {
            let since = now.since(known.at);
            if since < limits::HEARD_AGAIN_MAX {
                return since >= limits::HEARD_AGAIN_MIN;
            }
        }
        // That of the two that was heard earlier gives way.
        let [one, other] = places;
        let place = if self.refused[one].at <= self.refused[other].at { one } else { other };
        self.refused[place] = Refused { hash, at: now };
        false
    }
}
