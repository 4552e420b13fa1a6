//! Messages with files, over a pair of sockets between two processes of one host (`SOCK_SEQPACKET`).

use crate::limits::QUEUES_MAX;
use nix::{
    cmsg_space,
    errno::Errno,
    sys::socket::{
        AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, recvmsg,
        sendmsg, socketpair,
    },
};
use std::{
    io::{IoSlice, IoSliceMut},
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

/// Longest message in bytes; longer ones are cut, and then make no sense.
const BYTES_MAX: usize = 16 << 10;
/// Most files of a message: those of the ends of a session, and two for each queue.
pub const FILES_MAX: usize = 3 + 2 * QUEUES_MAX as usize;

/// Two ends. Neither is handed on to a program that is started later.
///
/// # Errors
/// Those of `socketpair(2)`.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
}

/// Sends a message with copies of these files.
///
/// # Errors
/// Those of `sendmsg(2)`; `EPIPE` where the other end is gone.
pub fn send(line: &OwnedFd, bytes: &[u8], files: &[OwnedFd]) -> Result<(), Errno> {
    let files: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&files)];
    let rights = if files.is_empty() { &[][..] } else { &rights[..] };
    sendmsg::<UnixAddr>(line.as_raw_fd(), &[IoSlice::new(bytes)], rights, MsgFlags::MSG_NOSIGNAL, None)
        .map(drop)
}

/// Waits for the next message, and its files; no bytes where the other end is gone.
///
/// # Errors
/// Those of `recvmsg(2)`.
pub fn receive(line: &OwnedFd) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
    let mut bytes = vec![0; BYTES_MAX];
    let mut space = cmsg_space!([RawFd; FILES_MAX]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let (len, files) = loop {
        match recvmsg::<UnixAddr>(line.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            Err(Errno::ECONNRESET) => return Ok((Vec::new(), Vec::new())),
            Err(errno) => return Err(errno),
            Ok(message) => {
                let mut files = Vec::new();
                for control in message.cmsgs()? {
                    if let ControlMessageOwned::ScmRights(came) = control {
                        // SAFETY: the kernel has just made them for us, and nobody else knows them.
                        files.extend(came.into_iter().map(|file| unsafe { OwnedFd::from_raw_fd(file) }));
                    }
                }
                break (message.bytes, files);
            }
        }
    };
    bytes.truncate(len);
    Ok((bytes, files))
}
