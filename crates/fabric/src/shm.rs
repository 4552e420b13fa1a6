//! `shm:PATH`: nodes of one machine, or machines that share memory (an ivshmem device, say), with a ring for each pair
//! of nodes, direction and queue.
//!
//! `PATH` is a file that whichever node comes first makes ([`join`](Joined)) and the last one removes; locks on it say
//! who is there, so a crash leaves nothing taken. A node that sleeps is woken through a FIFO beside the file: unlike a
//! futex it can be waited for together with a TAP device, and unlike an eventfd it needs no connection to hand it over.
//!
//! `shm:PATH,fixed` uses memory that is there already and whose size is given, such as the `resource2` of an ivshmem
//! device: nothing is made, locked or removed, and no wake-up crosses.
//!
//! What the other nodes do to the memory is survived ([`crate::ring`]), and so is that somebody cuts the file short, writes
//! over it or removes it: the queues then say that they are lost ([`Transport::lost`]). Whoever may do that ends the
//! fabric, so the file must belong to the same user and let nobody else write.

mod fixed;
mod join;
mod layout;
mod port;
mod room;
#[cfg(test)]
mod tests;
mod wake;

pub use layout::Layout;

use crate::{Error, Join, Result, Transport, limits};
use layout::Shape;
use nix::sys::stat::{FileStat, SFlag};
use std::path::PathBuf;

/// The parts of an address that begins with `shm:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    path: PathBuf,
    ring: Option<u64>,
    fixed: bool,
}

impl Place {
    /// Reads `PATH[,ring=SIZE][,fixed]`.
    pub(crate) fn parse(address: &str, rest: &str) -> Result<Self> {
        let refuse = |cause: String| Error::new(address, "cannot use this transport", cause);
        let mut parts = rest.split(',');
        let path = PathBuf::from(parts.next().unwrap_or_default());
        if !path.is_absolute() {
            let cause = format!("'{}' is not an absolute path", path.display());
            return Err(refuse(cause).hint("--transport shm:/run/linkbraid/NAME"));
        }
        let mut place = Self { path, ring: None, fixed: false };
        for option in parts {
            match option.split_once('=') {
                None if option == "fixed" => place.fixed = true,
                Some(("ring", size)) => place.ring = Some(ring_size(size).map_err(refuse)?),
                _ => {
                    let cause = format!("no such option '{option}'; allowed are ring=SIZE and fixed");
                    return Err(refuse(cause).hint("--transport shm:/run/linkbraid/NAME,ring=1M"));
                }
            }
        }
        Ok(place)
    }

    /// Joins, and opens every queue.
    pub(crate) fn open(&self, address: &str, join: &Join) -> Result<Vec<Box<dyn Transport>>> {
        let joined =
            if self.fixed { fixed::join(self, address, join) } else { join::join(self, address, join) }?;
        port::open(joined, address, join)
    }

    /// The shape wanted, with the usual ring where none was asked for.
    fn shape(&self, join: &Join) -> Shape {
        Shape { nodes: join.nodes, queues: join.queues, ring: self.ring_bytes(join) }
    }

    /// Bytes of a ring.
    fn ring_bytes(&self, join: &Join) -> u64 {
        self.ring.unwrap_or_else(|| limits::ring_bytes(join.nodes, join.queues))
    }

    /// Where things lie, by the header if there is one: who made the file may have asked for other rings. Else as if this node
    /// made it; a fixed one may have room for shorter rings only. None if a number is out of range.
    pub(crate) fn layout(&self, join: &Join) -> Option<Layout> {
        let wanted = self.shape(join);
        let agrees = |layout: &Layout| Shape { ring: wanted.ring, ..layout.shape() } == wanted;
        let there = layout::of_file(&self.path).filter(agrees);
        let fits = || {
            let size = std::fs::metadata(&self.path).ok().filter(|_| self.fixed)?.len();
            fixed::fitting(wanted, self.ring.is_some(), size)
        };
        there.or_else(fits).or_else(|| Layout::of(wanted))
    }
}

/// Reads a size such as `512k` or `1M`.
fn ring_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    let size = digits.parse::<u64>().ok().and_then(|size| size.checked_mul(1 << shift));
    size.filter(|size| layout::ring_fits(*size)).ok_or_else(|| {
        format!("ring size '{text}' is not a power of two from {} to {}", layout::RING_MIN, layout::RING_MAX)
    })
}

/// Whether the file may be trusted as far as a file must be: it is ours, and nobody else may cut it short.
fn check_owner(address: &str, stat: &FileStat) -> Result<()> {
    // Any user can make a file in a folder for all; below this one only root can.
    let hint = "--transport shm:/run/linkbraid/NAME";
    let refuse = |cause: String| Err(Error::new(address, "cannot join", cause).hint(hint));
    let own = nix::unistd::geteuid().as_raw();
    if stat.st_uid != own {
        return refuse(format!("the file belongs to user {}, this is user {own}", stat.st_uid));
    }
    if stat.st_mode & 0o022 != 0 {
        return refuse(format!("others may write to the file (mode {:o})", stat.st_mode & 0o777));
    }
    Ok(())
}

/// Whether it is an ordinary file.
fn is_file(stat: &FileStat) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
}
