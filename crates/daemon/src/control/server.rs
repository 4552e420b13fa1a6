//! The socket: calls and replies of Varlink, one call at a time from each client.

mod bounded;
mod writing;

use crate::{
    io::error::About as _,
    world::history::{Change, Feed, record},
};
use bounded::Bounded;
use linkbraid_api::{
    Error, EventKind, EventRecord, LINE_BYTES_MAX, LinkName, Reply, Request,
    varlink::{DESCRIPTION, INTERFACE, Method, Refusal},
};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::stat::{Mode, umask},
    unistd::{Gid, getegid, geteuid},
};
use serde::Serialize;
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
    net::{UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, oneshot},
};
use writing::Writing;
use zlink::{
    Connection,
    connection::{ReadConnection, socket::Socket},
    tokio::unix::Stream,
    varlink_service,
};

type Reading = ReadConnection<<Bounded as Socket>::ReadHalf>;

/// The interface of all services: what there is, and how it is described.
const SERVICE: &str = "org.varlink.service";
/// Clients served at once; further ones wait to be accepted.
const CLIENTS_MAX: usize = 64;
/// Of them and beside them, clients that only listen to events; further ones are refused.
const MONITORS_MAX: usize = 64;
/// Of both, clients that may only read; further ones are closed, so that they keep root from nothing.
const READERS_MAX: usize = 32;

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
    /// Whether others than root may connect, to read.
    has_readers: bool,
}

impl Server {
    /// Listens at `path`, for root alone. Where the daemon runs with another group than root's, users of that group may read. A
    /// socket that nobody listens on is replaced.
    ///
    /// # Errors
    /// Another daemon listens there, or the path cannot be used.
    pub(crate) fn bind(path: &Path) -> Result<Self, Error> {
        let has_readers = getegid() != Gid::from_raw(0);
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
        // To connect, one must be allowed to write.
        let before = umask(Mode::from_bits_truncate(if has_readers { 0o117 } else { 0o177 }));
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.about(&object, "cannot listen")?;
        Ok(Self { listener, path: path.to_owned(), has_readers })
    }

