//! The socket: JSON lines in, JSON lines out, one request at a time from each client.

use crate::error::About as _;
use linkbraid_api::{Error, LINE_BYTES_MAX, Reply, Request};
use std::{
    fs, io,
    os::unix::{fs::PermissionsExt as _, net::UnixStream as StdStream},
    path::{Path, PathBuf},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc, oneshot},
};

/// Clients served at once; further ones wait to be accepted.
const CLIENTS_MAX: usize = 64;

/// A request and where its answer goes.
pub(crate) type Call = (Request, oneshot::Sender<Reply>);

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
        let listener = UnixListener::bind(path).about(&object, "cannot listen")?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            .about(&object, "cannot protect the socket")?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Accepts clients for ever; each one's requests go to `calls`.
    pub(crate) async fn serve(&self, calls: mpsc::Sender<Call>) {
        let places = std::sync::Arc::new(Semaphore::new(CLIENTS_MAX));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let calls = calls.clone();
                    tokio::task::spawn_local(async move {
                        if let Err(error) = serve_client(stream, calls).await {
                            tracing::debug!(%error, "client left");
                        }
                        drop(place);
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

async fn serve_client(stream: UnixStream, calls: mpsc::Sender<Call>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = (&mut read).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line).await?;
        if n == 0 {
            return Ok(());
        }
        let reply = if line.len() > LINE_BYTES_MAX {
            Reply::Error(Error::new("request", "refused", format!("longer than {LINE_BYTES_MAX} bytes")))
        } else {
            answer(&line, &calls).await
        };
        let mut text = serde_json::to_vec(&reply)?;
        text.push(b'\n');
        write.write_all(&text).await?;
        if line.len() > LINE_BYTES_MAX {
            return Ok(());
        }
    }
}

async fn answer(line: &[u8], calls: &mpsc::Sender<Call>) -> Reply {
    let request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => return Reply::Error(Error::new("request", "not understood", error.to_string())),
    };
    let (reply, answer) = oneshot::channel();
    let gone = || Reply::Error(Error::new("daemon", "no answer", "the daemon is stopping"));
    if calls.send((request, reply)).await.is_err() {
        return gone();
    }
    answer.await.unwrap_or_else(|_| gone())
}
