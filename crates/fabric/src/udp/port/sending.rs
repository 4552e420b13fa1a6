//! How frames leave: short ones together, long ones in pieces.

use super::{
    Peer, Port,
    frame::{Frame, PIECE_MIN},
};
use crate::{
    Refused,
    limits::{FRAME_MAX, OUTBOX, PATH_LOOK_FRAMES, PIECES_MAX},
    udp::{
        outbox::{Failure, MESSAGE_BYTES},
        piece::HEAD,
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
fn piece_size(own: SocketAddr, to: SocketAddr, mtu: Option<usize>) -> usize {
    let datagram = path(own, to, mtu).saturating_sub(headers(own.is_ipv6())).min(DATAGRAM_MAX);
    datagram.saturating_sub(HEAD).max(PIECE_MIN)
}

impl Port {
    /// Looks how long datagrams to a peer may be now.
    #[cold]
    pub(super) fn look(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let Some(mut to) = peer.address else { return };
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

    /// Sends a frame. One that fits into a datagram waits for others.
    pub(super) fn send_frame(
        &mut self,
        peer: u16,
        parts: [&[u8]; 2],
        encrypted: bool,
    ) -> Result<(), Refused> {
        let index = self.index(peer).ok_or(Refused::NoPeer)?;
        let total = parts[0].len() + parts[1].len();
        if total == 0 || total > FRAME_MAX {
            return Err(Refused::Length);
        }
        if self.peers[index].address.is_none() {
            return Err(Refused::Unreachable);
        }
        if self.peers[index].look_in == 0 {
            self.look(index);
        }
        let frame = self.frame(index, parts, encrypted);
        let sent = if encrypted && !self.peers[index].cipher.can_send(PIECES_MAX) {
            Err(Refused::Unreachable)
        } else if frame.pieces() == 1 {
            self.send_short(index, &frame)
        } else {
            self.send_long(index, frame)
        };
        let peer = &mut self.peers[index];
        match sent {
            Ok(()) => {
                peer.next = peer.next.wrapping_add(1);
                peer.look_in -= 1;
                peer.stats.sent += 1;
            }
            Err(_) => peer.stats.full += 1,
        }
        sent
    }

    /// A frame as it is cut now.
    fn frame<'a>(&self, index: usize, parts: [&'a [u8]; 2], encrypted: bool) -> Frame<'a> {
        let Peer { size, next, .. } = self.peers[index];
        Frame::new(parts, (self.instance, next), size, encrypted)
    }

    /// Sends a frame in pieces, without a copy as long as the socket takes them. Encrypted ones are made in the scratch memory. Returns
    /// how many pieces were sent; those that are left, if any, failed for that reason.
    fn send_pieces(&mut self, index: usize, frame: &Frame<'_>) -> (usize, Option<Errno>) {
        let Peer { raw, cipher, .. } = &mut self.peers[index];
        let (pieces, segment) = (frame.pieces(), frame.segment());
        let mut heads = [[0; HEAD]; PIECES_MAX];
        // Where each piece's parts begin, and the end of the last.
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        let mut begins = [0; PIECES_MAX + 1];
        let mut end = 0;
        if frame.is_encrypted() {
            for (at, datagram) in self.scratch.chunks_mut(segment).take(pieces).enumerate() {
                if !cipher.seal(frame.fill(at, datagram)) {
                    return (0, Some(Errno::EKEYEXPIRED));
                }
            }
            for (at, datagram) in self.scratch.chunks(segment).take(pieces).enumerate() {
                (begins[at], end) = (at, at + 1);
                parts[at] = IoSlice::new(&datagram[..frame.len(at)]);
            }
        } else {
            for (at, head) in heads[..pieces].iter_mut().enumerate() {
                *head = frame.head(at);
                begins[at] = end;
                let [first, second] = frame.bytes(at);
                for part in [&head[..], first, second] {
                    if !part.is_empty() {
                        parts[end] = IoSlice::new(part);
                        end += 1;
                    }
                }
            }
        }
        begins[pieces] = end;
        let together = self.socket.segments.min(MESSAGE_BYTES / segment).max(1);
        let mut sent = 0;
        while sent < pieces {
            let left = (pieces - sent).div_ceil(together).min(OUTBOX);
            let messages: [_; OUTBOX] = std::array::from_fn(|message| {
                let from = (sent + message * together).min(pieces);
                let to = (from + together).min(pieces);
                let parts = &parts[begins[from]..begins[to]];
                Message { to: raw, parts, segment, cut: to - from > 1 }
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
    fn send_long(&mut self, index: usize, mut frame: Frame<'_>) -> Result<(), Refused> {
        if !self.send_waiting() {
            return Err(Refused::Full);
        }
        let (mut sent, mut cause) = self.send_pieces(index, &frame);
        if sent == 0 && matches!(cause, Some(Errno::EMSGSIZE | Errno::EINVAL | Errno::EIO)) {
            let failure = Failure { peer: index, datagrams: 0, cause: cause.unwrap_or(Errno::EMSGSIZE) };
            self.failed(&failure);
            frame = self.frame(index, frame.parts(), frame.is_encrypted());
            (sent, cause) = self.send_pieces(index, &frame);
        }
        match cause {
            None => {}
            Some(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) if sent == 0 => return Err(Refused::Full),
            Some(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => {
                let mut rest = sent..frame.pieces();
                let (outbox, segments) = (&mut self.outbox, self.socket.segments);
                let all = rest.all(|at| {
                    let (head, [first, second]) = (frame.head(at), frame.bytes(at));
                    let encrypted = self.scratch.chunks(frame.segment()).nth(at).unwrap_or_default();
                    let parts: &[&[u8]] = match frame.is_encrypted() {
                        true => &[&encrypted[..frame.len(at)]],
                        false => &[&head, first, second],
                    };
                    outbox.add(index, parts, segments).is_some()
                });
                self.peers[index].stats.lost += u64::from(!all);
            }
            Some(cause) => self.failed(&Failure { peer: index, datagrams: 1, cause }),
        }
        Ok(())
    }

    /// A frame that fits into one datagram waits for others.
    fn send_short(&mut self, index: usize, frame: &Frame<'_>) -> Result<(), Refused> {
        if self.add(index, frame) {
            return Ok(());
        }
        self.send_waiting();
        if self.add(index, frame) { Ok(()) } else { Err(Refused::Full) }
    }

    /// Adds a frame of one datagram to those that wait, if there is room.
    fn add(&mut self, index: usize, frame: &Frame<'_>) -> bool {
        let (head, [first, second]) = (frame.head(0), frame.bytes(0));
        let (before, after) = frame.room();
        let parts = [&head[..], before, first, second, after];
        let Some(datagram) = self.outbox.add(index, &parts, self.socket.segments) else { return false };
        if frame.is_encrypted() && !self.peers[index].cipher.seal(datagram) {
            // Not even then does it leave as it is: nobody takes zeros.
            datagram.fill(0);
        }
        true
    }
}
