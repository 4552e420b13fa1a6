//! One queue of this node: one endpoint, and a talk with every peer.

mod link;
mod moving;

use super::{
    Opening,
    endpoint::Endpoint,
    message::{HEAD, LENGTH, MESSAGE_MAX},
    pool::Sizes,
};
use crate::limits::{BACKLOG_SLEEP, DRAIN, FALSE_ALARMS, NAP_MAX, WAIT_MAX, WINDOW};
use link::Link;
use linkbraid_fabric::{
    Armed, Bytes, Refused, Shape, Stats, Taken, Transport,
    limits::{FRAME_MAX, NAP_MIN, PEER_BURST, SLEEP_MAX},
};
use std::{
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

/// Messages without frames that may be under way to a peer at a time.
const CONTROLS: usize = 2;

/// By how much an arrival makes the next nap shorter.
const NAP_SHORTER: u32 = 4;

/// Receives posted for a peer beyond its window, for messages without frames.
const SPARE: usize = 2;

/// What a slot is for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// To be received into.
    Receive,
    /// Frames for the peer at this place, so many, up to this byte, of this life.
    Frames { link: usize, frames: u64, end: usize, life: u32 },
    /// A message without frames.
    Control { link: usize, life: u32 },
}

/// The window of every peer where there are so many of them.
pub fn window(peers: usize) -> u16 {
    WINDOW / (peers / 32 + 1).next_power_of_two().min(WINDOW as usize / 2) as u16
}

/// The memory of a queue.
pub fn sizes(peers: usize) -> Sizes {
    let window = usize::from(window(peers));
    Sizes {
        long: peers * (window + SPARE + window),
        long_bytes: MESSAGE_MAX,
        short: peers * CONTROLS,
        short_bytes: HEAD,
    }
}

pub(super) struct Port {
    shape: Shape,
    endpoint: Endpoint,
    purposes: Box<[Purpose]>,
    /// Slots that could not be posted yet.
    unposted: Vec<usize>,
    links: Vec<Link>,
    /// Whose turn it is to be received from first.
    next: usize,
    /// Peers that hellos are said to.
    connecting: usize,
    /// Where addresses are names, a peer that starts again must be looked up again.
    by_name: bool,
    waits: bool,
    nap: Duration,
    /// Times in a row that the wait object was not to be slept on although nothing had come.
    alarms: u32,
    /// What came from nobody known.
    strangers: Stats,
}

impl Port {
    /// A queue on an endpoint that was opened with [`sizes`]; peers by number with the addresses they have.
    pub fn new(opening: Opening, shape: Shape, life: u32) -> Self {
        let Opening { endpoint, peers, by_name, waits } = opening;
        let count = peers.len();
        let sizes = sizes(count);
        let window = window(count);
        let receives = count * (usize::from(window) + SPARE);
        let mut purposes = vec![Purpose::Receive; sizes.long + sizes.short].into_boxed_slice();
        let now = Instant::now();
        let links: Vec<_> = peers
            .into_iter()
            .enumerate()
            .map(|(at, (node, address, known))| {
                let first = receives + at * usize::from(window);
                let controls = sizes.long + at * CONTROLS;
                let frames = Purpose::Frames { link: at, frames: 0, end: 0, life: 0 };
                purposes[first..first + usize::from(window)].fill(frames);
                purposes[controls..controls + CONTROLS].fill(Purpose::Control { link: at, life: 0 });
                let slots = (first..first + usize::from(window)).collect();
                Link::new(
                    node,
                    (address, known),
                    life,
                    window,
                    (slots, (controls..controls + CONTROLS).collect()),
                    now,
                )
            })
            .collect();
        let connecting = links.len();
        Self {
            shape,
            endpoint,
            purposes,
            unposted: (0..receives).rev().collect(),
            links,
            next: 0,
            connecting,
            by_name,
            waits,
            nap: NAP_MIN,
            alarms: 0,
            strangers: Stats::default(),
        }
    }

    /// The place of a peer in `links`, which leave out this node.
    fn index(&self, peer: u16) -> Option<usize> {
        let index = usize::from(peer).checked_sub(usize::from(peer > self.shape.node))?;
        (peer != self.shape.node && index < self.links.len()).then_some(index)
    }

