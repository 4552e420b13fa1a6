//! `ofi:PROVIDER,FILE`, as far as it is text: what is behind it is opened by a program of its own, `linkbraid-ofi`.

use crate::{Error, Result};
use std::path::PathBuf;

/// A provider that is refused. Its queues lie in shared memory behind a lock that a writer spins on, so a process that is
/// killed while it holds one makes the next send of every other never return (libfabric 1.17, `docs/fabric-transports.md`).
const TAKES_ALONG: &str = "shm";

/// The parts of an address that begins with `ofi:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ofi {
    /// The name of a libfabric provider.
    pub provider: String,
    /// The file with the nodes' addresses.
    pub file: PathBuf,
}

impl Ofi {
    /// Reads `PROVIDER,FILE`.
    pub(crate) fn parse(address: &str, rest: &str) -> Result<Self> {
        let refuse = |cause: String| {
            Err(Error::new(address, "cannot use this transport", cause)
                .hint("--transport ofi:tcp,/etc/linkbraid/NAME"))
        };
        let Some((provider, file)) = rest.split_once(',') else {
            return refuse("it is not ofi:PROVIDER,FILE".into());
        };
        if provider.is_empty() {
            return refuse("it names no provider".into());
        }
        if provider == TAKES_ALONG {
            let cause =
                format!("with libfabric's '{TAKES_ALONG}' a process that is killed can make the others hang");
            return Err(Error::new(address, "cannot use this transport", cause)
                .hint("--transport shm:/run/linkbraid/NAME"));
        }
        let file = PathBuf::from(file);
        if !file.is_absolute() {
            return refuse(format!("'{}' is not an absolute path", file.display()));
        }
        Ok(Self { provider: provider.to_owned(), file })
    }
}
