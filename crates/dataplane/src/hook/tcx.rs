//! The tcx hook: programs in a row at each side of an interface, some held by links.

use super::{Side, done};
use crate::{
    by_id::{self, Object},
    error::{Error, Result},
};
use libbpf_rs::{AsRawLibbpf as _, Link, ProgramMut, libbpf_sys};
use nix::errno::Errno;
use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
    ptr::NonNull,
};

/// The most programs in a row (`BPF_MPROG_MAX` of the kernel).
const ROW_MAX: usize = 64;

const fn point(side: Side) -> libbpf_sys::bpf_attach_type {
    match side {
        Side::Ingress => libbpf_sys::BPF_TCX_INGRESS,
        Side::Egress => libbpf_sys::BPF_TCX_EGRESS,
    }
}

/// The programs of a row, in order: each one's number, and that of the link that holds it; 0 where none does. Nothing where the
/// interface or the hook does not exist.
pub(crate) fn row(ifindex: u32, side: Side) -> Result<Vec<(u32, u32)>> {
    let (mut programs, mut links) = ([0; ROW_MAX], [0; ROW_MAX]);
    let mut query = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: programs.as_mut_ptr(),
        link_ids: links.as_mut_ptr(),
        ..Default::default()
    };
    query.__bindgen_anon_1.count = ROW_MAX as u32;
    // SAFETY: `query` is complete, with its own size; both arrays have room for the number that it names, and outlive the call.
    let answer = unsafe { libbpf_sys::bpf_prog_query_opts(ifindex.cast_signed(), point(side), &mut query) };
    match Errno::from_raw(-answer) {
        Errno::ENOENT | Errno::EINVAL | Errno::ENODEV => return Ok(Vec::new()),
        _ => done(answer, "list the programs", ifindex)?,
    }
    // SAFETY: the union's other name for the field is of the same type.
    let count = unsafe { query.__bindgen_anon_1.count } as usize;
    Ok(programs.into_iter().zip(links).take(count).collect())
}

/// Puts a program at the end of the row. It stays there.
pub(crate) fn attach(program: BorrowedFd<'_>, ifindex: u32, side: Side) -> Result<()> {
    put(program, ifindex, side, 0, 0)
}

/// Puts a program into the place of one that no link holds.
pub(crate) fn replace(old: BorrowedFd<'_>, program: BorrowedFd<'_>, ifindex: u32, side: Side) -> Result<()> {
    put(program, ifindex, side, libbpf_sys::BPF_F_REPLACE, old.as_raw_fd())
}

fn put(program: BorrowedFd<'_>, ifindex: u32, side: Side, flags: u32, old: i32) -> Result<()> {
    let mut options = libbpf_sys::bpf_prog_attach_opts {
        sz: size_of::<libbpf_sys::bpf_prog_attach_opts>() as libbpf_sys::size_t,
        flags,
        ..Default::default()
    };
    options.__bindgen_anon_1.replace_prog_fd = old;
    // SAFETY: `options` is complete, with its own size, and outlives the call; the others are numbers of open files.
    let answer = unsafe {
        libbpf_sys::bpf_prog_attach_opts(program.as_raw_fd(), ifindex.cast_signed(), point(side), &options)
    };
    match Errno::from_raw(-answer) {
        // It is there already.
        Errno::EEXIST => Ok(()),
        _ => done(answer, "attach the program", ifindex),
    }
}

/// Takes a program off that no link holds. One that is gone is no error, and neither is an interface that is.
pub(crate) fn detach(program: BorrowedFd<'_>, ifindex: u32, side: Side) -> Result<()> {
    // SAFETY: the number of an open file, and no options.
    let answer = unsafe {
        libbpf_sys::bpf_prog_detach_opts(
            program.as_raw_fd(),
            ifindex.cast_signed(),
            point(side),
            std::ptr::null(),
        )
    };
    gone_or(answer, ifindex)
}

/// Puts a program into the place of the one that a link holds.
pub(crate) fn update_link(link: u32, program: BorrowedFd<'_>, ifindex: u32) -> Result<()> {
    let link = open_link(link, ifindex)?;
    // SAFETY: both are numbers of open files, and no options are given.
    let answer =
        unsafe { libbpf_sys::bpf_link_update(link.as_raw_fd(), program.as_raw_fd(), std::ptr::null()) };
    done(answer, "replace the program", ifindex)
}

/// Takes the program off that a link holds, whoever has the link.
pub(crate) fn detach_link(link: u32, ifindex: u32) -> Result<()> {
    let Ok(link) = open_link(link, ifindex) else { return Ok(()) };
    // SAFETY: the number of an open file.
    gone_or(unsafe { libbpf_sys::bpf_link_detach(link.as_raw_fd()) }, ifindex)
}

fn open_link(id: u32, ifindex: u32) -> Result<OwnedFd> {
    by_id::find(Object::Link(id))?.pop().ok_or_else(|| {
        let cause = libbpf_rs::Error::from_raw_os_error(Errno::ENOENT as i32);
        Error::Attach { what: "open the link", ifindex, cause }
    })
}

fn gone_or(answer: i32, ifindex: u32) -> Result<()> {
    match Errno::from_raw(-answer) {
        Errno::ENOENT | Errno::ENODEV | Errno::ENOLINK => Ok(()),
        _ => done(answer, "detach the program", ifindex),
    }
}

/// `bpf_program__attach_tcx`, which libbpf-rs does not have: a link that goes with this process.
pub(crate) fn link(program: &ProgramMut<'_>, ifindex: u32) -> Result<Link> {
    // SAFETY: the program is loaded and outlives the call; no options are given. The returned link is ours.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_tcx(
            program.as_libbpf_object().as_ptr(),
            ifindex.cast_signed(),
            std::ptr::null(),
        )
    };
    match NonNull::new(link) {
        // SAFETY: libbpf returned a valid link that nobody else holds.
        Some(link) => Ok(unsafe { Link::from_ptr(link) }),
        None => Err(Error::Attach {
            what: "attach the program",
            ifindex,
            cause: io::Error::last_os_error().into(),
        }),
    }
}

/// A tcx link of a program alone, without the object that it came from: may move between threads.
pub(crate) struct BareLink {
    link: OwnedFd,
}

impl BareLink {
    /// Puts the program behind all others on the way in. It goes when this is dropped, or with the process.
    pub(crate) fn ingress(program: &OwnedFd, ifindex: u32) -> Result<Self> {
        // SAFETY: both numbers are those of a file and of an interface, and no options are given.
        let file = unsafe {
            libbpf_sys::bpf_link_create(
                program.as_raw_fd(),
                ifindex.cast_signed(),
                libbpf_sys::BPF_TCX_INGRESS,
                std::ptr::null(),
            )
        };
        done(file.min(0), "attach the program", ifindex)?;
        // SAFETY: the kernel just opened it for this call, and nobody else has it.
        Ok(Self { link: unsafe { OwnedFd::from_raw_fd(file) } })
    }
}

impl Drop for BareLink {
    /// At once, whoever else may have the file for a moment. An interface that is gone took the program along.
    fn drop(&mut self) {
        // SAFETY: the number of a file that is open.
        let _ = unsafe { libbpf_sys::bpf_link_detach(self.link.as_raw_fd()) };
    }
}