    /// Accepts clients for ever; each one's requests go to `calls`.
    pub(crate) async fn serve(&self, calls: mpsc::Sender<Call>, feed: Feed) {
        let places = Arc::new(Semaphore::new(CLIENTS_MAX));
        let monitors = Arc::new(Semaphore::new(MONITORS_MAX));
        let readers = Arc::new(Semaphore::new(READERS_MAX));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let rights =
                        stream.peer_cred().ok().and_then(|peer| rights(peer.uid(), self.has_readers));
                    let Some(rights) = rights else {
                        tracing::warn!("a client is refused: it is neither root nor the daemon's user");
                        continue;
                    };
                    let reader = (rights == Rights::Read).then(|| readers.clone().try_acquire_owned());
                    let Ok(reader) = reader.transpose() else {
                        tracing::debug!("a client is refused: {READERS_MAX} others read already");
                        continue;
                    };
                    let (calls, feed, monitors) = (calls.clone(), feed.clone(), monitors.clone());
                    let client = Client { calls, feed, monitors, rights };
                    tokio::task::spawn_local(async move {
                        if let Err(error) = client.serve(stream, place).await {
                            tracing::debug!(%error, "client left");
                        }
                        drop(reader);
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

/// What a client may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rights {
    /// What only shows something.
    Read,
    /// Anything.
    All,
}

/// Those of a client of that user, however it came by the socket: root, and whoever the daemon runs as, may all. None for others,
/// unless there is a group that may read: only its users can open the socket then.
fn rights(uid: u32, has_readers: bool) -> Option<Rights> {
    match uid == 0 || uid == geteuid().as_raw() {
        true => Some(Rights::All),
        false => has_readers.then_some(Rights::Read),
    }
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
    rights: Rights,
}

impl Client {
    async fn serve(self, stream: UnixStream, place: OwnedSemaphorePermit) -> zlink::Result<()> {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let client = Arc::new(stream.as_fd().try_clone_to_owned()?);
        let mut write = Writing::beside(&stream)?;
        // The library's half for writing stays until the end: with it goes the connection.
        let (mut read, _write) = Connection::new(Bounded(Stream::try_from(stream)?)).split();
        loop {
            let call = match read.receive_call::<Method>().await {
                Ok((call, _)) => call,
                Err(zlink::Error::UnexpectedEof) => return Ok(()),
                Err(zlink::Error::BufferOverflow) => {
                    let error =
                        Error::new("request", "refused", format!("longer than {LINE_BYTES_MAX} bytes"));
                    return send(&mut write, Reply::Error(error), false).await;
                }
                Err(zlink::Error::Json(error)) => {
                    let error = Error::new("request", "not understood", error.to_string());
                    return send(&mut write, Reply::Error(error), false).await;
                }
                Err(error) => return Err(error),
            };
            let wants_reply = !call.oneway();
            let method = call.method();
            if let Some(name) = method.method.strip_prefix(SERVICE) {
                describe(&mut write, name, method).await?;
                continue;
            }
            let request = match self.allow(Request::read(method.clone())) {
                Ok(request) => request,
                Err(error) => {
                    send(&mut write, Reply::Error(error), false).await?;
                    continue;
                }
            };
            let stream = match &request {
                Request::Monitor { .. } if !call.more() => {
                    write.send(&varlink_service::Error::ExpectedMore).await?;
                    continue;
                }
                Request::Monitor { bond } => {
                    let Ok(monitor) = self.monitors.clone().try_acquire_owned() else {
                        let cause = format!("{MONITORS_MAX} clients listen already");
                        let error = Error::new("monitor", "refused", cause).hint("linkbraid show");
                        send(&mut write, Reply::Error(error), false).await?;
                        continue;
                    };
                    // From here on, so that nothing is missed between the answer and the first event.
                    Some((bond.clone(), self.feed.subscribe(), monitor))
                }
                _ => None,
            };
            let reply = self.answer(request, pid, client.clone()).await;
            let stream = stream.filter(|_| matches!(reply, Reply::Done { .. }));
            if wants_reply {
                send(&mut write, reply, stream.is_some()).await?;
            }
            if let Some((bond, events, _monitor)) = stream {
                // It asks for nothing more: somebody else can.
                drop(place);
                return tokio::select! {
                    ended = stream_events(&mut write, bond, events) => ended,
                    // Whatever the client sends now ends it.
                    () = says_something(&mut read) => Ok(()),
                };
            }
        }
    }

    /// The request, if this client may ask for it.
    fn allow(&self, request: Result<Request, Error>) -> Result<Request, Error> {
        let request = request?;
        if self.rights == Rights::All || request.only_shows() {
            return Ok(request);
        }
        let cause = "only root may ask for it; users of the group that may read may not";
        Err(Error::new("request", "refused", cause).hint(format!("sudo {}", request.command())))
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

async fn says_something(read: &mut Reading) {
    let _ = read.receive_call::<Method>().await;
}

async fn send(write: &mut Writing, reply: Reply, continues: bool) -> zlink::Result<()> {
    match reply {
        Reply::Error(error) => write.send(&Refusal::Refused(error)).await,
        reply => {
            let reply = zlink::Reply::new(Some(reply)).set_continues(continues.then_some(true));
            write.send(&reply).await
        }
    }
}

/// Says what this service has, and how that is described.
async fn describe(write: &mut Writing, name: &str, call: &Method) -> zlink::Result<()> {
    #[derive(Debug, Serialize)]
    struct Described {
        description: String,
    }
    let parameter = |key: &str| call.parameters.as_ref()?.get(key)?.as_str();
    match (name, parameter("interface")) {
        (".GetInfo", _) => {
            let (version, url) = (env!("CARGO_PKG_VERSION"), "https://github.com/linkbraid/linkbraid");
            let interfaces = [SERVICE, INTERFACE];
            let info = varlink_service::Info::new("linkbraid", "linkbraid", version, url, interfaces)?;
            write.send(&zlink::Reply::new(Some(info))).await
        }
        (".GetInterfaceDescription", Some(interface)) => {
            let description = match interface {
                INTERFACE => DESCRIPTION.to_owned(),
                SERVICE => varlink_service::DESCRIPTION.to_string(),
                _ => {
                    let error = varlink_service::Error::InterfaceNotFound { interface: interface.into() };
                    return write.send(&error).await;
                }
            };
            write.send(&zlink::Reply::new(Some(Described { description }))).await
        }
        (".GetInterfaceDescription", None) => {
            let error = varlink_service::Error::InvalidParameter { parameter: "interface".into() };
            write.send(&error).await
        }
        _ => {
            let error = varlink_service::Error::MethodNotFound { method: call.method.as_str().into() };
            write.send(&error).await
        }
    }
}

/// Writes events until the client has gone.
async fn stream_events(
    write: &mut Writing,
    bond: Option<LinkName>,
    mut events: broadcast::Receiver<EventRecord>,
) -> zlink::Result<()> {
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
            send(write, Reply::Event { event }, true).await?;
        }
    }
}

#[cfg(test)]
mod tests;
