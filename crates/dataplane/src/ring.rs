//! ARP+ frames, and answers of plain hosts to probes, on their way from the ingress program to the daemon.

use crate::{
    Tables,
    error::{Error, Result},
};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use std::{
    cell::RefCell,
    collections::VecDeque,
    os::fd::{AsRawFd, RawFd},
    rc::Rc,
};

/// Frames taken from the ring buffers at once. Those of hosts that are known come first each time, whatever strangers send.
const PENDING_MAX: usize = 16;
/// More frames than fit into both.
const DISCARD_MAX: usize = 4096;
/// The ring of hosts that are known, and that of strangers.
const RINGS: [&str; 2] = ["lb_known", "lb_arp_plus"];

/// A frame for the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArpPlusFrame {
    /// Of the member that it arrived on.
    pub slot: u8,
    /// Whether a stranger sent it who was heard before (docs/arp-plus.md, 7.13).
    pub heard_again: bool,
    /// With its Ethernet header; whole, unless it is a padded PROBE.
    pub bytes: Vec<u8>,
}

type Pending = Rc<RefCell<VecDeque<ArpPlusFrame>>>;

/// The reading end of both ring buffers.
pub struct ArpPlusRing {
    ring: RingBuffer<'static>,
    pending: Pending,
}

impl Tables {
    /// Opens the reading end. One reader at a time.
    ///
    /// # Errors
    /// The kernel refuses to map the ring buffer.
    pub fn arp_plus_ring(&self) -> Result<ArpPlusRing> {
        let pending: Pending = Rc::default();
        let mut builder = RingBufferBuilder::new();
        for name in RINGS {
            let sink = Rc::clone(&pending);
            let take = move |record: &[u8]| {
                if let Some(frame) = parse(record) {
                    sink.borrow_mut().push_back(frame);
                }
                0
            };
            let map = self.map(name)?;
            builder.add(map.handle(), take).map_err(|cause| Error::Map { map: name, cause })?;
        }
        let ring = builder.build().map_err(|cause| Error::Map { map: RINGS[0], cause })?;
        Ok(ArpPlusRing { ring, pending })
    }
}

/// A record (`struct lb_arp_plus_record`) has room for a short frame or for a long one.
fn parse(record: &[u8]) -> Option<ArpPlusFrame> {
    let (slot, rest) = record.split_first_chunk()?;
    let (heard_again, rest) = rest.split_first_chunk()?;
    let (bytes, frame) = rest.split_first_chunk()?;
    let bytes = frame.get(..u32::from_ne_bytes(*bytes) as usize)?.to_vec();
    let heard_again = u16::from_ne_bytes(*heard_again) != 0;
    Some(ArpPlusFrame { slot: u8::try_from(u16::from_ne_bytes(*slot)).ok()?, heard_again, bytes })
}

impl ArpPlusRing {
    /// The next frame. Its EtherType distinguishes ARP+ from ARP, of which only replies to probes come here
    /// ([`Tables::set_answer`]).
    pub fn next_frame(&mut self) -> Option<ArpPlusFrame> {
        if self.pending.borrow().is_empty() {
            self.ring.consume_raw_n(PENDING_MAX);
        }
        self.pending.borrow_mut().pop_front()
    }

    /// Throws away all frames that wait now; how many. The ring outlives daemons and keeps the oldest frames once it is
    /// full, so after a time without a reader they describe the past.
    pub fn discard(&mut self) -> usize {
        // All that fits, and no more: others may go on to send.
        self.ring.consume_raw_n(DISCARD_MAX);
        std::mem::take(&mut *self.pending.borrow_mut()).len()
    }
}

/// Becomes readable when frames wait; the same descriptor for as long as the ring lives.
impl AsRawFd for ArpPlusRing {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.epoll_fd()
    }
}
