//! One queue of this node: one socket.

mod frame;
mod known;
mod sending;

use frame::{PIECE_MIN, SCRATCH};
pub(super) use sending::path;

use super::{
    assembly::{Assembly, Outcome},
    cipher::{Cipher, Unproven, is_encrypted, opened},
    outbox::Outbox,
    piece::Piece,
    socket::{Inbox, RawAddress, Socket},
};
use crate::{
    Armed, Bytes, Error, Join, Live, Refused, Result, Shape, Stats, Taken, Transport,
    keys::FrameKeys,
    limits::{FRAME_MAX, PATH_LOOK_FRAMES, SOCKET_SLEEP_MAX},
};
use nix::{
    errno::Errno,
    sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags},
};
use std::{
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
};

/// Times that the socket is asked for more within one call: bounds what datagrams without frames can cost.
const FILLS: usize = 2;

struct Peer {
    node: u16,
    /// Its address for this queue; none while it is not known.
    address: Option<SocketAddr>,
    /// The same, as the kernel reads it; of an address that is not known, nowhere.
    raw: RawAddress,
    /// Bytes of a frame in one datagram.
    size: usize,
    /// The number of the next frame.
    next: u32,
    /// Frames until the path is looked at again.
    look_in: u64,
    assembly: Assembly,
    cipher: Cipher,
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
    directory: Arc<Live>,
    /// Which change of the directory the addresses are from.
    version: u64,
    inbox: Inbox,
    /// Which message of the inbox is next, and how much of it is done.
    cursor: (usize, usize),
    /// Whether the next datagram was decrypted already, because the frame in it was not taken.
    opened: bool,
    outbox: Outbox,
    /// Where the datagrams of a frame are encrypted.
    scratch: Box<[u8]>,
    /// What came from nobody known.
    strangers: Stats,
}

/// Opens one queue.
pub(super) fn open(
    directory: &Arc<Live>,
    name: &str,
    join: &Join,
    queue: u16,
    mtu: Option<usize>,
) -> Result<Box<dyn Transport>> {
    let mut own = directory.directory().own;
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
    let peer = |node| Peer {
        node,
        address: None,
        raw: own.into(),
        size: PIECE_MIN,
        next: 0,
        look_in: PATH_LOOK_FRAMES,
        assembly: Assembly::new(),
        cipher: Cipher::new(queue),
        stats: Stats::default(),
    };
    let peers = nodes.map(peer).collect();
    let shape = Shape { node: join.node, nodes: join.nodes, queue, frame_max: FRAME_MAX, lossy: true };
    let mut port = Port {
        shape,
        own,
        mtu,
        socket,
        epoll,
        for_room: false,
        instance,
        peers,
        by_address: Vec::new(),
        directory: directory.clone(),
        version: 0,
        inbox: Inbox::new(),
        cursor: (0, 0),
        opened: false,
        outbox: Outbox::new(),
        scratch: vec![0; SCRATCH].into_boxed_slice(),
        strangers: Stats::default(),
    };
    port.take_addresses();
    Ok(Box::new(port))
}

impl Port {
    fn index(&self, peer: u16) -> Option<usize> {
        let index = usize::from(peer).checked_sub(usize::from(peer > self.shape.node))?;
        (peer != self.shape.node && index < self.peers.len()).then_some(index)
    }

