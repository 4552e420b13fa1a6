//! Members of other hosts that have proven that their frames are new, and which of their frames have come.

use crate::{Time, limits};
use linkbraid_wire::MacAddr;
use std::{collections::BTreeMap, time::Duration};

/// Counters that are remembered behind the latest one of a member here: frames of one member arrive almost in order.
const WINDOW: u64 = u64::BITS as u64;

/// A frame that came over one own member may come over another one for so long, and for less than three times as long.
const COPIES: Duration = Duration::from_secs(1);

/// The counters that came in on one own member.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    /// The latest.
    latest: u64,
    /// Which of those up to it have come: bit 0 is the latest.
    seen: u64,
}

impl Window {
    /// Whether the counter is new here; it is not any more, then.
    fn take(&mut self, counter: u64) -> bool {
        if counter > self.latest {
            let ahead = counter - self.latest;
            self.seen = if ahead < WINDOW { self.seen << ahead | 1 } else { 1 };
            self.latest = counter;
            return true;
        }
        let behind = self.latest - counter;
        let is_new = behind < WINDOW && self.seen & 1 << behind == 0;
        if is_new {
            self.seen |= 1 << behind;
        }
        is_new
    }
}

/// One member of another host.
#[derive(Debug)]
struct Sender {
    index: u64,
    heard: Time,
    /// The latest counter that came in anywhere.
    latest: u64,
    /// What the latest was at that time.
    mark: (Time, u64),
    /// Nothing up to here is new, wherever it comes in.
    floor: u64,
    /// By own member.
    windows: BTreeMap<u8, Window>,
}

impl Sender {
    fn new(now: Time, index: u64, latest: u64) -> Sender {
        Sender { index, heard: now, latest, mark: (now, latest), floor: latest, windows: BTreeMap::new() }
    }

    /// Raises the floor to what was the latest a while ago.
    fn age(&mut self, now: Time) {
        let since = now.since(self.mark.0);
        if since >= COPIES {
            self.floor = if since >= COPIES * 2 { self.latest } else { self.mark.1 };
            self.mark = (now, self.latest);
        }
    }

    fn take(&mut self, now: Time, slot: u8, counter: u64) -> bool {
        //= docs/arp-plus.md#15.5
        self.age(now);
        let is_new = counter > self.floor && self.windows.entry(slot).or_default().take(counter);
        if is_new {
            self.latest = self.latest.max(counter);
            self.heard = now;
        }
        is_new
    }
}

/// What a counter is to what has come before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freshness {
    /// It has not come before.
    New,
    /// It has, or it comes too late.
    Old,
    /// The member has not proven this index.
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Senders(BTreeMap<MacAddr, Sender>);

impl Senders {
    /// Looks at a frame, and remembers it.
    pub fn take(&mut self, (now, slot): (Time, u8), mac: MacAddr, index: u64, counter: u64) -> Freshness {
        //= docs/arp-plus.md#15.5
        let lives = |sender: &&mut Sender| now.since(sender.heard) < limits::AUTH_PROOF_LIVES;
        let known = self.0.get_mut(&mac).filter(|sender| sender.index == index).filter(lives);
        match known.map(|sender| sender.take(now, slot, counter)) {
            None => Freshness::Unknown,
            Some(true) => Freshness::New,
            Some(false) => Freshness::Old,
        }
    }

    /// The member has proven that it sends with that index now, and has come to that counter. Whether another one had to be
    /// forgotten.
    pub fn prove(&mut self, now: Time, mac: MacAddr, index: u64, counter: u64) -> bool {
        let is_full = self.0.len() >= limits::AUTH_SENDERS_MAX && !self.0.contains_key(&mac);
        let longest = || self.0.iter().min_by_key(|(_, sender)| sender.heard).map(|(mac, _)| *mac);
        let forgotten = is_full.then(longest).flatten();
        forgotten.map(|mac| self.0.remove(&mac));
        self.0.insert(mac, Sender::new(now, index, counter));
        forgotten.is_some()
    }

    /// An own member sends that: it may come back.
    pub fn sent(&mut self, now: Time, mac: MacAddr, index: u64, counter: u64) {
        if self.0.get(&mac).is_none_or(|sender| sender.index != index) {
            self.prove(now, mac, index, counter - 1);
        }
        if let Some(sender) = self.0.get_mut(&mac) {
            sender.age(now);
            (sender.latest, sender.heard) = (counter, now);
        }
    }

