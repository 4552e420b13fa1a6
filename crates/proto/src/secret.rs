//! Numbers that nobody can guess, whoever has seen others: cookies, nonces and indexes. Those for jitter are in
//! [`random`](crate::random).

use std::fmt;

/// What the numbers of one start are made from: random bytes of the system's generator, other ones at each start. Who knows them
/// knows every number.
#[derive(Clone, Copy)]
pub struct Secret([u8; 16]);

impl Secret {
    /// Of 16 random bytes.
    pub const fn new(bytes: [u8; 16]) -> Secret {
        Secret(bytes)
    }
}

impl From<u64> for Secret {
    /// Of a seed, for simulations: too short for a host.
    fn from(seed: u64) -> Secret {
        Secret(u128::from(seed).to_le_bytes())
    }
}

impl fmt::Debug for Secret {
    /// Without the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The numbers of one start: the keyed hash of how many there were before.
#[derive(Debug)]
pub(crate) struct Numbers {
    secret: Secret,
    drawn: u64,
}

impl Numbers {
    pub const fn new(secret: Secret) -> Numbers {
        Numbers { secret, drawn: 0 }
    }

    /// The next number: never 0.
    pub fn next(&mut self) -> u64 {
        self.drawn += 1;
        siphash(self.secret.0, self.drawn).max(1)
    }

    /// A secret for a machine of its own.
    pub fn secret(&mut self) -> Secret {
        let halves = [self.next(), self.next()].map(u64::to_le_bytes);
        Secret(std::array::from_fn(|at| halves[at / 8][at % 8]))
    }
}

/// SipHash-2-4 (Aumasson, Bernstein 2012) of the 8 bytes of `number`, least first.
const fn siphash(key: [u8; 16], number: u64) -> u64 {
    let key = u128::from_le_bytes(key);
    let (low, high) = (key as u64, (key >> 64) as u64);
    let mut state = [
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ];
    // The last block holds what is left of the bytes, nothing, and their number.
    let last = 8 << 56;
    state = block(block(state, number), last);
    state[2] ^= 0xff;
    let [a, b, c, d] = round(round(round(round(state))));
    a ^ b ^ c ^ d
}

const fn block(mut state: [u64; 4], word: u64) -> [u64; 4] {
    state[3] ^= word;
    state = round(round(state));
    state[0] ^= word;
    state
}

const fn round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    a = a.wrapping_add(b);
    c = c.wrapping_add(d);
    b = b.rotate_left(13) ^ a;
    d = d.rotate_left(16) ^ c;
    a = a.rotate_left(32);
    c = c.wrapping_add(b);
    a = a.wrapping_add(d);
    b = b.rotate_left(17) ^ c;
    d = d.rotate_left(21) ^ a;
    c = c.rotate_left(32);
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::{Numbers, Secret, siphash};
    use std::collections::BTreeSet;

    #[test]
    fn hashes_are_those_of_the_reference() {
        let key = std::array::from_fn(|at| at as u8);
        assert_eq!(siphash(key, 0x0706_0504_0302_0100), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn numbers_differ_and_so_do_those_of_other_secrets() {
        let draw = |secret| {
            let mut numbers = Numbers::new(Secret::new(secret));
            (0..1000).map(|_| numbers.next()).collect::<BTreeSet<_>>()
        };
        let (one, two) = (draw([1; 16]), draw([2; 16]));
        assert_eq!((one.len(), two.len(), one.intersection(&two).count()), (1000, 1000, 0));
        assert_eq!(format!("{:?}", Secret::new([7; 16])), "Secret");
        let mut numbers = Numbers::new(Secret::new([1; 16]));
        let (a, b) = (numbers.secret().0, numbers.secret().0);
        assert!(a != b && a[..8] != a[8..], "all of a secret is drawn");
        let mut numbers = Numbers::new(Secret::new([1; 16]));
        let drawn = [numbers.next(), numbers.next()].map(u64::to_le_bytes);
        assert_eq!(a, *drawn.as_flattened(), "and every byte of it");
    }
}
