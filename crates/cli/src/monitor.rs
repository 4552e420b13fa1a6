//! `linkbraid monitor`: events as they happen, until somebody ends it.

use crate::signals;
use crate::text::{self, Clock};
use linkbraid_api::{Error, EventRecord, ExitCode, LinkName, Reply, Request};
use linkbraid_terminal::{
    client::{self, Events},
    report::{self, Failed},
};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process;

/// Prints events until the reader of standard output is gone or a signal comes; fails when the daemon ends.
pub fn run(socket: &Path, bond: Option<LinkName>, json: bool) -> Result<(), Failed> {
    // Ctrl-C and SIGTERM are how this word ends when all is well.
    signals::on_end("monitor", [Signal::SIGINT, Signal::SIGTERM], || process::exit(ExitCode::Done as i32))?;
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
            match events.take() {
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
    }
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
