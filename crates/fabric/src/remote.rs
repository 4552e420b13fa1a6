//! Queues of a node in a program of their own, for a transport that rests on a library that is not ours: what goes wrong in it
//! ends that program, and not the daemon.
//!
//! The daemon starts the program ([`Remote::start`]) with one end of a socket as its standard input. It says which place to
//! take, and is sent the longest frame or an error. Then it hands over the files of the interface's queues and of the ends of
//! the session ([`Ends`]), with the settings; from then on both share memory and say nothing ([`Remote::run`]). Each sees the
//! other's end by the end of the socket.

mod message;
mod serve;

pub use serve::serve;

use crate::{
    Address, Error, Join, Result,
    engine::{Config, Control, ends},
    line::{self, receive, send},
};
use message::{Opened, Order, Start};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How long the program may take to end once it was asked to.
const END_MAX: Duration = Duration::from_secs(1);

/// A program that has taken a node's place. It ends when this is dropped.
#[derive(Debug)]
pub struct Remote {
    program: Program,
    join: Join,
    frame_max: usize,
}

/// The process, and the socket whose other end only it has.
#[derive(Debug)]
pub struct Program {
    child: Mutex<Child>,
    line: OwnedFd,
}

impl Remote {
    /// Starts a program that takes a place on the transport at `address`.
    ///
    /// # Errors
    /// The program cannot be started; or what it says, as [`Address::open`].
    pub fn start(program: &Path, address: &Address, join: &Join) -> Result<Self> {
        let name = address.to_string();
        let cannot = |cause: String| Error::new(&name, format!("cannot run '{}'", program.display()), cause);
        let (line, theirs) = line::pair().map_err(|errno| cannot(errno.desc().to_lowercase()))?;
        let mut command = Command::new(program);
        let child = command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).spawn();
        // It had the other end of the socket.
        drop(command);
        let child = child.map_err(|error| match error.raw_os_error() {
            Some(errno) => cannot(crate::error::words(Errno::from_raw(errno))),
            None => cannot(error.to_string()),
        })?;
        let program = Program { child: Mutex::new(child), line };
        let order = Order { address: name.clone(), join: *join }.words();
        let words = match send(&program.line, &order, &[]).and_then(|()| receive(&program.line)) {
            Ok((words, _)) => words,
            // It has ended, before it was asked or with what it was asked unread.
            Err(Errno::EPIPE | Errno::ECONNRESET) => Vec::new(),
            Err(errno) => return Err(cannot(format!("it does not answer: {}", errno.desc().to_lowercase()))),
        };
        match Opened::read(&words) {
            Some(Opened::Place { frame_max }) => Ok(Self { program, join: *join, frame_max }),
            Some(Opened::Refused(error)) => Err(error),
            None if words.is_empty() => Err(cannot(
                program
                    .wait()
                    .map_or_else(|error| error.to_string(), |status| format!("it ended at once: {status}")),
            )),
            None => Err(cannot("it is of another version".to_owned())),
        }
    }

    /// Longest frame, head and body together, in bytes.
    #[must_use]
    pub fn frame_max(&self) -> usize {
        self.frame_max
    }

    /// Has the program run an engine for each of these queues of the interface; the session's end.
    ///
    /// # Errors
    /// As [`ends`]; or the program has ended.
    pub fn run(self, config: Config, epoch: u64, queues: Vec<OwnedFd>) -> Result<(Control, Program)> {
        let (control, ends) = ends(config, (self.join.node, self.join.nodes), queues.len(), epoch)?;
        let start = Start { identity: control.shared().identity(), config };
        let files: Vec<OwnedFd> = ends.into_files().into_iter().chain(queues).collect();
        send(&self.program.line, &start.words(), &files)
            .map_err(|errno| Error::system("fabric", "cannot start its queues", errno))?;
        Ok((control, self.program))
    }
}

impl Program {
    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child().id()
    }

    /// Waits until it ends, however it does.
    ///
    /// # Errors
    /// Those of `waitpid(2)`.
    pub fn wait(&self) -> std::io::Result<ExitStatus> {
        // Not under the lock: who wants it to end must get at it.
        self.ends_within(PollTimeout::NONE);
        self.child().wait()
    }

    /// Waits until it has ended, which its queues were asked to do, and kills it if it does not.
    pub fn end(&self) {
        if !self.ends_within(PollTimeout::try_from(END_MAX).unwrap_or(PollTimeout::MAX)) {
            // Refused only if it has ended.
            let _ = self.child().kill();
        }
    }

    fn ends_within(&self, time: PollTimeout) -> bool {
        loop {
            match poll(&mut [PollFd::new(self.line.as_fd(), PollFlags::empty())], time) {
                Err(Errno::EINTR) => {}
                came => return came.is_ok_and(|came| came > 0),
            }
        }
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let mut child = self.child();
        // Both are refused only if it was waited for already.
        let _ = child.kill().and_then(|()| child.wait().map(drop));
    }
}
