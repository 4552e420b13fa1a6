//! Which interfaces are members, said to other programs: a file for each in a folder, `NAME` with the name of the bond, and an
//! event for udev. Its rule (`dist/82-linkbraid.rules`) has managers of networks leave alone what has such a file; the scripts of
//! ifupdown look for the file themselves.
//!
//! The files stay while no daemon runs, as members do. A boot removes them.

use linkbraid_proto::Time;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// What the rule gives to a member, as udev has it on file.
const PROPERTY: &str = "E:ID_NET_MANAGED_BY=linkbraid";
/// Where udev has its files on interfaces, by their indexes.
const UDEV: &str = "/run/udev/data";
/// Where the kernel takes commands that are about interfaces.
const INTERFACES: &str = "/sys/class/net";
/// How long udev may take; it is not there, or lacks the rule, after that.
const UDEV_TIME: Duration = Duration::from_secs(2);
/// How often it is looked whether it is done.
const LOOK: Duration = Duration::from_millis(50);

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub bond: String,
    /// Of its interface, where that is there.
    pub index: Option<u32>,
}

/// The files.
pub(crate) struct Marks {
    folder: PathBuf,
    /// By the names of their interfaces; none before the first look.
    on_file: Option<BTreeMap<String, Mark>>,
    /// Until when udev may take to follow.
    waits_until: Option<Time>,
}

impl Marks {
    /// Those in this folder, which need not be there.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, on_file: None, waits_until: None }
    }

    /// Has a mark on these interfaces and on no other one.
    pub(crate) fn keep(&mut self, now: Time, wanted: &BTreeMap<String, Mark>) {
        if self.on_file.as_ref() == Some(wanted) {
            return;
        }
        // What an earlier daemon left.
        let before = self.on_file.take().unwrap_or_else(|| read(&self.folder));
        if let Err(error) = self.write(&before, wanted) {
            tracing::warn!(%error, folder = %self.folder.display(), "managers of networks may take members");
        }
        for (name, mark) in before.iter().chain(wanted) {
            if before.get(name) == wanted.get(name) {
                continue;
            }
            let index = wanted.get(name).unwrap_or(mark).index;
            if tell_udev(name, index) && Path::new(UDEV).exists() {
                self.waits_until = Some(now + UDEV_TIME);
            }
        }
        self.on_file = Some(wanted.clone());
    }

    /// Whether udev has followed, or never will.
    pub(crate) fn are_known(&mut self, now: Time) -> bool {
        let Some(until) = self.waits_until else { return true };
        let is_known = |index: &u32| {
            fs::read_to_string(Path::new(UDEV).join(format!("n{index}")))
                .is_ok_and(|text| text.lines().any(|line| line == PROPERTY))
        };
        let mut marked = self.on_file.iter().flatten().filter_map(|(_, mark)| mark.index);
        if now >= until || marked.all(|index| is_known(&index)) {
            self.waits_until = None;
        }
        self.waits_until.is_none()
    }

    /// When to look again whether it has.
    pub(crate) fn wake(&self, now: Time) -> Option<Time> {
        self.waits_until.map(|until| until.min(now + LOOK))
    }

    fn write(&self, before: &BTreeMap<String, Mark>, wanted: &BTreeMap<String, Mark>) -> io::Result<()> {
        if !wanted.is_empty() {
            fs::create_dir_all(&self.folder)?;
        }
        for (name, Mark { bond, .. }) in wanted {
            if before.get(name).is_none_or(|mark| mark.bond != *bond) {
                fs::write(self.folder.join(name), format!("{bond}\n"))?;
            }
        }
        for name in before.keys().filter(|name| !wanted.contains_key(*name)) {
            match fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        // So that what is left of a daemon without bonds is an empty folder of states.
        if wanted.is_empty() && self.folder.exists() {
            fs::remove_dir(&self.folder)?;
        }
        Ok(())
    }
}

/// The marks in a folder; which interfaces they were for, nobody knows any more.
fn read(folder: &Path) -> BTreeMap<String, Mark> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let bond = fs::read_to_string(entry.path()).ok()?.trim().to_owned();
        Some((entry.file_name().into_string().ok()?, Mark { bond, index: None }))
    });
    named.collect()
}

/// Has udev look at an interface again; whether it will. Another namespace may have one of that name.
fn tell_udev(name: &str, index: Option<u32>) -> bool {
    let folder = Path::new(INTERFACES).join(name);
    let is = fs::read_to_string(folder.join("ifindex")).ok().and_then(|text| text.trim().parse().ok());
    let is_it = is.is_some() && (index.is_none() || index == is);
    is_it && fs::write(folder.join("uevent"), "change").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, process};

    #[test]
    fn files_are_those_of_the_members_and_the_folder_goes_with_the_last_one() {
        let folder = env::temp_dir().join(format!("linkbraid-marks-{}", process::id()));
        let mark = |bond: &str| Mark { bond: bond.into(), index: Some(u32::MAX) };
        let names = || read(&folder).into_iter().map(|(name, mark)| (name, mark.bond)).collect::<Vec<_>>();
        let all = |marks: &[(&str, &str)]| {
            marks.iter().map(|(name, bond)| (String::from(*name), mark(bond))).collect::<BTreeMap<_, _>>()
        };
        let pairs = |marks: &[(&str, &str)]| {
            marks.iter().map(|(name, bond)| (String::from(*name), String::from(*bond))).collect::<Vec<_>>()
        };
        let mut marks = Marks::new(folder.clone());
        marks.keep(Time::ZERO, &all(&[]));
        assert!(!folder.exists());
        let first = [("lb-none0", "bond0"), ("lb-none1", "bond0")];
        marks.keep(Time::ZERO, &all(&first));
        assert_eq!(names(), pairs(&first));
        assert!(marks.are_known(Time::ZERO), "nobody was told of interfaces that are not there");
        // A later daemon.
        let mut marks = Marks::new(folder.clone());
        let second = [("lb-none1", "bond1"), ("lb-none2", "bond0")];
        marks.keep(Time::ZERO, &all(&second));
        assert_eq!(names(), pairs(&second));
        marks.keep(Time::ZERO, &all(&[]));
        assert!(!folder.exists());
    }
}
