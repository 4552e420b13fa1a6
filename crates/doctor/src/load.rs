//! How busy the processors are with what networks need of them: the kernel's time. What programs compute beside it does not
//! keep the network back, since interrupts go first and the scheduler gives a reader its part.

use procfs::{CpuTime, CurrentSI, KernelStats};
use serde::{Deserialize, Serialize};

/// What was done between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Load {
    /// The busiest processor: its number,
    pub processor: u32,
    /// the part of the time in which the kernel worked on it, 0 to 1,
    pub busy: f64,
    /// and the part of that which went to network interrupts (softirq of proc_stat(5)), 0 to 1.
    pub softirq: f64,
    /// The same of all of them, on average, 0 to 1.
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

/// The share of the time in which the kernel was busy on it, and the share of that which was softirq.
fn share(before: &CpuTime, after: &CpuTime) -> (f64, f64) {
    let idle = |time: &CpuTime| time.idle + time.iowait.unwrap_or(0);
    let soft = |time: &CpuTime| time.softirq.unwrap_or(0);
    // Where a hypervisor takes the processor away, the kernel lacks that time, too.
    let work = |time: &CpuTime| time.system + time.irq.unwrap_or(0) + soft(time) + time.steal.unwrap_or(0);
    let all = |time: &CpuTime| idle(time) + work(time) + time.user + time.nice;
    let grown = |of: &dyn Fn(&CpuTime) -> u64| of(after).saturating_sub(of(before)) as f64;
    let (all, work, soft) = (grown(&all), grown(&work), grown(&soft));
    (work / all.max(1.0), soft / work.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_compute_are_not_what_limits_the_network() {
        let mut before = KernelStats::current().expect("this kernel tells").total;
        before.user = 0;
        let after = |user: u64, system: u64, softirq: u64, idle: u64| {
            let mut after = before.clone();
            after.user += user;
            after.system += system;
            after.softirq = after.softirq.map(|time| time + softirq);
            after.idle += idle;
            after
        };
        assert_eq!(share(&before, &after(95, 4, 1, 0)), (0.05, 0.2));
        assert_eq!(share(&before, &after(0, 20, 60, 20)), (0.8, 0.75));
        assert_eq!(share(&before, &before), (0.0, 0.0));
    }
}
