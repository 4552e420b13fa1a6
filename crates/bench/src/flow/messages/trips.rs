//! Which message left when, and when it was back.

use std::ops::Range;
use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trip {
    /// When it was given to the socket, since the flow began.
    pub sent: Duration,
    /// How long it took until its answer was read; `None` if there was none.
    pub took: Option<Duration>,
}

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
mod tests;
