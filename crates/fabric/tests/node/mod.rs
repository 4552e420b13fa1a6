//! Whole nodes: a namespace, a TAP device in it, and engines that join it to the others. The session is left out: every
//! node is told who is connected.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::thread::JoinHandleExt},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    thread::JoinHandle,
    time::Duration,
};

use linkbraid_fabric::{
    Address, Join, Transport,
    engine::{Config, Control, End, TapPort, derive_mac, engines},
};
use linkbraid_link::{MacAddr, TAP_QUEUE_LEN, Tap, TapConfig, TapOffloads};

use crate::namespace::Namespace;

/// A file of shared memory that no other test has.
pub struct Place(PathBuf);

impl Place {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("linkbraid-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self(PathBuf::from("/dev/shm").join(name))
    }

    pub fn join(&self, node: u16, nodes: u16, queues: u16) -> Vec<Box<dyn Transport>> {
        self.open("shm", node, nodes, queues)
    }

    /// For transports that find their nodes in a file.
    pub fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
    }

    pub fn open(&self, transport: &str, node: u16, nodes: u16, queues: u16) -> Vec<Box<dyn Transport>> {
        let address: Address = format!("{transport}:{}", self.0.display()).parse().unwrap();
        address.open(&Join { node, nodes, queues }).unwrap()
    }
}

impl Drop for Place {
    /// Nodes that still run here would leave what lies beside the file.
    fn drop(&mut self) {
        let name = self.0.file_name().unwrap().to_string_lossy().into_owned();
        let beside = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let ours = |found: &str| found == name || found.starts_with(&format!("{name}.wake-"));
        for entry in beside.filter(|entry| ours(&entry.file_name().to_string_lossy())) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A node that runs.
pub struct Node {
    pub space: Namespace,
    pub tap: Tap,
    pub control: Control,
    pub threads: Vec<JoinHandle<End>>,
}

impl Node {
    /// Starts node `number` in `space`, with 198.18.0.(number + 1) and 2001:db8::(number + 1).
    pub fn start<T: Transport + 'static>(
        space: Namespace,
        transports: Vec<T>,
        epoch: u64,
        mtu: u32,
        config: Config,
    ) -> Self {
        let shape = transports[0].shape();
        let tap = TapConfig {
            name: "fab0".into(),
            queues: transports.len(),
            mac: MacAddr(derive_mac(config.fabric, shape.node)),
            mtu,
            offloads: TapOffloads::ALL,
            queue_len: TAP_QUEUE_LEN,
        };
        let mut tap = space.enter(|| Tap::create(&tap).unwrap());
        let ports = tap.take_queues().into_iter().map(|queue| TapPort::new(OwnedFd::from(queue)));
        let (control, made) = engines(config, epoch, transports.into_iter().zip(ports).collect()).unwrap();
        let threads = made.into_iter().map(|engine| std::thread::spawn(|| engine.run())).collect();
        tap.set_up(true).unwrap();
        tap.set_carrier(true).unwrap();
        let number = shape.node + 1;
        space.run(&format!("ip addr add 198.18.0.{number}/24 dev fab0"));
        if mtu >= 1280 {
            space.run(&format!("ip addr add 2001:db8::{number}/64 dev fab0 nodad"));
        }
        Self { space, tap, control, threads }
    }

    /// Processor time of its engines so far.
    pub fn cpu_time(&self) -> Duration {
        let of = |thread: &JoinHandle<End>| -> Duration {
            let mut clock = 0;
            // SAFETY: the thread has not been joined, so its handle is good, and `clock` is a live number.
            let found = unsafe { nix::libc::pthread_getcpuclockid(thread.as_pthread_t(), &raw mut clock) };
            assert_eq!(found, 0);
            nix::time::clock_gettime(nix::time::ClockId::from_raw(clock)).unwrap().into()
        };
        self.threads.iter().map(of).sum()
    }

    /// Stops it as a crash would: nobody is informed. Its namespace stays.
    pub fn crash(self) -> Namespace {
        self.control.stop();
        for thread in self.threads {
            assert_eq!(thread.join().unwrap(), End::Stopped);
        }
        self.space
    }
}

/// Tells every node that all others are connected, under epoch 1 + their number.
pub fn connect(nodes: &[Node]) {
    for (number, node) in (0u16..).zip(nodes) {
        for peer in (0..nodes.len() as u16).filter(|peer| *peer != number) {
            node.control.set_link(peer, Some(1 + u64::from(peer)));
        }
    }
}

/// So many nodes over shared memory, connected.
pub fn fabric(place: &Place, nodes: u16, queues: u16, mtu: u32, config: Config) -> Vec<Node> {
    let start = |node| {
        Node::start(Namespace::new(), place.join(node, nodes, queues), 1 + u64::from(node), mtu, config)
    };
    let nodes: Vec<Node> = (0..nodes).map(start).collect();
    connect(&nodes);
    nodes
}

/// Sends `bytes` over TCP between two namespaces, and checks every one.
pub fn transfer(from: &Namespace, to: &Namespace, address: &str, bytes: usize) {
    let listener = to.enter(|| TcpListener::bind(address).unwrap());
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut buffer, mut total, mut wrong) = (vec![0; 1 << 17], 0, 0);
            loop {
                let got = stream.read(&mut buffer).unwrap();
                if got == 0 {
                    return (total, wrong);
                }
                wrong +=
                    buffer[..got].iter().zip(total..).filter(|(byte, at)| **byte != (at % 251) as u8).count();
                total += got;
            }
        });
        let mut stream = from.enter(|| TcpStream::connect(address).unwrap());
        let pattern: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        stream.write_all(&pattern).unwrap();
        drop(stream);
        assert_eq!(reader.join().unwrap(), (bytes, 0));
    });
}
