//! What the daemon and the program say to each other: words with a zero byte after each, and files.

use crate::{
    Error, Join,
    engine::{Config, Identity, Poll},
    limits::QUEUES_MAX,
};
use nix::{
    cmsg_space,
    errno::Errno,
    sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg},
};
use std::{
    io::{IoSlice, IoSliceMut},
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

/// The first word of every message. Both programs are of one version: what they share has no other layout.
const VERSION: &str = concat!("linkbraid ", env!("CARGO_PKG_VERSION"), " 1");
/// Longest message in bytes; longer ones are cut, and then make no sense.
const BYTES_MAX: usize = 16 << 10;
/// Most files of a message: those of the ends, and two for each queue.
const FILES_MAX: usize = 3 + 2 * QUEUES_MAX as usize;

/// Which place to take.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub address: String,
    pub join: Join,
}

/// What came of that.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opened {
    Place { frame_max: usize },
    Refused(Error),
}

/// What to run there.
#[derive(Debug)]
pub(super) struct Start {
    pub identity: Identity,
    pub config: Config,
}

fn words(all: &[&dyn ToString]) -> Vec<u8> {
    let text: String = all.iter().map(|word| word.to_string().replace('\0', " ") + "\0").collect();
    format!("{VERSION}\0{text}").into_bytes()
}

/// The words after the version.
fn read(bytes: &[u8]) -> Option<Vec<&str>> {
    let mut words = std::str::from_utf8(bytes).ok()?.strip_suffix('\0')?.split('\0');
    (words.next()? == VERSION).then(|| words.collect())
}

impl Order {
    pub fn words(&self) -> Vec<u8> {
        let Join { node, nodes, queues } = &self.join;
        words(&[&self.address, node, nodes, queues])
    }

    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [address, node, nodes, queues] = read(bytes)?[..] else { return None };
        let join =
            Join { node: node.parse().ok()?, nodes: nodes.parse().ok()?, queues: queues.parse().ok()? };
        Some(Self { address: address.to_owned(), join })
    }
}

impl Opened {
    pub fn words(&self) -> Vec<u8> {
        match self {
            Self::Place { frame_max } => words(&[frame_max]),
            Self::Refused(Error { object, what, cause, hint }) => {
                words(&[object, what, cause, &hint.as_deref().unwrap_or_default()])
            }
        }
    }

    pub fn read(bytes: &[u8]) -> Option<Self> {
        match read(bytes)?[..] {
            [frame_max] => Some(Self::Place { frame_max: frame_max.parse().ok()? }),
            [object, what, cause, hint] => {
                let error = Error::new(object, what, cause);
                Some(Self::Refused(if hint.is_empty() { error } else { error.hint(hint) }))
            }
            _ => None,
        }
    }
}

impl Start {
    pub fn words(&self) -> Vec<u8> {
        let Identity { node, nodes, queues, epoch, began } = self.identity;
        let Config { poll, fabric, storm_rate, storm_burst } = self.config;
        words(&[&node, &nodes, &queues, &epoch, &began, &poll.number(), &fabric, &storm_rate, &storm_burst])
    }

    pub fn read(bytes: &[u8]) -> Option<Self> {
        let numbers: Vec<u64> = read(bytes)?.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [node, nodes, queues, epoch, began, poll, fabric, storm_rate, storm_burst] = numbers[..] else {
            return None;
        };
        let short = |number: u64| u16::try_from(number).ok();
        let identity =
            Identity { node: short(node)?, nodes: short(nodes)?, queues: short(queues)?, epoch, began };
        let config = Config {
            poll: Poll::of_number(u8::try_from(poll).ok()?),
            fabric: u8::try_from(fabric).ok()?,
            storm_rate: u32::try_from(storm_rate).ok()?,
            storm_burst: u32::try_from(storm_burst).ok()?,
        };
        Some(Self { identity, config })
    }
}

/// Sends a message with copies of these files.
pub(super) fn send(line: &OwnedFd, bytes: &[u8], files: &[OwnedFd]) -> Result<(), Errno> {
    let files: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&files)];
    let rights = if files.is_empty() { &[][..] } else { &rights[..] };
    sendmsg::<UnixAddr>(line.as_raw_fd(), &[IoSlice::new(bytes)], rights, MsgFlags::MSG_NOSIGNAL, None)
        .map(drop)
}

/// Waits for the next message; no bytes where the other end is gone.
pub(super) fn receive(line: &OwnedFd) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let order = Order { address: "ofi:tcp,/a b".into(), join: Join { node: 1, nodes: 512, queues: 64 } };
        assert_eq!(Order::read(&order.words()), Some(order));
        for opened in [
            Opened::Place { frame_max: 65_792 },
            Opened::Refused(Error::new("a", "b", "")),
            Opened::Refused(Error::new("a", "b", "c").hint("d")),
        ] {
            assert_eq!(Opened::read(&opened.words()), Some(opened));
        }
        let identity = Identity { node: 1, nodes: 2, queues: 3, epoch: u64::MAX, began: 5 };
        let config = Config { poll: Poll::Busy, fabric: 7, storm_rate: 8, storm_burst: 9 };
        let start = Start::read(&Start { identity, config }.words()).expect("understood");
        assert_eq!(start.identity, identity);
        assert_eq!(format!("{:?}", start.config), format!("{config:?}"));
    }

    #[test]
    fn another_version_and_half_a_message_make_no_sense() {
        let words = Opened::Place { frame_max: 1 }.words();
        assert_eq!(Opened::read(&words[..words.len() - 1]), None);
        assert_eq!(Opened::read(b"linkbraid 0.0.1 1\0" as &[u8]), None);
        assert_eq!(Opened::read(&[]), None);
    }
}
