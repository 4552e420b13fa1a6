//! One flow of small numbered datagrams at a fixed rate.

use super::datagrams::{Count, Datagrams};
use super::{LOOK, Progress, enlarge, failed, panicked};
use linkbraid_api::Error;
use linkbraid_lab::Host;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Datagrams leave in bursts, one each such time: a timer for each alone would keep a core busy.
const BURST: Duration = Duration::from_millis(1);
/// Payload bytes of a datagram: its number, and as much again as a small datagram has.
const BYTES: usize = 64;
/// A sender that is this late, because the machine had no time for it, does not catch up: that would be a flood.
const LATE: Duration = Duration::from_millis(5);
/// How long the receiver listens on after the last datagram was sent.
const LINGER: Duration = Duration::from_millis(300);

/// A flow that runs until it is stopped.
#[derive(Debug)]
pub struct UdpFlow {
    zero: Instant,
    per_burst: u64,
    sent_all: Arc<AtomicBool>,
    heard_all: Arc<AtomicBool>,
    sender: Option<JoinHandle<Sent>>,
    receiver: Option<JoinHandle<io::Result<(Progress, Datagrams)>>>,
}

/// What was sent.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// When each burst left.
    bursts: Vec<Duration>,
    /// Datagrams that the kernel did not take.
    pub refused: u64,
    /// Time that the sender was late, and did not make up for.
    slipped: Duration,
}

/// What a flow came to.
#[derive(Debug)]
pub struct UdpRecord {
    /// Its zero of time.
    pub zero: Instant,
    /// Datagrams at the receiver, copies too.
    pub progress: Progress,
    /// Datagrams that the sender's kernel did not take; they count as lost.
    pub refused: u64,
    /// Time that the sender was late, and did not make up for: the machine is too slow for the rate.
    pub slipped: Duration,
    per_burst: u64,
    bursts: Vec<Duration>,
    datagrams: Datagrams,
}

impl UdpFlow {
    /// Starts to send this many datagrams a second, a multiple of 1,000.
    pub fn start(from: Host<'_>, to: Host<'_>, per_second: u32) -> Result<Self, Error> {
        let receiver = to.run(|| UdpSocket::bind((to.ipv4(), 0)))?.map_err(|e| failed(to, "listen", &e))?;
        let address = receiver.local_addr().map_err(|e| failed(to, "listen", &e))?;
        let sender = from.run(|| {
            let socket = UdpSocket::bind((from.ipv4(), 0))?;
            socket.connect(address)?;
            Ok::<_, io::Error>(socket)
        })?;
        let sender = sender.map_err(|e| failed(from, &format!("send to {address}"), &e))?;
        enlarge(&receiver).map_err(|e| failed(to, "listen", &e))?;
        enlarge(&sender).map_err(|e| failed(from, "send", &e))?;
        receiver.set_read_timeout(Some(LOOK)).map_err(|e| failed(to, "listen", &e))?;
        let (zero, per_burst) = (Instant::now(), u64::from(per_second / 1000).max(1));
        let (sent_all, heard_all) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (send_over, receive_over) = (Arc::clone(&sent_all), Arc::clone(&heard_all));
        Ok(Self {
            zero,
            per_burst,
            sent_all,
            heard_all,
            sender: Some(std::thread::spawn(move || {
                send(&sender, zero, per_burst, |_| send_over.load(Ordering::Acquire))
            })),
            receiver: Some(std::thread::spawn(move || receive(&receiver, zero, &receive_over))),
        })
    }

