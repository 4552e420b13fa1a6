//! What the machine and single processes did between two looks. Hosts of a lab share one machine, and most of the work of a
//! data path happens in interrupts that belong to no process, so nothing smaller than the machine would be honest.

use linkbraid_api::Error;
use linkbraid_lab::stolen;
use procfs::process::Process;
use procfs::{CpuTime, CurrentSI, KernelStats, ProcError};
use std::time::Instant;

#[derive(Debug, Clone)]
pub struct Activity {
    at: Instant,
    cpu: CpuTime,
    interrupts: u64,
    switches: u64,
}

/// What the machine did between two looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Seconds of work, over all CPUs.
    pub busy_s: f64,
    /// The share of all CPU time that this is; what the hypervisor took is no CPU time.
    pub share: f64,
    /// What the hypervisor took for others, as [`stolen::share`].
    pub stolen_share: f64,
    /// Seconds of programs a second, `nice` ones too.
    pub user_s: f64,
    /// Seconds of the kernel for programs a second.
    pub system_s: f64,
    /// Seconds of interrupts a second, hard and soft.
    pub interrupt_s: f64,
    pub interrupts: f64,
    pub switches: f64,
}

impl Activity {
    pub fn now() -> Result<Self, Error> {
        let stat = KernelStats::current().map_err(|e| cannot("/proc/stat", &e))?;
        // procfs passes over the line of interrupts.
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let interrupts =
            text.lines().find_map(|line| line.strip_prefix("intr ")?.split(' ').next()?.parse().ok());
        Ok(Self {
            at: Instant::now(),
            cpu: stat.total,
            interrupts: interrupts.unwrap_or(0),
            switches: stat.ctxt,
        })
    }

    pub fn since(&self, earlier: &Self) -> Work {
        let seconds = (self.at - earlier.at).as_secs_f64().max(1e-3);
        let ticks = |of: &dyn Fn(&CpuTime) -> u64| {
            of(&self.cpu).saturating_sub(of(&earlier.cpu)) as f64 / procfs::ticks_per_second() as f64
        };
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        let interrupt = |cpu: &CpuTime| cpu.irq.unwrap_or(0) + cpu.softirq.unwrap_or(0);
        let busy = |cpu: &CpuTime| cpu.user + cpu.nice + cpu.system + interrupt(cpu);
        let all = ticks(&|cpu| busy(cpu) + cpu.idle + cpu.iowait.unwrap_or(0));
        Work {
            busy_s: ticks(&busy),
            share: if all > 0.0 { ticks(&busy) / all } else { 0.0 },
            stolen_share: stolen::share(&earlier.cpu, &self.cpu),
            user_s: ticks(&|cpu| cpu.user + cpu.nice) / seconds,
            system_s: ticks(&|cpu| cpu.system) / seconds,
            interrupt_s: ticks(&interrupt) / seconds,
            interrupts: rate(self.interrupts, earlier.interrupts),
            switches: rate(self.switches, earlier.switches),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ProcessActivity {
    at: Instant,
    run_ns: u64,
    switches: u64,
}

impl ProcessActivity {
    /// Looks now. Time is what the scheduler counts, in nanoseconds: ticks are too coarse for a process that does next to
    /// nothing.
    pub fn of(pid: u32) -> Result<Self, Error> {
        let tasks = process(pid).and_then(|process| process.tasks()).map_err(|e| cannot(&object(pid), &e))?;
        let (mut run_ns, mut switches) = (0, 0);
        // A thread may end between the listing and the look.
        for (time, status) in
            tasks.flatten().filter_map(|task| Some((task.schedstat().ok()?, task.status().ok()?)))
        {
            run_ns += time.sum_exec_runtime;
            switches +=
                status.voluntary_ctxt_switches.unwrap_or(0) + status.nonvoluntary_ctxt_switches.unwrap_or(0);
        }
        Ok(Self { at: Instant::now(), run_ns, switches })
    }

    /// Percent of one core since an earlier look, and changes of context a second.
    pub fn since(self, earlier: Self) -> (f64, f64) {
        let seconds = (self.at - earlier.at).as_secs_f64().max(1e-3);
        let run = self.run_ns.saturating_sub(earlier.run_ns) as f64 / 1e9;
        (run / seconds * 100.0, self.switches.saturating_sub(earlier.switches) as f64 / seconds)
    }
}

/// The memory of a process that no file backs, in bytes.
pub fn anonymous_bytes(pid: u32) -> Result<u64, Error> {
    let rollup =
        process(pid).and_then(|process| process.smaps_rollup()).map_err(|e| cannot(&object(pid), &e))?;
    Ok(rollup.memory_map_rollup.iter().filter_map(|map| map.extension.map.get("Anonymous")).sum())
}

fn process(pid: u32) -> Result<Process, ProcError> {
    Process::new(pid.cast_signed())
}

fn object(pid: u32) -> String {
    format!("process {pid}")
}

fn cannot(object: &str, error: &ProcError) -> Error {
    Error::new(object, "cannot look at it", error.to_string())
}

#[cfg(test)]
mod tests;
