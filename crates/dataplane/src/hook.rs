//! Puts programs on interfaces: `tcx` links where the kernel has them (6.6), `clsact` filters before.
//!
//! Both outlive the daemon: a tcx link through its pin, a clsact filter through the interface. Both can be
//! replaced by a newer program without a frame passing in between.

use crate::error::{Error, Result};
use libbpf_rs::{AsRawLibbpf, Link, ProgramMut, TC_EGRESS, TC_INGRESS, TcHook, libbpf_sys};
use std::{
    fs, io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    ptr::NonNull,
};

/// Our filters among others on a clsact hook: this handle and priority are ours.
const CLSACT_HANDLE: u32 = 0x1b;
const CLSACT_PRIORITY: u32 = 0x1b;

/// The kind of hook in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// A pinned tcx link.
    Tcx,
    /// A filter of the clsact queueing discipline.
    Clsact,
}

impl std::fmt::Display for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Hook::Tcx => "tcx",
            Hook::Clsact => "clsact",
        })
    }
}

/// Which hook to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HookChoice {
    /// tcx if the kernel has it.
    #[default]
    Auto,
    /// This one or fail.
    Only(Hook),
}

/// On which side of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Ingress,
    Egress,
}

/// One program on one interface.
#[derive(Debug)]
pub(crate) struct Attachment {
    ifindex: u32,
    side: Side,
    how: How,
}

#[derive(Debug)]
enum How {
    Tcx { link: Link, pin: PathBuf },
    Clsact { marker: PathBuf },
}

impl Attachment {
    /// Puts `program` on the interface, in place of an older one that this name left there.
    pub(crate) fn new(
        program: &ProgramMut<'_>,
        ifindex: u32,
        side: Side,
        choice: HookChoice,
        pin: &Path,
    ) -> Result<Self> {
        match choice {
            HookChoice::Only(Hook::Tcx) => Self::tcx(program, ifindex, side, pin),
            HookChoice::Only(Hook::Clsact) => Self::clsact(program, ifindex, side, pin),
            HookChoice::Auto => {
                // A kernel before 6.6 refuses, which is no news to anybody.
                let print = libbpf_rs::set_print(None);
                let tried = Self::tcx(program, ifindex, side, pin);
                libbpf_rs::set_print(print);
                match tried {
                    Err(Error::Attach { cause, .. })
                        if cause.kind() == libbpf_rs::ErrorKind::InvalidInput =>
                    {
                        Self::clsact(program, ifindex, side, pin)
                    }
                    other => other,
                }
            }
        }
    }

    pub(crate) fn hook(&self) -> Hook {
        match self.how {
            How::Tcx { .. } => Hook::Tcx,
            How::Clsact { .. } => Hook::Clsact,
        }
    }

    fn tcx(program: &ProgramMut<'_>, ifindex: u32, side: Side, pin: &Path) -> Result<Self> {
        let failed = |what, cause| Error::Attach { what, ifindex, cause };
        if pin.exists() {
            let mut link = Link::open(pin).map_err(|cause| failed("adopt the program", cause))?;
            if link.update_prog(program).is_ok() {
                return Ok(Self { ifindex, side, how: How::Tcx { link, pin: pin.to_owned() } });
            }
            // The interface of that link is gone, so the link is dead: make a new one.
            drop(link);
            fs::remove_file(pin).map_err(|cause| Error::Pin { path: pin.to_owned(), cause })?;
        }
        let mut link = attach_tcx(program, ifindex).map_err(|cause| failed("attach the program", cause))?;
        link.pin(pin).map_err(|cause| failed("pin the program", cause))?;
        Ok(Self { ifindex, side, how: How::Tcx { link, pin: pin.to_owned() } })
    }

