//! Numbered datagrams from every host to every other one, all the time: who hears whom, since when, and what is lost.

use super::{enlarge, failed, panicked};
use linkbraid_api::Error;
use linkbraid_lab::{Host, wait_until};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The port of all hosts.
const PORT: u16 = 7777;
/// Payload bytes of a datagram: who sent it, its number, and as much again as a small datagram has.
const BYTES: usize = 64;
/// How long hosts listen on after the last datagram was sent.
const LINGER: Duration = Duration::from_millis(500);
/// How long a thread sleeps at most before it looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);

/// What all threads share. Datagrams of a host are numbered from 1; each number goes to all others.
#[derive(Debug)]
struct Shared {
    zero: Instant,
    period: Duration,
    addresses: Vec<SocketAddr>,
    /// The last number that each host has begun to send.
    sent: Vec<AtomicU64>,
    /// By receiver, then by sender: the highest number that came.
    heard: Vec<Vec<AtomicU64>>,
    sends: AtomicBool,
    listens: AtomicBool,
}

/// Runs until it is stopped.
#[derive(Debug)]
pub struct Mesh {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<io::Result<Station>>>,
}

/// What one host sent and heard.
#[derive(Debug, Default)]
pub struct Station {
    /// When each number left.
    pub left: Vec<Duration>,
    /// By sender, then by number from 0: when it came.
    pub came: Vec<Vec<Option<Duration>>>,
    /// By sender: datagrams that came again.
    pub again: Vec<u64>,
    /// Numbers and receivers that the kernel did not take; they were never under way.
    pub refused: Vec<(usize, usize)>,
}

/// What became of what one host sent another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// Datagrams that left.
    pub sent: u64,
    /// Of these, lost.
    pub lost: u64,
}

/// What a mesh came to.
#[derive(Debug)]
pub struct MeshRecord {
    /// The hosts, in the order given.
    pub stations: Vec<Station>,
}

impl Mesh {
    /// Starts to send between hosts with these addresses, a datagram to each other one each `period`.
    pub fn start(hosts: &[(Host<'_>, String)], period: Duration) -> Result<Self, Error> {
        let mut addresses = Vec::new();
        let mut sockets = Vec::new();
        for (host, address) in hosts {
            let ip: IpAddr =
                address.parse().map_err(|e| Error::new(address, "cannot use the address", format!("{e}")))?;
            let at = SocketAddr::new(ip, PORT);
            let socket = host.run(|| UdpSocket::bind(at))?.map_err(|e| failed(*host, "listen", &e))?;
            enlarge(&socket).map_err(|e| failed(*host, "listen", &e))?;
            socket.set_nonblocking(true).map_err(|e| failed(*host, "listen", &e))?;
            addresses.push(at);
            sockets.push(socket);
        }
        let zeros = || addresses.iter().map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let shared = Arc::new(Shared {
            zero: Instant::now(),
            period,
            sent: zeros(),
            heard: addresses.iter().map(|_| zeros()).collect(),
            addresses,
            sends: AtomicBool::new(true),
            listens: AtomicBool::new(true),
        });
        let start = |(own, socket)| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.run(own, &socket))
        };
        let threads = sockets.into_iter().enumerate().map(start).collect();
        Ok(Self { shared, threads })
    }

    /// Time since it began.
    pub fn now(&self) -> Duration {
        self.shared.zero.elapsed()
    }

    /// The last number of each host so far.
    pub fn mark(&self) -> Vec<u64> {
        self.shared.sent.iter().map(|sent| sent.load(Ordering::Acquire)).collect()
    }

    /// Waits until each pair of hosts that `wanted` holds for, as sender and receiver, has exchanged a datagram that was
    /// sent after a mark; when it was seen.
    pub fn wait_fresh(
        &self,
        before: &[u64],
        limit: Duration,
        wanted: impl Fn(usize, usize) -> bool,
    ) -> Result<Duration, Error> {
        let shared = &self.shared;
        let missing = || {
            let pairs = (0..before.len()).flat_map(|from| (0..before.len()).map(move |to| (from, to)));
            let pairs = pairs.filter(|(from, to)| from != to && wanted(*from, *to));
            pairs
                .filter(|(from, to)| shared.heard[*to][*from].load(Ordering::Acquire) <= before[*from])
                .collect::<Vec<_>>()
        };
        wait_until(limit, "hosts to hear each other", missing, Vec::is_empty)?;
        Ok(self.now())
    }

