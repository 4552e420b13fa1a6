//! Memory as it is: mapped.

use super::{AtomicU64, Ordering, ToConsumer, ToProducer, fault::Region};
use crate::{Bytes, ring::WORD};
use nix::{errno::Errno, libc};
use std::{
    ops::Deref,
    os::fd::{AsRawFd, BorrowedFd},
    ptr::NonNull,
    sync::Arc,
};

/// Mapped memory that others may write to at any moment.
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    len: usize,
    /// That of a file, which somebody may cut short.
    region: Option<Region>,
}

// SAFETY: the map is plain memory of the process; what is done with it across threads goes through atomics and copies.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

/// What may lie in shared memory: atomics only, so that any bytes are a valid value and every access is atomic.
///
/// # Safety
/// The type consists of atomics and padding.
pub unsafe trait Shareable {}
// SAFETY: as each of them.
unsafe impl<T: Shareable> Shareable for [T] {}
// SAFETY: two atomics and padding.
unsafe impl Shareable for ToConsumer {}
// SAFETY: two atomics and padding.
unsafe impl Shareable for ToProducer {}
// SAFETY: an atomic.
unsafe impl Shareable for AtomicU64 {}

impl Map {
    /// Maps the first `len` bytes of a file, shared with everyone who maps it. What of it is read when the file does not
    /// have it any more is zeros, and shared with nobody ([`Map::is_lost`]).
    ///
    /// # Errors
    /// Those of `mmap(2)`; there are [`MAPS_MAX`](crate::limits::MAPS_MAX) already.
    pub fn file(file: BorrowedFd<'_>, len: usize) -> Result<Arc<Self>, Errno> {
        let mut map = Self::mapped(libc::MAP_SHARED, file.as_raw_fd(), len)?;
        map.region = Some(Region::guard(map.start.as_ptr() as usize, len)?);
        Ok(Arc::new(map))
    }

    /// Memory of this process alone (and of its children), zeroed.
    ///
    /// # Errors
    /// Those of `mmap(2)`.
    pub fn anonymous(len: usize) -> Result<Arc<Self>, Errno> {
        Self::mapped(libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, len).map(Arc::new)
    }

    fn mapped(flags: libc::c_int, fd: libc::c_int, len: usize) -> Result<Self, Errno> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let start = NonNull::new(start.cast()).ok_or(Errno::ENOMEM)?;
        Ok(Self { start, len, region: None })
    }

    /// Whether the file was cut short and its memory is no longer there: what is there instead is this process's alone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.region.as_ref().is_some_and(Region::is_lost)
    }

    /// Asks for huge pages; whether there are any is the kernel's business.
    pub fn wish_huge_pages(&self) {
        // SAFETY: the range is this mapping; the advice changes no contents.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_HUGEPAGE) };
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a mapping has bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes `bytes` at `at`, for tests that play a hostile peer. False if they do not fit.
    pub fn write(&self, at: usize, bytes: &[u8]) -> bool {
        if at > self.len || bytes.len() > self.len - at {
            return false;
        }
        // SAFETY: the range lies in the mapping, as just checked, and outside of `bytes`, which is private memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len()) };
        true
    }

    /// What lies at `at`. None if it does not fit there or is not aligned.
    #[must_use]
    pub fn place<T: Shareable>(self: &Arc<Self>, at: usize) -> Option<Place<T>> {
        if at > self.len || size_of::<T>() > self.len - at {
            return None;
        }
        // SAFETY: within the mapping, as just checked.
        let at = unsafe { self.start.add(at) }.cast::<T>();
        at.is_aligned().then(|| Place { at, _map: Arc::clone(self) })
    }

    /// The `count` values from `at` on. None if they do not fit there or are not aligned.
    #[must_use]
    pub fn row<T: Shareable>(self: &Arc<Self>, at: usize, count: usize) -> Option<Place<[T]>> {
        let bytes = size_of::<T>().checked_mul(count)?;
        if at > self.len || bytes > self.len - at {
            return None;
        }
        // SAFETY: within the mapping, as just checked.
        let first = unsafe { self.start.add(at) }.cast::<T>();
        let row = NonNull::slice_from_raw_parts(first, count);
        first.is_aligned().then(|| Place { at: row, _map: Arc::clone(self) })
    }

    /// The `len` bytes at `at` for records. None if they do not fit there, or are not aligned, or not a power of two.
    #[must_use]
    pub fn data(self: &Arc<Self>, at: usize, len: usize) -> Option<Data> {
        if at > self.len || len > self.len - at || !len.is_power_of_two() {
            return None;
        }
        // SAFETY: within the mapping, as just checked.
        let start = unsafe { self.start.add(at) };
        start.cast::<AtomicU64>().is_aligned().then(|| Data { start, len, _map: Arc::clone(self) })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // Before its addresses are anybody else's.
        self.region = None;
        // SAFETY: the mapping is ours, and every `Place` and `Data` in it holds an `Arc` of it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A value in shared memory.
#[derive(Debug)]
pub struct Place<T: ?Sized> {
    at: NonNull<T>,
    _map: Arc<Map>,
}

// SAFETY: `Shareable` types are atomics; the mapping lives as long as this.
unsafe impl<T: ?Sized + Shareable> Send for Place<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Shareable> Sync for Place<T> {}

impl<T: ?Sized> Deref for Place<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: mapped, large enough and aligned (checked when made); any bytes are a valid `T`; the mapping is held.
        unsafe { self.at.as_ref() }
    }
}

