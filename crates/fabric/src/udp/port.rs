//! One queue of this node: one socket.

use super::{
    assembly::{Assembly, Outcome},
    directory::Directory,
    outbox::{Failure, MESSAGE_BYTES, Outbox},
    piece::{HEAD, Piece, head},
    socket::{Inbox, Message, RawAddress, Socket, path_mtu},
};
use crate::{
    Armed, Bytes, Error, Join, Refused, Result, Shape, Stats, Taken, Transport,
    limits::{FRAME_MAX, OUTBOX, PATH_LOOK_FRAMES, PIECES_MAX, SOCKET_SLEEP_MAX},
};
use nix::{
    errno::Errno,
    sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags},
};
use std::{
    io::IoSlice,
    net::{SocketAddr, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
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

/// Times that the socket is asked for more within one call: bounds what datagrams without frames can cost.
const FILLS: usize = 2;

struct Peer {
    node: u16,
    address: SocketAddr,
    raw: RawAddress,
    /// Bytes of a frame in one datagram.
    size: usize,
    /// The number of the next frame.
    next: u32,
    /// Frames until the path is looked at again.
    look_in: u64,
    assembly: Assembly,
    stats: Stats,
}

struct Port {
    shape: Shape,
    own: SocketAddr,
    mtu: Option<usize>,
    socket: Socket,
    epoll: Epoll,
    /// Whether the epoll waits for room, too.
    for_room: bool,
    instance: u32,
    peers: Vec<Peer>,
    by_address: Vec<(SocketAddr, usize)>,
    inbox: Inbox,
    /// Which message of the inbox is next, and how much of it is done.
    cursor: (usize, usize),
    outbox: Outbox,
    /// What came from nobody known.
    strangers: Stats,
}

/// Opens one queue.
pub(super) fn open(
    directory: &Directory,
    name: &str,
    join: &Join,
    queue: u16,
    mtu: Option<usize>,
) -> Result<Box<dyn Transport>> {
    let at = |node: u16| {
        let first = directory.0[usize::from(node)];
        SocketAddr::new(first.ip(), first.port() + queue)
    };
    let mut own = directory.0[usize::from(join.node)];
    own.set_port(own.port() + queue);
    let failed = |what: String, error: &std::io::Error| {
        let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
        Error::system(name, what, errno).hint("ip address show")
    };
    let socket = Socket::bind(own).map_err(|error| failed(format!("cannot bind {own}"), &error))?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
        .and_then(|epoll| epoll.add(socket.fd(), EpollEvent::new(EpollFlags::EPOLLIN, 0)).map(|()| epoll))
        .map_err(|errno| Error::system(name, "cannot wait for the socket", errno))?;
    let instance = getrandom::u32()
        .map_err(|error| Error::new(name, "cannot draw a random number", error.to_string()))?;
    let nodes = (0..join.nodes).filter(|node| *node != join.node);
    let peers: Vec<_> = nodes
        .map(|node| {
            let mut target = directory.0[usize::from(node)];
            target.set_port(target.port() + queue);
            Peer {
                node,
                address: at(node),
                raw: target.into(),
                size: piece_size(own, target, mtu),
                next: 0,
                look_in: PATH_LOOK_FRAMES,
                assembly: Assembly::new(),
                stats: Stats::default(),
            }
        })
        .collect();
    let mut by_address: Vec<_> = peers.iter().enumerate().map(|(at, peer)| (peer.address, at)).collect();
    by_address.sort();
    let shape = Shape { node: join.node, nodes: join.nodes, queue, frame_max: FRAME_MAX, lossy: true };
    Ok(Box::new(Port {
        shape,
        own,
        mtu,
        socket,
        epoll,
        for_room: false,
        instance,
        peers,
        by_address,
        inbox: Inbox::new(),
        cursor: (0, 0),
        outbox: Outbox::new(),
        strangers: Stats::default(),
    }))
}

/// Bytes of a frame that a datagram to `to` can carry.
fn piece_size(own: SocketAddr, to: SocketAddr, mtu: Option<usize>) -> usize {
    let v6 = own.is_ipv6();
    let mut from = own;
    from.set_port(0);
    let path = UdpSocket::bind(from).and_then(|probe| probe.connect(to).and_then(|()| path_mtu(&probe, v6)));
    let path = path.unwrap_or(MTU_UNKNOWN).min(mtu.unwrap_or(usize::MAX));
    let datagram = path.saturating_sub(headers(v6)).min(DATAGRAM_MAX);
    datagram.saturating_sub(HEAD).max(FRAME_MAX.div_ceil(PIECES_MAX))
}

impl Port {
    fn index(&self, peer: u16) -> Option<usize> {
        let index = usize::from(peer).checked_sub(usize::from(peer > self.shape.node))?;
        (peer != self.shape.node && index < self.peers.len()).then_some(index)
    }

    /// Looks how long datagrams to a peer may be now.
    #[cold]
    fn look(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let mut to = peer.address;
        if let (SocketAddr::V6(to), SocketAddr::V6(own)) = (&mut to, self.own) {
            to.set_scope_id(own.scope_id());
        }
        peer.size = piece_size(self.own, to, self.mtu);
        peer.look_in = PATH_LOOK_FRAMES;
    }

    /// Sends what waits. Messages that fail are lost; whether all the rest went.
    fn send_waiting(&mut self) -> bool {
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

    /// Sends a frame in pieces, without a copy as long as the socket takes them. How many pieces went; the rest, if any,
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
    fn send_long(&mut self, index: usize, head_part: &[u8], body: &[u8]) -> Result<(), Refused> {
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
    fn send_short(&mut self, index: usize, head_part: &[u8], body: &[u8]) -> Result<(), Refused> {
        let Peer { size, next, .. } = self.peers[index];
        let head = head(self.instance, next, head_part.len() + body.len(), size, 0);
        let parts = [&head[..], head_part, body];
        if self.outbox.add(index, parts, self.socket.segments) {
            return Ok(());
        }
        self.send_waiting();
        if self.outbox.add(index, parts, self.socket.segments) { Ok(()) } else { Err(Refused::Full) }
    }

    /// Lends the frame that ends with the next datagram of the inbox, if one does. None: stop here.
    fn step(&mut self, sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken) -> Option<usize> {
        let (from, bytes, segment) = self.inbox.message(self.cursor.0);
        let rest = &bytes[self.cursor.1..];
        let datagram = &rest[..rest.len().min(segment)];
        let by_address = &self.by_address;
        let known =
            from.and_then(|from| by_address.binary_search_by_key(&from, |(address, _)| *address).ok());
        let mut taken = 0;
        match (known, Piece::parse(datagram)) {
            (None, _) => self.strangers.bad_record += 1,
            (Some(at), None) => self.peers[by_address[at].1].stats.bad_record += 1,
            (Some(at), Some(piece)) => {
                let peer = &mut self.peers[by_address[at].1];
                let frame = match peer.assembly.take(&piece) {
                    Outcome::Whole => Some(Bytes::new(piece.bytes)),
                    Outcome::Complete(slot) => Some(Bytes::new(peer.assembly.frame(slot))),
                    Outcome::Waits | Outcome::Old => None,
                    Outcome::Bad => {
                        peer.stats.bad_record += 1;
                        None
                    }
                };
                if let Some(frame) = frame {
                    if sink(peer.node, frame) == Taken::Later {
                        return None;
                    }
                    peer.assembly.finish(piece.number);
                    peer.stats.received += 1;
                    taken = 1;
                }
            }
        }
        self.cursor.1 += datagram.len();
        if datagram.is_empty() || self.cursor.1 >= bytes.len() {
            self.cursor = (self.cursor.0 + 1, 0);
        }
        Some(taken)
    }
}

/// What lies from `at` for `len` bytes in two parts that follow each other.
fn cut<'a>(first: &'a [u8], second: &'a [u8], at: usize, len: usize) -> [&'a [u8]; 2] {
    let within = |part: &'a [u8], begin: usize, end: usize| &part[begin.min(part.len())..end.min(part.len())];
    let beyond = |at: usize| at.saturating_sub(first.len());
    [within(first, at, at + len), within(second, beyond(at), beyond(at + len))]
}

impl Transport for Port {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn send(&mut self, peer: u16, head: &[u8], body: &[u8]) -> Result<(), Refused> {
        let index = self.index(peer).ok_or(Refused::NoPeer)?;
        let len = head.len() + body.len();
        if len == 0 || len > FRAME_MAX {
            return Err(Refused::Length);
        }
        if self.peers[index].look_in == 0 {
            self.look(index);
        }
        let sent = if len <= self.peers[index].size {
            self.send_short(index, head, body)
        } else {
            self.send_long(index, head, body)
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

    fn flush(&mut self) {
        self.send_waiting();
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken) -> usize {
        let (mut total, mut fills) = (0, 0);
        while total < budget {
            if self.cursor.0 == self.inbox.filled {
                if fills == FILLS {
                    break;
                }
                fills += 1;
                self.inbox.fill(&self.socket);
                self.cursor = (0, 0);
                if self.inbox.filled == 0 {
                    break;
                }
            }
            match self.step(sink) {
                Some(taken) => total += taken,
                None => break,
            }
        }
        total
    }

    fn arm(&mut self, full: &[u16]) -> Armed {
        let for_room = !self.send_waiting() || !full.is_empty();
        if self.cursor.0 < self.inbox.filled {
            return Armed::Ready;
        }
        if for_room != self.for_room {
            let room = if for_room { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
            let mut event = EpollEvent::new(EpollFlags::EPOLLIN | room, 0);
            if self.epoll.modify(self.socket.fd(), &mut event).is_err() {
                return Armed::Ready;
            }
            self.for_room = for_room;
        }
        Armed::Sleep(SOCKET_SLEEP_MAX)
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.0.as_fd())
    }

    fn reset(&mut self, peer: u16) {
        if let Some(index) = self.index(peer) {
            self.outbox.drop_waiting(index);
            self.peers[index].assembly.drop_waiting();
            self.look(index);
        }
    }

    fn stats(&self, peer: u16) -> Stats {
        match self.index(peer) {
            Some(index) => {
                let peer = &self.peers[index];
                let queued = self.outbox.waits(index) as u64;
                Stats { incomplete: peer.assembly.incomplete, queued, ..peer.stats }
            }
            None if peer == self.shape.node => self.strangers,
            None => Stats::default(),
        }
    }
}
