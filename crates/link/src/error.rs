//! What the kernel refuses, in words.

use nix::errno::Errno;

/// Why the kernel (or the path to it) refused, without a bare errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The caller may not change the network (`EPERM`, `EACCES`).
    NotPermitted,
    /// The interface does not exist, or went away (`ENODEV`, `ENXIO`).
    NoDevice,
    /// The object to remove or change does not exist (`ENOENT`, `ESRCH`, `EADDRNOTAVAIL`).
    NotFound,
    /// The object is already there (`EEXIST`, `EADDRINUSE`).
    Exists,
    /// Somebody else holds it (`EBUSY`).
    Busy,
    /// Neither the kernel nor the driver can do it (`EOPNOTSUPP`, `EAFNOSUPPORT`).
    Unsupported,
    /// The kernel refuses the value (`EINVAL`, `ERANGE`, `EMSGSIZE`).
    BadValue,
    /// A link that would close a loop (`ELOOP`).
    Loop,
    /// The interface is down (`ENETDOWN`).
    Down,
    /// The gateway is on no connected network (`ENETUNREACH`, `EHOSTUNREACH`).
    Unreachable,
    /// A queue or table of the kernel is full (`ENOBUFS`, `ENOMEM`, `EAGAIN`, `ENOSPC`).
    Full,
    /// The file system refuses a write (`EROFS`): `/proc/sys` is mounted read-only.
    ReadOnly,
    /// The netlink connection ended, or an answer did not make sense.
    Connection,
    /// Another error of the kernel.
    Other(Errno),
}

impl Kind {
    /// The kind that an errno stands for.
    #[must_use]
    pub fn of(errno: Errno) -> Self {
        match errno {
            Errno::EPERM | Errno::EACCES => Self::NotPermitted,
            Errno::ENODEV | Errno::ENXIO => Self::NoDevice,
            Errno::ENOENT | Errno::ESRCH | Errno::EADDRNOTAVAIL => Self::NotFound,
            Errno::EEXIST | Errno::EADDRINUSE => Self::Exists,
            Errno::EBUSY => Self::Busy,
            Errno::EOPNOTSUPP | Errno::EAFNOSUPPORT => Self::Unsupported,
            Errno::EINVAL | Errno::ERANGE | Errno::EMSGSIZE => Self::BadValue,
            Errno::ELOOP => Self::Loop,
            Errno::ENETDOWN => Self::Down,
            Errno::ENETUNREACH | Errno::EHOSTUNREACH => Self::Unreachable,
            Errno::ENOBUFS | Errno::ENOMEM | Errno::EAGAIN | Errno::ENOSPC => Self::Full,
            Errno::EROFS => Self::ReadOnly,
            other => Self::Other(other),
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotPermitted => "needs root (CAP_NET_ADMIN)",
            Self::NoDevice => "no such interface",
            Self::NotFound => "it does not exist",
            Self::Exists => "it already exists",
            Self::Busy => "it is in use",
            Self::Unsupported => "this kernel or driver does not support it",
            Self::BadValue => "the kernel refuses the value",
            Self::Loop => "it would make a loop of interfaces",
            Self::Down => "the interface is down",
            Self::Unreachable => "the gateway is on no connected network",
            Self::Full => "the kernel has no space left for it",
            Self::ReadOnly => "/proc/sys is read-only here",
            Self::Connection => "the netlink connection to the kernel failed",
            Self::Other(errno) => return write!(f, "{}", errno.desc().to_lowercase()),
        })
    }
}

/// One refused request: `OBJECT: WHAT: CAUSE`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {what}: {}", self.cause())]
pub struct Error {
    /// The interface (by name where it is known).
    pub object: String,
    /// What failed, such as `cannot set the MTU to 9000`.
    pub what: String,
    /// Why, for code that has to decide.
    pub kind: Kind,
    /// What the kernel itself said (its extended acknowledgement), when it said something.
    pub said: Option<String>,
}

impl Error {
    /// An error about `object`.
    pub fn new(object: impl Into<String>, what: impl Into<String>, kind: Kind) -> Self {
        Self { object: object.into(), what: what.into(), kind, said: None }
    }

    /// The error of a system call.
    pub(crate) fn io(object: impl Into<String>, what: impl Into<String>, error: &std::io::Error) -> Self {
        let kind = error.raw_os_error().map_or(Kind::Connection, |code| Kind::of(Errno::from_raw(code)));
        Self::new(object, what, kind)
    }

    /// The third part of the line: the kind in words, and the kernel's own words behind it.
    #[must_use]
    pub fn cause(&self) -> String {
        match &self.said {
            Some(said) => {
                format!("{} (the kernel says: {})", self.kind, said.trim_end_matches('.').to_lowercase())
            }
            None => self.kind.to_string(),
        }
    }
}

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;
