//! Emulated machines with a stock kernel, where this one does not have what is to be measured: scripts of the source tree
//! boot them, and say a line for each thing that they have measured.

use crate::experiments::prelude::*;
use linkbraid_lab::Running;
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

/// What a case that could not be measured is called.
pub(super) const CASE: &str = "guest";
/// Where the source tree is, if the current folder is not in it.
const SOURCE_ENV: &str = "LINKBRAID_SOURCE";
/// How long guests may take to end when asked to.
const STOP_LIMIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(200);
/// Lines that a script says last, kept for an error.
const LINES: usize = 5;

/// What is done with a line that a script says.
pub(super) type Each<'a> = &'a mut dyn FnMut(&mut Run<'_>, &str) -> Result<(), Error>;

/// Runs a script to its end, at most for `limit` of real time, which is long: guests are emulated. How it ended and what it
/// said last, for an error.
pub(super) fn follow(
    run: &mut Run<'_>,
    mut command: Command,
    limit: Duration,
    each: Each<'_>,
) -> Result<String, Error> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut guest = Running::start(command)?;
    let (lines, said) = mpsc::channel();
    for pipe in [
        guest.child().stdout.take().map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>),
        guest.child().stderr.take().map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>),
    ] {
        let (Some(pipe), lines) = (pipe, lines.clone()) else { continue };
        std::thread::spawn(move || {
            let all = BufReader::new(pipe).lines().map_while(Result::ok);
            // Nobody listens any more after Ctrl-C.
            all.take_while(|line| lines.send(line.clone()).is_ok()).for_each(drop);
        });
    }
    drop(lines);
    let last = relay(run, &said, limit, each).inspect_err(|_| stop(&mut guest))?;
    let status = guest.wait()?;
    Ok(format!("{status}; it said last: {}", last.join("; ")))
}

/// Passes lines on until there are no more; the last ones.
fn relay(
    run: &mut Run<'_>,
    said: &Receiver<String>,
    limit: Duration,
    each: Each<'_>,
) -> Result<Vec<String>, Error> {
    let due = Instant::now() + limit;
    let mut last: Vec<String> = Vec::new();
    while Instant::now() < due {
        run.check()?;
        match said.recv_timeout(LOOK) {
            Ok(line) => {
                each(run, &line)?;
                last.push(line.trim().to_owned());
                last.drain(..last.len().saturating_sub(LINES));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(last),
        }
    }
    Err(Error::new(CASE, "not measured", format!("it was not done after {limit:?}")))
}

/// The script takes its guests down when asked to end; killed, it could not.
fn stop(guest: &mut Running) {
    // One that has ended by itself is what we want.
    let _ = guest.signal(Signal::SIGTERM);
    let _ = linkbraid_lab::wait_for(STOP_LIMIT, "the guest to end", || guest.ended().ok_or("it still runs"));
}

/// A script of an experiment: of the tree that is named, or that the current folder is in.
pub(super) fn script(relative: &str, experiment: &str) -> Result<PathBuf, Error> {
    let named = std::env::var_os(SOURCE_ENV).map(|tree| Path::new(&tree).join(relative));
    let found = match &named {
        Some(script) => Some(script.clone()).filter(|script| script.is_file()),
        None => std::env::current_dir().ok().and_then(|here| find(&here, relative)),
    };
    let missing = || match &named {
        Some(script) => format!("{SOURCE_ENV}: no {}", script.display()),
        None => format!("no {relative} in the current folder or above it, and {SOURCE_ENV} is not set"),
    };
    let hint = format!("git clone of the sources, then in it: linkbraid bench run {experiment}");
    found.ok_or_else(|| Error::new(CASE, "not measured", missing()).hint(hint))
}

fn find(from: &Path, relative: &str) -> Option<PathBuf> {
    from.ancestors().map(|folder| folder.join(relative)).find(|script| script.is_file())
}

#[cfg(test)]
mod tests;
