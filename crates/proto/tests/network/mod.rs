//! What all simulators share: a fake clock, what is due, random numbers from a seed, and a network that loses, delays and
//! repeats what it carries. One seed, one course of events.

use linkbraid_proto::Time;
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// What a network does to a message on its way to one receiver.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// Percent that get lost.
    pub loss: u64,
    /// Percent that come twice.
    pub duplicates: u64,
    /// Delays lie between these; messages overtake each other within them.
    pub delays: [Duration; 2],
}

impl Weather {
    pub const fn new(loss: u64, duplicates: u64, [least, most]: [u64; 2]) -> Weather {
        Weather { loss, duplicates, delays: [Duration::from_micros(least), Duration::from_micros(most)] }
    }
}

/// What is due, by time and then in the order in which it was put in.
pub struct Network<D> {
    pub now: Time,
    pub weather: Weather,
    /// A hash of all that was ever due, and when.
    pub trace: u64,
    due: BinaryHeap<Reverse<(Time, u64, D)>>,
    order: u64,
    seed: u64,
}

impl<D: Ord + Clone + Hash> Network<D> {
    pub fn new(seed: u64, weather: Weather) -> Network<D> {
        Network { now: Time::ZERO, weather, trace: 0, due: BinaryHeap::new(), order: 0, seed }
    }

    /// A number below `limit`.
    pub fn random(&mut self, limit: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % limit.max(1)
    }

    pub fn at(&mut self, at: Time, due: D) {
        self.order += 1;
        let mut hasher = DefaultHasher::new();
        (self.trace, at, &due).hash(&mut hasher);
        self.trace = hasher.finish();
        self.due.push(Reverse((at, self.order, due)));
    }

    pub fn after(&mut self, delay: Duration, due: D) {
        self.at(self.now + delay, due);
    }

    /// A message is sent so much later: it arrives, or is lost, or comes twice.
    pub fn carry(&mut self, later: Duration, due: &D) {
        let copies = match self.random(100) {
            roll if roll < self.weather.loss => 0,
            roll if roll < self.weather.loss + self.weather.duplicates => 2,
            _ => 1,
        };
        (0..copies).for_each(|_| self.deliver(later, due.clone()));
    }

    /// A message is sent so much later and is not lost.
    pub fn deliver(&mut self, later: Duration, due: D) {
        let [least, most] = self.weather.delays;
        let spread = self.random((most - least).as_nanos() as u64);
        self.after(later + least + Duration::from_nanos(spread), due);
    }

    /// The next that is due until `end`, at whose time it is then; none: it is `end`.
    pub fn next(&mut self, end: Time) -> Option<D> {
        if self.due.peek().is_none_or(|Reverse((at, ..))| *at > end) {
            self.now = end;
            return None;
        }
        let Reverse((at, _, due)) = self.due.pop()?;
        self.now = at;
        Some(due)
    }
}

pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
