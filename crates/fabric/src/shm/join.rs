//! Who is there: a file that the first node makes and the last one removes.
//!
//! Locks of the open file (`F_OFD_SETLK`) on bytes of the file, which the kernel gives back however a process ends:
//!
//! | byte | held | by |
//! |---|---|---|
//! | 0 | shared | every node that is there |
//! | 0 | exclusive | whoever makes the file again or removes it |
//! | 1 + N | exclusive | node N |
//!
//! A file appears under its name whole and locked (made without a name, then linked), so nobody sees half of one. Whoever
//! got a lock on byte 0 looks whether the file still is the one of that name, and starts over if not.

use super::{
    Place, check_owner, is_file,
    layout::{HEADER_BYTES, Header, Layout, Shape, VERSION, read},
    room::{NoRoom, reserve},
};
use crate::{
    Error, Join, Loss, Result,
    limits::{JOIN_LOCK_LOOK, JOIN_LOCK_MAX, JOIN_TRIES},
    ring::Map,
};
use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags, FcntlArg, OFlag, fcntl, open},
    libc,
    sys::{
        stat::{Mode, fstat, lstat},
        statfs::{HUGETLBFS_MAGIC, fstatfs},
    },
    unistd::{linkat, unlink},
};
use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// The shared memory of a node that joined; gives up the node's place when dropped.
pub(super) struct Joined {
    pub map: Arc<Map>,
    pub layout: Layout,
    /// Holds the locks, where there are any.
    pub file: OwnedFd,
    pub path: PathBuf,
    /// Which file had the name.
    pub named: Option<Identity>,
    /// The memory was there before all nodes: no locks, no wake-ups, and nothing is removed.
    pub fixed: bool,
}

/// Device and number of a file.
pub(super) type Identity = (libc::dev_t, libc::ino_t);

/// Which file has the name now.
pub(super) fn named(path: &Path) -> Result<Identity, Errno> {
    lstat(path).map(|named| (named.st_dev, named.st_ino))
}

impl Joined {
    /// Beside which file the FIFOs for wake-ups lie; none where no wake-up crosses.
    pub(super) fn wakes_beside(&self) -> Option<&Path> {
        (!self.fixed).then_some(self.path.as_path())
    }

    /// Whether the memory is no longer the one that was joined, or not that of whoever joins now.
    pub(super) fn look(&self) -> Option<Loss> {
        let size = fstat(&self.file).map(|stat| u64::try_from(stat.st_size).unwrap_or(0));
        if size.is_ok_and(|size| size < self.map.len() as u64) {
            return Some(Loss::Cut);
        }
        // Cut short and made as long as before, or made new for others.
        let header = read(&self.map);
        if self.map.is_lost() {
            return Some(Loss::Cut);
        }
        if !matches!(header, Header::Good(layout) if layout == self.layout) {
            return Some(Loss::Overwritten);
        }
        match named(&self.path) {
            Ok(now) => self.named.is_some_and(|named| named != now).then_some(Loss::Removed),
            // Where nothing can be made again, the nodes that are there continue.
            Err(Errno::ENOENT | Errno::ENOTDIR) if !self.fixed => Some(Loss::Removed),
            Err(_) => None,
        }
    }
}

/// A file just opened.
struct Found {
    file: OwnedFd,
    /// Made by this node, which holds the shared lock already.
    made: bool,
}

/// Joins, and makes the file if need be.
pub(super) fn join(place: &Place, address: &str, join: &Join) -> Result<Joined> {
    let wanted = place.shape(join);
    for _ in 0..JOIN_TRIES {
        let found = match find(&place.path) {
            Ok(Some(file)) => Some(Found { file, made: false }),
            Ok(None) => make(&place.path, wanted, address)?.map(|file| Found { file, made: true }),
            Err(Errno::ELOOP) => return Err(Error::new(address, "cannot join", "it is a symbolic link")),
            Err(errno) => return Err(Error::system(address, "cannot open the shared memory", errno)),
        };
        if let Some(found) = found
            && let Some(joined) = enter(found, place, address, join)?
        {
            return Ok(joined);
        }
    }
    Err(Error::new(address, "cannot join", "other nodes keep making and removing the file"))
}

