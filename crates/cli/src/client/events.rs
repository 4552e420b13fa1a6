//! The events that follow the reply to `monitor`.

use super::{Failure, broken, open, plain, start_command, too_long, understand};
use linkbraid_api::{Error, EventRecord, LINE_BYTES_MAX, Reply, Request};
use std::io::{BufReader, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much is read at once; some hundred events.
const READ_BYTES: usize = 1 << 16;

/// A connection over which the daemon sends events.
#[derive(Debug)]
pub struct Events {
    socket: PathBuf,
    stream: UnixStream,
    /// Bytes received and not returned yet: complete lines, and at most the beginning of one more.
    pending: Vec<u8>,
}

/// Asks for events. The daemon's first reply comes back as it is, and with [`Reply::Done`] the events that follow it.
///
/// Only the first reply has to come within `timeout`.
pub fn follow(
    socket: &Path,
    request: &Request,
    timeout: Duration,
) -> Result<(Reply, Option<Events>), Failure> {
    let (reply, reader) = open(socket, request, timeout)?;
    if !matches!(reply, Reply::Done { .. }) {
        return Ok((reply, None));
    }
    Ok((reply, Some(Events::new(socket, reader))))
}

impl Events {
    fn new(socket: &Path, reader: BufReader<UnixStream>) -> Self {
        let pending = reader.buffer().to_vec();
        Self { socket: socket.to_owned(), stream: reader.into_inner(), pending }
    }

    /// What is readable when [`Events::read`] has something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// The next event of those that are here already, or none if there is none. Waits for nothing.
    ///
    /// # Errors
    /// The daemon said something else than an event, or a line too long.
    pub fn next(&mut self) -> Result<Option<EventRecord>, Failure> {
        let end = self.pending.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        if end.unwrap_or(self.pending.len()) > LINE_BYTES_MAX {
            return Err(broken(&self.socket, "cannot talk to the daemon", &plain(&too_long(LINE_BYTES_MAX))));
        }
        let Some(end) = end else { return Ok(None) };
        let line: Vec<u8> = self.pending.drain(..end).collect();
        match understand(&self.socket, &line)? {
            Reply::Event(event) => Ok(Some(event)),
            Reply::Error(error) => Err(Failure::Broken(error)),
            Reply::Done { .. } | Reply::Records(_) => {
                Err(broken(&self.socket, "cannot understand the reply", "it is not an event"))
            }
        }
    }

    /// Reads once, and waits for that if nothing is there.
    ///
    /// # Errors
    /// The daemon has ended, or the socket cannot be read.
    pub fn read(&mut self) -> Result<(), Failure> {
        let have = self.pending.len();
        self.pending.resize(have + READ_BYTES, 0);
        let read = loop {
            match self.stream.read(&mut self.pending[have..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.pending.truncate(have + read.as_ref().copied().unwrap_or_default());
        match read {
            // A daemon that is killed with something unread makes a reset of its end.
            Ok(0) => Err(self.ended()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Err(self.ended()),
            Err(error) => Err(broken(&self.socket, "cannot talk to the daemon", &plain(&error))),
            Ok(_) => Ok(()),
        }
    }

    fn ended(&self) -> Failure {
        let object = self.socket.display().to_string();
        let error = Error::new(object, "no more events", "the daemon ended");
        Failure::NoDaemon(error.hint(start_command(&self.socket)))
    }
}

#[cfg(test)]
mod tests;
