//! Sets an interface up or down with one system call, so that a link goes at a known instant.

use linkbraid_api::Error;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::os::fd::AsRawFd;

/// What `ip link set INTERFACE up` does, or `down`, in the network namespace of the calling thread. The program `ip`
/// would take milliseconds to start, tens of them on a busy machine, and nobody could tell when the link went.
pub(crate) fn set_up(interface: &str, up: bool) -> Result<(), Error> {
    let fail = |errno: Errno| {
        let state = if up { "up" } else { "down" };
        Error::new("lab", format!("cannot set '{interface}' {state}"), errno.desc())
    };
    let socket =
        socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).map_err(fail)?;
    // SAFETY: ifreq is a C structure of bytes, integers and pointers, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(fail(Errno::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: netdevice(7): SIOCGIFFLAGS writes ifr_flags of `request`, a live ifreq with a terminated name.
    let got = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) };
    Errno::result(got).map_err(fail)?;
    let flag = libc::IFF_UP as libc::c_short;
    // SAFETY: the call above has filled in this field of the union, and any value of an integer is valid.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = if up { flags | flag } else { flags & !flag };
    // SAFETY: netdevice(7): SIOCSIFFLAGS only reads `request`, whose name and flags are set.
    let set = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    Errno::result(set).map(drop).map_err(fail)
}
