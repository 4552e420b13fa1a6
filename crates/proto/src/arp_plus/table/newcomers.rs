//! How many hosts enter the table that it has not had. Whoever is on the wire can make up as many as he likes, so beyond the first
//! ones only those enter that were heard before, as true hosts are.

use crate::{
    Time,
    arp_plus::tokens::{Rate, Tokens},
    limits,
};

const FIRST: Rate = Rate { at_once: limits::JOINS_AT_ONCE_UNKNOWN, a_second: limits::JOIN_RATE_UNKNOWN };
const AGAIN: Rate = Rate { at_once: limits::JOINS_AT_ONCE, a_second: limits::JOIN_RATE };

#[derive(Debug, Default)]
pub(super) struct Newcomers {
    first: Tokens,
    again: Tokens,
}

impl Newcomers {
    /// Whether a host may enter now; `heard_again`: its MAC was heard before.
    pub(super) fn may_enter(&mut self, now: Time, heard_again: bool) -> bool {
        //= docs/arp-plus.md#7.12
        self.first.has_room(now, FIRST) || heard_again && self.again.has_room(now, AGAIN)
    }

    /// A host has entered.
    pub(super) fn enter(&mut self, now: Time) {
        if !self.first.take(now, FIRST) {
            self.again.take(now, AGAIN);
        }
    }
}
