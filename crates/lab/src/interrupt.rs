//! Ctrl-C, so that whoever made a lab can take it down first: bonds outlive their daemons, so a killed program would
//! leave some behind.

use linkbraid_api::Error;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Set while no guard lives: a signal then ends the process, as if nothing had ever caught one.
static FREE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// While it lives, SIGINT and SIGTERM only make [`Interrupt::check`] fail.
#[derive(Debug)]
pub struct Interrupt {
    what: &'static str,
    caught: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Interrupt {
    /// Holds the signals back; errors name `what` is stopped.
    pub fn catch(what: &'static str) -> Result<Self, Error> {
        let cannot = |e: io::Error| Error::new(what, "cannot catch signals", e.to_string());
        let mut guard = Self { what, caught: Arc::default(), handlers: Vec::new() };
        let free = FREE.get().cloned().unwrap_or_default();
        free.store(false, Ordering::Relaxed);
        for signal in [SIGINT, SIGTERM] {
            if FREE.get().is_none() {
                flag::register_conditional_default(signal, Arc::clone(&free)).map_err(cannot)?;
            }
            guard.handlers.push(flag::register(signal, Arc::clone(&guard.caught)).map_err(cannot)?);
        }
        // One that was there before is the one that was used.
        let _ = FREE.set(free);
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
        FREE.get().into_iter().for_each(|free| free.store(true, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests;
