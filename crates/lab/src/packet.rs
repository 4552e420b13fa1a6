//! Frames as they are on the wire: raw sockets on an interface of a host.

use crate::Host;
use linkbraid_api::Error;
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Every EtherType (`ETH_P_ALL`).
pub const ALL: u16 = 0x0003;
/// IPv4.
pub const IPV4: u16 = 0x0800;
/// IPv6.
pub const IPV6: u16 = 0x86dd;
/// ARP.
pub const ARP: u16 = 0x0806;
/// Longest frame that is read, in bytes: a whole GSO buffer.
const FRAME_BYTES_MAX: usize = 1 << 17;

/// A raw socket on one interface of a host: sends whole frames, and collects those of one EtherType that arrive. What
/// the host itself sends is not collected.
#[derive(Debug)]
pub struct Tap {
    socket: OwnedFd,
    interface: i32,
}

impl Tap {
    /// Opens it; collects from now on.
    ///
    /// # Panics
    /// When the interface is not there.
    #[track_caller]
    pub fn open(host: Host<'_>, interface: &str, ethertype: u16) -> Self {
        Self::try_open(host, interface, ethertype).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, for who can say what is wrong.
    pub fn try_open(host: Host<'_>, interface: &str, ethertype: u16) -> Result<Self, Error> {
        host.make(&format!("open a raw socket on {interface}"), || Self::open_here(interface, ethertype))
    }

    fn open_here(interface: &str, ethertype: u16) -> io::Result<Self> {
        let index = nix::net::if_::if_nametoindex(interface)?;
        let interface = i32::try_from(index).map_err(io::Error::other)?;
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; nix has no constructor for a packet socket's address, so the whole is libc.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else holds.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let address = address(interface, ethertype);
        // SAFETY: `address` is a complete sockaddr_ll and outlives the call; its length is given.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), ADDRESS_BYTES) };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { socket, interface })
    }

    /// Sends one whole frame, as it is.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let address = address(self.interface, 0);
        // SAFETY: buffer and address are valid for their lengths during the call.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const address).cast(),
                ADDRESS_BYTES,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// What it sends no longer waits in the interface's queue: a flood needs as little work for a frame as there is.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn bypass_queue(&self) -> io::Result<()> {
        let on: libc::c_int = 1;
        // SAFETY: `on` outlives the call, and its size is given.
        let set = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_QDISC_BYPASS,
                (&raw const on).cast(),
                size_of_val(&on) as libc::socklen_t,
            )
        };
        if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sends whole frames with one system call; how many the kernel took.
    pub fn send_all(&self, frames: &[Vec<u8>]) -> usize {
        let mut address = address(self.interface, 0);
        let piece = |frame: &Vec<u8>| libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        };
        let mut pieces: Vec<libc::iovec> = frames.iter().map(piece).collect();
        let message = |piece: &mut libc::iovec| {
            // SAFETY: all its fields are numbers and pointers, for which zero is a value.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_name = (&raw mut address).cast();
            header.msg_hdr.msg_namelen = ADDRESS_BYTES;
            header.msg_hdr.msg_iov = piece;
            header.msg_hdr.msg_iovlen = 1;
            header
        };
        let mut messages: Vec<libc::mmsghdr> = pieces.iter_mut().map(message).collect();
        let number = libc::c_uint::try_from(messages.len()).unwrap_or(libc::c_uint::MAX);
        // SAFETY: messages, pieces, frames and address are valid for their lengths during the call, which writes only into messages.
        let sent = unsafe { libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), number, 0) };
        usize::try_from(sent).unwrap_or(0)
    }

    /// The frames that have arrived since the last look.
    ///
    /// # Panics
    /// When the socket fails.
    pub fn take(&self) -> Vec<Vec<u8>> {
        self.read(false)
    }

    /// The frames that the host itself has sent since the last look at either; only a socket for every EtherType has them.
    ///
    /// # Panics
    /// When the socket fails.
    pub fn take_sent(&self) -> Vec<Vec<u8>> {
        self.read(true)
    }

    fn read(&self, sent: bool) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut buffer = vec![0_u8; FRAME_BYTES_MAX];
        loop {
            let mut from = address(0, 0);
            let mut from_bytes = ADDRESS_BYTES;
            // SAFETY: buffer, address and length are valid and writable for the lengths given during the call.
            let got = unsafe {
                libc::recvfrom(
                    self.socket.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    0,
                    (&raw mut from).cast(),
                    &raw mut from_bytes,
                )
            };
            match usize::try_from(got) {
                Ok(bytes) if (from.sll_pkttype == libc::PACKET_OUTGOING) == sent => {
                    frames.push(buffer[..bytes].to_vec());
                }
                Ok(_) => {}
                Err(_) => {
                    let error = io::Error::last_os_error();
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
                    return frames;
                }
            }
        }
    }
}

const ADDRESS_BYTES: libc::socklen_t = size_of::<libc::sockaddr_ll>() as libc::socklen_t;

fn address(interface: i32, ethertype: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ethertype.to_be(),
        sll_ifindex: interface,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

/// The six bytes of a MAC in text.
///
/// # Panics
/// When it is none.
#[track_caller]
pub fn mac(text: &str) -> [u8; 6] {
    let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes.and_then(|bytes| bytes.try_into().ok()).unwrap_or_else(|| panic!("'{text}' is no MAC"))
}

/// An ARP request of IPv4 (RFC 826): who has `target`, tell `sender`; padded to the shortest frame.
///
/// # Panics
/// When an address is none.
#[track_caller]
pub fn arp_request(from: [u8; 6], sender: &str, target: &str) -> Vec<u8> {
    let ip = |text: &str| text.parse::<std::net::Ipv4Addr>().expect("an IPv4 address").octets();
    let mut frame = vec![0xff; 6];
    frame.extend(from);
    frame.extend(ARP.to_be_bytes());
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(from);
    frame.extend(ip(sender));
    frame.extend([0; 6]);
    frame.extend(ip(target));
    frame.resize(60, 0);
    frame
}