/// The records of one ring.
#[derive(Debug)]
pub struct Data {
    start: NonNull<u8>,
    len: usize,
    _map: Arc<Map>,
}

// SAFETY: plain memory; the mapping lives as long as this.
unsafe impl Send for Data {}

impl Data {
    /// How many bytes: a power of two.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.len as u64
    }

    /// The place `at`, of which `bytes` lie within.
    fn at(&self, at: u64, bytes: usize) -> *mut u8 {
        let at = usize::try_from(at).expect("the address space holds the ring");
        assert!(at <= self.len && bytes <= self.len - at, "outside of the ring");
        // SAFETY: within the mapping, as just checked.
        unsafe { self.start.as_ptr().add(at) }
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        let word = self.at(at, WORD as usize).cast::<AtomicU64>();
        assert!(word.is_aligned(), "records are aligned");
        // SAFETY: mapped, and aligned, as just checked; atomic.
        unsafe { &*word }
    }

    /// Reads the word of a record, once.
    pub(in crate::ring) fn load_word(&self, at: u64) -> u64 {
        self.word(at).load(Ordering::Relaxed)
    }

    /// Writes the word of a record.
    pub(in crate::ring) fn store_word(&self, at: u64, word: u64) {
        self.word(at).store(word, Ordering::Relaxed);
    }

    /// Writes bytes of a record.
    pub(in crate::ring) fn store(&self, at: u64, bytes: &[u8]) {
        let to = self.at(at, bytes.len());
        // SAFETY: `to` is valid for the length (checked by `at`), `bytes` is private memory. A well-behaved consumer
        // does not read there before `head` says so; what a hostile one does hurts itself only.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Lends bytes of a record.
    pub(in crate::ring) fn lend<R>(&self, at: u64, len: usize, with: impl FnOnce(Bytes<'_>) -> R) -> R {
        let start = self.at(at, len);
        // SAFETY: mapped for the length (checked by `at`) while `self` is borrowed.
        with(unsafe { Bytes::shared(start, len) })
    }
}

#[cfg(test)]
mod tests {
    use super::{AtomicU64, Place};
    use std::{cell::Cell, marker::PhantomData};

    struct Asked<T>(PhantomData<T>);

    trait Else {
        const MOVES: bool = false;
    }

    impl<T> Else for Asked<T> {}

    impl<T: Send + Sync> Asked<T> {
        const MOVES: bool = true;
    }

    #[test]
    fn only_places_of_atomics_go_to_other_threads() {
        let atomics = [Asked::<Place<AtomicU64>>::MOVES, Asked::<Place<[AtomicU64]>>::MOVES];
        let others = [Asked::<Place<Cell<u64>>>::MOVES, Asked::<Place<[Cell<u64>]>>::MOVES];
        assert_eq!((atomics, others), ([true; 2], [false; 2]));
    }
}
