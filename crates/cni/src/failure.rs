//! What the runtime is told when something failed: a number of the interface's, a line, and where there is one a command that helps.

use linkbraid_api::Error;
use serde_json::{Value, json};
use std::fmt::Display;

/// Numbers of errors, as <https://www.cni.dev/docs/spec/#error> has them; from 100 on they are the plugin's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The configuration's version is not spoken.
    Version = 1,
    /// What the environment says cannot be.
    Environment = 4,
    /// Reading or writing failed.
    Io = 5,
    /// What was read is no JSON.
    Decoding = 6,
    /// The configuration cannot be used.
    Configuration = 7,
    /// The network namespace is the one that this program is in: a container has its own.
    Namespace = 8,
    /// It may work later: the daemon is not there yet.
    Later = 11,
    /// STATUS: nothing can be attached.
    Unavailable = 50,
    /// STATUS: nor do those that are attached reach anything.
    Unreachable = 51,
    /// The kernel, or the plugin for addresses, refused.
    Refused = 100,
    /// CHECK: something is not as it was made.
    Differs = 101,
}

/// One failed operation.
#[derive(Debug)]
pub struct Failure {
    code: u64,
    message: String,
    details: Option<String>,
}

impl Failure {
    /// `WHAT: CAUSE`
    pub fn new(code: Code, what: impl Display, cause: impl Display) -> Self {
        Self { code: code as u64, message: format!("{what}: {cause}"), details: None }
    }

    /// The same with another number.
    pub fn with_code(self, code: Code) -> Self {
        Self { code: code as u64, ..self }
    }

    /// The same with a command that helps.
    pub fn hint(mut self, command: impl Display) -> Self {
        self.details = Some(format!("hint: {command}"));
        self
    }

    /// What the daemon, or the way to it, said.
    pub fn said(code: Code, error: &Error) -> Self {
        Self { code: code as u64, message: error.to_string(), details: None }.hinted(error.hint.as_ref())
    }

    fn hinted(self, command: Option<&String>) -> Self {
        match command {
            Some(command) => self.hint(command),
            None => self,
        }
    }

    /// What another plugin printed, whatever its number was.
    pub fn of_plugin(plugin: &str, printed: &[u8]) -> Self {
        let said: Value = serde_json::from_slice(printed).unwrap_or_default();
        let cause =
            said["msg"].as_str().map_or_else(|| String::from_utf8_lossy(printed).into_owned(), str::to_owned);
        Self {
            code: said["code"].as_u64().unwrap_or(Code::Refused as u64),
            message: format!("{plugin}: {}", cause.trim()),
            details: said["details"].as_str().filter(|details| !details.is_empty()).map(str::to_owned),
        }
    }

    /// As the interface has it.
    pub fn json(&self, version: &str) -> Value {
        let mut said = json!({ "cniVersion": version, "code": self.code, "msg": self.message });
        if let Some(details) = &self.details {
            said["details"] = json!(details);
        }
        said
    }
}
