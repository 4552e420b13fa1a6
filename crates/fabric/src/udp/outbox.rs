//! Datagrams that wait to be sent together. Those of one length to one peer become one message, which the kernel cuts.

use super::{
    piece::HEAD,
    socket::{Message, RawAddress, Socket},
};
use crate::limits::{OUTBOX, OUTBOX_BYTES};
use nix::errno::Errno;
use std::io::IoSlice;

/// Most bytes of a message that the kernel cuts.
pub const MESSAGE_BYTES: usize = 65_000;

/// A message that waits to be sent.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    peer: usize,
    start: usize,
    len: usize,
    /// Bytes of every datagram but the last.
    segment: usize,
    datagrams: usize,
    /// The last datagram is shorter: none may follow.
    closed: bool,
}

/// The messages that wait to be sent.
pub struct Outbox {
    bytes: Box<[u8]>,
    used: usize,
    entries: [Entry; OUTBOX],
    /// Which of the entries wait.
    first: usize,
    end: usize,
}

/// A message was not sent, and will not be.
#[derive(Debug, Clone, Copy)]
pub struct Failure {
    /// The peer that it was for.
    pub peer: usize,
    /// The number of its datagrams.
    pub datagrams: usize,
    /// The reason.
    pub cause: Errno,
}

impl Outbox {
    /// Nothing waits.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; OUTBOX_BYTES].into_boxed_slice(),
            used: 0,
            entries: [Entry::default(); OUTBOX],
            first: 0,
            end: 0,
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Bytes that wait for a peer.
    pub fn waits(&self, peer: usize) -> usize {
        self.entries[self.first..self.end]
            .iter()
            .filter(|entry| entry.peer == peer)
            .map(|entry| entry.len)
            .sum()
    }

    /// Adds a datagram, which can be changed as long as its length stays. None if there is no room.
    pub fn add(&mut self, peer: usize, parts: &[&[u8]], segments: usize) -> Option<&mut [u8]> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if len > self.bytes.len() - self.used {
            return None;
        }
        match self.entries[self.first..self.end].last_mut() {
            Some(last)
                if last.peer == peer
                    && !last.closed
                    && len <= last.segment
                    && last.datagrams < segments
                    && last.len + len <= MESSAGE_BYTES =>
            {
                last.len += len;
                last.datagrams += 1;
                last.closed = len < last.segment;
            }
            _ if self.end == OUTBOX => return None,
            _ => {
                let entry = Entry { peer, start: self.used, len, segment: len, datagrams: 1, closed: false };
                self.entries[self.end] = entry;
                self.end += 1;
            }
        }
        let start = self.used;
        for part in parts {
            self.bytes[self.used..][..part.len()].copy_from_slice(part);
            self.used += part.len();
        }
        Some(&mut self.bytes[start..self.used])
    }

    /// Sends what waits, as far as the socket takes it. A failure is of one message; more may wait after it.
    pub fn send<'a>(&mut self, socket: &Socket, to: impl Fn(usize) -> &'a RawAddress) -> Result<(), Failure> {
        while self.first < self.end {
            let entries = &self.entries[self.first..self.end];
            let entry = |at: usize| entries[at.min(entries.len() - 1)];
            let parts: [_; OUTBOX] =
                std::array::from_fn(|at| [IoSlice::new(&self.bytes[entry(at).start..][..entry(at).len])]);
            let messages: [_; OUTBOX] = std::array::from_fn(|at| {
                let Entry { peer, segment, datagrams, .. } = entry(at);
                Message { to: to(peer), parts: &parts[at], segment, cut: datagrams > 1 }
            });
            match socket.send(&messages[..entries.len()]) {
                Ok(sent) => self.first += sent.max(1),
                Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(cause) => {
                    let Entry { peer, datagrams, .. } = entry(0);
                    self.first += 1;
                    self.tidy();
                    return Err(Failure { peer, datagrams, cause });
                }
            }
        }
        self.tidy();
        Ok(())
    }

    /// Drops what waits for a peer.
    pub fn drop_waiting(&mut self, peer: usize) {
        let mut kept = self.first;
        for at in self.first..self.end {
            if self.entries[at].peer != peer {
                self.entries[kept] = self.entries[at];
                kept += 1;
            }
        }
        self.end = kept;
        // What is last now need not be last in the bytes.
        self.entries[self.first..self.end].iter_mut().for_each(|entry| entry.closed = true);
        self.tidy();
    }

    fn tidy(&mut self) {
        if self.is_empty() {
            (self.used, self.first, self.end) = (0, 0, 0);
        }
    }
}

const _: () = assert!(OUTBOX_BYTES >= 2 * (MESSAGE_BYTES + HEAD));
