//! Wake-ups between processes: a FIFO for every queue of a node, beside the shared memory.

use crate::{Error, Result};
use nix::{
    errno::Errno,
    fcntl::{OFlag, open},
    sys::stat::{Mode, SFlag, fstat, lstat},
    unistd::{geteuid, mkfifo, read, write},
};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

/// Wake-ups taken off the FIFO at once; more than these only make the next sleep short.
const DRAIN_BYTES: usize = 256;

/// The FIFO of one queue of a node.
pub(super) fn path(beside: &Path, node: u16, queue: u16) -> PathBuf {
    let mut name = beside.as_os_str().to_owned();
    name.push(format!(".wake-{node}-{queue}"));
    name.into()
}

/// Opens a FIFO for reading and writing, so that it never ends because the other side is missing. It must belong to this user.
fn open_fifo(path: &Path) -> Result<OwnedFd, Errno> {
    let how = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let fifo = open(path, how, Mode::empty())?;
    let stat = fstat(&fifo)?;
    let is_fifo = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFIFO;
    if is_fifo && stat.st_uid == geteuid().as_raw() { Ok(fifo) } else { Err(Errno::EACCES) }
}

/// The end that is woken.
pub(super) struct Sleeper {
    fifo: OwnedFd,
    path: PathBuf,
}

impl Sleeper {
    /// Makes the FIFO if it is not there.
    pub(super) fn open(beside: &Path, node: u16, queue: u16, address: &str) -> Result<Self> {
        let path = path(beside, node, queue);
        let made = match mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR) {
            Ok(()) | Err(Errno::EEXIST) => open_fifo(&path),
            Err(errno) => Err(errno),
        };
        match made {
            Ok(fifo) => Ok(Self { fifo, path }),
            Err(errno) => {
                let what = format!("cannot make '{}' for wake-ups", path.display());
                Err(Error::system(address, what, errno).hint(format!("ls -l {}", path.display())))
            }
        }
    }

    /// Whether those who want to wake this one still find it: false if somebody removed the FIFO.
    pub(super) fn is_named(&self) -> bool {
        match (fstat(&self.fifo), lstat(&self.path)) {
            (Ok(open), Ok(named)) => (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino),
            (_, Err(Errno::ENOENT | Errno::ENOTDIR)) => false,
            // If the system does not report it now, it counts as unchanged.
            _ => true,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fifo.as_fd()
    }

    /// Takes the wake-ups off.
    pub(super) fn drain(&self) {
        let _ = read(&self.fifo, &mut [0; DRAIN_BYTES]);
    }
}

/// The end that wakes a peer.
pub(super) struct Waker {
    path: PathBuf,
    fifo: Option<OwnedFd>,
}

impl Waker {
    pub(super) fn new(beside: &Path, peer: u16, queue: u16) -> Self {
        Self { path: path(beside, peer, queue), fifo: None }
    }

    /// Looks for the FIFO again when it is needed next.
    pub(super) fn forget(&mut self) {
        self.fifo = None;
    }

    /// Wakes the peer. If that does not succeed (it just left; its FIFO is full of wake-ups), its sleep ends by itself.
    pub(super) fn wake(&mut self) {
        if self.fifo.is_none() {
            self.fifo = open_fifo(&self.path).ok();
        }
        if let Some(fifo) = &self.fifo {
            let _ = write(fifo, &[1]);
        }
    }
}
