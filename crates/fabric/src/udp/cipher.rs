//! Encrypted datagrams (`docs/fabric.md`, section 9): ChaCha20-Poly1305 (RFC 8439) over each piece of a frame.
//!
//! ```text
//!    0                16        20              28
//!   +- - - - - - - - +---------+---------------+------- - -+-----------+
//!   | head of piece  | key id  | number        | bytes     | tag       |
//!   +- - - - - - - - +---------+---------------+------- - -+-----------+
//!                                               encrypted    16 bytes
//! ```
//!
//! The tag covers everything before it. Each datagram is judged by itself, before anything of it is used: so nobody without the key
//! changes what is held of a peer, however many datagrams a frame has.

#[cfg(test)]
pub(super) mod tests;
mod window;

use super::piece::{ENCRYPTED, HEAD, Piece, VERSION_AT};
use crate::keys::{FrameKey, FrameKeys, KEYS_MAX};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use window::Window;

/// Bytes of the key id and the number.
pub const NAME: usize = 4 + 8;
/// Bytes before those that are encrypted.
const COVERED: usize = HEAD + NAME;
/// Bytes of the tag.
pub const TAG: usize = 16;
/// Bytes that an encrypted datagram has more than a plain one.
pub const OVERHEAD: usize = NAME + TAG;

/// Why a datagram was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unproven {
    /// It is encrypted with a key that this node does not have.
    OtherKey,
    /// Its number came before, or it is very late.
    Repeated,
    /// Its tag is not that of its bytes.
    Tag,
    /// The tag is right, and what it covers is no piece.
    Piece,
}

struct Key {
    id: u32,
    key: LessSafeKey,
}

impl Key {
    fn new(key: &FrameKey) -> Option<Self> {
        let made = UnboundKey::new(&CHACHA20_POLY1305, &key.secret[..]).ok()?;
        Some(Self { id: key.id, key: LessSafeKey::new(made) })
    }
}

/// Whatever of a peer's datagrams needs keys.
pub struct Cipher {
    stream: u16,
    /// Whether datagrams are encrypted.
    on: bool,
    /// The epoch of the peer that the window is of.
    epoch: u64,
    send: Option<Key>,
    receive: [Option<Key>; KEYS_MAX],
    /// The number of the next datagram. It lasts as long as this node's own epoch, whatever the keys are.
    next: u64,
    window: Window,
}

impl Cipher {
    /// Of that stream, without keys.
    pub fn new(stream: u16) -> Self {
        let receive = [const { None }; KEYS_MAX];
        Self { stream, on: false, epoch: 0, send: None, receive, next: 0, window: Window::default() }
    }

    /// Works with these keys from now on.
    pub fn set_keys(&mut self, keys: Option<&FrameKeys>) {
        self.on = keys.is_some();
        self.send = keys.and_then(|keys| Key::new(keys.send.as_ref()?));
        self.receive = std::array::from_fn(|at| Key::new(keys?.receive[at].as_ref()?));
        //= docs/fabric.md#9.7
        if let Some(keys) = keys
            && keys.epoch != self.epoch
        {
            self.epoch = keys.epoch;
            self.window = Window::default();
        }
    }

    /// Whether datagrams are encrypted.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether so many datagrams can be sent.
    pub fn can_send(&self, count: usize) -> bool {
        //= docs/fabric.md#9.6
        self.send.is_some() && self.next.checked_add(count as u64).is_some()
    }

    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[2..4].copy_from_slice(&self.stream.to_be_bytes());
        nonce[4..].copy_from_slice(&number.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    /// Encrypts a datagram in its place: the head of a piece, room for the name, the bytes, and room for the tag. Whether it could be:
    /// [`Cipher::can_send`] was asked before.
    pub fn seal(&mut self, datagram: &mut [u8]) -> bool {
        let Some(len) = datagram.len().checked_sub(COVERED + TAG) else { return false };
        //= docs/fabric.md#9.6
        let (Some(Key { id, key }), Some(next)) = (&self.send, self.next.checked_add(1)) else {
            return false;
        };
        //= docs/fabric.md#9.5
        let (covered, rest) = datagram.split_at_mut(COVERED);
        covered[HEAD..HEAD + 4].copy_from_slice(&id.to_be_bytes());
        covered[HEAD + 4..].copy_from_slice(&self.next.to_be_bytes());
        let (bytes, tag) = rest.split_at_mut(len);
        let sealed = key.seal_in_place_separate_tag(self.nonce(self.next), Aad::from(&*covered), bytes);
        self.next = next;
        let Ok(sealed) = sealed else { return false };
        tag.copy_from_slice(sealed.as_ref());
        true
    }

    /// Decrypts a datagram in its place; [`opened`] reads it then.
    ///
    /// # Errors
    /// Why not. Nothing else has changed.
    pub fn open(&mut self, datagram: &mut [u8]) -> Result<(), Unproven> {
        let (covered, rest) = datagram.split_at_mut_checked(COVERED).ok_or(Unproven::Tag)?;
        let word =
            |at: usize| u32::from_be_bytes([covered[at], covered[at + 1], covered[at + 2], covered[at + 3]]);
        let (id, number) = (word(HEAD), u64::from(word(HEAD + 4)) << 32 | u64::from(word(HEAD + 8)));
        //= docs/fabric.md#9.3
        let key = self.receive.iter().flatten().find(|key| key.id == id).ok_or(Unproven::OtherKey)?;
        //= docs/fabric.md#9.7
        if !self.window.is_new(number) {
            return Err(Unproven::Repeated);
        }
        key.key.open_in_place(self.nonce(number), Aad::from(&*covered), rest).map_err(|_| Unproven::Tag)?;
        self.window.take(number);
        Ok(())
    }
}

/// Whether a datagram says that it is encrypted.
pub fn is_encrypted(datagram: &[u8]) -> bool {
    datagram.get(VERSION_AT) == Some(&ENCRYPTED)
}

/// The piece in a datagram that was decrypted.
///
/// # Errors
/// It holds none.
pub fn opened(datagram: &[u8]) -> Result<Piece<'_>, Unproven> {
    let (head, rest) = datagram.split_first_chunk::<HEAD>().ok_or(Unproven::Piece)?;
    let bytes = rest.len().checked_sub(TAG).and_then(|end| rest.get(NAME..end)).ok_or(Unproven::Piece)?;
    Piece::of(head, bytes).ok_or(Unproven::Piece)
}
