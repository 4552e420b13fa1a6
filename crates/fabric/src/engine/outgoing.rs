//! Frames from the interface to peers, and control messages from the session.

use super::{BATCH, Counter, Engine, Port, PortRefusal, derived_node, incoming::addresses, is_group};
use crate::{Refused, Transport};
use linkbraid_wire::fabric::{FRAME_MIN, Header, Kind, VIRTIO_LEN};

/// Bytes that may be gathered before the peers are woken: a sleeping peer starts on a large transfer while we go on.
const FLUSH_BYTES: usize = 128 * 1024;

/// The frame in the buffer, on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// With the virtio header.
    len: usize,
    to: To,
    waited: bool,
}

#[derive(Debug, Clone, Copy)]
enum To {
    One(u16),
    /// Every connected peer from this one on.
    Each(u16),
}

/// The frame has to wait: its peer's queue is full.
struct Waits;

impl Held {
    /// The peer whose turn it is.
    pub fn peer(self) -> u16 {
        match self.to {
            To::One(peer) | To::Each(peer) => peer,
        }
    }
}

impl<T: Transport, P: Port> Engine<T, P> {
    /// Sends what the interface has; how many frames that were.
    pub(super) fn send(&mut self, now: u64) -> usize {
        let (mut done, mut gathered) = (0, 0);
        while done < BATCH {
            let held = match self.held {
                Some(held) => held,
                None => match self.port.read(&mut self.buffer) {
                    Ok(Some(len)) => {
                        done += 1;
                        let Some(to) = self.destination(len, now) else { continue };
                        Held { len, to, waited: false }
                    }
                    Ok(None) | Err(PortRefusal::Down | PortRefusal::Frame) => break,
                    Err(PortRefusal::Gone) => {
                        self.gone = true;
                        break;
                    }
                },
            };
            self.held = Some(held);
            if self.forward(held, now).is_err() {
                break;
            }
            if held.waited {
                done += 1;
            }
            self.held = None;
            gathered += held.len;
            if gathered >= FLUSH_BYTES {
                self.transport.flush();
                gathered = 0;
            }
        }
        done
    }

    /// Who is to get the frame in the buffer; none if nobody, which is counted.
    fn destination(&mut self, len: usize, now: u64) -> Option<To> {
        let own = self.shape.node;
        let frame = self.buffer.get(VIRTIO_LEN..len).filter(|frame| frame.len() >= FRAME_MIN);
        let Some((to, from)) = frame.and_then(addresses) else {
            self.count(own, Counter::TxDropShort);
            return None;
        };
        // A station that was seen at a peer and now sends from here has moved.
        if derived_node(self.config.fabric, from) != Some(own) {
            self.shared.macs().forget(from);
        }
        if !is_group(to) {
            let derived = derived_node(self.config.fabric, to).filter(|node| *node < self.shape.nodes);
            let seconds = (now / 1_000_000_000) as u32;
            if let Some(node) = derived.or_else(|| self.shared.macs().node_of(to, seconds)) {
                return Some(To::One(node));
            }
        }
        if self.connected == 0 {
            self.count(own, Counter::TxDropAlone);
            return None;
        }
        if !self.storm.take(now) {
            self.count(own, Counter::TxDropStorm);
            return None;
        }
        Some(To::Each(0))
    }

    fn forward(&mut self, mut held: Held, now: u64) -> Result<(), Waits> {
        match held.to {
            To::One(peer) => self.send_to(peer, held, now),
            To::Each(next) => {
                for peer in next..self.shape.nodes {
                    if self.peers[usize::from(peer)].epoch != 0 {
                        held.to = To::Each(peer);
                        self.send_to(peer, held, now)?;
                        held.waited = false;
                    }
                }
                Ok(())
            }
        }
    }

    fn send_to(&mut self, number: u16, held: Held, now: u64) -> Result<(), Waits> {
        let (Some(peer), Some(counters)) =
            (self.peers.get_mut(usize::from(number)), self.shared.counters(self.row, number))
        else {
            return Ok(());
        };
        if peer.epoch == 0 {
            counters.one(Counter::TxDropDown);
            return Ok(());
        }
        let header = Header {
            kind: Kind::Data,
            sender: self.shape.node,
            receiver: number,
            stream: self.shape.queue,
            sender_epoch: self.shared.epoch(),
            receiver_epoch: peer.epoch,
            sequence: peer.sequence,
            length: held.len as u32,
        };
        let (header, frame) = (header.emit(), &self.buffer[..held.len]);
        //= docs/fabric.md#9.4
        let sent = if peer.encrypted {
            self.transport.send_encrypted(number, &header, frame)
        } else {
            self.transport.send(number, &header, frame)
        };
        let refused = match sent {
            Ok(()) => {
                peer.sequence = peer.sequence.wrapping_add(1);
                peer.credit.took(held.len, now);
                counters.one(Counter::TxFrames);
                counters.add(Counter::TxBytes, (held.len - VIRTIO_LEN) as u64);
                if matches!(held.to, To::Each(_)) {
                    counters.one(Counter::TxCopies);
                }
                return Ok(());
            }
            Err(refused) => refused,
        };
        counters.one(match refused {
            Refused::Full if peer.credit.may_wait(now) => {
                if !held.waited {
                    counters.one(Counter::TxHeld);
                }
                self.held = Some(Held { waited: true, ..held });
                return Err(Waits);
            }
            Refused::Full => Counter::TxDropFull,
            Refused::Length => Counter::TxDropLength,
            Refused::NoPeer | Refused::Unreachable => Counter::TxDropUnreachable,
        });
        Ok(())
    }

    /// Sends what the session has said; how many messages that were.
    pub(super) fn send_controls(&mut self) -> usize {
        let mut done = 0;
        if self.controls > 0 {
            for number in 0..self.shape.nodes {
                if let Some(message) = self.peers[usize::from(number)].control.take() {
                    self.controls -= 1;
                    done += usize::from(self.send_control(message));
                }
            }
        }
        for _ in 0..BATCH {
            let Some(message) = self.outlet.receive(&self.shared) else { break };
            done += 1;
            self.send_control(message);
        }
        done
    }

    /// Whether the message is done with. While the queue is full the newest waits: what it says is the latest.
    fn send_control(&mut self, message: super::ControlMessage) -> bool {
        let number = message.peer();
        let (Some(peer), Some(counters)) =
            (self.peers.get_mut(usize::from(number)), self.shared.counters(self.row, number))
        else {
            return true;
        };
        match self.transport.send(number, message.bytes(), &[]) {
            Ok(()) => counters.one(Counter::ControlOut),
            Err(Refused::Full) => {
                match peer.control.replace(message) {
                    Some(_) => counters.one(Counter::ControlReplaced),
                    None => self.controls += 1,
                }
                return false;
            }
            Err(_) => counters.one(Counter::ControlDropSend),
        }
        true
    }
}
