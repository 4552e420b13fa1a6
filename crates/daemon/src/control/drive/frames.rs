//! Where the frames of a bond come from that are for the daemon.

use crate::{
    io::{clock::Clock, error::About as _},
    world::driven::Driven,
};
use linkbraid_api::Error;
use linkbraid_dataplane::ArpPlusRing;
use linkbraid_link::ArpPlusListener;
use std::{io, os::fd::AsRawFd};
use tokio::io::{Interest, unix::AsyncFd};

/// Frames taken in before anything else has its turn: anybody on the wire can send as many as he likes.
const FRAMES_AT_ONCE: usize = 64;
/// The same before a deadline, which all that waits has arrived in time for: as many short ones as fit into the ring of those who are
/// known, whose frames come first. What is left is taken for what never came.
const FRAMES_IN_TIME: usize = 2048;

/// The ring of the data path. As long as programs of another build are on the members, which know nothing of that ring, frames are
/// heard beside them.
pub(super) struct Frames {
    ring: AsyncFd<ArpPlusRing>,
    listener: Option<AsyncFd<ArpPlusListener>>,
}

impl Frames {
    /// Those of a bond.
    pub(super) fn of(driven: &Driven) -> Result<Self, Error> {
        let name = &driven.name;
        let mut ring = driven.ring()?;
        // What came while no daemon ran would be taken for news: members heard that have failed since, hosts that have left.
        let stale = ring.discard();
        if stale > 0 {
            tracing::info!(bond = name, frames = stale, "ARP+ frames from before this daemon are discarded");
        }
        let listener = driven.listens.then(ArpPlusListener::new).transpose();
        let listener = listener.about(name, "cannot listen for ARP+ frames")?;
        // SAFETY: both own their descriptors, and have the same one for as long as they live.
        let watch = unsafe { (watched(ring, name)?, listener.map(|it| watched(it, name)).transpose()?) };
        Ok(Self { ring: watch.0, listener: watch.1 })
    }

    /// Once the bond's own programs are on its members, the ring has all.
    pub(super) fn follow(&mut self, driven: &Driven) {
        if !driven.listens {
            self.listener = None;
        }
    }

    /// Ends when frames wait.
    pub(super) async fn wait(&self) -> io::Result<()> {
        match &self.listener {
            Some(listener) => tokio::select! {
                ready = self.ring.readable() => ready.map(drop),
                ready = listener.readable() => ready.map(drop),
            },
            None => self.ring.readable().await.map(drop),
        }
    }

    /// Takes in the frames that wait, as far as others can wait for their turn; whether none is left.
    pub(super) fn take(&mut self, driven: &mut Driven, clock: Clock) -> bool {
        self.take_some(driven, clock, FRAMES_AT_ONCE)
    }

    /// Takes in the frames that have arrived before a deadline that has come.
    pub(super) fn take_in_time(&mut self, driven: &mut Driven, clock: Clock) {
        self.take_some(driven, clock, FRAMES_IN_TIME);
    }

    fn take_some(&mut self, driven: &mut Driven, clock: Clock, most: usize) -> bool {
        for _ in 0..most {
            let Some(frame) = next(&mut self.ring, ArpPlusRing::next_frame) else {
                return self.hear(driven, clock, most);
            };
            driven.frame(clock.now(), frame.slot, &frame.bytes, frame.heard_again);
        }
        false
    }

    fn hear(&mut self, driven: &mut Driven, clock: Clock, most: usize) -> bool {
        let Some(listener) = &mut self.listener else { return true };
        for _ in 0..most {
            let Some((index, frame)) = next(listener, ArpPlusListener::next_frame) else { return true };
            driven.heard_frame(clock.now(), index, &frame);
        }
        false
    }
}

/// The next frame; where there is none, the end of the wait for one is taken back.
fn next<T: AsRawFd, F>(from: &mut AsyncFd<T>, mut next: impl FnMut(&mut T) -> Option<F>) -> Option<F> {
    let found = next(from.get_mut());
    let none = || io::Error::from(io::ErrorKind::WouldBlock);
    // One that came since the last look must not be waited for.
    found.or_else(|| from.try_io_mut(Interest::READABLE, |from| next(from).ok_or_else(none)).ok())
}

/// # Safety
/// It owns its descriptor, and gives the same one at every call.
unsafe fn watched<T: AsRawFd>(of: T, name: &str) -> Result<AsyncFd<T>, Error> {
    // SAFETY: so says the caller; it lives in the AsyncFd.
    let registered = unsafe { AsyncFd::register_with_interest(of, Interest::READABLE) };
    registered.map_err(io::Error::from).about(name, "cannot wait for ARP+ frames")
}
