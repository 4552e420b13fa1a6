//! Numbered datagrams at a fixed pace, from one host to another, from each to each, or from one to all: what came when,
//! what came twice or late, and what never came.

use super::{LOOK, Progress, Task, enlarge, is_wait};
use crate::{Host, wait_until};
use linkbraid_api::Error;
use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The port of all hosts of a mesh.
const PORT: u16 = 7777;
/// Payload bytes of a datagram: its number, who sent it, and as much again as a small datagram has.
const BYTES: usize = 64;
/// The same at most.
const BYTES_MAX: usize = 1472;
/// Datagrams of a flow leave in bursts, one each such time: a timer for each alone would keep a core busy.
const BURST: Duration = Duration::from_millis(1);
/// A sender that is this late, because the machine had no time for it, does not catch up: that would be a flood.
const LATE: Duration = Duration::from_millis(5);
/// How long receivers listen on after the last datagram was sent, for copies that are still on their way; and then as long again
/// for what has not come: it may wait for a processor.
const LINGER: Duration = Duration::from_millis(500);
/// The most datagrams of a sender, which bounds the memory: ten minutes of 50,000 a second.
const NUMBERS_MAX: u64 = 30_000_000;

/// How each sender sends.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Datagrams sent at once.
    pub burst: u64,
    /// From one burst to the next.
    pub period: Duration,
    /// Datagrams in all; none are sent after them.
    pub last: u64,
    /// Payload bytes of each, 64 to 1472.
    pub bytes: usize,
}

impl Pace {
    /// Small datagrams, so many at once, until they are stopped.
    pub fn new(burst: u64, period: Duration) -> Self {
        Self { burst, period, last: NUMBERS_MAX, bytes: BYTES }
    }
}

/// A socket that receives, and sends to whoever is named: the receiver's place, and an address, if the socket is not connected
/// to it.
#[derive(Debug)]
pub struct End {
    socket: UdpSocket,
    to: Vec<(usize, Option<SocketAddr>)>,
}

impl End {
    /// A socket that was made inside a host, ready for datagrams.
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        enlarge(&socket)?;
        socket.set_read_timeout(Some(LOOK))?;
        Ok(Self { socket, to: Vec::new() })
    }

    /// A socket at an address of a host.
    fn at(host: Host<'_>, address: &str, port: u16) -> Result<Self, Error> {
        host.make("listen", || Self::new(UdpSocket::bind((address, port))?))
    }

    /// The same, sending to one address alone.
    pub fn to(self, receiver: usize, address: SocketAddr) -> io::Result<Self> {
        self.socket.connect(address)?;
        Ok(Self { to: vec![(receiver, None)], ..self })
    }
}

/// What all threads share. Datagrams of a sender are numbered from 0; each number goes to all it sends to.
#[derive(Debug)]
struct Shared {
    zero: Instant,
    pace: Pace,
    /// By sender: how many it has begun to send.
    begun: Vec<AtomicU64>,
    sent: Vec<Mutex<Sent>>,
    heard: Vec<Mutex<Heard>>,
}

/// Datagrams that are sent until they are stopped.
#[derive(Debug)]
pub struct Datagrams {
    /// The zero of all times.
    pub zero: Instant,
    shared: Arc<Shared>,
    senders: Vec<Task<()>>,
    receivers: Vec<Task<()>>,
}

/// What one sender sent.
#[derive(Debug, Default)]
struct Sent {
    /// When each burst left.
    bursts: Vec<Duration>,
    /// Numbers and receivers that the kernel did not take; they were never under way.
    refused: BTreeSet<(u64, usize)>,
    /// Time that the sender was late, and did not make up for.
    slipped: Duration,
}

/// What one receiver heard.
#[derive(Debug, Default)]
struct Heard {
    /// All datagrams, copies too.
    progress: Progress,
    /// By sender, then by number.
    from: Vec<Arrivals>,
}

/// Datagrams of one sender, by number.
#[derive(Debug, Clone, Default)]
struct Arrivals {
    all: Vec<Arrival>,
    /// How many of them came at least once.
    different: u64,
}

/// One datagram at one receiver.
#[derive(Debug, Clone, Copy, Default)]
struct Arrival {
    /// When it came first.
    at: Option<Duration>,
    /// How often it came.
    times: u32,
    /// Whether it came after one with a higher number.
    late: bool,
}

/// What all of them came to.
#[derive(Debug)]
pub struct DatagramRecord {
    /// The zero of all times.
    pub zero: Instant,
    burst: u64,
    sent: Vec<Sent>,
    heard: Vec<Heard>,
}

/// What became of what one sent another.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// All that the receiver got.
    pub progress: &'a Progress,
    burst: u64,
    to: usize,
    sent: &'a Sent,
    came: &'a Arrivals,
}

