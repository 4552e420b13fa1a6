//! One UDP socket: many datagrams a call, cut and joined by the kernel where it can.

use crate::limits::{INBOX, OUTBOX, SOCKET_BYTES};
use nix::{errno::Errno, libc};
use std::{
    io::{self, Error},
    mem::{offset_of, size_of},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

/// Longest datagram, or what the kernel joined of several.
pub const BUFFER: usize = 1 << 16;

/// Room for the control messages of one message: the size of segments, with some to spare.
const CONTROL: usize = 64;

/// A socket bound to an address of this node.
pub struct Socket {
    socket: UdpSocket,
    /// Segments that the kernel cuts one message into: 1 if it does not.
    pub segments: usize,
}

/// An address as the kernel reads it.
#[derive(Clone, Copy)]
pub struct RawAddress {
    raw: libc::sockaddr_storage,
    len: libc::socklen_t,
}

/// One message to be sent: parts that are sent as one, and cut into segments of `segment` bytes.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// The destination.
    pub to: &'a RawAddress,
    /// The parts of the datagram.
    pub parts: &'a [std::io::IoSlice<'a>],
    /// Bytes of every datagram but the last.
    pub segment: usize,
    /// Whether there is more than one.
    pub cut: bool,
}

/// Sets a socket option. The kernel says no on old versions.
fn set(socket: &UdpSocket, level: i32, name: i32, value: i32) -> io::Result<()> {
    let len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the option is an int, which lives for the call.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), len) };
    if done == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Longest IP packet on the way to where `socket` is connected, as far as the kernel knows.
pub fn path_mtu(socket: &UdpSocket, v6: bool) -> io::Result<usize> {
    let (level, name) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    let (mut value, mut len) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the option is an int, which lives for the call, and `len` says its size.
    let done =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut len) };
    if done == 0 { Ok(usize::try_from(value).unwrap_or(0)) } else { Err(Error::last_os_error()) }
}

/// Makes a socket send nothing longer than the path takes.
pub fn send_whole(socket: &UdpSocket, v6: bool) -> io::Result<()> {
    if v6 {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
    } else {
        set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
    }
}

impl Socket {
    /// Binds a socket that sends nothing longer than the path takes.
    ///
    /// # Errors
    /// The address is not here or is taken.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        send_whole(&socket, address.is_ipv6())?;
        // Beyond the system's limit if we may, else up to it.
        for (force, name) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            if set(&socket, libc::SOL_SOCKET, force, SOCKET_BYTES).is_err() {
                set(&socket, libc::SOL_SOCKET, name, SOCKET_BYTES)?;
            }
        }
        let _ = set(&socket, libc::SOL_UDP, libc::UDP_GRO, 1);
        let cuts = set(&socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok();
        Ok(Self { socket, segments: if cuts { 64 } else { 1 } })
    }

    /// For waiting.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends messages, at most [`OUTBOX`]; how many were.
    ///
    /// # Errors
    /// The first one was not sent, and why.
    pub fn send(&self, messages: &[Message<'_>]) -> Result<usize, Errno> {
        // SAFETY: all of these are plain numbers and pointers, for which zero is a value.
        let mut heads: [libc::mmsghdr; OUTBOX] = unsafe { std::mem::zeroed() };
        let mut controls = [[0u64; 3]; OUTBOX];
        let count = messages.len().min(OUTBOX);
        for ((head, control), message) in heads.iter_mut().zip(&mut controls).zip(messages) {
            let head = &mut head.msg_hdr;
            head.msg_name = (&raw const message.to.raw).cast_mut().cast();
            head.msg_namelen = message.to.len;
            // An IoSlice is an iovec, says its documentation.
            head.msg_iov = message.parts.as_ptr().cast_mut().cast();
            head.msg_iovlen = message.parts.len() as _;
            if message.cut {
                *control = segment_control(message.segment as u16);
                head.msg_control = control.as_mut_ptr().cast();
                head.msg_controllen = SEGMENT_SPACE as _;
            }
        }
        // SAFETY: every pointer in the first `count` heads points to memory that outlives the call: messages are
        // borrowed, controls are above. The kernel writes to the heads only.
        let sent = unsafe {
            libc::sendmmsg(self.socket.as_raw_fd(), heads.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT)
        };
        usize::try_from(sent).map_err(|_| Errno::last())
    }
}

/// Bytes of the control message that says the size of segments, with padding, and without.
const SEGMENT_SPACE: usize = 24;
const SEGMENT_LEN: usize = size_of::<libc::cmsghdr>() + size_of::<u16>();
// SAFETY: CMSG_SPACE only computes.
const _: () = assert!(
    unsafe { libc::CMSG_SPACE(2) } as usize == SEGMENT_SPACE && size_of::<[u64; 3]>() == SEGMENT_SPACE
);

