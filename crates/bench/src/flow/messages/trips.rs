//! Which message left when, and when it was back.

use serde::Serialize;
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Count {
    pub sent: u64,
    /// Of these, never answered.
    pub lost: u64,
    /// Of these, answered, but later than a limit.
    pub late: u64,
    /// The longest round trip, microseconds.
    pub max_us: f64,
    /// Until the last message that was lost or late was sent, milliseconds; absent if none was.
    pub last_bad_ms: Option<f64>,
}

/// Microseconds, in whole tenths: more digits are noise, and room in the file.
pub fn us(time: Duration) -> f64 {
    (time.as_nanos() as f64 / 100.0).round() / 10.0
}

/// Milliseconds, in whole thousandths.
pub fn ms(time: Duration) -> f64 {
    (time.as_nanos() as f64 / 1000.0).round() / 1000.0
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
            count.lost += u64::from(trip.took.is_none());
            count.late += u64::from(trip.took.is_some_and(|took| took > limit));
            count.max_us = count.max_us.max(trip.took.map_or(0.0, us));
            if trip.took.is_none_or(|took| took > limit) {
                count.last_bad_ms = Some(ms(trip.sent.saturating_sub(from)));
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
