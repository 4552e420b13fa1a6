//! The engine and a peer that changes its memory while it is read.

use linkbraid_fabric::{
    Armed, Bytes, Refused, Shape, Stats, Taken, Transport,
    engine::{Config, LOOK_LEN, Port, PortRefusal, Step, derive_mac, engines},
};
use linkbraid_wire::fabric::{HEADER_LEN, Header, Kind, MESSAGE_MAX, VIRTIO_LEN};
use nix::sys::eventfd::EventFd;
use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    time::Duration,
};

const LATER: u8 = 0xee;

/// One message of node 1 in memory that it can write to, and what our kernel got of it.
struct Fickle {
    memory: Box<[AtomicU8]>,
    wakeup: EventFd,
    written: Mutex<Vec<u8>>,
}

struct Lender(Arc<Fickle>, bool);
struct Writer(Arc<Fickle>);

impl Transport for Lender {
    fn shape(&self) -> Shape {
        Shape { node: 0, nodes: 2, queue: 0, frame_max: MESSAGE_MAX, lossy: false }
    }

    fn send(&mut self, _: u16, _: &[u8], _: &[u8]) -> Result<(), Refused> {
        Ok(())
    }

    fn flush(&mut self) {}

    fn receive(&mut self, _: usize, sink: &mut dyn FnMut(u16, Bytes<'_>) -> Taken) -> usize {
        if std::mem::replace(&mut self.1, true) {
            return 0;
        }
        let memory = &self.0.memory;
        // SAFETY: the memory is borrowed for as long as it is lent.
        let bytes = unsafe { Bytes::shared(memory.as_ptr().cast(), memory.len()) };
        sink(1, bytes);
        1
    }

    fn arm(&mut self, _: &[u16]) -> Armed {
        Armed::Sleep(Duration::ZERO)
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn reset(&mut self, _: u16) {}

    fn stats(&self, _: u16) -> Stats {
        Stats::default()
    }
}

impl Port for Writer {
    fn read(&mut self, _: &mut [u8]) -> Result<Option<usize>, PortRefusal> {
        Ok(None)
    }

    fn write(&mut self, head: &[u8], rest: Bytes<'_>) -> Result<(), PortRefusal> {
        // The peer is quicker than the kernel.
        self.0.memory.iter().for_each(|byte| byte.store(LATER, Relaxed));
        *self.0.written.lock().unwrap() = [head, &rest.to_vec()].concat();
        Ok(())
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.0.wakeup.as_fd()
    }
}

/// What the kernel gets of a frame from node 1 whose memory changes after it was judged.
fn written(frame: &[u8]) -> Vec<u8> {
    let header = Header {
        kind: Kind::Data,
        sender: 1,
        receiver: 0,
        stream: 0,
        sender_epoch: 11,
        receiver_epoch: 10,
        sequence: 0,
        length: (VIRTIO_LEN + frame.len()) as u32,
    };
    let message = [&header.emit()[..], &[0; VIRTIO_LEN], frame].concat();
    assert_eq!(message.len(), HEADER_LEN + VIRTIO_LEN + frame.len());
    let fickle = Arc::new(Fickle {
        memory: message.into_iter().map(AtomicU8::new).collect(),
        wakeup: EventFd::new().unwrap(),
        written: Mutex::default(),
    });
    let queue = (Lender(fickle.clone(), false), Writer(fickle.clone()));
    let (control, mut engines) = engines(Config::default(), 10, vec![queue]).unwrap();
    control.set_link(1, Some(11));
    assert_eq!(engines[0].step(), Step::Worked);
    let written = fickle.written.lock().unwrap().clone();
    assert_eq!(written.len(), VIRTIO_LEN + frame.len(), "one frame, whole");
    written
}

#[test]
fn what_was_judged_is_what_the_kernel_gets() {
    for len in [60, LOOK_LEN - 1, LOOK_LEN, LOOK_LEN + 1, 1514, 65_000] {
        let mut frame = [derive_mac(0, 0), derive_mac(0, 1)].concat();
        frame.extend([0x88, 0xb5]);
        frame.resize(len, 7);
        let written = written(&frame);
        let judged = VIRTIO_LEN + len.min(LOOK_LEN);
        let expected = [&[0; VIRTIO_LEN][..], &frame[..len.min(LOOK_LEN)]].concat();
        assert_eq!(written[..judged], expected, "{len} bytes");
        assert!(written[judged..].iter().all(|byte| *byte == LATER), "the rest is not copied, {len} bytes");
    }
}
