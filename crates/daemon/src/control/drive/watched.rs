//! What the thread waits for.

use std::{io, os::fd::AsRawFd};
use tokio::io::{Interest, unix::AsyncFd};

/// # Safety
/// It owns its descriptor, and gives the same one at every call.
pub(super) unsafe fn watched<T: AsRawFd>(of: T) -> io::Result<AsyncFd<T>> {
    // SAFETY: so says the caller; it lives in the AsyncFd.
    unsafe { AsyncFd::register_with_interest(of, Interest::READABLE) }.map_err(io::Error::from)
}
