//! The bonds that are driven, and what other threads report of them.

use crate::{io::clock::Clock, world::driven::Shared};
use linkbraid_api::Error;
use linkbraid_proto::Time;
use parking_lot::{Mutex, MutexGuard};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};
use tokio::sync::{Notify, mpsc, oneshot};

/// A bond that is to be driven, and where to say whether it is.
pub(crate) type New = (Arc<Shared>, oneshot::Sender<Result<(), Error>>);

/// All that the thread that drives the bonds shares with others.
pub(crate) struct Driving {
    clock: Clock,
    bonds: Mutex<Vec<Arc<Shared>>>,
    new: mpsc::UnboundedSender<New>,
    news: Notify,
    /// Announcements of the kernel were lost.
    lost: AtomicBool,
    /// When the control thread was last seen to go on, in nanoseconds of the clock.
    turned: AtomicU64,
}

impl Driving {
    /// No bonds yet, and where the thread that drives them hears of new ones.
    pub(crate) fn new(clock: Clock) -> (Arc<Self>, mpsc::UnboundedReceiver<New>) {
        let (new, added) = mpsc::unbounded_channel();
        let driving = Self {
            clock,
            bonds: Mutex::default(),
            new,
            news: Notify::new(),
            lost: AtomicBool::new(false),
            turned: AtomicU64::new(0),
        };
        (Arc::new(driving), added)
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Shared>>> {
        self.bonds.lock()
    }

    /// Every bond.
    pub(crate) fn all(&self) -> Vec<Arc<Shared>> {
        self.list().clone()
    }

    /// Has a bond driven from now on.
    ///
    /// # Errors
    /// Its frames cannot be read.
    pub(crate) async fn add(&self, bond: Arc<Shared>) -> Result<(), Error> {
        let name = bond.lock().name.clone();
        let failed = || Error::new(&name, "cannot be driven", "the thread that drives bonds has ended");
        let (answer, answered) = oneshot::channel();
        self.list().push(bond.clone());
        self.new.send((bond, answer)).map_err(|_| failed())?;
        answered.await.map_err(|_| failed())?
    }

    /// A bond is gone; it is not driven any more.
    pub(crate) fn remove(&self, bond: &Arc<Shared>) {
        bond.lock().over = true;
        self.list().retain(|other| !Arc::ptr_eq(other, bond));
    }

    /// The poll has seen an interface's carrier come or go.
    pub(crate) fn carrier(&self, index: u32, carrier: bool) {
        for bond in self.all() {
            bond.lock().carrier(self.clock.now(), index, carrier);
        }
    }

    /// There is something that the control thread is to look at.
    pub(crate) fn notify(&self) {
        self.news.notify_one();
    }

    /// Ends when there is something to look at.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// Announcements of the kernel were lost: everything is to be read again.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Relaxed);
        self.notify();
    }

    /// Whether any were, since this was asked last.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost.swap(false, Relaxed)
    }

    /// The control thread goes on.
    pub(crate) fn turn(&self) {
        self.turned.store(self.clock.now().0, Relaxed);
    }

    /// When it did last.
    pub(crate) fn turned(&self) -> Time {
        Time(self.turned.load(Relaxed))
    }
}
