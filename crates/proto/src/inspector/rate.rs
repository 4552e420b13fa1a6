//! What probing may cost: the demand of all lanes, how far intervals stretch to meet the limit, and a bucket for bursts.
//!
//! A lane of interval I wants 8/7 PROBEs per I (each gap is 3/4 to 4/4 of I at random). With B lanes that carry data, A
//! in plans but idle, K lost, and L - B - A - K others, a host wants
//!
//! ```text
//! F = 8/7 * (B / interval + A / idle + K / retry + (L - A - B - K) / discovery)   PROBEs a second
//! ```
//!
//! and sends at most one REPLY for each PROBE of a peer. One end of a lane leads (the lower host id); the other's
//! PROBEs are put off by what it hears, so a host sends F frames where both ends agree, 2 F at worst.

use crate::{Time, limits};
use std::time::Duration;

/// Which part of the limit a lane draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Not probed.
    Silent,
    /// Tested: a few probes each, so that they take nothing from others for long.
    Test(Duration),
    /// In a plan.
    InUse(Duration),
    /// In no plan, or lost.
    Other(Duration),
}

/// What a lane wants, in thousandths of a PROBE a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Demand {
    in_use: u64,
    other: u64,
    test: u64,
}

const THOUSAND: u64 = 1000;

/// PROBEs a second, in thousandths, of one lane.
fn per_second(interval: Duration) -> u64 {
    let micros = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX).max(1);
    1_000_000 * THOUSAND * 8 / 7 / micros
}

impl Pace {
    /// The interval without stretch.
    pub const fn base(self) -> Option<Duration> {
        match self {
            Pace::Silent => None,
            Pace::Test(base) | Pace::InUse(base) | Pace::Other(base) => Some(base),
        }
    }

    /// The same for a peer that can bear a PROBE each `bearable` where this host would send one each `interval`.
    pub fn for_peer(self, interval: Duration, bearable: Duration) -> Pace {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let times = nanos(bearable).saturating_mul(THOUSAND).div_ceil(nanos(interval).max(1)).max(THOUSAND);
        match self {
            Pace::Silent => Pace::Silent,
            Pace::Test(base) => Pace::Test(stretched(base, times)),
            Pace::InUse(base) => Pace::InUse(stretched(base, times)),
            Pace::Other(base) => Pace::Other(stretched(base, times)),
        }
    }

    pub fn demand(self) -> Demand {
        match self {
            Pace::Silent => Demand::default(),
            Pace::Test(base) => Demand { test: per_second(base), ..Demand::default() },
            Pace::InUse(base) => Demand { in_use: per_second(base), ..Demand::default() },
            Pace::Other(base) => Demand { other: per_second(base), ..Demand::default() },
        }
    }
}

/// The demand of all lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Load(Demand);

impl Load {
    pub const fn replace(&mut self, old: Demand, new: Demand) {
        self.0.in_use = self.0.in_use.saturating_sub(old.in_use) + new.in_use;
        self.0.other = self.0.other.saturating_sub(old.other) + new.other;
        self.0.test = self.0.test.saturating_sub(old.test) + new.test;
    }

    /// PROBEs a second that all lanes want, unstretched.
    pub const fn wanted(&self) -> u64 {
        (self.0.in_use + self.0.other + self.0.test) / THOUSAND
    }

    /// The same for lanes under test; and what is advertised to peers, since they do not know who else probes this host.
    pub fn stretch_test(&self) -> u64 {
        let all = self.0.in_use + self.0.other + self.0.test;
        stretch(all, limits::PROBE_RATE * THOUSAND).max(self.stretch_in_use())
    }

    /// By how many thousandths intervals of lanes in use are multiplied.
    pub fn stretch_in_use(&self) -> u64 {
        let rate = limits::PROBE_RATE * THOUSAND;
        let sure = rate * limits::PROBE_RATE_IN_USE_PERCENT / 100;
        stretch(self.0.in_use, rate - self.0.other.min(rate - sure))
    }

    /// The same for others.
    pub fn stretch_other(&self) -> u64 {
        let rate = limits::PROBE_RATE * THOUSAND;
        let sure = rate * limits::PROBE_RATE_IN_USE_PERCENT / 100;
        stretch(self.0.other, rate - self.0.in_use.min(sure))
    }

