//! Filters on the clsact queueing discipline.
//!
//! The priority says which are ours. The handle says whether the queueing discipline is: one that we made goes with the last
//! filter on it.

use super::{Side, done, exists, quietly};
use crate::error::{Error, Result};
use libbpf_rs::{TC_EGRESS, TC_INGRESS, libbpf_sys};
use nix::errno::Errno;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Of all filters of ours: those of a lower one come first.
pub const PREFERENCE: u32 = 0x1b;
/// Of [`attach_bare`], and of all filters of earlier builds.
const BARE: u32 = 0x1b;
/// Of a bond's filter whose queueing discipline we made.
const MADE: u32 = 0x1c;
/// Of a bond's filter whose queueing discipline was there before.
const FOUND: u32 = 0x1d;
/// Of all filters that may be a bond's.
pub(crate) const HANDLES: [u32; 3] = [MADE, FOUND, BARE];

const fn point(side: Side) -> libbpf_sys::bpf_tc_attach_point {
    match side {
        Side::Ingress => TC_INGRESS,
        Side::Egress => TC_EGRESS,
    }
}

/// The hook of an interface, as libbpf takes it.
fn hook(ifindex: u32, points: libbpf_sys::bpf_tc_attach_point) -> libbpf_sys::bpf_tc_hook {
    libbpf_sys::bpf_tc_hook {
        sz: size_of::<libbpf_sys::bpf_tc_hook>() as libbpf_sys::size_t,
        ifindex: ifindex.cast_signed(),
        attach_point: points,
        ..Default::default()
    }
}

fn filter(handle: u32) -> libbpf_sys::bpf_tc_opts {
    libbpf_sys::bpf_tc_opts {
        sz: size_of::<libbpf_sys::bpf_tc_opts>() as libbpf_sys::size_t,
        handle,
        priority: PREFERENCE,
        ..Default::default()
    }
}

/// Puts a program on one side of an interface, which stays, with the queueing discipline that this needs; the filter's handle.
pub(crate) fn attach(program: BorrowedFd<'_>, ifindex: u32, side: Side) -> Result<u32> {
    let made = make_qdisc(ifindex)?;
    // Both sides have one queueing discipline, which goes with the last filter.
    let made = made || quietly(|| self::program(MADE, ifindex, side.other()))?.is_some();
    let handle = if made { MADE } else { FOUND };
    replace(handle, program, ifindex, side).map(|()| handle)
}

/// The same on an interface of ours, in the place of an older one. The queueing discipline stays for as long as the interface.
pub(crate) fn attach_bare(program: BorrowedFd<'_>, ifindex: u32, side: Side) -> Result<()> {
    make_qdisc(ifindex)?;
    replace(BARE, program, ifindex, side)
}

/// Makes the queueing discipline; false if it was there.
fn make_qdisc(ifindex: u32) -> Result<bool> {
    let mut hook = hook(ifindex, TC_INGRESS | TC_EGRESS);
    // SAFETY: `hook` is complete, with its own size, and outlives the call.
    let answer = unsafe { libbpf_sys::bpf_tc_hook_create(&mut hook) };
    match Errno::from_raw(-answer) {
        Errno::EEXIST => Ok(false),
        _ => done(answer, "create the clsact hook", ifindex).map(|()| true),
    }
}

/// Puts a program into the place of the filter of this handle, if there is one.
pub(crate) fn replace(handle: u32, program: BorrowedFd<'_>, ifindex: u32, side: Side) -> Result<()> {
    let hook = hook(ifindex, point(side));
    let mut options = filter(handle);
    (options.prog_fd, options.flags) = (program.as_raw_fd(), libbpf_sys::BPF_TC_F_REPLACE);
    // SAFETY: both structs are complete with their own sizes in `sz`, and alive during the call.
    done(unsafe { libbpf_sys::bpf_tc_attach(&hook, &mut options) }, "attach the program", ifindex)
}

/// The number of the program of the filter of this handle; none where there is no such filter.
pub(crate) fn program(handle: u32, ifindex: u32, side: Side) -> Result<Option<u32>> {
    let hook = hook(ifindex, point(side));
    let mut options = filter(handle);
    // SAFETY: both structs are complete with their own sizes in `sz`, and alive during the call.
    let answer = unsafe { libbpf_sys::bpf_tc_query(&hook, &mut options) };
    match is_gone(answer) {
        true => Ok(None),
        false => done(answer, "list the programs", ifindex).map(|()| Some(options.prog_id)),
    }
}

/// Takes the filter of this handle off, and the queueing discipline if that is ours and nobody has put filters there meanwhile, which
/// would go with it.
pub(crate) fn remove(handle: u32, ifindex: u32, side: Side) -> Result<()> {
    detach(handle, ifindex, side)?;
    let is_used = || {
        linkbraid_link::has_filters(ifindex).map_err(|cause| Error::Attach {
            what: "list its filters",
            ifindex,
            cause: cause.into(),
        })
    };
    if handle == MADE && exists(ifindex) && !is_used()? { destroy(ifindex) } else { Ok(()) }
}

/// Takes the filter of [`attach_bare`] off; does nothing where there is none.
pub(crate) fn remove_bare(ifindex: u32, side: Side) -> Result<()> {
    match exists(ifindex) {
        true => detach(BARE, ifindex, side),
        false => Ok(()),
    }
}

fn detach(handle: u32, ifindex: u32, side: Side) -> Result<()> {
    let hook = hook(ifindex, point(side));
    let options = filter(handle);
    // SAFETY: both structs are complete with their own sizes in `sz`, and alive during the call.
    let answer = quietly(|| unsafe { libbpf_sys::bpf_tc_detach(&hook, &options) });
    if is_gone(answer) { Ok(()) } else { done(answer, "detach the program", ifindex) }
}

/// Removes the queueing discipline with all its filters, if it is there.
fn destroy(ifindex: u32) -> Result<()> {
    let mut hook = hook(ifindex, TC_INGRESS | TC_EGRESS);
    // SAFETY: `hook` is complete, with its own size, and outlives the call.
    let answer = unsafe { libbpf_sys::bpf_tc_hook_destroy(&mut hook) };
    if is_gone(answer) { Ok(()) } else { done(answer, "remove the clsact hook", ifindex) }
}

/// Whether libbpf answered that something is not there: the filter (`ENOENT`), the queueing discipline (`EINVAL`), the interface, or
/// all filters in this kernel.
fn is_gone(answer: i32) -> bool {
    matches!(Errno::from_raw(-answer), Errno::ENOENT | Errno::EINVAL | Errno::ENODEV | Errno::EOPNOTSUPP)
}
