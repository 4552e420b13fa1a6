//! The loop: every input of the daemon comes through here, one at a time.

mod server;

use crate::{
    Options,
    io::{clock::Clock, error::About as _, state::StateDir},
    operations::{Operations, adopt, fabric, follow},
    world::{World, bond::Bond, event::Event, fabric::Jobs, history::new_feed},
};
use linkbraid_api::Error;
use linkbraid_link::{ArpPlusSender, CarrierPoll, NeighbourReader, Netlink, Watch};
use linkbraid_proto::Time;
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use server::{Call, Server};
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
/// Frames and other events taken in before anything else has its turn.
const EVENTS_AT_ONCE: usize = 64;
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

/// The loop, and what it alone keeps.
struct Control {
    world: World,
    operations: Operations,
    neighbours: NeighbourReader,
    carrier: CarrierPoll,
    /// What it watches.
    watched: Vec<(u32, String)>,
    /// When counters are to be read next.
    look_at: Time,
    /// systemd wants a sign of life this often, the next one then.
    watchdog: Option<(Duration, Time)>,
    /// When inherited peers that have not spoken are forgotten.
    inherit_until: Option<Time>,
}

/// Runs the daemon until it is told to stop.
pub(crate) async fn run(options: Options) -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::new("daemon", "cannot start", "needs root").hint("sudo linkbraid daemon"));
    }
    let server = Server::bind(&options.socket)?;
    let (events, inbox) = mpsc::channel(WAITING_MAX);
    let (calls, mut requests) = mpsc::channel::<Call>(WAITING_MAX);
    let mut watch = Watch::with_neighbours().about("daemon", "cannot watch interfaces")?;
    let (jobs, mut news) = Jobs::new(options.hook);
    let mut control = Control::new(&options, events, jobs)?;
    // It ends before the threads that send to it, or one that waits for room would never end.
    let mut inbox = inbox;
    let stop = |kind| signal(kind).about("daemon", "cannot catch signals");
    let (mut term, mut int) = (stop(SignalKind::terminate())?, stop(SignalKind::interrupt())?);
    fabric::adopt_all(&mut control.world, &mut news).await;
    adopt::all(&mut control.world).await;
    control.inherit_until = Some(control.world.clock.now() + INHERIT);
    control.operations.at_start(&control.world, options.config.as_deref()).await;
    let mut ready = false;
    let served = server.serve(calls, control.world.feed.clone());
    tokio::pin!(served);
    loop {
        control.act();
        control.operations.advance(&mut control.world).await;
        control.catch_up().await;
        // What waits for the network waits for what the file says, as far as that can be done now.
        if !ready && control.operations.has_begun() {
            ready = true;
            let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
            tracing::info!(bonds = control.world.bonds.len(), "ready");
        }
        let wake = control.wake();
        let Control { world, operations, .. } = &mut control;
        tokio::select! {
            biased;
            _ = term.recv() => break,
            _ = int.recv() => break,
            event = watch.next() => {
                let event = event.about("daemon", "cannot watch interfaces")?;
                follow::link_event(world, operations, event).await;
            }
            Some(call) = requests.recv() => match call.is_gone() {
                // It was given up while the loop was busy, and may have been replaced by another one since.
                true => tracing::debug!(request = ?call.request, "the client has gone, not carried out"),
                false => operations.ask(world, call.request, call.pid, call.answer).await,
            },
            Some(done) = news.recv() => fabric::done(world, done).await,
            () = tokio::time::sleep_until(wake) => {
                // What waits has arrived in time.
                if let Ok(event) = inbox.try_recv() {
                    take_in(world, event, &mut inbox);
                }
                control.timeout();
            }
            () = &mut served => break,
            // Last, for anybody on the wire can send as many as he likes.
            Some(event) = inbox.recv() => take_in(world, event, &mut inbox),
        }
    }
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    tracing::info!("stopping; the bonds stay as they are, and the interfaces of fabrics without a carrier");
    fabric::stop_all(&mut control.world, &mut news).await;
    Ok(())
}

