//! The thread that drives the bonds: their frames, deadlines and links, and what follows from them in the data path.
//!
//! It must not wait for anything else: peers take a lane that is silent for 150 ms for failed. Whatever may wait for the kernel
//! (its network lock, its verifier), for a file or for a client is left to the control thread.

mod frames;

use crate::{
    io::{clock::Clock, error::About as _},
    world::{
        driven::{Driven, Shared, links::Announced},
        driving::{Driving, New},
    },
};
use frames::Frames;
use linkbraid_api::Error;
use linkbraid_fabric::shorten_slices;
use linkbraid_link::{ArpPlusSender, NeighbourReader, Watch};
use std::{
    cell::RefCell,
    rc::Rc,
    sync::Arc,
    thread::{Builder, JoinHandle},
    time::Duration,
};
use tokio::{
    runtime::{self, Runtime},
    sync::{mpsc, oneshot},
    task::{JoinSet, LocalSet},
    time::{MissedTickBehavior, interval, sleep_until},
};

/// Name of the thread, at most 15 bytes.
const THREAD_NAME: &str = "lb-drive";
/// Announcements of the kernel taken in before anything else has its turn: strangers can cause those of neighbours.
const ANNOUNCED_AT_ONCE: usize = 256;
/// A control thread that has not gone on for so long hangs: longer than any driver holds the kernel's network lock.
const CONTROL_HANGS: Duration = Duration::from_secs(120);

/// The thread; it ends with this.
pub(super) struct Driver {
    stop: Option<oneshot::Sender<()>>,
    /// Says why the thread has ended, or nothing if it panicked.
    ended: oneshot::Receiver<Error>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts the thread in the network namespace of the caller. systemd wants a sign of life every `watchdog`.
    pub(super) fn start(
        (driving, added): (Arc<Driving>, mpsc::UnboundedReceiver<New>),
        neighbours: NeighbourReader,
        clock: Clock,
        watchdog: Option<Duration>,
    ) -> Result<Self, Error> {
        let what = "cannot start the thread that drives bonds";
        let runtime = runtime::Builder::new_current_thread().enable_all().build().about("daemon", what)?;
        let watch = {
            let _entered = runtime.enter();
            Watch::with_neighbours().about("daemon", "cannot watch interfaces")?
        };
        let sender = ArpPlusSender::new().about("daemon", "cannot send ARP+ frames")?;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let run = move || {
            shorten_slices();
            let drives = Drives { driving, clock, sender: RefCell::new(sender), neighbours };
            if let Err(error) = run(&runtime, Rc::new(drives), added, watch, watchdog, stopped) {
                let _ = end.send(error);
            }
        };
        let thread = Builder::new().name(THREAD_NAME.to_owned()).spawn(run).about("daemon", what)?;
        Ok(Self { stop: Some(stop), ended, thread: Some(thread) })
    }

    /// Why the thread has ended before it was to.
    pub(super) async fn failed(&mut self) -> Error {
        let panicked = |_| Error::new("daemon", "cannot go on", "the thread that drives bonds failed");
        (&mut self.ended).await.unwrap_or_else(panicked)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// What all bonds are driven with.
struct Drives {
    driving: Arc<Driving>,
    clock: Clock,
    sender: RefCell<ArpPlusSender>,
    neighbours: NeighbourReader,
}

fn run(
    runtime: &Runtime,
    drives: Rc<Drives>,
    added: mpsc::UnboundedReceiver<New>,
    watch: Watch,
    watchdog: Option<Duration>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), Error> {
    LocalSet::new().block_on(runtime, async {
        tokio::select! {
            _ = stopped => {}
            ended = drive_all(drives.clone(), added, watch, watchdog) => return ended,
        }
        // What was changed just before is sent to peers.
        drives.driving.all().iter().for_each(|bond| _ = drives.act(&mut bond.drive()));
        Ok(())
    })
}

/// Drives each bond that is added; ends when something fails.
async fn drive_all(
    drives: Rc<Drives>,
    mut added: mpsc::UnboundedReceiver<New>,
    mut watch: Watch,
    watchdog: Option<Duration>,
) -> Result<(), Error> {
    let mut bonds = JoinSet::new();
    let mut signs = interval(watchdog.unwrap_or(CONTROL_HANGS));
    signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            Some((bond, answer)) = added.recv() => {
                let frames = Frames::of(&bond.drive());
                let begun = frames.map(|frames| _ = bonds.spawn_local(drive(drives.clone(), bond, frames)));
                // Who asked has gone with the bond.
                let _ = answer.send(begun);
            }
            Some(Err(failed)) = bonds.join_next() => std::panic::resume_unwind(failed.into_panic()),
            _ = signs.tick(), if watchdog.is_some() => {
                if drives.clock.now().since(drives.driving.turned()) < CONTROL_HANGS {
                    let _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
                }
            }
            event = watch.next() => {
                let mut announced = Announced::default();
                announced.add(event.about("daemon", "cannot watch interfaces")?);
                drives.links_changed(&mut watch, announced)?;
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Drives one bond until it is gone.
async fn drive(drives: Rc<Drives>, bond: Arc<Shared>, mut frames: Frames) {
    loop {
        let wake = {
            let mut driven = bond.drive();
            frames.follow(&driven);
            drives.act(&mut driven)
        };
        let Some(wake) = wake else { return };
        tokio::select! {
            biased;
            () = sleep_until(wake) => due(&bond, &mut frames, drives.clock),
            () = bond.changed() => {}
            ready = frames.wait() => {
                if ready.is_err() {
                    return;
                }
                if frames.take(&mut bond.drive(), drives.clock) {
                    continue;
                }
                // More frames than can be taken at once: a timer would have to wait for the last of them.
                let wake = bond.drive().wake();
                if wake <= drives.clock.now() {
                    due(&bond, &mut frames, drives.clock);
                }
                // Readiness that is not used up does not give way by itself.
                tokio::task::yield_now().await;
            }
        }
    }
}

/// A deadline of the bond has come.
fn due(bond: &Shared, frames: &mut Frames, clock: Clock) {
    let mut driven = bond.drive();
    frames.take_in_time(&mut driven, clock);
    driven.timeout(clock.now());
}

impl Drives {
    /// Carries out what a bond's machine wants; when it wants to be woken, if the bond is still there.
    fn act(&self, driven: &mut Driven) -> Option<tokio::time::Instant> {
        if driven.over {
            return None;
        }
        if driven.act(&mut self.sender.borrow_mut()) {
            self.driving.notify();
        }
        if driven.wants_neighbours && self.neighbours.ask(driven.ifindex) {
            driven.wants_neighbours = false;
        }
        Some(self.clock.instant(driven.wake()))
    }

    /// Follows what the kernel announced. A bond is held before the announcements that wait are read, so that none of them is
    /// older than what the control thread has read of its members.
    fn links_changed(&self, watch: &mut Watch, mut announced: Announced) -> Result<(), Error> {
        let bonds = self.driving.all();
        let (mut read, mut behind) = (0, bonds.len());
        // What is read for one bond is news for those before it.
        for bond in bonds.iter().cycle() {
            if behind == 0 {
                break;
            }
            let mut driven = bond.lock();
            while read < ANNOUNCED_AT_ONCE
                && let Some(event) = watch.try_next()
            {
                announced.add(event.about("daemon", "cannot watch interfaces")?);
                (read, behind) = (read + 1, bonds.len());
            }
            driven.follow(self.clock.now(), &announced);
            behind -= 1;
        }
        if announced.lost {
            self.driving.lose();
        }
        Ok(())
    }
}
