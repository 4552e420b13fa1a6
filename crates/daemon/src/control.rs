//! The control thread: requests, and what the kernel reports, come through its loop, one at a time. It may wait for the kernel;
//! the bonds are driven by a thread that does not ([`drive`]).

mod drive;
mod metrics;
mod server;

use crate::{
    Options,
    io::{
        clock::Clock,
        error::About as _,
        marks::{Mark, Marks},
        state::{StateDir, beside},
    },
    operations::{Operations, adopt, fabric, follow, snapshot, upkeep},
    world::{World, bond::Bond, driving::Driving, fabric::Jobs, history::new_feed, report::Event},
};
use drive::Driver;
use linkbraid_api::{Error, LinkName};
use linkbraid_link::{
    ArpPlusSender, CarrierPoll, LinkEvent, Neighbour, NeighbourReader, Netlink, Watch, forwards_ipv6,
};
use linkbraid_proto::Time;
use metrics::Metrics;
use sd_notify::NotifyState;
use server::{Call, Server};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    process,
    sync::Arc,
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

/// Requests and frames waiting for the loop; senders wait when it is full.
const WAITING_MAX: usize = 256;
/// The longest sleep: while the loop goes on, so does what shows that it does.
const TURN: Duration = Duration::from_secs(30);
/// How often carrier is looked for after a change.
const CARRIER_POLL: Duration = Duration::from_millis(10);
/// How often it is looked for what the data path is to know of this machine.
const LOOK: Duration = Duration::from_millis(100);

/// The loop, and what it alone keeps.
struct Control {
    world: World,
    operations: Operations,
    carrier: CarrierPoll,
    /// What it watches.
    watched: Vec<(u32, String)>,
    /// What tells other programs which interfaces are members.
    marks: Marks,
    /// When to look next.
    look_at: Time,
}

/// Runs the daemon until it is asked to stop.
pub(crate) async fn run(options: Options) -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::new("daemon", "cannot start", "needs root").hint("sudo linkbraid daemon"));
    }
    let server = Server::bind(&options.socket)?;
    let (events, mut inbox) = mpsc::channel(WAITING_MAX);
    let (calls, mut requests) = mpsc::channel::<Call>(WAITING_MAX);
    let mut watch = Watch::new().about("daemon", "cannot watch interfaces")?;
    let (jobs, mut news) = Jobs::new(options.hook);
    let clock = Clock::new();
    let (driving, added) = Driving::new(clock);
    let shared = driving.clone();
    let neighbours = NeighbourReader::start(move |index, list| {
        or_end(|| neighbours_read(&shared, clock, index, &list));
    });
    let neighbours = neighbours.about("daemon", "cannot read neighbours")?;
    let mut driver = Driver::start((driving.clone(), added), neighbours, clock, watchdog())?;
    let mut control = Control::new(&options, (clock, driving.clone()), events, jobs)?;
    let stop = |kind| signal(kind).about("daemon", "cannot catch signals");
    let (mut term, mut int) = (stop(SignalKind::terminate())?, stop(SignalKind::interrupt())?);
    let (asks, mut asked) = mpsc::channel::<metrics::Ask>(1);
    // From the first event on.
    let heard = control.world.feed.subscribe();
    fabric::adopt_all(&mut control.world, &mut news).await;
    adopt::all(&mut control.world).await;
    control.operations.at_start(&control.world, &options.config).await;
    if control.world.metrics.is_none() {
        control.world.metrics = control.operations.metrics();
    }
    let metrics =
        control.world.metrics.clone().map(|address| Metrics::start(address, heard, asks)).transpose()?;
    let (mut ready, mut said) = (false, String::new());
    let served = server.serve(calls, control.world.feed.clone());
    tokio::pin!(served);
    loop {
        driving.turn();
        control.watch_carrier();
        control.operations.advance(&mut control.world).await;
        control.catch_up().await;
        control.mark_members();
        // What waits for the network waits for what the file says, as far as that can be done now; managers of networks do, too, and
        // find members marked.
        let are_known = control.marks.are_known(control.world.clock.now());
        if !ready && are_known && control.operations.has_begun() {
            ready = true;
            said = control.has();
            let _ = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&said)]);
            tracing::info!("ready with {said}");
        }
        let status = if ready { control.has() } else { control.operations.begins_with() };
        if status != said {
            let _ = sd_notify::notify(&[NotifyState::Status(&status)]);
            said = status;
        }
        let wake = control.wake();
        let Control { world, operations, carrier, .. } = &mut control;
        tokio::select! {
            biased;
            _ = term.recv() => break,
            _ = int.recv() => break,
            error = driver.failed() => return Err(error),
            event = watch.next() => {
                let event = event.about("daemon", "cannot watch interfaces")?;
                if matches!(event, LinkEvent::LinkChanged(_)) {
                    carrier.hurry();
                }
                follow::link_event(world, operations, event).await;
            }
            Some(call) = requests.recv() => match call.is_gone() {
                // It was given up while the loop was busy, and may have been replaced by another one since.
                true => tracing::debug!(request = ?call.request, "the client disconnected; not carried out"),
                false => operations.ask(world, call.request, call.pid, call.answer).await,
            },
            Some(done) = news.recv() => fabric::done(world, done).await,
            // Whoever asked may have given up.
            Some(answer) = asked.recv() => if !answer.is_closed() {
                drop(answer.send(snapshot::snapshot(world)));
            },
            Some(event) = inbox.recv() => world.event(event),
            () = driving.news() => if driving.has_lost() {
                follow::link_event(world, operations, LinkEvent::Resync).await;
            },
            () = tokio::time::sleep_until(wake) => control.timeout(),
            () = &mut served => break,
        }
    }
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    tracing::info!("stopping; bonds stay as they are, and the interfaces of fabrics lose their carrier");
    // Whoever waits for something hears now that the daemon stops.
    control.operations = Operations::default();
    // What serves them has its turn.
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
    drop(metrics);
    fabric::stop_all(&mut control.world, &mut news).await;
    // While the bonds are there.
    drop(driver);
    Ok(())
}

