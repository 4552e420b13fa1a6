//! Control groups (version 2): those that rules name, and one for each class, which `linkbraid run` puts commands into.
//!
//! A group is known to the data path by its id, which is the inode of its directory (kernfs), and by its depth below
//! the root of the hierarchy. A service that restarts gets a group of the same path and another id.

use super::helper;
use linkbraid_api::Error;
use linkbraid_dataplane::Cgroup;
use nix::errno::Errno;
use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

/// The directory of all groups made here.
const TOP: &str = "linkbraid";
/// The inode of the root of the hierarchy; another one is what a container sees as its root, and its depth is unknown.
const ROOT_INODE: u64 = 1;
/// The file of a group that names its processes, and takes another one in.
const PROCESSES: &str = "cgroup.procs";
/// How often a group is emptied before it is given up: processes in it may start others faster than they are moved.
const EMPTY_TRIES: usize = 16;
/// Where the kernel says what is mounted.
const MOUNTS: &str = "/proc/self/mounts";

/// The hierarchy, as far as it can be used.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    root: PathBuf,
}

impl Groups {
    /// The hierarchy of this machine.
    ///
    /// # Errors
    /// Version 2 is not mounted, or only a part of it can be seen.
    pub(crate) fn find() -> Result<Self, Error> {
        let object = "control groups";
        let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
        let mut roots = mount_points(&mounts).peekable();
        if roots.peek().is_none() {
            return Err(Error::new(object, "cannot be used", "no cgroup2 file system is mounted")
                .hint("mount -t cgroup2 cgroup2 /mnt"));
        }
        // Containers have parts of it mounted elsewhere.
        let is_whole = |root: &PathBuf| fs::metadata(root).is_ok_and(|found| found.ino() == ROOT_INODE);
        roots.find(is_whole).map(|root| Self { root }).ok_or_else(|| {
            Error::new(object, "cannot be used", "a container sees only a part of the hierarchy")
                .hint("cat /proc/self/mountinfo")
        })
    }

    /// The group of that path from the root of the hierarchy, if there is one.
    pub(crate) fn lookup(&self, path: &str) -> Option<Cgroup> {
        let below: PathBuf = Path::new(path)
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name),
                _ => None,
            })
            .collect();
        let found = fs::metadata(self.root.join(&below)).ok().filter(fs::Metadata::is_dir)?;
        Some(Cgroup { id: found.ino(), level: below.components().count() as u32 })
    }

    /// Makes the group of a class. `at` names the bond, uniquely on this machine.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn make(&self, at: &Path, class: &str) -> io::Result<()> {
        let group = self.directory(at).join(class);
        fs::create_dir_all(&group).or_else(|error| match error.kind() {
            // Another namespace's daemon has removed a directory above, which was empty.
            io::ErrorKind::NotFound => fs::create_dir_all(&group),
            io::ErrorKind::PermissionDenied => helper::groups(true).and_then(|()| fs::create_dir_all(&group)),
            _ => Err(error),
        })
    }

    /// Makes the directory of all groups, or removes it if it is empty. It takes a right to write where no file says so.
    ///
    /// # Errors
    /// The kernel refuses; a directory that is there, or not there, already is no error.
    pub(crate) fn keep_top(there: bool) -> io::Result<()> {
        let groups = Self::find().map_err(|error| io::Error::other(error.cause))?;
        let top = groups.root.join(TOP);
        match if there { fs::create_dir(top) } else { fs::remove_dir(top) } {
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                Ok(())
            }
            done => done,
        }
    }

    /// The path of a class's group from the root of the hierarchy.
    pub(crate) fn path(at: &Path, class: &str) -> String {
        Path::new("/").join(TOP).join(at).join(class).display().to_string()
    }

    /// Puts a process, with all its threads, into the group of a class.
    ///
    /// # Errors
    /// The kernel refuses, for instance because the process is gone.
    pub(crate) fn enter(&self, at: &Path, class: &str, pid: i32) -> io::Result<()> {
        fs::write(self.directory(at).join(class).join(PROCESSES), pid.to_string())
    }

    /// Removes the group of a class, and those that others made in it; who is there goes to the root. Empty directories
    /// above go, too.
    ///
    /// # Errors
    /// The kernel refuses; a group that is not there is no error.
    pub(crate) fn remove(&self, at: &Path, class: &str) -> io::Result<()> {
        let removed = self.remove_group(&self.directory(at).join(class));
        self.remove_empty(Path::new(TOP).join(at));
        removed
    }

    /// The same for all groups of a bond, those too that a daemon left that died.
    ///
    /// # Errors
    /// As for [`Groups::remove`].
    pub(crate) fn remove_all(&self, at: &Path) -> io::Result<()> {
        let removed = self.remove_group(&self.directory(at));
        let mut above = Path::new(TOP).join(at);
        above.pop();
        self.remove_empty(above);
        removed
    }

    fn remove_empty(&self, mut above: PathBuf) {
        while above.parent().is_some() {
            match fs::remove_dir(self.root.join(&above)) {
                Ok(()) => above.pop(),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    // Others may have groups in it.
                    let _ = helper::groups(false);
                    return;
                }
                Err(_) => return,
            };
        }
    }

    fn remove_group(&self, group: &Path) -> io::Result<()> {
        for entry in fs::read_dir(group).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.remove_group(&entry.path())?;
            }
        }
        let mut tries = 1..=EMPTY_TRIES;
        loop {
            self.empty(group);
            match fs::remove_dir(group) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
                // Somebody in it has started another process meanwhile.
                Err(cause) if cause.kind() == io::ErrorKind::ResourceBusy && tries.next().is_some() => {}
                done => return done,
            }
        }
    }

    /// Moves everybody in a group to the root of the hierarchy, which may always hold processes.
    fn empty(&self, group: &Path) {
        let pids = fs::read_to_string(group.join(PROCESSES)).unwrap_or_default();
        // Those of PID namespaces that cannot be seen from here are 0, and 0 is who writes it: this daemon.
        for pid in pids.lines().filter(|pid| *pid != "0") {
            match fs::write(self.root.join(PROCESSES), pid) {
                Err(error) if error.raw_os_error() != Some(Errno::ESRCH as i32) => {
                    tracing::warn!(pid, %error, "cannot leave its control group");
                }
                _ => {}
            }
        }
    }

    fn directory(&self, at: &Path) -> PathBuf {
        self.root.join(TOP).join(at)
    }
}

