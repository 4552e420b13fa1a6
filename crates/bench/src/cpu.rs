//! What the whole machine's CPU did between two looks: `/proc/stat`. Hosts of a lab share one machine, and most of
//! the work of a data path happens in interrupts that belong to no process, so nothing smaller would be honest.

use linkbraid_api::Error;

/// Clock ticks in a second as `/proc` counts them: `USER_HZ`, fixed at 100 on every architecture Linux has today.
const TICKS: f64 = 100.0;

/// One look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuClock {
    /// Ticks spent working: user, nice, system, interrupts.
    busy: u64,
    /// All ticks, without those that the hypervisor took.
    all: u64,
}

/// Work between two looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuUse {
    /// Seconds of work, over all CPUs.
    pub busy_s: f64,
    /// The share of all CPU time that this is.
    pub share: f64,
}

impl CpuClock {
    /// Looks now.
    pub fn now() -> Result<Self, Error> {
        let cannot = |cause: String| Error::new("/proc/stat", "cannot read", cause);
        let text = std::fs::read_to_string("/proc/stat").map_err(|e| cannot(e.to_string()))?;
        Self::parse(&text).ok_or_else(|| cannot("it has no line 'cpu' with eight numbers".into()))
    }

    /// The first line of proc_stat(5): user nice system idle iowait irq softirq steal.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let n: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let &[user, nice, system, idle, iowait, irq, softirq, ..] = n.as_slice() else { return None };
        let busy = user + nice + system + irq + softirq;
        Some(Self { busy, all: busy + idle + iowait })
    }

    /// The work since an earlier look.
    pub fn since(self, earlier: Self) -> CpuUse {
        let busy = self.busy.saturating_sub(earlier.busy) as f64;
        let all = self.all.saturating_sub(earlier.all) as f64;
        CpuUse { busy_s: busy / TICKS, share: if all > 0.0 { busy / all } else { 0.0 } }
    }
}

#[cfg(test)]
mod tests;
