//! Keeps a virtual clock from skipping.
//!
//! A guest whose clock counts instructions skips whatever time it would sleep (`tests/vm/run --virtual-time`). While it
//! waits for its host's files it has nothing else to do, and minutes pass: no deadline could be met. A thread that spins,
//! behind all others, gives it something to do. It rests while traffic is measured, when nothing is read.

use nix::libc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Set where the clock is virtual.
const VIRTUAL_ENV: &str = "LINKBRAID_BENCH_VIRTUAL_TIME";
/// Spins between two looks.
const SPINS: u32 = 100_000;

/// The thread, if the clock needs one.
#[derive(Debug)]
pub(super) struct Awake {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    rests: AtomicBool,
    over: AtomicBool,
}

impl Awake {
    /// Starts it where the clock is virtual; elsewhere it does nothing.
    pub fn start() -> Self {
        let state = Arc::new(State::default());
        let own = Arc::clone(&state);
        let thread = std::env::var_os(VIRTUAL_ENV).map(|_| std::thread::spawn(move || spin(&own)));
        Self { state, thread }
    }

    /// From here on the clock may skip what is slept.
    pub fn rest(&self, rests: bool) {
        self.state.rests.store(rests, Ordering::Release);
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::Release);
        self.rest(false);
        // It does nothing that could fail.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn spin(state: &State) {
    behind_others();
    while !state.over.load(Ordering::Acquire) {
        if state.rests.load(Ordering::Acquire) {
            std::thread::park();
        }
        // Not a hint to the CPU that this is a loop: an emulated one would take long over it.
        std::hint::black_box((0..SPINS).fold(0, |sum: u32, n| std::hint::black_box(sum.wrapping_add(n))));
    }
}

/// Lets every other thread go first; where that is refused, the thread costs the others time, and no more.
fn behind_others() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads the struct and keeps nothing of it; 0 is the calling thread. nix has no wrapper for it.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

#[cfg(test)]
mod tests;
