//! What is known of one lane of a plan, and what a round of it says.

use super::{LaneCount, RATE_KBIT_MAX, ROUND, in_proportion};
use crate::plan::Lane;
use linkbraid_wire::MacAddr;
use std::time::Duration;

/// A lane that is busy for more than so many times the time that passed counted something else: several flows may each count
/// some time once more.
pub(super) const BUSY_MAX: u32 = 16;
/// A lane that was given more, and then carried less than this part of what it had, in percent, cannot carry more. It is given
/// more again only after so many rounds, twice as many each time.
const FUTILE_PERCENT: u64 = 115;
const PAUSE_ROUNDS_MIN: u32 = 8;
const PAUSE_ROUNDS_MAX: u32 = 256;
/// What a lane that can carry more is given the next time, in percent of what it had: at first so little that it costs little where
/// it was chance; then, if still nothing waits on it; and the same if it was never measured.
const TRY_PERCENT: u64 = 106;
const GROWTH_PERCENT: u64 = 150;
const UNKNOWN_GROWTH_PERCENT: u64 = 300;
/// A lane that carried less than this part of its rate, in percent, did not show that it can carry more.
const CARRIED_PERCENT: u64 = 95;
/// The same of one that was never measured: it was given what the others suggest.
const UNKNOWN_CARRIED_PERCENT: u64 = 80;
/// A weight is halved so often at most.
const CUTS_MAX: u32 = 8;
/// A lane shows it in so many busy rounds one after the other before it is given more: in one alone it was chance.
const SHOWN_ROUNDS: u32 = 2;

/// One lane of a plan.
#[derive(Debug, Clone)]
pub(super) struct LaneRate {
    pub(super) slot: u8,
    pub(super) peer_mac: Option<MacAddr>,
    pub(super) weight_kbit: u64,
    /// The user said that the weight is the rate.
    pub(super) fixed: bool,
    pub(super) rate_kbit: Option<u64>,
    /// The last three that were measured, in kbit/s.
    pub(super) samples: [u64; 3],
    /// Something has waited on it; else its rate is a lower bound.
    pub(super) measured: bool,
    /// What it carried in the last round.
    pub(super) carried_kbit: u64,
    /// What it had when it was given more, if it was not measured since.
    pub(super) grown_from: Option<u64>,
    /// In how many busy rounds, one after the other, it showed that it can carry more.
    shown: u32,
    /// It is given more in so many rounds at the soonest; and how many these were the last time.
    hold: u32,
    pause: u32,
    /// How often its weight was halved because other traffic fills it.
    cuts: u32,
    /// Counted when the round began, and last.
    pub(super) begun: LaneCount,
    pub(super) last: LaneCount,
}

impl LaneRate {
    pub(super) fn new(lane: &Lane) -> LaneRate {
        LaneRate {
            slot: lane.slot,
            peer_mac: lane.peer_mac,
            weight_kbit: lane.weight.max(1).into(),
            fixed: false,
            rate_kbit: None,
            samples: [0; 3],
            measured: false,
            carried_kbit: 0,
            grown_from: None,
            shown: 0,
            hold: 0,
            pause: 0,
            cuts: 0,
            begun: LaneCount::default(),
            last: LaneCount::default(),
        }
    }

    pub(super) fn is(&self, lane: &Lane) -> bool {
        (self.slot, self.peer_mac) == (lane.slot, lane.peer_mac)
    }

    /// It is told to be of that weight, which is its rate if it is fixed. Another word than before is believed.
    pub(super) fn follow(&mut self, weight: u32, fixed: bool) {
        let told = (weight.max(1).into(), fixed);
        if told != (self.weight_kbit, self.fixed) {
            (self.weight_kbit, self.fixed) = told;
            self.uncut();
        }
    }

    /// Its weight, or what is believed of it.
    pub(super) fn weight(&self) -> u64 {
        (self.weight_kbit >> self.cuts).max(1)
    }

    /// What it would carry by its weight, if lanes whose weights sum up to the second number carry the first.
    pub(super) fn told(&self, (rates, weights): (u64, u64)) -> u64 {
        in_proportion(self.weight(), rates, weights)
    }

    /// What counts as its rate, if anything does.
    pub(super) fn rate(&self) -> Option<u64> {
        if self.fixed { Some(self.weight_kbit) } else { self.rate_kbit }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.last.bytes - self.begun.bytes
    }

    /// What it carried, in kbit/s of TCP data, in the usual packets of 1500 bytes.
    pub(super) fn carried(&self, elapsed_us: u64) -> u64 {
        self.bytes().saturating_mul(8000) / elapsed_us * 956 / 1000
    }

    /// What it was sent of TCP whose delivery is measured, in kbit/s.
    pub(super) fn carried_tcp(&self, elapsed_us: u64) -> u64 {
        self.sent_tcp() * 8000 / elapsed_us
    }

