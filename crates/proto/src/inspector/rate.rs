//! What probing may cost: the demand of all lanes, how far intervals stretch to meet the limit, and a bucket for bursts.
//!
//! A lane of interval I wants 8/7 PROBEs per I (each gap is 3/4 to 4/4 of I at random). With B lanes that carry data, A
//! in plans but idle, K lost, and L - B - A - K others, a host wants
//!
//! ```text
//! F = 8/7 * (B / interval + A / idle + K / retry + (L - A - B - K) / discovery)   PROBEs a second
//! ```
//!
//! A lane with light traffic counts among the A: that much it gets like any of them. What it wants beyond, up to that of a
//! lane that carries data, comes out of what lanes in use leave ([`limits::PROBE_RATE_LIGHT`] at most), so that many
//! peers with a little traffic each slow down nothing else.
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
    /// In a plan with little traffic: as often as the first says if the limit allows, at least as often as the second.
    Light(Duration, Duration),
    /// In no plan, or lost.
    Other(Duration),
}

/// What a lane wants, in thousandths of a PROBE a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Demand {
    in_use: u64,
    /// What light traffic wants beyond its share of `in_use`.
    light: u64,
    other: u64,
    test: u64,
}

const THOUSAND: u64 = 1000;
/// PROBEs a second of all lanes...
const RATE: u64 = limits::PROBE_RATE * THOUSAND;
/// ...and of these, what lanes in use get before others get any.
const SURE: u64 = RATE * limits::PROBE_RATE_IN_USE_PERCENT / 100;
/// A gap is between 3/4 and 4/4 of the interval.
const MICROS_PER_GAPS: u64 = 1_000_000 * THOUSAND * 8 / 7;

/// PROBEs a second, in thousandths, of one lane.
fn per_second(interval: Duration) -> u64 {
    let micros = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX).max(1);
    MICROS_PER_GAPS / micros
}

/// The interval of a lane that sends that many.
const fn interval_of(per_second: u64) -> Duration {
    let per_second = if per_second == 0 { 1 } else { per_second };
    Duration::from_micros(MICROS_PER_GAPS / per_second)
}

impl Pace {
    /// The interval without stretch.
    #[cfg(test)]
    const fn base(self) -> Option<Duration> {
        match self {
            Pace::Silent => None,
            Pace::Test(base) | Pace::InUse(base) | Pace::Light(base, _) | Pace::Other(base) => Some(base),
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
            Pace::Light(base, least) => {
                let base = stretched(base, times);
                Pace::Light(base, least.max(base))
            }
            Pace::Other(base) => Pace::Other(stretched(base, times)),
        }
    }

