//! The loop: every input of the daemon comes through here, one at a time.

mod answers;
mod links;

use crate::{
    Options, adopt, apply,
    bond::Bond,
    clock::Clock,
    error::About as _,
    fabric::{self, Fabric, Told},
    history::{Feed, new_feed},
    pending,
    server::{Call, Server},
    state::StateDir,
};
use linkbraid_api::Error;
use linkbraid_dataplane::HookChoice;
use linkbraid_link::{ArpPlusSender, CarrierPoll, Neighbour, NeighbourReader, Netlink, Watch};
use linkbraid_proto::Time;
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

/// Requests and frames waiting for the loop; senders wait when it is full.
const WAITING_MAX: usize = 256;
/// Frames taken in before anything else has its turn.
const FRAMES_AT_ONCE: usize = 64;
/// How often carrier is looked for: the kernel tells of an ordinary NIC's carrier once a second at most
/// (net/core/link_watch.c).
const CARRIER_POLL: Duration = Duration::from_millis(10);
/// How often counters are read to see which lanes carry data.
const LOOK: Duration = Duration::from_millis(100);
/// How long a restarted daemon waits for the peers of its predecessor to speak.
const INHERIT: Duration = Duration::from_secs(5);
/// Where the BPF file system usually is, and where it is mounted otherwise.
const BPF_DIR: &str = "/sys/fs/bpf";
const BPF_DIR_OWN: &str = "/run/linkbraid/bpf";

/// What the tasks of the bonds send to the loop.
pub(crate) enum Event {
    /// An ARP+ frame came in.
    Frame {
        /// The bond.
        ifindex: u32,
        /// The member.
        slot: u8,
        /// Whole, with its Ethernet header.
        frame: Vec<u8>,
    },
    /// A member has carrier, or has none any more.
    Carrier {
        /// The member.
        ifindex: u32,
        /// Whether it has.
        carrier: bool,
    },
    /// The threads of a fabric tell something.
    Fabric {
        /// Which start of it.
        start: u64,
        /// What.
        told: Told,
    },
    /// The neighbours of a bond, as they were asked for.
    Neighbours {
        /// The bond.
        ifindex: u32,
        /// All of them.
        list: linkbraid_link::Result<Vec<Neighbour>>,
    },
}

/// All that the daemon holds.
pub(crate) struct Control {
    pub netlink: Netlink,
    pub sender: ArpPlusSender,
    pub state: StateDir,
    /// Where this namespace's bonds are pinned.
    pub pins: PathBuf,
    pub hook: HookChoice,
    pub clock: Clock,
    pub events: mpsc::Sender<Event>,
    neighbours: NeighbourReader,
    carrier: CarrierPoll,
    /// What it watches.
    watched: Vec<(u32, String)>,
    pub feed: Feed,
    pub bonds: BTreeMap<String, Bond>,
    pub fabrics: BTreeMap<String, Fabric>,
    pub pending: pending::Queue,
    /// What threads do for fabrics.
    pub jobs: fabric::Jobs,
    pub applies: apply::Applies,
    /// When counters are to be read next.
    look_at: Time,
    /// systemd wants a sign of life this often, the next one then.
    watchdog: Option<(Duration, Time)>,
    /// When inherited peers that have not spoken are forgotten.
    pub inherit_until: Option<Time>,
}

