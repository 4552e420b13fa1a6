//! The memory that messages are sent from and received into, in slots. While the library has a slot, nobody here can
//! reach its bytes.

use super::abi::Unused;
use nix::libc;
use std::{cell::UnsafeCell, ptr::NonNull};

/// What a provider may write to while an operation goes on: `struct fi_context2`.
#[repr(C, align(64))]
struct Context(UnsafeCell<[u64; 8]>);

/// The owner of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Ours,
    Library,
}

/// Which slots there are: some of one size, then some of another.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// The number of long slots.
    pub long: usize,
    /// Bytes of each.
    pub long_bytes: usize,
    /// How many short ones, after the long ones.
    pub short: usize,
    /// Bytes of each.
    pub short_bytes: usize,
}

impl Sizes {
    /// Bytes of all.
    pub fn total(&self) -> usize {
        self.long * self.long_bytes + self.short * self.short_bytes
    }

    /// Where a slot begins and how long it is.
    fn place(&self, slot: usize) -> (usize, usize) {
        match slot.checked_sub(self.long) {
            None => (slot * self.long_bytes, self.long_bytes),
            Some(short) => (self.long * self.long_bytes + short * self.short_bytes, self.short_bytes),
        }
    }
}

/// The memory of a queue, divided into slots.
pub struct Pool {
    sizes: Sizes,
    memory: NonNull<u8>,
    contexts: Box<[Context]>,
    holders: Box<[Holder]>,
}

// SAFETY: the memory is this pool's alone, and the library knows it only through the endpoint that owns the pool.
unsafe impl Send for Pool {}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; the endpoint, which may still write to it, is closed before.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.sizes.total()) };
    }
}

impl Pool {
    /// Memory for all slots, present from now on (`FI_MR_ALLOCATED`). None if there is none.
    pub fn new(sizes: Sizes) -> Option<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory that nobody else knows of.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), sizes.total(), access, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return None;
        }
        let count = sizes.long + sizes.short;
        Some(Self {
            sizes,
            memory: NonNull::new(memory.cast())?,
            contexts: (0..count).map(|_| Context(UnsafeCell::new([0; 8]))).collect(),
            holders: vec![Holder::Ours; count].into_boxed_slice(),
        })
    }

    /// All of it, to be registered.
    pub fn whole(&self) -> (*mut u8, usize) {
        (self.memory.as_ptr(), self.sizes.total())
    }

    /// The bytes of a slot; none while the library has it.
    pub fn bytes(&self, slot: usize) -> &[u8] {
        if self.holders[slot] == Holder::Library {
            return &[];
        }
        let (at, len) = self.sizes.place(slot);
        // SAFETY: within the memory, whose bytes are all initialised, and ours: the library writes to no such slot.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(at), len) }
    }

    /// The same to write to.
    pub fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        if self.holders[slot] == Holder::Library {
            return &mut [];
        }
        let (at, len) = self.sizes.place(slot);
        // SAFETY: as above, and slots do not overlap, so nobody else has these.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr().add(at), len) }
    }

    /// Where a slot is, and its context, to be given to the library. None if it has it.
    pub fn give(&mut self, slot: usize) -> Option<(*mut u8, usize, Unused)> {
        if self.holders[slot] == Holder::Library {
            return None;
        }
        self.holders[slot] = Holder::Library;
        let (at, len) = self.sizes.place(slot);
        // SAFETY: within the memory.
        let start = unsafe { self.memory.as_ptr().add(at) };
        Some((start, len, self.contexts[slot].0.get().cast()))
    }

    /// The library does not have it, or no longer: it has refused or completed.
    pub fn take_back(&mut self, slot: usize) {
        self.holders[slot] = Holder::Ours;
    }

    /// The context of a slot that the library has, to name its operation.
    pub fn context(&self, slot: usize) -> Option<Unused> {
        (self.holders[slot] == Holder::Library).then(|| self.contexts[slot].0.get().cast())
    }

    /// Whose context this is. None: nobody's, or of one that the library does not have.
    pub fn slot_of(&self, context: Unused) -> Option<usize> {
        let offset = (context as usize).checked_sub(self.contexts.as_ptr() as usize)?;
        let slot = offset / size_of::<Context>();
        let known = offset % size_of::<Context>() == 0 && slot < self.contexts.len();
        (known && self.holders[slot] == Holder::Library).then_some(slot)
    }
}