    fn clsact(program: &ProgramMut<'_>, ifindex: u32, side: Side, pin: &Path) -> Result<Self> {
        let failed = |what, cause| Error::Attach { what, ifindex, cause };
        let marker = clsact_marker(pin);
        if create_clsact(ifindex).map_err(|cause| failed("create the clsact hook", cause))? {
            // The marker remembers, beyond this process, that the queueing discipline is ours to remove.
            fs::create_dir_all(&marker).map_err(|cause| Error::Pin { path: marker.clone(), cause })?;
        }
        let mut hook = clsact_hook(program, ifindex, side);
        hook.replace(true).attach().map_err(|cause| failed("attach the program", cause))?;
        Ok(Self { ifindex, side, how: How::Clsact { marker } })
    }

    /// Takes the program off again. An interface that is gone took it along.
    pub(crate) fn detach(self, program: &ProgramMut<'_>) -> Result<()> {
        let ifindex = self.ifindex;
        let failed = |what, cause| Error::Attach { what, ifindex, cause };
        match self.how {
            How::Tcx { link, pin } => {
                remove(&pin, fs::remove_file(&pin))?;
                // A link whose interface is gone is detached already; dropping it frees it either way.
                let _ = link.detach();
                Ok(())
            }
            How::Clsact { marker } => {
                let mut hook = clsact_hook(program, ifindex, self.side);
                let ours = marker.exists();
                let gone = |cause: &libbpf_rs::Error| cause.kind() == libbpf_rs::ErrorKind::NotFound;
                match hook.detach() {
                    Err(cause) if !gone(&cause) && exists(ifindex) => {
                        return Err(failed("detach the program", cause));
                    }
                    _ => {}
                }
                if ours {
                    let both = hook.attach_point(TC_INGRESS | TC_EGRESS).destroy();
                    if let Err(cause) = both
                        && exists(ifindex)
                    {
                        return Err(failed("remove the clsact hook", cause));
                    }
                    remove(&marker, fs::remove_dir(&marker))?;
                }
                Ok(())
            }
        }
    }
}

fn clsact_marker(pin: &Path) -> PathBuf {
    // No dots: the BPF file system refuses names with them.
    let mut name = pin.as_os_str().to_owned();
    name.push("_clsact");
    name.into()
}

fn exists(ifindex: u32) -> bool {
    // nix answers with an empty name where there is no such interface.
    nix::net::if_::if_indextoname(ifindex).is_ok_and(|name| !name.is_empty())
}

fn remove(path: &Path, result: io::Result<()>) -> Result<()> {
    match result {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(Error::Pin { path: path.to_owned(), cause })
        }
        _ => Ok(()),
    }
}

fn clsact_hook(program: &ProgramMut<'_>, ifindex: u32, side: Side) -> TcHook {
    let mut hook = TcHook::new(program.as_fd());
    hook.ifindex(ifindex.cast_signed())
        .attach_point(match side {
            Side::Ingress => TC_INGRESS,
            Side::Egress => TC_EGRESS,
        })
        .handle(CLSACT_HANDLE)
        .priority(CLSACT_PRIORITY);
    hook
}

/// Creates the clsact queueing discipline; `false` if it was there already, which libbpf-rs does not tell.
fn create_clsact(ifindex: u32) -> libbpf_rs::Result<bool> {
    let mut hook = libbpf_sys::bpf_tc_hook {
        sz: size_of::<libbpf_sys::bpf_tc_hook>() as libbpf_sys::size_t,
        ifindex: ifindex.cast_signed(),
        attach_point: TC_INGRESS | TC_EGRESS,
        ..Default::default()
    };
    // SAFETY: `hook` is a complete bpf_tc_hook with its own size in `sz`, alive during the call.
    match unsafe { libbpf_sys::bpf_tc_hook_create(&mut hook) } {
        0 => Ok(true),
        error if error == -(nix::errno::Errno::EEXIST as i32) => Ok(false),
        error => Err(libbpf_rs::Error::from_raw_os_error(-error)),
    }
}

/// `bpf_program__attach_tcx`, which libbpf-rs lacks.
fn attach_tcx(program: &ProgramMut<'_>, ifindex: u32) -> libbpf_rs::Result<Link> {
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
        None => Err(io::Error::last_os_error().into()),
    }
}
