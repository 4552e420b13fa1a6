//! Frames over one lane, past the bond: from one member's interface to one MAC, counted where they arrive.

use crate::{limits, socket};
use linkbraid_wire::MacAddr;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socket as open, sockopt::RcvBuf,
};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The first EtherType for local experiments (IEEE 802).
const ETHERTYPE: u16 = 0x88b5;
/// Ethernet header.
const HEADER: usize = 14;
/// What tells the frames of one burst from all others.
const TOKEN: std::ops::Range<usize> = HEADER..HEADER + 8;
/// Of each frame, what is read.
const READ: usize = 64;
/// Frames that wait to be counted, in bytes.
const BUFFER: usize = 8 << 20;
/// How long one wait for frames lasts.
const TURN_MS: u8 = 20;

/// What arrived of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Heard {
    /// Frames.
    pub frames: u64,
    /// Their bytes, with Ethernet headers.
    pub bytes: u64,
    /// From the first to the last, in microseconds.
    pub micros: u64,
    /// When the first one came, by this host's clock that never jumps, in microseconds; none: nothing came, or that host does not say.
    #[serde(default)]
    pub first_us: Option<u64>,
}

impl Heard {
    /// The rate, in Mbit/s; 0 where too little has come to tell.
    pub fn mbit(&self) -> f64 {
        match (self.frames, self.micros) {
            (0 | 1, _) | (_, 0) => 0.0,
            // The first one opens the span, and is not within it.
            (frames, micros) => {
                let within = self.bytes as f64 * (frames - 1) as f64 / frames as f64;
                within * 8.0 / micros as f64
            }
        }
    }
}

/// Counts the frames of one burst that arrive on an interface.
#[derive(Debug)]
pub struct Counter {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Heard>>>,
}

impl Counter {
    /// From now on.
    pub fn start(interface: &str, token: u64) -> io::Result<Self> {
        let (socket, index) = packet_socket(interface)?;
        socket::hear_on(&socket, index, ETHERTYPE)?;
        // As much as the host allows.
        let _ = setsockopt(&socket, RcvBuf, &BUFFER);
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        Ok(Self { over, thread: Some(thread::spawn(move || count(&socket, token, &until))) })
    }

    /// The sender has sent all: what has come, once nothing more comes.
    pub fn end(mut self) -> io::Result<Heard> {
        self.over.store(true, Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(Heard::default()) };
        thread.join().map_err(|_| io::Error::other("the counting thread has panicked"))?
    }
}

/// Whoever is not asked what has come ends, too.
impl Drop for Counter {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
    }
}

fn packet_socket(interface: &str) -> io::Result<(OwnedFd, u32)> {
    let index = nix::net::if_::if_nametoindex(interface)?;
    Ok((open(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?, index))
}

fn count(socket: &OwnedFd, token: u64, over: &AtomicBool) -> io::Result<Heard> {
    let (mut heard, mut first, mut last) = (Heard::default(), None, Instant::now());
    let (mut frame, mut end) = ([0; READ], None);
    loop {
        if over.load(Relaxed) {
            // Others may send what looks like the burst for ever.
            let end = *end.get_or_insert_with(|| Instant::now() + limits::BURST_MAX);
            if last.elapsed() > limits::BURST_QUIET || Instant::now() > end {
                break;
            }
        }
        let mut ready = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, PollTimeout::from(TURN_MS))? == 0 {
            continue;
        }
        // With this flag the kernel tells how long the frame was, whatever finds room.
        let bytes = recv(socket.as_raw_fd(), &mut frame, MsgFlags::MSG_TRUNC)?;
        if bytes < TOKEN.end || frame[TOKEN] != token.to_be_bytes() {
            continue;
        }
        last = Instant::now();
        if first.is_none() {
            heard.first_us = Some(clock_us()?);
        }
        let began = *first.get_or_insert(last);
        heard.frames += 1;
        heard.bytes += bytes as u64;
        heard.micros = u64::try_from(last.duration_since(began).as_micros()).unwrap_or(u64::MAX);
    }
    Ok(with_dropped(heard, dropped(socket)))
}