    /// Ends it, once what is under way has arrived.
    pub fn stop(mut self) -> Result<MeshRecord, Error> {
        self.shared.sends.store(false, Ordering::Release);
        let deadline = Instant::now() + LINGER;
        // Reaching the time is the point.
        let _ = wait_until(LINGER, "late datagrams", || Instant::now() >= deadline, |due| *due);
        self.shared.listens.store(false, Ordering::Release);
        let mut stations = Vec::new();
        for thread in std::mem::take(&mut self.threads) {
            let station = thread.join().unwrap_or_else(|_| Err(panicked()));
            stations.push(station.map_err(|e| Error::new("mesh", "a host failed", e.to_string()))?);
        }
        Ok(MeshRecord { stations })
    }
}

impl Shared {
    fn run(&self, own: usize, socket: &UdpSocket) -> io::Result<Station> {
        let count = self.addresses.len();
        let mut station =
            Station { came: vec![Vec::new(); count], again: vec![0; count], ..Station::default() };
        let mut due = Duration::ZERO;
        while self.listens.load(Ordering::Acquire) {
            let now = self.zero.elapsed();
            let wait = if !self.sends.load(Ordering::Acquire) {
                LOOK
            } else if now >= due {
                // A sender that is late does not catch up: that would be a flood.
                due = now + self.period;
                self.send(own, socket, &mut station);
                Duration::ZERO
            } else {
                (due - now).min(LOOK)
            };
            let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut polled, Some(TimeSpec::from_duration(wait)), None) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => self.receive(own, socket, &mut station),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(station)
    }

    fn send(&self, own: usize, socket: &UdpSocket, station: &mut Station) {
        let mut payload = [0x5a; BYTES];
        let index = station.left.len();
        let number = index as u64 + 1;
        payload[..8].copy_from_slice(&number.to_be_bytes());
        payload[8..16].copy_from_slice(&(own as u64).to_be_bytes());
        station.left.push(self.zero.elapsed());
        self.sent[own].store(number, Ordering::Release);
        for (to, address) in self.addresses.iter().enumerate().filter(|(to, _)| *to != own) {
            if socket.send_to(&payload, address).is_err() {
                station.refused.push((index, to));
            }
        }
    }

    fn receive(&self, own: usize, socket: &UdpSocket, station: &mut Station) {
        let mut payload = [0; BYTES];
        // An error that is told here is that of an earlier datagram, or that nothing is left.
        while let Ok(length) = socket.recv(&mut payload) {
            let word = |at: usize| payload[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            let (number, from) = (word(0), usize::try_from(word(8)).unwrap_or(usize::MAX));
            let known = length == BYTES && from < self.addresses.len() && number > 0;
            if !known || number > self.sent[from].load(Ordering::Acquire) {
                continue;
            }
            let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
            let came = &mut station.came[from];
            if came.len() <= index {
                came.resize(index + 1, None);
            }
            if came[index].replace(self.zero.elapsed()).is_some() {
                station.again[from] += 1;
            }
            self.heard[own][from].fetch_max(number, Ordering::AcqRel);
        }
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        // Its threads end by themselves; nobody waits for them.
        self.shared.sends.store(false, Ordering::Release);
        self.shared.listens.store(false, Ordering::Release);
    }
}

impl MeshRecord {
    /// What became of what `from` sent `to` at times that `counts` holds for.
    pub fn fate(&self, from: usize, to: usize, counts: impl Fn(Duration) -> bool) -> Fate {
        let sender = &self.stations[from];
        let came = &self.stations[to].came[from];
        let mut fate = Fate::default();
        let mut refused =
            sender.refused.iter().filter(|(_, at)| *at == to).map(|(index, _)| *index).peekable();
        for (index, left) in sender.left.iter().enumerate() {
            if refused.next_if_eq(&index).is_some() || !counts(*left) {
                continue;
            }
            fate.sent += 1;
            fate.lost += u64::from(came.get(index).copied().flatten().is_none());
        }
        fate
    }

