//! One queue of a TAP device: frames out of the kernel and into it.

use std::{
    fs::File,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

use nix::{errno::Errno, libc};

use super::VNET_HDR_LEN;

/// One queue. Reading and writing never wait; poll its descriptor for reading to wait for frames.
#[derive(Debug)]
pub struct TapQueue(File);

/// Why the kernel did not take or give a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapRefusal {
    /// The interface is set down (`EIO`).
    Down,
    /// Somebody removed the interface (`EBADFD`).
    Gone,
    /// The kernel finds the header or the frame wrong (`EINVAL`).
    BadFrame,
    /// The kernel has no memory for the frame just now (`ENOMEM`, `ENOBUFS`, `EAGAIN`).
    NoMemory,
    /// Another error of the kernel.
    Other(Errno),
}

impl TapRefusal {
    /// The refusal that an errno of a read or write stands for.
    #[must_use]
    pub fn of(errno: Errno) -> Self {
        match errno {
            Errno::EIO => Self::Down,
            Errno::EBADFD | Errno::ENODEV => Self::Gone,
            Errno::EINVAL => Self::BadFrame,
            Errno::ENOMEM | Errno::ENOBUFS | Errno::EAGAIN => Self::NoMemory,
            other => Self::Other(other),
        }
    }
}

impl TapQueue {
    pub(super) fn new(file: File) -> Self {
        Self(file)
    }

    /// Takes the next frame, with its header in front, into `buffer`; its length with the header, or none where
    /// nothing waits. A buffer of [`VNET_HDR_LEN`] + [`TAP_FRAME_MAX`](super::TAP_FRAME_MAX) bytes holds every frame.
    ///
    /// # Errors
    /// [`TapRefusal::Gone`] when the interface is removed.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>, TapRefusal> {
        // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`, which is ours for the call.
        let got = unsafe { libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        if got < 0 {
            return match Errno::last() {
                Errno::EAGAIN | Errno::EINTR => Ok(None),
                errno => Err(TapRefusal::of(errno)),
            };
        }
        // The kernel leaves num_buffers as it was in the buffer.
        if let Some(unused) = buffer.get_mut(VNET_HDR_LEN - 2..VNET_HDR_LEN) {
            unused.fill(0);
        }
        Ok(Some(got.cast_unsigned()))
    }

    /// Gives the kernel one frame, as if it had come in on the interface.
    ///
    /// # Errors
    /// Why the frame did not go in; the queue stays usable.
    pub fn write(&self, header: &[u8; VNET_HDR_LEN], frame: &[u8]) -> Result<(), TapRefusal> {
        let parts = [
            libc::iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: header.len() },
            libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() },
        ];
        // SAFETY: both parts are live for the call and the kernel only reads them.
        let put = unsafe { libc::writev(self.0.as_raw_fd(), parts.as_ptr(), 2) };
        if put < 0 { Err(TapRefusal::of(Errno::last())) } else { Ok(()) }
    }
}

impl AsFd for TapQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<TapQueue> for std::os::fd::OwnedFd {
    fn from(queue: TapQueue) -> Self {
        queue.0.into()
    }
}