    /// Lends the frame that ends with the next datagram of the inbox, if one does. None: stop here.
    fn step(&mut self, sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken) -> Option<usize> {
        let (from, bytes, segment) = self.inbox.message(self.cursor.0);
        let (begin, all) = (self.cursor.1, bytes.len());
        let datagram = &mut bytes[begin..all.min(begin + segment)];
        let len = datagram.len();
        let by_address = &self.by_address;
        let known =
            from.and_then(|from| by_address.binary_search_by_key(&from, |(address, _)| *address).ok());
        let taken = match known {
            //= docs/fabric.md#10.1
            None => {
                self.strangers.bad_record += 1;
                0
            }
            Some(at) => {
                let peer = &mut self.peers[by_address[at].1];
                match peer.take(datagram, self.opened, sink) {
                    Ok(Taken::Yes) => 1,
                    Ok(Taken::Later) => {
                        self.opened = true;
                        return None;
                    }
                    Err(reason) => {
                        peer.stats.refuse(reason);
                        0
                    }
                }
            }
        };
        self.opened = false;
        self.cursor.1 += len;
        if len == 0 || self.cursor.1 >= all {
            self.cursor = (self.cursor.0 + 1, 0);
        }
        Some(taken)
    }
}

/// Why no frame ends with a datagram.
enum NoFrame {
    /// Pieces are missing, or the frame came before.
    Waits,
    /// It makes no sense.
    Bad,
    /// A part of a frame that is not encrypted where it must be.
    Plain,
    Unproven(Unproven),
}

impl Stats {
    fn refuse(&mut self, reason: NoFrame) {
        match reason {
            NoFrame::Waits => {}
            NoFrame::Bad | NoFrame::Unproven(Unproven::Piece) => self.bad_record += 1,
            NoFrame::Plain => self.plain += 1,
            NoFrame::Unproven(Unproven::OtherKey) => self.other_key += 1,
            NoFrame::Unproven(Unproven::Repeated) => self.repeated += 1,
            NoFrame::Unproven(Unproven::Tag) => self.bad_tag += 1,
        }
    }
}

impl Peer {
    /// Lends the frame that ends with a datagram; whether it was taken. `is_open`: it was decrypted before.
    fn take(
        &mut self,
        datagram: &mut [u8],
        is_open: bool,
        sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken,
    ) -> Result<Taken, NoFrame> {
        let encrypted = is_encrypted(datagram);
        if encrypted && !is_open {
            self.cipher.open(datagram).map_err(NoFrame::Unproven)?;
        }
        let piece = if encrypted {
            opened(datagram).map_err(NoFrame::Unproven)?
        } else {
            Piece::parse(datagram).ok_or(NoFrame::Bad)?
        };
        //= docs/fabric.md#9.4
        if self.cipher.is_on() && !encrypted && !piece.is_whole() {
            return Err(NoFrame::Plain);
        }
        let frame = match self.assembly.take(&piece) {
            Outcome::Whole => Bytes::new(piece.bytes),
            Outcome::Complete(slot) => Bytes::new(self.assembly.frame(slot)),
            Outcome::Waits | Outcome::Old => return Err(NoFrame::Waits),
            Outcome::Bad => return Err(NoFrame::Bad),
        };
        if sink(self.node, frame.came(encrypted)) == Taken::Later {
            return Ok(Taken::Later);
        }
        self.assembly.finish(&piece);
        self.stats.received += 1;
        Ok(Taken::Yes)
    }
}

impl Transport for Port {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn send(&mut self, peer: u16, head: &[u8], body: &[u8]) -> Result<(), Refused> {
        self.send_frame(peer, [head, body], false)
    }

    fn send_encrypted(&mut self, peer: u16, head: &[u8], body: &[u8]) -> Result<(), Refused> {
        self.send_frame(peer, [head, body], true)
    }

    fn set_keys(&mut self, peer: u16, keys: Option<&FrameKeys>) {
        let Some(index) = self.index(peer) else { return };
        let Peer { cipher, assembly, .. } = &mut self.peers[index];
        //= docs/fabric.md#9.4
        // Whatever is held of parts was not encrypted, and anybody may have written it.
        if keys.is_some() && !cipher.is_on() {
            assembly.forget();
        }
        cipher.set_keys(keys);
    }

    fn flush(&mut self) {
        self.send_waiting();
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken) -> usize {
        self.follow_directory();
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

    fn directory(&self) -> Option<&Arc<Live>> {
        Some(&self.directory)
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
