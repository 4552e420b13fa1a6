//! Memory that is there already: the BAR of an ivshmem device, or a file of a given size. Nothing is made, locked or
//! removed. The file must be as trustworthy as one that a node makes: ours, and nobody else may cut it short.

use super::{
    Place, check_owner, is_file,
    join::{Joined, agree, named},
    layout::{Header, Layout, RING_MIN, Shape, VERSION, read},
    room::{NoRoom, reserve},
};
use crate::{Error, Join, Result, ring::Map};
use nix::{
    errno::Errno,
    fcntl::{OFlag, open},
    sys::{
        stat::{Mode, fstat},
        statfs::{SYSFS_MAGIC, fstatfs},
    },
};
use std::os::fd::AsFd;

/// Maps it. The first node writes the header: several may at once, all who agree write the same, and whoever does not
/// finds out when it reads the header again.
pub(super) fn join(place: &Place, address: &str, join: &Join) -> Result<Joined> {
    let failed = |errno| Error::system(address, "cannot use the memory", errno);
    let refuse = |cause: String| Error::new(address, "cannot join", cause);
    let how = OFlag::O_RDWR | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = match open(&place.path, how, Mode::empty()) {
        Err(Errno::ELOOP) => return Err(refuse("it is a symbolic link".into())),
        other => other.map_err(failed)?,
    };
    let stat = fstat(&file).map_err(failed)?;
    // A resource of a device is one, too.
    if !is_file(&stat) {
        return Err(refuse("it is not an ordinary file".into()));
    }
    check_owner(address, &stat)?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let bytes = usize::try_from(size).map_err(|_| refuse(format!("it has {size} bytes")))?;
    if size == 0 {
        return Err(refuse("it has 0 bytes".into()));
    }
    // Touching a hole that cannot be filled would fault. A device has memory of its own.
    if fstatfs(&file).map_err(failed)?.filesystem_type() != SYSFS_MAGIC {
        let folder = place.path.parent().unwrap_or(&place.path);
        reserve(&file, size, folder).map_err(|NoRoom { cause, hint }| {
            let cause = format!("not all of its {size} bytes have memory behind them, and {cause}");
            Error::new(address, "cannot use the memory", cause).hint(hint)
        })?;
    }
    let map = Map::file(file.as_fd(), bytes).map_err(failed)?;
    if read(&map) == Header::Blank {
        let layout = fitting(place.shape(join), place.ring.is_some(), size).ok_or_else(|| {
            let least = Layout::new(join.nodes, join.queues, place.ring.unwrap_or(RING_MIN));
            let least = least.map_or(0, |layout| layout.total_bytes());
            refuse(format!(
                "it has {size} bytes; node count {} and queue count {} need {least}",
                join.nodes, join.queues
            ))
        })?;
        layout.write(&map);
    }
    let layout = match read(&map) {
        Header::Good(layout) if layout.total_bytes() <= size => layout,
        Header::Good(layout) => {
            return Err(refuse(format!("it has {size} bytes, its header says {}", layout.total_bytes())));
        }
        Header::Version(version) => {
            return Err(refuse(format!("its contents are of version {version}, this is version {VERSION}")));
        }
        Header::Blank | Header::Foreign | Header::Broken => {
            // A device's memory can only be mapped; whose file it is does the host know.
            let hint = if place.path.starts_with("/sys") {
                "on the host, with the file that is the device's memory: fallocate -p -o 0 -l 4096 FILE"
                    .into()
            } else {
                format!("dd if=/dev/zero of={} bs=4096 count=1 conv=notrunc", place.path.display())
            };
            return Err(refuse("it holds something else".into()).hint(hint));
        }
    };
    agree(layout.shape(), place, join).map_err(refuse)?;
    let path = place.path.clone();
    Ok(Joined { map, layout, file, named: named(&path).ok(), path, fixed: true })
}

/// The largest rings, up to those wanted, for which there is room; exactly those wanted if `exact`.
pub(super) fn fitting(mut shape: Shape, exact: bool, size: u64) -> Option<Layout> {
    loop {
        let layout = Layout::of(shape)?;
        if layout.total_bytes() <= size {
            return Some(layout);
        }
        if exact {
            return None;
        }
        shape.ring /= 2;
    }
}