/// Runs the daemon until it is told to stop.
pub(crate) async fn run(options: Options) -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::new("daemon", "cannot start", "needs root").hint("sudo linkbraid daemon"));
    }
    let server = Server::bind(&options.socket)?;
    let state_dir = options.state_dir.unwrap_or_else(|| {
        let mut path = options.socket.into_os_string();
        path.push(".state");
        path.into()
    });
    let (events, inbox) = mpsc::channel(WAITING_MAX);
    let (calls, mut requests) = mpsc::channel::<Call>(WAITING_MAX);
    let feed = new_feed();
    let mut watch = Watch::with_neighbours().about("daemon", "cannot watch interfaces")?;
    let told = events.clone();
    let carrier = CarrierPoll::start(CARRIER_POLL, move |ifindex, carrier| {
        // It ends with the loop, and waits while the loop is busy.
        let _ = told.blocking_send(Event::Carrier { ifindex, carrier });
    });
    let told = events.clone();
    let neighbours = NeighbourReader::start(move |ifindex, list| {
        let _ = told.blocking_send(Event::Neighbours { ifindex, list });
    });
    let (jobs, mut news) = fabric::Jobs::new(options.hook);
    let mut control = Control {
        neighbours: neighbours.about("daemon", "cannot read neighbours")?,
        netlink: Netlink::new().about("daemon", "cannot reach the kernel")?,
        sender: ArpPlusSender::new().about("daemon", "cannot send ARP+ frames")?,
        state: StateDir::open(state_dir)?,
        pins: bpf_dir()?,
        hook: options.hook,
        clock: Clock::new(),
        events,
        carrier: carrier.about("daemon", "cannot watch carrier")?,
        watched: Vec::new(),
        feed: feed.clone(),
        bonds: BTreeMap::new(),
        fabrics: BTreeMap::new(),
        pending: pending::Queue::default(),
        jobs,
        applies: apply::Applies::default(),
        look_at: Time::ZERO,
        watchdog: watchdog(),
        inherit_until: None,
    };
    // It ends before the threads that send to it, or one that waits for room would never end.
    let mut inbox = inbox;
    // Before any fabric: libfabric puts handlers of its own in place when a thread loads it, and that thread puts back the
    // ones that it found.
    let stop = |kind| signal(kind).about("daemon", "cannot catch signals");
    let (mut term, mut int) = (stop(SignalKind::terminate())?, stop(SignalKind::interrupt())?);
    fabric::adopt_all(&mut control, &mut news).await;
    adopt::all(&mut control).await;
    control.inherit_until = Some(control.clock.now() + INHERIT);
    apply::at_start(&mut control, options.config.as_deref());
    let mut ready = false;
    let served = server.serve(calls, feed);
    tokio::pin!(served);
    loop {
        control.act();
        pending::advance(&mut control).await;
        apply::advance(&mut control).await;
        control.catch_up().await;
        // What waits for the network waits for what the file says, as far as that can be done now.
        if !ready && control.applies.has_begun() {
            ready = true;
            let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
            tracing::info!(bonds = control.bonds.len(), "ready");
        }
        let wake = control.wake();
        tokio::select! {
            biased;
            _ = term.recv() => break,
            _ = int.recv() => break,
            event = watch.next() => control.link_event(event.about("daemon", "cannot watch interfaces")?).await,
            Some(call) = requests.recv() => match call.is_gone() {
                // It was given up while the loop was busy, and may have been replaced by another one since.
                true => tracing::debug!(request = ?call.request, "the client has gone, not carried out"),
                false => control.answer(call.request, call.pid, call.answer).await,
            },
            Some(done) = news.recv() => fabric::done(&mut control, done).await,
            () = tokio::time::sleep_until(wake) => {
                // What waits has arrived in time.
                if let Ok(event) = inbox.try_recv() {
                    control.frames(event, &mut inbox);
                }
                control.timeout();
            }
            () = &mut served => break,
            // Last, for anybody on the wire can send as many as he likes.
            Some(event) = inbox.recv() => control.frames(event, &mut inbox),
        }
    }
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    tracing::info!("stopping; the bonds stay as they are, and the interfaces of fabrics without a carrier");
    fabric::stop_all(&mut control, &mut news).await;
    Ok(())
}

impl Control {
    pub(crate) fn no_bond(&self, name: &str) -> Error {
        let cause = match self.bonds.is_empty() {
            true => "there are no bonds".to_owned(),
            false => format!("the bonds are {}", self.bonds.keys().cloned().collect::<Vec<_>>().join(", ")),
        };
        Error::new(name, "no such bond", cause).hint("linkbraid show")
    }

    /// When something wants to be woken next.
    fn wake(&self) -> tokio::time::Instant {
        let now = self.clock.now();
        let times = self.bonds.values().filter_map(Bond::poll_timeout);
        let others = [
            fabric::next_try(self),
            self.inherit_until,
            self.pending.wake(now),
            self.applies.wake(now),
            (!self.bonds.is_empty()).then_some(self.look_at),
            self.watchdog.map(|(_, next)| next),
        ];
        match times.chain(others.into_iter().flatten()).min() {
            Some(time) => self.clock.instant(time),
            None => tokio::time::Instant::now() + Duration::from_secs(3600),
        }
    }

    fn timeout(&mut self) {
        let now = self.clock.now();
        for bond in self.bonds.values_mut() {
            bond.timeout(now);
        }
        if self.look_at <= now {
            self.look_at = now + LOOK;
            let fabrics: Vec<u32> = self.fabrics.values().map(|fabric| fabric.saved.ifindex).collect();
            for bond in self.bonds.values_mut() {
                let looked = bond.look_at_lanes(self.clock).and_then(|()| bond.hold(&fabrics));
                // Control groups that rules name come and go with their services.
                let looked = looked.and_then(|()| bond.write_rules());
                if let Err(error) = looked.and_then(|()| bond.look_at_questions(self.clock)) {
                    tracing::error!(%error, "what the data path does is not known");
                }
            }
        }
        if let Some((period, next)) = &mut self.watchdog
            && *next <= now
        {
            *next = now + *period;
            let _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
        }
        if self.inherit_until.is_some_and(|until| until <= now) {
            self.inherit_until = None;
            for (name, bond) in &mut self.bonds {
                // Peers for which there was no number get one now.
                let dropped = bond.drop_inherited();
                if let Err(error) = dropped.and_then(|()| bond.write_tables(self.clock)) {
                    tracing::error!(bond = %name, %error, "cannot forget peers");
                }
            }
        }
    }

