//! Metrics by HTTP, from a thread of its own: `GET /metrics`, and nothing else.
//!
//! For a scrape the control thread makes one snapshot of its records, in one turn of its loop. Scrapes within [`FRESH`], or longer if it
//! took long, share it, whoever asks and however often. The text is made here, once in each format. A client that asks for too much,
//! sends too slowly or reads too slowly loses its connection. No more than [`CLIENTS_MAX`] are served at a time: a further one takes the
//! place of the one that has said nothing for longest.

mod http;

use crate::io::error::About as _;
use http::{Answer, Asked};
use linkbraid_api::{Error, EventRecord, MetricsAddress, Records};
use linkbraid_metrics::{Events, Format, Snapshot};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, VecDeque},
    fs, io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    thread::{Builder, JoinHandle},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, UnixListener, UnixStream},
    runtime,
    sync::{Mutex, Semaphore, broadcast, mpsc, oneshot},
    task::{AbortHandle, LocalSet},
    time::{Instant, sleep, timeout},
};

/// Name of the thread, at most 15 bytes.
const THREAD_NAME: &str = "lb-metrics";
/// Clients served at a time.
const CLIENTS_MAX: usize = 8;
/// The longest request with all its headers, in bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// How long a client may take for its request, and again for the answer.
const CLIENT_MAX: Duration = Duration::from_secs(5);
/// How long the control thread may take for a snapshot: it may wait for the kernel. Less than Prometheus waits for a scrape.
const SNAPSHOT_MAX: Duration = Duration::from_secs(4);
/// How long a snapshot is used again, at least...
const FRESH: Duration = Duration::from_millis(200);
/// ...and for so many times as long as it took: the control thread spends no more than a twentieth of its time on snapshots.
const FRESH_TIMES: u32 = 20;
/// How long until it is tried again to listen: the address may be one that a bond is yet to get.
const RETRY: Duration = Duration::from_secs(2);
/// What fails where the daemon cannot listen.
const CANNOT: &str = "cannot serve metrics";
/// The version of the daemon.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the control thread is to send a snapshot.
pub(super) type Ask = oneshot::Sender<Snapshot>;

