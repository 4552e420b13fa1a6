//! Memory behind a file, taken only where there is enough. A file system that is asked for too much may give all that it
//! has before it says so (ext4 does): until it has taken that back every other program's writes fail. Memory given to a
//! file in memory is nobody else's any more, and what ends then is whatever the kernel chooses.

use crate::{error::words, ring::Map};
use nix::{
    errno::Errno,
    fcntl::{FallocateFlags, fallocate},
    libc,
    sys::{
        stat::fstat,
        statfs::{HUGETLBFS_MAGIC, TMPFS_MAGIC, fstatfs},
        statvfs::fstatvfs,
    },
};
use std::{
    fs,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

/// What `st_blocks` counts in (stat(2)).
const BLOCK_BYTES: u64 = 512;

/// Why there is no room.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoRoom {
    pub cause: String,
    /// A command that shows it.
    pub hint: String,
}

/// Puts memory behind all of the first `bytes` of a file in `folder`, or takes none.
pub(super) fn reserve(file: &OwnedFd, bytes: u64, folder: &Path) -> Result<(), NoRoom> {
    let failed = |errno| NoRoom { cause: words(errno), hint: df(folder) };
    let size = libc::off_t::try_from(bytes).map_err(|_| failed(Errno::EFBIG))?;
    let there = u64::try_from(fstat(file).map_err(failed)?.st_blocks).unwrap_or(0);
    let missing = bytes.saturating_sub(there.saturating_mul(BLOCK_BYTES));
    let kind = fstatfs(file).map_err(failed)?.filesystem_type();
    let available = if kind == TMPFS_MAGIC { available() } else { None };
    enough(missing, left(file).map_err(failed)?, available, folder)?;
    // A mapping of huge pages has all of them set aside for the file, or none; they stay the file's.
    if kind == HUGETLBFS_MAGIC {
        let mapped = usize::try_from(bytes).map_err(|_| Errno::ENOMEM);
        let mapped = mapped.and_then(|bytes| Map::file(file.as_fd(), bytes));
        mapped.map_err(|errno| NoRoom { cause: words(errno), hint: "grep Huge /proc/meminfo".into() })?;
    }
    fallocate(file, FallocateFlags::empty(), 0, size).map_err(failed)
}

/// Whether so many bytes are `left` on the file system and `available` in memory, as far as either limits them.
fn enough(missing: u64, left: Option<u64>, available: Option<u64>, folder: &Path) -> Result<(), NoRoom> {
    if let Some(left) = left.filter(|left| *left < missing) {
        let cause = format!("{} has {left} bytes left", folder.display());
        return Err(NoRoom { cause, hint: df(folder) });
    }
    if let Some(available) = available.filter(|available| *available < missing) {
        let cause = format!("the machine has {available} bytes of memory left");
        return Err(NoRoom { cause, hint: "free -b".into() });
    }
    Ok(())
}

fn df(folder: &Path) -> String {
    format!("df -h {}", folder.display())
}

/// Bytes that a file system has left. None where nothing limits it but the machine (tmpfs with `size=0`, huge pages).
fn left(file: &OwnedFd) -> Result<Option<u64>, Errno> {
    let system = fstatvfs(file)?;
    let limited = system.blocks() > 0;
    Ok(limited.then(|| system.blocks_available().saturating_mul(system.fragment_size())))
}

/// Bytes of memory that can be had without swapping (proc_meminfo(5)). None if the kernel does not say.
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::{
        fcntl::{OFlag, open},
        sys::stat::Mode,
    };

    #[test]
    fn what_does_not_fit_is_refused_and_names_the_limit() {
        let folder = Path::new("/dev/shm");
        let said = |missing, left, available| {
            enough(missing, left, available, folder).map_err(|NoRoom { cause, hint }| (cause, hint))
        };
        let refused = |cause: &str, hint: &str| Err((cause.to_owned(), hint.to_owned()));
        assert_eq!(said(8, Some(8), Some(8)), Ok(()));
        assert_eq!(said(u64::MAX, None, None), Ok(()));
        assert_eq!(said(8, Some(7), Some(9)), refused("/dev/shm has 7 bytes left", "df -h /dev/shm"));
        assert_eq!(said(8, Some(9), Some(7)), refused("the machine has 7 bytes of memory left", "free -b"));
    }

    #[test]
    fn what_is_reserved_has_memory_and_what_is_refused_took_none() {
        let folder = Path::new("/dev/shm");
        let how = OFlag::O_RDWR | OFlag::O_CLOEXEC | OFlag::O_TMPFILE;
        let file = open(folder, how, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let bytes = |file: &OwnedFd| u64::try_from(fstat(file).unwrap().st_blocks).unwrap() * BLOCK_BYTES;
        let refusal = reserve(&file, 1 << 60, folder).unwrap_err();
        assert!(refusal.cause.ends_with(" left"), "{refusal:?}");
        assert_eq!(bytes(&file), 0);
        assert_eq!(reserve(&file, 1 << 20, folder), Ok(()));
        assert_eq!(bytes(&file), 1 << 20);
        assert!(available().is_some_and(|bytes| bytes > 1 << 20), "the kernel says how much there is");
    }
}
