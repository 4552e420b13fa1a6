//! One packet socket that sends whole frames out of any interface.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::{
    errno::Errno,
    libc,
    sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt::Priority},
};

use crate::error::{Error, Kind, Result};

/// Above all classes that applications reach without `CAP_NET_ADMIN` (0 to 6): protocol frames overtake payload.
const PRIORITY: libc::c_int = 7;

/// The outcome of sending a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Handed to the interface's queue.
    Queued,
    /// The queue was full: the frame is dropped, and counted.
    Dropped,
}

/// Sends ARP+ frames. Receives nothing: its socket has no protocol, so the kernel queues no frame on it.
#[derive(Debug)]
pub struct ArpPlusSender {
    socket: OwnedFd,
    sent: u64,
    dropped: u64,
    failed: u64,
}

impl ArpPlusSender {
    /// Opens the socket in the network namespace of this thread.
    ///
    /// # Errors
    /// [`Kind::NotPermitted`] without `CAP_NET_RAW`.
    pub fn new() -> Result<Self> {
        let refused = |errno| Error::new("packet socket", "cannot open it", Kind::of(errno));
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None).map_err(refused)?;
        setsockopt(&socket, Priority, &PRIORITY).map_err(refused)?;
        Ok(Self { socket, sent: 0, dropped: 0, failed: 0 })
    }

    /// Sends one frame, from its Ethernet header on and without checksum, out of interface `index`. Never waits.
    ///
    /// # Errors
    /// [`Kind::NoDevice`] when the interface is gone, [`Kind::Down`] when it is down, [`Kind::BadValue`] for a frame
    /// shorter than its header or longer than the MTU. The sender stays usable.
    pub fn send(&mut self, index: u32, frame: &[u8]) -> Result<Sent> {
        // SAFETY: sockaddr_ll is a C structure of integers and bytes, for which zeros are valid.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_ifindex = index.cast_signed();
        // SAFETY: both pointers and lengths describe live values of this function; the kernel only reads them. nix
        // has no way to make the address of a packet socket.
        let answer = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const to).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        match Errno::result(answer).map_err(Kind::of) {
            Ok(_) => {
                self.sent += 1;
                Ok(Sent::Queued)
            }
            Err(Kind::Full) => {
                self.dropped += 1;
                Ok(Sent::Dropped)
            }
            Err(kind) => {
                self.failed += 1;
                Err(Error::new(format!("interface {index}"), "cannot send a frame", kind))
            }
        }
    }

    /// Frames queued, frames dropped at a full queue, and frames refused, since the socket was opened.
    #[must_use]
    pub fn counters(&self) -> (u64, u64, u64) {
        (self.sent, self.dropped, self.failed)
    }
}
