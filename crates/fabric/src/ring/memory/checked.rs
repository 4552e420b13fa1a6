//! Memory as loom sees it: a bad order of accesses by the two sides ends the test.

use crate::{
    Bytes,
    ring::{ALIGN, WORD},
};
use loom::{cell::UnsafeCell, sync::Arc};

/// A value that two sides share.
pub type Place<T> = Arc<T>;

type Line = [u8; ALIGN as usize];

/// The records of one ring; a cell for each cache line.
#[derive(Clone)]
pub struct Data(Arc<Vec<UnsafeCell<Line>>>);

impl Data {
    /// Memory for `size` bytes.
    pub fn new(size: u64) -> Self {
        Self(Arc::new((0..size / ALIGN).map(|_| UnsafeCell::new([0; ALIGN as usize])).collect()))
    }

    /// How many bytes: a power of two.
    pub fn size(&self) -> u64 {
        self.0.len() as u64 * ALIGN
    }

    pub(in crate::ring) fn load_word(&self, at: u64) -> u64 {
        let mut word = [0; WORD as usize];
        self.read(at, &mut word);
        u64::from_ne_bytes(word)
    }

    pub(in crate::ring) fn store_word(&self, at: u64, word: u64) {
        self.store(at, &word.to_ne_bytes());
    }

    pub(in crate::ring) fn store(&self, at: u64, bytes: &[u8]) {
        for (at, byte) in (at..).zip(bytes) {
            // SAFETY: loom checks that nobody else has access meanwhile.
            self.0[(at / ALIGN) as usize].with_mut(|line| unsafe { (*line)[(at % ALIGN) as usize] = *byte });
        }
    }

    pub(in crate::ring) fn lend<R>(&self, at: u64, len: usize, with: impl FnOnce(Bytes<'_>) -> R) -> R {
        let mut copy = vec![0; len];
        self.read(at, &mut copy);
        with(Bytes::new(&copy))
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        for (at, byte) in (at..).zip(into) {
            // SAFETY: loom checks that nobody writes meanwhile.
            self.0[(at / ALIGN) as usize].with(|line| *byte = unsafe { (*line)[(at % ALIGN) as usize] });
        }
    }
}
