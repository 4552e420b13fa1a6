//! `linkbraid top`: what bonds and fabrics do now, on the whole screen, until somebody ends it.
//!
//! Threads wait for the daemon ([`source`]), for keys and for signals, and hand in what comes. The main thread keeps what is
//! known ([`state`]) and draws it ([`view`]); these two know neither the daemon nor the terminal.

mod source;
mod state;
mod view;

use crate::signals;
use crate::text::Clock;
use linkbraid_api::{Error, EventRecord, ExitCode, LinkName};
use linkbraid_terminal::report::{self, Failed, plain};
use nix::sys::signal::Signal;
use ratatui::crossterm::{event, terminal::disable_raw_mode};
use source::Sample;
use state::State;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use std::{panic, process, thread};

/// What waits to be drawn at most; those who hand in wait when it is full.
const WAITING_MAX: usize = 256;
/// How long the end may take before it is forced, because the terminal takes nothing.
const END_MAX: Duration = Duration::from_millis(500);

/// What is handed in.
#[derive(Debug)]
enum Input {
    /// A key, or another size.
    Terminal(event::Event),
    /// What the daemon said, or why it said nothing.
    Sample(Result<Sample, Error>),
    /// Something happened.
    Event(EventRecord),
    /// A signal came, or the terminal is gone.
    End,
}

/// Shows all bonds and fabrics, or the one of that name.
pub fn run(socket: &Path, bond: Option<LinkName>, json: bool) -> Result<(), Failed> {
    if json {
        let cause = "'top' is for people; programs read 'show', 'lanes' and 'monitor'";
        return Err(Failed::usage(Error::new("top", "option '--json'", cause).hint("linkbraid show --json")));
    }
    if !io::stdout().is_terminal() {
        let cause = "standard output is no terminal";
        return Err(Failed::refused(Error::new("top", "cannot draw", cause).hint("linkbraid show")));
    }
    let (sender, inputs) = sync_channel(WAITING_MAX);
    let ended = sender.clone();
    signals::on_end("top", [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP], move || {
        let _ = ended.try_send(Input::End);
        // The main thread ends the process, unless it waits for a terminal that takes nothing.
        thread::sleep(END_MAX);
        let _ = disable_raw_mode();
        process::exit(ExitCode::Done as i32);
    })?;
    // What is refused is refused before the screen changes.
    let first = source::sample(socket, bond.as_ref())?;
    let mut state = State::default();
    state.sample(Ok(first));
    let mut terminal = ratatui::try_init().map_err(|error| cannot("use the terminal", &error))?;
    end_on_panic();
    let outcome = start(socket, bond, &sender)
        .map_err(|error| cannot("start a thread", &error))
        .and_then(|()| draw(&mut terminal, &mut state, &inputs));
    ratatui::restore();
    outcome
}

fn cannot(what: &str, error: &io::Error) -> Failed {
    Failed::refused(Error::new("top", format!("cannot {what}"), plain(error)))
}

/// A panic of any thread restores the terminal, says what it was, and ends the command.
fn end_on_panic() {
    let restore_and_tell = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        restore_and_tell(info);
        process::exit(ExitCode::Failed as i32);
    }));
}

/// Starts the threads that hand in.
fn start(socket: &Path, bond: Option<LinkName>, sender: &SyncSender<Input>) -> io::Result<()> {
    let (keys, samples, events) = (sender.clone(), sender.clone(), sender.clone());
    thread::Builder::new().name("lb-keys".to_owned()).spawn(move || {
        while let Ok(event) = event::read() {
            if keys.send(Input::Terminal(event)).is_err() {
                return;
            }
        }
        let _ = keys.send(Input::End);
    })?;
    let (path, name) = (socket.to_owned(), bond.clone());
    thread::Builder::new().name("lb-samples".to_owned()).spawn(move || {
        source::samples(&path, name.as_ref(), |sample| samples.send(Input::Sample(sample)).is_ok());
    })?;
    let path = socket.to_owned();
    thread::Builder::new().name("lb-events".to_owned()).spawn(move || {
        source::events(&path, bond.as_ref(), |event| events.send(Input::Event(event)).is_ok());
    })?;
    Ok(())
}

/// Draws, and takes in what comes, until it is to end.
fn draw(
    terminal: &mut ratatui::DefaultTerminal,
    state: &mut State,
    inputs: &Receiver<Input>,
) -> Result<(), Failed> {
    let colour = report::colour();
    loop {
        let clock = Clock::local();
        terminal
            .draw(|frame| frame.render_widget(view::Screen { state, clock: &clock, colour }, frame.area()))
            .map_err(|error| cannot("draw", &error))?;
        let Ok(first) = inputs.recv() else { return Ok(()) };
        // All that waits is drawn at once.
        for input in std::iter::once(first).chain(inputs.try_iter()) {
            let goes_on = match input {
                Input::Terminal(event::Event::Key(key)) => state.key(key),
                // Another size is seen when it is drawn.
                Input::Terminal(_) => true,
                Input::Sample(sample) => {
                    state.sample(sample);
                    true
                }
                Input::Event(event) => {
                    state.event(event);
                    true
                }
                Input::End => false,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
