//! What a transport refuses when it is opened, in words.

use nix::errno::Errno;

/// One refusal: `OBJECT: WHAT: CAUSE`, and a command that helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {what}: {cause}")]
pub struct Error {
    /// The transport as it was named, such as `shm:/run/linkbraid/fabric0`, or the file of a directory.
    pub object: String,
    /// What failed, such as `cannot join as node 1`.
    pub what: String,
    /// The reason.
    pub cause: String,
    /// A command that helps.
    pub hint: Option<String>,
}

/// The result of opening a transport.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error about `object`.
    pub fn new(object: impl Into<String>, what: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { object: object.into(), what: what.into(), cause: cause.into(), hint: None }
    }

    /// The error of a system call, in words.
    pub fn system(object: impl Into<String>, what: impl Into<String>, errno: Errno) -> Self {
        Self::new(object, what, words(errno))
    }

    /// The same with a command that helps.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// An errno without its number.
pub(crate) fn words(errno: Errno) -> String {
    match errno {
        Errno::EACCES | Errno::EPERM => "no permission".into(),
        Errno::ENOENT => "it does not exist".into(),
        Errno::ENOSPC | Errno::ENOMEM | Errno::EDQUOT => "there is no room for it".into(),
        other => other.desc().to_lowercase(),
    }
}
