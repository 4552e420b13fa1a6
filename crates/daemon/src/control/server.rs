//! The socket: JSON lines in, JSON lines out, one request at a time from each client.

use crate::{
    io::error::About as _,
    world::history::{Change, Feed, record},
};
use linkbraid_api::{Error, EventKind, EventRecord, LINE_BYTES_MAX, LinkName, Reply, Request};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::stat::{Mode, umask},
    unistd::geteuid,
};
use std::{
    fs, io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream as StdStream,
    },
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream, unix::OwnedWriteHalf},
    sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, oneshot},
};

/// Clients served at once; further ones wait to be accepted.
const CLIENTS_MAX: usize = 64;
/// Of them and beside them, clients that only listen to events; further ones are refused.
const MONITORS_MAX: usize = 64;

/// A request, where its answer goes, and who asked.
#[derive(Debug)]
pub(crate) struct Call {
    pub request: Request,
    pub answer: oneshot::Sender<Reply>,
    /// The client's process, as the kernel reports it.
    pub pid: Option<i32>,
    /// The client's own connection.
    client: Arc<OwnedFd>,
}

impl Call {
    /// Whether the client has closed its end: nobody waits for the answer, and what it asked for may no longer be what
    /// is wanted. One that has only ended its own sending still listens.
    pub(crate) fn is_gone(&self) -> bool {
        let mut fds = [PollFd::new(self.client.as_fd(), PollFlags::empty())];
        let polled = poll(&mut fds, PollTimeout::ZERO);
        let end = PollFlags::POLLHUP | PollFlags::POLLERR;
        polled.is_ok() && fds[0].revents().is_some_and(|events| events.intersects(end))
    }
}

/// The listening socket; removed with it.
pub(crate) struct Server {
    listener: UnixListener,
    path: PathBuf,
}

impl Server {
    /// Listens at `path`, for root alone. A socket that nobody listens on is replaced.
    ///
    /// # Errors
    /// Another daemon listens there, or the path cannot be used.
    pub(crate) fn bind(path: &Path) -> Result<Self, Error> {
        let object = path.display().to_string();
        if StdStream::connect(path).is_ok() {
            return Err(Error::new(object, "cannot listen", "another daemon listens on this socket")
                .hint(format!("linkbraid --socket {} show", path.display())));
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).about(&object, "cannot create its directory")?;
        }
        match fs::remove_file(path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(cause).about(&object, "cannot remove the old socket")?
            }
            _ => {}
        }
        // From the first moment on: whoever may open it then stays connected. No other thread makes files yet.
        let before = umask(Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.about(&object, "cannot listen")?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Accepts clients for ever; each one's requests go to `calls`.
    pub(crate) async fn serve(&self, calls: mpsc::Sender<Call>, feed: Feed) {
        let places = Arc::new(Semaphore::new(CLIENTS_MAX));
        let monitors = Arc::new(Semaphore::new(MONITORS_MAX));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) if !stream.peer_cred().is_ok_and(|peer| may_ask(peer.uid())) => {
                    tracing::warn!("a client is refused: it is neither root nor the daemon's user");
                }
                Ok((stream, _)) => {
                    let client =
                        Client { calls: calls.clone(), feed: feed.clone(), monitors: monitors.clone() };
                    tokio::task::spawn_local(async move {
                        if let Err(error) = client.serve(stream, place).await {
                            tracing::debug!(%error, "client left");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a client");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Whether a client of that user may ask, however it came by the socket: root, and whoever the daemon runs as.
fn may_ask(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What serves one client.
struct Client {
    calls: mpsc::Sender<Call>,
    feed: Feed,
    /// Places of clients that listen to events.
    monitors: Arc<Semaphore>,
}

impl Client {
    async fn serve(self, stream: UnixStream, place: OwnedSemaphorePermit) -> io::Result<()> {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let client = Arc::new(stream.as_fd().try_clone_to_owned()?);
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        let mut line = Vec::new();
        loop {
            line.clear();
            let n = (&mut read).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line).await?;
            if n == 0 {
                return Ok(());
            }
            if line.len() > LINE_BYTES_MAX {
                let error = Error::new("request", "refused", format!("longer than {LINE_BYTES_MAX} bytes"));
                return send(&mut write, &Reply::Error(error)).await;
            }
            let request = match Request::read(&line) {
                Ok(request) => request,
                Err(error) => {
                    send(&mut write, &Reply::Error(error)).await?;
                    continue;
                }
            };
            let stream = match &request {
                Request::Monitor { bond } => {
                    let Ok(monitor) = self.monitors.clone().try_acquire_owned() else {
                        let cause = format!("{MONITORS_MAX} clients listen already");
                        let error = Error::new("monitor", "refused", cause).hint("linkbraid show");
                        send(&mut write, &Reply::Error(error)).await?;
                        continue;
                    };
                    // From here on, so that nothing is missed between the answer and the first event.
                    Some((bond.clone(), self.feed.subscribe(), monitor))
                }
                _ => None,
            };
            let reply = self.answer(request, pid, client.clone()).await;
            send(&mut write, &reply).await?;
            if let (Some((bond, events, _monitor)), Reply::Done { .. }) = (stream, reply) {
                // It asks for nothing more: somebody else can.
                drop(place);
                return tokio::select! {
                    ended = stream_events(&mut write, bond, events) => ended,
                    // Whatever the client sends now ends it.
                    _ = read.read_u8() => Ok(()),
                };
            }
        }
    }

    async fn answer(&self, request: Request, pid: Option<i32>, client: Arc<OwnedFd>) -> Reply {
        let (reply, answer) = oneshot::channel();
        let gone = || Reply::Error(Error::new("daemon", "no answer", "the daemon is stopping"));
        if self.calls.send(Call { request, answer: reply, pid, client }).await.is_err() {
            return gone();
        }
        answer.await.unwrap_or_else(|_| gone())
    }
}

async fn send(write: &mut OwnedWriteHalf, reply: &Reply) -> io::Result<()> {
    let mut text = serde_json::to_vec(reply)?;
    text.push(b'\n');
    write.write_all(&text).await
}

/// Writes events until the client has gone.
async fn stream_events(
    write: &mut OwnedWriteHalf,
    bond: Option<LinkName>,
    mut events: broadcast::Receiver<EventRecord>,
) -> io::Result<()> {
    loop {
        let event = match events.recv().await {
            Ok(event) => event,
            Err(broadcast::error::RecvError::Closed) => return Ok(()),
            Err(broadcast::error::RecvError::Lagged(lost)) => {
                let text = format!("{lost} events were lost: the client reads too slowly");
                record("", Change::new(EventKind::Lost, "monitor", "lost", text))
            }
        };
        if bond.as_ref().is_none_or(|bond| **bond == *event.bond || event.kind == EventKind::Lost) {
            send(write, &Reply::Event(event)).await?;
        }
    }
}

#[cfg(test)]
mod tests;
