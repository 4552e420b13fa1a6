//! A reliable endpoint of libfabric with its completion queue and address vector. All calls into the library that move
//! messages are here.

use super::{
    abi::{self, Av, AvAttr, Cq, CqAttr, CqErrEntry, CqMsgEntry, Domain, Ep, Fabric, Fid, Mr},
    offer::Offer,
    pool::{Pool, Sizes},
};
use nix::libc;
use std::{
    ffi::{c_int, c_void},
    os::fd::{BorrowedFd, RawFd},
    ptr,
};

/// Completions that are read at once.
pub const READ: usize = 32;

/// Longest address of an endpoint.
const ADDRESS_MAX: usize = 512;

/// An object of the library, closed when this is dropped.
struct Object<T>(*mut T);

impl<T> Object<T> {
    /// Opens one; what failed otherwise.
    fn open(what: &'static str, open: impl FnOnce(*mut *mut T) -> c_int) -> Result<Self, Failure> {
        let mut object = ptr::null_mut();
        match open(&raw mut object) {
            0 if !object.is_null() => Ok(Self(object)),
            error => Err(Failure { what, error: error as isize }),
        }
    }

    /// What every object begins with.
    fn fid(&self) -> *mut Fid {
        self.0.cast()
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: every object begins with a fid; it is open, and what hangs on it was closed before.
        unsafe { ((*(*self.fid()).ops).close)(self.fid()) };
    }
}

/// What failed, and the library's number for why.
#[derive(Debug, Clone, Copy)]
pub struct Failure {
    /// The function of libfabric that failed.
    pub what: &'static str,
    /// The error that it returned.
    pub error: isize,
}

/// Why a message was not posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Post {
    /// Not now: read completions, and try again.
    Again,
    /// Never.
    Failed(isize),
}

/// Something that was posted is done, and its slot is ours again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done {
    /// Which.
    pub slot: usize,
    /// Bytes that were received.
    pub len: usize,
    /// Why it failed; 0: it did not.
    pub error: c_int,
}

/// The endpoint. Fields are closed from first to last.
pub struct Endpoint {
    _bound: Option<Object<Mr>>,
    ep: Object<Ep>,
    _memory: Option<Object<Mr>>,
    cq: Object<Cq>,
    av: Object<Av>,
    _domain: Object<Domain>,
    fabric: Object<Fabric>,
    /// What is sent and received.
    pub pool: Pool,
    /// What the library calls the registered memory.
    desc: *mut c_void,
    wait: Option<RawFd>,
}

// SAFETY: with FI_THREAD_DOMAIN the objects of a domain may be used by any one thread at a time, and all of them are here.
unsafe impl Send for Endpoint {}

/// Turns the result of a call into ours.
fn check(what: &'static str, done: c_int) -> Result<(), Failure> {
    if done < 0 { Err(Failure { what, error: done as isize }) } else { Ok(()) }
}

