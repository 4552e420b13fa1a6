//! The daemon's clock: the only place where the protocols' time comes from.

use linkbraid_proto::Time;
use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time since the daemon started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// When the runtime is to wake for `time`.
    pub(crate) fn instant(self, time: Time) -> tokio::time::Instant {
        (self.start + Duration::from_nanos(time.0)).into()
    }
}

/// Time since this machine was booted, whatever has become of the daemon since.
pub(crate) fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// A shorter sleep harms nothing: no lane is given up for it.
const SLEPT_MIN: Duration = Duration::from_millis(100);
/// The two clocks were not read at one time if reading them took longer.
const READ_MAX: Duration = Duration::from_millis(10);

/// Finds out that the machine has slept: one of the kernel's clocks goes on meanwhile, the daemon's does not.
#[derive(Debug, Default)]
pub(crate) struct Sleeps {
    /// How long it had slept since its boot when that was read last.
    asleep: Option<Duration>,
}

impl Sleeps {
    /// How long the machine has slept since this was asked last, if it has.
    pub(crate) fn look(&mut self) -> Option<Duration> {
        let read = |clock| clock_gettime(clock).map(Duration::from);
        let before = read(ClockId::CLOCK_MONOTONIC).ok()?;
        let boot = read(ClockId::CLOCK_BOOTTIME).ok()?;
        let after = read(ClockId::CLOCK_MONOTONIC).ok()?;
        self.take(boot, before, after)
    }

    /// The same, by what the clocks said: that of the boot between two readings of the other one.
    fn take(&mut self, boot: Duration, before: Duration, after: Duration) -> Option<Duration> {
        if after.saturating_sub(before) > READ_MAX {
            return None;
        }
        let asleep = boot.saturating_sub(before);
        let slept = asleep.saturating_sub(self.asleep.replace(asleep)?);
        (slept >= SLEPT_MIN).then_some(slept)
    }
}

/// A number that grows with each start of a host: milliseconds since 1970, or more where `last` was: somebody may have set the clock
/// back since, and peers refuse an epoch that is not later than the one they know.
pub(crate) fn epoch(last: u64, now: SystemTime) -> u64 {
    //= docs/arp-plus.md#6.4
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX).max(last.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_sleep_is_told_once_and_a_delay_is_none() {
        let mut sleeps = Sleeps::default();
        // The machine had slept before the daemon started.
        assert_eq!(sleeps.take(ms(90_000), ms(1000), ms(1000)), None);
        assert_eq!(sleeps.take(ms(95_000), ms(6000), ms(6001)), None, "time goes on");
        assert_eq!(sleeps.take(ms(101_800), ms(6000), ms(6000)), Some(ms(6800)));
        assert_eq!(sleeps.take(ms(101_900), ms(6100), ms(6100)), None, "once");
        assert_eq!(sleeps.take(ms(101_950), ms(6100), ms(6149)), None, "this process was delayed");
        // What such a reading would have said is not lost.
        assert_eq!(sleeps.take(ms(103_000), ms(6100), ms(6149)), None);
        assert_eq!(sleeps.take(ms(103_100), ms(6300), ms(6300)), Some(ms(1000)));
    }

    #[test]
    fn this_machine_is_awake() {
        let mut sleeps = Sleeps::default();
        assert_eq!([sleeps.look(), sleeps.look()], [None, None]);
        assert!(sleeps.asleep.is_some(), "both clocks were read");
    }

    //= docs/arp-plus.md#6.4 type=test
    #[test]
    fn an_epoch_is_later_than_the_last_one_whatever_the_clock_says() {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let now = SystemTime::now();
        let first = epoch(0, now);
        let since = now.duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
        assert_eq!(u128::from(first), since);
        assert_eq!(epoch(first, now), first + 1);
        let back = epoch(first, now - YEAR);
        assert_eq!(back, first + 1);
        assert_eq!(epoch(back, UNIX_EPOCH - YEAR), back + 1);
        assert!(epoch(back, now + Duration::from_secs(1)) > first + 900);
        assert_eq!(epoch(u64::MAX, now), u64::MAX);
    }
}
