//! Two namespaces, a TAP device in each, and a plain loop that copies frames between them.

use std::{
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use linkbraid_link::{
    MacAddr, TAP_FRAME_MAX, TAP_QUEUE_LEN, Tap, TapConfig, TapOffloads, TapQueue, VNET_HDR_LEN,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::namespace::Namespace;

/// A device whose address ends in `node`.
pub fn config(node: u8) -> TapConfig {
    TapConfig {
        name: "fab0".into(),
        queues: 1,
        mac: MacAddr([2, 0, 0, 0, 0, node]),
        mtu: 1500,
        offloads: TapOffloads::ALL,
        queue_len: TAP_QUEUE_LEN,
    }
}

/// A frame that crossed.
#[derive(Debug, Clone)]
pub struct Seen {
    pub from: usize,
    pub queue: usize,
    pub length: usize,
    pub gso_type: u8,
    pub needs_checksum: bool,
    pub tcp_ports: Option<(u16, u16)>,
}

/// Two namespaces, 198.18.0.1 in the first and 198.18.0.2 in the second, joined queue by queue.
pub struct Cable {
    pub ends: [Namespace; 2],
    _taps: [Tap; 2],
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Seen>>>,
}

impl Cable {
    pub fn new(queues: usize, offloads: TapOffloads) -> Self {
        let ends = [Namespace::new(), Namespace::new()];
        let mut taps = [0, 1].map(|end: u8| {
            let config = TapConfig { queues, offloads, ..config(end + 1) };
            let tap = ends[usize::from(end)].enter(|| Tap::create(&config)).unwrap();
            assert_eq!(tap.offloads(), offloads, "this kernel has all of them");
            tap.set_up(true).unwrap();
            tap.set_carrier(true).unwrap();
            ends[usize::from(end)].run(&format!("ip addr add 198.18.0.{}/24 dev fab0", end + 1));
            tap
        });
        let [first, second] = taps.each_mut().map(Tap::take_queues);
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for (number, pair) in first.into_iter().zip(second).enumerate() {
            let stop = stop.clone();
            threads.push(std::thread::spawn(move || copy(number, [&pair.0, &pair.1], &stop)));
        }
        Self { ends, _taps: taps, stop, threads }
    }

    pub fn give_ipv6(&self, end: usize) {
        self.ends[end].run(&format!("ip addr replace 2001:db8::{}/64 dev fab0 nodad", end + 1));
    }

    /// Ends the copying; what crossed.
    pub fn stop(mut self) -> Vec<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        std::mem::take(&mut self.threads).into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn copy(queue: usize, ends: [&TapQueue; 2], stop: &AtomicBool) -> Vec<Seen> {
    let mut buffer = vec![0; VNET_HDR_LEN + TAP_FRAME_MAX];
    let mut seen = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let mut fds = ends.map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
        poll(&mut fds, PollTimeout::from(20u8)).unwrap();
        for (from, end) in ends.into_iter().enumerate() {
            while let Ok(Some(length)) = end.read(&mut buffer) {
                let (header, frame) = buffer[..length].split_at(VNET_HDR_LEN);
                let header: &[u8; VNET_HDR_LEN] = header.try_into().unwrap();
                assert_eq!(header[10..], [0, 0]);
                seen.push(look(from, queue, header, frame));
                ends[1 - from].write(header, frame).unwrap();
            }
        }
    }
    seen
}

fn look(from: usize, queue: usize, header: &[u8; VNET_HDR_LEN], frame: &[u8]) -> Seen {
    let tcp = frame[12..14] == [8, 0] && frame[23] == 6 && frame[14] == 0x45;
    let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    Seen {
        from,
        queue,
        length: frame.len(),
        gso_type: header[1],
        needs_checksum: header[0] & 1 != 0,
        tcp_ports: tcp.then(|| (port(34), port(36))),
    }
}
