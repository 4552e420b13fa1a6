//! What this process may do: less than the daemon that starts it.

use nix::{errno::Errno, libc, sys::prctl};

/// The one capability that is kept, if it is there: memory that a device writes to is locked (linux/capability.h).
const CAP_IPC_LOCK: u32 = 14;
/// `_LINUX_CAPABILITY_VERSION_3`: two sets of 32.
const VERSION: u32 = 0x2008_0522;
/// The first file that is not standard input, output or errors.
const FIRST_FILE: libc::c_uint = 3;

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Gives up all privileges but one, for good, and all files but the first three. To be called while there is one thread.
///
/// # Errors
/// Those of the system calls.
pub fn confine() -> Result<(), Errno> {
    // What is executed after this gets no privilege back.
    prctl::set_no_new_privs()?;
    let mut header = Header { version: VERSION, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: the kernel writes two sets, as the version says, into memory that lives until it returns.
    Errno::result(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) })?;
    let kept = sets[0].permitted & (1 << CAP_IPC_LOCK);
    let sets = [Sets { effective: kept, permitted: kept, inheritable: 0 }, Sets::default()];
    // SAFETY: the kernel reads two sets, as the version says, from memory that lives until it returns.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) })?;
    // SAFETY: nothing in this process has opened a file yet, so nobody uses what is closed.
    Errno::result(unsafe { libc::close_range(FIRST_FILE, libc::c_uint::MAX, 0) }).map(drop)
}
