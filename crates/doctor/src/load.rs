//! How busy the processors are.

use procfs::{CpuTime, CurrentSI, KernelStats};
use serde::{Deserialize, Serialize};

/// What was done between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Load {
    /// The busiest processor: its number,
    pub processor: u32,
    /// how busy it was, 0 to 1,
    pub busy: f64,
    /// and the part of that which went to network interrupts (softirq of proc_stat(5)), 0 to 1.
    pub softirq: f64,
    /// How busy all of them were on average, 0 to 1.
    pub all: f64,
}

/// The processors' clocks at one time.
#[derive(Debug)]
pub struct Look(Option<KernelStats>);

impl Look {
    /// Now.
    pub fn take() -> Self {
        Self(KernelStats::current().ok())
    }

    /// What was done since then; nothing where the kernel does not tell.
    pub fn load(&self) -> Load {
        let (Some(before), Ok(after)) = (&self.0, KernelStats::current()) else { return Load::default() };
        let each = before.cpu_time.iter().zip(&after.cpu_time).map(|(before, after)| share(before, after));
        let busiest = (0..).zip(each).max_by(|(_, one), (_, other)| one.0.total_cmp(&other.0));
        let (all, _) = share(&before.total, &after.total);
        let (processor, (busy, softirq)) = busiest.unwrap_or_default();
        Load { processor, busy, softirq, all }
    }
}

/// The share of the time in which it was busy, and the share of that which was softirq.
fn share(before: &CpuTime, after: &CpuTime) -> (f64, f64) {
    let idle = |time: &CpuTime| time.idle + time.iowait.unwrap_or(0);
    let soft = |time: &CpuTime| time.softirq.unwrap_or(0);
    let work = |time: &CpuTime| {
        time.user + time.nice + time.system + time.irq.unwrap_or(0) + soft(time) + time.steal.unwrap_or(0)
    };
    let grown = |of: &dyn Fn(&CpuTime) -> u64| of(after).saturating_sub(of(before)) as f64;
    let (idle, work, soft) = (grown(&idle), grown(&work), grown(&soft));
    (work / (work + idle).max(1.0), soft / work.max(1.0))
}
