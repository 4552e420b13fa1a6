//! The events that follow the reply to `monitor`.

use super::{Failure, Link, broken, not_understood, open, plain, receive, start_command};
use linkbraid_api::{Error, EventRecord, Reply, Request};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::timeout;

/// A connection over which the daemon sends events.
#[derive(Debug)]
pub struct Events {
    socket: PathBuf,
    link: Link,
}

/// Asks for events. The daemon's first reply comes back as it is, and with [`Reply::Done`] the events that follow it.
///
/// Only the first reply has to come within `timeout`.
pub fn follow(
    socket: &Path,
    request: &Request,
    timeout: Duration,
) -> Result<(Reply, Option<Events>), Failure> {
    let (reply, link) = open(socket, request, timeout)?;
    let follows = matches!(reply, Reply::Done { .. });
    Ok((reply, follows.then(|| Events { socket: socket.to_owned(), link })))
}

impl Events {
    /// What is readable when more has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.link.connection.read().read_half().as_fd()
    }

    /// The next event of those that are here already, or none if there is none. Waits for nothing.
    ///
    /// # Errors
    /// The daemon has ended, or said something else than an event.
    pub fn take(&mut self) -> Result<Option<EventRecord>, Failure> {
        let Link { runtime, connection } = &mut self.link;
        // What is not whole stays with the connection.
        let received = runtime.block_on(async { timeout(Duration::ZERO, receive(connection)).await });
        received.map_or(Ok(None), |received| self.event(received).map(Some))
    }

    /// The next event, whenever it comes.
    ///
    /// # Errors
    /// As of [`Self::next`].
    pub fn wait(&mut self) -> Result<EventRecord, Failure> {
        let Link { runtime, connection } = &mut self.link;
        let received = runtime.block_on(receive(connection));
        self.event(received)
    }

    fn event(&self, received: zlink::Result<Reply>) -> Result<EventRecord, Failure> {
        match received {
            Ok(Reply::Event { event }) => Ok(event),
            Ok(Reply::Error(error)) => Err(Failure::Broken(error)),
            Ok(Reply::Done { .. } | Reply::Records(_)) => {
                Err(broken(&self.socket, "cannot understand the reply", "it is not an event"))
            }
            // A daemon that is killed with something unread makes a reset of its end.
            Err(zlink::Error::UnexpectedEof) => Err(self.ended()),
            Err(zlink::Error::Io(error)) if error.kind() == ErrorKind::ConnectionReset => Err(self.ended()),
            Err(zlink::Error::Io(error)) => {
                Err(broken(&self.socket, "cannot talk to the daemon", &plain(&error)))
            }
            Err(error) => Err(not_understood(&self.socket, &error)),
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
