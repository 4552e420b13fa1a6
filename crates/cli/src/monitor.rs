//! `linkbraid monitor`: events as they happen, until somebody ends it.

use crate::client::{self, Events};
use crate::text::{self, Clock};
use linkbraid_api::{Error, EventRecord, ExitCode, LinkName, Reply, Request};
use linkbraid_terminal::report::{self, Failed};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::{process, thread};

/// Prints events until the reader of standard output is gone or a signal comes; fails when the daemon ends.
pub fn run(socket: &Path, bond: Option<LinkName>, json: bool) -> Result<(), Failed> {
    end_on_signals()?;
    let request = Request::Monitor { bond };
    let mut events = match client::follow(socket, &request, client::REPLY_TIMEOUT)? {
        (Reply::Done { warnings }, Some(events)) => {
            warnings.iter().for_each(|warning| report::warn(warning));
            events
        }
        (Reply::Error(error), _) => return Err(Failed::refused(error)),
        _ => return Err(client::unexpected(socket, "cannot monitor")),
    };
    let style = text::Style::new(report::colour());
    let line = |event: &EventRecord| match json {
        true => text::json_line(event),
        // The terminal's width may be another one meanwhile.
        false => text::event(event, &style.width(report::width()), &Clock::local()),
    };
    loop {
        // Events that came with one read are written at once. Those before an invalid one are still written.
        let mut out = String::new();
        let outcome = loop {
            match events.next() {
                Ok(Some(event)) => out.push_str(&line(&event)),
                Ok(None) => break Ok(()),
                Err(failure) => break Err(failure),
            }
        };
        if !out.is_empty() {
            report::print(&out)?;
        }
        outcome?;
        if !wait(&events)? {
            return Ok(());
        }
        events.read()?;
    }
}

/// Ctrl-C and SIGTERM are how this word ends when all is well: exit status 0.
///
/// A thread takes them, so that they work while the daemon is waited for and while standard output is full. Called
/// before any other thread exists, which would take the signals with their usual effect.
fn end_on_signals() -> Result<(), Failed> {
    let failed = |errno: Errno| {
        Failed::refused(Error::new("monitor", "cannot catch signals", errno.desc().to_lowercase()))
    };
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    signals.thread_block().map_err(failed)?;
    thread::spawn(move || {
        if signals.wait().is_ok() {
            process::exit(ExitCode::Done as i32);
        }
    });
    Ok(())
}

/// Waits for more from the daemon; false if nobody reads standard output any more.
///
/// Without this a closed pipe would be noticed only with the next event, which may be days away.
fn wait(events: &Events) -> Result<bool, Failed> {
    let stdout = io::stdout();
    loop {
        // No event is requested for standard output: poll(2) always reports errors and hang-ups.
        let mut fds =
            [PollFd::new(events.fd(), PollFlags::POLLIN), PollFd::new(stdout.as_fd(), PollFlags::empty())];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) if fds[1].any() != Some(false) => return Ok(false),
            Ok(_) if fds[0].any() != Some(false) => return Ok(true),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => {
                let cause = errno.desc().to_lowercase();
                return Err(Failed::refused(Error::new("monitor", "cannot wait for events", cause)));
            }
        }
    }
}
