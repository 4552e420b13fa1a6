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

    #[test]
    fn a_signal_ends_the_process_once_the_guard_is_gone() {
        drop(Interrupt::catch("lab").expect("catches"));
        // SAFETY: the child calls nothing but kill(2) on itself and _exit(2).
        match unsafe { nix::unistd::fork() }.expect("forks") {
            nix::unistd::ForkResult::Child => {
                let _ = signal_hook::low_level::raise(SIGINT);
                // SAFETY: it ends this process and touches nothing of it.
                unsafe { nix::libc::_exit(0) }
            }
            nix::unistd::ForkResult::Parent { child } => {
                let ended = nix::sys::wait::waitpid(child, None).expect("ends");
                let signal = nix::sys::signal::Signal::SIGINT;
                assert_eq!(ended, nix::sys::wait::WaitStatus::Signaled(child, signal, false));
            }
        }
    }
}
