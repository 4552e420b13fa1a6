//! The kernel's network lock (RTNL), held for as long as a test wants.
//!
//! `TUNSETTXFILTER` copies its argument while it holds the lock (`__tun_chr_ioctl`, drivers/net/tun.c). The argument lies in a
//! page that is not there yet, and whose fault this process answers itself (userfaultfd): until then the call waits, with the
//! lock. So waits whoever asks for the lock, as behind a driver that resets its device.

use nix::libc;
use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr,
    thread::{self, JoinHandle},
};

/// Bytes of the page that is faulted.
const PAGE: usize = 4096;
/// linux/userfaultfd.h
const UFFD_API: u64 = 0xaa;
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_ZEROPAGE: libc::c_ulong = 0xc020_aa04;
const MODE_MISSING: u64 = 1;
/// linux/if_tun.h
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETTXFILTER: libc::c_ulong = 0x4004_54d1;
const TAP_WITHOUT_HEADER: libc::c_short = 0x1002;
/// Of `struct uffd_msg`, in bytes.
const FAULT_BYTES: usize = 32;

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub struct HeldRtnl {
    faults: File,
    page: usize,
    asks: Option<JoinHandle<io::Result<()>>>,
}

impl HeldRtnl {
    /// Takes the lock; it is held when this returns.
    ///
    /// # Panics
    /// When the kernel has no userfaultfd or no TAP devices, or this is not root.
    #[track_caller]
    pub fn take() -> Self {
        Self::try_take().unwrap_or_else(|error| panic!("cannot hold the kernel's network lock: {error}"))
    }

    fn try_take() -> io::Result<Self> {
        // SAFETY: takes a number; gives a new descriptor or -1.
        let faults = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let faults = i32::try_from(checked(faults)?).map_err(io::Error::other)?;
        // SAFETY: a new descriptor that nobody else holds.
        let faults = File::from(unsafe { OwnedFd::from_raw_fd(faults) });
        let mut api = [UFFD_API, 0, 0];
        ioctl(&faults, UFFDIO_API, api.as_mut_ptr().cast())?;
        let (read_write, private) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, wherever the kernel likes.
        let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, read_write, private, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = page.addr();
        let mut range = [page as u64, PAGE as u64, MODE_MISSING, 0];
        ioctl(&faults, UFFDIO_REGISTER, range.as_mut_ptr().cast())?;
        let tap = File::options().read(true).write(true).open("/dev/net/tun")?;
        // SAFETY: ifreq is a C structure of numbers, for which zeros are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_ifru.ifru_flags = TAP_WITHOUT_HEADER;
        ioctl(&tap, TUNSETIFF, (&raw mut request).cast())?;
        let asks = thread::spawn(move || ioctl(&tap, TUNSETTXFILTER, ptr::without_provenance_mut(page)));
        let mut held = Self { faults, page, asks: Some(asks) };
        // The call has come to the page: it holds the lock.
        let mut fault = [0; FAULT_BYTES];
        io::Read::read_exact(&mut held.faults, &mut fault)?;
        Ok(held)
    }
}

impl Drop for HeldRtnl {
    fn drop(&mut self) {
        let mut range = [self.page as u64, PAGE as u64, 0, 0];
        let filled = ioctl(&self.faults, UFFDIO_ZEROPAGE, range.as_mut_ptr().cast());
        let asked = self.asks.take().map(JoinHandle::join);
        // SAFETY: mapped by `try_take`, and used by nobody any more.
        unsafe { libc::munmap(ptr::without_provenance_mut(self.page), PAGE) };
        if !thread::panicking() {
            filled.expect("fills the page");
            asked.expect("still held").expect("no panic").expect("sets a filter");
        }
    }
}

fn ioctl(file: &File, request: libc::c_ulong, argument: *mut libc::c_void) -> io::Result<()> {
    // SAFETY: each caller's argument is what the request takes, and outlives the call.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), request, argument) }.into()).map(drop)
}

fn checked(answer: libc::c_long) -> io::Result<libc::c_long> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
