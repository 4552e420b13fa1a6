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

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/arp-plus.md#7.12 type=test
    #[test]
    fn who_enters_in_place_of_the_first_ones_leaves_room_for_those_that_were_heard_before() {
        let (mut newcomers, now) = (Newcomers::default(), Time::from_millis(1));
        let mut enter = |heard_again| {
            let mut entered = 0;
            while newcomers.may_enter(now, heard_again) {
                newcomers.enter(now);
                entered += 1;
                assert!(entered < 1_000_000, "it comes to an end");
            }
            entered
        };
        assert_eq!([false, true].map(&mut enter), [FIRST.at_once, AGAIN.at_once]);
        assert_eq!([false, true].map(&mut enter), [0, 0]);
    }
}
