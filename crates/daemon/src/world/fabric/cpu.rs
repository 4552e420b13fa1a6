//! Processor time of the threads of a fabric.

use linkbraid_proto::Time;
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering::Relaxed},
    },
    time::Duration,
};

/// How often the share is taken.
const EVERY: Duration = Duration::from_secs(1);

/// The identity of a thread, once it runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Thread(Arc<AtomicI32>);

impl Thread {
    /// To be called by the thread itself.
    pub(super) fn begin(&self) {
        self.0.store(nix::unistd::gettid().as_raw(), Relaxed);
    }

    /// Nanoseconds that it ran; none while it does not.
    fn ran(&self) -> Option<u64> {
        ran(&format!("/proc/self/task/{}/schedstat", self.0.load(Relaxed)))
    }
}

/// Nanoseconds that all threads of a process ran; none once it is gone.
fn process_ran(process: u32) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let ran = |task: fs::DirEntry| ran(&format!("{}/schedstat", task.path().display()));
    Some(tasks.filter_map(Result::ok).filter_map(ran).sum())
}

/// The nanoseconds that a file says its thread ran.
fn ran(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
}

/// What they used.
#[derive(Debug)]
pub(super) struct Cpu {
    threads: Vec<Thread>,
    /// A process that works for the same fabric.
    process: Option<u32>,
    at: Time,
    ran: u64,
    /// Their share of one processor between the last two looks, in parts of a million.
    pub ppm: u32,
}

impl Cpu {
    pub(super) fn new(threads: Vec<Thread>, process: Option<u32>, now: Time) -> Self {
        Self { threads, process, at: now, ran: 0, ppm: 0 }
    }

    /// All that they ran since they started, in nanoseconds.
    pub(super) fn total(&self) -> u64 {
        let process = self.process.and_then(process_ran);
        self.threads.iter().filter_map(Thread::ran).chain(process).sum()
    }

    /// Takes their share, if it is time.
    pub(super) fn look(&mut self, now: Time) {
        let passed = now.since(self.at);
        if passed < EVERY {
            return;
        }
        let ran = self.total();
        let share = u128::from(ran.saturating_sub(self.ran)) * 1_000_000 / passed.as_nanos().max(1);
        (self.at, self.ran, self.ppm) = (now, ran, u32::try_from(share).unwrap_or(u32::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_is_seen_to() {
        let thread = Thread::default();
        assert_eq!(thread.ran(), None);
        thread.begin();
        let mut cpu = Cpu::new(vec![thread], None, Time::ZERO);
        let before = cpu.total();
        let mut sum = 0_u64;
        while cpu.total() < before + 2_000_000 {
            sum = (0..10_000).fold(sum, u64::wrapping_add);
        }
        assert!(sum > 0);
        cpu.look(Time::ZERO + EVERY / 2);
        assert_eq!(cpu.ppm, 0);
        cpu.look(Time::ZERO + EVERY);
        assert!(cpu.ppm >= 2_000, "{}", cpu.ppm);
    }
}
