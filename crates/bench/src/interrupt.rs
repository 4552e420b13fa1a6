//! Ctrl-C, so that a run can clean up first: bonds outlive their daemons, so a killed run would leave some behind.

use linkbraid_api::Error;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// While it lives, SIGINT and SIGTERM only make [`Interrupt::check`] fail.
#[derive(Debug)]
pub struct Interrupt {
    signals: SignalFd,
    blocked: SigSet,
}

impl Interrupt {
    /// Holds the signals back from this thread and those it starts; call it before there are others.
    pub fn catch() -> Result<Self, Error> {
        let cannot = |errno: nix::Error| Error::new("bench", "cannot catch signals", errno.desc());
        let blocked = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        blocked.thread_block().map_err(cannot)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let signals = SignalFd::with_flags(&blocked, flags).map_err(cannot)?;
        Ok(Self { signals, blocked })
    }

    /// An error once a signal has come. The signal is taken: the next check succeeds again.
    pub fn check(&self) -> Result<(), Error> {
        match self.signals.read_signal() {
            Ok(Some(_)) => Err(stopped()),
            // Nothing has come, or nothing can: then the run goes on.
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

/// The error of an interrupted run.
fn stopped() -> Error {
    Error::new("bench", "stopped", STOPPED)
}

/// The cause of [`Interrupt::check`]'s error.
const STOPPED: &str = "interrupted; everything is taken down";

/// Whether an error is that of an interrupted run.
pub fn is_stop(error: &Error) -> bool {
    error.cause == STOPPED
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        // A thread whose signals stay blocked is about to end anyway.
        let _ = self.blocked.thread_unblock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_stops_the_run_instead_of_the_process() {
        let guard = Interrupt::catch().expect("catches");
        assert_eq!(guard.check(), Ok(()));
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            nix::sys::signal::raise(signal).expect("raises");
            let error = guard.check().expect_err("stopped");
            assert!(is_stop(&error), "{error}");
            assert_eq!(guard.check(), Ok(()), "a signal is taken once");
        }
        assert!(!is_stop(&Error::new("bench", "failed", "another cause")));
    }
}
