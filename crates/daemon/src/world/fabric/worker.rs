//! The session of a fabric on its thread: who is there, and what follows from that.

use super::{cpu::Cpu, fast_path::FastPath, limited::Limited, saved::SavedFabric, trips::Trips};
use crate::{
    io::{
        clock::Clock,
        identity::{new_secret, new_seed},
    },
    world::report::{Event, Report, word},
};
use linkbraid_api::{Encrypt, Error};
use linkbraid_fabric::{
    FrameKey, FrameKeys, KEYS_MAX,
    engine::{Control, ControlMessage, Counter},
};
use linkbraid_link::{Tap, TapOffloads};
use linkbraid_proto::{
    Time, auth,
    session::{self, Action, Config, Input, Secret, Session, Settings, Verdict},
};
use linkbraid_wire::fabric::ENCRYPTION_FEATURE;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, ppoll},
    sys::time::TimeSpec,
};
use std::{
    collections::VecDeque,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::mpsc;

/// How often frames are looked for that prove that a node lives.
const LOOK: Duration = Duration::from_millis(100);
/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// What waits for the loop of the daemon at most; it is behind then, and hears how much it missed.
const TOLD_MAX: usize = 1024;

/// Starts of fabrics in this daemon.
static STARTS: AtomicU64 = AtomicU64::new(0);

/// All that a fabric's thread works on; the loop of the daemon looks in, too.
pub(super) struct Worker {
    start: u64,
    pub session: Session,
    pub control: Control,
    pub tap: Tap,
    pub fast_path: Option<FastPath>,
    pub cpu: Cpu,
    pub trips: Trips,
    /// What our kernel takes and can do.
    able: TapOffloads,
    carrier: bool,
    /// Frames received of each node by the last look, and those sent to it alone.
    seen: Vec<(u64, u64)>,
    look_at: Time,
    sender: mpsc::Sender<Event>,
    waiting: VecDeque<Report>,
    limited: Limited,
    lost: u64,
    /// That the transport is gone was reported.
    loss_told: bool,
    over: bool,
    /// When it last looked at the clock.
    at: Time,
}

impl Worker {
    pub(super) fn new(
        saved: &SavedFabric,
        epoch: u64,
        control: Control,
        (tap, fast_path): (Tap, Option<FastPath>),
        cpu: Cpu,
        sender: mpsc::Sender<Event>,
        now: Time,
    ) -> Result<Self, Error> {
        let able = tap.offloads();
        // More than there may be is refused with the rest.
        let queues = u8::try_from(saved.queues).unwrap_or(u8::MAX);
        let settings = Settings {
            queues,
            features: able.features() | encryption(saved),
            fast_path: fast_path.as_ref().and_then(FastPath::port),
            ..Settings::new(saved.nodes, saved.settings.mtu.0)
        };
        let config = Config { node: saved.node, epoch, settings };
        let session = Session::new(config, new_seed()?, Secret::new(new_secret()?)).map_err(|error| {
            let cause = format!("{} is outside the allowed range {}", error.value, error.allowed);
            Error::new(&saved.name, format!("option '--{}'", error.setting), cause)
        })?;
        Ok(Self {
            start: STARTS.fetch_add(1, Relaxed),
            session,
            control,
            tap,
            fast_path,
            cpu,
            trips: Trips::default(),
            able,
            carrier: false,
            seen: vec![(0, 0); saved.nodes.into()],
            look_at: now + LOOK,
            sender,
            waiting: VecDeque::new(),
            limited: Limited::new(saved.nodes),
            lost: 0,
            loss_told: false,
            over: false,
            at: now,
        })
    }

    /// Speaks with the other nodes from now on.
    pub(super) fn begin(&mut self, auth: auth::Settings, now: Time) {
        self.session.set_auth(now, auth);
        self.session.handle(now, Input::Start);
        self.follow();
    }

    /// Which start of a fabric this is.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Becomes readable when there is something to do.
    pub(super) fn wake_fd(&self) -> Result<OwnedFd, Errno> {
        let fd = self.control.wake_fd().try_clone_to_owned();
        fd.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EMFILE)))
    }

    /// Makes the thread look at its deadlines again.
    pub(super) fn wake_thread(&self) {
        self.control.ring();
    }

    /// Does what there is to do; how long until there is more.
    fn step(&mut self, now: Time) -> Duration {
        self.at = now;
        self.control.quiet();
        while let Some(message) = self.control.receive() {
            let (node, bytes) = (message.peer(), message.bytes());
            self.session.handle(now, Input::Message { node, bytes });
            self.fit_way(node);
            self.follow();
        }
        if self.look_at <= now {
            self.look_at = now + LOOK;
            self.look(now);
            self.look_at_ways(now);
            self.cpu.look(now);
        }
        if self.session.poll_timeout().is_some_and(|time| time <= now) {
            self.session.handle(now, Input::Timeout);
        }
        self.follow();
        self.tell_limited();
        self.tell_loss();
        self.tell_waiting();
        // Without a node that is up there are no frames to look for.
        let look = self.carrier.then_some(self.look_at);
        let next = [look, self.session.poll_timeout()].into_iter().flatten().min();
        next.map_or(SLEEP_MAX, |time| time.since(now).min(SLEEP_MAX))
    }

    /// Frames that came, over either path, prove that their sender lives: none leaves over either once it does not. Those that left to
    /// it alone say that the link is in use.
    fn look(&mut self, now: Time) {
        for (node, seen) in (0..).zip(&mut self.seen) {
            let Some(Verdict::Up { epoch }) = self.session.verdict(node) else { continue };
            let total = |counter| self.control.shared().total(node, counter);
            let by_fast_path = self.fast_path.as_ref().map(|path| path.counts(node)).unwrap_or_default();
            let received = total(Counter::RxFrames).wrapping_add(by_fast_path.rx_frames);
            let sent = total(Counter::TxFrames).wrapping_add(by_fast_path.tx_frames);
            let alone = sent.wrapping_sub(total(Counter::TxCopies));
            if received != seen.0 {
                self.session.handle(now, Input::Traffic { node, epoch });
            }
            if alone != seen.1 {
                self.session.handle(now, Input::Used { node });
            }
            *seen = (received, alone);
        }
    }

    /// Looks whether frames come over the fast path, and reports it to the session.
    fn look_at_ways(&mut self, now: Time) {
        let Some(fast_path) = &mut self.fast_path else { return };
        for (node, heard) in fast_path.look(&self.session, now) {
            self.session.set_heard(now, node, heard);
        }
        let settings = self.session.snapshot(now).settings;
        let port = fast_path.port();
        if settings.fast_path == port {
            return;
        }
        match self.session.set(now, Settings { fast_path: port, ..settings }) {
            // Before anybody hears of the new tags.
            Ok(()) => self.fit_paths(),
            Err(error) => tracing::error!(%error, "the session keeps its fast path"),
        }
    }

    /// Opens and closes the paths of a node over the fast path.
    fn fit_way(&mut self, node: u16) {
        if let Some(fast_path) = &mut self.fast_path {
            fast_path.fit(&self.session, node, self.at);
        }
    }

    /// The same for all.
    pub(super) fn fit_paths(&mut self) {
        (0..self.control.shared().nodes()).for_each(|node| self.fit_way(node));
    }

    /// Does what the session wants.
    pub(super) fn follow(&mut self) {
        while let Some(action) = self.session.poll_action() {
            match action {
                Action::Send { node, bytes } => {
                    self.send(node, &bytes);
                }
                Action::Link { node, old, new } => {
                    // Closed before the link counts as down, open before the node hears of its tag.
                    self.fit_way(node);
                    let epoch = match new {
                        Verdict::Up { epoch } => Some(epoch),
                        Verdict::Down(_) | Verdict::Refused { .. } => None,
                    };
                    // No frame leaves that a node cannot take: first the kernel hears of a new one, then the queues. When one
                    // has gone, the other way round.
                    if epoch.is_some() {
                        self.fit_offloads();
                        self.set_link(node, epoch);
                    } else {
                        self.set_link(node, epoch);
                        self.fit_offloads();
                    }
                    self.report_of(node, Report::Link { node, old, new });
                    self.fit_carrier();
                }
                Action::RoundTrip { node, took } => self.trips.add(node, took),
                Action::Event(event) => {
                    let node = match event {
                        session::Event::Duplicate { node, .. } => node,
                        session::Event::OwnNumber { .. } => self.session.node(),
                    };
                    self.report_of(node, Report::Event(event));
                }
            }
        }
    }

    /// Opens or closes the queues to a node.
    fn set_link(&self, node: u16, epoch: Option<u64>) {
        let keys = epoch.and_then(|epoch| self.session.frame_keys((node, epoch)));
        match keys {
            Some(keys) => self.control.set_encrypted_link(node, &of_session(&keys)),
            None => self.control.set_link(node, epoch),
        }
    }

    /// Frames of the nodes that are up are encrypted with other keys from now on.
    pub(super) fn fit_keys(&self) {
        for node in 0..self.control.shared().nodes() {
            if let Some(Verdict::Up { epoch }) = self.session.verdict(node) {
                self.set_link(node, Some(epoch));
            }
        }
    }

    fn send(&self, node: u16, bytes: &[u8]) -> bool {
        // One that finds no room is said again.
        ControlMessage::new(node, bytes).is_some_and(|message| self.control.send(message))
    }

    /// The interface leaves undone what all nodes that are up can do.
    fn fit_offloads(&mut self) {
        let nodes = (0..).zip(&self.seen).filter_map(|(node, _)| self.session.offer(node));
        let wanted = nodes.fold(self.able, |all, offer| all.and(TapOffloads::of_features(offer.features)));
        // Refused where somebody removed the interface, which the loop hears from the kernel.
        if wanted != self.tap.offloads()
            && let Err(error) = self.tap.set_offloads(wanted)
        {
            tracing::debug!(%error, "cannot set the offloads");
        }
    }

    /// The interface has a carrier while any node is up.
    fn fit_carrier(&mut self) {
        let carrier = self.session.any_up();
        if carrier != self.carrier {
            self.carrier = carrier;
            match self.tap.set_carrier(carrier) {
                Ok(()) => self.report_of(self.session.node(), Report::Carrier(carrier)),
                Err(error) => tracing::debug!(%error, "cannot set the carrier"),
            }
        }
    }

    /// Reports something of a node, or, as of this one, of the fabric.
    fn report_of(&mut self, node: u16, report: Report) {
        if self.limited.passes(node, self.at) {
            self.report(report);
        }
    }

    /// Reports of whom too much was to be reported, and what is true of them now.
    fn tell_limited(&mut self) {
        for (node, count) in self.limited.suppressed(self.at) {
            let state = self.session.verdict(node).map_or(if self.carrier { "up" } else { "down" }, word);
            let node = (node != self.session.node()).then_some(node);
            self.report(Report::Limited { node, count, state });
        }
    }

    /// Reports that the transport is gone, before all else, and never too much: the loop ends this start then.
    fn tell_loss(&mut self) {
        if let Some(loss) = self.control.shared().loss().filter(|_| !self.loss_told) {
            self.loss_told = true;
            self.waiting.push_front(Report::Memory(loss));
        }
    }

    fn report(&mut self, report: Report) {
        if self.waiting.len() < TOLD_MAX {
            self.waiting.push_back(report);
        } else {
            self.lost += 1;
        }
    }

    /// Hands on as much as the loop takes: it may be busy, and the other nodes do not wait for it.
    fn tell_waiting(&mut self) {
        if self.lost > 0 && self.waiting.len() < TOLD_MAX {
            self.waiting.push_back(Report::Lost(std::mem::take(&mut self.lost)));
        }
        while let Some(report) = self.waiting.pop_front() {
            if self.sender.try_send(Event { start: self.start, report }).is_err() {
                return self.waiting.push_front(report);
            }
        }
    }

    /// Announces the end to every node; control messages that had left before, and how many are on their way.
    pub(super) fn announce_end(&mut self) -> Option<(u64, u64)> {
        if self.over {
            return None;
        }
        let shared = self.control.shared().clone();
        let out = [Counter::ControlOut, Counter::ControlDropSend, Counter::ControlReplaced];
        let before =
            (0..shared.nodes()).flat_map(|node| out.map(|counter| shared.total(node, counter))).sum();
        // No step comes any more that could deal with what the session holds of its links by now.
        self.over = true;
        self.session.handle(self.at, Input::Stop);
        if let Some(fast_path) = &mut self.fast_path {
            fast_path.close();
        }
        let mut words = 0;
        while let Some(action) = self.session.poll_action() {
            if let Action::Send { node, bytes } = action {
                words += u64::from(self.send(node, &bytes));
            }
        }
        Some((before, words))
    }

    /// Ends all threads.
    pub(super) fn halt(&mut self) {
        self.over = true;
        self.control.stop();
        self.control.ring();
    }
}

/// What a node announces of encryption.
fn encryption(saved: &SavedFabric) -> u16 {
    if saved.settings.encrypt == Encrypt::On { ENCRYPTION_FEATURE } else { 0 }
}

/// The keys of frames, as whoever carries them has them.
fn of_session(keys: &session::FrameKeys) -> FrameKeys {
    let one = |key: &auth::Key| FrameKey { id: key.id, secret: key.secret().clone() };
    FrameKeys {
        epoch: keys.epoch,
        send: keys.send.as_ref().map(one),
        receive: std::array::from_fn(|at| keys.receive.get(at).map(one)),
    }
}

const _: () = assert!(KEYS_MAX >= auth::KEYS_MAX);

/// Beats until it is over.
pub(super) fn run(worker: &Mutex<Worker>, wake: &OwnedFd, clock: Clock) {
    loop {
        let wait = {
            let mut worker = worker.lock().unwrap_or_else(PoisonError::into_inner);
            if worker.over {
                return;
            }
            worker.step(clock.now())
        };
        let mut fds = [PollFd::new(wake.as_fd(), PollFlags::POLLIN)];
        // Interrupted or not: it looks what there is to do.
        let _ = ppoll(&mut fds, Some(TimeSpec::from(wait)), None);
    }
}
