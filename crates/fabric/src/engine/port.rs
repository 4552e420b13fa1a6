//! The interface as the engine sees it: a queue of frames, each behind its virtio header.

use crate::Bytes;
use linkbraid_wire::fabric::VIRTIO_LEN;
use nix::errno::Errno;
use std::os::fd::{AsFd, BorrowedFd};

/// Why the interface did not take or give a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortRefusal {
    /// It is set down.
    Down,
    /// Somebody removed it.
    Gone,
    /// It does not want this frame, or not now.
    Frame,
}

impl PortRefusal {
    /// As TAP devices mean it (drivers/net/tun.c).
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::EIO => Self::Down,
            Errno::EBADFD | Errno::ENODEV => Self::Gone,
            _ => Self::Frame,
        }
    }
}

/// One queue of the interface. Nothing here waits.
pub trait Port: Send {
    /// Takes the next frame, its virtio header in front, into `buffer`; the length of both, or none where nothing waits.
    ///
    /// # Errors
    /// Why it cannot.
    fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, PortRefusal>;

    /// Gives the interface a frame that came in: the virtio header and the start of the frame as they were judged, and what follows,
    /// which the peer may still change.
    ///
    /// # Errors
    /// Why it was not taken.
    fn write(&mut self, head: &[u8], rest: Bytes<'_>) -> Result<(), PortRefusal>;

    /// Becomes readable when a frame waits.
    fn wake_fd(&self) -> BorrowedFd<'_>;
}

/// A queue of a TAP device with virtio headers of 12 bytes, little-endian; non-blocking.
#[derive(Debug)]
pub struct TapPort<F>(F);

impl<F: AsFd + Send> TapPort<F> {
    /// The queue behind a descriptor.
    pub fn new(queue: F) -> Self {
        Self(queue)
    }
}

impl<F: AsFd + Send> Port for TapPort<F> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, PortRefusal> {
        match nix::unistd::read(self.0.as_fd(), buffer) {
            Ok(len) => {
                // The kernel leaves num_buffers as it was in the buffer.
                if let Some(unused) = buffer.get_mut(VIRTIO_LEN - 2..VIRTIO_LEN) {
                    unused.fill(0);
                }
                Ok(Some(len))
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(errno) => Err(PortRefusal::of(errno)),
        }
    }

    fn write(&mut self, head: &[u8], rest: Bytes<'_>) -> Result<(), PortRefusal> {
        match rest.write_after(self.0.as_fd(), head) {
            Ok(_) => Ok(()),
            Err(error) => {
                Err(PortRefusal::of(Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EINVAL))))
            }
        }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
