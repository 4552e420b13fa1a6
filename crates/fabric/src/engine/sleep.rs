//! What a queue's thread does while there is nothing to do.

use super::{Counter, Engine, Idle, Port};
use crate::{Armed, Transport};
use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::time::TimeSpec,
};
use std::os::fd::AsFd;

/// Looks without success between two offers of the processor to others; the first look makes one. Few, because two nodes of one
/// machine, or a node and the program it works for, may share a processor, and then each waits for the other's offer: with 128
/// a round trip of 64 bytes took four times as long as with 8. An offer that nobody takes costs as much as the look before it.
const YIELD_ROUNDS: u32 = 8;

impl<T: Transport, P: Port> Engine<T, P> {
    /// Spins or sleeps, as it pays.
    pub(super) fn rest(&mut self) {
        match self.spin.idle(self.shared.now()) {
            // Who was just woken by what we delivered may need this very processor.
            Idle::Spin if self.rounds.is_multiple_of(YIELD_ROUNDS) => std::thread::yield_now(),
            Idle::Spin => std::hint::spin_loop(),
            Idle::Sleep => self.sleep(),
        }
        self.rounds = self.rounds.wrapping_add(1);
    }

    /// Sleeps until a frame comes from either side, the session wants something, or a full queue has room again.
    fn sleep(&mut self) {
        self.full.clear();
        self.full.extend(self.held.map(|held| held.peer()));
        if self.controls > 0 {
            let waiting = (0..).zip(&self.peers).filter(|(_, peer)| peer.control.is_some());
            self.full.extend(waiting.map(|(number, _): (u16, _)| number));
        }
        let from = self.shared.now();
        let mut woken = true;
        if let Armed::Sleep(limit) = self.transport.arm(&self.full) {
            let limit = match self.held {
                Some(held) => limit.min(self.peers[usize::from(held.peer())].credit.left()),
                None => limit,
            };
            let (wakeup, port) = (self.outlet.wakeup.as_fd(), self.port.wake_fd());
            // While a frame waits, those behind it wait in the kernel.
            let port_events = if self.held.is_none() { PollFlags::POLLIN } else { PollFlags::empty() };
            let transport = self.transport.wake_fd();
            let mut fds = [
                PollFd::new(wakeup, PollFlags::POLLIN),
                PollFd::new(port, port_events),
                PollFd::new(transport.unwrap_or(wakeup), PollFlags::POLLIN),
            ];
            let came = ppoll(&mut fds, Some(TimeSpec::from(limit)), None);
            woken = came.is_ok_and(|came| came > 0);
            if fds[0].any() == Some(true) {
                self.outlet.wakeup.clear();
            }
            self.count(self.shape.node, Counter::Sleeps);
            if woken {
                self.count(self.shape.node, Counter::Wakes);
            }
        }
        self.transport.disarm();
        let to = self.shared.now();
        if woken || self.transport.wake_fd().is_some() {
            self.spin.slept(from, to, woken);
        } else {
            self.spin.napped(from, to);
        }
    }
}
