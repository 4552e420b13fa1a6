//! A directory whose file is read again while the fabric runs.

use super::{Directory, cannot_read, open_file, words};
use crate::{Error, Join, Result};
use std::{
    fs::{self, Metadata},
    net::SocketAddr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
};

/// What the file says, for all who use it: queues, the fast path, and whoever looks at the file.
#[derive(Debug)]
pub struct Live {
    path: PathBuf,
    join: Join,
    /// Grows with each change.
    version: AtomicU64,
    /// What is known now. Held for no longer than it takes to copy: those who carry frames wait for it.
    directory: Mutex<Arc<Directory>>,
    /// Held while the file is read, and while others are asked whether nodes are up: nobody else may wait for it.
    looking: Mutex<Looking>,
}

#[derive(Debug)]
struct Looking {
    /// The file that was read last, and the one that was there at the last look.
    read: Option<Stamp>,
    seen: Option<Stamp>,
    /// What is wrong with what is there now.
    error: Option<Error>,
    /// Nodes that have no line any more, and whose addresses stay as long as they are up.
    kept: bool,
}

/// By what a file is known to be the same: device and inode, length, and when it was written, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    written: (u64, i64, i64),
}

/// What a look at the file has found.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing new.
    Same,
    /// Nodes have other addresses, or none.
    Changed(Vec<(u16, Option<SocketAddr>)>),
    /// This node has another one: its place has to be taken again.
    Moved(SocketAddr),
    /// It cannot be read, since this look. What was read before stays.
    Refused(Error),
}

impl Live {
    /// Reads the file.
    ///
    /// # Errors
    /// As [`Directory::read`].
    pub fn open(path: &Path, join: &Join) -> Result<Arc<Self>> {
        let (stamp, directory) = read(path, join);
        let looking = Looking { read: stamp, seen: stamp, error: None, kept: false };
        Ok(Self::new(path, join, directory?, looking))
    }

    /// One that was read from elsewhere.
    #[cfg(test)]
    pub(crate) fn of(directory: Directory, join: &Join) -> Arc<Self> {
        let looking = Looking { read: None, seen: None, error: None, kept: false };
        Self::new(Path::new("/nowhere"), join, directory, looking)
    }

    fn new(path: &Path, join: &Join, directory: Directory, looking: Looking) -> Arc<Self> {
        Arc::new(Self {
            path: path.to_owned(),
            join: *join,
            version: AtomicU64::new(0),
            directory: Mutex::new(Arc::new(directory)),
            looking: Mutex::new(looking),
        })
    }

    /// Which change this is; the same as long as nothing does. It never waits.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    /// What is known now. It waits for no look.
    #[must_use]
    pub fn directory(&self) -> Arc<Directory> {
        lock(&self.directory).clone()
    }

    /// What is wrong with the file, if anything is. It waits for a look to end.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        lock(&self.looking).error.clone()
    }

    /// Looks whether the file is another one, and takes over what it says. Who has no line any more keeps the address while `is_up` says
    /// that it is there: a directory can be wrong where a node cannot. A file that is being written is read at the next look.
    pub fn look(&self, is_up: impl Fn(u16) -> bool) -> Look {
        let mut state = lock(&self.looking);
        let known = self.directory();
        let now = fs::metadata(&self.path).ok().map(|data| Stamp::of(&data));
        let seen = std::mem::replace(&mut state.seen, now);
        if now == state.read && !state.kept {
            return Look::Same;
        }
        // One with another name before is whole; one that is written in place is once it stays as it is.
        let is_whole = |now: Stamp| state.read.is_none_or(|read| read.file != now.file) || seen == Some(now);
        if now.is_some_and(|now| now != state.read.unwrap_or(now) && !is_whole(now)) {
            return Look::Same;
        }
        let (stamp, directory) = read(&self.path, &self.join);
        state.read = stamp;
        let mut directory = match directory {
            Ok(directory) => directory,
            Err(error) => {
                state.kept = false;
                let is_known = state.error.replace(error.clone()).as_ref() == Some(&error);
                return if is_known { Look::Same } else { Look::Refused(error) };
            }
        };
        state.error = None;
        if directory.own != known.own {
            return Look::Moved(directory.own);
        }
        let pairs = (0..).zip(known.all.iter().zip(&directory.all));
        let all: Vec<_> = pairs.map(|(node, (old, new))| new.or(old.filter(|_| is_up(node)))).collect();
        state.kept = all != directory.all;
        // Who has the address of such a node now has it.
        match Directory::check(all, &self.join) {
            Ok(with) => directory = with,
            Err(_) => state.kept = false,
        }
        let pairs = (0..).zip(known.all.iter().zip(&directory.all));
        let changed: Vec<_> =
            pairs.filter(|(_, (old, new))| old != new).map(|(node, (_, new))| (node, *new)).collect();
        if changed.is_empty() {
            return Look::Same;
        }
        *lock(&self.directory) = Arc::new(directory);
        self.version.fetch_add(1, Release);
        Look::Changed(changed)
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stamp {
    fn of(data: &Metadata) -> Self {
        Self { file: (data.dev(), data.ino()), written: (data.len(), data.mtime(), data.mtime_nsec()) }
    }
}

/// Reads the file; which one it was.
fn read(path: &Path, join: &Join) -> (Option<Stamp>, Result<Directory>) {
    let open = || {
        let file = open_file(path)?;
        // Before it is read: what is written after that is another one.
        let stamp = Stamp::of(&file.metadata()?);
        Ok((file, stamp))
    };
    match open() {
        Ok((file, stamp)) => (Some(stamp), Directory::read_file(file, path, join)),
        Err(error) => (None, Err(cannot_read(path, words(&error)))),
    }
}

#[cfg(test)]
mod tests;
