//! Puts programs on interfaces: `tcx` links where the kernel has them (6.6), `clsact` filters before.
//!
//! Both outlive the daemon: a tcx link through its pin, a clsact filter through the interface. Both can be
//! replaced by a newer program without a frame passing in between.

use crate::error::{Error, Result};
use libbpf_rs::{AsRawLibbpf, Link, ProgramMut, TC_EGRESS, TC_INGRESS, TcHook, libbpf_sys};
use nix::errno::Errno;
use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd},
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

/// A choice of the hook to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HookChoice {
    /// tcx if the kernel has it, else clsact.
    #[default]
    Auto,
    /// Only this one; attaching fails if the kernel does not have it.
    Only(Hook),
}

/// On which side of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Ingress,
    Egress,
}

impl Side {
    const fn attach_point(self) -> libbpf_sys::bpf_tc_attach_point {
        match self {
            Side::Ingress => TC_INGRESS,
            Side::Egress => TC_EGRESS,
        }
    }
}

/// One program on one interface.
#[derive(Debug)]
pub(crate) struct Attachment {
    ifindex: u32,
    side: Side,
    /// The tcx link; none for a clsact filter.
    link: Option<Link>,
    /// None: nothing remembers it. A tcx link then goes with this process.
    pin: Option<PathBuf>,
}

impl Attachment {
    /// Puts `program` on the interface, in place of an older one that is pinned there.
    pub(crate) fn new(
        program: &ProgramMut<'_>,
        ifindex: u32,
        side: Side,
        choice: HookChoice,
        pin: &Path,
    ) -> Result<Self> {
        Self::attach(program, ifindex, side, choice, Some(pin))
    }

    /// The same without a pin, for an interface of ours: a tcx link goes with this process, a clsact filter stays until
    /// [`remove_bare`] or the end of the interface, and so does its queueing discipline.
    pub(crate) fn bare(
        program: &ProgramMut<'_>,
        ifindex: u32,
        side: Side,
        choice: HookChoice,
    ) -> Result<Self> {
        Self::attach(program, ifindex, side, choice, None)
    }

    fn attach(
        program: &ProgramMut<'_>,
        ifindex: u32,
        side: Side,
        choice: HookChoice,
        pin: Option<&Path>,
    ) -> Result<Self> {
        let link = choose(
            choice,
            || tcx(program, ifindex, pin).map(Some),
            || clsact(program, ifindex, side, pin).map(|()| None),
        )?;
        Ok(Self { ifindex, side, link, pin: pin.map(Path::to_owned) })
    }

    pub(crate) fn is_on(&self, ifindex: u32) -> bool {
        self.ifindex == ifindex
    }

    pub(crate) fn hook(&self) -> Hook {
        if self.link.is_some() { Hook::Tcx } else { Hook::Clsact }
    }

    /// Takes the program off again. An interface that is gone took it along.
    pub(crate) fn detach(self) -> Result<()> {
        match (self.link, self.pin) {
            (Some(link), pin) => {
                if let Some(pin) = pin {
                    remove(&pin, fs::remove_file(&pin))?;
                }
                // A link whose interface is gone is detached already; dropping it frees it either way.
                let _ = link.detach();
                Ok(())
            }
            (None, Some(pin)) => remove_clsact(&pin, self.ifindex, self.side),
            (None, None) => remove_bare(self.ifindex, self.side),
        }
    }
}

fn tcx(program: &ProgramMut<'_>, ifindex: u32, pin: Option<&Path>) -> Result<Link> {
    let failed = |what, cause| Error::Attach { what, ifindex, cause };
    if let Some(pin) = pin.filter(|pin| pin.exists()) {
        let mut link = Link::open(pin).map_err(|cause| failed("adopt the program", cause))?;
        if link.update_prog(program).is_ok() {
            return Ok(link);
        }
        // The interface of that tcx link is gone, and the link with it: make a new one.
        drop(link);
        fs::remove_file(pin).map_err(|cause| Error::Pin { path: pin.to_owned(), cause })?;
    }
    let mut link = attach_tcx(program, ifindex).map_err(|cause| failed("attach the program", cause))?;
    if let Some(pin) = pin {
        link.pin(pin).map_err(|cause| failed("pin the program", cause))?;
    }
    Ok(link)
}

