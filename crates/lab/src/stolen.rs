//! What others on the same physical machine took of the processors' time: what is measured meanwhile is too slow.

use linkbraid_api::Error;
use procfs::{CpuTime, CurrentSI, KernelStats};

/// From this share on, rates that were measured meanwhile are said to be lower than they would be.
pub const MUCH: f64 = 0.02;

/// What the processors have done until now.
pub fn processors() -> Result<CpuTime, Error> {
    let stat = KernelStats::current();
    stat.map(|stat| stat.total).map_err(|e| Error::new("/proc/stat", "cannot be read", e.to_string()))
}

/// Of the time that the processors were asked for between two looks, the share that a hypervisor gave to others, 0 to 1 (`steal`
/// of proc_stat(5)).
pub fn share(earlier: &CpuTime, later: &CpuTime) -> f64 {
    let work =
        |cpu: &CpuTime| cpu.user + cpu.nice + cpu.system + cpu.irq.unwrap_or(0) + cpu.softirq.unwrap_or(0);
    let grown = |of: &dyn Fn(&CpuTime) -> u64| of(later).saturating_sub(of(earlier)) as f64;
    let stolen = grown(&|cpu| cpu.steal.unwrap_or(0));
    if stolen > 0.0 { stolen / (stolen + grown(&work)) } else { 0.0 }
}

/// What is said of such a share, if it is [`MUCH`].
pub fn remark(share: f64) -> Option<String> {
    (share >= MUCH).then(|| {
        format!(
            "others on this physical machine took {:.0} % of the processors' time: rates are lower than they would be",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests;
