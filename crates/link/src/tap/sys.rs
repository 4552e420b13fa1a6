//! The calls to the TUN/TAP driver (linux/if_tun.h) and to the socket that sets what every interface has.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::{
    errno::Errno,
    libc,
    sys::socket::{AddressFamily, SockFlag, SockType, socket},
};

/// A request about one interface.
pub(super) struct IfReq(libc::ifreq);

impl IfReq {
    /// A request about `name`; none for a name that is too long, empty or not text of C.
    pub(super) fn about(name: &str) -> Option<Self> {
        // SAFETY: ifreq is a C structure of bytes, integers and pointers, for which zeros are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains('\0') {
            return None;
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        Some(Self(request))
    }

    fn call(&mut self, fd: &impl AsRawFd, number: libc::Ioctl) -> Result<(), Errno> {
        // SAFETY: every request number that is handed in here reads or writes one ifreq, which is live.
        let answer = unsafe { libc::ioctl(fd.as_raw_fd(), number, &raw mut self.0) };
        Errno::result(answer).map(drop)
    }
}

/// Attaches a file of `/dev/net/tun` as a queue. A new device must not exist before; without it, it is made.
pub(super) fn attach(file: &impl AsRawFd, name: &str, new: bool) -> Result<(), Errno> {
    let mut request = IfReq::about(name).ok_or(Errno::EINVAL)?;
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_MULTI_QUEUE;
    let flags = if new { flags | libc::IFF_TUN_EXCL } else { flags };
    request.0.ifr_ifru.ifru_flags = flags as libc::c_short;
    request.call(file, libc::TUNSETIFF)
}

/// Sets the length of the virtio header, and that its numbers are little-endian on every machine.
pub(super) fn set_header(file: &impl AsRawFd, length: usize) -> Result<(), Errno> {
    let length = libc::c_int::try_from(length).map_err(|_| Errno::EINVAL)?;
    by_pointer(file, libc::TUNSETVNETHDRSZ, length)?;
    by_pointer(file, libc::TUNSETVNETLE, 1)
}

/// Gives or takes the carrier.
pub(super) fn set_carrier(device: &impl AsRawFd, on: bool) -> Result<(), Errno> {
    by_pointer(device, libc::TUNSETCARRIER, on.into())
}

/// Whether the device stays when nobody has it open any more.
pub(super) fn set_kept(device: &impl AsRawFd, on: bool) -> Result<(), Errno> {
    // SAFETY: TUNSETPERSIST takes a number, no pointer.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETPERSIST, libc::c_ulong::from(on)) };
    Errno::result(answer).map(drop)
}

/// Sets what the kernel may leave undone (`TUN_F_*`).
pub(super) fn set_offloads(device: &impl AsRawFd, bits: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: TUNSETOFFLOAD takes a number, no pointer.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(bits)) };
    Errno::result(answer).map(drop)
}

fn by_pointer(fd: &impl AsRawFd, number: libc::Ioctl, value: libc::c_int) -> Result<(), Errno> {
    // SAFETY: every number handed in here reads one int, which is live for the call.
    let answer = unsafe { libc::ioctl(fd.as_raw_fd(), number, &raw const value) };
    Errno::result(answer).map(drop)
}

/// A socket in the namespace that it was opened in.
#[derive(Debug)]
pub(super) struct Control(OwnedFd);

impl Control {
    pub(super) fn open() -> Result<Self, Errno> {
        // A kernel without IPv4 has Unix sockets, which take the same calls.
        socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .or_else(|_| socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None))
            .map(Self)
    }

    pub(super) fn set_mac(&self, request: &mut IfReq, mac: [u8; 6]) -> Result<(), Errno> {
        // SAFETY: sockaddr is a C structure of integers, for which zeros are valid.
        let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
        address.sa_family = libc::ARPHRD_ETHER;
        for (to, from) in address.sa_data.iter_mut().zip(mac) {
            *to = from as libc::c_char;
        }
        request.0.ifr_ifru.ifru_hwaddr = address;
        request.call(&self.0, libc::SIOCSIFHWADDR)
    }

    pub(super) fn set_mtu(&self, request: &mut IfReq, mtu: u32) -> Result<(), Errno> {
        request.0.ifr_ifru.ifru_mtu = libc::c_int::try_from(mtu).map_err(|_| Errno::EINVAL)?;
        request.call(&self.0, libc::SIOCSIFMTU)
    }

    pub(super) fn set_queue_len(&self, request: &mut IfReq, frames: u32) -> Result<(), Errno> {
        // ifr_qlen is the same int of the union as ifr_mtu.
        request.0.ifr_ifru.ifru_mtu = libc::c_int::try_from(frames).map_err(|_| Errno::EINVAL)?;
        request.call(&self.0, libc::SIOCSIFTXQLEN)
    }

    pub(super) fn index(&self, request: &mut IfReq) -> Result<u32, Errno> {
        request.call(&self.0, libc::SIOCGIFINDEX)?;
        // SAFETY: that call succeeded, so the index is the field of the union that was written.
        Ok(unsafe { request.0.ifr_ifru.ifru_ifindex }.cast_unsigned())
    }

    /// A request about the interface `index`, by the name that it has now.
    pub(super) fn named(&self, index: u32) -> Result<IfReq, Errno> {
        // SAFETY: ifreq is a C structure of bytes, integers and pointers, for which zeros are valid.
        let mut request = IfReq(unsafe { std::mem::zeroed() });
        request.0.ifr_ifru.ifru_ifindex = index.cast_signed();
        request.call(&self.0, libc::SIOCGIFNAME)?;
        Ok(request)
    }

    pub(super) fn set_up(&self, request: &mut IfReq, up: bool) -> Result<(), Errno> {
        request.call(&self.0, libc::SIOCGIFFLAGS)?;
        // SAFETY: that call succeeded, so the flags are the field of the union that was written.
        let flags = libc::c_int::from(unsafe { request.0.ifr_ifru.ifru_flags });
        let flags = if up { flags | libc::IFF_UP } else { flags & !libc::IFF_UP };
        request.0.ifr_ifru.ifru_flags = flags as libc::c_short;
        request.call(&self.0, libc::SIOCSIFFLAGS)
    }
}