fn clsact(program: &ProgramMut<'_>, ifindex: u32, side: Side, pin: Option<&Path>) -> Result<()> {
    let failed = |what, cause| Error::Attach { what, ifindex, cause };
    // Marks remember, beyond this process, what is ours to remove: the queueing discipline, and the filter.
    let mark = |kind| match pin.map(|pin| mark(pin, kind)) {
        Some(path) => fs::create_dir_all(&path).map_err(|cause| Error::Pin { path, cause }),
        None => Ok(()),
    };
    if create_clsact(ifindex).map_err(|cause| failed("create the clsact hook", cause))? {
        mark(QDISC)?;
    }
    mark(FILTER)?;
    let mut hook = clsact_hook(program, ifindex, side);
    hook.replace(true).attach().map_err(|cause| failed("attach the program", cause))?;
    Ok(())
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
        if file < 0 {
            let cause = libbpf_rs::Error::from_raw_os_error(-file);
            return Err(Error::Attach { what: "attach the program", ifindex, cause });
        }
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

/// Attaches one way or the other.
fn choose(
    choice: HookChoice,
    tcx: impl Fn() -> Result<Option<Link>>,
    clsact: impl Fn() -> Result<Option<Link>>,
) -> Result<Option<Link>> {
    match choice {
        HookChoice::Only(Hook::Tcx) => tcx(),
        HookChoice::Only(Hook::Clsact) => clsact(),
        HookChoice::Auto => {
            // A kernel before 6.6 refuses, which is no news to anybody.
            let print = libbpf_rs::set_print(None);
            let tried = tcx();
            libbpf_rs::set_print(print);
            match tried {
                Err(Error::Attach { cause, .. }) if cause.kind() == libbpf_rs::ErrorKind::InvalidInput => {
                    clsact()
                }
                other => other,
            }
        }
    }
}

/// Takes our clsact filter off one side of an interface of ours; does nothing where there is none.
pub(crate) fn remove_bare(ifindex: u32, side: Side) -> Result<()> {
    if !exists(ifindex) {
        return Ok(());
    }
    let failed = |cause| Error::Attach { what: "detach the program", ifindex, cause };
    detach_clsact(ifindex, side).map_err(failed)
}

/// What a mark beside the pin of a clsact attachment stands for: a queueing discipline that was not there before.
const QDISC: &str = "_clsact";
/// The same: our filter.
const FILTER: &str = "_filter";

fn mark(pin: &Path, kind: &str) -> PathBuf {
    // No dots: the BPF file system refuses names with them.
    let mut name = pin.as_os_str().to_owned();
    name.push(kind);
    name.into()
}

/// Where a program is pinned, under `pins`, or would be.
pub(crate) fn pin(pins: &Path, ifindex: u32, side: Side) -> PathBuf {
    let side = match side {
        Side::Ingress => "ingress",
        Side::Egress => "egress",
    };
    pins.join(format!("{side}_{ifindex}"))
}

/// Takes off the clsact filter that is marked beside `pin`, and the queueing discipline if that is ours and nobody has put
/// filters there meanwhile, which would go with it; does nothing where nothing is marked. Needs no program, and may follow
/// another process.
pub(crate) fn remove_clsact(pin: &Path, ifindex: u32, side: Side) -> Result<()> {
    let failed = |what, cause| Error::Attach { what, ifindex, cause };
    // An interface that is gone took it along.
    let here = exists(ifindex);
    let (filter, qdisc) = (mark(pin, FILTER), mark(pin, QDISC));
    if filter.exists() {
        if here {
            detach_clsact(ifindex, side).map_err(|cause| failed("detach the program", cause))?;
        }
        remove(&filter, fs::remove_dir(&filter))?;
    }
    if qdisc.exists() {
        let is_used = || linkbraid_link::has_filters(ifindex).map_err(libbpf_rs::Error::from);
        if here && !is_used().map_err(|cause| failed("list its filters", cause))? {
            destroy_clsact(ifindex).map_err(|cause| failed("remove the clsact hook", cause))?;
        }
        remove(&qdisc, fs::remove_dir(&qdisc))?;
    }
    Ok(())
}

/// The same for everything that is marked under `pins`. Goes on after an error and returns the first.
pub(crate) fn remove_all_clsact(pins: &Path) -> Result<()> {
    let mut first = Ok(());
    let entries = fs::read_dir(pins).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // On the way out of an interface the first program was put, which may have made the queueing discipline.
    names.sort_by_key(|name| name.starts_with("egress"));
    for name in &names {
        let Some(name) = name.strip_suffix(FILTER).or_else(|| name.strip_suffix(QDISC)) else { continue };
        let marked = name.split_once('_').and_then(|(side, ifindex)| Some((side, ifindex.parse().ok()?)));
        let (side, ifindex) = match marked {
            Some(("ingress", ifindex)) => (Side::Ingress, ifindex),
            Some(("egress", ifindex)) => (Side::Egress, ifindex),
            _ => continue,
        };
        let removed = remove_clsact(&pin(pins, ifindex, side), ifindex, side);
        first = first.and(removed);
    }
    first
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
        .attach_point(side.attach_point())
        .handle(CLSACT_HANDLE)
        .priority(CLSACT_PRIORITY);
    hook
}

/// The clsact hook of an interface, as libbpf takes it.
fn raw_hook(ifindex: u32, side: libbpf_sys::bpf_tc_attach_point) -> libbpf_sys::bpf_tc_hook {
    libbpf_sys::bpf_tc_hook {
        sz: size_of::<libbpf_sys::bpf_tc_hook>() as libbpf_sys::size_t,
        ifindex: ifindex.cast_signed(),
        attach_point: side,
        ..Default::default()
    }
}

/// Creates the clsact queueing discipline; `false` if it was there already, which libbpf-rs does not report.
fn create_clsact(ifindex: u32) -> libbpf_rs::Result<bool> {
    let mut hook = raw_hook(ifindex, TC_INGRESS | TC_EGRESS);
    // SAFETY: `hook` is a complete bpf_tc_hook with its own size in `sz`, alive during the call.
    match unsafe { libbpf_sys::bpf_tc_hook_create(&mut hook) } {
        0 => Ok(true),
        error if error == -(Errno::EEXIST as i32) => Ok(false),
        error => Err(libbpf_rs::Error::from_raw_os_error(-error)),
    }
}

/// Removes the clsact queueing discipline with all its filters, if it is there.
fn destroy_clsact(ifindex: u32) -> libbpf_rs::Result<()> {
    let mut hook = raw_hook(ifindex, TC_INGRESS | TC_EGRESS);
    // SAFETY: `hook` is a complete bpf_tc_hook with its own size in `sz`, alive during the call.
    gone_or(unsafe { libbpf_sys::bpf_tc_hook_destroy(&mut hook) })
}

/// Removes our clsact filter, if it is there; unlike that of libbpf-rs this needs no program.
fn detach_clsact(ifindex: u32, side: Side) -> libbpf_rs::Result<()> {
    let hook = raw_hook(ifindex, side.attach_point());
    let options = libbpf_sys::bpf_tc_opts {
        sz: size_of::<libbpf_sys::bpf_tc_opts>() as libbpf_sys::size_t,
        handle: CLSACT_HANDLE,
        priority: CLSACT_PRIORITY,
        ..Default::default()
    };
    // SAFETY: both structs are complete with their own sizes in `sz`, and alive during the call.
    gone_or(unsafe { libbpf_sys::bpf_tc_detach(&hook, &options) })
}

/// What libbpf answered to a removal. Somebody may have removed the filter (`ENOENT`) or the queueing discipline
/// (`EINVAL`) by hand.
fn gone_or(error: i32) -> libbpf_rs::Result<()> {
    match -error {
        0 => Ok(()),
        error if error == Errno::ENOENT as i32 || error == Errno::EINVAL as i32 => Ok(()),
        error => Err(libbpf_rs::Error::from_raw_os_error(error)),
    }
}

/// `bpf_program__attach_tcx`, which libbpf-rs does not have.
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
