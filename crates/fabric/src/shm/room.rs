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

/// Why there is none.
pub(super) struct NoRoom {
    pub cause: String,
    /// A command that shows it.
    pub hint: String,
}

/// Puts memory behind all of the first `bytes` of a file in `folder`, or takes none.
pub(super) fn reserve(file: &OwnedFd, bytes: u64, folder: &Path) -> Result<(), NoRoom> {
    let df = || format!("df -h {}", folder.display());
    let failed = |errno| NoRoom { cause: words(errno), hint: df() };
    let size = libc::off_t::try_from(bytes).map_err(|_| failed(Errno::EFBIG))?;
    let there = u64::try_from(fstat(file).map_err(failed)?.st_blocks).unwrap_or(0);
    let missing = bytes.saturating_sub(there.saturating_mul(BLOCK_BYTES));
    let left = left(file).map_err(failed)?.unwrap_or(missing);
    if left < missing {
        let cause = format!("{} has {left} bytes left", folder.display());
        return Err(NoRoom { cause, hint: df() });
    }
    let kind = fstatfs(file).map_err(failed)?.filesystem_type();
    if kind == TMPFS_MAGIC {
        let available = available().unwrap_or(missing);
        if available < missing {
            let cause = format!("the machine has {available} bytes of memory left");
            return Err(NoRoom { cause, hint: "free -h".into() });
        }
    }
    // A mapping of huge pages has all of them set aside for the file, or none; they stay the file's.
    if kind == HUGETLBFS_MAGIC {
        let mapped = usize::try_from(bytes).map_err(|_| Errno::ENOMEM);
        let mapped = mapped.and_then(|bytes| Map::file(file.as_fd(), bytes));
        mapped.map_err(|errno| NoRoom { cause: words(errno), hint: "grep Huge /proc/meminfo".into() })?;
    }
    fallocate(file, FallocateFlags::empty(), 0, size).map_err(failed)
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