/// The thread; it ends with this.
pub(super) struct Metrics {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Starts the thread in the network namespace of the caller. It asks for snapshots by `asks` and counts the events of `feed`. Where
    /// it cannot listen, it says why in the log, and tries again.
    ///
    /// # Errors
    /// There is no room for a thread.
    pub(super) fn start(
        address: MetricsAddress,
        feed: broadcast::Receiver<EventRecord>,
        asks: mpsc::Sender<Ask>,
    ) -> Result<Self, Error> {
        let what = "cannot start the thread that serves metrics";
        let runtime = runtime::Builder::new_current_thread().enable_all().build().about("daemon", what)?;
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            LocalSet::new().block_on(&runtime, async {
                let source = Rc::new(Source { asks, last: Mutex::default(), events: RefCell::default() });
                tokio::select! {
                    _ = stopped => {}
                    () = source.count(feed) => {}
                    () = serve(&address, source.clone()) => {}
                }
            });
        };
        let thread = Builder::new().name(THREAD_NAME.to_owned()).spawn(run).about("daemon", what)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// What metrics are made of.
struct Source {
    asks: mpsc::Sender<Ask>,
    last: Mutex<Option<Last>>,
    events: RefCell<Events>,
}

/// The last snapshot.
struct Last {
    snapshot: Arc<Snapshot>,
    /// Until when it is used.
    until: Instant,
    /// What was made of it, in each format that somebody has asked for.
    answers: Vec<(Format, Answer)>,
}

impl Source {
    /// Counts events for as long as the daemon runs.
    async fn count(&self, mut feed: broadcast::Receiver<EventRecord>) {
        loop {
            match feed.recv().await {
                Ok(event) => self.events.borrow_mut().note(&event),
                Err(broadcast::error::RecvError::Lagged(lost)) => self.events.borrow_mut().lost(lost),
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }

    /// The metrics of a snapshot that is fresh; none if the daemon stops, or cannot make one in time.
    async fn metrics(&self, format: Format) -> Option<Answer> {
        // Whoever comes meanwhile waits for the same one.
        let mut guard = self.last.lock().await;
        let fresh = guard.take().filter(|last| Instant::now() < last.until);
        let last = guard.insert(match fresh {
            Some(fresh) => fresh,
            None => self.snapshot().await?,
        });
        if let Some((_, made)) = last.answers.iter().find(|(made, _)| *made == format) {
            return Some(made.clone());
        }
        let answer =
            match linkbraid_metrics::text(VERSION, last.snapshot.clone(), &self.events.borrow(), format) {
                Ok(text) => Answer::metrics(format, text),
                Err(error) => Answer::failed(&error.to_string()),
            };
        last.answers.push((format, answer.clone()));
        Some(answer)
    }

    async fn snapshot(&self) -> Option<Last> {
        let (answer, answered) = oneshot::channel();
        let asked = async {
            self.asks.send(answer).await.ok()?;
            answered.await.ok()
        };
        let snapshot = timeout(SNAPSHOT_MAX, asked).await.ok()??;
        self.events.borrow_mut().keep(&names(&snapshot.records));
        let until = Instant::now() + fresh(snapshot.took);
        Some(Last { snapshot: Arc::new(snapshot), until, answers: Vec::new() })
    }

    async fn answer(&self, asked: &Asked) -> Answer {
        match asked {
            Asked::Metrics { format } => self.metrics(*format).await.unwrap_or_else(Answer::busy),
            Asked::Other(answer) => answer.clone(),
        }
    }
}

/// How long a snapshot is used that took so long.
fn fresh(took: Duration) -> Duration {
    FRESH.max(took.saturating_mul(FRESH_TIMES))
}

/// Bonds and fabrics that there are.
fn names(records: &[Records]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for part in records {
        match part {
            Records::Bonds(all) => names.extend(all.iter().map(|bond| bond.name.as_str())),
            Records::Fabrics(all) => names.extend(all.iter().map(|fabric| fabric.name.as_str())),
            _ => {}
        }
    }
    names
}

/// A connection of whatever kind.
trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// A socket that listens.
enum Listener {
    Tcp(TcpListener),
    /// Its file goes first: while the socket is open, the kernel gives the file's inode to no other one.
    Unix {
        _unlink: Unlink,
        listener: UnixListener,
    },
}

impl Listener {
    async fn bind(address: &MetricsAddress) -> Result<Self, Error> {
        let refused = |cause: io::Error| refused(address, &cause);
        let path = match address {
            MetricsAddress::Tcp(socket) => {
                return TcpListener::bind(socket).await.map(Self::Tcp).map_err(refused);
            }
            MetricsAddress::Unix(path) => path,
        };
        match fs::symlink_metadata(path) {
            Ok(there) if !there.file_type().is_socket() => {
                let cause = "the path is that of another file";
                let hint = format!("ls -l {}", path.display());
                return Err(Error::new(address.to_string(), CANNOT, cause).hint(hint));
            }
            Ok(_) => match UnixStream::connect(path).await.err() {
                // Nobody listens there any more.
                Some(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).map_err(refused)?;
                }
                Some(cause) if cause.kind() != io::ErrorKind::WouldBlock => return Err(refused(cause)),
                // Somebody does, or has even more clients than wait for it.
                _ => return Err(refused(io::ErrorKind::AddrInUse.into())),
            },
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(refused)?;
        let unlink = Unlink { path: path.clone(), file: file(path).map_err(refused)? };
        // The group is that of the folder, where the folder has the bit for it.
        fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(refused)?;
        Ok(Self::Unix { _unlink: unlink, listener })
    }

    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
            Self::Unix { listener, .. } => Box::new(listener.accept().await?.0),
        })
    }
}

/// Why the kernel does not let the daemon listen, and what shows more.
fn refused(address: &MetricsAddress, cause: &io::Error) -> Error {
    let (in_use, folder) = match address {
        MetricsAddress::Tcp(socket) => (format!("ss -ltnp 'sport = :{}'", socket.port()), None),
        MetricsAddress::Unix(path) => (format!("ss -lxp src {}", path.display()), path.parent()),
    };
    let (cause, hint) = match (cause.kind(), folder) {
        (io::ErrorKind::AddrInUse, _) => ("another program listens there".to_owned(), in_use),
        (io::ErrorKind::ReadOnlyFilesystem, Some(folder)) => {
            let folder = folder.display();
            let setting = format!("'ReadWritePaths={folder}' in its unit changes that");
            let cause = format!("{folder} is read-only for the daemon; {setting}");
            (cause, "systemctl edit linkbraid".to_owned())
        }
        (_, Some(folder)) => (cause.to_string(), format!("ls -ld {}", folder.display())),
        (io::ErrorKind::PermissionDenied, None) => {
            let hint = "linkbraid daemon --metrics 127.0.0.1:9919";
            ("the daemon has no right to ports below 1024".to_owned(), hint.to_owned())
        }
        (io::ErrorKind::AddrNotAvailable, None) => {
            ("this host does not have the address".to_owned(), "ip -br address".to_owned())
        }
        (_, None) => (cause.to_string(), "ip -br address".to_owned()),
    };
    Error::new(address.to_string(), CANNOT, cause).hint(hint)
}

