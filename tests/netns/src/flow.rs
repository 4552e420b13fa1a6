//! A flow of numbered datagrams, to tell what was lost and what came twice.

use crate::{Net, SOON};
use linkbraid_lab::{Host, wait_until};
use std::{
    net::UdpSocket,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Datagrams a second: one every half millisecond.
const PAUSE: Duration = Duration::from_micros(500);
/// What waits for the receiver: seconds of it.
const RECEIVE_BYTES: usize = 16 << 20;
/// In a row without a gap: more than any queue holds.
const IN_A_ROW: u64 = 400;
/// How long the receiver waits for more.
const PATIENCE: Duration = Duration::from_millis(200);
/// So often while something is missing: what is on the way may wait for a processor.
const SILENCES: u32 = 5;

#[derive(Default)]
struct Seen {
    /// How often each number came.
    times: Vec<u8>,
    received: u64,
}

/// A flow under way; it ends with it.
pub struct Flow {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    seen: Arc<Mutex<Seen>>,
    threads: Vec<JoinHandle<()>>,
}

impl Flow {
    /// Starts a flow from one host to another.
    ///
    /// # Panics
    /// When a socket can't be had.
    #[track_caller]
    pub fn start(net: &Net, from: &str, to: &str) -> Self {
        let (from, to) = (net.host(from), net.host(to));
        Self::between([(from, from.ipv4()), (to, to.ipv4())])
    }

    /// Starts a flow from one host to another, each under an address that it has.
    ///
    /// # Panics
    /// When a socket can't be had.
    #[track_caller]
    pub fn between([(from, near), (to, far)]: [(Host<'_>, &str); 2]) -> Self {
        let receiver = to.run(|| UdpSocket::bind((far, 0))).expect("enters").expect("binds");
        receiver.set_read_timeout(Some(PATIENCE)).expect("sets");
        // A receiver that waits for a processor loses nothing.
        nix::sys::socket::setsockopt(&receiver, nix::sys::socket::sockopt::RcvBufForce, &RECEIVE_BYTES)
            .expect("root may");
        let target = receiver.local_addr().expect("has one");
        let sender = from.run(|| UdpSocket::bind((near, 0))).expect("enters").expect("binds");
        let (stop, sent, seen) =
            (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default(), Arc::<Mutex<Seen>>::default());
        let threads = vec![
            std::thread::spawn({
                let (stop, sent) = (stop.clone(), sent.clone());
                move || {
                    let mut due = Instant::now();
                    while !stop.load(SeqCst) {
                        let number = sent.load(SeqCst);
                        // What the kernel refuses was not sent, and is sent again.
                        if sender.send_to(&number.to_be_bytes(), target).is_ok() {
                            sent.store(number + 1, SeqCst);
                        }
                        due += PAUSE;
                        // The pace of the flow; nothing is waited for.
                        std::thread::park_timeout(due.saturating_duration_since(Instant::now()));
                    }
                }
            }),
            std::thread::spawn({
                let (stop, sent, seen) = (stop.clone(), sent.clone(), seen.clone());
                move || {
                    let (mut bytes, mut silent) = ([0; 8], 0);
                    loop {
                        if receiver.recv(&mut bytes).is_err() {
                            silent += 1;
                            let missing =
                                seen.lock().expect("nobody panics with it").received < sent.load(SeqCst);
                            if stop.load(SeqCst) && (!missing || silent >= SILENCES) {
                                return;
                            }
                            continue;
                        }
                        silent = 0;
                        let number = u64::from_be_bytes(bytes) as usize;
                        let mut seen = seen.lock().expect("nobody panics with it");
                        if seen.times.len() <= number {
                            seen.times.resize(number + 1, 0);
                        }
                        seen.times[number] = seen.times[number].saturating_add(1);
                        seen.received += 1;
                    }
                }
            }),
        ];
        Self { stop, sent, seen, threads }
    }

    /// Datagrams that came so far.
    pub fn received(&self) -> u64 {
        self.seen.lock().expect("nobody panics with it").received
    }

    /// Waits until so many have come in all.
    ///
    /// # Panics
    /// When they do not.
    #[track_caller]
    pub fn wait_received(&self, count: u64) {
        wait_until(SOON, &format!("{count} datagrams"), || self.received(), |seen| *seen >= count)
            .unwrap_or_else(|e| panic!("{e}"));
    }

    /// From now on every datagram comes: waits until many in a row did, that were all sent after this call.
    ///
    /// # Panics
    /// When one is lost.
    #[track_caller]
    pub fn loses_nothing_more(&self) {
        let first = self.sent.load(SeqCst) as usize;
        let last = first + IN_A_ROW as usize;
        let missing = || {
            let seen = self.seen.lock().expect("nobody panics with it");
            (first..last).filter(|number| seen.times.get(*number).is_none_or(|times| *times == 0)).count()
        };
        wait_until(SOON, &format!("datagrams {first} to {last}"), missing, |missing| *missing == 0)
            .unwrap_or_else(|e| panic!("{e}"));
    }

    /// Ends the flow: how many were lost, and how many came more than once.
    pub fn end(mut self) -> (u64, u64) {
        self.finish();
        let seen = self.seen.lock().expect("nobody panics with it");
        let sent = self.sent.load(SeqCst) as usize;
        let times = |number: usize| seen.times.get(number).copied().unwrap_or(0);
        let lost = (0..sent).filter(|number| times(*number) == 0).count() as u64;
        if lost > 0 {
            let gone: Vec<usize> = (0..sent).filter(|number| times(*number) == 0).collect();
            eprintln!("lost of {sent}: {gone:?}");
        }
        let doubled = (0..sent).filter(|number| times(*number) > 1).count() as u64;
        (lost, doubled)
    }

    fn finish(&mut self) {
        self.stop.store(true, SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.finish();
    }
}