/// What became of some of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Those that left, or were to.
    pub sent: u64,
    /// Of these, never arrived.
    pub lost: u64,
    /// Of these, not taken by the sender's kernel.
    pub refused: u64,
    /// Arrived more than once.
    pub duplicated: u64,
    /// Arrived after one that was sent later.
    pub reordered: u64,
}

impl Datagrams {
    /// From one host to another, this many a second, a multiple of 1,000.
    pub fn flow(from: Host<'_>, to: Host<'_>, per_second: u32) -> Result<Self, Error> {
        let burst = u64::from(per_second / 1000).max(1);
        Self::between([(from, from.ipv4()), (to, to.ipv4())], Pace::new(burst, BURST))
    }

    /// From the first host to the second, under addresses that they have.
    pub fn between([(from, near), (to, far)]: [(Host<'_>, &str); 2], pace: Pace) -> Result<Self, Error> {
        let receiver = End::at(to, far, 0)?;
        let address = receiver.socket.local_addr();
        let address = to.make("listen", || address)?;
        let sender = End::at(from, near, 0)?;
        let sender = from.make(&format!("send to {address}"), || sender.to(1, address))?;
        Ok(Self::start(vec![sender, receiver], pace))
    }

    /// From each of these hosts, at these addresses, to each other one: a datagram each `period`.
    pub fn mesh(hosts: &[(Host<'_>, String)], period: Duration) -> Result<Self, Error> {
        let mut ends = Vec::new();
        for (host, address) in hosts {
            ends.push(End::at(*host, address, PORT)?);
        }
        let addresses: Vec<_> = ends.iter().flat_map(|end| end.socket.local_addr()).collect();
        for (own, end) in ends.iter_mut().enumerate() {
            end.to =
                addresses.iter().copied().map(Some).enumerate().filter(|(other, _)| *other != own).collect();
        }
        Ok(Self::start(ends, Pace::new(1, period)))
    }

    /// Starts to send.
    pub fn start(ends: Vec<End>, mut pace: Pace) -> Self {
        pace.bytes = pace.bytes.clamp(BYTES, BYTES_MAX);
        let zero = Instant::now();
        let heard = || Heard { progress: Progress::default(), from: vec![Arrivals::default(); ends.len()] };
        let shared = Arc::new(Shared {
            zero,
            pace,
            begun: ends.iter().map(|_| AtomicU64::new(0)).collect(),
            sent: ends.iter().map(|_| Mutex::default()).collect(),
            heard: ends.iter().map(|_| Mutex::new(heard())).collect(),
        });
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for (own, End { socket, to }) in ends.into_iter().enumerate() {
            let (socket, all) = (Arc::new(socket), Arc::clone(&shared));
            let (sending, its) = (Arc::clone(&socket), Arc::clone(&shared));
            receivers.push(Task::start(move |over| all.receive(own, &socket, over)));
            senders.push(Task::start(move |over| its.send(own, &sending, &to, over)));
        }
        Self { zero, shared, senders, receivers }
    }

    /// Time since it began.
    pub fn now(&self) -> Duration {
        self.zero.elapsed()
    }

    /// How many each has sent so far.
    pub fn mark(&self) -> Vec<u64> {
        self.shared.begun.iter().map(|begun| begun.load(Ordering::Acquire)).collect()
    }

    /// How many datagrams one has received so far, copies too.
    pub fn received(&self, to: usize) -> u64 {
        lock(&self.shared.heard[to]).progress.total()
    }

    /// How many of these numbers of one that another has not received so far, and that were not refused.
    pub fn missing(&self, from: usize, to: usize, numbers: Range<u64>) -> u64 {
        let (heard, sent) = (lock(&self.shared.heard[to]), lock(&self.shared.sent[from]));
        let is_missing =
            |number: &u64| heard.from[from].get(*number).times == 0 && !sent.refused.contains(&(*number, to));
        numbers.filter(is_missing).count() as u64
    }

    /// Waits until each pair that `wanted` holds for, as sender and receiver, has exchanged a datagram that was sent after
    /// a mark; when it was seen.
    pub fn wait_fresh(
        &self,
        before: &[u64],
        limit: Duration,
        wanted: impl Fn(usize, usize) -> bool,
    ) -> Result<Duration, Error> {
        // One more than the highest number that came.
        let heard = |from: usize, to: usize| lock(&self.shared.heard[to]).from[from].all.len() as u64;
        let missing = || {
            let pairs = (0..before.len()).flat_map(|from| (0..before.len()).map(move |to| (from, to)));
            let pairs = pairs.filter(|(from, to)| from != to && wanted(*from, *to));
            pairs.filter(|(from, to)| heard(*from, *to) <= before[*from]).collect::<Vec<_>>()
        };
        wait_until(limit, "hosts to hear each other", missing, Vec::is_empty)?;
        Ok(self.now())
    }

    /// Ends it, once what is under way has arrived.
    pub fn stop(self) -> Result<DatagramRecord, Error> {
        let Self { zero, shared, senders, receivers } = self;
        let failed = |e: io::Error| Error::new("datagrams", "a host failed", e.to_string());
        senders.into_iter().try_for_each(Task::join).map_err(failed)?;
        std::thread::sleep(LINGER);
        // What is lost does not come.
        let _ = wait_until(LINGER, "all datagrams", || shared.is_complete(), |complete| *complete);
        receivers.iter().for_each(Task::end);
        receivers.into_iter().try_for_each(Task::join).map_err(failed)?;
        let sent = shared.sent.iter().map(|sent| std::mem::take(&mut *lock(sent))).collect();
        let heard = shared.heard.iter().map(|heard| std::mem::take(&mut *lock(heard))).collect();
        Ok(DatagramRecord { zero, burst: shared.pace.burst, sent, heard })
    }
}

impl Shared {
    fn send(&self, own: usize, socket: &UdpSocket, to: &[(usize, Option<SocketAddr>)], over: &AtomicBool) {
        let mut payload = vec![0x5a; self.pace.bytes];
        payload[8..16].copy_from_slice(&(own as u64).to_be_bytes());
        let (mut due, mut first) = (self.zero, 0);
        while !to.is_empty() && first < self.pace.last && !over.load(Ordering::Acquire) {
            let now = Instant::now();
            if let Some(wait) = due.checked_duration_since(now) {
                std::thread::sleep(wait);
            } else if now - due > LATE {
                lock(&self.sent[own]).slipped += now - due;
                due = now;
            }
            due += self.pace.period;
            let next = first + self.pace.burst;
            lock(&self.sent[own]).bursts.push(self.zero.elapsed());
            self.begun[own].store(next, Ordering::Release);
            for number in first..next {
                payload[..8].copy_from_slice(&number.to_be_bytes());
                for (receiver, address) in to {
                    let taken = match address {
                        Some(address) => socket.send_to(&payload, address),
                        None => socket.send(&payload),
                    };
                    if taken.is_err() {
                        lock(&self.sent[own]).refused.insert((number, *receiver));
                    }
                }
            }
            first = next;
        }
    }

    /// Whether whoever has received something of a sender has received all of it.
    fn is_complete(&self) -> bool {
        self.sent.iter().enumerate().all(|(from, sent)| {
            let (sent, begun) = (lock(sent), self.begun[from].load(Ordering::Acquire));
            self.heard.iter().map(lock).enumerate().all(|(to, heard)| {
                let refused = sent.refused.iter().filter(|(_, receiver)| *receiver == to).count();
                let came = heard.from[from].different;
                came == 0 || came + refused as u64 >= begun
            })
        })
    }

    /// Receives until it is over and nothing is left; the socket's time-out is how soon that is seen.
    fn receive(&self, own: usize, socket: &UdpSocket, over: &AtomicBool) {
        let mut payload = [0; BYTES_MAX];
        loop {
            let was_over = over.load(Ordering::Acquire);
            let length = match socket.recv(&mut payload) {
                Ok(length) => length,
                Err(error) if was_over && is_wait(&error) => return,
                // One that is reported here is that of an earlier datagram.
                Err(_) => continue,
            };
            let word = |at: usize| payload[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            let (number, from) = (word(0), usize::try_from(word(8)).unwrap_or(usize::MAX));
            let begun = self.begun.get(from).map_or(0, |begun| begun.load(Ordering::Acquire));
            // What nobody has sent is none of ours.
            if length == self.pace.bytes && number < begun {
                let now = self.zero.elapsed();
                let mut heard = lock(&self.heard[own]);
                heard.progress.add(now, 1);
                heard.from[from].add(number, now);
            }
        }
    }
}

/// What a thread that panicked left is as good as before.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Arrivals {
    fn add(&mut self, number: u64, at: Duration) {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let late = index < self.all.len();
        if !late {
            self.all.resize(index + 1, Arrival::default());
        }
        let arrival = &mut self.all[index];
        arrival.late |= late && arrival.times == 0;
        self.different += u64::from(arrival.times == 0);
        arrival.times = arrival.times.saturating_add(1);
        arrival.at.get_or_insert(at);
    }

    fn get(&self, number: u64) -> Arrival {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        self.all.get(index).copied().unwrap_or_default()
    }
}

impl DatagramRecord {
    /// What one sent another, by their places.
    pub fn way(&self, from: usize, to: usize) -> Way<'_> {
        let heard = &self.heard[to];
        let (sent, came) = (&self.sent[from], &heard.from[from]);
        Way { progress: &heard.progress, burst: self.burst, to, sent, came }
    }

    /// The longest time that a sender had no processor: they send all the time.
    pub fn longest_stall(&self) -> Duration {
        self.sent.iter().map(|sent| sent.gap(Duration::ZERO..Duration::MAX)).max().unwrap_or_default()
    }

    /// Datagrams that came again, between whichever hosts.
    pub fn twice(&self) -> u64 {
        let all = self.heard.iter().flat_map(|heard| &heard.from).flat_map(|came| &came.all);
        all.map(|arrival| u64::from(arrival.times.saturating_sub(1))).sum()
    }

    /// Datagrams between two hosts, either way, that left before one time and came after another.
    pub fn straddling(&self, pair: [usize; 2], left_before: Duration, came_after: Duration) -> u64 {
        let old = |(_, left, came): &(u64, Duration, Arrival)| {
            *left < left_before && came.at.is_some_and(|at| at > came_after)
        };
        let count = |[from, to]: [usize; 2]| self.way(from, to).all().filter(old).count() as u64;
        count(pair) + count([pair[1], pair[0]])
    }
}

impl Sent {
    /// The longest time between two bursts that is at least in part inside a time.
    fn gap(&self, window: Range<Duration>) -> Duration {
        let inside = self.bursts.windows(2).filter(|pair| pair[1] >= window.start && pair[0] < window.end);
        inside.map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or_default()
    }
}

impl<'a> Way<'a> {
    /// Each number, when it left, and how it came.
    fn all(self) -> impl Iterator<Item = (u64, Duration, Arrival)> + 'a {
        let bursts = (0..).zip(&self.sent.bursts);
        let numbers = bursts.flat_map(move |(burst, left)| {
            (burst * self.burst..(burst + 1) * self.burst).map(|number| (number, *left))
        });
        numbers.map(|(number, left)| (number, left, self.came.get(number)))
    }

    fn is_refused(self, number: u64) -> bool {
        self.sent.refused.contains(&(number, self.to))
    }

    /// What became of those that left at times that `counts` holds for.
    pub fn count(self, counts: impl Fn(Duration) -> bool) -> Count {
        let mut count = Count::default();
        for (number, _, came) in self.all().filter(|(_, left, _)| counts(*left)) {
            count.sent += 1;
            count.lost += u64::from(came.times == 0);
            count.refused += u64::from(self.is_refused(number));
            count.duplicated += u64::from(came.times > 1);
            count.reordered += u64::from(came.late);
        }
        count
    }

    /// What became of those that left inside a time.
    pub fn between(self, window: Range<Duration>) -> Count {
        self.count(|left| window.contains(&left))
    }

    /// When those left, of which `counts` holds, that never came; with those that the kernel refused, or without.
    pub fn lost(self, refused: bool, counts: impl Fn(Duration) -> bool) -> impl Iterator<Item = Duration> {
        let lost = self.all().filter(move |(number, left, came)| {
            came.times == 0 && counts(*left) && (refused || !self.is_refused(*number))
        });
        lost.map(|(_, left, _)| left)
    }

    /// When the first datagram came that left at this time or later.
    pub fn first(self, left_from: Duration) -> Option<Duration> {
        self.all().filter(|(_, left, _)| *left >= left_from).filter_map(|(.., came)| came.at).min()
    }

    /// By how much the later ones were slower than the fastest one, of those that left inside a time (RFC 5481, packet delay variation).
    pub fn variations(self, window: Range<Duration>) -> Vec<Duration> {
        let inside = self.all().filter(|(_, left, _)| window.contains(left));
        let delays: Vec<_> =
            inside.filter_map(|(_, left, came)| Some(came.at?.saturating_sub(left))).collect();
        let least = delays.iter().min().copied().unwrap_or_default();
        delays.into_iter().map(|delay| delay - least).collect()
    }

    /// The longest time between two bursts of the sender: a gap at the receiver that is no longer is the sender's.
    pub fn sender_gap(self, window: Range<Duration>) -> Duration {
        self.sent.gap(window)
    }

    /// Time that the sender was late, and did not make up for: the machine is too slow for the pace.
    pub fn slipped(self) -> Duration {
        self.sent.slipped
    }

    /// Datagrams sent in a second, from the first to the last.
    pub fn per_second(self) -> f64 {
        let seconds = self.sent.bursts.last().map_or(0.0, Duration::as_secs_f64);
        (self.sent.bursts.len() as u64 * self.burst) as f64 / seconds.max(1e-9)
    }
}

#[cfg(test)]
mod tests;