    /// When the first datagram came, from one host to another, that left at this time or later.
    pub fn first(&self, from: usize, to: usize, left_from: Duration) -> Option<Duration> {
        let left = &self.stations[from].left;
        let came = self.stations[to].came[from].iter().zip(left);
        came.filter(|(_, left)| **left >= left_from).filter_map(|(came, _)| *came).min()
    }

    /// When the datagrams left, of those that one host sent another at times that `counts` holds for, that never came.
    pub fn losses(&self, from: usize, to: usize, counts: impl Fn(Duration) -> bool) -> Vec<Duration> {
        let sender = &self.stations[from];
        let came = &self.stations[to].came[from];
        let refused = |index: usize| sender.refused.contains(&(index, to));
        let lost = sender.left.iter().enumerate().filter(|(index, left)| {
            counts(**left) && came.get(*index).copied().flatten().is_none() && !refused(*index)
        });
        lost.map(|(_, left)| *left).collect()
    }

    /// The longest time that a sender had no processor: they send all the time.
    pub fn longest_stall(&self) -> Duration {
        let gaps = |station: &Station| station.left.windows(2).map(|pair| pair[1] - pair[0]).max();
        self.stations.iter().filter_map(gaps).max().unwrap_or_default()
    }

    /// Datagrams that came twice, between whichever hosts.
    pub fn twice(&self) -> u64 {
        self.stations.iter().flat_map(|station| &station.again).sum()
    }

    /// Datagrams between two hosts, either way, that left before one time and came after another.
    pub fn straddling(&self, pair: [usize; 2], left_before: Duration, came_after: Duration) -> u64 {
        let one = |from: usize, to: usize| {
            let left = &self.stations[from].left;
            let came = self.stations[to].came[from].iter().zip(left);
            let old =
                came.filter(|(came, left)| **left < left_before && came.is_some_and(|at| at > came_after));
            old.count() as u64
        };
        one(pair[0], pair[1]) + one(pair[1], pair[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn record() -> MeshRecord {
        let came = |times: &[Option<u64>]| times.iter().map(|at| at.map(MS)).collect::<Vec<_>>();
        let station = |left: &[u64], from0, from1| Station {
            left: left.iter().map(|at| MS(*at)).collect(),
            came: vec![came(from0), came(from1)],
            again: vec![0, 1],
            refused: Vec::new(),
        };
        let mut a = station(&[0, 10, 20, 30], &[], &[Some(1)]);
        a.refused.push((3, 1));
        MeshRecord { stations: vec![a, station(&[0], &[Some(1), None, Some(500)], &[])] }
    }

    #[test]
    fn what_never_left_is_not_lost_and_what_never_came_is() {
        let record = record();
        assert_eq!(record.fate(0, 1, |_| true), Fate { sent: 3, lost: 1 });
        assert_eq!(record.fate(0, 1, |left| left > MS(10)), Fate { sent: 1, lost: 0 });
        assert_eq!(record.fate(1, 0, |_| true), Fate { sent: 1, lost: 0 });
        assert_eq!(record.twice(), 2);
        assert_eq!(record.losses(0, 1, |_| true), [MS(10)]);
        assert_eq!(record.longest_stall(), MS(10));
    }

    #[test]
    fn an_old_datagram_is_one_that_left_before_and_came_after() {
        let record = record();
        assert_eq!(record.straddling([0, 1], MS(25), MS(100)), 1);
        assert_eq!(record.straddling([0, 1], MS(15), MS(100)), 0);
        assert_eq!(record.straddling([1, 0], MS(25), MS(600)), 0);
    }
}
