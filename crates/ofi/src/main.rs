//! `linkbraid-ofi`: the queues of a fabric over libfabric, for the daemon that starts this program. libfabric runs here alone, without the
//! daemon's files and privileges.

use capctl::Cap;
use std::process::ExitCode;

/// The one privilege that is kept, if it is there: memory that a device writes to is locked.
const KEPT: Cap = Cap::IPC_LOCK;

fn main() -> ExitCode {
    if let Err(error) = linkbraid_fabric::confine(&[KEPT]) {
        eprintln!("cannot give up privileges: {error}");
        return ExitCode::FAILURE;
    }
    for (name, value) in linkbraid_ofi::ENVIRONMENT {
        if std::env::var_os(name).is_none() {
            // SAFETY: nothing has started a thread yet, so nobody reads the environment meanwhile.
            unsafe { std::env::set_var(name, value) };
        }
    }
    linkbraid_fabric::serve(linkbraid_ofi::open_watched)
}
