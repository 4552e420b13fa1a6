//! A connection by MPTCP: std has no sockets of that protocol.

use nix::libc;
use nix::sys::socket::{self, Backlog, SockaddrIn, setsockopt, sockopt};
use nix::sys::time::TimeVal;
use std::io;
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A socket that listens at an address, on the host whose namespace the caller is in.
pub(super) fn listen(at: SocketAddrV4) -> io::Result<TcpListener> {
    let socket = socket()?;
    socket::bind(socket.as_raw_fd(), &SockaddrIn::from(at))?;
    socket::listen(&socket, Backlog::new(1)?)?;
    Ok(socket.into())
}

/// A socket that is connected to an address within a limit of whole seconds, likewise.
pub(super) fn connect(to: SocketAddrV4, limit: Duration) -> io::Result<TcpStream> {
    let socket = socket()?;
    // connect(2) of a blocking socket waits for no longer than this.
    setsockopt(&socket, sockopt::SendTimeout, &TimeVal::new(limit.as_secs().cast_signed(), 0))?;
    socket::connect(socket.as_raw_fd(), &SockaddrIn::from(to))?;
    Ok(socket.into())
}

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: a system call on numbers alone. It is missing in nix's list of protocols.
    let number =
        unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, libc::IPPROTO_MPTCP) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