    /// The interval as stretched.
    pub fn interval(&self, pace: Pace) -> Option<Duration> {
        let stretch = match pace {
            Pace::Silent => THOUSAND,
            Pace::Test(_) => self.stretch_test(),
            Pace::InUse(_) => self.stretch_in_use(),
            Pace::Other(_) => self.stretch_other(),
        };
        pace.base().map(|base| stretched(base, stretch))
    }
}

fn stretch(demand: u64, budget: u64) -> u64 {
    (demand.saturating_mul(THOUSAND)).div_ceil(budget.max(1)).max(THOUSAND)
}

/// That many thousandths of a duration.
pub(super) fn stretched(base: Duration, thousandths: u64) -> Duration {
    let nanos = base.as_nanos().saturating_mul(u128::from(thousandths)) / u128::from(THOUSAND);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A token bucket: [`limits::PROBE_BURST`] at once, [`limits::PROBE_RATE_MAX`] a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    /// The bucket is full again at that time.
    full_at: Time,
}

impl Default for Bucket {
    fn default() -> Self {
        Bucket { full_at: Time::ZERO }
    }
}

impl Bucket {
    /// Takes a token; none if the bucket is empty.
    pub fn take(&mut self, now: Time) -> bool {
        let token = Duration::from_nanos(1_000_000_000 / limits::PROBE_RATE_MAX);
        let full_at = self.full_at.max(now) + token;
        let taken = now.until(full_at) <= token * limits::PROBE_BURST as u32;
        if taken {
            self.full_at = full_at;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(in_use: u64, other: u64) -> Load {
        let mut load = Load::default();
        let millis = Duration::from_millis;
        (0..in_use).for_each(|_| load.replace(Demand::default(), Pace::InUse(millis(50)).demand()));
        (0..other).for_each(|_| load.replace(Demand::default(), Pace::Other(millis(1000)).demand()));
        load
    }

    //= docs/arp-plus.md#11.9 type=test
    #[test]
    fn intervals_stretch_until_the_limit_is_met() {
        let few = load(8, 56);
        assert_eq!((few.wanted(), few.stretch_in_use(), few.stretch_other()), (246, 1000, 1000));
        for (in_use, other) in [(800, 5600), (800, 0), (0, 6400), (8192, 0), (200, 5600), (10, 8000)] {
            let load = load(in_use, other);
            let sent = load.0.in_use / load.stretch_in_use() + load.0.other / load.stretch_other();
            assert!(sent <= limits::PROBE_RATE, "{in_use} and {other} lanes: {sent}");
            assert!(sent * 100 >= limits::PROBE_RATE.min(load.wanted()) * 98, "and none is wasted: {sent}");
        }
    }

    #[test]
    fn demand_taken_away_leaves_nothing() {
        let mut load = load(3, 0);
        let one = Pace::InUse(Duration::from_millis(50)).demand();
        (0..3).for_each(|_| load.replace(one, Demand::default()));
        assert_eq!(load, Load::default());
        assert_eq!(load.interval(Pace::Silent), None);
    }

    #[test]
    fn peers_that_can_bear_less_are_asked_less_in_proportion() {
        let millis = Duration::from_millis;
        let pace = |pace: Pace, bearable| pace.for_peer(millis(50), millis(bearable)).base();
        assert_eq!(pace(Pace::InUse(millis(50)), 0), Some(millis(50)));
        assert_eq!(pace(Pace::InUse(millis(50)), 200), Some(millis(200)));
        assert_eq!(pace(Pace::Other(millis(1000)), 200), Some(millis(4000)));
        assert_eq!(pace(Pace::Silent, 200), None);
    }

    #[test]
    fn tests_slow_down_tests_and_what_peers_are_told_but_not_lanes_in_use() {
        let mut load = load(8, 56);
        let test = Pace::Test(Duration::from_millis(50)).demand();
        (0..6400).for_each(|_| load.replace(Demand::default(), test));
        assert!(load.stretch_test() > 29_000);
        assert_eq!((load.stretch_in_use(), load.stretch_other()), (1000, 1000));
    }

    #[test]
    fn bucket_gives_a_burst_and_then_the_rate() {
        let mut bucket = Bucket::default();
        let at = |bucket: &mut Bucket, millis| {
            (0..5000).filter(|_| bucket.take(Time::from_millis(millis))).count() as u64
        };
        assert_eq!(at(&mut bucket, 1000), limits::PROBE_BURST);
        assert_eq!(at(&mut bucket, 1010), limits::PROBE_RATE_MAX / 100);
        assert_eq!(at(&mut bucket, 9000), limits::PROBE_BURST);
    }
}
