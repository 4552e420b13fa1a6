//! Control messages between the session's thread and the queue that carries them, and the session's verdicts.

use super::{Identity, Mac, Poll, Shared};
use crate::{keys::FrameKeys, ring::Map};
use linkbraid_wire::fabric::{CONTROL_MAX, HEADER_LEN};
use nix::{
    errno::Errno,
    sys::eventfd::{EfdFlags, EventFd},
    sys::memfd::{MFdFlags, memfd_create},
    sys::socket::{
        AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socketpair,
        sockopt::{SndBuf, SndBufForce},
    },
    unistd::{ftruncate, read, write},
};
use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

/// What control messages that wait in one direction may take in the kernel: more than one for each node.
const CONTROL_WAITING_BYTES: usize = 1 << 20;
/// Control messages that are taken from one peer in a second before it is connected: one that sends more must not crowd out the
/// others.
pub const CONTROL_RATE: u32 = 2_000;
/// A connected peer's messages are limited apart by their numbers, of which it has another one each second: somebody who repeats
/// what he has heard uses up the share of old numbers, and not that of the present one.
pub const CONTROL_SHARES: usize = 8;
/// The messages of each share that are taken in a second.
pub const CONTROL_SHARE_RATE: u32 = 500;
/// The same at once after a silence.
pub const CONTROL_BURST: u32 = 64;
/// Longest control message with its header, in bytes.
pub const CONTROL_MESSAGE_MAX: usize = HEADER_LEN + CONTROL_MAX;

/// Bytes of the peer's number before those of a message.
const PEER: usize = size_of::<u16>();

/// A control message from a peer or for it, header first.
#[derive(Debug, Clone, Copy)]
pub struct ControlMessage {
    len: u16,
    /// The peer, then the message.
    bytes: [u8; PEER + CONTROL_MESSAGE_MAX],
}

impl ControlMessage {
    /// A message; none if it is empty or longer than [`CONTROL_MESSAGE_MAX`].
    #[must_use]
    pub fn new(peer: u16, message: &[u8]) -> Option<Self> {
        let mut bytes = [0; PEER + CONTROL_MESSAGE_MAX];
        bytes[..PEER].copy_from_slice(&peer.to_ne_bytes());
        let place = bytes.get_mut(PEER..PEER + message.len()).filter(|_| !message.is_empty())?;
        place.copy_from_slice(message);
        Some(Self { len: message.len() as u16, bytes })
    }

    /// Who sent it, or is to get it.
    #[must_use]
    pub fn peer(&self) -> u16 {
        u16::from_ne_bytes([self.bytes[0], self.bytes[1]])
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[PEER..PEER + usize::from(self.len)]
    }
}

/// A wake-up that is not lost when nobody waits yet.
#[derive(Debug)]
pub(super) struct Wakeup(OwnedFd);

impl Wakeup {
    fn new() -> Result<Self, Errno> {
        EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map(|fd| Self(fd.into()))
    }

