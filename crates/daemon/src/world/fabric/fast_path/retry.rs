//! Makes the fast path, and makes it again from time to time where it could not be had or was taken away: somebody may have given
//! the port up.

use super::{
    device::Device,
    on::{Off, On},
};
use crate::world::fabric::saved::SavedFabric;
use linkbraid_dataplane::HookChoice;
use linkbraid_fabric::FastPath as Plan;
use linkbraid_proto::Time;
use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread::{Builder, JoinHandle},
    time::Duration,
};

/// Time until the first further attempt, and between looks at a port that is taken.
const WAIT_MIN: Duration = Duration::from_secs(5);
/// Each attempt that fails doubles it up to this: one makes and removes a device, which others on the machine hear of.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// What it is to be.
#[derive(Clone)]
pub(super) struct Wanted {
    pub saved: SavedFabric,
    pub plan: Plan,
    /// Ports before this one are not tried.
    pub from: u16,
    /// The index of the fabric's interface.
    pub tap: u32,
    pub hook: HookChoice,
}

/// Attempts, one at a time, each on a thread of its own: the kernel takes its time, and the session has none.
pub(super) struct Retry {
    wanted: Wanted,
    wait: Duration,
    /// When to try next; nothing before the first look.
    at: Option<Time>,
    under_way: Option<Attempt>,
}

struct Attempt {
    result: Receiver<Result<On, Off>>,
    thread: Option<JoinHandle<()>>,
}

impl Retry {
    /// Tries at once; what came of it.
    pub(super) fn first(wanted: Wanted) -> (Result<On, Off>, Self) {
        (wanted.make(), Self { wanted, wait: WAIT_MIN, at: None, under_way: None })
    }

    /// Says what has come of an attempt, if one is over, and begins the next one when it is time.
    pub(super) fn look(&mut self, now: Time) -> Option<Result<On, Off>> {
        let at = *self.at.get_or_insert(now + self.wait);
        let Some(attempt) = &self.under_way else {
            if at > now {
                return None;
            }
            // What the kernel would say only when all is made.
            if let Err(cause) = self.wanted.port() {
                self.at = Some(now + WAIT_MIN);
                // Better one that the others do not have than none.
                self.wanted.from = self.wanted.plan.ports()[0];
                return Some(Err(cause));
            }
            self.under_way = Attempt::begin(&self.wanted);
            self.at = Some(now + self.wait);
            return None;
        };
        let result = match attempt.result.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err("a thread failed".into()),
        };
        self.wait = if result.is_ok() { WAIT_MIN } else { (2 * self.wait).min(WAIT_MAX) };
        (self.at, self.under_way) = (None, None);
        Some(result)
    }

    /// Tries at the next look, from this port on.
    pub(super) fn soon(&mut self, from: u16, now: Time) {
        self.wanted.from = from;
        self.at = Some(now);
    }

    /// The interface is another one.
    pub(super) fn follow(&mut self, saved: &SavedFabric) {
        self.wanted.saved = saved.clone();
    }
}

impl Wanted {
    fn make(&self) -> Result<On, Off> {
        // It may have the port.
        Device::clear(self.tap);
        On::make(&self.saved, (self.plan.clone(), self.port()?), self.tap, self.hook)
    }

    /// The first of the ports that nobody has. Why there is none otherwise: who has the first.
    fn port(&self) -> Result<u16, Off> {
        let mut why = None;
        let mut ports = self.plan.ports().iter().copied().skip_while(|port| *port != self.from);
        let free = ports.find(|port| {
            let cause = taken(*port);
            let is_free = cause.is_none();
            why = why.take().or(cause);
            is_free
        });
        free.ok_or_else(|| why.unwrap_or_default())
    }
}

impl Attempt {
    /// None where there are no threads to be had.
    fn begin(wanted: &Wanted) -> Option<Self> {
        let (sender, result) = channel();
        let wanted = wanted.clone();
        let thread = Builder::new().name("lb-vxlan".into()).spawn(move || {
            let _ = sender.send(wanted.make());
        });
        Some(Self { result, thread: Some(thread.ok()?) })
    }
}

/// Why there can be no VXLAN on a UDP port: a device takes it for both families, at every address.
pub(super) fn taken(port: u16) -> Option<String> {
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let refusals = any.into_iter().filter_map(|address| UdpSocket::bind((address, port)).err());
    let error = refusals.into_iter().find(|error| error.kind() == ErrorKind::AddrInUse)?;
    Some(format!("cannot make a VXLAN device: {error} (UDP port {port})"))
}

impl Drop for Attempt {
    /// Waits: when the fabric has ended nothing of it may come to be. What has, goes with the result.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
