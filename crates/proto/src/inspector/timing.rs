//! When things happen, and what may be set.

use crate::limits;
use std::{fmt, ops::RangeInclusive, time::Duration};

/// All settings of the inspector. The defaults are those of `docs/arp-plus.md`, section 11.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Time between two proofs of a lane that carries data.
    pub interval: Duration,
    /// A lane is lost after this many intervals without proof.
    pub multiplier: u8,
    /// Answered probes before a lane carries traffic.
    pub admit: u8,
    /// The interval of a lane in a plan that carries nothing just now.
    pub idle: Duration,
    /// The interval of a proven lane that is in no plan.
    pub discovery: Duration,
    /// The interval of a lost lane...
    pub retry: Duration,
    /// ...for this long, and then...
    pub retry_for: Duration,
    /// ...this one.
    pub retry_late: Duration,
    /// A member whose carrier is back waits this long.
    pub up_delay: Duration,
    /// What failed a second time is held down for this long; each further failure doubles it...
    pub hold_base: Duration,
    /// ...up to this.
    pub hold_max: Duration,
    /// One failure is forgotten after each such time without one.
    pub hold_decay: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            interval: Duration::from_millis(50),
            multiplier: 3,
            admit: 3,
            idle: Duration::from_millis(250),
            discovery: Duration::from_secs(1),
            retry: Duration::from_millis(200),
            retry_for: Duration::from_secs(60),
            retry_late: Duration::from_millis(500),
            up_delay: Duration::from_millis(100),
            hold_base: Duration::from_secs(1),
            hold_max: Duration::from_secs(60),
            hold_decay: Duration::from_secs(60),
        }
    }
}

/// A setting that is outside of its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfRange {
    /// The setting, as the field of [`Timing`] is called.
    pub setting: &'static str,
    /// What was asked for.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: '{}' is outside the allowed range {}", self.setting, self.value, self.allowed)
    }
}

impl std::error::Error for OutOfRange {}

const INTERVALS: RangeInclusive<Duration> = limits::PROBE_INTERVAL_MIN..=limits::PROBE_INTERVAL_MAX;
const MULTIPLIERS: RangeInclusive<u8> = limits::PROBE_MULTIPLIER_MIN..=limits::PROBE_MULTIPLIER_MAX;
const ADMITS: RangeInclusive<u8> = 1..=limits::PROBE_ADMIT_MAX;
const DELAYS: RangeInclusive<Duration> = Duration::ZERO..=limits::DELAY_MAX;
const HOLDS: RangeInclusive<Duration> = Duration::ZERO..=limits::HOLD_MAX;

fn within<T: PartialOrd + fmt::Debug>(
    setting: &'static str,
    value: &T,
    allowed: &RangeInclusive<T>,
) -> Result<(), OutOfRange> {
    if allowed.contains(value) {
        return Ok(());
    }
    let allowed = format!("{:?} to {:?}", allowed.start(), allowed.end());
    Err(OutOfRange { setting, value: format!("{value:?}"), allowed })
}

fn clamp<T: Ord + Copy>(value: T, allowed: &RangeInclusive<T>) -> T {
    value.clamp(*allowed.start(), *allowed.end())
}

impl Timing {
    /// For whoever takes settings from people.
    ///
    /// # Errors
    /// The first setting outside of its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        within("interval", &self.interval, &INTERVALS)?;
        within("multiplier", &self.multiplier, &MULTIPLIERS)?;
        within("admit", &self.admit, &ADMITS)?;
        for (setting, value) in [
            ("idle", &self.idle),
            ("discovery", &self.discovery),
            ("retry", &self.retry),
            ("retry_late", &self.retry_late),
        ] {
            within(setting, value, &INTERVALS)?;
        }
        within("up_delay", &self.up_delay, &DELAYS)?;
        within("hold_base", &self.hold_base, &HOLDS)?;
        within("hold_max", &self.hold_max, &HOLDS)
    }

    /// The nearest settings that are allowed; no other interval is shorter than `interval`.
    #[must_use]
    pub fn bounded(&self) -> Timing {
        let interval = clamp(self.interval, &INTERVALS);
        let slower = |value: Duration| clamp(value, &INTERVALS).max(interval);
        Timing {
            interval,
            multiplier: clamp(self.multiplier, &MULTIPLIERS),
            admit: clamp(self.admit, &ADMITS),
            idle: slower(self.idle),
            discovery: slower(self.discovery),
            retry: slower(self.retry),
            retry_for: self.retry_for,
            retry_late: slower(self.retry_late),
            up_delay: clamp(self.up_delay, &DELAYS),
            hold_base: clamp(self.hold_base, &HOLDS),
            hold_max: clamp(self.hold_max, &HOLDS),
            hold_decay: self.hold_decay.max(limits::PROBE_INTERVAL_MIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_allowed_and_stay() {
        let timing = Timing::default();
        assert_eq!(timing.check(), Ok(()));
        assert_eq!(timing.bounded(), timing);
    }

    #[test]
    fn every_limit_is_kept_and_named() {
        let long = Duration::from_secs(5000);
        let zero = Duration::ZERO;
        type Edit = fn(&mut Timing, Duration);
        let settings: [(&str, Edit, Duration); 9] = [
            ("interval", |timing, value| timing.interval = value, zero),
            ("interval", |timing, value| timing.interval = value, long),
            ("idle", |timing, value| timing.idle = value, zero),
            ("discovery", |timing, value| timing.discovery = value, long),
            ("retry", |timing, value| timing.retry = value, zero),
            ("retry_late", |timing, value| timing.retry_late = value, zero),
            ("up_delay", |timing, value| timing.up_delay = value, long),
            ("hold_base", |timing, value| timing.hold_base = value, long),
            ("hold_max", |timing, value| timing.hold_max = value, long),
        ];
        for (setting, edit, value) in settings {
            let mut timing = Timing::default();
            edit(&mut timing, value);
            assert_eq!(timing.check().expect_err("out of range").setting, setting);
            assert_eq!(timing.bounded().check(), Ok(()), "{setting}");
        }
        for (multiplier, admit, setting) in
            [(1, 3, "multiplier"), (51, 3, "multiplier"), (3, 0, "admit"), (3, 21, "admit")]
        {
            let timing = Timing { multiplier, admit, ..Timing::default() };
            assert_eq!(timing.check().expect_err("out of range").setting, setting);
            assert_eq!(timing.bounded().check(), Ok(()));
        }
        let timing = Timing { interval: Duration::from_millis(5), ..Timing::default() };
        let text = timing.check().expect_err("too short").to_string();
        assert_eq!(text, "interval: '5ms' is outside the allowed range 10ms to 10s");
    }

    #[test]
    fn nothing_is_probed_faster_than_lanes_in_use() {
        let timing = Timing { interval: Duration::from_secs(2), ..Timing::default() }.bounded();
        for other in [timing.idle, timing.discovery, timing.retry, timing.retry_late] {
            assert_eq!(other, Duration::from_secs(2));
        }
    }
}
