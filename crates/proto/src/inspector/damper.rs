//! Hold-down: what fails again and again waits longer each time before it is trusted.

use super::Timing;
use crate::Time;
use std::time::Duration;

/// Beyond this many failures the time does not grow; 2^30 times any base is above every bound.
const FAILURES_MAX: u32 = 32;

/// The failures that are not forgotten yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Damper {
    failures: u32,
    since: Time,
}

impl Damper {
    /// One more failure.
    pub fn fail(&mut self, now: Time, timing: &Timing) {
        self.failures = (self.failures(now, timing) + 1).min(FAILURES_MAX);
        self.since = now;
    }

    /// The last failure was none.
    pub const fn forgive(&mut self) {
        self.failures = self.failures.saturating_sub(1);
    }

    /// Failures that are not forgotten.
    pub fn failures(&self, now: Time, timing: &Timing) -> u32 {
        let forgotten = now.since(self.since).as_nanos() / timing.hold_decay.as_nanos().max(1);
        self.failures.saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX))
    }

    /// How long to wait: nothing after the first failure, then `hold_base`, doubled by each further one, at most
    /// `hold_max`.
    pub fn hold(&self, now: Time, timing: &Timing) -> Duration {
        match self.failures(now, timing) {
            0 | 1 => Duration::ZERO,
            failures => {
                let times = 1u32.checked_shl(failures - 2).unwrap_or(u32::MAX);
                timing.hold_base.saturating_mul(times).min(timing.hold_max)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn penalty_grows_is_bounded_and_forgotten() {
        let timing = Timing::default();
        let mut damper = Damper::default();
        let mut holds = Vec::new();
        for second in 0..10 {
            let now = Time::from_millis(second * 1000);
            damper.fail(now, &timing);
            holds.push(damper.hold(now, &timing).as_secs());
        }
        assert_eq!(holds, [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let (last, minute) = (Time::from_millis(9000), Duration::from_secs(60));
        assert_eq!(damper.failures(last + minute * 3, &timing), 7);
        assert_eq!(damper.hold(last + minute * 9, &timing), Duration::ZERO);
        assert_eq!(damper.failures(last + minute * 60, &timing), 0);
        (0..100).for_each(|_| damper.fail(last, &timing));
        assert_eq!(damper.hold(last, &timing), minute);
    }
}
