//! The devices that libfabric has opened, of which one may be taken away.
//!
//! The provider `verbs` opens every RDMA device of the machine, and does not notice that one is gone. Some, such as soft RoCE, are
//! gone only once everybody has closed them: whoever takes one away waits for that.

use linkbraid_fabric::{Error, Result};
use nix::libc;
use std::{
    fs::{self, File},
    io,
    os::{
        fd::BorrowedFd,
        unix::fs::{FileTypeExt as _, MetadataExt as _},
    },
    thread,
    time::Duration,
};

/// How often they are looked at.
const EVERY: Duration = Duration::from_millis(250);

/// From now on this process ends as soon as a device that it has open now has no place in the file system any more.
///
/// # Errors
/// The kernel does not say what is open, or starts no thread.
pub fn end_without() -> Result<()> {
    let failed = |error: io::Error| Error::new("fabric", "cannot watch its devices", error.to_string());
    let devices = open_devices().map_err(failed)?;
    if !devices.is_empty() {
        thread::Builder::new().name("devices".into()).spawn(move || watch(&devices)).map_err(failed)?;
    }
    Ok(())
}

fn watch(devices: &[File]) {
    while !devices.iter().any(is_gone) {
        thread::sleep(EVERY);
    }
    eprintln!("an RDMA device was taken away");
    // SAFETY: it only ends the process. Nothing that the library does at the end of one is waited for.
    unsafe { libc::_exit(libc::EXIT_FAILURE) }
}

/// Duplicates of the open files that are devices, for the library may close its own. The first three may be a terminal.
fn open_devices() -> io::Result<Vec<File>> {
    let mut devices = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let fd = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(fd) = fd.filter(|fd| *fd > libc::STDERR_FILENO) else { continue };
        // SAFETY: it is a number, and is only duplicated; that fails if it is not open any more.
        let Ok(file) = (unsafe { BorrowedFd::borrow_raw(fd) }).try_clone_to_owned() else { continue };
        let file = File::from(file);
        if file.metadata()?.file_type().is_char_device() {
            devices.push(file);
        }
    }
    Ok(devices)
}

fn is_gone(device: &File) -> bool {
    device.metadata().is_ok_and(|device| device.nlink() == 0)
}

#[cfg(test)]
mod tests;