    /// Lends the frames of one peer; how many were taken, and whether it was stopped.
    fn lend(
        &mut self,
        index: usize,
        budget: usize,
        sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken,
    ) -> (usize, bool) {
        let (mut taken, mut stopped) = (0, false);
        while taken < budget && !stopped {
            let link = &mut self.links[index];
            let Some(Some(front)) = link.inbox.front_mut() else { break };
            let message = &self.endpoint.pool.bytes(front.slot)[..front.end];
            match super::message::frame_at(message, front.at) {
                Some((start, end)) => {
                    if sink(link.node, Bytes::new(&message[start..end])) == Taken::Later {
                        stopped = true;
                        break;
                    }
                    taken += 1;
                    link.stats.received += 1;
                    front.at = end;
                }
                None => {
                    link.stats.bad_record += 1;
                    front.at = front.end;
                }
            }
            if front.at == front.end {
                let slot = front.slot;
                link.inbox.pop_front();
                link.talk.took();
                self.repost(slot);
            }
        }
        (taken, stopped)
    }
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
        let Some((slot, at)) = self.place_for(index, LENGTH + len) else {
            self.links[index].stats.full += 1;
            return Err(Refused::Full);
        };
        let bytes = &mut self.endpoint.pool.bytes_mut(slot)[at..at + LENGTH + len];
        let (length, frame) = bytes.split_at_mut(LENGTH);
        length.copy_from_slice(&(len as u32).to_be_bytes());
        frame[..head.len()].copy_from_slice(head);
        frame[head.len()..].copy_from_slice(body);
        if let Purpose::Frames { frames, .. } = &mut self.purposes[slot] {
            *frames += 1;
        }
        let link = &mut self.links[index];
        link.open = Some((slot, at + LENGTH + len));
        link.stats.sent += 1;
        Ok(())
    }

    fn flush(&mut self) {
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            link.flushed |= link.open.is_some();
            if link.has_work() {
                self.post(index);
            }
        }
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken) -> usize {
        self.progress();
        let peers = self.links.len();
        let mut total = 0;
        for _ in 0..peers {
            let left = budget - total;
            if left == 0 {
                break;
            }
            let share = if peers == 1 { left } else { left.min(PEER_BURST) };
            let (taken, stopped) = self.lend(self.next, share, sink);
            total += taken;
            if stopped {
                break;
            }
            self.next = if self.next + 1 == peers { 0 } else { self.next + 1 };
        }
        self.pump();
        if total > 0 {
            // One message is no traffic: what peers say to show that they live must not cost many short naps.
            (self.nap, self.alarms) = ((self.nap / NAP_SHORTER).max(NAP_MIN), 0);
        }
        total
    }

    fn arm(&mut self, full: &[u16]) -> Armed {
        self.progress();
        self.pump();
        let has_room = |peer: &u16| self.index(*peer).is_some_and(|index| self.links[index].has_room());
        if self.links.iter().any(Link::has_frames) || full.iter().any(has_room) {
            return Armed::Ready;
        }
        let mut sleep = if self.waits { WAIT_MAX } else { SLEEP_MAX };
        if self.connecting > 0 {
            sleep = SLEEP_MAX;
            let due = self.links.iter().filter_map(Link::hello_due).min();
            sleep = sleep.min(due.map_or(sleep, |due| due.saturating_duration_since(Instant::now())));
        }
        if self.waits {
            if self.endpoint.may_sleep() {
                let backlog = !self.unposted.is_empty() || self.links.iter().any(Link::is_held_up);
                return Armed::Sleep(if backlog { sleep.min(BACKLOG_SLEEP) } else { sleep });
            }
            self.alarms += 1;
            if self.alarms < FALSE_ALARMS {
                return Armed::Ready;
            }
        }
        let nap = self.nap;
        self.nap = (nap * 2).min(NAP_MAX);
        Armed::Sleep(nap.min(sleep))
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.endpoint.wait_fd()
    }

    fn reset(&mut self, peer: u16) {
        if let Some(index) = self.index(peer) {
            self.forget(index);
        }
    }

    fn stats(&self, peer: u16) -> Stats {
        match self.index(peer) {
            Some(index) => self.links[index].stats(),
            None if peer == self.shape.node => self.strangers,
            None => Stats::default(),
        }
    }
}

impl Drop for Port {
    /// What was sent goes, if it can soon: a farewell, say.
    fn drop(&mut self) {
        self.flush();
        let begun = Instant::now();
        while self.links.iter().any(Link::is_sending) && begun.elapsed() < DRAIN {
            self.progress();
            self.pump();
            std::thread::yield_now();
        }
    }
}
