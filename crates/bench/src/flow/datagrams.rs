//! Numbered datagrams: which came, which came twice, which came late.

use std::ops::Range;

/// The highest number that is counted, which bounds the memory: ten minutes of 50,000 a second.
const NUMBERS_MAX: u64 = 30_000_000;

/// Set in a mark if the datagram came after one with a higher number; the other bits count how often it came.
const LATE: u8 = 0x80;

/// What has arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Datagrams {
    marks: Vec<u8>,
}

/// What became of some of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Sent.
    pub sent: u64,
    /// Of these, never arrived.
    pub lost: u64,
    /// Arrived more than once.
    pub duplicated: u64,
    /// Arrived after one that was sent later.
    pub reordered: u64,
}

impl Datagrams {
    /// One has arrived. Numbers beyond the limit are none of ours.
    pub fn arrived(&mut self, number: u64) {
        if number >= NUMBERS_MAX {
            return;
        }
        let Ok(index) = usize::try_from(number) else { return };
        let late = index < self.marks.len();
        if !late {
            self.marks.resize(index + 1, 0);
        }
        let mark = &mut self.marks[index];
        let times = *mark & !LATE;
        let is_late = *mark & LATE != 0 || (late && times == 0);
        *mark = (times + 1).min(!LATE) | if is_late { LATE } else { 0 };
    }

    /// What became of those with these numbers, all of which were sent.
    pub fn count(&self, numbers: Range<u64>) -> Count {
        let place =
            |number: u64| usize::try_from(number).map_or(self.marks.len(), |n| n.min(self.marks.len()));
        let sent = numbers.end.saturating_sub(numbers.start);
        let mut count = Count { sent, lost: sent, ..Count::default() };
        for mark in &self.marks[place(numbers.start)..place(numbers.end).max(place(numbers.start))] {
            let times = mark & !LATE;
            count.lost -= u64::from(times > 0);
            count.duplicated += u64::from(times > 1);
            count.reordered += u64::from(mark & LATE != 0);
        }
        count
    }

    /// The highest of these numbers that never arrived.
    pub fn last_lost(&self, numbers: Range<u64>) -> Option<u64> {
        let came = |number: u64| {
            let mark = usize::try_from(number).ok().and_then(|index| self.marks.get(index));
            mark.is_some_and(|mark| mark & !LATE > 0)
        };
        numbers.rev().find(|number| !came(*number))
    }
}

#[cfg(test)]
mod tests;