    pub fn raise(&self) {
        // The only refusal is a counter that is full, which wakes as well.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    pub fn clear(&self) {
        let _ = read(&self.0, &mut [0; size_of::<u64>()]);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// An end of what carries control messages between the session and the queues.
#[derive(Debug)]
pub(super) struct Line(OwnedFd);

impl Line {
    fn pair() -> Result<(Self, Self), Errno> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let (one, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        for end in [&one, &other] {
            // Without the privilege as much as the machine allows.
            setsockopt(end, SndBufForce, &CONTROL_WAITING_BYTES)
                .or_else(|_| setsockopt(end, SndBuf, &CONTROL_WAITING_BYTES))?;
        }
        Ok((Self(one), Self(other)))
    }

    /// Whether there was room for it.
    pub fn send(&self, message: &ControlMessage) -> bool {
        let bytes = &message.bytes[..PEER + usize::from(message.len)];
        send(self.0.as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL).is_ok()
    }

    /// The next one; none where none waits.
    pub fn receive(&self) -> Option<ControlMessage> {
        let mut bytes = [0; PEER + CONTROL_MESSAGE_MAX];
        let len = recv(self.0.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT).ok()?;
        let len = len.checked_sub(PEER).filter(|len| *len > 0)?;
        Some(ControlMessage { len: len as u16, bytes })
    }
}

/// The session's end: one for all queues of a node.
#[derive(Debug)]
pub struct Control {
    shared: Arc<Shared>,
    line: Line,
    /// Rings for the session.
    session: Wakeup,
    /// One a queue.
    queues: Vec<Wakeup>,
}

impl Control {
    /// What the threads share: counters and addresses.
    #[must_use]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Becomes readable when a control message came in, when a queue ended, and when the transport is lost
    /// ([`Shared::loss`]).
    #[must_use]
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.session.as_fd()
    }

    /// Takes the wake-up off the descriptor; to be called before [`Control::receive`].
    pub fn quiet(&self) {
        self.session.clear();
    }

    /// Wakes who waits for [`Control::wake_fd`].
    pub fn ring(&self) {
        self.session.raise();
    }

    /// The next control message that came in.
    #[must_use]
    pub fn receive(&self) -> Option<ControlMessage> {
        self.line.receive()
    }

    /// Sends a control message; whether there was room for it. It may be lost.
    pub fn send(&self, message: ControlMessage) -> bool {
        let taken = self.line.send(&message);
        if taken {
            self.shared.add_control();
        }
        if let Some(first) = self.queues.first() {
            first.raise();
        }
        taken
    }

    /// Connects `peer` under its epoch, or with none disconnects it: nothing is sent to it any more, nothing taken from
    /// it, and all that waits is forgotten.
    pub fn set_link(&self, peer: u16, epoch: Option<u64>) {
        self.change_link(peer, epoch, None);
    }

    /// Connects `peer` under the epoch of these keys, with which its frames are encrypted; or exchanges the keys.
    pub fn set_encrypted_link(&self, peer: u16, keys: &FrameKeys) {
        self.change_link(peer, Some(keys.epoch), Some(keys));
    }

    fn change_link(&self, peer: u16, epoch: Option<u64>, keys: Option<&FrameKeys>) {
        self.shared.set_link(peer, epoch, keys);
        self.queues.iter().for_each(|wakeup| wakeup.raise());
    }

    /// Says which address the interface has: no peer may send from it.
    pub fn set_mac(&self, mac: Mac) {
        self.shared.set_mac(mac);
    }

    /// Makes the queues wait another way.
    pub fn set_poll(&self, poll: Poll) {
        self.shared.set_poll(poll);
        self.queues.iter().for_each(|wakeup| wakeup.raise());
    }

    /// Ends all queues.
    pub fn stop(&self) {
        self.shared.stop();
        self.queues.iter().for_each(|wakeup| wakeup.raise());
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A queue's end.
#[derive(Debug)]
pub(super) struct Outlet {
    line: Arc<Line>,
    /// Control messages taken off the line; only the first queue does that.
    taken: Option<u64>,
    pub session: Arc<Wakeup>,
    pub wakeup: Wakeup,
}

impl Outlet {
    /// The next control message of the session.
    pub fn receive(&mut self, shared: &Shared) -> Option<ControlMessage> {
        let taken = self.taken.as_mut()?;
        // Looked at in every round, so that no system call is made for nothing.
        if *taken == shared.controls() {
            return None;
        }
        let message = self.line.receive()?;
        *taken = taken.wrapping_add(1);
        Some(message)
    }

    /// Hands a control message to the session; whether there was room for it.
    pub fn send(&self, message: &ControlMessage) -> bool {
        self.line.send(message)
    }
}

/// What the queues of a node need besides transports and the interface. As files, it can be another process's.
#[derive(Debug)]
pub struct Ends {
    identity: Identity,
    memory: OwnedFd,
    line: OwnedFd,
    session: OwnedFd,
    wakeups: Vec<OwnedFd>,
}

impl Ends {
    /// The two ends: the session's, and that of the queues.
    pub(super) fn pair(identity: Identity, poll: Poll) -> Result<(Control, Self), Errno> {
        let memory = memfd_create(c"linkbraid-fabric", MFdFlags::MFD_CLOEXEC)?;
        ftruncate(&memory, i64::try_from(identity.bytes()).map_err(|_| Errno::EFBIG)?)?;
        let shared = Arc::new(open(&memory, identity)?);
        shared.set_poll(poll);
        let (line, other) = Line::pair()?;
        let session = Wakeup::new()?;
        let queues = (0..identity.queues).map(|_| Wakeup::new()).collect::<Result<Vec<_>, _>>()?;
        let clone = |wakeup: &Wakeup| wakeup.0.try_clone().map_err(|_| Errno::EMFILE);
        let wakeups = queues.iter().map(clone).collect::<Result<_, _>>()?;
        let ends = Self { identity, memory, line: other.0, session: clone(&session)?, wakeups };
        Ok((Control { shared, line, session, queues }, ends))
    }

    /// From the files of [`Ends::into_files`], in their order; none if there are not as many.
    #[must_use]
    pub fn from_files(identity: Identity, files: Vec<OwnedFd>) -> Option<Self> {
        let mut files = files.into_iter();
        let (memory, line, session) = (files.next()?, files.next()?, files.next()?);
        let wakeups: Vec<OwnedFd> = files.collect();
        (wakeups.len() == usize::from(identity.queues)).then_some(Self {
            identity,
            memory,
            line,
            session,
            wakeups,
        })
    }

    /// The files that make it up.
    #[must_use]
    pub fn into_files(self) -> Vec<OwnedFd> {
        [self.memory, self.line, self.session].into_iter().chain(self.wakeups).collect()
    }

    pub(super) fn open(self) -> Result<(Arc<Shared>, Vec<Outlet>), Errno> {
        let shared = Arc::new(open(&self.memory, self.identity)?);
        let (line, session) = (Arc::new(Line(self.line)), Arc::new(Wakeup(self.session)));
        let mut taken = Some(0);
        let outlet = |wakeup| Outlet {
            line: line.clone(),
            taken: taken.take(),
            session: session.clone(),
            wakeup: Wakeup(wakeup),
        };
        Ok((shared, self.wakeups.into_iter().map(outlet).collect()))
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }
}

/// The state in this memory.
fn open(memory: &OwnedFd, identity: Identity) -> Result<Shared, Errno> {
    let map = Map::file(memory.as_fd(), identity.bytes())?;
    Shared::new(&map, identity).ok_or(Errno::EINVAL)
}