fn find(path: &Path) -> Result<Option<OwnedFd>, Errno> {
    let how = OFlag::O_RDWR | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    match open(path, how, Mode::empty()) {
        Err(Errno::ENOENT) => Ok(None),
        other => other.map(Some),
    }
}

/// Makes the file. None if somebody else was first.
fn make(path: &Path, wanted: Shape, address: &str) -> Result<Option<OwnedFd>> {
    let failed = |errno| Error::system(address, "cannot make the shared memory", errno);
    let layout = Layout::of(wanted).ok_or_else(|| failed(Errno::EINVAL))?;
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    let how = OFlag::O_RDWR | OFlag::O_CLOEXEC | OFlag::O_TMPFILE;
    let file = open(folder, how, Mode::S_IRUSR | Mode::S_IWUSR).map_err(failed)?;
    let total = file_bytes(&file, layout.total_bytes()).map_err(failed)?;
    // Touching memory of a file without room would fault.
    reserve(&file, total, folder).map_err(|NoRoom { cause, hint }| {
        let Shape { nodes, queues, .. } = wanted;
        let cause = format!("node count {nodes} and queue count {queues} need {total} bytes, and {cause}");
        Error::new(address, "cannot make the shared memory", cause).hint(hint)
    })?;
    let map = Map::file(file.as_fd(), total as usize).map_err(failed)?;
    if !layout.write(&map) || !lock(&file, libc::F_RDLCK, 0).map_err(failed)? {
        return Err(failed(Errno::EIO));
    }
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    match linkat(AT_FDCWD, unnamed.as_str(), AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW) {
        Err(Errno::EEXIST) => Ok(None),
        other => other.map(|()| Some(file)).map_err(failed),
    }
}

/// The size that the file must have for so many bytes: whole huge pages where it lies on those.
fn file_bytes(file: &OwnedFd, bytes: u64) -> Result<u64, Errno> {
    let system = fstatfs(file)?;
    let unit = if system.filesystem_type() == HUGETLBFS_MAGIC { system.block_size() as u64 } else { 1 };
    Ok(bytes.next_multiple_of(unit.max(1)))
}

/// Takes the node's place in the file. None if the file went away, or was of nobody and is now removed.
fn enter(found: Found, place: &Place, address: &str, join: &Join) -> Result<Option<Joined>> {
    let Found { file, made } = found;
    let failed = |errno| Error::system(address, "cannot join", errno);
    let refuse = |cause: String| Error::new(address, "cannot join", cause);
    let (map, layout) = inspect(&file, address).map_err(|error| {
        let other = format!("--transport shm:{}-2", place.path.display());
        if error.hint.is_none() { error.hint(other) } else { error }
    })?;
    // Nobody there: what a crash of all left behind.
    if !made && lock(&file, libc::F_WRLCK, 0).map_err(failed)? {
        if is_named(&file, &place.path) {
            remove(&place.path, layout.shape());
        }
        return Ok(None);
    }
    // Whoever holds it exclusively is about to be done, unless he was stopped: he must not stop us, too.
    let begin = Instant::now();
    while !lock(&file, libc::F_RDLCK, 0).map_err(failed)? {
        if begin.elapsed() > JOIN_LOCK_MAX {
            let seconds = JOIN_LOCK_MAX.as_secs();
            return Err(refuse(format!("another process has been making or removing it for {seconds} s")));
        }
        std::thread::sleep(JOIN_LOCK_LOOK);
    }
    if !is_named(&file, &place.path) {
        return Ok(None);
    }
    agree(layout.shape(), place, join).map_err(refuse)?;
    if !lock(&file, libc::F_WRLCK, 1 + i64::from(join.node)).map_err(failed)? {
        return Err(refuse(format!("another process is node {} of it", join.node)));
    }
    map.wish_huge_pages();
    let path = place.path.clone();
    Ok(Some(Joined { map, layout, file, named: named(&path).ok(), path, fixed: false }))
}

