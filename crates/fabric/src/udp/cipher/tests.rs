//! What is encrypted is decrypted by who has the key, and by nobody else, once.

use super::*;
use crate::udp::tests::pieces;
use proptest::prelude::*;
use zeroize::Zeroizing;

/// Keys for the start of the peer with that epoch; each is made of its id alone.
pub(in crate::udp) fn keys(epoch: u64, send: &[u32], receive: &[u32]) -> FrameKeys {
    let one = |id: &u32| FrameKey {
        id: *id,
        secret: Zeroizing::new(std::array::from_fn(|at| *id as u8 ^ at as u8)),
    };
    let receive = std::array::from_fn(|at| receive.get(at).map(one));
    FrameKeys { epoch, send: send.first().map(one), receive }
}

fn cipher(stream: u16, keys: &FrameKeys) -> Cipher {
    let mut cipher = Cipher::new(stream);
    cipher.set_keys(Some(keys));
    cipher
}

/// A datagram with room for what encryption takes.
fn room(bytes: &[u8]) -> Vec<u8> {
    let plain = &pieces(1, 2, bytes, 60)[0];
    let mut datagram = [&plain[..HEAD], &[0; 12], &plain[HEAD..], &[0; 16]].concat();
    datagram[VERSION_AT] = ENCRYPTED;
    datagram
}

fn sealed(cipher: &mut Cipher, bytes: &[u8]) -> Vec<u8> {
    let mut datagram = room(bytes);
    assert!(cipher.can_send(1) && cipher.seal(&mut datagram));
    assert_eq!(datagram.len(), HEAD + bytes.len() + OVERHEAD);
    datagram
}

/// What a datagram holds.
fn open(cipher: &mut Cipher, datagram: &[u8]) -> Result<Vec<u8>, Unproven> {
    let mut datagram = datagram.to_vec();
    cipher.open(&mut datagram)?;
    opened(&datagram).map(|piece| piece.bytes.to_vec())
}

//= docs/fabric.md#9.5 type=test
#[test]
fn a_datagram_is_that_of_another_implementation() {
    // Key 0 to 31, stream 3, number 0, by Python's cryptography 48.0.0 (OpenSSL).
    let key = FrameKey { id: 0x7172_7374, secret: Zeroizing::new(std::array::from_fn(|at| at as u8)) };
    let keys = FrameKeys { epoch: 1, send: Some(key.clone()), receive: [Some(key), None] };
    let datagram = sealed(&mut cipher(3, &keys), b"frame");
    let hex: String = datagram.iter().map(|byte| format!("{byte:02x}")).collect();
    let wanted = concat!(
        "000000010000000202000005003c000071727374",
        "0000000000000000afda89208be23a0ae37803a610d1dbf16544ff9adf"
    );
    assert_eq!(hex, wanted);
    assert_eq!(open(&mut cipher(3, &keys), &datagram), Ok(b"frame".to_vec()));
}

//= docs/fabric.md#9.7 type=test
#[test]
fn no_bit_can_be_another_one_and_nothing_comes_twice() {
    let mut a = cipher(0, &keys(2, &[7], &[8]));
    let mut b = cipher(0, &keys(1, &[8], &[7]));
    let first = sealed(&mut a, b"first");
    let second = sealed(&mut a, b"second");
    for bit in 0..second.len() * 8 {
        let mut flipped = second.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&mut b, &flipped).is_err(), "bit {bit}");
    }
    for len in 0..second.len() {
        assert!(open(&mut b, &second[..len]).is_err(), "{len} bytes of it");
    }
    assert_eq!(open(&mut b, &second), Ok(b"second".to_vec()));
    assert_eq!(open(&mut b, &second), Err(Unproven::Repeated));
    assert_eq!(open(&mut b, &first), Ok(b"first".to_vec()), "late, and new");
    assert_eq!(open(&mut b, &first), Err(Unproven::Repeated));
    // Another stream, the other direction, another start.
    assert_eq!(open(&mut cipher(1, &keys(1, &[8], &[7])), &first), Err(Unproven::Tag));
    assert_eq!(open(&mut a, &first), Err(Unproven::OtherKey));
    let mut other = keys(1, &[8], &[7]);
    other.receive[0].as_mut().unwrap().secret[31] ^= 1;
    assert_eq!(open(&mut cipher(0, &other), &first), Err(Unproven::Tag));
}

//= docs/fabric.md#9.3 type=test
//= docs/fabric.md#9.6 type=test
#[test]
fn numbers_go_on_whatever_the_keys_are() {
    let mut a = cipher(0, &keys(2, &[7], &[8]));
    let mut b = cipher(0, &keys(1, &[8], &[7]));
    let old = sealed(&mut a, b"old");
    assert_eq!(open(&mut b, &old), Ok(b"old".to_vec()));
    // As administrators exchange keys: first each takes both, then each sends with the new one.
    b.set_keys(Some(&keys(1, &[8], &[7, 9])));
    let between = sealed(&mut a, b"between");
    a.set_keys(Some(&keys(2, &[9], &[8])));
    let new = sealed(&mut a, b"new");
    assert_eq!(open(&mut b, &new), Ok(b"new".to_vec()));
    assert_eq!(open(&mut b, &between), Ok(b"between".to_vec()), "on its way meanwhile");
    assert_eq!(open(&mut b, &old), Err(Unproven::Repeated));
    // The link goes down and up, of the same starts.
    b.set_keys(None);
    assert_eq!(open(&mut b, &new), Err(Unproven::OtherKey));
    b.set_keys(Some(&keys(1, &[9], &[9, 7])));
    assert_eq!([&old, &between, &new].map(|one| open(&mut b, one)), [const { Err(Unproven::Repeated) }; 3]);
    a.set_keys(None);
    assert!(!a.can_send(1) && !a.seal(&mut room(b"none")));
    a.set_keys(Some(&keys(3, &[9], &[8])));
    assert_eq!(
        sealed(&mut a, b"next")[20..28],
        3_u64.to_be_bytes(),
        "no number again, even for another start"
    );
    // A node whose keys cannot be used sends nothing, and takes what it has a key for.
    a.set_keys(Some(&keys(3, &[], &[8])));
    assert!(a.is_on() && !a.can_send(1));
}

//= docs/fabric.md#9.6 type=test
#[test]
fn the_last_number_is_the_last() {
    let mut a = cipher(0, &keys(2, &[7], &[8]));
    a.next = u64::MAX - 2;
    assert!(a.can_send(2) && !a.can_send(3));
    sealed(&mut a, b"one");
    sealed(&mut a, b"two");
    assert!(!a.can_send(1));
    let mut datagram = room(b"three");
    assert!(!a.seal(&mut datagram));
    let mut b = cipher(0, &keys(1, &[8], &[7]));
    assert!(open(&mut b, &datagram).is_err());
}

proptest! {
    /// Any datagram, and any that a holder of the key has written: no panic, and only pieces whose numbers fit.
    #[test]
    fn any_datagrams_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), written in any::<bool>()) {
        let mut datagram = bytes;
        if let Some(version) = datagram.get_mut(VERSION_AT) {
            *version = ENCRYPTED;
        }
        let sealed = written && cipher(0, &keys(2, &[7], &[8])).seal(&mut datagram);
        let read = cipher(0, &keys(1, &[8], &[7])).open(&mut datagram);
        prop_assert_eq!(read.is_ok(), sealed);
        if let Ok(piece) = opened(&datagram) {
            prop_assert!(piece.bytes.len() <= piece.total);
        }
    }
}
