//! What can go wrong between the loader and the kernel.

use std::path::PathBuf;

/// A failed call, with what it was for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused the programs, or this process may not load them.
    #[error("cannot load the BPF programs: {0}")]
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
        /// What was tried.
        what: &'static str,
        /// The interface.
        ifindex: u32,
        /// The kernel's answer.
        cause: libbpf_rs::Error,
    },
    /// The BPF file system could not be used.
    #[error("cannot use '{path}' in the BPF file system: {cause}")]
    Pin {
        /// The pin.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// The object lacks something the loader needs: loader and programs are of different versions.
    #[error("the BPF object has no '{0}'")]
    Missing(&'static str),
    /// A value is outside what the maps can hold.
    #[error("{what}: {value} is outside the allowed range 0 to {max}")]
    Range {
        /// Which value.
        what: &'static str,
        /// The value.
        value: u64,
        /// Its greatest allowed value.
        max: u64,
    },
}

/// What the loader's calls return.
pub type Result<T> = std::result::Result<T, Error>;
