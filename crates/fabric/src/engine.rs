//! The engine: moves frames between the queues of an interface and the same queues of every other node.
//!
//! A thread a queue ([`Engine::run`]), and none of them waits for another. What one holds is its own; what they share is in
//! [`Shared`], in atomics. Nothing here allocates, locks or logs once it runs.
//!
//! Out: a frame is read from the interface's queue ([`Port`]), its destination says which peers get it ([`MacTable`],
//! [`derive_mac`]), and each gets it behind a header that names both epochs. While a peer's queue is full the frame
//! waits, and the interface's queue behind it: the kernel then holds its senders back ([`Credit`] says for how long).
//!
//! In: a message must be of the epochs that the session named, new, from the peer that the transport names, and its
//! virtio header must fit ([`judge`]); then the part that was judged goes to the kernel as our copy, and what follows it without one. Frames from one peer
//! are never passed on to another, so no frame circles.
//!
//! The session runs elsewhere: [`Control`] carries its messages both ways, and its verdicts in.

mod bucket;
mod control;
mod counter;
mod credit;
mod incoming;
mod link;
mod mac_table;
mod outgoing;
mod port;
mod published;
mod shared;
mod sleep;
mod spin;
mod vnet;
mod window;

pub use bucket::Bucket;
pub use control::{
    CONTROL_BURST, CONTROL_MESSAGE_MAX, CONTROL_RATE, CONTROL_SHARE_RATE, CONTROL_SHARES, Control,
    ControlMessage, Ends,
};
pub use counter::{Counter, Counters};
pub use credit::{Credit, HOLD_MAX};
pub use mac_table::{Learned, MAC_AGE_SECONDS, MACS_MAX, Mac, MacTable, derive_mac, derived_node, is_group};
pub use port::{Port, PortRefusal, TapPort};
pub use shared::{Identity, Shared};
pub use spin::{Idle, Poll, SPIN_MAX, Spin};
pub use vnet::{LOOK_LEN, judge};
pub use window::{WINDOW, Window};

use crate::{Error, Result, Shape, Transport, limits::QUEUES_MAX};
use control::Outlet;
use linkbraid_wire::fabric::DATA_MAX;
use outgoing::Held;
use published::Published;
use std::sync::Arc;

/// Frames taken from the transport, and from the interface, before the other side has its turn.
pub const BATCH: usize = 64;
/// Copies to everyone that a queue lets pass a second, in each direction, and at once after a silence.
pub const STORM_RATE: u32 = 50_000;
/// The burst of frames that [`STORM_RATE`] allows.
pub const STORM_BURST: u32 = 5_000;

/// How an engine is to behave.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// How its threads wait for frames.
    pub poll: Poll,
    /// The fabric's number in derived addresses ([`derive_mac`]).
    pub fabric: u8,
    /// Frames to everyone that a queue lets pass a second; 0 is no limit.
    pub storm_rate: u32,
    /// The same at once after a silence.
    pub storm_burst: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { poll: Poll::Adaptive, fabric: 0, storm_rate: STORM_RATE, storm_burst: STORM_BURST }
    }
}

/// The outcome of one step of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// At least one frame was moved.
    Worked,
    /// There was nothing to do.
    Idle,
    /// The engine has ended.
    Ended(End),
}

/// Why an engine ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The session's side said so, or is gone.
    Stopped,
    /// Somebody removed the interface.
    PortGone,
}

/// What a queue knows of one peer.
#[derive(Debug)]
struct Peer {
    /// 0 while it is not connected.
    epoch: u64,
    /// The epoch that was connected last: whose the sequences are.
    last: u64,
    resets: u64,
    /// Which change of its link we have followed.
    version: u64,
    /// Frames to it and from it are encrypted.
    encrypted: bool,
    /// The sequence of the next message to the peer.
    sequence: u32,
    window: Window,
    credit: Credit,
    storm: Bucket,
    /// Control messages, by their numbers.
    control_storms: [Bucket; CONTROL_SHARES],
    /// The same for messages of a start that is not connected: anybody can send such.
    strange_storm: Bucket,
    /// A control message that waits because the queue is full.
    control: Option<ControlMessage>,
}

