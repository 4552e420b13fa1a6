//! A transport in this process and an interface without a kernel, for tests of the engine. Neither allocates once made.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Mutex},
    time::Duration,
};

use linkbraid_fabric::{
    Armed, Bytes, Refused, Shape, Stats, Taken, Transport,
    engine::{Port, PortRefusal},
};
use linkbraid_wire::fabric::{MESSAGE_MAX, VIRTIO_LEN};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// A bounded queue of byte strings with its memory made beforehand.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<(usize, Box<[u8]>)>,
    head: usize,
    len: usize,
}

impl Slots {
    fn new(count: usize, bytes: usize) -> Self {
        Self { slots: (0..count).map(|_| (0, vec![0; bytes].into())).collect(), head: 0, len: 0 }
    }

    fn push(&mut self, parts: [&[u8]; 2]) -> bool {
        if self.len == self.slots.len() {
            return false;
        }
        let at = (self.head + self.len) % self.slots.len();
        let (len, bytes) = &mut self.slots[at];
        bytes[..parts[0].len()].copy_from_slice(parts[0]);
        *len = parts[0].len() + parts[1].len();
        bytes[parts[0].len()..*len].copy_from_slice(parts[1]);
        self.len += 1;
        true
    }

    fn first(&self) -> Option<&[u8]> {
        let (len, bytes) = &self.slots[self.head];
        (self.len > 0).then(|| &bytes[..*len])
    }

    fn pop(&mut self) {
        self.head = (self.head + 1) % self.slots.len();
        self.len -= 1;
    }

    fn clear(&mut self) {
        self.len = 0;
    }
}

fn wakeup() -> EventFd {
    EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).unwrap()
}

/// What the nodes share: a queue from each node to each.
#[derive(Debug)]
pub struct Net {
    nodes: u16,
    queues: Vec<Mutex<Slots>>,
    wakeups: Vec<EventFd>,
}

impl Net {
    pub fn new(nodes: u16, slots: usize) -> Arc<Self> {
        let queue = |_| Mutex::new(Slots::new(slots, MESSAGE_MAX));
        let pairs = usize::from(nodes).pow(2);
        Arc::new(Self {
            nodes,
            queues: (0..pairs).map(queue).collect(),
            wakeups: (0..nodes).map(|_| wakeup()).collect(),
        })
    }

    pub fn node(self: &Arc<Self>, node: u16) -> Toy {
        Toy { net: self.clone(), node, stats: vec![Stats::default(); usize::from(self.nodes)] }
    }

    fn queue(&self, from: u16, to: u16) -> std::sync::MutexGuard<'_, Slots> {
        self.queues[usize::from(from) * usize::from(self.nodes) + usize::from(to)].lock().unwrap()
    }

    /// Puts bytes into the queue as a hostile node would; whether there was room.
    pub fn inject(&self, from: u16, to: u16, message: &[u8]) -> bool {
        self.queue(from, to).push([message, &[]])
    }

    /// Takes the next message out of the queue.
    pub fn steal(&self, from: u16, to: u16) -> Option<Vec<u8>> {
        let mut queue = self.queue(from, to);
        let message = queue.first()?.to_vec();
        queue.pop();
        Some(message)
    }

    /// How many wait.
    pub fn waiting(&self, from: u16, to: u16) -> usize {
        self.queue(from, to).len
    }
}

/// One node on it, with one queue.
#[derive(Debug)]
pub struct Toy {
    net: Arc<Net>,
    node: u16,
    stats: Vec<Stats>,
}

impl Transport for Toy {
    fn shape(&self) -> Shape {
        Shape { node: self.node, nodes: self.net.nodes, queue: 0, frame_max: MESSAGE_MAX, lossy: false }
    }

    fn send(&mut self, peer: u16, head: &[u8], body: &[u8]) -> Result<(), Refused> {
        if peer >= self.net.nodes || peer == self.node {
            return Err(Refused::NoPeer);
        }
        if head.len() + body.len() > MESSAGE_MAX {
            return Err(Refused::Length);
        }
        if !self.net.queue(self.node, peer).push([head, body]) {
            return Err(Refused::Full);
        }
        self.net.wakeups[usize::from(peer)].write(1).unwrap();
        Ok(())
    }

