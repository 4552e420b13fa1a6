//! Another program's output, bounded in size and time.

use linkbraid_terminal::report::plain;
use std::io::{self, ErrorKind, Read as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Where programs of the administrator are, which a user's `PATH` may lack.
const ADMINISTRATORS_PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// What a program has said.
#[derive(Debug, PartialEq, Eq)]
pub struct Output {
    /// Standard output and standard error, as they came.
    pub text: String,
    /// What is to be known about it, or an empty string.
    pub note: String,
}

impl Output {
    /// Of a program that has said nothing, and why.
    pub fn nothing(note: impl Into<String>) -> Self {
        Self { text: String::new(), note: note.into() }
    }
}

/// Runs a command line, split at spaces, for as long as `time`, and keeps the first `bytes` of what it says.
pub fn run(line: &str, bytes: usize, time: Duration) -> Output {
    match attempt(line, bytes, time) {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => Output::nothing("not installed"),
        Err(error) => Output::nothing(plain(&error)),
    }
}

fn attempt(line: &str, bytes: usize, time: Duration) -> io::Result<Output> {
    let mut words = line.split_whitespace();
    let (read, write) = io::pipe()?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut child = Command::new(words.next().unwrap_or_default())
        .args(words)
        .env("PATH", format!("{path}:{ADMINISTRATORS_PATH}"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(write.try_clone()?)
        .stderr(write)
        .spawn()?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut said = Vec::new();
        // One byte more than is kept tells whether there was more. The pipe is closed after that, which ends the program.
        let _ = read.take(bytes as u64 + 1).read_to_end(&mut said);
        let _ = sender.send(said);
    });
    let end = Instant::now() + time;
    let said = receiver.recv_timeout(time);
    // What has said all has ended, or is about to. One that says more than is kept goes on for as long as it is let.
    let says_all = said.as_ref().is_ok_and(|said| said.len() <= bytes);
    while says_all && child.try_wait()?.is_none() && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    // No error where it has ended.
    let _ = child.kill();
    let status = child.wait()?;
    let Ok(mut said) = said else {
        return Ok(Output::nothing(format!("nothing, because it took longer than {} s", time.as_secs())));
    };
    let note = match (said.len() > bytes, status.code()) {
        (true, _) => format!("only the first {bytes} bytes"),
        (false, Some(code)) if code != 0 => format!("ended with status {code}"),
        _ => String::new(),
    };
    said.truncate(bytes);
    Ok(Output { text: String::from_utf8_lossy(&said).into_owned(), note })
}

#[cfg(test)]
mod tests {
    use super::{Output, run};
    use std::time::{Duration, Instant};

    /// Far above what any step takes.
    const LONG: Duration = Duration::from_secs(20);

    fn output(text: &str, note: &str) -> Output {
        Output { text: text.to_owned(), note: note.to_owned() }
    }

    #[test]
    fn what_a_program_says_is_kept_with_its_failure() {
        assert_eq!(run("echo a b", 100, LONG), output("a b\n", ""));
        assert_eq!(run("no-such-program-at-all x", 100, LONG), output("", "not installed"));
        let failed = run("cat /no/such/file", 1000, LONG);
        assert!(failed.text.contains("No such file") && failed.note == "ended with status 1", "{failed:?}");
    }

    #[test]
    fn a_program_that_says_too_much_or_takes_too_long_is_ended() {
        let start = Instant::now();
        assert_eq!(run("yes", 6, LONG), output("y\ny\ny\n", "only the first 6 bytes"));
        let slow = run("sleep 60", 100, Duration::from_millis(50));
        assert!(slow.note.contains("took longer"), "{slow:?}");
        assert!(start.elapsed() < LONG, "neither was waited for");
    }
}
