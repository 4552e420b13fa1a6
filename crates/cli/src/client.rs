//! One request to the daemon, one reply back; after `monitor`, events for as long as both sides want.

mod events;

pub use events::{Events, follow};

use linkbraid_api::{ANSWER_BYTES_MAX, DEFAULT_SOCKET, Error, ExitCode, Reply, Request};
use linkbraid_terminal::{Failed, report::plain};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

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

/// The reply, and the connection with what the daemon may have sent after it.
fn open(
    socket: &Path,
    request: &Request,
    timeout: Duration,
) -> Result<(Reply, BufReader<UnixStream>), Failure> {
    let mut line = serde_json::to_string(request)
        .map_err(|error| broken(socket, "cannot write the request", &error.to_string()))?;
    line.push('\n');
    let (sender, receiver) = mpsc::channel();
    let path = PathBuf::from(socket);
    thread::spawn(move || {
        // The receiver is gone when the deadline has passed; then nobody wants the answer.
        let _ = sender.send(exchange(&path, &line));
    });
    let (answer, rest) = match receiver.recv_timeout(timeout) {
        Ok(answer) => answer.map_err(|error| no_answer(socket, &error))?,
        Err(_) => {
            let cause = format!("the daemon did not answer within {} s", timeout.as_secs_f32());
            return Err(broken(socket, "no reply", &cause));
        }
    };
    if answer.is_empty() {
        return Err(broken(socket, "no reply", "the daemon closed the connection"));
    }
    understand(socket, &answer).map(|reply| (reply, rest))
}

/// One line of the daemon's, without regard to what may be said when.
fn understand(socket: &Path, line: &[u8]) -> Result<Reply, Failure> {
    serde_json::from_slice(line).map_err(|error| {
        let cause = format!("{error}; the daemon's version may differ from that of this command");
        broken(socket, "cannot understand the reply", &cause)
    })
}

/// Connects, writes the line, and reads one line of at most [`ANSWER_BYTES_MAX`] bytes.
fn exchange(socket: &Path, line: &str) -> io::Result<(Vec<u8>, BufReader<UnixStream>)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(line.as_bytes())?;
    let mut answer = Vec::new();
    let mut reader = BufReader::new(stream);
    (&mut reader).take(ANSWER_BYTES_MAX as u64 + 1).read_until(b'\n', &mut answer)?;
    if answer.len() > ANSWER_BYTES_MAX {
        return Err(too_long(ANSWER_BYTES_MAX));
    }
    Ok((answer, reader))
}

fn too_long(most: usize) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("longer than {most} bytes"))
}

fn no_answer(socket: &Path, error: &io::Error) -> Failure {
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
