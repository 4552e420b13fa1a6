//! Control groups (version 2): those that rules name, and one for each class, which `linkbraid run` puts commands into.
//!
//! A group is known to the data path by its id, which is the inode of its directory (kernfs), and by its depth below
//! the root of the hierarchy. A service that starts anew gets a group of the same path and another id.

use linkbraid_api::Error;
use linkbraid_dataplane::Cgroup;
use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

/// The directory of all groups made here.
const TOP: &str = "linkbraid";
/// The inode of the root of the hierarchy; another one is what a container sees as its root, and its depth is unknown.
const ROOT_INODE: u64 = 1;
/// Where the kernel tells what is mounted.
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
        let root = mount_point(&mounts).ok_or_else(|| {
            Error::new(object, "cannot be used", "no cgroup2 file system is mounted")
                .hint("mount -t cgroup2 cgroup2 /mnt")
        })?;
        match fs::metadata(&root) {
            Ok(found) if found.ino() == ROOT_INODE => Ok(Self { root }),
            _ => Err(Error::new(object, "cannot be used", "a container sees only a part of their hierarchy")
                .hint("cat /proc/self/mountinfo")),
        }
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
        fs::create_dir_all(self.directory(at).join(class))
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
        fs::write(self.directory(at).join(class).join("cgroup.procs"), pid.to_string())
    }

    /// Removes the group of a class; who is in it goes to the root. Empty directories above go, too.
    ///
    /// # Errors
    /// The kernel refuses; a group that is not there is no error.
    pub(crate) fn remove(&self, at: &Path, class: &str) -> io::Result<()> {
        let group = self.directory(at).join(class);
        self.empty(&group);
        let removed = match fs::remove_dir(&group) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        };
        let mut above = Path::new(TOP).join(at);
        while above.parent().is_some() && fs::remove_dir(self.root.join(&above)).is_ok() {
            above.pop();
        }
        removed
    }

    /// Moves everybody in a group to the root of the hierarchy, which may always hold processes.
    fn empty(&self, group: &Path) {
        for pid in fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default().lines() {
            if let Err(error) = fs::write(self.root.join("cgroup.procs"), pid) {
                tracing::warn!(pid, %error, "cannot leave its control group");
            }
        }
    }

    fn directory(&self, at: &Path) -> PathBuf {
        self.root.join(TOP).join(at)
    }
}

/// Where a `cgroup2` file system is mounted.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut found = fields.filter(|fields| fields.get(2) == Some(&"cgroup2"));
    found.next().and_then(|fields| fields.get(1).map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found_beside_version_1() {
        let hybrid =
            "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mount_point(hybrid), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mount_point("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"), Some("/sys/fs/cgroup".into()));
        assert_eq!(mount_point("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"), None);
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
        groups.remove(Path::new("17/bond0"), "urgent").unwrap();
        groups.remove(Path::new("17/bond0"), "urgent").unwrap();
        assert!(!scratch.join(TOP).exists(), "a directory is left");
        fs::remove_dir_all(&scratch).unwrap();
    }
}