impl Endpoint {
    /// Opens one on what is offered, with room for `peers`; with a wait object if `waits`.
    ///
    /// # Errors
    /// What failed.
    pub fn open(offer: &Offer, sizes: Sizes, peers: usize, waits: bool) -> Result<Self, Failure> {
        let (library, info) = (offer.loaded(), offer.info());
        let pool =
            Pool::new(sizes).ok_or(Failure { what: "take memory", error: -(libc::ENOMEM as isize) })?;
        let mut av_attr = AvAttr {
            r#type: abi::AV_TABLE,
            rx_ctx_bits: 0,
            count: peers,
            ep_per_node: 0,
            name: ptr::null(),
            map_addr: ptr::null_mut(),
            flags: 0,
        };
        let mut cq_attr = CqAttr {
            size: sizes.long + sizes.short + READ,
            flags: 0,
            format: abi::CQ_FORMAT_MSG,
            wait_obj: if waits { abi::WAIT_FD } else { abi::WAIT_NONE },
            signaling_vector: 0,
            wait_cond: 0,
            wait_set: ptr::null_mut(),
        };
        let none = ptr::null_mut::<c_void>();
        // SAFETY: the offer lives, attributes live for the calls, every object is opened from one that is open, and the
        // tables of an open object have what the interface says.
        unsafe {
            let fabric =
                Object::open("open the fabric", |at| (library.fabric)((*info).fabric_attr, at, none))?;
            let domain =
                Object::open("open the domain", |at| ((*(*fabric.0).ops).domain)(fabric.0, info, at, none))?;
            let of = (*domain.0).ops;
            let av = Object::open("open the address vector", |at| {
                ((*of).av_open)(domain.0, &raw mut av_attr, at, none)
            })?;
            let cq = Object::open("open the completion queue", |at| {
                ((*of).cq_open)(domain.0, &raw mut cq_attr, at, none)
            })?;
            let ep = Object::open("open the endpoint", |at| ((*of).endpoint)(domain.0, info, at, none))?;
            let bind = (*(*ep.fid()).ops).bind;
            check("bind the address vector", bind(ep.fid(), av.fid(), 0))?;
            check("bind the completion queue", bind(ep.fid(), cq.fid(), abi::SEND | abi::RECV))?;
            let (local, to_endpoint) = offer.memory_modes();
            let memory = if local {
                let (start, len) = pool.whole();
                let access = abi::SEND | abi::RECV;
                let memory = Object::open("register memory", |at| {
                    let reg = (*(*domain.0).mr).reg;
                    reg(domain.fid(), start.cast(), len, access, 0, 0, 0, at, none)
                })?;
                if to_endpoint {
                    let ops = (*memory.fid()).ops;
                    check("bind memory", ((*ops).bind)(memory.fid(), ep.fid(), 0))?;
                    check("enable memory", ((*ops).control)(memory.fid(), abi::ENABLE, none))?;
                }
                Some(memory)
            } else {
                None
            };
            let desc = memory.as_ref().map_or(none, |memory| (*memory.0).mem_desc);
            check("enable the endpoint", ((*(*ep.fid()).ops).control)(ep.fid(), abi::ENABLE, none))?;
            let wait = if waits {
                let mut fd: c_int = -1;
                let control = (*(*cq.fid()).ops).control;
                check("find the wait object", control(cq.fid(), abi::GETWAIT, (&raw mut fd).cast()))?;
                (fd >= 0).then_some(fd)
            } else {
                None
            };
            let (bound, memory) = if to_endpoint { (memory, None) } else { (None, memory) };
            Ok(Self { _bound: bound, ep, _memory: memory, cq, av, _domain: domain, fabric, pool, desc, wait })
        }
    }

    /// The own address, as peers need it.
    ///
    /// # Errors
    /// What failed.
    pub fn name(&self) -> Result<Vec<u8>, Failure> {
        let mut name = vec![0u8; ADDRESS_MAX];
        let mut len = name.len();
        // SAFETY: the endpoint is open, and `len` says how long the buffer is.
        let done =
            unsafe { ((*(*self.ep.0).cm).getname)(self.ep.fid(), name.as_mut_ptr().cast(), &raw mut len) };
        check("name the endpoint", done)?;
        name.truncate(len);
        Ok(name)
    }

    /// Makes a peer known by its address.
    ///
    /// # Errors
    /// What failed.
    pub fn insert(&mut self, address: &[u8]) -> Result<u64, Failure> {
        let mut found = abi::ADDR_UNSPEC;
        // SAFETY: the vector is open; the address is one in the provider's format, and is copied.
        let done = unsafe {
            let insert = (*(*self.av.0).ops).insert;
            insert(self.av.0, address.as_ptr().cast(), 1, &raw mut found, 0, ptr::null_mut())
        };
        if done == 1 { Ok(found) } else { Err(Failure { what: "add an address", error: done as isize }) }
    }

    /// Forgets a peer.
    pub fn remove(&mut self, mut address: u64) {
        // SAFETY: the vector is open, and the address came from it.
        unsafe { ((*(*self.av.0).ops).remove)(self.av.0, &raw mut address, 1, 0) };
    }