    /// Whether that member has been heard lately.
    pub fn is_heard(&self, now: Time, mac: MacAddr) -> bool {
        self.0.get(&mac).is_some_and(|sender| now.since(sender.heard) < limits::AUTH_REFUSED_LIVES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn proven() -> Senders {
        let mut senders = Senders::default();
        assert!(!senders.prove(Time::ZERO, MAC, 7, 100));
        senders
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    //= docs/arp-plus.md#15.5 type=test
    #[test]
    fn each_counter_is_taken_once_on_each_own_member() {
        let mut senders = proven();
        let mut take = |slot, counter| senders.take((at(0), slot), MAC, 7, counter);
        assert_eq!(take(0, 100), Freshness::Old, "that is where it was proven");
        assert_eq!([101, 103, 102, 101, 103].map(|counter| take(0, counter)), {
            use Freshness::{New, Old};
            [New, New, New, Old, Old]
        });
        assert_eq!(take(1, 103), Freshness::New, "a switch gives each own member a copy");
        assert_eq!(take(1, 103), Freshness::Old);
        assert_eq!(take(0, 103 + WINDOW), Freshness::New);
        assert_eq!(take(0, 104), Freshness::New, "the oldest that is remembered");
        assert_eq!(take(0, 103), Freshness::Old, "not remembered any more");
        assert_eq!(take(0, u64::MAX), Freshness::New);
        assert_eq!(take(0, u64::MAX), Freshness::Old);
    }

    //= docs/arp-plus.md#15.5 type=test
    #[test]
    fn no_copy_is_taken_on_another_member_long_after() {
        let mut senders = proven();
        let mut take = |ms, slot, counter| senders.take((at(ms), slot), MAC, 7, counter);
        assert_eq!(take(0, 0, 101), Freshness::New);
        assert_eq!(take(999, 1, 101), Freshness::New);
        assert_eq!(take(1, 0, 102), Freshness::New);
        assert_eq!(take(1999, 0, 103), Freshness::New);
        assert_eq!(take(2998, 1, 102), Freshness::New, "as late as it gets");
        assert_eq!(take(2999, 2, 102), Freshness::Old, "a second after the last look");
    }

    //= docs/arp-plus.md#15.5 type=test
    #[test]
    fn who_was_silent_has_to_prove_again_that_he_speaks_now() {
        let mut senders = proven();
        let mut take = |ms, counter| senders.take((at(ms), 0), MAC, 7, counter);
        assert_eq!(take(1999, 101), Freshness::New);
        assert_eq!(take(3998, 101), Freshness::Old, "which does not count as heard");
        assert_eq!(take(3999, 102), Freshness::Unknown, "somebody may have kept it from us all that time");
        assert_eq!(take(4000, 103), Freshness::Unknown);
        senders.prove(at(4001), MAC, 7, 110);
        assert_eq!(senders.take((at(4001), 0), MAC, 7, 103), Freshness::Old);
        assert_eq!(senders.take((at(4001), 0), MAC, 7, 111), Freshness::New);
    }

    #[test]
    fn another_index_has_to_be_proven_and_replaces_the_former_one() {
        let mut senders = proven();
        assert_eq!(senders.take((at(0), 0), MAC, 8, 1000), Freshness::Unknown);
        senders.prove(at(1), MAC, 8, 5);
        assert_eq!(senders.take((at(1), 0), MAC, 8, 6), Freshness::New);
        assert_eq!(senders.take((at(1), 0), MAC, 7, 1000), Freshness::Unknown);
    }

    //= docs/arp-plus.md#15.10 type=test
    #[test]
    fn an_own_frame_comes_back_soon_and_once_on_each_own_member_or_never() {
        let mut senders = Senders::default();
        senders.sent(at(0), MAC, 7, 1);
        senders.sent(at(10), MAC, 7, 2);
        let mut take = |ms, slot, counter| senders.take((at(ms), slot), MAC, 7, counter);
        assert_eq!([(1, 2), (1, 2), (2, 2), (1, 1)].map(|(slot, counter)| take(20, slot, counter)), {
            use Freshness::{New, Old};
            [New, Old, New, New]
        });
        senders.sent(at(1500), MAC, 7, 3);
        senders.sent(at(3010), MAC, 7, 4);
        let mut take = |ms, slot, counter| senders.take((at(ms), slot), MAC, 7, counter);
        assert_eq!(take(3010, 3, 2), Freshness::Old, "recorded, and sent where it never came");
        assert_eq!(take(3010, 3, 4), Freshness::New);
        assert_eq!(take(5010, 2, 4), Freshness::Unknown, "nothing was sent for long");
    }

    #[test]
    fn who_was_not_heard_for_longest_gives_way() {
        let mut senders = Senders::default();
        let mac = |number: usize| MacAddr([2, 0, 0, 0, (number >> 8) as u8, number as u8]);
        for number in 0..limits::AUTH_SENDERS_MAX {
            assert!(!senders.prove(at(number as u64), mac(number), 7, 0));
        }
        assert!(senders.prove(at(60_000), MacAddr([4, 0, 0, 0, 0, 0]), 7, 0));
        assert_eq!(senders.0.len(), limits::AUTH_SENDERS_MAX);
        assert!(!senders.is_heard(at(0), mac(0)));
        let end = at(1) + limits::AUTH_REFUSED_LIVES;
        assert!(senders.is_heard(end.minus(Duration::from_millis(1)), mac(1)));
        assert!(!senders.is_heard(end, mac(1)));
    }
}
