//! Control messages between the session's thread and the queue that carries them, and the session's verdicts.

use super::{Mac, Poll, Shared};
use linkbraid_wire::fabric::{CONTROL_MAX, HEADER_LEN};
use nix::{
    errno::Errno,
    sys::eventfd::{EfdFlags, EventFd},
};
use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

/// Control messages that may wait in each direction.
pub const CONTROL_WAITING_MAX: usize = 1024;
/// Control messages that are taken from one peer in a second: one that sends more must not crowd out the others.
pub const CONTROL_RATE: u32 = 2_000;
/// The same at once after a silence.
pub const CONTROL_BURST: u32 = 64;
/// Longest control message with its header, in bytes.
pub const CONTROL_MESSAGE_MAX: usize = HEADER_LEN + CONTROL_MAX;

/// A control message from a peer or for it, header first.
#[derive(Debug, Clone, Copy)]
pub struct ControlMessage {
    peer: u16,
    len: u16,
    bytes: [u8; CONTROL_MESSAGE_MAX],
}

impl ControlMessage {
    /// A message; none if it is empty or longer than [`CONTROL_MESSAGE_MAX`].
    #[must_use]
    pub fn new(peer: u16, message: &[u8]) -> Option<Self> {
        let mut bytes = [0; CONTROL_MESSAGE_MAX];
        bytes.get_mut(..message.len()).filter(|_| !message.is_empty())?.copy_from_slice(message);
        Some(Self { peer, len: message.len() as u16, bytes })
    }

    /// Who sent it, or is to get it.
    #[must_use]
    pub fn peer(&self) -> u16 {
        self.peer
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// A wake-up that is not lost when nobody waits yet.
#[derive(Debug)]
pub(super) struct Bell(EventFd);

impl Bell {
    pub fn new() -> Result<Self, Errno> {
        EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map(Self)
    }

    pub fn ring(&self) {
        // The only refusal is a counter that is full, which wakes as well.
        let _ = self.0.write(1);
    }

    pub fn quiet(&self) {
        let _ = self.0.read();
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The session's end: one for all queues of a node.
#[derive(Debug)]
pub struct Control {
    pub(super) shared: Arc<Shared>,
    pub(super) from_peers: Receiver<ControlMessage>,
    pub(super) to_peers: SyncSender<ControlMessage>,
    /// Rings for the session.
    pub(super) session: Arc<Bell>,
    /// One a queue.
    pub(super) queues: Vec<Arc<Bell>>,
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
        self.session.quiet();
    }

    /// Wakes who waits for [`Control::wake_fd`].
    pub fn ring(&self) {
        self.session.ring();
    }

    /// The next control message that came in.
    #[must_use]
    pub fn receive(&self) -> Option<ControlMessage> {
        self.from_peers.try_recv().ok()
    }

    /// Sends a control message; whether there was room for it. It may be lost.
    pub fn send(&self, message: ControlMessage) -> bool {
        let taken = self.to_peers.try_send(message).is_ok();
        if let Some(first) = self.queues.first() {
            first.ring();
        }
        taken
    }

    /// Connects `peer` under its epoch, or with none disconnects it: nothing is sent to it any more, nothing taken from
    /// it, and all that waits is forgotten.
    pub fn set_link(&self, peer: u16, epoch: Option<u64>) {
        self.shared.set_link(peer, epoch);
        self.queues.iter().for_each(|bell| bell.ring());
    }

    /// Says which address the interface has: no peer may send from it.
    pub fn set_mac(&self, mac: Mac) {
        self.shared.set_mac(mac);
    }

    /// Makes the queues wait another way.
    pub fn set_poll(&self, poll: Poll) {
        self.shared.set_poll(poll);
        self.queues.iter().for_each(|bell| bell.ring());
    }

    /// Ends all queues.
    pub fn stop(&self) {
        self.shared.stop();
        self.queues.iter().for_each(|bell| bell.ring());
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The queue's end.
#[derive(Debug)]
pub(super) struct Outlet {
    /// Only the first queue carries control messages out.
    pub to_peers: Option<Receiver<ControlMessage>>,
    pub from_peers: SyncSender<ControlMessage>,
    pub session: Arc<Bell>,
    pub bell: Arc<Bell>,
}

/// Both ends, for a node with so many queues.
pub(super) fn pair(shared: &Arc<Shared>, queues: usize) -> Result<(Control, Vec<Outlet>), Errno> {
    let (to_session, from_peers) = sync_channel(CONTROL_WAITING_MAX);
    let (to_peers, from_session) = sync_channel(CONTROL_WAITING_MAX);
    let session = Arc::new(Bell::new()?);
    let bells: Vec<Arc<Bell>> = (0..queues).map(|_| Bell::new().map(Arc::new)).collect::<Result<_, _>>()?;
    let mut first = Some(from_session);
    let outlets = bells.iter().map(|bell| Outlet {
        to_peers: first.take(),
        from_peers: to_session.clone(),
        session: session.clone(),
        bell: bell.clone(),
    });
    let outlets = outlets.collect();
    Ok((Control { shared: shared.clone(), from_peers, to_peers, session, queues: bells }, outlets))
}