    /// Posts a slot to be received into.
    ///
    /// # Errors
    /// It stays ours.
    pub fn receive(&mut self, slot: usize) -> Result<(), Post> {
        let Some((start, len, context)) = self.pool.give(slot) else { return Ok(()) };
        // SAFETY: the slot stays where it is, and nobody else touches it, until its completion is read.
        let done = unsafe {
            let recv = (*(*self.ep.0).msg).recv;
            recv(self.ep.0, start.cast(), len, self.desc, abi::ADDR_UNSPEC, context)
        };
        self.posted(slot, done)
    }

    /// Sends the first `len` bytes of a slot.
    ///
    /// # Errors
    /// It stays ours, and nothing was sent.
    pub fn send(&mut self, slot: usize, len: usize, to: u64) -> Result<(), Post> {
        let Some((start, room, context)) = self.pool.give(slot) else { return Err(Post::Again) };
        // SAFETY: as for receiving; `len` is within the slot.
        let done = unsafe {
            let send = (*(*self.ep.0).msg).send;
            send(self.ep.0, start.cast(), len.min(room), self.desc, to, context)
        };
        self.posted(slot, done)
    }

    fn posted(&mut self, slot: usize, done: isize) -> Result<(), Post> {
        if done == 0 {
            return Ok(());
        }
        self.pool.take_back(slot);
        Err(if done == -(libc::EAGAIN as isize) { Post::Again } else { Post::Failed(done) })
    }

    /// Gives up on what was posted; its completion says so, where the provider can.
    pub fn cancel(&mut self, slot: usize) {
        if let Some(context) = self.pool.context(slot) {
            // SAFETY: the endpoint is open, and the context is that of an operation it has.
            unsafe { ((*(*self.ep.0).ops).cancel)(self.ep.fid(), context) };
        }
    }

    /// Lets the library work, and reads what is done.
    pub fn read(&mut self, done: &mut [Done; READ]) -> usize {
        let mut entries = [const { CqMsgEntry { op_context: ptr::null_mut(), flags: 0, len: 0 } }; READ];
        // SAFETY: the queue is open and has entries of this format; there is room for as many as are asked for.
        let count = unsafe { ((*(*self.cq.0).ops).read)(self.cq.0, entries.as_mut_ptr().cast(), READ) };
        if count == -abi::EAVAIL {
            return self.read_error(done);
        }
        let entries = &entries[..usize::try_from(count).unwrap_or(0).min(READ)];
        let mut read = 0;
        for entry in entries {
            if let Some(slot) = self.pool.slot_of(entry.op_context) {
                self.pool.take_back(slot);
                done[read] = Done { slot, len: entry.len.min(self.pool.bytes(slot).len()), error: 0 };
                read += 1;
            }
        }
        read
    }

    fn read_error(&mut self, done: &mut [Done; READ]) -> usize {
        let mut entry = CqErrEntry {
            op_context: ptr::null_mut(),
            flags: 0,
            len: 0,
            buf: ptr::null_mut(),
            data: 0,
            tag: 0,
            olen: 0,
            err: 0,
            prov_errno: 0,
            err_data: ptr::null_mut(),
            err_data_size: 0,
        };
        // SAFETY: the queue is open; without a buffer for them, further data stays the library's.
        let count = unsafe { ((*(*self.cq.0).ops).readerr)(self.cq.0, &raw mut entry, 0) };
        if count <= 0 {
            return 0;
        }
        let Some(slot) = self.pool.slot_of(entry.op_context) else { return 0 };
        self.pool.take_back(slot);
        done[0] = Done { slot, len: 0, error: if entry.err == 0 { libc::EIO } else { entry.err } };
        1
    }

    /// Becomes readable when there may be something to read; only to be slept on after [`may_sleep`](Self::may_sleep).
    pub fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the library keeps it open for as long as the queue is.
        self.wait.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Whether the wait object reports all that comes from now on; false if something is there already.
    pub fn may_sleep(&mut self) -> bool {
        let mut fid = self.cq.fid();
        // SAFETY: fabric and queue are open.
        unsafe { ((*(*self.fabric.0).ops).trywait)(self.fabric.0, &raw mut fid, 1) == 0 }
    }
}