impl Control {
    fn new(
        options: &Options,
        (clock, driving): (Clock, Arc<Driving>),
        events: mpsc::Sender<Event>,
        jobs: Jobs,
    ) -> Result<Self, Error> {
        let shared = driving.clone();
        let carrier = CarrierPoll::start(CARRIER_POLL, move |index, carrier| {
            or_end(|| shared.carrier(index, carrier));
        });
        let state_dir = options.state_dir.clone().unwrap_or_else(|| beside(&options.socket));
        let marks = Marks::new(state_dir.join("members"));
        let world = World {
            netlink: Netlink::new().about("daemon", "cannot reach the kernel")?,
            sender: ArpPlusSender::new().about("daemon", "cannot send ARP+ frames")?,
            state: StateDir::open(state_dir)?,
            namespace: namespace()?,
            hook: options.hook,
            metrics: options.metrics.clone(),
            metrics_by_option: options.metrics.is_some(),
            clock,
            events,
            driving,
            feed: new_feed(),
            bonds: BTreeMap::new(),
            fabrics: BTreeMap::new(),
            jobs,
        };
        Ok(Self {
            world,
            operations: Operations::default(),
            carrier: carrier.about("daemon", "cannot watch carrier")?,
            watched: Vec::new(),
            marks,
            look_at: Time::ZERO,
        })
    }

    /// When something wants to be woken next.
    fn wake(&self) -> tokio::time::Instant {
        let world = &self.world;
        let times = [
            fabric::next_try(world),
            upkeep::wake(world),
            self.operations.wake(world.clock.now()),
            self.marks.wake(world.clock.now()),
            world.has_to_look().then_some(self.look_at),
            Some(world.clock.now() + TURN),
        ];
        let next = times.into_iter().flatten().min();
        world.clock.instant(next.unwrap_or_default())
    }

    /// What there is, in words.
    fn has(&self) -> String {
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let bonds = count(self.world.bonds.len(), "bond");
        match self.world.fabrics.len() {
            0 => bonds,
            fabrics => format!("{bonds} and {}", count(fabrics, "fabric")),
        }
    }

    fn timeout(&mut self) {
        let now = self.world.clock.now();
        if self.look_at <= now {
            self.look_at = now + LOOK;
            self.world.look();
        }
    }

    /// Has the carrier of all members watched.
    fn watch_carrier(&mut self) {
        let members = self.world.bonds.values().flat_map(Bond::members);
        let members: Vec<(u32, String)> = members.map(|member| (member.ifindex, member.name)).collect();
        if members != self.watched {
            self.watched.clone_from(&members);
            self.carrier.watch(members);
        }
    }

    /// Has all members marked, those that are to come, or to come back, among them.
    fn mark_members(&mut self) {
        let awaited = self.operations.awaited();
        let mark = |(name, bond): (&LinkName, &LinkName)| {
            (name.to_string(), Mark { bond: bond.to_string(), index: None })
        };
        let mut marks: BTreeMap<_, _> = awaited.map(mark).collect();
        for bond in self.world.bonds.values() {
            let mark = |index| Mark { bond: bond.saved.name.to_string(), index };
            marks.extend(bond.saved.absent.iter().map(|absent| (absent.name.clone(), mark(None))));
            marks.extend(bond.members().into_iter().map(|member| (member.name, mark(Some(member.ifindex)))));
        }
        self.marks.keep(self.world.clock.now(), &marks);
    }

    /// What takes the kernel longer, and may wait.
    async fn catch_up(&mut self) {
        let world = &mut self.world;
        fabric::retry(world);
        for bond in world.bonds.values_mut() {
            if bond.is_stripe_stale()
                && let Err(error) = bond.follow_rates(&world.netlink, world.clock.now()).await
            {
                tracing::error!(%error, "stripe length not set");
            }
        }
    }
}

/// Does what another thread has to do with a bond. A bond that is left half-changed must not be driven any further: the daemon
/// ends as if it had been killed, and the next one takes the bonds over.
fn or_end(does: impl FnOnce()) {
    if panic::catch_unwind(AssertUnwindSafe(does)).is_err() {
        process::abort();
    }
}

/// The thread that reads neighbours has read those of a bond.
fn neighbours_read(
    driving: &Driving,
    clock: Clock,
    index: u32,
    list: &linkbraid_link::Result<Vec<Neighbour>>,
) {
    for bond in driving.all() {
        let (name, heard) = {
            let driven = bond.lock();
            if driven.ifindex != index {
                continue;
            }
            (driven.name.clone(), driven.heard())
        };
        // Many rows may have to be read.
        let heard = heard.map_or(Ok(Vec::new()), |tables| tables.plain_hosts());
        let heard = heard.about(&name, "cannot read the plain hosts");
        let read = list.clone().about(&name, "cannot read its neighbours");
        let read = read.and_then(|list| Ok((list, heard?)));
        let read = read.inspect_err(|error| tracing::error!(%error, "cannot update the plain hosts"));
        let router = forwards_ipv6(&name);
        bond.lock().take_neighbours(clock.now(), read.ok(), router);
    }
}

/// How often systemd wants a sign of life, if it does: half of its patience.
fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|patience| patience / 2)
}

/// The number of this network namespace, as a folder.
fn namespace() -> Result<PathBuf, Error> {
    let namespace =
        fs::metadata("/proc/self/ns/net").about("daemon", "cannot determine the network namespace")?;
    Ok(namespace.ino().to_string().into())
}
