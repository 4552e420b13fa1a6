//! One TCP connection with a steady, moderate load, for as long as it is wanted: whether it lives, and its longest pause.

use super::{LOOK, Progress, failed, panicked};
use linkbraid_api::Error;
use linkbraid_lab::Host;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes given to TCP at once, and from one time to the next: 100 Mbit/s, so that several of them leave a small machine
/// time for all else.
const PIECE: usize = 64 << 10;
const PERIOD: Duration = Duration::from_millis(5);
/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long what was sent may take to arrive after the last byte was given to TCP, which pauses for longer and longer
/// while it hears nothing.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// A connection that runs until it is stopped.
#[derive(Debug)]
pub struct SteadyFlow {
    over: Arc<AtomicBool>,
    sender: Option<JoinHandle<io::Result<u64>>>,
    receiver: Option<JoinHandle<io::Result<Progress>>>,
}

/// What a connection came to.
#[derive(Debug)]
pub struct SteadyRecord {
    /// Payload bytes at the receiver, in order.
    pub progress: Progress,
    /// Why it ended before it was to, or lacks bytes, if so.
    pub lost: Option<String>,
}

impl SteadyFlow {
    /// Connects one host to an address of another and starts to send. `zero` is the zero of its times.
    pub fn start(from: Host<'_>, to: Host<'_>, address: &str, zero: Instant) -> Result<Self, Error> {
        let ip =
            address.parse().map_err(|e| Error::new(address, "cannot use the address", format!("{e}")))?;
        let at = SocketAddr::new(ip, 0);
        let listener = to.run(|| TcpListener::bind(at))?.map_err(|e| failed(to, "listen", &e))?;
        let at = listener.local_addr().map_err(|e| failed(to, "listen", &e))?;
        let client = from.run(|| TcpStream::connect_timeout(&at, CONNECT_LIMIT))?;
        let client = client.map_err(|e| failed(from, &format!("connect to {at}"), &e))?;
        let (server, _) = listener.accept().map_err(|e| failed(to, "accept", &e))?;
        client.set_write_timeout(Some(LOOK)).map_err(|e| failed(from, "send", &e))?;
        server.set_read_timeout(Some(LOOK)).map_err(|e| failed(to, "receive", &e))?;
        let over = Arc::new(AtomicBool::new(false));
        let (send_over, receive_over) = (Arc::clone(&over), Arc::clone(&over));
        Ok(Self {
            over,
            sender: Some(std::thread::spawn(move || send(client, &send_over))),
            receiver: Some(std::thread::spawn(move || receive(server, zero, &receive_over))),
        })
    }

    /// Ends it, once all that was sent is there.
    pub fn stop(mut self) -> SteadyRecord {
        self.over.store(true, Ordering::Release);
        let gone = || Err(panicked());
        let sent = self.sender.take().map_or_else(gone, |thread| thread.join().unwrap_or_else(|_| gone()));
        let gone = || Err(panicked());
        let came = self.receiver.take().map_or_else(gone, |thread| thread.join().unwrap_or_else(|_| gone()));
        match (sent, came) {
            (Ok(sent), Ok(progress)) => {
                let lack = sent.saturating_sub(progress.total());
                let lost = (lack > 0).then(|| format!("{lack} of {sent} bytes did not arrive"));
                SteadyRecord { progress, lost }
            }
            (sent, came) => {
                let error = [sent.as_ref().err(), came.as_ref().err()].into_iter().flatten().next();
                let lost = error.map(ToString::to_string);
                SteadyRecord { progress: came.unwrap_or_default(), lost }
            }
        }
    }
}

impl Drop for SteadyFlow {
    fn drop(&mut self) {
        // Its threads end by themselves; nobody waits for them.
        self.over.store(true, Ordering::Release);
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn send(mut stream: TcpStream, over: &AtomicBool) -> io::Result<u64> {
    let piece = vec![0x5a; PIECE];
    let mut sent = 0;
    while !over.load(Ordering::Acquire) {
        match stream.write(&piece) {
            Ok(bytes) => sent += bytes as u64,
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
        std::thread::sleep(PERIOD);
    }
    stream.shutdown(Shutdown::Write)?;
    // The receiver closes once it has all; until then this end has to stay.
    stream.set_read_timeout(Some(DRAIN_LIMIT))?;
    stream.read_to_end(&mut Vec::new()).map(|_| sent)
}

fn receive(mut stream: TcpStream, zero: Instant, over: &AtomicBool) -> io::Result<Progress> {
    let mut progress = Progress::default();
    let mut piece = vec![0; PIECE];
    let mut quiet_since: Option<Instant> = None;
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(progress),
            Ok(bytes) => {
                quiet_since = None;
                progress.add(zero.elapsed(), bytes as u64);
            }
            // The sender ends it; one that is not heard any more does not.
            Err(error) if is_wait(&error) => {
                if over.load(Ordering::Acquire) {
                    let since = *quiet_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > DRAIN_LIMIT {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
            }
            Err(error) => return Err(error),
        }
    }
}