    /// Ends it, once what is under way has arrived.
    pub fn stop(mut self) -> Result<UdpRecord, Error> {
        self.sent_all.store(true, Ordering::Release);
        let sent = self.sender.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let deadline = Instant::now() + LINGER;
        // Reaching the time is the point.
        let _ =
            linkbraid_lab::wait_until(LINGER, "late datagrams", || Instant::now() >= deadline, |due| *due);
        self.heard_all.store(true, Ordering::Release);
        let heard =
            self.receiver.take().and_then(|thread| thread.join().ok()).unwrap_or_else(|| Err(panicked()));
        let (progress, datagrams) =
            heard.map_err(|e| Error::new("udp flow", "the receiver failed", e.to_string()))?;
        Ok(UdpRecord {
            zero: self.zero,
            progress,
            refused: sent.refused,
            slipped: sent.slipped,
            per_burst: self.per_burst,
            bursts: sent.bursts,
            datagrams,
        })
    }
}

impl Drop for UdpFlow {
    fn drop(&mut self) {
        // Its threads end by themselves; nobody waits for them.
        self.sent_all.store(true, Ordering::Release);
        self.heard_all.store(true, Ordering::Release);
    }
}

impl UdpRecord {
    /// What became of the datagrams that were sent from one time up to another, that one left out.
    pub fn sent_between(&self, from: Duration, to: Duration) -> Count {
        self.datagrams.count(self.numbers(from, to))
    }

    /// When the last datagram was sent of those that were sent between two times and never arrived.
    pub fn last_lost(&self, from: Duration, to: Duration) -> Option<Duration> {
        let number = self.datagrams.last_lost(self.numbers(from, to))?;
        let burst = usize::try_from(number / self.per_burst).ok()?;
        self.bursts.get(burst).copied()
    }

    /// The longest time between two bursts of the sender: a gap at the receiver that is no longer is the sender's.
    pub fn sender_gap(&self, from: Duration, to: Duration) -> Duration {
        let inside = self.bursts.windows(2).filter(|pair| pair[1] >= from && pair[0] < to);
        inside.map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or_default()
    }

    fn numbers(&self, from: Duration, to: Duration) -> Range<u64> {
        let number = |time| self.bursts.partition_point(|at| *at < time) as u64 * self.per_burst;
        number(from)..number(to).max(number(from))
    }

    /// Datagrams sent in a second, from the first to the last.
    pub fn per_second(&self) -> f64 {
        let seconds = self.bursts.last().map_or(0.0, Duration::as_secs_f64);
        (self.bursts.len() as u64 * self.per_burst) as f64 / seconds.max(1e-9)
    }
}

/// Sends numbered datagrams in bursts to where the socket is connected, until `over` of the bursts so far.
pub(crate) fn send(socket: &UdpSocket, zero: Instant, per_burst: u64, over: impl Fn(usize) -> bool) -> Sent {
    let mut sent = Sent::default();
    let mut payload = [0; BYTES];
    let mut due = zero;
    while !over(sent.bursts.len()) {
        let now = Instant::now();
        if let Some(wait) = due.checked_duration_since(now) {
            std::thread::sleep(wait);
        } else if now - due > LATE {
            sent.slipped += now - due;
            due = now;
        }
        due += BURST;
        let first = sent.bursts.len() as u64 * per_burst;
        sent.bursts.push(zero.elapsed());
        for number in first..first + per_burst {
            payload[..8].copy_from_slice(&number.to_be_bytes());
            // An error here may be that of an earlier datagram; either way this one may be lost, and is counted so.
            sent.refused += u64::from(socket.send(&payload).is_err());
        }
    }
    sent
}

/// Receives until it is over and nothing is left; the socket's time-out is how soon that is seen.
pub(crate) fn receive(
    socket: &UdpSocket,
    zero: Instant,
    over: &AtomicBool,
) -> io::Result<(Progress, Datagrams)> {
    let (mut progress, mut datagrams) = (Progress::default(), Datagrams::default());
    let mut payload = [0; BYTES];
    loop {
        let was_over = over.load(Ordering::Acquire);
        match socket.recv(&mut payload) {
            Ok(bytes) if bytes >= 8 => {
                progress.add(zero.elapsed(), 1);
                let number = payload.first_chunk().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
                datagrams.arrived(number);
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if was_over {
                    return Ok((progress, datagrams));
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
