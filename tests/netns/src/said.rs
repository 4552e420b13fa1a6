//! What one `linkbraid` command came to, and the shape of its refusals.

use linkbraid_lab::{Host, Running, daemon, wait_for};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

/// The end of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The exit status.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Runs a command to its end.
    ///
    /// # Panics
    /// When it can't be started or is ended by a signal.
    pub fn by(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } =
            command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Self {
            code: status.code().unwrap_or_else(|| panic!("{command:?}: {status}")),
            out: String::from_utf8_lossy(&stdout).into_owned(),
            err: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }

    /// Holds the end against a refusal: exit status `code`, nothing on standard output, exactly the error line
    /// `error` and one hint. The hint.
    ///
    /// # Panics
    /// When anything differs.
    #[track_caller]
    pub fn refused(&self, code: i32, error: &str) -> String {
        assert_eq!(self.out, "", "{self:?}");
        let lines: Vec<&str> = self.err.lines().collect();
        let &[first, second] = &lines[..] else { panic!("not one error line and one hint: {self:?}") };
        assert_eq!(first, format!("linkbraid: error: {error}"), "{self:?}");
        assert_eq!(self.code, code, "{self:?}");
        let hint = second.strip_prefix("  hint: ");
        hint.unwrap_or_else(|| panic!("not a hint: {self:?}")).to_owned()
    }
}

/// Runs a hint on `host` as its user would type it. A command must do its work; one that starts a daemon must get
/// it to listen. Returns what it said.
///
/// # Panics
/// When the hint does not work.
#[track_caller]
pub fn check_hint(host: Host<'_>, hint: &str) -> Said {
    let binary = daemon::binary().expect("linkbraid is built");
    // Tests run as root already, and a minimal system has no sudo.
    let words: Vec<&str> = hint.strip_prefix("sudo ").unwrap_or(hint).split_whitespace().collect();
    let command = |program: &str, words: &[&str]| {
        let mut command = match program {
            "linkbraid" => host.linkbraid_command(&binary),
            other => host.command(other),
        };
        command.args(words);
        command
    };
    let (program, rest) = words.split_first().expect("a hint is a command");
    if *program == "linkbraid" && rest.first() == Some(&"daemon") {
        let socket = rest.iter().skip_while(|word| **word != "--socket").nth(1);
        let socket = socket.map_or_else(|| host.socket(), Into::into);
        let mut command = command(program, rest);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut daemon = Running::start(command).expect("starts");
        wait_for(crate::SOON, &format!("'{hint}' to listen"), || match daemon.ended() {
            Some(status) => Err(status.to_string()),
            None => UnixStream::connect(&socket).map(drop).map_err(|e| e.to_string()),
        })
        .expect("the hint starts a daemon");
        return Said { code: 0, out: String::new(), err: String::new() };
    }
    let said = Said::by(&mut command(program, rest));
    assert_eq!(said.code, 0, "the hint '{hint}' does not work: {said:?}");
    said
}
