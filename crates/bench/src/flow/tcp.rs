//! One TCP flow, as its receiver sees it.

use super::{CONNECT_LIMIT, LOOK, Progress, failed, mptcp, panicked};
use linkbraid_api::Error;
use linkbraid_lab::Host;
use linkbraid_lab::iperf::Cc;
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// Bytes given to TCP at once, and taken from it.
const PIECE: usize = 128 << 10;

/// A flow that runs until it is stopped.
#[derive(Debug)]
pub struct TcpFlow {
    zero: Instant,
    over: Arc<AtomicBool>,
    // More paths of MPTCP find the connection only while somebody listens at its port.
    _listener: TcpListener,
    sender: Option<JoinHandle<io::Result<()>>>,
    receiver: Option<JoinHandle<(Progress, io::Result<()>)>>,
}

/// What a flow came to.
#[derive(Debug)]
pub struct TcpRecord {
    /// Its zero of time.
    pub zero: Instant,
    /// Payload bytes at the receiver, in order.
    pub progress: Progress,
    /// Why the connection ended before it was to, if it did.
    pub lost: Option<String>,
}

impl TcpFlow {
    /// Starts to send from one host to another, as much as TCP lets through.
    pub fn start(from: Host<'_>, to: Host<'_>, cc: Cc) -> Result<Self, Error> {
        let listener = to.run(|| TcpListener::bind((to.ipv4(), 0)))?.map_err(|e| failed(to, "listen", &e))?;
        let address = listener.local_addr().map_err(|e| failed(to, "listen", &e))?;
        let client = from.run(|| TcpStream::connect_timeout(&address, CONNECT_LIMIT))?;
        let client = client.map_err(|e| failed(from, &format!("connect to {address}"), &e))?;
        Self::between((from, client), (to, listener), cc)
    }

    /// The same over MPTCP; more than one path is taken only if the hosts were told of more.
    pub fn start_mptcp(from: Host<'_>, to: Host<'_>, cc: Cc) -> Result<Self, Error> {
        let cannot = |cause: String| Error::new(format!("host {}", to.name()), "cannot use MPTCP", cause);
        let ip = to.ipv4().parse().map_err(|e| cannot(format!("its address: {e}")))?;
        // Other paths end at other addresses of the host.
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let listener = to.run(|| mptcp::listen(any))?.map_err(|e| cannot(e.to_string()))?;
        let port = listener.local_addr().map_err(|e| failed(to, "listen", &e))?.port();
        let client = from.run(|| mptcp::connect(SocketAddrV4::new(ip, port)))?;
        let client = client.map_err(|e| failed(from, &format!("connect to {ip} by MPTCP"), &e))?;
        Self::between((from, client), (to, listener), cc)
    }

    fn between(
        (from, client): (Host<'_>, TcpStream),
        (to, listener): (Host<'_>, TcpListener),
        cc: Cc,
    ) -> Result<Self, Error> {
        let (server, _) = listener.accept().map_err(|e| failed(to, "accept", &e))?;
        setsockopt(&client, TcpCongestion, &OsString::from(cc.name()))
            .map_err(|e| failed(from, &format!("use {}", cc.name()), &e.into()))?;
        client.set_write_timeout(Some(LOOK)).map_err(|e| failed(from, "send", &e))?;
        server.set_read_timeout(Some(LOOK)).map_err(|e| failed(to, "receive", &e))?;
        let (zero, over) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let (send_over, receive_over) = (Arc::clone(&over), Arc::clone(&over));
        Ok(Self {
            zero,
            over,
            _listener: listener,
            sender: Some(std::thread::spawn(move || send(client, &send_over))),
            receiver: Some(std::thread::spawn(move || receive(server, zero, &receive_over))),
        })
    }

    /// Ends it.
    pub fn stop(mut self) -> TcpRecord {
        self.over.store(true, Ordering::Release);
        let sent =
            self.sender.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(|_| Err(panicked())));
        let received = self.receiver.take().map(JoinHandle::join);
        let (progress, received) =
            received.and_then(Result::ok).unwrap_or_else(|| (Progress::default(), Err(panicked())));
        let lost = [sent, received].into_iter().find_map(Result::err).map(|error| error.to_string());
        TcpRecord { zero: self.zero, progress, lost }
    }
}

impl Drop for TcpFlow {
    fn drop(&mut self) {
        // Its threads end by themselves; nobody waits for them.
        self.over.store(true, Ordering::Release);
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn send(mut stream: TcpStream, over: &AtomicBool) -> io::Result<()> {
    let piece = vec![0x5a; PIECE];
    while !over.load(Ordering::Acquire) {
        match stream.write(&piece) {
            Ok(_) => {}
            Err(error) if is_wait(&error) => {}
            Err(error) if over.load(Ordering::Acquire) => {
                // The other end was the first to stop.
                drop(error);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    // The other end may be gone by now.
    let _ = stream.shutdown(Shutdown::Both);
    Ok(())
}

fn receive(mut stream: TcpStream, zero: Instant, over: &AtomicBool) -> (Progress, io::Result<()>) {
    let mut progress = Progress::default();
    let mut piece = vec![0; PIECE];
    loop {
        let ended = match stream.read(&mut piece) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                progress.add(zero.elapsed(), bytes as u64);
                Ok(())
            }
            Err(error) if is_wait(&error) => Ok(()),
            Err(error) => Err(error),
        };
        if over.load(Ordering::Acquire) {
            return (progress, Ok(()));
        }
        if ended.is_err() {
            return (progress, ended);
        }
    }
}