/// Maps the file and reads its header, if it is one that can be trusted.
fn inspect(file: &OwnedFd, address: &str) -> Result<(Arc<Map>, Layout)> {
    let failed = |errno| Error::system(address, "cannot join", errno);
    let refuse = |cause: String| Error::new(address, "cannot join", cause);
    let stat = fstat(file).map_err(failed)?;
    if !is_file(&stat) {
        return Err(refuse("it is not an ordinary file".into()));
    }
    check_owner(address, &stat)?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let bytes = usize::try_from(size).ok().filter(|bytes| *bytes >= HEADER_BYTES);
    let Some(bytes) = bytes else {
        return Err(refuse(format!("the file has {size} bytes and is not that of a fabric")));
    };
    let map = Map::file(file.as_fd(), bytes).map_err(failed)?;
    match read(&map) {
        Header::Good(layout) if file_bytes(file, layout.total_bytes()).map_err(failed)? == size => {
            Ok((map, layout))
        }
        Header::Good(layout) => {
            Err(refuse(format!("the file has {size} bytes, its header says {}", layout.total_bytes())))
        }
        Header::Version(version) => {
            Err(refuse(format!("the file is of version {version}, this is version {VERSION}")))
        }
        Header::Broken => Err(refuse("the header of the file is invalid".into())),
        Header::Blank | Header::Foreign => Err(refuse("the file is not that of a fabric".into())),
    }
}

/// Whether what others made is what is wanted here.
pub(super) fn agree(shape: Shape, place: &Place, join: &Join) -> Result<(), String> {
    let differs = |what: &str, theirs: u64, ours: u64| {
        Err(format!("it was made with {what} {theirs}, this node has {what} {ours}"))
    };
    if shape.nodes != join.nodes {
        return differs("node count", shape.nodes.into(), join.nodes.into());
    }
    if shape.queues != join.queues {
        return differs("queue count", shape.queues.into(), join.queues.into());
    }
    match place.ring {
        Some(ring) if ring != shape.ring => differs("ring size", shape.ring, ring),
        _ => Ok(()),
    }
}

/// Locks one byte of the file for as long as the file is open. False if somebody else holds it.
fn lock(file: &OwnedFd, kind: libc::c_int, at: i64) -> Result<bool, Errno> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&byte(kind, at))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn byte(kind: libc::c_int, at: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: at,
        l_len: 1,
        l_pid: 0,
    }
}

/// Whether the open file is the one that now has the name.
fn is_named(file: &OwnedFd, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (fstat(file), lstat(path)) else { return false };
    (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino)
}

/// Removes the file and the FIFOs beside it.
fn remove(path: &Path, shape: Shape) {
    for node in 0..shape.nodes {
        for queue in 0..shape.queues {
            let _ = unlink(&super::wake::path(path, node, queue));
        }
    }
    let _ = unlink(path);
}

impl Drop for Joined {
    fn drop(&mut self) {
        if self.fixed {
            return;
        }
        let (file, path) = (&self.file, &self.path);
        let all = libc::flock { l_len: 0, ..byte(libc::F_UNLCK, 0) };
        // Twice: of two that leave at once each may see the other's lock at first; whoever gives his up last sees none then.
        for _ in 0..2 {
            // The last one: nobody else holds the shared lock. Whoever opens the file now finds another name or none.
            if lock(file, libc::F_WRLCK, 0) == Ok(true) && is_named(file, path) {
                remove(path, self.layout.shape());
            }
            // Not left to the end of the open file: a child that was forked just now holds that, too, until it runs.
            let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&all));
        }
    }
}