    pub fn demand(self) -> Demand {
        match self {
            Pace::Silent => Demand::default(),
            Pace::Test(base) => Demand { test: per_second(base), ..Demand::default() },
            Pace::InUse(base) => Demand { in_use: per_second(base), ..Demand::default() },
            Pace::Light(base, least) => {
                let in_use = per_second(least);
                Demand { in_use, light: per_second(base).saturating_sub(in_use), ..Demand::default() }
            }
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
        self.0.light = self.0.light.saturating_sub(old.light) + new.light;
        self.0.other = self.0.other.saturating_sub(old.other) + new.other;
        self.0.test = self.0.test.saturating_sub(old.test) + new.test;
    }

    /// PROBEs a second that all lanes want, unstretched.
    pub const fn wanted(&self) -> u64 {
        (self.0.in_use + self.0.light + self.0.other + self.0.test) / THOUSAND
    }

    /// By how many thousandths intervals of lanes under test are multiplied; and what is advertised to peers, since they do
    /// not know who else probes this host.
    pub fn stretch_test(&self) -> u64 {
        let all = self.0.in_use + self.0.other + self.0.test;
        stretch(all, RATE).max(self.stretch_in_use())
    }

    /// By how many thousandths intervals of lanes in use are multiplied.
    pub fn stretch_in_use(&self) -> u64 {
        stretch(self.0.in_use, RATE - self.0.other.min(RATE - SURE))
    }

    /// The same for others.
    pub fn stretch_other(&self) -> u64 {
        stretch(self.0.other, RATE - (self.0.in_use + self.light_granted()).min(SURE))
    }

    /// What lanes with light traffic get beyond their share of what lanes in use get.
    fn light_granted(&self) -> u64 {
        self.0.light.min(limits::PROBE_RATE_LIGHT * THOUSAND).min(SURE.saturating_sub(self.0.in_use))
    }

    /// The interval of a lane with light traffic.
    fn light_interval(&self, base: Duration, least: Duration) -> Duration {
        let share = per_second(least) * THOUSAND / self.stretch_in_use();
        let beyond = per_second(base).saturating_sub(per_second(least));
        let beyond = (beyond * self.light_granted()).checked_div(self.0.light).unwrap_or(beyond);
        interval_of(share + beyond).clamp(base, stretched(least, self.stretch_in_use()))
    }

    /// The interval as stretched.
    pub fn interval(&self, pace: Pace) -> Option<Duration> {
        match pace {
            Pace::Silent => None,
            Pace::Test(base) => Some(stretched(base, self.stretch_test())),
            Pace::InUse(base) => Some(stretched(base, self.stretch_in_use())),
            Pace::Light(base, least) => Some(self.light_interval(base, least)),
            Pace::Other(base) => Some(stretched(base, self.stretch_other())),
        }
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
        self.take_if(now, 0)
    }

    /// Takes a token if more than `spare` are left.
    pub fn take_if(&mut self, now: Time, spare: u64) -> bool {
        let token = Duration::from_nanos(1_000_000_000 / limits::PROBE_RATE_MAX);
        let full_at = self.full_at.max(now) + token;
        let taken = now.until(full_at) <= token * (limits::PROBE_BURST - spare) as u32;
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

    const LIGHT: Pace = Pace::Light(Duration::from_millis(50), Duration::from_millis(250));

    /// The same beside so many lanes with light traffic.
    fn beside(mut load: Load, light: u64) -> Load {
        (0..light).for_each(|_| load.replace(Demand::default(), LIGHT.demand()));
        load
    }

    //= docs/arp-plus.md#11.9 type=test
    #[test]
    fn light_traffic_has_the_full_rate_and_many_lanes_of_it_slow_down_only_each_other() {
        let interval = |load: &Load| load.interval(LIGHT).expect("it is probed").as_millis();
        assert_eq!(interval(&beside(load(8, 56), 8)), 50);
        assert_eq!(
            interval(&Load::default()),
            50,
            "what is advertised does not wait until somebody wants it"
        );
        assert_eq!(interval(&beside(load(0, 0), 100)), 50);
        // 200 peers with a lane each that carried something lately; four lanes each; and more than there is room for.
        assert_eq!([200, 800, 4000].map(|light| interval(&beside(load(8, 0), light))), [78, 250, 923]);
        for (in_use, other, light) in
            [(0, 0, 200), (8, 56, 800), (80, 5600, 800), (200, 0, 100), (8, 0, 3000)]
        {
            // Idle lanes cost as much as that, so bulk is no worse off beside light traffic than beside none.
            let idle = Pace::InUse(Duration::from_millis(250)).demand();
            let mut resting = load(in_use, other);
            (0..light).for_each(|_| resting.replace(Demand::default(), idle));
            let load = beside(load(in_use, other), light);
            assert_eq!(load.stretch_in_use(), resting.stretch_in_use(), "{in_use} {other} {light}");
            assert_eq!(load.stretch_test(), resting.stretch_test(), "nor what peers are told");
            assert!(
                interval(&load) <= stretched(Duration::from_millis(250), load.stretch_in_use()).as_millis()
            );
            let sent = load.0.in_use / load.stretch_in_use()
                + load.light_granted() / THOUSAND
                + load.0.other / load.stretch_other();
            assert!(sent <= limits::PROBE_RATE, "{in_use}, {other} and {light} lanes: {sent}");
        }
    }

    #[test]
    fn peers_that_can_bear_less_are_asked_less_in_proportion() {
        let millis = Duration::from_millis;
        let pace = |pace: Pace, bearable| pace.for_peer(millis(50), millis(bearable)).base();
        assert_eq!(pace(Pace::InUse(millis(50)), 0), Some(millis(50)));
        assert_eq!(pace(Pace::InUse(millis(50)), 200), Some(millis(200)));
        assert_eq!(pace(Pace::Other(millis(1000)), 200), Some(millis(4000)));
        assert_eq!(pace(Pace::Silent, 200), None);
        assert_eq!(LIGHT.for_peer(millis(50), millis(100)), Pace::Light(millis(100), millis(250)));
        assert_eq!(LIGHT.for_peer(millis(50), millis(500)), Pace::Light(millis(500), millis(500)));
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
