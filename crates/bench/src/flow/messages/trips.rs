//! Which message left when, and when it was back.

use std::ops::Range;
use std::time::Duration;

/// One message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trip {
    /// When it was given to the socket, since the flow began.
    pub sent: Duration,
    /// How long it took until its answer was read; `None` if there was none.
    pub took: Option<Duration>,
}

/// All messages of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trips {
    trips: Vec<Trip>,
    answers: usize,
    /// Answers that came again: the network has shown one frame twice.
    pub twice: u64,
    /// Messages that the sender's kernel did not take; they count as lost.
    pub refused: u64,
    /// Time that the sender was late, and did not make up for: the machine is too slow for the pace.
    pub slipped: Duration,
}

/// What became of some messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub sent: u64,
    /// Of these, never answered.
    pub lost: u64,
    /// Of these, answered, but later than a limit.
    pub late: u64,
    /// The longest round trip of those that were answered.
    pub worst: Option<Duration>,
    /// When the last of those was sent that were lost or late.
    pub last_bad: Option<Duration>,
}

impl Trips {
    /// A message leaves; its number is how many left before it.
    pub fn leaves(&mut self, at: Duration) {
        self.trips.push(Trip { sent: at, took: None });
    }

    /// The answer of a message was read. Numbers that were never sent are none of ours.
    pub fn is_back(&mut self, number: u64, at: Duration) {
        let Some(trip) = usize::try_from(number).ok().and_then(|index| self.trips.get_mut(index)) else {
            return;
        };
        if trip.took.is_some() {
            self.twice += 1;
            return;
        }
        trip.took = Some(at.saturating_sub(trip.sent));
        self.answers += 1;
    }

    /// Messages sent so far.
    pub fn sent(&self) -> usize {
        self.trips.len()
    }

    /// Of these, those that are not back.
    pub fn outstanding(&self) -> usize {
        self.trips.len() - self.answers
    }

    /// Messages sent from one time up to another, that one left out.
    pub fn between(&self, from: Duration, to: Duration) -> &[Trip] {
        let Range { start, end } = self.numbers(from, to);
        &self.trips[start..end]
    }

    /// What became of them; late is what took longer than `limit`.
    pub fn count(&self, from: Duration, to: Duration, limit: Duration) -> Count {
        let mut count = Count::default();
        for trip in self.between(from, to) {
            count.sent += 1;
            let bad = match trip.took {
                None => {
                    count.lost += 1;
                    true
                }
                Some(took) => {
                    count.worst = count.worst.max(Some(took));
                    count.late += u64::from(took > limit);
                    took > limit
                }
            };
            if bad {
                count.last_bad = Some(trip.sent);
            }
        }
        count
    }

    fn numbers(&self, from: Duration, to: Duration) -> Range<usize> {
        let number = |time| self.trips.partition_point(|trip| trip.sent < time);
        number(from)..number(to).max(number(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn trips() -> Trips {
        let mut trips = Trips::default();
        (0..6).for_each(|i| trips.leaves(MS * i));
        for (number, at) in [(0, 1), (2, 3), (3, 9), (5, 6), (5, 7), (6, 7)] {
            trips.is_back(number, MS * at);
        }
        trips
    }

    #[test]
    fn a_message_is_back_once() {
        let trips = trips();
        assert_eq!((trips.sent(), trips.outstanding(), trips.twice), (6, 2, 1));
        let took: Vec<_> = trips.between(Duration::ZERO, MS * 9).iter().map(|trip| trip.took).collect();
        assert_eq!(took, [Some(MS), None, Some(MS), Some(MS * 6), None, Some(MS)]);
    }

    #[test]
    fn lost_and_late_are_counted_by_when_they_were_sent() {
        let trips = trips();
        let all = trips.count(Duration::ZERO, MS * 9, MS * 2);
        assert_eq!(all, Count { sent: 6, lost: 2, late: 1, worst: Some(MS * 6), last_bad: Some(MS * 4) });
        let none = trips.count(MS * 2, MS * 3, MS);
        assert_eq!(none, Count { sent: 1, worst: Some(MS), ..Count::default() });
        assert_eq!(trips.count(MS * 5, MS * 2, MS), Count::default(), "a window that ends before it begins");
    }
}