/// Where `cgroup2` file systems are mounted.
fn mount_points(mounts: &str) -> impl Iterator<Item = PathBuf> + '_ {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let found = fields.filter(|fields| fields.get(2) == Some(&"cgroup2"));
    found.filter_map(|fields| fields.get(1).map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found_beside_version_1() {
        let hybrid =
            "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let found = |mounts: &str| mount_points(mounts).collect::<Vec<_>>();
        assert_eq!(found(hybrid), [Path::new("/sys/fs/cgroup/unified")]);
        let twice = "cgroup2 /srv/jail/cgroup cgroup2 ro 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        assert_eq!(found(twice), [Path::new("/srv/jail/cgroup"), Path::new("/sys/fs/cgroup")]);
        assert!(found("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n").is_empty());
    }

    #[test]
    fn paths_count_from_the_root_whatever_they_look_like() {
        let scratch = std::env::temp_dir().join(format!("linkbraid-group-{}", std::process::id()));
        fs::create_dir_all(scratch.join("system.slice/ssh.service")).unwrap();
        let groups = Groups { root: scratch.clone() };
        let group = groups.lookup("/system.slice/ssh.service").unwrap();
        assert_eq!(group.level, 2);
        assert_eq!(Some(group), groups.lookup("system.slice//ssh.service/"));
        assert_eq!(groups.lookup("/../system.slice").map(|group| group.level), Some(1));
        assert_eq!(groups.lookup("/nowhere"), None);
        groups.make(Path::new("17/bond0"), "urgent").unwrap();
        assert_eq!(groups.lookup(&Groups::path(Path::new("17/bond0"), "urgent")).map(|g| g.level), Some(4));
        // A container manager in the group has made one of its own.
        fs::create_dir(scratch.join("linkbraid/17/bond0/urgent/box")).unwrap();
        groups.remove(Path::new("17/bond0"), "urgent").unwrap();
        groups.remove(Path::new("17/bond0"), "urgent").unwrap();
        assert!(!scratch.join(TOP).exists(), "a directory is left");
        groups.make(Path::new("17/bond0"), "urgent").unwrap();
        groups.make(Path::new("17/bond1"), "urgent").unwrap();
        groups.remove_all(Path::new("17/bond0")).unwrap();
        groups.remove_all(Path::new("17/bond0")).unwrap();
        assert!(groups.lookup("/linkbraid/17/bond1/urgent").is_some(), "not its group");
        groups.remove_all(Path::new("17/bond1")).unwrap();
        assert!(!scratch.join(TOP).exists(), "a directory is left");
        fs::remove_dir_all(&scratch).unwrap();
    }
}
