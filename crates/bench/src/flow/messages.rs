//! Small messages at a steady pace, each sent back by the other host: the round trip of every one.
//!
//! Messages leave when they are due, whether or not earlier ones are back: a slow answer does not hide the messages that
//! would have been slow after it.

mod ends;
mod trips;

pub use trips::{Count as TripCount, Trip, Trips, ms, us};

use super::{LOOK, Task, connect, enlarge, failed, is_wait};
use linkbraid_api::Error;
use linkbraid_lab::Host;
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The least size of a message: its number.
pub const BYTES_MIN: usize = 8;
/// The largest: what one datagram holds at an MTU of 1500.
pub const BYTES_MAX: usize = 1472;
/// A sender that is this late, because the machine had no time for it, leaves the messages out that it missed.
const LATE: Duration = Duration::from_millis(20);
/// How long answers are waited for after the last message was sent: TCP may send again what a link has lost.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_TCP: Duration = Duration::from_secs(5);
/// The most messages of one flow, which bounds the memory: ten minutes of 10,000 a second.
const NUMBERS_MAX: usize = 6_000_000;
/// The priority of both ends among real-time threads; anything above an ordinary thread does.
const REAL_TIME: libc::c_int = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// One connection, without Nagle's delay.
    Tcp,
    Udp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Messages {
    pub over: Over,
    /// Payload bytes of each, [`BYTES_MIN`] to [`BYTES_MAX`].
    pub bytes: usize,
    /// From one to the next.
    pub period: Duration,
    /// `SO_PRIORITY` of both ends.
    pub priority: i32,
}

#[derive(Debug)]
pub struct MessageFlow {
    pub zero: Instant,
    /// Whether both ends run before all ordinary threads, so that waiting for a CPU is not what is measured.
    pub real_time: bool,
    client: Task<io::Result<Trips>>,
    echo: Task<io::Result<()>>,
}

impl MessageFlow {
    pub fn start(from: Host<'_>, to: Host<'_>, messages: Messages) -> Result<Self, Error> {
        let bytes = messages.bytes.clamp(BYTES_MIN, BYTES_MAX);
        let messages = Messages { bytes, ..messages };
        let (client, echo) = ends::connected(from, to, &messages)?;
        let (ready, started) = std::sync::mpsc::channel();
        let echo_ready = ready.clone();
        let zero = Instant::now();
        let echo = Task::start(move |over| {
            // Whoever started it may be gone.
            let _ = echo_ready.send(before_others());
            echo(over)
        });
        let client = Task::start(move |over| {
            let _ = ready.send(before_others());
            run(client, &messages, zero, over)
        });
        // Both threads send one word before anything else, or are gone.
        let real_time = started.iter().take(2).filter(|is| *is).count() == 2;
        Ok(Self { zero, real_time, client, echo })
    }

    /// Ends it, once all messages are back, or were given enough time.
    pub fn stop(self) -> Result<Trips, Error> {
        let trips = self.client.join().unwrap_or_else(Err);
        let echo = self.echo.join().unwrap_or_else(Err);
        let trips = trips.and_then(|trips| echo.map(|()| trips));
        trips.map_err(|e| Error::new("messages", "an end failed", e.to_string()))
    }
}

/// A socket of a host whose datagrams another host sends back, and what does that.
pub fn answered(from: Host<'_>, to: Host<'_>) -> Result<(UdpSocket, Task<io::Result<()>>), Error> {
    let (client, echo) = ends::udp(from, to, 0)?;
    Ok((client, Task::start(move |over| ends::answer(&echo, over))))
}

/// Puts the calling thread before all ordinary ones; whether it may.
fn before_others() -> bool {
    // A timer that comes 50 us late, as it may for an ordinary thread, would make bursts of messages.
    let _ = nix::sys::prctl::set_timerslack(1);
    let parameters = libc::sched_param { sched_priority: REAL_TIME };
    // SAFETY: the call reads the struct and keeps nothing of it; 0 is the calling thread. nix has no wrapper for it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}

/// The sending end: one thread, so that no other has to be woken between a message's arrival and its time.
fn run(mut client: ends::Client, messages: &Messages, zero: Instant, over: &AtomicBool) -> io::Result<Trips> {
    let mut trips = Trips::default();
    let mut payload = vec![0x5a; messages.bytes];
    let mut due = Duration::ZERO;
    let mut listen_until: Option<Duration> = None;
    loop {
        let now = zero.elapsed();
        if listen_until.is_none() && (over.load(Ordering::Acquire) || trips.sent() >= NUMBERS_MAX) {
            listen_until = Some(now + if client.is_datagrams() { LINGER } else { LINGER_TCP });
        }
        let wait = match listen_until {
            Some(until) if now >= until || trips.outstanding() == 0 => return Ok(trips),
            Some(until) => (until - now).min(LOOK),
            None if now >= due => {
                if now - due > LATE {
                    trips.slipped += now - due;
                    due = now;
                }
                due += messages.period;
                send(&mut client, &mut payload, zero, &mut trips)?;
                continue;
            }
            None => (due - now).min(LOOK),
        };
        let mut events = PollFlags::POLLIN;
        events.set(PollFlags::POLLOUT, client.wants_to_write());
        let mut polled = [PollFd::new(client.as_fd(), events)];
        match ppoll(&mut polled, Some(TimeSpec::from_duration(wait)), None) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => continue,
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        client.flush()?;
        receive(&mut client, zero, &mut trips)?;
    }
}

fn send(client: &mut ends::Client, payload: &mut [u8], zero: Instant, trips: &mut Trips) -> io::Result<()> {
    payload[..8].copy_from_slice(&(trips.sent() as u64).to_be_bytes());
    trips.leaves(zero.elapsed());
    match client.send(payload) {
        // What the kernel did not take never comes back, and counts as lost.
        Err(error) if client.is_datagrams() && error.kind() != ErrorKind::InvalidInput => {
            trips.refused += 1;
            Ok(())
        }
        done => done,
    }
}

fn receive(client: &mut ends::Client, zero: Instant, trips: &mut Trips) -> io::Result<()> {
    loop {
        match client.receive() {
            Ok(Some(number)) => trips.is_back(number, zero.elapsed()),
            Ok(None) => return Ok(()),
            // One that reports an earlier datagram's fate says nothing about the next.
            Err(_) if client.is_datagrams() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
