//! Keys, and the ring of those that a bond has.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use linkbraid_wire::AUTH_CODE_LEN;
use sha2::Sha256;
use std::fmt;
use zeroize::Zeroizing;

/// Bytes of a secret.
pub const SECRET_LEN: usize = 32;

/// Most keys of a ring: the one in use, and the one before or after it.
pub const KEYS_MAX: usize = 2;

/// A key. Its memory is overwritten when it is dropped, and it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// Its number, by which receivers find it.
    pub id: u32,
    secret: Zeroizing<[u8; SECRET_LEN]>,
}

impl Key {
    /// The key of that id.
    pub const fn new(id: u32, secret: Zeroizing<[u8; SECRET_LEN]>) -> Key {
        Key { id, secret }
    }

    fn over(&self, context: &[u8], covered: &[u8]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.secret[..]).expect("HMAC takes keys of any length");
        mac.update(context);
        mac.update(covered);
        mac
    }

    /// The code of these bytes. `context` says of what they are, so that a code of one thing is one of nothing else.
    pub(crate) fn code(&self, context: &[u8], covered: &[u8]) -> [u8; AUTH_CODE_LEN] {
        //= docs/arp-plus.md#15.1
        let code = self.over(context, covered).finalize().into_bytes();
        let mut out = [0; AUTH_CODE_LEN];
        out.copy_from_slice(&code[..AUTH_CODE_LEN]);
        out
    }

    /// Whether that is the code of these bytes; takes the same time whatever differs.
    pub(crate) fn is_code(&self, context: &[u8], covered: &[u8], code: &[u8; AUTH_CODE_LEN]) -> bool {
        self.over(context, covered).verify_truncated_left(code).is_ok()
    }
}

impl Key {
    /// A key made of this one, of `context`. What is made of it tells nothing of this one (HKDF-SHA-256, RFC 5869).
    pub(crate) fn derive(&self, context: &[&[u8]]) -> Key {
        let mut secret = Zeroizing::new([0; SECRET_LEN]);
        Hkdf::<Sha256>::new(None, &self.secret[..])
            .expand_multi_info(context, &mut secret[..])
            .expect("HKDF gives more bytes than that");
        Key { id: self.id, secret }
    }

    /// Its bytes, for whoever works with them.
    pub const fn secret(&self) -> &Zeroizing<[u8; SECRET_LEN]> {
        &self.secret
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:08x})", self.id)
    }
}

/// The keys of a bond: all are accepted, and one signs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ring {
    keys: Vec<Key>,
    signs: u32,
}

impl Ring {
    /// These keys, of which the one of that id signs. None where there are too many, two have one id, or none signs.
    pub fn new(keys: Vec<Key>, signs: u32) -> Option<Ring> {
        //= docs/arp-plus.md#15.3
        let differ =
            keys.iter().enumerate().all(|(at, key)| keys[..at].iter().all(|other| other.id != key.id));
        let fits = keys.len() <= KEYS_MAX && differ && keys.iter().any(|key| key.id == signs);
        fits.then_some(Ring { keys, signs })
    }

    /// The key of that id.
    pub fn key(&self, id: u32) -> Option<&Key> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Key] {
        &self.keys
    }

    /// The key that signs; none in a ring without keys.
    pub fn signing(&self) -> Option<&Key> {
        self.key(self.signs)
    }
}
