//! One packet socket that hears what peers and probed hosts send to a daemon, on all interfaces, whatever programs are on them: packet
//! sockets are served before the hooks of `tc`.

use crate::error::{Error, Kind, Result};
use linkbraid_wire::{ETHERTYPE_ARP_PLUS, parse_plain_answer};
use nix::{
    errno::Errno,
    libc,
    sys::socket::{AddressFamily, SockFlag, SockType, socket},
};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The longest frame that is read, in bytes: more than any that a daemon understands.
const FRAME_BYTES_MAX: usize = 2048;

/// More bytes than a frame has.
const WHOLE: u32 = 1 << 18;
const ADDRESS_BYTES: libc::socklen_t = size_of::<libc::sockaddr_ll>() as libc::socklen_t;

/// Hears ARP+ frames, and answers of plain hosts to probes.
#[derive(Debug)]
pub struct ArpPlusListener {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

/// One instruction of a filter.
const fn step(code: u32, (then, or): (u8, u8), k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: then, jf: or, k }
}

/// Loads two or four bytes of the frame.
const fn two(at: u32) -> libc::sock_filter {
    step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, (0, 0), at)
}

const fn four(at: u32) -> libc::sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, (0, 0), at)
}

/// Jumps by so many steps where they are `k`, or are not.
const fn is(k: u32, jumps: (u8, u8)) -> libc::sock_filter {
    step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jumps, k)
}

/// Takes so many bytes of the frame.
const fn take(bytes: u32) -> libc::sock_filter {
    step(libc::BPF_RET | libc::BPF_K, (0, 0), bytes)
}

/// Lets through what may be for a daemon: ARP+, ARP replies to nobody, and what is for an address that only probes use (docs/arp-plus.md,
/// 12.3 and 12.7).
const FILTER: [libc::sock_filter; 16] = [
    two(12),
    is(ETHERTYPE_ARP_PLUS as u32, (13, 0)),
    is(libc::ETH_P_ARP as u32, (0, 4)),
    two(20),
    is(2, (0, 9)),
    four(38),
    is(0, (8, 7)),
    is(libc::ETH_P_IPV6 as u32, (0, 6)),
    four(38),
    is(0xfe80_0000, (0, 4)),
    four(42),
    is(0, (0, 2)),
    two(46),
    is(0x4c42, (1, 0)),
    take(0),
    take(WHOLE),
];

impl ArpPlusListener {
    /// Opens the socket in the network namespace of this thread.
    ///
    /// # Errors
    /// [`Kind::NotPermitted`] without `CAP_NET_RAW`.
    pub fn new() -> Result<Self> {
        let refused = |errno| Error::new("packet socket", "cannot open it", Kind::of(errno));
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // Without a protocol it hears nothing: the filter comes first.
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None).map_err(refused)?;
        let mut filter = FILTER;
        let program = libc::sock_fprog { len: FILTER.len() as u16, filter: filter.as_mut_ptr() };
        set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program).map_err(refused)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1 as &libc::c_int).map_err(refused)?;
        // SAFETY: sockaddr_ll is a C structure of integers and bytes, for which zeros are valid.
        let mut all: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        all.sll_family = libc::AF_PACKET as u16;
        all.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: the address is complete, of the size that is given, and outlives the call.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const all).cast(), ADDRESS_BYTES) };
        Errno::result(bound).map_err(refused)?;
        Ok(Self { socket, buffer: vec![0; FRAME_BYTES_MAX] })
    }

    /// The next frame with its Ethernet header, whole unless it is a padded PROBE, and the index of the interface that it arrived on. Never waits.
    pub fn next_frame(&mut self) -> Option<(u32, Vec<u8>)> {
        loop {
            // SAFETY: sockaddr_ll is a C structure of integers and bytes, for which zeros are valid.
            let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            let mut from_bytes = ADDRESS_BYTES;
            // SAFETY: buffer and address may be written for the lengths that are given. nix cannot tell how long a frame was that did not
            // find room (`MSG_TRUNC`).
            let got = unsafe {
                libc::recvfrom(
                    self.socket.as_raw_fd(),
                    self.buffer.as_mut_ptr().cast(),
                    self.buffer.len(),
                    libc::MSG_TRUNC,
                    (&raw mut from).cast(),
                    &raw mut from_bytes,
                )
            };
            let bytes = usize::try_from(got).ok()?;
            // Of one that does not fit, the head is enough: it is a padded PROBE, or no frame for a daemon.
            let Some(frame) = self.buffer.get(..bytes.min(self.buffer.len())) else { continue };
            let is_arp_plus = frame.get(12..14) == Some(&ETHERTYPE_ARP_PLUS.to_be_bytes());
            if is_arp_plus || parse_plain_answer(frame).is_ok() {
                return Some((from.sll_ifindex.cast_unsigned(), frame.to_vec()));
            }
        }
    }
}

/// Becomes readable when frames wait.
impl AsRawFd for ArpPlusListener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn set<T>(socket: &OwnedFd, level: i32, option: i32, value: &T) -> std::result::Result<(), Errno> {
    // SAFETY: nix has no such options. The value is alive during the call, which reads as many bytes of it as it has.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    Errno::result(answer).map(drop)
}
