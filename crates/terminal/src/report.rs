//! Writes to standard output and standard error, and decides the exit status.

use linkbraid_api::{Error, ExitCode};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::{fd::AsFd, unix::fs::MetadataExt};
use std::process;

/// Why the command did not succeed.
#[derive(Debug)]
pub struct Failed {
    /// The error to print.
    pub error: Error,
    /// The exit status.
    pub code: ExitCode,
}

impl Failed {
    /// The request was refused or failed.
    pub fn refused(error: Error) -> Self {
        Self { error, code: ExitCode::Failed }
    }

    /// The command line was wrong.
    pub fn usage(error: Error) -> Self {
        Self { error, code: ExitCode::Usage }
    }
}

/// Whether a stream gets colour: it is a terminal, and `NO_COLOR` (<https://no-color.org>) is unset or empty.
fn coloured(is_terminal: bool) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    is_terminal && !refused && !dumb
}

/// Whether standard output gets colour.
pub fn colour() -> bool {
    coloured(io::stdout().is_terminal())
}

/// How many characters a line of standard output has, if it is a terminal.
pub fn width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout())
        .map(|(width, _)| usize::from(width.0))
        .filter(|width| *width > 0)
}

/// Whether standard error is the journal (systemd.exec(5), `JOURNAL_STREAM`).
pub fn to_journal() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let status = io::stderr().as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    status.is_ok_and(|status| stream == format!("{}:{}", status.dev(), status.ino()))
}

/// What a line of this priority (syslog(3)) begins with.
fn prefix(priority: u8) -> String {
    if to_journal() { format!("<{priority}>") } else { String::new() }
}

/// One warning line on standard error.
pub fn warn(line: &str) {
    let (on, off) = if coloured(io::stderr().is_terminal()) { ("\x1b[33m", "\x1b[0m") } else { ("", "") };
    // If standard error is closed, nothing can be reported.
    let _ = writeln!(io::stderr(), "{}linkbraid: {on}warning:{off} {}", prefix(4), one_line(line));
}

/// One error line and its hint on standard error.
pub fn error(error: &Error) {
    let (on, off) = if coloured(io::stderr().is_terminal()) { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
    let prefix = prefix(3);
    let mut text = format!("{prefix}linkbraid: {on}error:{off} {}\n", one_line(&error.to_string()));
    if let Some(hint) = &error.hint {
        text.push_str(&format!("{prefix}  hint: {}\n", one_line(hint)));
    }
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Removes line breaks and escape sequences that a name or a cause may contain.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Writes to standard output; a reader that has gone away ends the command quietly.
pub fn print(text: &str) -> Result<(), Failed> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(ExitCode::Done as i32),
        Err(error) => Err(Failed::refused(Error::new("standard output", "cannot write", plain(&error)))),
    }
}

/// An error's words in lower case, without its number.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}
