//! Why there is no TAP device, and what to do about it.

use nix::errno::Errno;

use crate::error::Kind;

use super::{TAP_MTU_MAX, TAP_MTU_MIN, TAP_QUEUES_MAX};

/// The cause, for code that has to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapCause {
    /// `/dev/net/tun` does not exist, or nothing is behind it.
    NoDriver,
    /// `/dev/net/tun` may not be opened, or the caller does not have `CAP_NET_ADMIN`.
    NotPermitted,
    /// An interface of that name exists.
    NameTaken,
    /// No interface can have that name.
    BadName,
    /// The MTU is outside what a TAP device can have.
    BadMtu,
    /// The number of queues is outside what a TAP device can have.
    BadQueues,
    /// The address is a group's, or all zeros.
    BadMac,
    /// The kernel is too old for several queues or for the header.
    TooOld,
    /// Somebody removed the interface.
    Gone,
    /// Another error of the kernel.
    Kernel(Kind),
}

/// One refusal: `NAME: WHAT: CAUSE`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {what}: {cause}")]
pub struct TapError {
    /// Name of the device.
    pub name: String,
    /// The operation that failed, as half a sentence.
    pub what: String,
    /// The reason.
    pub cause: TapCause,
}

impl TapError {
    pub(super) fn new(name: &str, what: impl Into<String>, cause: TapCause) -> Self {
        Self { name: name.to_owned(), what: what.into(), cause }
    }

    /// A command that helps, where one does.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self.cause {
            TapCause::NoDriver => Some("modprobe tun".into()),
            TapCause::NotPermitted => Some("ls -l /dev/net/tun; grep CapEff /proc/self/status".into()),
            TapCause::NameTaken => Some(format!("ip -d link show dev {}", self.name)),
            TapCause::TooOld => Some("uname -r".into()),
            _ => None,
        }
    }
}

impl TapCause {
    pub(super) fn of(errno: Errno) -> Self {
        match errno {
            Errno::EBADFD | Errno::ENODEV | Errno::ENXIO => Self::Gone,
            Errno::EPERM | Errno::EACCES => Self::NotPermitted,
            other => Self::Kernel(Kind::of(other)),
        }
    }

    pub(super) fn of_io(error: &std::io::Error) -> Self {
        error.raw_os_error().map_or(Self::Kernel(Kind::Connection), |code| Self::of(Errno::from_raw(code)))
    }

    /// The cause when `/dev/net/tun` does not open.
    pub(super) fn of_open(error: &std::io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO | Errno::ENOTDIR) => Self::NoDriver,
            _ => Self::of_io(error),
        }
    }

    /// The cause when a queue cannot be attached. The first makes the device, and it alone is refused for its name.
    pub(super) fn of_attach(errno: Errno, first: bool) -> Self {
        match (errno, first) {
            (Errno::EBUSY | Errno::EEXIST, true) => Self::NameTaken,
            (Errno::EINVAL, _) => Self::TooOld,
            (Errno::E2BIG | Errno::EUSERS, false) => Self::BadQueues,
            _ => Self::of(errno),
        }
    }

    /// The cause when the kernel does not take the length or the byte order of the header.
    pub(super) fn of_header(errno: Errno) -> Self {
        match errno {
            Errno::EINVAL | Errno::ENOTTY => Self::TooOld,
            _ => Self::of(errno),
        }
    }
}

impl std::fmt::Display for TapCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoDriver => "there is no /dev/net/tun, so the kernel's TUN/TAP driver is not loaded",
            Self::NotPermitted => "needs root (CAP_NET_ADMIN, and access to /dev/net/tun)",
            Self::NameTaken => "an interface of that name exists",
            Self::BadName => "a name has 1 to 15 bytes, without '/', ':', '%' and spaces",
            Self::BadMtu => {
                return write!(f, "it is outside the allowed range {TAP_MTU_MIN} to {TAP_MTU_MAX}");
            }
            Self::BadQueues => return write!(f, "it is outside the allowed range 1 to {TAP_QUEUES_MAX}"),
            Self::BadMac => "it is not the address of one interface",
            Self::TooOld => "this kernel has no TAP queues with virtio headers",
            Self::Gone => "the interface is gone",
            Self::Kernel(kind) => return write!(f, "{kind}"),
        })
    }
}
