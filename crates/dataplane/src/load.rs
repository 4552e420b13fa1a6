//! Loads the compiled programs.

use crate::{
    HOLDER, MAPS, OBJECT,
    attached::short,
    error::{Error as E, Result},
};
use libbpf_rs::{MapHandle, MapType, Object, ObjectBuilder, ProgramMut, libbpf_sys};
use std::{
    collections::HashMap,
    ffi::OsStr,
    os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd},
    time::Duration,
};

/// How often loading is tried while it is interrupted, and the pause between.
const LOAD_TRIES: u32 = 5;
const LOAD_PAUSE: Duration = Duration::from_millis(20);

/// An unused socket, which the kernel closes when this process ends; none where the kernel has no AF_XDP.
pub(crate) fn holder() -> Option<OwnedFd> {
    // SAFETY: it takes numbers, and gives a descriptor that nobody else has or -1.
    unsafe {
        let fd = nix::libc::socket(nix::libc::AF_XDP, nix::libc::SOCK_RAW | nix::libc::SOCK_CLOEXEC, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}

/// Loads the object, with these maps of an earlier load in the place of new ones.
pub(crate) fn load(old: &HashMap<String, MapHandle>, holds: bool) -> Result<Object> {
    patiently(|| load_object(old, holds))
}

/// Loads again where the verifier was interrupted: it gives up with EAGAIN on any pending signal, such as that of a machine that is
/// being frozen, and libbpf tries only five times in a row without a pause.
pub(crate) fn patiently(load: impl Fn() -> Result<Object>) -> Result<Object> {
    let mut tries = 0;
    loop {
        tries += 1;
        match load() {
            Err(E::Load(cause)) if tries < LOAD_TRIES && cause.kind() == libbpf_rs::ErrorKind::WouldBlock => {
                std::thread::sleep(LOAD_PAUSE);
            }
            loaded => return loaded,
        }
    }
}

fn load_object(old: &HashMap<String, MapHandle>, holds: bool) -> Result<Object> {
    let mut open =
        ObjectBuilder::default().name("linkbraid").and_then(|b| b.open_memory(OBJECT)).map_err(E::Load)?;
    for mut map in open.maps_mut() {
        if map.name() == HOLDER && !holds {
            map.set_type(MapType::Array).map_err(E::Load)?;
        }
        let name = MAPS.iter().find(|name| map.name() == OsStr::new(name));
        if let Some(old) = name.and_then(|name| old.get(short(name))) {
            map.reuse_fd(old.as_fd()).map_err(E::Load)?;
        }
    }
    open.load().map_err(E::Load)
}

/// Has the kernel keep a map for as long as a program, whether or not the program uses it.
pub(crate) fn bind(program: &impl AsFd, map: &MapHandle) -> Result<()> {
    let (program, map) = (program.as_fd().as_raw_fd(), map.as_fd().as_raw_fd());
    // SAFETY: both are numbers of open files, and no options are given.
    match unsafe { libbpf_sys::bpf_prog_bind_map(program, map, std::ptr::null()) } {
        0 => Ok(()),
        error => Err(E::Load(libbpf_rs::Error::from_raw_os_error(-error))),
    }
}

pub(crate) fn program<'o>(object: &'o Object, name: &'static str) -> Result<ProgramMut<'o>> {
    object.progs_mut().find(|program| program.name() == OsStr::new(name)).ok_or(E::Missing(name))
}

/// The file of a program, which outlives the object.
pub(crate) fn program_file(object: &Object, name: &'static str) -> Result<OwnedFd> {
    program(object, name)?.as_fd().try_clone_to_owned().map_err(|cause| E::Load(cause.into()))
}
