//! Ctrl-C, so that whoever made a lab can take it down first: bonds outlive their daemons, so a killed program would
//! leave some behind.

use linkbraid_api::Error;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// While it lives, SIGINT and SIGTERM only make [`Interrupt::check`] fail. Once it is dropped they do nothing.
#[derive(Debug)]
pub struct Interrupt {
    what: &'static str,
    caught: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Interrupt {
    /// Holds the signals back; errors name `what` is stopped.
    pub fn catch(what: &'static str) -> Result<Self, Error> {
        let mut guard = Self { what, caught: Arc::default(), handlers: Vec::new() };
        for signal in [SIGINT, SIGTERM] {
            let handler = signal_hook::flag::register(signal, Arc::clone(&guard.caught))
                .map_err(|e| Error::new(what, "cannot catch signals", e.to_string()))?;
            guard.handlers.push(handler);
        }
        Ok(guard)
    }

    /// Whether a signal has come.
    pub fn is_caught(&self) -> bool {
        self.caught.load(Ordering::Relaxed)
    }

    /// An error once a signal has come.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_caught() {
            return Err(Error::new(self.what, "stopped", "interrupted; everything is taken down"));
        }
        Ok(())
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_stops_the_work_instead_of_the_process() {
        for signal in [SIGINT, SIGTERM] {
            let guard = Interrupt::catch("lab").expect("catches");
            assert_eq!(guard.check(), Ok(()));
            signal_hook::low_level::raise(signal).expect("raises");
            assert!(guard.is_caught());
            assert_eq!(guard.check().expect_err("stopped").what, "stopped");
        }
    }
}
