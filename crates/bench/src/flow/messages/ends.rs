//! Both ends of a flow of messages: sockets that are made inside their hosts.

use super::{BYTES_MAX, LOOK, Messages, Over, connect, enlarge, failed, is_wait};
use linkbraid_api::Error;
use linkbraid_lab::Host;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// What sends; it never blocks.
pub enum Client {
    /// A connection, what it still has to send, and what of an answer has come so far.
    Tcp {
        stream: TcpStream,
        unsent: Vec<u8>,
        partial: Vec<u8>,
        bytes: usize,
    },
    Udp(UdpSocket),
}

/// What answers until it is told to end; it blocks for [`LOOK`].
pub type Echo = Box<dyn FnOnce(&AtomicBool) -> io::Result<()> + Send>;

/// Both ends, connected.
pub fn connected(from: Host<'_>, to: Host<'_>, messages: &Messages) -> Result<(Client, Echo), Error> {
    match messages.over {
        Over::Tcp => tcp(from, to, messages),
        Over::Udp => {
            let (client, echo) = udp(from, to, messages.priority)?;
            client.set_nonblocking(true).map_err(|e| failed(from, "send", &e))?;
            Ok((Client::Udp(client), Box::new(move |over| answer(&echo, over))))
        }
    }
}

fn prioritize(socket: &impl AsFd, priority: i32) -> io::Result<()> {
    setsockopt(socket, sockopt::Priority, &priority).map_err(Into::into)
}

fn tcp(from: Host<'_>, to: Host<'_>, messages: &Messages) -> Result<(Client, Echo), Error> {
    // What it accepts answers with its priority from the first segment on.
    let ready = |listener: &TcpListener| prioritize(listener, messages.priority);
    let (_, stream, echo) = connect((from, to), to.ipv4(), ready)?;
    for (host, end) in [(from, &stream), (to, &echo)] {
        prioritize(end, messages.priority)
            .and_then(|()| end.set_nodelay(true))
            .map_err(|e| failed(host, "set up a connection", &e))?;
    }
    stream.set_nonblocking(true).map_err(|e| failed(from, "send", &e))?;
    let timed = echo.set_read_timeout(Some(LOOK)).and_then(|()| echo.set_write_timeout(Some(LOOK)));
    timed.map_err(|e| failed(to, "answer", &e))?;
    let client = Client::Tcp { stream, unsent: Vec::new(), partial: Vec::new(), bytes: messages.bytes };
    Ok((client, Box::new(move |over| answer_stream(echo, over))))
}

/// Two sockets that are connected to each other; both block for [`LOOK`].
pub fn udp(from: Host<'_>, to: Host<'_>, priority: i32) -> Result<(UdpSocket, UdpSocket), Error> {
    let bound = |host: Host<'_>| {
        host.make("make a socket", || {
            let socket = UdpSocket::bind((host.ipv4(), 0))?;
            prioritize(&socket, priority)?;
            enlarge(&socket)?;
            socket.set_read_timeout(Some(LOOK))?;
            Ok((socket.local_addr()?, socket))
        })
    };
    let ((near, client), (far, echo)) = (bound(from)?, bound(to)?);
    client.connect(far).map_err(|e| failed(from, &format!("send to {far}"), &e))?;
    echo.connect(near).map_err(|e| failed(to, &format!("answer to {near}"), &e))?;
    Ok((client, echo))
}

impl Client {
    /// Whether an error is that of one datagram, and not the end of all.
    pub fn is_datagrams(&self) -> bool {
        matches!(self, Self::Udp(_))
    }

    /// Whether it still has something to send.
    pub fn wants_to_write(&self) -> bool {
        matches!(self, Self::Tcp { unsent, .. } if !unsent.is_empty())
    }

    /// Sends a message; what a connection does not take at once is kept for [`Client::flush`].
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.send(message).map(drop),
            Self::Tcp { unsent, .. } => {
                unsent.extend_from_slice(message);
                self.flush()
            }
        }
    }

    pub fn flush(&mut self) -> io::Result<()> {
        let Self::Tcp { stream, unsent, .. } = self else { return Ok(()) };
        while !unsent.is_empty() {
            match stream.write(unsent) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => drop(unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The number of the next answer that is there.
    pub fn receive(&mut self) -> io::Result<Option<u64>> {
        let mut room = [0; BYTES_MAX];
        loop {
            let read = match self {
                Self::Udp(socket) => socket.recv(&mut room),
                Self::Tcp { stream, partial, bytes, .. } => {
                    let missing = *bytes - partial.len();
                    stream.read(&mut room[..missing])
                }
            };
            let read = match read {
                Ok(read) => &room[..read],
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            match self {
                // One that is too short for a number is not ours.
                Self::Udp(_) => match number(read) {
                    Some(number) => return Ok(Some(number)),
                    None => continue,
                },
                Self::Tcp { partial, bytes, .. } => {
                    if read.is_empty() {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    partial.extend_from_slice(read);
                    if partial.len() == *bytes {
                        let whole = std::mem::take(partial);
                        return Ok(number(&whole));
                    }
                }
            }
        }
    }
}

fn number(message: &[u8]) -> Option<u64> {
    message.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp { stream, .. } => stream.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
        }
    }
}

/// More than any message has.
const ROOM: usize = 64 << 10;

fn answer_stream(mut stream: TcpStream, over: &AtomicBool) -> io::Result<()> {
    let mut room = vec![0; ROOM];
    while !over.load(Ordering::Acquire) {
        let bytes = match stream.read(&mut room) {
            // The client is the first to end.
            Ok(0) => return Ok(()),
            Ok(bytes) => bytes,
            Err(error) if is_wait(&error) => continue,
            Err(error) => return Err(error),
        };
        let mut left = &room[..bytes];
        while !left.is_empty() && !over.load(Ordering::Acquire) {
            match stream.write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Sends each datagram back until it is told to end. The socket's time-out is how soon it looks.
pub fn answer(socket: &UdpSocket, over: &AtomicBool) -> io::Result<()> {
    let mut room = vec![0; ROOM];
    while !over.load(Ordering::Acquire) {
        // An error is the fate of an earlier answer, or nothing has come.
        if let Ok(bytes) = socket.recv(&mut room) {
            // An answer that the kernel does not take shows as a message that is lost.
            let _ = socket.send(&room[..bytes]);
        }
    }
    Ok(())
}
