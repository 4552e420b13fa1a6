//! Ctrl-C, so that the demo can clean up first.

use linkbraid_api::Error;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicBool, Ordering};

static CAUGHT: AtomicBool = AtomicBool::new(false);

const SIGNALS: [Signal; 2] = [Signal::SIGINT, Signal::SIGTERM];

/// While it lives, SIGINT and SIGTERM only set a flag.
#[derive(Debug)]
pub(super) struct Interrupt {
    before: Vec<(Signal, SigAction)>,
}

extern "C" fn note(_signal: i32) {
    CAUGHT.store(true, Ordering::Relaxed);
}

impl Interrupt {
    pub(super) fn catch() -> Result<Self, Error> {
        CAUGHT.store(false, Ordering::Relaxed);
        let action = SigAction::new(SigHandler::Handler(note), SaFlags::empty(), SigSet::empty());
        let mut before = Vec::new();
        for signal in SIGNALS {
            // SAFETY: the handler does nothing but store to an atomic, which is allowed in a signal handler.
            let old = unsafe { sigaction(signal, &action) };
            let old = old.map_err(|errno| Error::new("lab demo", "cannot catch signals", errno.desc()))?;
            before.push((signal, old));
        }
        Ok(Self { before })
    }

    /// An error once a signal has come.
    pub(super) fn check(&self) -> Result<(), Error> {
        if CAUGHT.load(Ordering::Relaxed) {
            return Err(Error::new("lab demo", "stopped", "interrupted; everything is taken down"));
        }
        Ok(())
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for (signal, action) in &self.before {
            // SAFETY: puts back what the system call gave us; a failure leaves a handler that does nothing harmful.
            let _ = unsafe { sigaction(*signal, action) };
        }
    }
}
