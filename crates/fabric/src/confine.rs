//! What the programs that the daemon starts may do: less than the daemon.

use capctl::{Cap, CapSet, CapState, prctl};
use nix::{errno::Errno, libc};
use std::io;

/// The first file that is not standard input, output or errors.
const FIRST_FILE: libc::c_uint = 3;

/// Gives up all privileges but those `kept`, if they are there, for good, and all files but the first three. To be called while there is
/// one thread, before anything is opened.
///
/// # Errors
/// Those of the system calls.
pub fn confine(kept: &[Cap]) -> io::Result<()> {
    // What is executed after this gets no privilege back.
    prctl::set_no_new_privs()?;
    let kept = CapState::get_current()?.permitted & kept.iter().copied().collect();
    CapState { effective: kept, permitted: kept, inheritable: CapSet::empty() }.set_current()?;
    // SAFETY: nothing in this process has opened a file yet, so nobody uses what is closed.
    Errno::result(unsafe { libc::close_range(FIRST_FILE, libc::c_uint::MAX, 0) })?;
    Ok(())
}