/// The control message that says the size of segments, as the kernel reads it.
fn segment_control(segment: u16) -> [u64; 3] {
    let mut bytes = [0u8; SEGMENT_SPACE];
    bytes[..size_of::<usize>()].copy_from_slice(&SEGMENT_LEN.to_ne_bytes());
    bytes[offset_of!(libc::cmsghdr, cmsg_level)..][..4].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    bytes[offset_of!(libc::cmsghdr, cmsg_type)..][..4].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
    bytes[size_of::<libc::cmsghdr>()..][..2].copy_from_slice(&segment.to_ne_bytes());
    let mut words = [0; 3];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    }
    words
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> Self {
        let address = nix::sys::socket::SockaddrStorage::from(address);
        let len = nix::sys::socket::SockaddrLike::len(&address);
        // SAFETY: a SockaddrStorage is a union whose largest member is a sockaddr_storage.
        let raw =
            unsafe { *nix::sys::socket::SockaddrLike::as_ptr(&address).cast::<libc::sockaddr_storage>() };
        Self { raw, len }
    }
}

/// What was received in one call.
pub struct Inbox {
    buffers: Box<[u8]>,
    from: [libc::sockaddr_storage; INBOX],
    /// Length, and size of segments, of each.
    shapes: [(usize, usize); INBOX],
    /// The number of datagrams received.
    pub filled: usize,
}

impl Inbox {
    /// Room for [`INBOX`] messages.
    pub fn new() -> Self {
        Self {
            buffers: vec![0; INBOX * BUFFER].into_boxed_slice(),
            // SAFETY: plain numbers, for which zero is a value.
            from: unsafe { std::mem::zeroed() },
            shapes: [(0, 0); INBOX],
            filled: 0,
        }
    }

    /// Receives what there is, perhaps nothing, in place of what was there.
    pub fn fill(&mut self, socket: &Socket) {
        // SAFETY: all of these are plain numbers and pointers, for which zero is a value.
        let mut heads: [libc::mmsghdr; INBOX] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut parts: [libc::iovec; INBOX] = unsafe { std::mem::zeroed() };
        let mut controls = [[0u64; CONTROL / 8]; INBOX];
        let buffers = self.buffers.chunks_exact_mut(BUFFER);
        let rest = parts.iter_mut().zip(&mut controls).zip(&mut self.from);
        for ((head, buffer), ((part, control), from)) in heads.iter_mut().zip(buffers).zip(rest) {
            *part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let head = &mut head.msg_hdr;
            head.msg_name = (from as *mut libc::sockaddr_storage).cast();
            head.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
            head.msg_iov = part;
            head.msg_iovlen = 1;
            head.msg_control = control.as_mut_ptr().cast();
            head.msg_controllen = CONTROL as _;
        }
        // SAFETY: every pointer in the heads points to memory of the length beside it, exclusively ours for the call.
        let got = unsafe {
            let fd = socket.socket.as_raw_fd();
            libc::recvmmsg(fd, heads.as_mut_ptr(), INBOX as u32, libc::MSG_DONTWAIT, std::ptr::null_mut())
        };
        self.filled = usize::try_from(got).unwrap_or(0);
        for (shape, head) in self.shapes.iter_mut().zip(&heads[..self.filled]) {
            let len = head.msg_len as usize;
            *shape = (len, segment(&head.msg_hdr).unwrap_or(len));
        }
    }

    /// A message: from whom, its bytes, and how many of them each datagram in it has but the last.
    pub fn message(&mut self, index: usize) -> (Option<SocketAddr>, &mut [u8], usize) {
        let (len, segment) = self.shapes[index];
        (address(&self.from[index]), &mut self.buffers[index * BUFFER..][..len.min(BUFFER)], segment)
    }
}

/// The size of segments that the kernel joined, if it did.
fn segment(head: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel has filled the control buffer, which is alive, and has set its length; the macros stay within.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(head);
        while let Some(found) = control.as_ref() {
            if (found.cmsg_level, found.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO) {
                let size = libc::CMSG_DATA(control).cast::<i32>().read_unaligned();
                return usize::try_from(size).ok().filter(|size| *size > 0);
            }
            control = libc::CMSG_NXTHDR(head, control);
        }
    }
    None
}

/// The address and port; not the scope, which the socket's own address fixes.
fn address(raw: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(raw.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says what it is, and a sockaddr_storage is larger and no less aligned.
            let raw = unsafe { &*(&raw const *raw).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(raw.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { &*(&raw const *raw).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, u16::from_be(raw.sin6_port), 0, 0).into())
        }
        _ => None,
    }
}
