//! The questions about interfaces that netlink does not answer, asked by name over a socket.
//!
//! sysfs would answer most of them too, but of the namespace that mounted it, which need not be the one this process
//! is in.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::{
    errno::Errno,
    libc,
    sys::socket::{AddressFamily, SockFlag, SockType, socket},
};

/// A socket to ask with. It stays in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Ioctl(OwnedFd);

impl Ioctl {
    /// Opens the socket; a kernel without IPv4 has others.
    pub(crate) fn open() -> Result<Self, Errno> {
        socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .or_else(|_| socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None))
            .map(Self)
    }

    /// One `SIOCETHTOOL` call about the interface `name`; `words` starts with the command and is at least as long as
    /// that command's structure.
    pub(crate) fn ethtool(&self, name: &str, words: &mut [u32]) -> Result<(), Errno> {
        let mut request = about(name).ok_or(Errno::ENODEV)?;
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the kernel reads and writes the structure of the command in words[0]; every caller here hands over
        // a buffer as long as that structure can get, and it lives until the call is over.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
        Errno::result(answer).map(drop)
    }

    /// The index of the interface `name`; none where there is none.
    pub(crate) fn index_of(&self, name: &str) -> Option<u32> {
        let mut request = about(name)?;
        // SAFETY: SIOCGIFINDEX writes the index into `request`, a live ifreq.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCGIFINDEX as _, &raw mut request) };
        // SAFETY: that call succeeded, so the index is the field of the union that was written.
        (answer == 0).then(|| unsafe { request.ifr_ifru.ifru_ifindex }.cast_unsigned())
    }

    /// Whether the interface `name` is there and set up.
    pub(crate) fn is_up(&self, name: &str) -> bool {
        let Some(mut request) = about(name) else { return false };
        // SAFETY: SIOCGIFFLAGS writes the flags into `request`, a live ifreq.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) };
        // SAFETY: if that call succeeded, the flags are the field of the union that was written.
        answer == 0 && unsafe { request.ifr_ifru.ifru_flags } & libc::IFF_UP as i16 != 0
    }

    /// Whether the wireless extensions (which cfg80211 provides too) answer for the interface `name`.
    pub(crate) fn is_wireless(&self, name: &str) -> bool {
        let Some(mut request) = about(name) else { return false };
        // SAFETY: SIOCGIWNAME writes at most sizeof(struct iwreq), 32 bytes, into `request`, a larger and live ifreq.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCGIWNAME as _, &raw mut request) };
        answer == 0
    }
}

/// A request about the interface `name`; none for a name that no interface can have.
fn about(name: &str) -> Option<libc::ifreq> {
    // SAFETY: ifreq is a C structure of bytes, integers and pointers, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Some(request)
}
