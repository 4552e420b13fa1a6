//! Programs, maps and links by the numbers under which the kernel lists them.
//!
//! Opening one needs `CAP_SYS_ADMIN`. A daemon that has given it up has another process do it ([`open_by`]). That process opens
//! nothing but what belongs to bonds ([`open`]), so that its rights are of no other use to whoever takes the daemon over.

use crate::{
    PROGRAMS,
    attached::Info,
    error::{Error, Result},
};
use libbpf_rs::libbpf_sys;
use nix::errno::Errno;
use serde::{Deserialize, Serialize};
use std::{
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    sync::OnceLock,
};

/// Something that the kernel lists by a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Object {
    /// A program.
    Program(u32),
    /// The maps of the program of this number.
    Maps(u32),
    /// A link, which holds a program.
    Link(u32),
}

type Opener = Box<dyn Fn(Object) -> io::Result<Vec<OwnedFd>> + Send + Sync>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// Has objects opened by somebody else from now on, who answers as [`open`]. The first one counts.
pub fn open_by(opener: impl Fn(Object) -> io::Result<Vec<OwnedFd>> + Send + Sync + 'static) {
    let _ = OPENER.set(Box::new(opener));
}

/// Opens what belongs to a bond, with the rights of this process; nothing where there is no such object, or it is none of a bond.
///
/// # Errors
/// Those of the kernel, which looks at rights first.
pub fn open(object: Object) -> io::Result<Vec<OwnedFd>> {
    Ok(match object {
        Object::Program(id) => program(id)?.map(|(file, _)| file).into_iter().collect(),
        Object::Maps(of) => {
            let maps = program(of)?.map_or_else(Vec::new, |(_, info)| info.maps);
            // SAFETY: it takes a number.
            let map = |id| file(unsafe { libbpf_sys::bpf_map_get_fd_by_id(id) }).transpose();
            maps.into_iter().filter_map(map).collect::<io::Result<_>>()?
        }
        Object::Link(id) => {
            // SAFETY: it takes a number.
            match file(unsafe { libbpf_sys::bpf_link_get_fd_by_id(id) })? {
                Some(link) if program(program_of(&link)?)?.is_some() => vec![link],
                _ => Vec::new(),
            }
        }
    })
}

/// As [`open`], by whoever may do it.
pub(crate) fn find(object: Object) -> Result<Vec<OwnedFd>> {
    let found = OPENER.get().map_or_else(|| open(object), |opener| opener(object));
    found.map_err(|cause| Error::NotFound(cause.into()))
}

/// Whether programs and maps can be looked for.
///
/// # Errors
/// They cannot.
pub fn can_find() -> Result<()> {
    // There is no program of this number, but the kernel looks at rights first.
    find(Object::Program(0)).map(drop)
}

/// A program of a bond.
fn program(id: u32) -> io::Result<Option<(OwnedFd, Info)>> {
    // SAFETY: it takes a number.
    let Some(file) = file(unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) })? else { return Ok(None) };
    let info = Info::read(&file)?;
    Ok(PROGRAMS.contains(&info.name.as_str()).then_some((file, info)))
}

/// The number of the program that a link holds.
fn program_of(link: &OwnedFd) -> io::Result<u32> {
    let mut info = libbpf_sys::bpf_link_info::default();
    let mut bytes = size_of::<libbpf_sys::bpf_link_info>() as u32;
    // SAFETY: `info` has the size that is given, and outlives the call.
    match unsafe { libbpf_sys::bpf_link_get_info_by_fd(link.as_raw_fd(), &mut info, &mut bytes) } {
        0 => Ok(info.prog_id),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

/// What the kernel just opened for this call, or what it answered instead; none where there is no such thing.
fn file(answer: i32) -> io::Result<Option<OwnedFd>> {
    match answer {
        // SAFETY: the kernel just opened it for the caller, and nobody else has it.
        0.. => Ok(Some(unsafe { OwnedFd::from_raw_fd(answer) })),
        gone if gone == -(Errno::ENOENT as i32) => Ok(None),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}
