//! What nix has no words for: addresses and filters of packet sockets, and options that are structures.

use nix::{errno::Errno, libc};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::AsRawFd;

/// More bytes than a frame has.
const WHOLE: u32 = 1 << 18;

/// Has a packet socket send by one interface, and hear nothing.
pub fn send_by(socket: &impl AsRawFd, interface: u32) -> io::Result<()> {
    bind(socket, interface, 0)
}

/// Has a packet socket hear frames of that EtherType which arrive on one interface, before programs of `tc` take them away:
/// that is so for sockets of all EtherTypes, so a filter chooses.
pub fn hear_on(socket: &impl AsRawFd, interface: u32, ethertype: u16) -> io::Result<()> {
    let step = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 12),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, ethertype.into()),
        step(libc::BPF_RET | libc::BPF_K, 0, WHOLE),
        step(libc::BPF_RET | libc::BPF_K, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let bytes = size_of::<libc::sock_fprog>() as libc::socklen_t;
    // SAFETY: the kernel reads the program and the steps that it points at, all of which outlive the call.
    let set = unsafe {
        let program = (&raw const program).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program, bytes)
    };
    Errno::result(set)?;
    bind(socket, interface, libc::ETH_P_ALL as u16)
}

fn bind(socket: &impl AsRawFd, interface: u32, ethertype: u16) -> io::Result<()> {
    // SAFETY: sockaddr_ll is a C structure of integers and bytes, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = interface.cast_signed();
    let bytes = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is complete, of the size that is given, and outlives the call.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) };
    Ok(Errno::result(bound).map(drop)?)
}

/// An option of a socket that is a structure of the kernel's: as many of its first bytes as there are, zeros behind them.
pub fn option<const BYTES: usize>(socket: &impl AsRawFd, level: i32, name: i32) -> io::Result<[u8; BYTES]> {
    let mut value = [0; BYTES];
    let mut bytes = BYTES as libc::socklen_t;
    let to = value.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most as many bytes as are given, which is what the array has.
    let got = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, to, &raw mut bytes) };
    Errno::result(got)?;
    Ok(value)
}
