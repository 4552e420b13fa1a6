//! What can go wrong between the loader and the kernel.

/// A failed call, with what it was for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused the programs, or this process may not load them.
    #[error("cannot load the BPF programs: {0:#}")]
    Load(#[source] libbpf_rs::Error),
    /// A map could not be read or written.
    #[error("cannot use the BPF map '{map}': {cause}")]
    Map {
        /// The map's name in `maps.bpf.h`.
        map: &'static str,
        /// The kernel's answer.
        cause: libbpf_rs::Error,
    },
    /// A program could not be put on an interface, or taken off it.
    #[error("cannot {what} on interface {ifindex}: {cause}")]
    Attach {
        /// The operation that failed, as half a sentence.
        what: &'static str,
        /// The index of the interface.
        ifindex: u32,
        /// The kernel's answer.
        cause: libbpf_rs::Error,
    },
    /// Programs and maps that an earlier daemon left could not be looked for.
    #[error("cannot look for the programs of an earlier daemon: {0:#}")]
    NotFound(#[source] libbpf_rs::Error),
    /// Something that the loader needs is missing in the object: loader and programs are of different versions.
    #[error("the BPF object has no '{0}'")]
    Missing(&'static str),
    /// Latency cannot be measured on this kernel.
    #[error("cannot measure latency: the kernel has no {missing}: {cause}")]
    NoMeter {
        /// What is missing, with the option that brings it.
        missing: &'static str,
        /// The kernel's answer.
        cause: libbpf_rs::Error,
    },
    /// The programs could not detect that this process has ended.
    #[error(
        "BPF programs cannot detect the end of the daemon: AF_XDP sockets are missing in this kernel, or this service may not open them"
    )]
    NoHolder,
    /// A value is outside what the maps can hold.
    #[error("{what}: {value} is outside the allowed range 0 to {max}")]
    Range {
        /// The name of the value.
        what: &'static str,
        /// The value that was refused.
        value: u64,
        /// Its greatest allowed value.
        max: u64,
    },
}

/// What the loader's calls return.
pub type Result<T> = std::result::Result<T, Error>;

/// The kinds of refusal that say something about the kernel or about this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A capability is missing.
    NotPermitted,
    /// The kernel has no such thing.
    Unsupported,
    /// The kernel does not take it.
    Invalid,
    /// Another reason.
    Other,
}

impl Refusal {
    /// The kind of an error of libbpf.
    pub fn of(cause: &libbpf_rs::Error) -> Self {
        use libbpf_rs::ErrorKind;
        match cause.kind() {
            ErrorKind::PermissionDenied => Self::NotPermitted,
            // A queueing discipline or filter that is not built in is "not found" (net/sched/sch_api.c).
            ErrorKind::Unsupported | ErrorKind::NotFound => Self::Unsupported,
            ErrorKind::InvalidInput => Self::Invalid,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn refusals_name_what_the_kernel_is_missing() {
        let of = |errno: nix::errno::Errno| Refusal::of(&libbpf_rs::Error::from_raw_os_error(errno as i32));
        use nix::errno::Errno;
        assert_eq!(of(Errno::EPERM), Refusal::NotPermitted);
        assert_eq!(of(Errno::ENOSYS), Refusal::Unsupported);
        assert_eq!(of(Errno::EOPNOTSUPP), Refusal::Unsupported);
        assert_eq!(of(Errno::ENOENT), Refusal::Unsupported);
        assert_eq!(of(Errno::EINVAL), Refusal::Invalid);
        assert_eq!(of(Errno::ENOMEM), Refusal::Other);
    }
}
