//! One request to the daemon, one reply back; after `monitor`, events for as long as both sides want.

mod events;

pub use events::{Events, follow};

use crate::{Failed, report::plain};
use linkbraid_api::{
    DEFAULT_SOCKET, Error, ExitCode, Reply, Request,
    varlink::{Method, Refusal},
};
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use zlink::Call;
use zlink::tokio::unix::{Connection, Stream};

/// How long one request may take from connecting to the reply. The longest is `member add`, which waits up to 27 s for
/// peers to answer through the new link; what else the daemon does takes well under a second.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody listens on the socket.
    NoDaemon(Error),
    /// Somebody does, but the exchange failed.
    Broken(Error),
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Broken(error) => Self::refused(error),
            Failure::NoDaemon(error) => Self { error, code: ExitCode::NoDaemon },
        }
    }
}

/// Why a reply that is none of those expected is no success.
pub fn unexpected(socket: &Path, what: &str) -> Failed {
    let cause = "the daemon sent an unexpected reply; its version may differ from that of this command";
    Failed::refused(Error::new(socket.display().to_string(), what, cause))
}

/// Sends `request` to the daemon on `socket` and waits for its reply, `timeout` at most.
///
/// The exchange runs on its own thread, so that one deadline covers connecting (which blocks while the daemon's
/// backlog is full), writing and reading.
pub fn ask(socket: &Path, request: &Request, timeout: Duration) -> Result<Reply, Failure> {
    open(socket, request, timeout).map(|(reply, _)| reply)
}

/// A connection, and what drives it.
#[derive(Debug)]
struct Link {
    runtime: Runtime,
    connection: Connection,
}

/// The reply, and the connection with what the daemon may have sent after it.
fn open(socket: &Path, request: &Request, timeout: Duration) -> Result<(Reply, Link), Failure> {
    let call = Method::try_from(request)
        .map_err(|error| broken(socket, "cannot write the request", &error.to_string()))?;
    let call = Call::new(call).set_more(matches!(request, Request::Monitor { .. }));
    let (sender, receiver) = mpsc::channel();
    let path = PathBuf::from(socket);
    thread::spawn(move || {
        // The receiver is gone when the deadline has passed; then nobody wants the answer.
        let _ = sender.send(exchange(&path, &call));
    });
    match receiver.recv_timeout(timeout) {
        Ok(answer) => answer.map_err(|error| no_answer(socket, error)),
        Err(_) => {
            let cause = format!("the daemon did not answer within {} s", timeout.as_secs_f32());
            Err(broken(socket, "no reply", &cause))
        }
    }
}

/// Connects, sends the call, and takes one reply.
fn exchange(socket: &Path, call: &Call<Method>) -> zlink::Result<(Reply, Link)> {
    let stream = UnixStream::connect(socket)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut connection = {
        let _within = runtime.enter();
        Connection::new(Stream::try_from(stream)?)
    };
    let reply = runtime.block_on(async {
        connection.send_call(call, Vec::new()).await?;
        receive(&mut connection).await
    })?;
    Ok((reply, Link { runtime, connection }))
}

/// The next reply.
async fn receive(connection: &mut Connection) -> zlink::Result<Reply> {
    let (reply, _) = connection.receive_reply::<Reply, Refusal>().await?;
    match reply {
        Ok(reply) => reply.into_parameters().ok_or(zlink::Error::MissingParameters),
        Err(Refusal::Refused(error)) => Ok(Reply::Error(error)),
    }
}

fn no_answer(socket: &Path, error: zlink::Error) -> Failure {
    match error {
        zlink::Error::Io(error) => unreached(socket, &error),
        zlink::Error::UnexpectedEof => broken(socket, "no reply", "the daemon closed the connection"),
        error => not_understood(socket, &error),
    }
}

fn not_understood(socket: &Path, error: &zlink::Error) -> Failure {
    let error = match error {
        zlink::Error::Json(error) => error.to_string(),
        error => error.to_string(),
    };
    let cause = format!("{error}; the daemon's version may differ from that of this command");
    broken(socket, "cannot understand the reply", &cause)
}

fn unreached(socket: &Path, error: &io::Error) -> Failure {
    let object = socket.display().to_string();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory => Failure::NoDaemon(
            Error::new(object, "cannot reach the daemon", "none is running on this socket")
                .hint(start_command(socket)),
        ),
        ErrorKind::PermissionDenied => Failure::Broken(
            Error::new(object, "cannot reach the daemon", "permission denied; only root may use this socket")
                .hint(format!("sudo {}", this_command())),
        ),
        // The path does not fit into `sockaddr_un`.
        ErrorKind::InvalidInput => Failure::Broken(
            Error::new(
                object,
                "cannot reach the daemon",
                "a socket's path has 1 to 107 bytes and no zero byte",
            )
            .hint(format!("linkbraid show --socket {DEFAULT_SOCKET}")),
        ),
        _ => broken(socket, "cannot talk to the daemon", &plain(error)),
    }
}

fn broken(socket: &Path, what: &str, cause: &str) -> Failure {
    let hint = if socket == Path::new(DEFAULT_SOCKET) && has_unit() {
        "systemctl status linkbraid".to_owned()
    } else {
        format!("linkbraid show --socket {}", quoted(&socket.to_string_lossy()))
    };
    Failure::Broken(Error::new(socket.display().to_string(), what, cause).hint(hint))
}

/// The command that starts a daemon on this socket.
fn start_command(socket: &Path) -> String {
    if socket != Path::new(DEFAULT_SOCKET) {
        return format!("linkbraid daemon --socket {}", quoted(&socket.to_string_lossy()));
    }
    let command = if has_unit() { "systemctl start linkbraid" } else { "linkbraid daemon" };
    command.to_owned()
}

/// Whether systemd runs this machine and knows our unit.
fn has_unit() -> bool {
    let units = [
        "/etc/systemd/system",
        "/usr/local/lib/systemd/system",
        "/usr/lib/systemd/system",
        "/lib/systemd/system",
    ];
    Path::new("/run/systemd/system").exists()
        && units.iter().any(|dir| Path::new(dir).join("linkbraid.service").exists())
}

/// The command line as it was typed, so that it can be pasted again.
fn this_command() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word)).collect::<Vec<_>>();
    format!("linkbraid {}", words.join(" "))
}

/// A word quoted for a shell where it needs to be.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
