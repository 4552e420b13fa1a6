//! Carrier, asked for again and again.
//!
//! The kernel announces a change of an ordinary NIC's carrier at once, unless it announced another one less than a second
//! before (`linkwatch_schedule_work`, net/core/link_watch.c): a cable that is pulled right after another change would be news up
//! to a second late. So what it announces is a reason to ask at once and then often, and without any it is asked seldom.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::ioctl::Ioctl;

/// The shortest period: asking more often gains nothing and keeps others from the kernel's lock.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// The period is this many times as long while nothing has changed for [`ALERT`].
const CALM_FACTOR: u32 = 5;
/// How long it is asked often after any change: longer than the kernel may keep the next one to itself.
const ALERT: Duration = Duration::from_secs(2);
/// The pause is this many times as long as the questions before it: others need the kernel's lock, too.
const PAUSE_FACTOR: u32 = 10;
/// The longest pause for that reason: the kernel's own event comes no later.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A driver is slow if it is in each of so many rounds; one that waited for somebody else's lock, or for a processor, was
/// not.
const ROUNDS: usize = 4;
/// `ETHTOOL_GLINK` and the words of its `struct ethtool_value` (linux/ethtool.h).
const ETHTOOL_GLINK: u32 = 0x0a;
const VALUE_WORDS: usize = 2;
/// Name of the thread, at most 15 bytes.
const THREAD_NAME: &str = "lb-carrier";

/// A thread that polls the carrier of some interfaces, and reports changes.
///
/// It has a thread of its own because each question waits for the kernel's RTNL lock, which somebody else may hold
/// for long (a NIC that resets holds it for a second); nobody else here waits with it. An interface whose driver has
/// no answer, or that is not there under its name, is left alone.
///
/// Cost: asking 8 veths takes 25 us, so 8 members every 10 ms take 0.25 % of one core, and a fifth of that while nothing changes
/// (measured on a virtual machine, without optimization; the test `eight_members_cost_little` prints it). A driver that reads a
/// register of its device instead of remembering costs more, and holds the lock meanwhile (a USB NIC asks its PHY by control
/// transfers, some milliseconds each): then the pause grows to ten times as long, so that nine tenths of the time are left to
/// others. With nothing to watch the thread sleeps without waking.
#[derive(Debug)]
pub struct CarrierPoll {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    members: Vec<(u32, String)>,
    /// Counts the lists: the thread has to notice a new one, be it equal or not.
    number: u64,
    /// Somebody wants to know now.
    hurry: bool,
    stop: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, List> {
        // Nothing panics while it holds the lock, so a poisoned one is whole.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CarrierPoll {
    /// Starts the thread in the network namespace of the caller, with nothing to watch. It asks every `period` (at
    /// least 1 ms) after a change, and five times as seldom when there was none for two seconds. It calls `report` with an
    /// interface's index and its carrier, on its own thread: once for each interface that is new in the list, then for each
    /// change. An interface that is set down has no carrier.
    ///
    /// # Errors
    /// When there is no socket or no thread to be had.
    pub fn start(period: Duration, report: impl Fn(u32, bool) + Send + 'static) -> io::Result<Self> {
        let ioctl = Ioctl::open()?;
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name(THREAD_NAME.into())
            .spawn(move || poll(&seen, &ioctl, period.max(PERIOD_MIN), report))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Watches these interfaces (index and name) from now on, and no others. One that was watched before under the
    /// same index, even by another name, is not reported again. A report about an interface that is no longer in the list
    /// may still be under way.
    pub fn watch(&self, members: Vec<(u32, String)>) {
        let mut list = self.shared.lock();
        list.members = members;
        list.number += 1;
        self.shared.changed.notify_one();
    }

    /// The kernel has announced something about an interface, whichever: asks now, if the last time was a `period` ago, and often
    /// for the next two seconds.
    pub fn hurry(&self) {
        self.shared.lock().hurry = true;
        self.shared.changed.notify_one();
    }
}

impl Drop for CarrierPoll {
    /// Ends the thread and waits for it; not where `report` itself drops the poll.
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A panic of `report` was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// How long to wait after a round.
#[derive(Debug)]
struct Pace {
    period: Duration,
    /// When something changed last.
    changed: Instant,
    rounds: [Duration; ROUNDS],
    next: usize,
}

impl Pace {
    fn new(period: Duration, now: Instant) -> Self {
        Self { period, changed: now, rounds: [Duration::ZERO; ROUNDS], next: 0 }
    }

    /// The questions of a round took so long.
    fn took(&mut self, took: Duration) {
        self.rounds[self.next] = took;
        self.next = (self.next + 1) % ROUNDS;
    }

    fn pause(&self, now: Instant) -> Duration {
        let often = now.duration_since(self.changed) < ALERT;
        let period = if often { self.period } else { self.period * CALM_FACTOR };
        let shortest = self.rounds.iter().min().copied().unwrap_or_default();
        (shortest * PAUSE_FACTOR).min(PAUSE_MAX).max(period)
    }
}

fn poll(shared: &Shared, ioctl: &Ioctl, period: Duration, report: impl Fn(u32, bool)) {
    let mut members: Vec<(u32, String)> = Vec::new();
    let mut number = 0;
    let mut known: HashMap<u32, bool> = HashMap::new();
    let mut pace = Pace::new(period, Instant::now());
    loop {
        let mut took = Duration::ZERO;
        for (index, name) in &members {
            let asked = Instant::now();
            let answer = carrier(ioctl, name);
            took += asked.elapsed();
            let Some(carrier) = answer else { continue };
            if known.get(index) == Some(&carrier) {
                continue;
            }
            // Another interface may have taken over the name: its carrier is no news about this one.
            if ioctl.index_of(name) != Some(*index) {
                continue;
            }
            if shared.lock().number != number {
                break;
            }
            known.insert(*index, carrier);
            pace.changed = Instant::now();
            report(*index, carrier);
        }
        pace.took(took);
        let asked = Instant::now();
        let mut pause = pace.pause(asked);
        let mut list = shared.lock();
        while !list.stop && list.number == number {
            if members.is_empty() {
                list = shared.changed.wait(list).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if std::mem::take(&mut list.hurry) {
                pace.changed = Instant::now();
                pause = pace.pause(pace.changed);
            }
            let left = pause.saturating_sub(asked.elapsed());
            if left.is_zero() {
                break;
            }
            list = shared.changed.wait_timeout(list, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if list.stop {
            return;
        }
        if list.number != number {
            number = list.number;
            members.clone_from(&list.members);
            known.retain(|index, _| members.iter().any(|(member, _)| member == index));
        }
    }
}

/// The carrier of the interface `name`, if it exists and its driver reports one.
fn carrier(ioctl: &Ioctl, name: &str) -> Option<bool> {
    let mut words = [0u32; VALUE_WORDS];
    words[0] = ETHTOOL_GLINK;
    ioctl.ethtool(name, &mut words).ok()?;
    Some(words[1] != 0)
}

#[cfg(test)]
mod tests;
