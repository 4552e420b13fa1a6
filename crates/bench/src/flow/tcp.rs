//! One TCP flow, as its receiver sees it: as fast as it goes, or with a moderate load for as long as it is wanted.

use super::{CONNECT_LIMIT, LOOK, Progress, Task, connect, failed, is_wait};
use linkbraid_api::Error;
use linkbraid_lab::Host;
use linkbraid_lab::iperf::Cc;
use nix::libc;
use nix::sys::socket::{self, Backlog, SockaddrIn, setsockopt, sockopt};
use nix::sys::time::TimeVal;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes given to TCP at once, and taken from it.
const PIECE: usize = 128 << 10;
/// The same of a moderate load, and the time from one to the next: 100 Mbit/s, so that several of them leave a small machine
/// time for all else.
const STEADY_PIECE: usize = 64 << 10;
const STEADY_PERIOD: Duration = Duration::from_millis(5);
/// How long what was sent of a moderate load may take to arrive after the last byte was given to TCP, which pauses for longer
/// and longer while it hears nothing.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct TcpFlow {
    /// The zero of its times.
    pub zero: Instant,
    steady: bool,
    // More paths of MPTCP find the connection only while somebody listens at its port.
    _listener: TcpListener,
    sender: Task<io::Result<u64>>,
    receiver: Task<(Progress, io::Result<()>)>,
}

#[derive(Debug)]
pub struct TcpRecord {
    pub zero: Instant,
    /// Payload bytes at the receiver, in order.
    pub progress: Progress,
    /// Why the connection ended before it was to, or which bytes of a moderate load are missing, if so.
    pub lost: Option<String>,
}

impl TcpFlow {
    /// Starts to send from one host to another, as much as TCP lets through.
    pub fn start(from: Host<'_>, to: Host<'_>, cc: Cc) -> Result<Self, Error> {
        let (listener, client, server) = connect((from, to), to.ipv4(), |_| Ok(()))?;
        choose(from, &client, cc)?;
        Self::between((from, client), (to, server), listener, None)
    }

    /// The same over MPTCP; more than one path is taken only if the hosts know of more.
    pub fn start_mptcp(from: Host<'_>, to: Host<'_>, cc: Cc) -> Result<Self, Error> {
        // Other paths end at other addresses of the host.
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let listener = to.make("use MPTCP", || listen_mptcp(any))?;
        let port = listener.local_addr().map_err(|e| failed(to, "listen", &e))?.port();
        let ip = to.ipv4().parse().unwrap_or(Ipv4Addr::UNSPECIFIED);
        let what = format!("connect to {ip} by MPTCP");
        let client = from.make(&what, || connect_mptcp(SocketAddrV4::new(ip, port), CONNECT_LIMIT))?;
        let (server, _) = listener.accept().map_err(|e| failed(to, "accept", &e))?;
        choose(from, &client, cc)?;
        Self::between((from, client), (to, server), listener, None)
    }

    /// A moderate load to an address of a host; all of it is to arrive. `zero` is the zero of its times.
    pub fn steady(from: Host<'_>, to: Host<'_>, address: &str, zero: Instant) -> Result<Self, Error> {
        let (listener, client, server) = connect((from, to), address, |_| Ok(()))?;
        Self::between((from, client), (to, server), listener, Some(zero))
    }

