//! Random numbers from a seed, for jitter; not for secrets.

use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood 2014): 8 bytes of state, every seed is good.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Two machines must not share a seed, or their jitter coincides.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A duration from `low` to `high`, both included; `low` where the range is empty.
    pub fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let span = u64::try_from(high.saturating_sub(low).as_nanos()).unwrap_or(u64::MAX);
        // The high half of a 128-bit product: the bias is below 2^-30 for spans of seconds.
        let offset = (u128::from(self.next()) * (u128::from(span) + 1)) >> 64;
        low + Duration::from_nanos(offset as u64)
    }
}

/// The numbers that follow one of [`Random`]: whoever sees one knows all.
#[cfg(test)]
pub fn foretold(number: u64) -> Vec<u64> {
    let unshift = |mixed: u64, by: u32| (0..64 / by).fold(mixed, |found, _| mixed ^ (found >> by));
    // Newton's iteration: each step doubles the bits that are right.
    let inverse = |odd: u64| {
        (0..6).fold(odd, |found, _| found.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(found))))
    };
    let number = unshift(number, 31).wrapping_mul(inverse(0x94d0_49bb_1331_11eb));
    let number = unshift(number, 27).wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9));
    let mut random = Random::new(unshift(number, 30));
    (0..100).map(|_| random.next()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Random, foretold};
    use std::time::Duration;

    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.next(), random.next(), random.next()], expected);
    }

    #[test]
    fn who_sees_one_number_knows_all() {
        let mut random = Random::new(9);
        assert_eq!(foretold(random.next())[0], random.next());
    }

    #[test]
    fn durations_fill_their_range_and_stay_inside() {
        let mut random = Random::new(7);
        let (low, high) = (Duration::from_millis(10), Duration::from_millis(20));
        let drawn: Vec<Duration> = (0..1000).map(|_| random.between(low, high)).collect();
        assert!(drawn.iter().all(|duration| (low..=high).contains(duration)));
        assert!(drawn.iter().any(|duration| *duration < Duration::from_millis(11)));
        assert!(drawn.iter().any(|duration| *duration > Duration::from_millis(19)));
        assert_eq!(random.between(high, low), high);
        let ends = [Duration::ZERO, Duration::from_nanos(1)];
        let drawn: Vec<Duration> = (0..64).map(|_| random.between(ends[0], ends[1])).collect();
        assert!(ends.iter().all(|end| drawn.contains(end)), "both ends are included");
    }
}
