//! One queue of this node: a ring to and from every peer.

use super::{
    join::Joined,
    wake::{Sleeper, Waker},
};
use crate::{
    Armed, Bytes, Error, Join, Loss, Refused, Result, Shape, Stats, Taken, Transport,
    limits::{FRAME_MAX, MEMORY_LOOK, NAP_MAX, NAP_MIN, PEER_BURST, SLEEP_MAX},
    ring::{Consumer, Producer, full_fence},
};
use std::{
    os::fd::BorrowedFd,
    sync::Arc,
    time::{Duration, Instant},
};

/// The ways to and from one peer.
struct Link {
    peer: u16,
    to: Producer,
    from: Consumer,
    waker: Option<Waker>,
    stats: Stats,
}

struct Port {
    shape: Shape,
    links: Vec<Link>,
    /// Whose turn it is to be received from first.
    next: usize,
    sleeper: Option<Sleeper>,
    nap: Duration,
    /// Held for as long as a queue is open.
    joined: Arc<Joined>,
    /// When to look next whether the memory is still the one that was joined.
    look_at: Instant,
}

/// Opens every queue of a node.
pub(super) fn open(joined: Joined, address: &str, join: &Join) -> Result<Vec<Box<dyn Transport>>> {
    let joined = Arc::new(joined);
    let look_at = Instant::now() + MEMORY_LOOK;
    let mut ports: Vec<Box<dyn Transport>> = Vec::with_capacity(join.queues.into());
    for queue in 0..join.queues {
        let peers = (0..join.nodes).filter(|peer| *peer != join.node);
        let links = peers.map(|peer| link(&joined, join.node, queue, peer)).collect::<Option<Vec<_>>>();
        let links = links.ok_or_else(|| Error::new(address, "cannot join", "the memory is too small"))?;
        let sleeper = match joined.wakes_beside() {
            Some(path) => Some(Sleeper::open(path, join.node, queue, address)?),
            None => None,
        };
        let shape = Shape { node: join.node, nodes: join.nodes, queue, frame_max: FRAME_MAX, lossy: false };
        let joined = Arc::clone(&joined);
        ports.push(Box::new(Port { shape, links, next: 0, sleeper, nap: NAP_MIN, joined, look_at }));
    }
    Ok(ports)
}

fn link(joined: &Joined, node: u16, queue: u16, peer: u16) -> Option<Link> {
    let (map, layout) = (&joined.map, &joined.layout);
    let at = |at: u64| usize::try_from(at).ok();
    let ring = usize::try_from(layout.shape().ring).ok()?;
    let to = Producer::attach(
        map.place(at(layout.to_consumer(queue, node, peer))?)?,
        map.place(at(layout.to_producer(queue, node, peer))?)?,
        map.data(at(layout.records(queue, node, peer))?, ring)?,
        FRAME_MAX,
    )?;
    let from = Consumer::attach(
        map.place(at(layout.to_consumer(queue, peer, node))?)?,
        map.place(at(layout.to_producer(queue, peer, node))?)?,
        map.data(at(layout.records(queue, peer, node))?, ring)?,
        FRAME_MAX,
    )?;
    let waker = joined.wakes_beside().map(|path| Waker::new(path, peer, queue));
    Some(Link { peer, to, from, waker, stats: Stats::default() })
}

impl Link {
    fn wake(&mut self) {
        if let Some(waker) = &mut self.waker {
            waker.wake();
            self.stats.wakes += 1;
        }
    }
}

impl Port {
    /// The place of a peer in `links`, which leave out this node.
    #[inline]
    fn place(&self, peer: u16) -> Option<usize> {
        (peer != self.shape.node).then(|| usize::from(peer) - usize::from(peer > self.shape.node))
    }

    #[inline]
    fn link(&mut self, peer: u16) -> Option<&mut Link> {
        let place = self.place(peer)?;
        self.links.get_mut(place)
    }
}