/// Takes in this event and those that wait behind it, so that the tables are written once for all of them.
fn take_in(world: &mut World, first: Event, inbox: &mut mpsc::Receiver<Event>) {
    world.event(first);
    for _ in 1..EVENTS_AT_ONCE {
        match inbox.try_recv() {
            Ok(event) => world.event(event),
            Err(_) => return,
        }
    }
}

impl Control {
    fn new(options: &Options, events: mpsc::Sender<Event>, jobs: Jobs) -> Result<Self, Error> {
        let tell = events.clone();
        let carrier = CarrierPoll::start(CARRIER_POLL, move |ifindex, carrier| {
            // It ends with the loop, and waits while the loop is busy.
            let _ = tell.blocking_send(Event::Carrier { ifindex, carrier });
        });
        let tell = events.clone();
        let neighbours = NeighbourReader::start(move |ifindex, list| {
            let _ = tell.blocking_send(Event::Neighbours { ifindex, list });
        });
        let state_dir = options.state_dir.clone().unwrap_or_else(|| {
            let mut path = options.socket.clone().into_os_string();
            path.push(".state");
            path.into()
        });
        let world = World {
            netlink: Netlink::new().about("daemon", "cannot reach the kernel")?,
            sender: ArpPlusSender::new().about("daemon", "cannot send ARP+ frames")?,
            state: StateDir::open(state_dir)?,
            pins: bpf_dir()?,
            hook: options.hook,
            clock: Clock::new(),
            events,
            feed: new_feed(),
            bonds: BTreeMap::new(),
            fabrics: BTreeMap::new(),
            jobs,
        };
        Ok(Self {
            world,
            operations: Operations::default(),
            neighbours: neighbours.about("daemon", "cannot read neighbours")?,
            carrier: carrier.about("daemon", "cannot watch carrier")?,
            watched: Vec::new(),
            look_at: Time::ZERO,
            watchdog: watchdog(),
            inherit_until: None,
        })
    }

    /// When something wants to be woken next.
    fn wake(&self) -> tokio::time::Instant {
        let world = &self.world;
        let others = [
            fabric::next_try(world),
            self.inherit_until,
            self.operations.wake(world.clock.now()),
            (!world.bonds.is_empty()).then_some(self.look_at),
            self.watchdog.map(|(_, next)| next),
        ];
        let times = world.bonds.values().filter_map(Bond::poll_timeout);
        match times.chain(others.into_iter().flatten()).min() {
            Some(time) => world.clock.instant(time),
            None => tokio::time::Instant::now() + Duration::from_secs(3600),
        }
    }

    fn timeout(&mut self) {
        let now = self.world.clock.now();
        self.world.timeout(now);
        if self.look_at <= now {
            self.look_at = now + LOOK;
            self.world.look();
        }
        if let Some((period, next)) = &mut self.watchdog
            && *next <= now
        {
            *next = now + *period;
            let _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
        }
        if self.inherit_until.is_some_and(|until| until <= now) {
            self.inherit_until = None;
            self.world.drop_inherited();
        }
    }

    /// Carries out what the protocols want.
    fn act(&mut self) {
        self.world.act();
        let members = self.world.bonds.values().flat_map(|bond| &bond.members);
        let members = members.map(|member| (member.ifindex, &member.name));
        if !members.clone().eq(self.watched.iter().map(|(ifindex, name)| (*ifindex, name))) {
            self.watched = members.map(|(ifindex, name)| (ifindex, name.clone())).collect();
            self.carrier.watch(self.watched.clone());
        }
    }

    /// What takes the kernel longer, and may wait.
    async fn catch_up(&mut self) {
        let world = &mut self.world;
        fabric::retry(world);
        for bond in world.bonds.values_mut() {
            if bond.stripe_stale
                && let Err(error) = bond.write_stripe(&world.netlink).await
            {
                tracing::error!(%error, "stripe length not set");
            }
            bond.ask_neighbours(&self.neighbours);
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