    /// The same in bytes.
    pub(super) fn sent_tcp(&self) -> u64 {
        self.last.tcp_bytes.wrapping_sub(self.begun.tcp_bytes).into()
    }

    /// Of what it was sent of TCP, bytes that were sent again.
    pub(super) fn lost(&self) -> u64 {
        self.last.lost_bytes.wrapping_sub(self.begun.lost_bytes).into()
    }

    /// Whether the counters are not those that were taken so long ago: the data path has begun at zero again.
    pub(super) fn began_again(&self, count: &LaneCount, elapsed: Duration) -> bool {
        let busy = Duration::from_micros(count.busy_us.wrapping_sub(self.begun.busy_us).into());
        count.bytes < self.last.bytes || busy > elapsed.max(ROUND) * BUSY_MAX
    }

    pub(super) fn busy_us(&self) -> u32 {
        self.last.busy_us.wrapping_sub(self.begun.busy_us)
    }

    /// What it delivered while something waited on it, in kbit/s; `busy_us` is not 0.
    pub(super) fn delivered(&self, busy_us: u32) -> u64 {
        let bytes = u64::from(self.last.busy_bytes.wrapping_sub(self.begun.busy_bytes));
        bytes * 8000 / u64::from(busy_us)
    }

    /// Something waited on it for that long.
    pub(super) fn measure(&mut self, busy_us: u32) {
        self.shown = 0;
        let sample = self.delivered(busy_us).clamp(1, RATE_KBIT_MAX);
        if !self.measured || self.grown_from.is_some() {
            self.assume(sample);
        }
        // It had carried nearly as much before it was given more.
        let is_futile = |from: u64| sample.saturating_mul(100) < from.saturating_mul(FUTILE_PERCENT);
        if let Some(from) = self.grown_from.take() {
            self.pause(is_futile(from));
        }
        // One sample may be wrong; of two in three that agree one counts.
        self.samples.rotate_left(1);
        self.samples[2] = sample;
        let mut sorted = self.samples;
        sorted.sort_unstable();
        self.rate_kbit = Some(sorted[1]);
        self.measured = true;
    }

    /// It was given more, in vain or not.
    fn pause(&mut self, is_futile: bool) {
        let longer = (self.pause * 2).clamp(PAUSE_ROUNDS_MIN, PAUSE_ROUNDS_MAX);
        self.pause = if is_futile { longer } else { 0 };
        self.hold = self.pause;
    }

    /// What it was given is taken back.
    pub(super) fn take_back(&mut self) {
        if let Some(from) = self.grown_from.take() {
            self.assume(from);
            self.shown = 0;
            self.pause(true);
        }
    }

    /// Nothing is known of its rate. Of a weight that was halved again and again only the last time is forgotten.
    pub(super) fn forget(&mut self) {
        (self.rate_kbit, self.measured) = (None, false);
        (self.grown_from, self.shown) = (None, 0);
        self.cuts = self.cuts.saturating_sub(1);
    }

    /// It counts for half as much as before.
    pub(super) fn cut(&mut self) {
        self.shown = 0;
        match self.grown_from.take() {
            Some(_) => self.pause(true),
            None => self.hold = self.hold.max(PAUSE_ROUNDS_MIN),
        }
        // What is not known of the others is taken from both.
        self.cuts = (self.cuts + 1).min(CUTS_MAX);
        if let Some(rate) = self.rate_kbit {
            self.assume(rate / 2);
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cuts > 0
    }

    /// Its weight is what it was told to be.
    pub(super) fn uncut(&mut self) {
        self.cuts = 0;
    }

    /// Its rate is this until something else is measured twice.
    pub(super) fn assume(&mut self, rate: u64) {
        let rate = rate.clamp(1, RATE_KBIT_MAX);
        (self.rate_kbit, self.samples) = (Some(rate), [rate; 3]);
    }

    /// Nothing waited on it, but on others. Whether it is given more. `believed`: what it was taken to carry if its rate is not known.
    pub(super) fn grow(&mut self, elapsed_us: u64, believed: u64) -> bool {
        if self.hold > 0 {
            self.hold -= 1;
            return false;
        }
        let carried = self.carried_tcp(elapsed_us);
        let percent = match (self.grown_from, self.measured) {
            (None, _) => TRY_PERCENT,
            (Some(_), true) => GROWTH_PERCENT,
            (Some(_), false) => UNKNOWN_GROWTH_PERCENT,
        };
        let (rate, part) = match self.rate_kbit {
            Some(rate) => (rate, CARRIED_PERCENT),
            None => (believed, UNKNOWN_CARRIED_PERCENT),
        };
        let least = rate.max(carried);
        let shows = least > 0 && carried.saturating_mul(100) >= rate.saturating_mul(part);
        self.shown = if shows { self.shown + 1 } else { 0 };
        if self.shown >= SHOWN_ROUNDS {
            self.assume(least.saturating_mul(percent).div_ceil(100));
            self.grown_from = self.grown_from.or(Some(least));
            return true;
        }
        false
    }
}