/// What the socket had no room for has arrived all the same.
fn with_dropped(heard: Heard, dropped: u64) -> Heard {
    let each = heard.bytes.checked_div(heard.frames).unwrap_or(0);
    let dropped = if each == 0 { 0 } else { dropped };
    Heard { frames: heard.frames + dropped, bytes: heard.bytes + dropped * each, ..heard }
}

/// Frames that found no room (`PACKET_STATISTICS` of packet(7)).
fn dropped(socket: &OwnedFd) -> u64 {
    const PACKET_STATISTICS: i32 = 6;
    let statistics = socket::option::<8>(socket, libc::SOL_PACKET, PACKET_STATISTICS).unwrap_or_default();
    let [_, _, _, _, drops @ ..] = statistics;
    u64::from(u32::from_ne_bytes(drops))
}

/// What left of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sent {
    /// Frames that the interface took.
    pub frames: u64,
    /// The part of the time in which the sending thread worked, 0 to 1: it did not wait for the link then.
    pub busy: f64,
    /// When the first one left, by the clock of the host that sent it that never jumps, in microseconds; none: that host does not say.
    #[serde(default)]
    pub first_us: Option<u64>,
}

/// Sends frames as long as the MTU out of an interface to a MAC.
pub fn blast(
    interface: &str,
    from: MacAddr,
    to: MacAddr,
    mtu: u32,
    token: u64,
    lasts: Duration,
) -> io::Result<Sent> {
    let (socket, index) = packet_socket(interface)?;
    socket::send_by(&socket, index)?;
    let mut frame = vec![0; HEADER + mtu as usize];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..HEADER].copy_from_slice(&ETHERTYPE.to_be_bytes());
    frame[TOKEN].copy_from_slice(&token.to_be_bytes());
    let (began, worked, mut frames) = (Instant::now(), thread_time()?, 0);
    let first_us = Some(clock_us()?);
    let most = limits::BURST_BYTES_MAX / frame.len() as u64;
    while began.elapsed() < lasts.min(limits::BURST_MAX) && frames < most {
        // It waits while the interface has a buffer's worth of them.
        match send(socket.as_raw_fd(), &frame, MsgFlags::empty()) {
            Ok(_) => frames += 1,
            Err(nix::errno::Errno::ENOBUFS | nix::errno::Errno::EINTR) => thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
    }
    let busy = thread_time()?.saturating_sub(worked).as_secs_f64() / began.elapsed().as_secs_f64().max(1e-9);
    Ok(Sent { frames, busy: busy.min(1.0), first_us })
}

/// The clock that never jumps, in microseconds.
fn clock_us() -> io::Result<u64> {
    let now: Duration = clock_gettime(ClockId::CLOCK_MONOTONIC)?.into();
    Ok(u64::try_from(now.as_micros()).unwrap_or(u64::MAX))
}

/// What this thread has worked.
fn thread_time() -> io::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_that_between_the_first_frame_and_the_last() {
        let heard = Heard { frames: 101, bytes: 101 * 1250, micros: 10_000, first_us: None };
        assert!((heard.mbit() - 100.0).abs() < 1e-9, "{}", heard.mbit());
        assert_eq!(Heard { frames: 1, bytes: 1250, ..Heard::default() }.mbit(), 0.0);
        assert_eq!(Heard::default().mbit(), 0.0);
    }

    #[test]
    fn what_found_no_room_has_arrived() {
        let heard = Heard { frames: 10, bytes: 15_140, micros: 100, first_us: Some(7) };
        assert_eq!(with_dropped(heard, 5), Heard { frames: 15, bytes: 22_710, ..heard });
        assert_eq!(with_dropped(Heard::default(), 5), Heard::default(), "of what is not known");
    }
}
