//! A node that runs: a thread for each queue, one for the session, and what they share.

use super::{
    cpu::{Cpu, Thread},
    fast_path::FastPath,
    refusal::{of_tap, of_transport},
    saved::SavedFabric,
    worker::Worker,
};
use crate::{
    io::{clock::Clock, identity::new_seed},
    world::report::{Event, Report, failure},
};
use linkbraid_api::{Error, Poll};
use linkbraid_fabric::{
    Address, ETCD, Join, Live, Look, Program, Registrar, Remote, Transport,
    engine::{self, Config, Counter, End, Engine, Shared, TapPort, engines},
    limits::FRAME_MAX,
    shorten_slices,
};
use linkbraid_link::{TAP_FRAME_MAX, Tap, TapConfig, TapOffloads, TapQueue};
use linkbraid_proto::{
    Time, auth,
    session::{self, Settings},
};
use linkbraid_wire::MacAddr;
use linkbraid_wire::fabric::{HEADER_LEN, VIRTIO_LEN};
use std::{
    os::fd::OwnedFd,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    process::ExitStatus,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// How long the last messages of a node may take to leave.
const END_MAX: Duration = Duration::from_millis(100);
/// How long a thread that failed tries to report it.
const REPORT_MAX: Duration = Duration::from_secs(1);
/// An Ethernet header and two VLAN tags.
const ETHERNET_MAX: usize = 14 + 2 * 4;

/// The program that carries frames by libfabric.
const OFI: &str = "linkbraid-ofi";

/// Queues of the transport.
pub(crate) enum Transports {
    /// For threads of this process, and what keeps the node registered for others to find it, if anything does.
    Own(Vec<Box<dyn Transport>>, Option<Registrar>),
    /// In a program that was started for them.
    Remote(Remote),
}

impl Transports {
    /// Where the addresses of the nodes are from, if those may change.
    pub(crate) fn directory(&self) -> Option<&Arc<Live>> {
        match self {
            Self::Own(all, _) => all.first()?.directory(),
            Self::Remote(_) => None,
        }
    }
}

/// The threads of a fabric. They end when it is dropped, without a word to the other nodes.
pub(crate) struct Node {
    /// Which start of which fabric this is, in this daemon.
    pub start: u64,
    /// The longest frame of the interface that crosses, in bytes.
    pub room: usize,
    worker: Arc<Mutex<Worker>>,
    shared: Arc<Shared>,
    directory: Option<Arc<Live>>,
    registrar: Option<Registrar>,
    /// What carries its frames, if that is no thread of ours.
    program: Option<Arc<Program>>,
    threads: Vec<JoinHandle<()>>,
}

/// Takes this node's place on the transport.
pub(crate) fn join(saved: &SavedFabric, address: &Address) -> Result<Transports, Error> {
    let SavedFabric { node, nodes, queues, .. } = *saved;
    let join = Join { node, nodes, queues };
    let opened = match address.ofi() {
        Some(_) => remote(address, &join).map(Transports::Remote),
        None => register(address, &join)
            .and_then(|registrar| address.open(&join).map(|all| Transports::Own(all, registrar))),
    };
    opened.map_err(|error| of_transport(error, &saved.name, node, nodes))
}

/// Has a program take the place.
fn remote(address: &Address, join: &Join) -> linkbraid_fabric::Result<Remote> {
    Remote::start(&program(address, OFI)?, address, join)
}

/// Has a program make the node known to others, where they look for it elsewhere than in a file of this machine.
fn register(address: &Address, join: &Join) -> linkbraid_fabric::Result<Option<Registrar>> {
    if address.etcd().is_none() {
        return Ok(None);
    }
    join.check(&address.to_string())?;
    Registrar::start(&program(address, ETCD)?, address, join).map(Some)
}

fn program(address: &Address, name: &str) -> linkbraid_fabric::Result<PathBuf> {
    crate::program(name).map_err(|cause| {
        linkbraid_fabric::Error::new(address.to_string(), format!("cannot run '{name}'"), cause)
            .hint("make install")
    })
}

/// Makes the interface, or takes over the one that the kernel kept.
pub(crate) fn tap(saved: &SavedFabric, transports: &Transports, new: bool) -> Result<Tap, Error> {
    let room = room(transports);
    fits(room, saved.settings.mtu.0).map_err(|(cause, mtu)| {
        Error::new(&saved.transport, "cannot use this transport", cause).hint(format!(
            "linkbraid fabric add {} --node {} --nodes {} --transport {} --mtu {mtu}",
            saved.name, saved.node, saved.nodes, saved.transport
        ))
    })?;
    let mut config = tap_config(saved);
    // What is to be cut up by the receiver crosses whole.
    if room < TAP_FRAME_MAX {
        config.offloads = TapOffloads { tso: false, uso: false, ..TapOffloads::ALL };
    }
    let made = if new { Tap::create(&config) } else { Tap::adopt(&config) };
    made.map_err(|error| of_tap(&error))
}

/// What the kernel is to make for a fabric.
fn tap_config(saved: &SavedFabric) -> TapConfig {
    TapConfig {
        name: saved.name.to_string(),
        queues: saved.queues.into(),
        mac: MacAddr(saved.mac),
        mtu: saved.settings.mtu.0,
        offloads: TapOffloads::ALL,
        queue_len: linkbraid_link::TAP_QUEUE_LEN,
    }
}

/// The longest frame of the interface that crosses, in bytes.
fn room(transports: &Transports) -> usize {
    let frame_max = match transports {
        Transports::Own(all, _) => all.iter().map(|transport| transport.shape().frame_max).min().unwrap_or(0),
        Transports::Remote(remote) => remote.frame_max(),
    };
    frame_max.saturating_sub(HEADER_LEN + VIRTIO_LEN)
}

/// Refuses an MTU whose frames have no room, and says which one has.
pub(crate) fn fits(room: usize, mtu: u32) -> Result<(), (String, usize)> {
    let frame = mtu as usize + ETHERNET_MAX;
    if frame <= room {
        return Ok(());
    }
    let cause = format!("MTU {mtu} needs frames of {frame} bytes, and its queues have room for {room}");
    Err((cause, room.saturating_sub(ETHERNET_MAX)))
}

const _: () = assert!(FRAME_MAX >= HEADER_LEN + VIRTIO_LEN + TAP_FRAME_MAX);

/// As the engine has it.
pub(crate) fn poll_of(poll: Poll) -> engine::Poll {
    match poll {
        Poll::Adaptive => engine::Poll::Adaptive,
        Poll::Busy => engine::Poll::Busy,
        Poll::Sleep => engine::Poll::Sleep,
    }
}

impl Node {
    /// Starts the threads. The interface stays down, and goes when they end, until [`Node::finish_add`].
    pub(crate) fn start(
        saved: &SavedFabric,
        (mut tap, transports, fast_path): (Tap, Transports, Option<FastPath>),
        auth: auth::Settings,
        clock: Clock,
        sender: mpsc::Sender<Event>,
    ) -> Result<Self, Error> {
        let refused = |cause: String| Error::new(&saved.name, "cannot start its threads", cause);
        let epoch = new_seed()?.max(1);
        let config = Config { poll: poll_of(saved.settings.poll), fabric: saved.number, ..Config::default() };
        let room = room(&transports);
        let (directory, mut registrar) = (transports.directory().cloned(), None);
        let queues = tap.take_queues().into_iter();
        let begun = match transports {
            Transports::Own(transports, keeps) => {
                registrar = keeps;
                let queues = transports.into_iter().zip(queues.map(TapPort::new)).collect();
                engines(config, epoch, queues).map(|(control, engines)| (control, engines, None))
            }
            Transports::Remote(remote) => remote
                .run(config, epoch, queues.map(OwnedFd::from).collect())
                .map(|(control, program)| (control, Vec::new(), Some(Arc::new(program)))),
        };
        let (control, engines, program) = begun.map_err(|error| refused(error.to_string()))?;
        control.set_mac(saved.mac);
        let shared = control.shared().clone();
        let marks: Vec<Thread> = (0..=engines.len()).map(|_| Thread::default()).collect();
        let cpu = Cpu::new(marks.clone(), program.as_ref().map(|program| program.id()), clock.now());
        let mut worker =
            Worker::new(saved, epoch, control, (tap, fast_path), cpu, sender.clone(), clock.now())?;
        worker.begin(auth, clock.now());
        let start = worker.start();
        let worker = Arc::new(Mutex::new(worker));
        let mut node =
            Self { start, room, worker, shared, directory, registrar, program, threads: Vec::new() };
        let mut marks = marks.into_iter();
        let mut next = || marks.next().unwrap_or_default();
        for (number, engine) in engines.into_iter().enumerate() {
            let name = format!("{}-{number}", saved.name);
            node.spawn(name, sender.clone(), queue(engine, next())).map_err(&refused)?;
        }
        let (worker, mark) = (node.worker.clone(), next());
        let wake = node.worker().wake_fd().map_err(|cause| refused(cause.desc().to_lowercase()))?;
        let work = move || {
            mark.begin();
            shorten_slices();
            super::worker::run(&worker, &wake, clock);
            None
        };
        node.spawn(format!("{}-s", saved.name), sender.clone(), work).map_err(&refused)?;
        if let Some(program) = node.program.clone() {
            let shared = node.shared.clone();
            node.spawn(format!("{}-p", saved.name), sender, move || end_of(&program, &shared))
                .map_err(refused)?;
        }
        Ok(node)
    }

    fn spawn(
        &mut self,
        name: String,
        sender: mpsc::Sender<Event>,
        work: impl FnOnce() -> Option<ExitStatus> + Send + 'static,
    ) -> Result<(), String> {
        // The kernel keeps 15 bytes of a thread's name; the end says which one it is.
        let name = name.get(name.len().saturating_sub(15)..).unwrap_or_default().to_owned();
        let start = self.start;
        let thread = Builder::new().name(name).spawn(move || watched(start, &sender, work));
        let thread = thread.map_err(|error| error.to_string())?;
        self.threads.push(thread);
        Ok(())
    }

    /// Why frames do not go over the fast path, where the user has asked for that.
    pub(crate) fn fast_path_is_refused(&self) -> Option<String> {
        self.worker().fast_path.as_ref().and_then(|fast_path| fast_path.refused().map(str::to_owned))
    }

    /// Where the addresses of the other nodes are from, if they may change.
    pub(crate) fn directory(&self) -> Option<&Live> {
        self.directory.as_deref()
    }

    /// What is wrong with how others find this node, if anything is.
    pub(crate) fn unregistered(&self) -> Option<String> {
        self.registrar.as_ref().and_then(Registrar::trouble)
    }

    /// Others are not to look for this node any more, once it has stopped.
    pub(crate) fn unregister(&self) {
        if let Some(registrar) = &self.registrar {
            registrar.leave();
        }
    }

    /// Looks whether nodes have other addresses now. Queues follow by themselves, and so does the fast path.
    pub(crate) fn look_at_directory(&self) -> Look {
        let Some(directory) = &self.directory else { return Look::Same };
        // The session waits for no file: it is asked only of who has no line any more.
        let is_up = |node| matches!(self.worker().session.verdict(node), Some(session::Verdict::Up { .. }));
        let look = directory.look(is_up);
        if let Look::Changed(_) = look {
            let mut worker = self.worker();
            worker.fit_paths();
            // Queues that sleep look again, and whoever is new is spoken to.
            worker.wake_thread();
        }
        look
    }

    pub(super) fn worker(&self) -> MutexGuard<'_, Worker> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Sets the new interface up, and makes the kernel keep it.
    pub(crate) fn finish_add(&self) -> Result<(), Error> {
        let worker = self.worker();
        let done = worker.tap.set_up(true).and_then(|()| worker.tap.keep(true));
        done.map_err(|error| of_tap(&error))
    }

    /// Takes over settings that can change while it runs.
    pub(crate) fn set(&self, saved: &SavedFabric, now: Time) -> Result<(), Error> {
        let mut worker = self.worker();
        if let Some(fast_path) = &mut worker.fast_path {
            fast_path.follow(saved);
        }
        let settings = Settings { mtu: saved.settings.mtu.0, ..worker.session.snapshot(now).settings };
        worker.session.set(now, settings).map_err(|error| {
            let cause = format!("{} is outside the allowed range {}", error.value, error.allowed);
            Error::new(&saved.name, format!("option '--{}'", error.setting), cause)
        })?;
        worker.control.set_mac(saved.mac);
        worker.control.set_poll(poll_of(saved.settings.poll));
        worker.follow();
        worker.fit_paths();
        worker.wake_thread();
        Ok(())
    }

    /// Takes over keys, and whom to believe.
    pub(crate) fn set_auth(&self, auth: auth::Settings, now: Time) {
        let mut worker = self.worker();
        worker.session.set_auth(now, auth);
        worker.follow();
        worker.fit_keys();
        worker.wake_thread();
    }

    /// Announces the end to the other nodes and ends the threads. The interface stays, if the kernel keeps it.
    pub(crate) fn stop(mut self) {
        let said = self.worker().announce_end();
        let gone = |shared: &Shared| -> u64 {
            let counters = [Counter::ControlOut, Counter::ControlDropSend, Counter::ControlReplaced];
            (0..shared.nodes()).flat_map(|peer| counters.map(|counter| shared.total(peer, counter))).sum()
        };
        if let Some((before, words)) = said {
            let begin = Instant::now();
            while gone(&self.shared) < before + words && begin.elapsed() < END_MAX {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        self.halt();
    }

    /// The interface goes with the threads.
    pub(crate) fn release_interface(&self) {
        if let Err(error) = self.worker().tap.keep(false) {
            tracing::debug!(%error, "the interface is gone already");
        }
    }

    fn halt(&mut self) {
        self.worker().halt();
        if let Some(program) = &self.program {
            program.end();
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the fabric panicked");
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Works, and reports to the loop if that fails, or how the program ended that it watched: threads that go on without it would hold
/// a carrier for nothing.
pub(crate) fn watched(start: u64, sender: &mpsc::Sender<Event>, work: impl FnOnce() -> Option<ExitStatus>) {
    // What it worked on is not looked at any more.
    let how = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(None) => return,
        Ok(how) => how,
        Err(_) => None,
    };
    tracing::error!("{}", failure(how));
    let begin = Instant::now();
    // The loop may be busy, or wait for this very thread to end.
    while sender.try_send(Event { start, report: Report::Failed(how) }).is_err()
        && begin.elapsed() < REPORT_MAX
    {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for the end of a program: how it came, if nobody had wanted it. It ends well where the interface is gone.
fn end_of(program: &Program, shared: &Shared) -> Option<ExitStatus> {
    match program.wait() {
        Ok(status) => Some(status).filter(|status| !status.success() && !shared.stopped()),
        Err(error) => {
            tracing::error!(%error, "the end of a program cannot be waited for");
            None
        }
    }
}

/// What the thread of a queue does.
fn queue(
    engine: Engine<Box<dyn Transport>, TapPort<TapQueue>>,
    mark: Thread,
) -> impl FnOnce() -> Option<ExitStatus> + Send {
    move || {
        mark.begin();
        shorten_slices();
        if engine.run() == End::PortGone {
            tracing::debug!("the interface is gone");
        }
        None
    }
}