/// One queue of a node, with its thread's state.
#[derive(Debug)]
pub struct Engine<T, P> {
    transport: T,
    port: P,
    shape: Shape,
    /// Which row of the shared counters is ours.
    row: usize,
    config: Config,
    shared: Arc<Shared>,
    outlet: Outlet,
    /// The changes of the shared state that we have followed.
    changes: u64,
    peers: Box<[Peer]>,
    /// How many of them are connected.
    connected: usize,
    /// How many of their control messages wait.
    controls: usize,
    spin: Spin,
    storm: Bucket,
    /// The frame that is on its way out.
    held: Option<Held>,
    buffer: Box<[u8]>,
    /// When to publish the transport's counters next.
    publish_at: u64,
    /// The peers whose queues are full, while we sleep.
    full: Vec<u16>,
    gone: bool,
    /// The last step left nothing on either side.
    drained: bool,
    /// Looks since there was something to do.
    rounds: u32,
}

/// The engines of a node, one for each pair of a transport and an interface's queue, and the session's end. The node's
/// `epoch` is another one each time it starts, and not 0.
///
/// # Errors
/// As [`ends`] and [`engines_at`].
pub fn engines<T: Transport, P: Port>(
    config: Config,
    epoch: u64,
    queues: Vec<(T, P)>,
) -> Result<(Control, Vec<Engine<T, P>>)> {
    let shape =
        queues.first().map(|(transport, _)| transport.shape()).ok_or_else(|| refused("there are none"))?;
    let (control, ends) = ends(config, (shape.node, shape.nodes), queues.len(), epoch)?;
    Ok((control, engines_at(config, ends, queues)?))
}

/// The end of the session of `node` among `nodes`, and that of its queues, which [`engines_at`] starts.
///
/// # Errors
/// The numbers are those of no node, or the kernel has no descriptors left.
pub fn ends(config: Config, (node, nodes): (u16, u16), queues: usize, epoch: u64) -> Result<(Control, Ends)> {
    let queues = u16::try_from(queues).ok().filter(|queues| (1..=QUEUES_MAX).contains(queues));
    match queues.filter(|_| node < nodes && epoch != 0) {
        Some(queues) => Ends::pair(Identity::now(node, nodes, queues, epoch), config.poll)
            .map_err(|errno| Error::system(OBJECT, CANNOT_START, errno)),
        None => Err(refused(OTHER_NODE)),
    }
}

/// The engines at these ends.
///
/// # Errors
/// When the transports are not the queues of that node in order, or the memory cannot be mapped.
pub fn engines_at<T: Transport, P: Port>(
    config: Config,
    ends: Ends,
    queues: Vec<(T, P)>,
) -> Result<Vec<Engine<T, P>>> {
    let identity = ends.identity();
    let in_order = |(number, (transport, _)): (usize, &(T, P))| {
        let shape = transport.shape();
        usize::from(shape.queue) == number && (shape.node, shape.nodes) == (identity.node, identity.nodes)
    };
    if !queues.iter().enumerate().all(in_order) || queues.len() != usize::from(identity.queues) {
        return Err(refused(OTHER_NODE));
    }
    let (shared, outlets) = ends.open().map_err(|errno| Error::system(OBJECT, CANNOT_START, errno))?;
    let storm = Bucket::new(config.storm_rate, config.storm_burst);
    let engine = |(row, ((transport, port), outlet)): (usize, ((T, P), Outlet))| Engine {
        shape: transport.shape(),
        transport,
        port,
        row,
        config,
        shared: shared.clone(),
        outlet,
        changes: 0,
        peers: (0..identity.nodes).map(|_| Peer::new(storm)).collect(),
        connected: 0,
        controls: 0,
        spin: Spin::new(config.poll),
        storm,
        held: None,
        buffer: vec![0; DATA_MAX].into_boxed_slice(),
        publish_at: 0,
        full: Vec::with_capacity(usize::from(identity.nodes) + 1),
        gone: false,
        drained: false,
        rounds: 0,
    };
    Ok(queues.into_iter().zip(outlets).enumerate().map(engine).collect())
}