/// Removes a socket's file with the value, unless another one has its path by then.
struct Unlink {
    path: PathBuf,
    file: (u64, u64),
}

impl Drop for Unlink {
    fn drop(&mut self) {
        if file(&self.path).is_ok_and(|there| there == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The device and the inode of the file at a path.
fn file(path: &Path) -> io::Result<(u64, u64)> {
    let there = fs::symlink_metadata(path)?;
    Ok((there.dev(), there.ino()))
}

/// Listens as soon as that can be done.
async fn listen(address: &MetricsAddress) -> Listener {
    let mut said = None;
    loop {
        match Listener::bind(address).await {
            Ok(listener) => {
                tracing::info!("metrics are at {address}");
                return listener;
            }
            Err(error) if said.as_ref() == Some(&error) => {}
            Err(error) => {
                let hint = error.hint.as_deref().unwrap_or_default();
                tracing::error!(%error, hint, "tried again until it can be done");
                said = Some(error);
            }
        }
        sleep(RETRY).await;
    }
}

/// Serves clients for ever.
async fn serve(address: &MetricsAddress, source: Rc<Source>) {
    let listener = listen(address).await;
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    let mut clients = Clients::default();
    loop {
        match listener.accept().await {
            Ok(stream) => {
                if places.available_permits() == 0 {
                    clients.end_one();
                }
                let Ok(place) = places.clone().acquire_owned().await else { return };
                let (source, has_asked) = (source.clone(), Rc::new(Cell::new(false)));
                let asked = has_asked.clone();
                let task = tokio::task::spawn_local(async move {
                    if let Err(error) = client(stream, &source, &asked).await {
                        tracing::debug!(%error, "a client of the metrics left");
                    }
                    drop(place);
                });
                clients.add(task.abort_handle(), has_asked);
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client of the metrics");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// The clients that are served, in the order in which they came: what ends each, and whether it has sent its request.
#[derive(Default)]
struct Clients(VecDeque<(AbortHandle, Rc<Cell<bool>>)>);

impl Clients {
    fn add(&mut self, task: AbortHandle, has_asked: Rc<Cell<bool>>) {
        self.0.retain(|(task, _)| !task.is_finished());
        self.0.push_back((task, has_asked));
    }

    /// Ends the first one that has not asked yet, or the first of all: whoever asks at once and reads at once is served long before.
    fn end_one(&mut self) {
        self.0.retain(|(task, _)| !task.is_finished());
        let at = self.0.iter().position(|(_, has_asked)| !has_asked.get()).unwrap_or(0);
        if let Some((task, _)) = self.0.remove(at) {
            task.abort();
        }
    }
}

/// Serves one client: one request, one answer.
async fn client(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    source: &Source,
    has_asked: &Cell<bool>,
) -> io::Result<()> {
    let asked = timeout(CLIENT_MAX, request(&mut stream)).await??;
    has_asked.set(true);
    let answer = source.answer(&asked).await;
    timeout(CLIENT_MAX, async {
        stream.write_all(answer.head().as_bytes()).await?;
        stream.write_all(answer.body().as_bytes()).await?;
        stream.shutdown().await
    })
    .await?
}

/// Reads one request as far as its headers go.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Asked> {
    let mut bytes = Vec::new();
    loop {
        let room = (REQUEST_BYTES_MAX + 1 - bytes.len()) as u64;
        if (&mut *stream).take(room).read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(asked) = http::read(&bytes, REQUEST_BYTES_MAX) {
            return Ok(asked);
        }
    }
}

#[cfg(test)]
mod tests;