    fn between(
        (from, client): (Host<'_>, TcpStream),
        (to, server): (Host<'_>, TcpStream),
        listener: TcpListener,
        steady: Option<Instant>,
    ) -> Result<Self, Error> {
        client.set_write_timeout(Some(LOOK)).map_err(|e| failed(from, "send", &e))?;
        server.set_read_timeout(Some(LOOK)).map_err(|e| failed(to, "receive", &e))?;
        let (zero, steady) = (steady.unwrap_or_else(Instant::now), steady.is_some());
        Ok(Self {
            zero,
            steady,
            _listener: listener,
            sender: Task::start(move |over| send(client, steady, over)),
            receiver: Task::start(move |over| receive(server, steady, zero, over)),
        })
    }

    /// Ends it; a moderate load, once all that was sent is there.
    pub fn stop(self) -> TcpRecord {
        self.sender.end();
        self.receiver.end();
        let sent = self.sender.join().unwrap_or_else(Err);
        let (progress, received) =
            self.receiver.join().unwrap_or_else(|gone| (Progress::default(), Err(gone)));
        let lost = match (&sent, received) {
            (Err(error), _) => Some(error.to_string()),
            (_, Err(error)) => Some(error.to_string()),
            (Ok(sent), Ok(())) if self.steady && progress.total() < *sent => {
                Some(format!("{} of {sent} bytes did not arrive", sent - progress.total()))
            }
            _ => None,
        };
        TcpRecord { zero: self.zero, progress, lost }
    }
}

fn choose(host: Host<'_>, client: &TcpStream, cc: Cc) -> Result<(), Error> {
    let chosen = setsockopt(client, sockopt::TcpCongestion, &OsString::from(cc.name()));
    chosen.map_err(|e| failed(host, &format!("use {}", cc.name()), &e.into()))
}

/// Bytes that were given to TCP.
fn send(mut stream: TcpStream, steady: bool, over: &AtomicBool) -> io::Result<u64> {
    let piece = vec![0x5a; if steady { STEADY_PIECE } else { PIECE }];
    let mut sent = 0;
    while !over.load(Ordering::Acquire) {
        match stream.write(&piece) {
            Ok(bytes) => sent += bytes as u64,
            Err(error) if is_wait(&error) => {}
            // The other end was the first to stop.
            Err(_) if !steady && over.load(Ordering::Acquire) => break,
            Err(error) => return Err(error),
        }
        if steady {
            std::thread::sleep(STEADY_PERIOD);
        }
    }
    if steady {
        stream.shutdown(Shutdown::Write)?;
        // The receiver closes once it has all; until then this end has to stay.
        stream.set_read_timeout(Some(DRAIN_LIMIT))?;
        stream.read_to_end(&mut Vec::new())?;
    } else {
        // The other end may be gone by now.
        let _ = stream.shutdown(Shutdown::Both);
    }
    Ok(sent)
}

fn receive(
    mut stream: TcpStream,
    steady: bool,
    zero: Instant,
    over: &AtomicBool,
) -> (Progress, io::Result<()>) {
    let mut progress = Progress::default();
    let mut piece = vec![0; PIECE];
    let mut quiet_since: Option<Instant> = None;
    loop {
        let ended = match stream.read(&mut piece) {
            // The sender of a moderate load ends it.
            Ok(0) if steady => return (progress, Ok(())),
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                progress.add(zero.elapsed(), bytes as u64);
                quiet_since = None;
                Ok(())
            }
            Err(error) if is_wait(&error) => {
                let since = *quiet_since.get_or_insert_with(Instant::now);
                let drained = steady && over.load(Ordering::Acquire) && since.elapsed() > DRAIN_LIMIT;
                if drained { Err(ErrorKind::TimedOut.into()) } else { Ok(()) }
            }
            Err(error) => Err(error),
        };
        if !steady && over.load(Ordering::Acquire) {
            return (progress, Ok(()));
        }
        if ended.is_err() {
            return (progress, ended);
        }
    }
}

/// A socket of MPTCP, which std does not have, that listens at an address, on the host whose namespace the caller is in.
fn listen_mptcp(at: SocketAddrV4) -> io::Result<TcpListener> {
    let socket = mptcp()?;
    socket::bind(socket.as_raw_fd(), &SockaddrIn::from(at))?;
    socket::listen(&socket, Backlog::new(1)?)?;
    Ok(socket.into())
}

/// A socket that is connected to an address within a limit of whole seconds, likewise.
fn connect_mptcp(to: SocketAddrV4, limit: Duration) -> io::Result<TcpStream> {
    let socket = mptcp()?;
    // connect(2) of a blocking socket waits for no longer than this.
    setsockopt(&socket, sockopt::SendTimeout, &TimeVal::new(limit.as_secs().cast_signed(), 0))?;
    socket::connect(socket.as_raw_fd(), &SockaddrIn::from(to))?;
    Ok(socket.into())
}

fn mptcp() -> io::Result<OwnedFd> {
    // SAFETY: a system call on numbers alone. It is missing in nix's list of protocols.
    let number =
        unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, libc::IPPROTO_MPTCP) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
