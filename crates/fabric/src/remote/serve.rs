//! The program's side.

use super::message::{Opened, Order, Start};
use crate::{
    Address, Error, Join, Result, Transport,
    engine::{Ends, Engine, TapPort, engines_at},
    line::{receive, send},
    shorten_slices,
};
use nix::errno::Errno;
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    sync::mpsc,
    thread::Builder,
};

/// A queue of the interface, and a transport.
type Queue = Engine<Box<dyn Transport>, TapPort<OwnedFd>>;

/// Does what the daemon says that has the other end of standard input, until its queues end or it does. What it says otherwise
/// goes to standard error.
pub fn serve(open: impl FnOnce(&Address, &Join) -> Result<Vec<Box<dyn Transport>>>) -> ExitCode {
    match work(open) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn work(open: impl FnOnce(&Address, &Join) -> Result<Vec<Box<dyn Transport>>>) -> io::Result<()> {
    let line = io::stdin().as_fd().try_clone_to_owned()?;
    let no_sense = || io::Error::other("only a daemon of the same version can start this program");
    let (words, _) = receive(&line).map_err(|_| no_sense())?;
    let order = Order::read(&words).ok_or_else(no_sense)?;
    let opened = order.address.parse::<Address>().and_then(|address| open(&address, &order.join));
    let transports = match opened {
        Ok(transports) => transports,
        Err(error) => return Ok(send(&line, &Opened::Refused(error).words(), &[])?),
    };
    let frame_max = transports.iter().map(|transport| transport.shape().frame_max).min().unwrap_or(0);
    send(&line, &Opened::Place { frame_max }.words(), &[])?;
    let (words, files) = receive(&line)?;
    if words.is_empty() {
        // It does not want the place.
        return Ok(());
    }
    let start = Start::read(&words).ok_or_else(no_sense)?;
    run(&line, engines(start, transports, files).map_err(io::Error::other)?)
}

fn engines(start: Start, transports: Vec<Box<dyn Transport>>, mut files: Vec<OwnedFd>) -> Result<Vec<Queue>> {
    let refused = || Error::new("fabric", "cannot start its queues", "files are missing");
    let ends = files.len().checked_sub(transports.len()).ok_or_else(refused)?;
    let ports = files.split_off(ends).into_iter().map(TapPort::new);
    let ends = Ends::from_files(start.identity, files).ok_or_else(refused)?;
    engines_at(start.config, ends, transports.into_iter().zip(ports).collect())
}

/// Runs all of them, until they end or the daemon does.
fn run(line: &OwnedFd, engines: Vec<Queue>) -> io::Result<()> {
    let (sender, ends) = mpsc::channel();
    let count = engines.len();
    for (number, engine) in engines.into_iter().enumerate() {
        let sender = sender.clone();
        Builder::new().name(format!("queue-{number}")).spawn(move || {
            shorten_slices();
            let ended = catch_unwind(AssertUnwindSafe(|| engine.run()));
            let _ = sender.send(ended.is_ok());
        })?;
    }
    let line = line.try_clone()?;
    Builder::new().name("daemon".to_owned()).spawn(move || {
        // Nothing is said any more, so this is the end of the daemon, or that of this fabric in it. Nothing that the library
        // does at the end of a process is waited for.
        while receive(&line).is_ok_and(|(words, _)| !words.is_empty()) {}
        nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL)
    })?;
    for _ in 0..count {
        // A queue that failed takes the others along: none goes on without it.
        if ends.recv() != Ok(true) {
            return Err(io::Error::from(Errno::ECANCELED));
        }
    }
    Ok(())
}
