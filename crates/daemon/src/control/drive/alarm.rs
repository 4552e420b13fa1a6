//! A deadline that wakes the thread, by a timer of the kernel.
//!
//! The runtime's own timer wakes several times on the way to a deadline that is more than 64 ms away, and once more for each deadline
//! that is set after the last one has come. An idle daemon would wake up twice as often as it has anything to do.

use crate::io::{clock::Clock, error::About as _};
use linkbraid_api::Error;
use linkbraid_proto::Time;
use nix::sys::{
    time::TimeSpec,
    timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
};
use std::{
    io,
    os::fd::{AsFd, AsRawFd, RawFd},
};
use tokio::io::unix::AsyncFd;

pub(super) struct Alarm {
    timer: AsyncFd<Timer>,
    clock: Clock,
    /// What the timer is set to.
    set: Option<Time>,
}

struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Alarm {
    pub(super) fn new(clock: Clock) -> Result<Self, Error> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(io::Error::from);
        // SAFETY: it owns its descriptor, and has the same one for as long as it lives.
        let timer = timer.and_then(|timer| unsafe { super::watched::watched(Timer(timer)) });
        Ok(Self { timer: timer.about("daemon", "cannot make a timer")?, clock, set: None })
    }

    /// Ends at that time, or at once if it has passed.
    pub(super) async fn wait(&mut self, until: Time) -> io::Result<()> {
        loop {
            let left = until.since(self.clock.now());
            if left.is_zero() {
                return Ok(());
            }
            if self.set != Some(until) {
                let once = Expiration::OneShot(TimeSpec::from_duration(left));
                self.timer.get_ref().0.set(once, TimerSetTimeFlags::empty())?;
                self.set = Some(until);
            }
            // What is left of an earlier time ends this early.
            self.timer.readable().await?.clear_ready();
        }
    }
}
