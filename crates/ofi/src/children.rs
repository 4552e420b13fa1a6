//! Child processes of tests that run beside others in one process.
//!
//! libfabric's sockets stay open in a child, so one that another test starts just then would keep the port of an endpoint
//! that was closed here.

use nix::libc;
use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The first file that a child does not need: after its input, output and errors.
const FIRST: libc::c_uint = 3;

/// Held until a child has become another program, and has closed what is not its own.
static STARTING: Mutex<()> = Mutex::new(());

/// As long as this is held no child has a file of ours.
pub(crate) fn none_starting() -> MutexGuard<'static, ()> {
    // Who failed while holding it left nothing half done.
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts one that has input, output and errors from here, and no other file.
pub(crate) fn start(command: &mut Command) -> Child {
    let _starting = none_starting();
    // SAFETY: between fork and exec only a system call is made, which touches no memory.
    let command = unsafe {
        command.pre_exec(|| {
            match libc::close_range(FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        })
    };
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs one to its end, and takes what it says.
pub(crate) fn run(command: &mut Command) -> Output {
    start(command.stdout(Stdio::piped()).stderr(Stdio::piped())).wait_with_output().expect("it ends")
}