    /// Takes in this frame and those that wait behind it, so that the tables are written once for all of them.
    fn frames(&mut self, first: Event, inbox: &mut mpsc::Receiver<Event>) {
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(event) = next {
            match event {
                Event::Frame { ifindex, slot, frame } => self.frame(ifindex, slot, &frame),
                Event::Carrier { ifindex, carrier } => self.carrier(ifindex, carrier),
                Event::Fabric { start, told } => {
                    let (jobs, sender, now) = (&mut self.jobs, &mut self.sender, self.clock.now());
                    for fabric in self.fabrics.values_mut() {
                        fabric.told(now, start, told, jobs, sender);
                    }
                }
                Event::Neighbours { ifindex, list } => {
                    for bond in self.bonds.values_mut().filter(|bond| bond.ifindex == ifindex) {
                        if let Err(error) = bond.take_neighbours(list.clone(), self.clock) {
                            tracing::error!(%error, "plain hosts are not known");
                        }
                    }
                }
            }
            taken += 1;
            next = if taken < FRAMES_AT_ONCE { inbox.try_recv().ok() } else { None };
        }
    }

    fn frame(&mut self, ifindex: u32, slot: u8, frame: &[u8]) {
        let now = self.clock.now();
        if let Some(bond) = self.bonds.values_mut().find(|bond| bond.ifindex == ifindex) {
            bond.frame(now, slot, frame);
        }
    }

    /// The poll has seen a member's carrier come or go.
    pub(crate) fn carrier(&mut self, ifindex: u32, carrier: bool) {
        for bond in self.bonds.values_mut() {
            let member = bond.members.iter_mut().find(|member| member.ifindex == ifindex);
            if let Some(member) = member.filter(|member| member.polled != Some(carrier)) {
                member.polled = Some(carrier);
                bond.tell_members(self.clock);
            }
        }
    }

    /// Carries out what the protocols want.
    pub(crate) fn act(&mut self) {
        for bond in self.bonds.values_mut() {
            bond.act(&mut self.sender, self.clock);
        }
        let members = self.bonds.values().flat_map(|bond| &bond.members);
        let members = members.map(|member| (member.ifindex, &member.name));
        if !members.clone().eq(self.watched.iter().map(|(ifindex, name)| (*ifindex, name))) {
            self.watched = members.map(|(ifindex, name)| (ifindex, name.clone())).collect();
            self.carrier.watch(self.watched.clone());
        }
    }

    /// What takes the kernel longer, and may wait.
    async fn catch_up(&mut self) {
        let now = self.clock.now();
        fabric::retry(self);
        for bond in self.bonds.values_mut() {
            if bond.stripe_stale
                && let Err(error) = bond.write_stripe(&self.netlink).await
            {
                tracing::error!(%error, "stripe length not set");
            }
            bond.plain.ask(now, bond.ifindex, &self.neighbours);
        }
    }
}

/// How often systemd wants a sign of life, if it does: half of its patience.
fn watchdog() -> Option<(Duration, Time)> {
    let patience = sd_notify::watchdog_enabled()?;
    Some((patience / 2, Time::ZERO))
}

/// The directory of this namespace's pins, in a BPF file system that is mounted if none is.
fn bpf_dir() -> Result<PathBuf, Error> {
    let is_bpf = |path: &Path| statfs(path).is_ok_and(|stat| stat.filesystem_type() == BPF_FS_MAGIC);
    let base = match [BPF_DIR, BPF_DIR_OWN].map(Path::new).into_iter().find(|path| is_bpf(path)) {
        Some(path) => path,
        None => {
            let path = match Path::new(BPF_DIR).is_dir() {
                true => Path::new(BPF_DIR),
                false => Path::new(BPF_DIR_OWN),
            };
            let _ = fs::create_dir_all(path);
            let none = None::<&str>;
            nix::mount::mount(Some("bpf"), path, Some("bpf"), nix::mount::MsFlags::empty(), none).map_err(
                |errno| {
                    Error::new("daemon", "no BPF file system", errno.desc().to_lowercase())
                        .hint(format!("mount -t bpf bpf {}", path.display()))
                },
            )?;
            path
        }
    };
    let namespace = fs::metadata("/proc/self/ns/net").about("daemon", "cannot tell the network namespace")?;
    Ok(base.join("linkbraid").join(namespace.ino().to_string()))
}
