//! Processes that end with the value that holds them.

use crate::tool;
use crate::wait::wait_for;
use linkbraid_api::Error;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A running process and all its children: one process group, killed and reaped on drop, and by the kernel when the
/// thread that started it ends.
#[derive(Debug)]
pub struct Running {
    child: Child,
    words: String,
    reaped: bool,
}

impl Running {
    /// Starts `command` in a process group of its own.
    pub fn start(mut command: Command) -> Result<Self, Error> {
        let program = command.get_program().to_string_lossy().into_owned();
        let words = tool::words(&command);
        command.process_group(0);
        // SAFETY: two system calls between fork and exec; they neither allocate nor lock.
        unsafe {
            command.pre_exec(|| {
                // Signals that the caller holds back, as benchmarks do, would be held back from the child, too.
                SigSet::empty().thread_set_mask()?;
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(Into::into)
            });
        }
        let child = command.spawn().map_err(|error| tool::cannot_start(&program, &error))?;
        Ok(Self { child, words, reaped: false })
    }

    /// Starts a server whose words nobody reads, and waits until it serves.
    pub fn serve(mut command: Command, limit: Duration, serves: impl Fn() -> bool) -> Result<Self, Error> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self::start(command)?;
        let words = server.words.clone();
        wait_for(limit, &format!("'{words}' to listen"), || match server.ended() {
            Some(status) => Ok(Err(Error::new("lab", format!("'{words}' ended"), status.to_string()))),
            None if serves() => Ok(Ok(())),
            None => Err("it does not yet"),
        })??;
        Ok(server)
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The command as it would be typed.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// The process itself, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten();
        self.reaped |= status.is_some();
        status
    }

    /// Sends a signal to the process itself.
    pub fn signal(&self, signal: Signal) -> Result<(), Error> {
        nix::sys::signal::kill(pid(&self.child), signal)
            .map_err(|errno| Error::new("lab", format!("cannot signal '{}'", self.words), errno.desc()))
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Result<ExitStatus, Error> {
        let status = self.child.wait().map_err(|e| Error::new("lab", &self.words, e.to_string()))?;
        self.reaped = true;
        Ok(status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group may outlive its leader; a group that is gone is what we want.
        let _ = killpg(pid(&self.child), Signal::SIGKILL);
        if !self.reaped {
            let _ = self.child.wait();
        }
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests;