impl Transport for Port {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn send(&mut self, peer: u16, head: &[u8], body: &[u8]) -> Result<(), Refused> {
        let link = self.link(peer).ok_or(Refused::NoPeer)?;
        let sent = link.to.send(head, body);
        match sent {
            Ok(()) => {
                link.stats.sent += 1;
                // The answer to a frame comes soon. What the session says, which has no body, would cost an idle queue short naps.
                if !body.is_empty() {
                    self.nap = NAP_MIN;
                }
            }
            Err(Refused::Full) => link.stats.full += 1,
            Err(_) => {}
        }
        sent
    }

    fn flush(&mut self) {
        for link in &mut self.links {
            if link.to.must_wake() {
                link.wake();
            }
        }
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken) -> usize {
        let peers = self.links.len();
        let mut total = 0;
        let mut later = false;
        for _ in 0..peers {
            let left = budget - total;
            if left == 0 || later {
                break;
            }
            let share = if peers == 1 { left } else { left.min(PEER_BURST) };
            let link = &mut self.links[self.next];
            let peer = link.peer;
            let (taken, _) = link.from.receive(share, |bytes| {
                let taken = sink(peer, bytes);
                later |= taken == Taken::Later;
                taken
            });
            if taken > 0 {
                link.stats.received += taken as u64;
                total += taken;
                if link.from.must_wake() {
                    link.wake();
                }
            }
            // Who was stopped in the middle goes on first.
            if !later {
                self.next = if self.next + 1 == peers { 0 } else { self.next + 1 };
            }
        }
        if total > 0 {
            self.nap = NAP_MIN;
        }
        total
    }

    fn arm(&mut self, full: &[u16]) -> Armed {
        for link in &mut self.links {
            link.from.say_asleep();
        }
        for peer in full {
            if let Some(link) = self.link(*peer) {
                link.to.want_room();
            }
        }
        full_fence();
        let frames = self.links.iter().any(|link| link.from.has_frames());
        let mut has_room = |peer: &u16| self.link(*peer).is_some_and(|link| link.to.has_room());
        if frames || full.iter().any(&mut has_room) {
            return Armed::Ready;
        }
        if self.sleeper.is_some() {
            return Armed::Sleep(SLEEP_MAX);
        }
        let nap = self.nap;
        // Who is found asleep is so for a third of the time that it has waited, at most.
        self.nap = (nap * 3 / 2).min(NAP_MAX);
        Armed::Sleep(nap)
    }

    fn disarm(&mut self) {
        for link in &mut self.links {
            link.from.say_awake();
        }
        if let Some(sleeper) = &self.sleeper {
            sleeper.drain();
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.sleeper.as_ref().map(Sleeper::fd)
    }

    fn reset(&mut self, peer: u16) {
        if let Some(link) = self.link(peer) {
            link.from.drop_waiting();
            if link.from.must_wake() {
                link.wake();
            }
            // It may have made a FIFO of its own since.
            if let Some(waker) = &mut link.waker {
                waker.forget();
            }
        }
    }

    fn lost(&mut self) -> Option<Loss> {
        if self.joined.map.is_lost() {
            return Some(Loss::Cut);
        }
        let now = Instant::now();
        if now < self.look_at {
            return None;
        }
        self.look_at = now + MEMORY_LOOK;
        if self.sleeper.as_ref().is_some_and(|sleeper| !sleeper.is_named()) {
            return Some(Loss::Removed);
        }
        if self.shape.queue == 0 { self.joined.look() } else { None }
    }

    fn stats(&self, peer: u16) -> Stats {
        let Some(link) = self.place(peer).and_then(|place| self.links.get(place)) else {
            return Stats::default();
        };
        Stats {
            bad_position: link.to.bad_position() + link.from.bad_position(),
            bad_record: link.from.bad_record(),
            queued: link.to.queued(),
            ..link.stats
        }
    }
}
