//! The bytes of a received frame, which may lie in memory that the peer can still change.

use std::{
    io,
    marker::PhantomData,
    os::fd::{AsRawFd, BorrowedFd},
};

/// Bytes that are read at once.
const WORD: usize = size_of::<u64>();

/// The bytes of one received frame, lent until the sink returns.
///
/// They may lie in shared memory, where a hostile peer can change them at any moment. So there is no way to a slice:
/// what is to be judged is copied first ([`Bytes::copy_to`]) and judged in the copy; what is not judged goes to the
/// kernel as it is ([`Bytes::write_after`]). The length is ours and does not change.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    start: *const u8,
    len: usize,
    /// A holder of the keys has written them.
    encrypted: bool,
    lent: PhantomData<&'a [u8]>,
}

impl<'a> Bytes<'a> {
    /// The bytes of a frame in private memory.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { start: bytes.as_ptr(), len: bytes.len(), encrypted: false, lent: PhantomData }
    }

    /// The bytes of a frame in shared memory.
    ///
    /// # Safety
    /// `start` to `start + len` is mapped and readable for as long as `'a`.
    #[must_use]
    pub unsafe fn shared(start: *const u8, len: usize) -> Self {
        Self { start, len, encrypted: false, lent: PhantomData }
    }

    /// The same, which came encrypted or not.
    #[must_use]
    pub fn came(self, encrypted: bool) -> Self {
        Self { encrypted, ..self }
    }

    /// Whether they came encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What follows the first `bytes`; nothing if there are no more.
    #[must_use]
    pub fn skip(self, bytes: usize) -> Self {
        let bytes = bytes.min(self.len);
        // SAFETY: at most the length is skipped, so the pointer stays within, or one past, the memory lent.
        Self { start: unsafe { self.start.add(bytes) }, len: self.len - bytes, ..self }
    }

    /// The first `bytes`; all if there are fewer.
    #[must_use]
    pub fn first(self, bytes: usize) -> Self {
        Self { len: self.len.min(bytes), ..self }
    }

    /// Copies as much as fits into `into`, and says how much that was.
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        let bytes = self.len.min(into.len());
        let head = self.start.align_offset(WORD).min(bytes);
        let (first, rest) = into[..bytes].split_at_mut(head);
        let (words, last) = rest.as_chunks_mut::<WORD>();
        let mut from = self.start;
        for to in first {
            // SAFETY: `from` is valid for as many bytes as are written here, one after the other; volatile, so that what the peer
            // writes meanwhile is one value or another, which the reader judges like any others.
            unsafe {
                *to = from.read_volatile();
                from = from.add(1);
            }
        }
        for to in words {
            // SAFETY: as above, for a word; the bytes before it end where words are aligned.
            unsafe {
                *to = from.cast::<u64>().read_volatile().to_ne_bytes();
                from = from.add(WORD);
            }
        }
        for to in last {
            // SAFETY: as above.
            unsafe {
                *to = from.read_volatile();
                from = from.add(1);
            }
        }
        bytes
    }

    /// A private copy.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.len];
        self.copy_to(&mut copy);
        copy
    }

    /// Writes `head` and then these bytes to `fd` in one call (`writev(2)`), without a copy of ours.
    ///
    /// # Errors
    /// Those of the call. How many bytes were written is said otherwise.
    pub fn write_after(&self, fd: BorrowedFd<'_>, head: &[u8]) -> io::Result<usize> {
        use nix::libc;
        let parts = [
            libc::iovec { iov_base: head.as_ptr().cast_mut().cast(), iov_len: head.len() },
            libc::iovec { iov_base: self.start.cast_mut().cast(), iov_len: self.len },
        ];
        // SAFETY: both parts are valid for reading for their lengths; writev does not write to them.
        let written = unsafe { libc::writev(fd.as_raw_fd(), parts.as_ptr(), 2) };
        usize::try_from(written).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn a_copy_has_the_bytes_wherever_they_begin_and_end() {
        let all: Vec<u8> = (0..64).collect();
        for begin in 0..16 {
            for len in 0..=48 {
                let mut copy = [0xee; 50];
                let copied = Bytes::new(&all[begin..begin + len]).copy_to(&mut copy[1..49]);
                assert_eq!((copied, &copy[1..=len]), (len, &all[begin..begin + len]));
                assert!(copy[0] == 0xee && copy[1 + len..].iter().all(|byte| *byte == 0xee));
            }
        }
    }
}
