//! Network namespaces by name, as `ip netns` sees them.

use crate::tool;
use linkbraid_api::Error;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

/// Where `ip netns` mounts namespaces.
pub const FOLDER: &str = "/run/netns";

/// Where a daemon keeps the control groups of classes, in a folder named by its namespace's inode: alone, or beside version 1. A
/// namespace that is gone needs none of it, and a later one may get the same number.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup/linkbraid", "/sys/fs/cgroup/unified/linkbraid"];
/// Below that: namespace, bond, class.
const GROUP_LEVELS: u32 = 3;

/// An open network namespace. Does not remove it: see [`remove`].
#[derive(Debug, Clone)]
pub struct Netns {
    name: String,
    file: Arc<File>,
}

impl Netns {
    /// Makes a new namespace with its loopback up.
    pub fn create(name: &str) -> Result<Self, Error> {
        tool::run(Command::new("ip").args(["netns", "add", name]))?;
        let netns = Self::open(name)?;
        tool::ip_batch(name, &["link set lo up".into()])?;
        Ok(netns)
    }

    /// Opens one that exists.
    pub fn open(name: &str) -> Result<Self, Error> {
        let file = File::open(format!("{FOLDER}/{name}"))
            .map_err(|error| Error::new(name, "cannot open the network namespace", error.to_string()))?;
        Ok(Self { name: name.into(), file: Arc::new(file) })
    }

    /// Its name, as in `ip -n NAME`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that will run inside. Only the network namespace changes: mounts stay, so `/sys/class/net` is the shared one, which
    /// therefore shows the wrong interfaces.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let file = Arc::clone(&self.file);
        // SAFETY: between fork and exec the closure makes one system call on an open descriptor; it neither allocates
        // nor locks. There is no safe way to change the namespace of a child alone.
        unsafe {
            command.pre_exec(move || setns(file.as_fd(), CloneFlags::CLONE_NEWNET).map_err(Into::into));
        }
        command
    }

    /// Runs `work` inside, on a thread of its own. A child started in `work` that asks for a signal on its parent's
    /// death gets it when `work` ends.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let result = std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)?;
                Ok::<T, nix::Error>(work())
            });
            inside.join()
        });
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(errno)) => Err(Error::new(&self.name, "cannot enter the network namespace", errno.desc())),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// The processes inside, without this one.
    pub fn processes(&self) -> Vec<i32> {
        let id = |m: std::fs::Metadata| (m.dev(), m.ino());
        let Ok(wanted) = self.file.metadata().map(id) else { return Vec::new() };
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| *pid != own)
            .filter(|pid| std::fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|m| id(m) == wanted))
            .collect()
    }
}

/// The names of all namespaces that start with `prefix`.
pub fn names(prefix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(FOLDER) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    names
}

/// Kills what still runs in a namespace and removes it, with what linkbraid has made for it. One that is not there is fine.
pub fn remove(name: &str) -> Result<(), Error> {
    let open = Netns::open(name).ok();
    if let Some(netns) = &open {
        for pid in netns.processes() {
            // A process that has just ended is what we want.
            let _ =
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }
    if std::path::Path::new(FOLDER).join(name).exists() {
        tool::run(Command::new("ip").args(["netns", "del", name]))?;
    }
    // While the namespace is open its number can't be given to another one. The directory of all namespaces goes with the last
    // one, unless somebody else's is in it.
    if let Some(inode) = open.as_ref().and_then(|netns| netns.file.metadata().ok()).map(|m| m.ino()) {
        for base in GROUPS {
            remove_groups(&std::path::Path::new(base).join(inode.to_string()), GROUP_LEVELS);
            let _ = std::fs::remove_dir(base);
        }
    }
    Ok(())
}

/// Removes a control group and those in it, deepest first: the files in them cannot be removed. Groups still in use stay.
fn remove_groups(at: &std::path::Path, levels: u32) {
    if levels > 0 {
        let entries = std::fs::read_dir(at).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.for_each(|entry| remove_groups(&entry.path(), levels - 1));
    }
    let _ = std::fs::remove_dir(at);
}
