//! How frames leave: short ones together, long ones in pieces.

use super::{Peer, Port};
use crate::{
    Refused,
    limits::{FRAME_MAX, OUTBOX, PATH_LOOK_FRAMES, PIECES_MAX},
    udp::{
        outbox::{Failure, MESSAGE_BYTES},
        piece::{HEAD, head},
        socket::{Message, path_mtu},
    },
};
use nix::errno::Errno;
use std::{
    io::IoSlice,
    net::{SocketAddr, UdpSocket},
};

/// Bytes of IP and UDP headers.
const fn headers(v6: bool) -> usize {
    if v6 { 48 } else { 28 }
}

/// Path assumed while there is no route: what IPv6 guarantees.
const MTU_UNKNOWN: usize = 1280;

/// Most bytes of a datagram, whatever the path.
const DATAGRAM_MAX: usize = 65_507;

/// Parts of a frame that is sent without a copy: two a piece, and one more where the frame's head ends.
const PARTS_MAX: usize = 2 * PIECES_MAX + 1;

/// The longest IP packet that the path to `to` takes, as far as the kernel knows and the user allows.
pub(in crate::udp) fn path(own: SocketAddr, to: SocketAddr, mtu: Option<usize>) -> usize {
    let mut from = own;
    from.set_port(0);
    let path = UdpSocket::bind(from)
        .and_then(|probe| probe.connect(to).and_then(|()| path_mtu(&probe, own.is_ipv6())));
    path.unwrap_or(MTU_UNKNOWN).min(mtu.unwrap_or(usize::MAX))
}

/// Bytes of a frame that a datagram to `to` can carry.
pub(super) fn piece_size(own: SocketAddr, to: SocketAddr, mtu: Option<usize>) -> usize {
    let datagram = path(own, to, mtu).saturating_sub(headers(own.is_ipv6())).min(DATAGRAM_MAX);
    datagram.saturating_sub(HEAD).max(FRAME_MAX.div_ceil(PIECES_MAX))
}

impl Port {
    /// Looks how long datagrams to a peer may be now.
    #[cold]
    pub(super) fn look(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let mut to = peer.address;
        if let (SocketAddr::V6(to), SocketAddr::V6(own)) = (&mut to, self.own) {
            to.set_scope_id(own.scope_id());
        }
        peer.size = piece_size(self.own, to, self.mtu);
        peer.look_in = PATH_LOOK_FRAMES;
    }

    /// Sends what waits, and says whether nothing is left. Messages that fail are lost.
    pub(super) fn send_waiting(&mut self) -> bool {
        while !self.outbox.is_empty() {
            let peers = &self.peers;
            let Err(failure) = self.outbox.send(&self.socket, |peer| &peers[peer].raw) else { break };
            self.failed(&failure);
        }
        self.outbox.is_empty()
    }

    #[cold]
    fn failed(&mut self, failure: &Failure) {
        self.peers[failure.peer].stats.lost += failure.datagrams as u64;
        match failure.cause {
            Errno::EMSGSIZE | Errno::EINVAL => self.look(failure.peer),
            // A device on the way cannot compute checksums, so the kernel does not cut for it.
            Errno::EIO => self.socket.segments = 1,
            _ => {}
        }
    }

    /// Sends a frame in pieces, without a copy as long as the socket takes them. Returns how many pieces were sent; those that are left, if any,
    /// failed for that reason.
    fn send_pieces(&self, index: usize, head_part: &[u8], body: &[u8]) -> (usize, Option<Errno>) {
        let Peer { raw, size, next, .. } = &self.peers[index];
        let (total, size) = (head_part.len() + body.len(), *size);
        let pieces = total.div_ceil(size);
        let mut heads = [[0; HEAD]; PIECES_MAX];
        for (at, piece) in heads[..pieces].iter_mut().enumerate() {
            *piece = head(self.instance, *next, total, size, at);
        }
        // Where each piece's parts begin, and the end of the last.
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        let mut begins = [0; PIECES_MAX + 1];
        let mut end = 0;
        for at in 0..pieces {
            begins[at] = end;
            let [first, second] = cut(head_part, body, at * size, size);
            for part in [&heads[at][..], first, second] {
                if !part.is_empty() {
                    parts[end] = IoSlice::new(part);
                    end += 1;
                }
            }
        }
        begins[pieces] = end;
        let together = self.socket.segments.min(MESSAGE_BYTES / (size + HEAD)).max(1);
        let mut sent = 0;
        while sent < pieces {
            let left = (pieces - sent).div_ceil(together).min(OUTBOX);
            let messages: [_; OUTBOX] = std::array::from_fn(|message| {
                let from = (sent + message * together).min(pieces);
                let to = (from + together).min(pieces);
                let parts = &parts[begins[from]..begins[to]];
                Message { to: raw, parts, segment: size + HEAD, cut: to - from > 1 }
            });
            match self.socket.send(&messages[..left]) {
                Ok(messages) => sent = (sent + messages * together).min(pieces),
                Err(Errno::EINTR) => {}
                Err(errno) => return (sent, Some(errno)),
            }
        }
        (sent, None)
    }

    /// A frame that does not fit into one datagram.
    pub(super) fn send_long(&mut self, index: usize, head_part: &[u8], body: &[u8]) -> Result<(), Refused> {
        if !self.send_waiting() {
            return Err(Refused::Full);
        }
        let (mut sent, mut cause) = self.send_pieces(index, head_part, body);
        if sent == 0 && matches!(cause, Some(Errno::EMSGSIZE | Errno::EINVAL | Errno::EIO)) {
            let failure = Failure { peer: index, datagrams: 0, cause: cause.unwrap_or(Errno::EMSGSIZE) };
            self.failed(&failure);
            (sent, cause) = self.send_pieces(index, head_part, body);
        }
        match cause {
            None => {}
            Some(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) if sent == 0 => return Err(Refused::Full),
            Some(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => {
                let Peer { size, next, .. } = self.peers[index];
                let total = head_part.len() + body.len();
                let mut rest = sent..total.div_ceil(size);
                let all = rest.all(|at| {
                    let [first, second] = cut(head_part, body, at * size, size);
                    let head = head(self.instance, next, total, size, at);
                    self.outbox.add(index, [&head, first, second], self.socket.segments)
                });
                self.peers[index].stats.lost += u64::from(!all);
            }
            Some(cause) => self.failed(&Failure { peer: index, datagrams: 1, cause }),
        }
        Ok(())
    }

    /// A frame that fits into one datagram waits for others.
    pub(super) fn send_short(&mut self, index: usize, head_part: &[u8], body: &[u8]) -> Result<(), Refused> {
        let Peer { size, next, .. } = self.peers[index];
        let head = head(self.instance, next, head_part.len() + body.len(), size, 0);
        let parts = [&head[..], head_part, body];
        if self.outbox.add(index, parts, self.socket.segments) {
            return Ok(());
        }
        self.send_waiting();
        if self.outbox.add(index, parts, self.socket.segments) { Ok(()) } else { Err(Refused::Full) }
    }
}

/// What lies from `at` for `len` bytes in two parts that follow each other.
fn cut<'a>(first: &'a [u8], second: &'a [u8], at: usize, len: usize) -> [&'a [u8]; 2] {
    let within = |part: &'a [u8], begin: usize, end: usize| &part[begin.min(part.len())..end.min(part.len())];
    let beyond = |at: usize| at.saturating_sub(first.len());
    [within(first, at, at + len), within(second, beyond(at), beyond(at + len))]
}
