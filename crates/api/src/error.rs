//! The one error shape: an object, what failed, its cause, and at most one command that helps.

use serde::{Deserialize, Serialize};

/// The exit status of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Everything asked for was done.
    Done = 0,
    /// The request was refused or failed.
    Failed = 1,
    /// The command line was wrong.
    Usage = 2,
    /// No daemon answers on the socket.
    NoDaemon = 3,
}

/// One refused or failed request: `OBJECT: WHAT: CAUSE`, lower case, no full stop, and one hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[error("{object}: {what}: {cause}")]
pub struct Error {
    /// What the error is about: a bond, an interface, a file, an option.
    pub object: String,
    /// What failed, naming the second object in single quotes where there is one.
    pub what: String,
    /// Why, with the allowed range where there is one; never a bare errno.
    pub cause: String,
    /// A command that works (or nothing, when no command helps).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Error {
    /// An error without a hint.
    pub fn new(object: impl Into<String>, what: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { object: object.into(), what: what.into(), cause: cause.into(), hint: None }
    }

    /// The same error with the command that helps.
    #[must_use]
    pub fn hint(mut self, command: impl Into<String>) -> Self {
        self.hint = Some(command.into());
        self
    }
}
