//! What the machine and single processes did between two looks: seconds of user, system and interrupt time,
//! interrupts, changes of context.

use linkbraid_api::Error;
use std::time::Instant;

/// Clock ticks in a second as `/proc` counts them: `USER_HZ`, fixed at 100 on every architecture Linux has today.
const TICKS: f64 = 100.0;

/// One look at the whole machine.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    at: Instant,
    user: u64,
    system: u64,
    soft: u64,
    interrupts: u64,
    switches: u64,
}

/// What the machine did, for each second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Seconds of programs, `nice` ones too.
    pub user_s: f64,
    /// Seconds of the kernel for programs.
    pub system_s: f64,
    /// Seconds of interrupts, hard and soft.
    pub interrupt_s: f64,
    /// Interrupts.
    pub interrupts: f64,
    /// Changes of context.
    pub switches: f64,
}

impl Activity {
    /// Looks now.
    pub fn now() -> Result<Self, Error> {
        let text = read("/proc/stat")?;
        Self::parse(&text).ok_or_else(|| Error::new("/proc/stat", "cannot read", "a line is missing"))
    }

    /// proc_stat(5): the lines `cpu`, `intr` and `ctxt`.
    fn parse(text: &str) -> Option<Self> {
        let numbers = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.split_whitespace().map_while(|word| word.parse().ok()).collect::<Vec<u64>>())
        };
        let cpu = numbers("cpu ")?;
        let &[user, nice, system, _, _, hard, soft, ..] = cpu.as_slice() else { return None };
        Some(Self {
            at: Instant::now(),
            user: user + nice,
            system,
            soft: hard + soft,
            interrupts: *numbers("intr ")?.first()?,
            switches: *numbers("ctxt ")?.first()?,
        })
    }

    /// What was done since an earlier look.
    pub fn since(self, earlier: Self) -> Rates {
        let seconds = (self.at - earlier.at).as_secs_f64().max(1e-3);
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        Rates {
            user_s: rate(self.user, earlier.user) / TICKS,
            system_s: rate(self.system, earlier.system) / TICKS,
            interrupt_s: rate(self.soft, earlier.soft) / TICKS,
            interrupts: rate(self.interrupts, earlier.interrupts),
            switches: rate(self.switches, earlier.switches),
        }
    }
}

/// One look at a process, all its threads.
#[derive(Debug, Clone, Copy)]
pub struct ProcessActivity {
    at: Instant,
    run_ns: u64,
    switches: u64,
}

impl ProcessActivity {
    /// Looks now. Time is what the scheduler counts, in nanoseconds (`/proc/PID/task/*/schedstat`): ticks are too coarse for
    /// a process that does next to nothing.
    pub fn of(pid: u32) -> Result<Self, Error> {
        let folder = format!("/proc/{pid}/task");
        let tasks = std::fs::read_dir(&folder)
            .map_err(|e| Error::new(&folder, "cannot look at the process", e.to_string()))?;
        let (mut run_ns, mut switches) = (0, 0);
        for task in tasks.flatten() {
            let path = task.path().display().to_string();
            // A thread may end between the listing and the look.
            let (Ok(schedstat), Ok(status)) =
                (read(&format!("{path}/schedstat")), read(&format!("{path}/status")))
            else {
                continue;
            };
            run_ns += first_number(&schedstat);
            let counts = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
            switches += counts.map(|(_, count)| first_number(count)).sum::<u64>();
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

/// Memory of a process in bytes: its part of what it shares with others, and what is its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// All pages in memory, shared ones counted whole.
    pub rss: u64,
    /// All pages, shared ones by how many share them.
    pub pss: u64,
    /// Of that, pages without a file.
    pub anonymous: u64,
}

impl Memory {
    /// Looks now: `/proc/PID/smaps_rollup`.
    pub fn of(pid: u32) -> Result<Self, Error> {
        let text = read(&format!("/proc/{pid}/smaps_rollup"))?;
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.map_or(0, first_number) * 1024
        };
        Ok(Self { rss: value("Rss:"), pss: value("Pss:"), anonymous: value("Anonymous:") })
    }
}

fn first_number(text: &str) -> u64 {
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn read(path: &str) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|e| Error::new(path, "cannot read", e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_done_is_told_for_each_second() {
        let stat = |user, intr| {
            format!("cpu  {user} 10 30 900 5 2 8 0 0 0\ncpu0 1 1\nintr {intr} 5 6\nctxt 400\nbtime 1\n")
        };
        let before = Activity::parse(&stat(100, 1000)).expect("parses");
        let mut after = Activity::parse(&stat(300, 5000)).expect("parses");
        after.at = before.at + Duration::from_secs(2);
        let rates = after.since(before);
        assert!((rates.user_s - 1.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.interrupts - 2000.0).abs() < 1e-9, "{rates:?}");
        assert!(rates.switches.abs() < 1e-9 && rates.interrupt_s.abs() < 1e-9, "{rates:?}");
        assert!(Activity::parse("cpu 1 2 3\n").is_none());
    }

    #[test]
    fn this_process_has_run_and_has_memory() {
        let id = std::process::id();
        // The kernel counts the time of a thread that runs at the scheduler's ticks only; and what other tests' threads had
        // goes with them.
        let worked = linkbraid_lab::wait_until(
            Duration::from_secs(10),
            "work to be counted",
            || {
                let before = ProcessActivity::of(id).expect("looks");
                let sum: u64 = (0..3_000_000_u64).map(|n| std::hint::black_box(n) % 7).sum();
                (ProcessActivity::of(id).expect("looks").since(before).0, sum)
            },
            |(percent, _)| *percent > 0.0,
        );
        worked.unwrap_or_else(|e| panic!("{e}"));
        let memory = Memory::of(id).expect("looks");
        assert!(memory.rss >= memory.anonymous && memory.pss > 0, "{memory:?}");
    }
}
