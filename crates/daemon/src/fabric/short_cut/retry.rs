//! Makes the short cut, and makes it again from time to time where it could not be had or was taken away: somebody may have given
//! the port up.

use super::{Off, On, on};
use crate::fabric::saved::SavedFabric;
use linkbraid_dataplane::HookChoice;
use linkbraid_fabric::ShortCut as Plan;
use linkbraid_proto::Time;
use std::{
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread::{Builder, JoinHandle},
    time::Duration,
};

/// Time between two attempts.
const EVERY: Duration = Duration::from_secs(5);

/// What it is to be.
#[derive(Clone)]
pub(super) struct Wanted {
    pub saved: SavedFabric,
    pub plan: Plan,
    /// The index of the fabric's interface.
    pub tap: u32,
    pub hook: HookChoice,
}

/// Attempts, one at a time, each on a thread of its own: the kernel takes its time, and the session has none.
pub(super) struct Retry {
    wanted: Wanted,
    /// When to try next; nothing before the first look.
    at: Option<Time>,
    under_way: Option<Attempt>,
}

struct Attempt {
    /// None once it is given up: what comes of the attempt is then undone by its own thread.
    result: Option<Receiver<Result<On, Off>>>,
    thread: Option<JoinHandle<()>>,
}

impl Retry {
    /// Tries at once; what came of it.
    pub(super) fn first(wanted: Wanted) -> (Result<On, Off>, Self) {
        (wanted.make(), Self { wanted, at: None, under_way: None })
    }

    /// Says what has come of an attempt, if one is over, and begins the next one when it is time.
    pub(super) fn look(&mut self, now: Time) -> Option<Result<On, Off>> {
        let at = *self.at.get_or_insert(now + EVERY);
        let Some(attempt) = &self.under_way else {
            if at <= now {
                self.at = Some(now + EVERY);
                self.under_way = Attempt::begin(&self.wanted);
            }
            return None;
        };
        let result = match attempt.result.as_ref()?.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err("a thread failed".into()),
        };
        (self.at, self.under_way) = (None, None);
        Some(result)
    }

    /// The interface is another one.
    pub(super) fn follow(&mut self, saved: &SavedFabric) {
        self.wanted.saved = saved.clone();
    }
}

impl Wanted {
    fn make(&self) -> Result<On, Off> {
        on(&self.saved, self.plan.clone(), self.tap, self.hook)
    }
}

impl Attempt {
    /// None where there are no threads to be had.
    fn begin(wanted: &Wanted) -> Option<Self> {
        let (tell, result) = channel();
        let wanted = wanted.clone();
        let thread = Builder::new().name("lb-vxlan".into()).spawn(move || {
            // What nobody wants any more is dropped here, and so removed.
            let _ = tell.send(wanted.make());
        });
        Some(Self { result: Some(result), thread: Some(thread.ok()?) })
    }
}

impl Drop for Attempt {
    /// Waits: when the fabric has ended nothing of it may come to be.
    fn drop(&mut self) {
        self.result = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
