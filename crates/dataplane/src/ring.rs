//! ARP+ frames, and answers of plain hosts to probes, on their way from the ingress program to the daemon.

use crate::{
    Tables,
    error::{Error, Result},
    intf::lb_arp_plus_record,
};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use std::{
    cell::RefCell,
    collections::VecDeque,
    os::fd::{AsRawFd, RawFd},
    rc::Rc,
};

/// Frames taken from the ring buffer and not yet asked for; more than these are left to the kernel's ring, which has room
/// for fewer.
const PENDING_MAX: usize = 1024;

type Pending = Rc<RefCell<VecDeque<(u8, Vec<u8>)>>>;

/// The reading end of the ring buffer.
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
        let sink = Rc::clone(&pending);
        let failed = |cause| Error::Map { map: "lb_arp_plus", cause };
        let map = self.map("lb_arp_plus")?;
        let mut builder = RingBufferBuilder::new();
        builder
            .add(map.handle(), move |record: &[u8]| {
                if let Some(frame) = parse(record) {
                    sink.borrow_mut().push_back(frame);
                }
                0
            })
            .map_err(failed)?;
        Ok(ArpPlusRing { ring: builder.build().map_err(failed)?, pending })
    }
}

fn parse(record: &[u8]) -> Option<(u8, Vec<u8>)> {
    let record: lb_arp_plus_record = bytemuck::try_pod_read_unaligned(record).ok()?;
    let frame = record.frame.get(..record.bytes as usize)?;
    Some((u8::try_from(record.slot).ok()?, frame.to_vec()))
}

impl ArpPlusRing {
    /// The next frame, whole with its Ethernet header, and the slot it arrived on. Its EtherType distinguishes ARP+ from ARP, of
    /// which only replies to probes come here ([`Tables::set_answer`]).
    pub fn next_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        if self.pending.borrow().is_empty() {
            self.ring.consume_raw_n(PENDING_MAX);
        }
        self.pending.borrow_mut().pop_front()
    }

    /// Throws away all frames that wait now; how many. The ring outlives daemons and keeps the oldest frames once it is
    /// full, so after a time without a reader they describe the past.
    pub fn discard(&mut self) -> usize {
        self.ring.consume_raw_n(PENDING_MAX);
        std::mem::take(&mut *self.pending.borrow_mut()).len()
    }
}

/// Becomes readable when frames wait; the same descriptor for as long as the ring lives.
impl AsRawFd for ArpPlusRing {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.epoll_fd()
    }
}
