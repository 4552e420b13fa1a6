//! What becomes of a mapping whose file is cut short: its next access would end the process (SIGBUS, mmap(2)), and with it
//! whatever else the process does. A handler of that signal puts empty memory in its place and marks it as lost; whoever
//! works on it reads zeros, as a hostile peer might have written, until it looks ([`Region::is_lost`]). Every other SIGBUS
//! takes its course as if there were no handler.

use crate::limits::MAPS_MAX;
use nix::{errno::Errno, libc};
use std::{
    ptr,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering, fence},
    },
};

/// What the handler may read at any moment: it can interrupt anything, also a change of this very table. A slot's
/// `changes` is odd while the slot is written; the slot of the mapping that a thread works on is never written then.
struct Slot {
    changes: AtomicUsize,
    /// 0: free.
    start: AtomicUsize,
    len: AtomicUsize,
    lost: AtomicBool,
}

static SLOTS: [Slot; MAPS_MAX] = [const {
    Slot {
        changes: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        lost: AtomicBool::new(false),
    }
}; MAPS_MAX];

/// One at a time writes slots. Never taken by the handler.
static WRITER: Mutex<()> = Mutex::new(());

/// What happened on SIGBUS before; set before the handler is.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

impl Slot {
    fn set(&self, start: usize, len: usize) {
        let changes = self.changes.load(Ordering::Relaxed);
        self.changes.store(changes.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.start.store(start, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.lost.store(false, Ordering::Relaxed);
        self.changes.store(changes.wrapping_add(2), Ordering::Release);
    }

    /// Its mapping, if it is one that has this address.
    fn holds(&self, address: usize) -> Option<(usize, usize)> {
        let changes = self.changes.load(Ordering::Acquire);
        let (start, len) = (self.start.load(Ordering::Relaxed), self.len.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let stable = changes.is_multiple_of(2) && self.changes.load(Ordering::Relaxed) == changes;
        (stable && start != 0 && address.wrapping_sub(start) < len).then_some((start, len))
    }
}

/// A mapping that is guarded for as long as this lives: not longer than the mapping.
#[derive(Debug)]
pub(super) struct Region(usize);

impl Region {
    /// Guards a mapping.
    ///
    /// # Errors
    /// There are [`MAPS_MAX`] already, or those of `sigaction(2)`.
    pub(super) fn guard(start: usize, len: usize) -> Result<Self, Errno> {
        let _writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
        install()?;
        let free = SLOTS.iter().position(|slot| slot.start.load(Ordering::Relaxed) == 0);
        let free = free.ok_or(Errno::ENOMEM)?;
        SLOTS[free].set(start, len);
        Ok(Self(free))
    }

    /// Whether its memory is another one now, and nobody else's.
    pub(super) fn is_lost(&self) -> bool {
        SLOTS[self.0].lost.load(Ordering::Relaxed)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let _writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
        SLOTS[self.0].set(0, 0);
    }
}

fn install() -> Result<(), Errno> {
    if BEFORE.get().is_some() {
        return Ok(());
    }
    // SAFETY: all zeros is a value of this plain struct: the default action, no flags, an empty mask.
    let (mut before, mut ours): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    ours.sa_sigaction = handler as *const () as libc::sighandler_t;
    // On the stack that threads have for signals, if they have one: the handler before ours may need that.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: asks for the present action; `before` lives until it returns.
    Errno::result(unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut before) })?;
    let _ = BEFORE.set(before);
    // SAFETY: the handler does only what is allowed at any moment: atomics, mmap, sigaction and raise, which are system
    // calls and no more; it keeps errno.
    Errno::result(unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) }).map(drop)
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let errno = Errno::last_raw();
    // SAFETY: the kernel passes a siginfo that is valid until the handler returns (SA_SIGINFO), and SIGBUS has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if code != libc::BUS_ADRERR || !put_memory_under(address) {
        let before = BEFORE.get().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: as it was before; what a thread did that faulted it does again when this returns. One that was sent by
        // somebody does not come again, so it is raised again: it waits until this returns.
        unsafe {
            libc::sigaction(signal, before, ptr::null_mut());
            if code <= 0 {
                libc::raise(signal);
            }
        }
    }
    Errno::set_raw(errno);
}

/// Puts empty memory in the place of the guarded mapping that has this address. False if none has, or there is no memory.
fn put_memory_under(address: usize) -> bool {
    let Some((slot, (start, len))) = SLOTS.iter().find_map(|slot| Some((slot, slot.holds(address)?))) else {
        return false;
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: exactly the range of a mapping of ours that lives: a thread is reading or writing in it. Memory is there all
    // the time, and any bytes are a value of what lies there.
    let done = unsafe { libc::mmap(start as *mut libc::c_void, len, protection, flags, -1, 0) };
    slot.lost.store(true, Ordering::Relaxed);
    done != libc::MAP_FAILED
}

#[cfg(test)]
mod tests;
