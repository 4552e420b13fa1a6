//! Puts programs on interfaces: on the `tcx` hook where the kernel has it (6.6), as `clsact` filters before.
//!
//! A bond's programs stay until they are taken off or the interface goes, whatever becomes of the process, and are found again
//! by what the kernel lists ([`crate::attached`]). A newer program takes an older one's place without a frame passing in between.

pub(crate) mod clsact;
pub(crate) mod tcx;

use crate::{
    attached::{self, Info},
    error::{Error, Result},
};
use libbpf_rs::{Link, PrintLevel, ProgramMut};
use std::{
    os::fd::{AsFd as _, BorrowedFd},
    sync::OnceLock,
};

/// The kind of hook in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// A program of the tcx hook.
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

/// Both.
pub(crate) const SIDES: [Side; 2] = [Side::Egress, Side::Ingress];

impl Side {
    const fn other(self) -> Self {
        match self {
            Side::Ingress => Side::Egress,
            Side::Egress => Side::Ingress,
        }
    }
}

/// Where on one side of an interface a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the row of the tcx hook.
    Row,
    /// The same, held by the link of this number. Earlier builds pinned such links.
    Link(u32),
    /// A clsact filter of this handle.
    Filter(u32),
}

impl Place {
    pub(crate) const fn hook(self) -> Hook {
        match self {
            Place::Row | Place::Link(_) => Hook::Tcx,
            Place::Filter(_) => Hook::Clsact,
        }
    }

    /// Takes the program off that is there. One that is gone is no error, and neither is an interface that is.
    pub(crate) fn remove(self, program: BorrowedFd<'_>, ifindex: u32, side: Side) -> Result<()> {
        match self {
            Place::Row => tcx::detach(program, ifindex, side),
            Place::Link(link) => tcx::detach_link(link, ifindex),
            Place::Filter(handle) => clsact::remove(handle, ifindex, side),
        }
    }
}

/// Puts a bond's program on the interface, in the place of one that is there already, of whichever daemon. It stays when this
/// process ends.
pub(crate) fn attach(program: BorrowedFd<'_>, ifindex: u32, side: Side, choice: HookChoice) -> Result<Place> {
    let own = Info::of(&program)?.id;
    let before = attached::on(ifindex, side)?;
    let is_wanted = |hook| matches!(choice, HookChoice::Auto) || choice == HookChoice::Only(hook);
    let same = before.iter().position(|old| is_wanted(old.place.hook()));
    let place = match same {
        Some(same) => {
            // One that an earlier daemon left may be the same.
            if before[same].id != own {
                before[same].replace(program)?;
            }
            before[same].place
        }
        None => choose(
            choice,
            || tcx::attach(program, ifindex, side).map(|()| Place::Row),
            || clsact::attach(program, ifindex, side).map(Place::Filter),
        )?,
    };
    let others = before.iter().enumerate().filter(|(at, _)| Some(*at) != same);
    others.map(|(_, old)| old.remove()).fold(Ok(()), Result::and)?;
    Ok(place)
}

/// A program on an interface of ours that goes with this process on the tcx hook. A clsact filter stays until [`clsact::remove_bare`] or
/// the end of the interface, and so does its queueing discipline.
#[derive(Debug)]
pub(crate) struct Bare {
    ifindex: u32,
    side: Side,
    /// None for a clsact filter.
    link: Option<Link>,
}

impl Bare {
    pub(crate) fn attach(
        program: &ProgramMut<'_>,
        ifindex: u32,
        side: Side,
        choice: HookChoice,
    ) -> Result<Self> {
        let link = choose(
            choice,
            || tcx::link(program, ifindex).map(Some),
            || clsact::attach_bare(program.as_fd(), ifindex, side).map(|()| None),
        )?;
        Ok(Self { ifindex, side, link })
    }

    pub(crate) fn hook(&self) -> Hook {
        if self.link.is_some() { Hook::Tcx } else { Hook::Clsact }
    }

    /// Takes the program off again. An interface that is gone took it along.
    pub(crate) fn detach(self) -> Result<()> {
        match self.link {
            Some(link) => {
                // A link whose interface is gone is detached already; dropping it frees it either way.
                let _ = link.detach();
                Ok(())
            }
            None => clsact::remove_bare(self.ifindex, self.side),
        }
    }
}

/// Attaches one way or the other.
fn choose<T>(choice: HookChoice, tcx: impl Fn() -> Result<T>, clsact: impl Fn() -> Result<T>) -> Result<T> {
    match choice {
        HookChoice::Only(Hook::Tcx) => tcx(),
        HookChoice::Only(Hook::Clsact) => clsact(),
        // A kernel before 6.6 refuses, which is no news to anybody.
        HookChoice::Auto => match quietly(tcx) {
            Err(Error::Attach { cause, .. }) if cause.kind() == libbpf_rs::ErrorKind::InvalidInput => {
                clsact()
            }
            other => other,
        },
    }
}

/// Hands what libbpf has to say to `say`, line by line, in the place of standard error. Most of it is no news: what fails is
/// an error of ours, too.
pub fn on_message(say: fn(&str)) {
    static SAY: OnceLock<fn(&str)> = OnceLock::new();
    let _ = SAY.set(say);
    let print = |_: PrintLevel, text: String| {
        if let Some(say) = SAY.get() {
            text.lines().filter(|line| !line.is_empty()).for_each(say);
        }
    };
    libbpf_rs::set_print(Some((PrintLevel::Info, print)));
}

/// Without what libbpf writes to standard error.
pub(crate) fn quietly<T>(call: impl FnOnce() -> T) -> T {
    let print = libbpf_rs::set_print(None);
    let result = call();
    libbpf_rs::set_print(print);
    result
}

/// Whether the interface is there, in the network namespace of this thread.
pub(crate) fn exists(ifindex: u32) -> bool {
    // nix answers with an empty name where there is no such interface.
    nix::net::if_::if_indextoname(ifindex).is_ok_and(|name| !name.is_empty())
}

/// What libbpf answered, for an error of one interface.
fn done(answer: i32, what: &'static str, ifindex: u32) -> Result<()> {
    match answer {
        0 => Ok(()),
        error => {
            let cause = libbpf_rs::Error::from_raw_os_error(-error);
            Err(Error::Attach { what, ifindex, cause })
        }
    }
}
