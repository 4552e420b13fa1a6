//! linkbraid itself on a host of a lab: the daemon, and the command that talks to it.

use crate::child::Running;
use crate::host::Host;
use crate::{tool, wait};
use linkbraid_api::{Error, Request, varlink::Method};
use linkbraid_terminal::args::{SOCKET_ENV, STATE_ENV};
use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Names the binary to run, before any other rule of [`binary`].
pub const BINARY_ENV: &str = "LINKBRAID_BIN";

/// How long a daemon may take until it answers: the kernel's verifier takes a second of CPU time for each bond whose programs are of
/// another build, and the machine may have other work.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long one answer is waited for before looking whether the daemon still runs.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// How long a daemon may take to end when asked to.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How many lines of a log an error shows.
const LOG_LINES: usize = 5;

/// The `linkbraid` to run: the one that `LINKBRAID_BIN` names, or [`beside`] this program.
pub fn binary() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os(BINARY_ENV).map(PathBuf::from) {
        let missing = || {
            let object = path.display().to_string();
            Error::new(object, format!("cannot use what {BINARY_ENV} names"), "no such file")
        };
        return if path.is_file() { Ok(path) } else { Err(missing()) };
    }
    beside().ok_or_else(|| {
        Error::new("lab", "cannot find 'linkbraid'", "it is not built beside this program")
            .hint("cargo build")
    })
}

/// The `linkbraid` that was installed with this program, or that cargo has built beside this program or test, in its own
/// profile first.
pub fn beside() -> Option<PathBuf> {
    find_beside(&std::env::current_exe().ok()?)
}

fn find_beside(own: &Path) -> Option<PathBuf> {
    // target/PROFILE/PROGRAM, target/PROFILE/deps/TEST and PREFIX/libexec/linkbraid/PROGRAM.
    let above = own.ancestors().skip(1).take(3);
    let folders = above.flat_map(|f| [f.to_owned(), f.join("release"), f.join("debug"), f.join("bin")]);
    folders.map(|f| f.join("linkbraid")).find(|path| path.is_file())
}

/// A daemon on a host, killed on drop. What it has set up on the host stays, as it does after a real daemon's death.
#[derive(Debug)]
pub struct Daemon {
    process: Running,
    log: PathBuf,
}

impl<'lab> Host<'lab> {
    /// The socket of the daemon of this host.
    pub fn socket(&self) -> PathBuf {
        self.lab.folder().join(format!("{}.sock", self.name()))
    }

    /// The state folder of the daemon of this host.
    pub fn state_dir(&self) -> PathBuf {
        self.lab.folder().join(format!("{}.state", self.name()))
    }

    /// The log of the daemon of this host; a daemon started again writes on at its end.
    pub fn log(&self) -> PathBuf {
        self.lab.folder().join(format!("{}.log", self.name()))
    }

    /// Starts `linkbraid daemon` ([`binary`]) and waits until it answers: then it has taken over the bonds that an earlier
    /// one left. Its socket is there long before.
    pub fn daemon(&self) -> Result<Daemon, Error> {
        self.daemon_of(&binary()?)
    }

    /// The same, of another binary.
    pub fn daemon_of(&self, binary: &Path) -> Result<Daemon, Error> {
        let log = self.log();
        let cannot =
            |e: std::io::Error| Error::new(log.display().to_string(), "cannot write the log", e.to_string());
        let file = File::options().create(true).append(true).open(&log).map_err(cannot)?;
        let errors = file.try_clone().map_err(cannot)?;
        let mut command = self.linkbraid_command(binary);
        command.arg("daemon").stdin(Stdio::null()).stdout(file).stderr(errors);
        let mut process = Running::start(command)?;
        let socket = self.socket();
        let what = format!("the daemon of host '{}' to answer", self.name());
        wait::wait_for(START_LIMIT, &what, || match (process.ended(), answers(&socket)) {
            (Some(status), _) => Ok(Err(died(self.name(), status, &log))),
            (None, Ok(())) => Ok(Ok(())),
            (None, Err(error)) => Err(error.to_string()),
        })??;
        Ok(Daemon { process, log })
    }

    /// Runs one `linkbraid` command line (split at spaces) against this host's daemon; its standard output.
    pub fn linkbraid(&self, line: &str) -> Result<String, Error> {
        let mut command = self.linkbraid_command(binary()?);
        tool::run(command.args(line.split_whitespace()))
    }

    /// What one `linkbraid` command line says as JSON.
    pub fn ask<T: DeserializeOwned>(&self, line: &str) -> Result<T, Error> {
        let text = self.linkbraid(&format!("{line} --json"))?;
        let object = format!("host {}", self.name());
        let bad = |e: serde_json::Error| Error::new(object, format!("cannot read '{line}'"), e.to_string());
        serde_json::from_str(&text).map_err(bad)
    }

    /// The `linkbraid` command for this host's daemon, or another that runs it, without words yet.
    pub fn linkbraid_command(&self, binary: impl AsRef<OsStr>) -> Command {
        let mut command = self.command(binary);
        command.env(SOCKET_ENV, self.socket()).env(STATE_ENV, self.state_dir());
        command
    }
}

impl Daemon {
    /// Its process number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// Asks it to end (SIGTERM), and waits for that.
    pub fn stop(mut self) -> Result<ExitStatus, Error> {
        self.process.signal(Signal::SIGTERM)?;
        wait::wait_for(STOP_LIMIT, "the daemon to end", || self.process.ended().ok_or("it still runs"))
    }

    /// Kills it without warning, as a crash would.
    pub fn kill(self) {
        drop(self);
    }
}

/// Asks the daemon something; whether it said anything in time.
fn answers(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    let mut question = serde_json::to_vec(&Method::try_from(&Request::Show { name: None })?)?;
    question.push(0);
    stream.write_all(&question)?;
    match BufReader::new(stream).skip_until(0)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn died(host: &str, status: ExitStatus, log: &Path) -> Error {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(LOG_LINES).collect();
    let said = lines.into_iter().rev().collect::<Vec<_>>().join("; ");
    Error::new(format!("host {host}"), "the daemon ended before it answered", format!("{status}: {said}"))
}

#[cfg(test)]
mod tests;
