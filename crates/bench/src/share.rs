//! A share of the CPU that some processes may use at most: a control group with a quota (`cpu.cfs_quota_us` of version 1,
//! `cpu.max` of version 2, whichever the machine has), `Documentation/scheduler/sched-bwc.rst` in the kernel.
//!
//! What counts against the quota is what the scheduler charges to these processes: their own work, and what the kernel does
//! for them and in their context.

use linkbraid_api::Error;
use linkbraid_lab::wait_until;
use procfs::MountEntry;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which controllers version 2 has.
const CONTROLLERS: &str = "cgroup.controllers";
const SUBTREE: &str = "cgroup.subtree_control";
const PROCESSES: &str = "cgroup.procs";
const COUNTS: &str = "cpu.stat";
/// The metric: the share of periods in which the quota was used up.
pub const THROTTLED: &str = "throttled_share";
/// The least quota that the kernel takes, us. With it the time for which a throttled host stands still is the shortest.
const QUOTA_US: u32 = 1000;
/// How long the kernel may take to let go of the last process.
const EMPTY_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A control group with a quota; dropping it removes it, once no process is left in it.
#[derive(Debug)]
pub struct Share {
    folder: PathBuf,
    version: Version,
}

/// How often a quota was looked at, and how often it was used up; both only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Periods {
    /// Periods in which a process of the group wanted to run.
    pub all: u64,
    /// Of these, those in which the quota was used up.
    pub throttled: u64,
}

impl Periods {
    /// The share of periods since an earlier look in which the quota was used up.
    pub fn used_up_since(self, before: Self) -> Option<f64> {
        let (all, used_up) = (self.all - before.all, self.throttled - before.throttled);
        (all > 0).then(|| used_up as f64 / all as f64)
    }
}

impl Share {
    /// An empty group without a limit.
    ///
    /// # Errors
    /// No CPU controller can be used; the cause says why.
    pub fn make() -> Result<Self, Error> {
        let mounts = procfs::mounts().unwrap_or_default();
        let cannot = |cause: String| {
            Error::new("control groups", "cannot limit a host's CPU", cause).hint("cat /proc/self/mounts")
        };
        let has_cpu = |root: &Path| {
            let words = fs::read_to_string(root.join(CONTROLLERS)).unwrap_or_default();
            words.split_whitespace().any(|word| word == "cpu")
        };
        let (version, root) = match hierarchies(&mounts) {
            [Some(root), _] => (Version::One, root),
            [None, Some(root)] if has_cpu(&root) => (Version::Two, root),
            [None, Some(_)] => {
                return Err(cannot("the hierarchy of version 2 has no controller 'cpu'".into()));
            }
            [None, None] => return Err(cannot("no hierarchy with the controller 'cpu' is mounted".into())),
        };
        let share = Self { folder: root.join(format!("linkbraid-bench-{}", std::process::id())), version };
        if version == Version::Two {
            share.write_to(&root.join(SUBTREE), "+cpu")?;
        }
        fs::create_dir_all(&share.folder)
            .map_err(|e| cannot(format!("cannot make '{}': {e}", share.folder.display())))?;
        // A kernel without CONFIG_CFS_BANDWIDTH has the controller and no quota.
        share.limit(None).map(|()| share)
    }

    /// Sets how many thousandths of one core its processes may use together, from 1 (the kernel takes no period above a
    /// second) to 1000; without a number, all that they want.
    pub fn limit(&self, permille: Option<u32>) -> Result<(), Error> {
        let period = permille.map(|permille| QUOTA_US * 1000 / permille.clamp(1, 1000));
        match (self.version, period) {
            (Version::One, None) => self.write("cpu.cfs_quota_us", "-1"),
            (Version::One, Some(period)) => {
                self.write("cpu.cfs_quota_us", "-1")?;
                self.write("cpu.cfs_period_us", &period.to_string())?;
                self.write("cpu.cfs_quota_us", &QUOTA_US.to_string())
            }
            (Version::Two, None) => self.write("cpu.max", "max"),
            (Version::Two, Some(period)) => self.write("cpu.max", &format!("{QUOTA_US} {period}")),
        }
    }

    pub fn add(&self, process: u32) -> Result<(), Error> {
        self.write(PROCESSES, &process.to_string())
    }

    pub fn periods(&self) -> Periods {
        periods(&fs::read_to_string(self.folder.join(COUNTS)).unwrap_or_default())
    }

    /// What is typed to make it, for the report.
    pub fn commands(&self) -> Vec<String> {
        let folder = self.folder.display();
        let set = match self.version {
            Version::One => format!(
                "echo PERIOD > {folder}/cpu.cfs_period_us; echo {QUOTA_US} > {folder}/cpu.cfs_quota_us"
            ),
            Version::Two => format!("echo {QUOTA_US} PERIOD > {folder}/cpu.max"),
        };
        vec![format!("mkdir {folder}"), set, format!("echo PROCESS > {folder}/{PROCESSES}")]
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        self.write_to(&self.folder.join(file), text)
    }

    fn write_to(&self, file: &Path, text: &str) -> Result<(), Error> {
        let what = format!("cannot write '{text}'");
        fs::write(file, text).map_err(|e| Error::new(file.display().to_string(), what, e.to_string()))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // A process that was just reaped leaves its group a moment later.
        let _ = wait_until(
            EMPTY_LIMIT,
            "a control group to be empty",
            || fs::remove_dir(&self.folder),
            Result::is_ok,
        );
    }
}

/// Where version 1 has its CPU controller, and where version 2 is.
fn hierarchies(mounts: &[MountEntry]) -> [Option<PathBuf>; 2] {
    let place = |is: &dyn Fn(&MountEntry) -> bool| {
        mounts.iter().find(|mount| is(mount)).map(|mount| PathBuf::from(&mount.fs_file))
    };
    let has_cpu = |mount: &MountEntry| mount.fs_mntops.contains_key("cpu");
    [place(&|m| m.fs_vfstype == "cgroup" && has_cpu(m)), place(&|m| m.fs_vfstype == "cgroup2")]
}

/// Both versions name them alike.
fn periods(text: &str) -> Periods {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    Periods { all: of("nr_periods"), throttled: of("nr_throttled") }
}

#[cfg(test)]
mod tests;