    fn flush(&mut self) {}

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken) -> usize {
        let mut taken = 0;
        for peer in 0..self.net.nodes {
            while taken < budget {
                let mut queue = self.net.queue(peer, self.node);
                let Some(message) = queue.first() else { break };
                if sink(peer, Bytes::new(message)) == Taken::Later {
                    return taken;
                }
                queue.pop();
                drop(queue);
                self.net.wakeups[usize::from(peer)].write(1).unwrap();
                taken += 1;
            }
        }
        taken
    }

    fn arm(&mut self, full: &[u16]) -> Armed {
        let arrived = (0..self.net.nodes).any(|peer| self.net.waiting(peer, self.node) > 0);
        let room = full.iter().any(|peer| {
            let queue = self.net.queue(self.node, *peer);
            queue.len < queue.slots.len()
        });
        if arrived || room { Armed::Ready } else { Armed::Sleep(Duration::from_millis(20)) }
    }

    fn disarm(&mut self) {
        let _ = self.net.wakeups[usize::from(self.node)].read();
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.net.wakeups[usize::from(self.node)].as_fd())
    }

    fn reset(&mut self, peer: u16) {
        self.net.queue(self.node, peer).clear();
        self.net.queue(peer, self.node).clear();
    }

    fn stats(&self, peer: u16) -> Stats {
        self.stats[usize::from(peer)]
    }
}

/// The other side of a [`FakePort`]: what stands for the kernel.
#[derive(Debug)]
pub struct Kernel {
    out: Mutex<Slots>,
    into: Mutex<Slots>,
    wakeup: EventFd,
    refusal: Mutex<Option<PortRefusal>>,
}

impl Kernel {
    pub fn new(slots: usize) -> Arc<Self> {
        let slots = || Mutex::new(Slots::new(slots, VIRTIO_LEN + 65_557));
        Arc::new(Self { out: slots(), into: slots(), wakeup: wakeup(), refusal: Mutex::new(None) })
    }

    pub fn port(self: &Arc<Self>) -> FakePort {
        FakePort(self.clone())
    }

    /// Puts a frame into the queue that the engine reads; whether there was room.
    pub fn sends(&self, frame: &[u8]) -> bool {
        let put = self.out.lock().unwrap().push([&[0; VIRTIO_LEN], frame]);
        self.wakeup.write(1).unwrap();
        put
    }

    /// Frames that the engine has not read yet.
    pub fn waiting(&self) -> usize {
        self.out.lock().unwrap().len
    }

    /// The next frame that came in, without its virtio header.
    pub fn got(&self) -> Option<Vec<u8>> {
        let mut into = self.into.lock().unwrap();
        let frame = into.first()?[VIRTIO_LEN..].to_vec();
        into.pop();
        Some(frame)
    }

    /// Throws away what came in; how many frames.
    pub fn discard(&self) -> usize {
        let mut into = self.into.lock().unwrap();
        let len = into.len;
        into.clear();
        len
    }

    pub fn refuse(&self, refusal: Option<PortRefusal>) {
        *self.refusal.lock().unwrap() = refusal;
    }
}

#[derive(Debug)]
pub struct FakePort(Arc<Kernel>);

impl Port for FakePort {
    fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, PortRefusal> {
        if let Some(PortRefusal::Gone) = *self.0.refusal.lock().unwrap() {
            return Err(PortRefusal::Gone);
        }
        let mut out = self.0.out.lock().unwrap();
        let Some(frame) = out.first() else { return Ok(None) };
        let len = frame.len();
        buffer[..len].copy_from_slice(frame);
        out.pop();
        Ok(Some(len))
    }

    fn write(&mut self, head: &[u8], rest: Bytes<'_>) -> Result<(), PortRefusal> {
        if let Some(refusal) = *self.0.refusal.lock().unwrap() {
            return Err(refusal);
        }
        let mut into = self.0.into.lock().unwrap();
        let at = (into.head + into.len) % into.slots.len();
        assert!(into.push([head, &[]]), "the test takes what comes in");
        let (len, bytes) = &mut into.slots[at];
        *len += rest.copy_to(&mut bytes[head.len()..]);
        Ok(())
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.0.wakeup.as_fd()
    }
}