/// What an error is about.
const OBJECT: &str = "fabric";
const CANNOT_START: &str = "cannot start its queues";
const OTHER_NODE: &str = "the transports are not the queues of one node";

fn refused(cause: &str) -> Error {
    Error::new(OBJECT, CANNOT_START, cause)
}

impl Peer {
    fn new(storm: Bucket) -> Self {
        Self {
            epoch: 0,
            last: 0,
            resets: 0,
            version: 0,
            encrypted: false,
            sequence: 0,
            window: Window::default(),
            credit: Credit::default(),
            storm,
            control_storms: std::array::from_fn(|_| Bucket::new(CONTROL_SHARE_RATE, CONTROL_BURST)),
            strange_storm: Bucket::new(CONTROL_RATE, CONTROL_BURST),
            control: None,
        }
    }
}

impl<T: Transport, P: Port> Engine<T, P> {
    /// Moves frames until it is over.
    pub fn run(mut self) -> End {
        let end = loop {
            match self.step() {
                // Nothing is left: whoever was just woken by what we delivered may need this very processor. Another look first
                // would cost each frame two system calls.
                Step::Worked if self.drained => self.rest(),
                Step::Worked => {}
                Step::Idle => self.rest(),
                Step::Ended(end) => break end,
            }
        };
        self.outlet.session.raise();
        end
    }

    /// Moves what there is, at most [`BATCH`] frames in each direction. Does not wait.
    pub fn step(&mut self) -> Step {
        if self.shared.stopped() {
            return Step::Ended(End::Stopped);
        }
        let now = self.shared.now();
        self.follow();
        if now >= self.publish_at {
            self.publish(now);
        }
        let received = self.receive(now);
        let controls = self.send_controls();
        let sent = self.send(now);
        self.transport.flush();
        if self.gone {
            return Step::Ended(End::PortGone);
        }
        self.drained = received < BATCH && controls < BATCH && sent < BATCH;
        if received + controls + sent == 0 {
            return Step::Idle;
        }
        self.spin.worked(now);
        self.rounds = 0;
        Step::Worked
    }

    /// Does what the session has decided since we last looked.
    fn follow(&mut self) {
        let changes = self.shared.changes();
        if changes == self.changes {
            return;
        }
        self.changes = changes;
        self.spin.set_poll(self.shared.poll());
        for (number, peer) in (0..).zip(&mut self.peers) {
            // One that is being changed right now has another look coming.
            let Some(link) = self.shared.link(number, peer.version) else { continue };
            peer.version = link.version;
            peer.encrypted = link.keys.is_some();
            self.transport.set_keys(number, link.keys.as_ref());
            let (epoch, resets) = (link.epoch, link.resets);
            if (epoch, resets) == (peer.epoch, peer.resets) {
                continue;
            }
            if resets != peer.resets {
                self.transport.reset(number);
                if let Some(counters) = self.shared.counters(self.row, number) {
                    counters.one(Counter::Resets);
                }
            }
            // A start that comes back counts on (6.1), and what it sent before may still come, once more (6.4).
            if epoch != 0 && epoch != peer.last {
                peer.window = Window::default();
                peer.sequence = 0;
                peer.last = epoch;
            }
            peer.credit = Credit::default();
            (peer.epoch, peer.resets) = (epoch, resets);
        }
        self.connected = self.peers.iter().filter(|peer| peer.epoch != 0).count();
    }

    /// One of our counters for `peer`, or for this node what concerns no peer.
    fn count(&self, peer: u16, counter: Counter) {
        if let Some(counters) = self.shared.counters(self.row, peer) {
            counters.one(counter);
        }
    }
}
