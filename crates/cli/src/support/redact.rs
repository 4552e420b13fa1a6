//! Addresses and secrets in any text, replaced by names that tell nothing.
//!
//! The same address has the same name everywhere, so that one can still follow it. Names are numbered as they are found.
//! Addresses that every machine has, such as 127.0.0.1, stay as they are.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The pieces of a MAC, and the least that is taken for one.
const MAC_LEN: usize = 6;
/// A secret has so many hexadecimal digits, or more.
const SECRET_DIGITS: usize = 2 * linkbraid_api::SECRET_LEN;
/// What stands for a secret.
const SECRET: &str = "removed-secret";
/// The longest way of writing an IP address: an IPv6 one that ends like an IPv4 one.
const ADDRESS_LEN_MAX: usize = "0000:0000:0000:0000:0000:ffff:255.255.255.255".len();
/// What `ip -d link` prints before the number of a port or of a switch, which is a MAC or made of one.
const BEFORE_NUMBER: [&str; 2] = ["portid ", "switchid "];
/// What a name of an interface begins with that is made of its MAC (systemd.net-naming-scheme(7)).
const NAMED_BY_MAC: [&str; 3] = ["enx", "wlx", "wwx"];

/// Knows the names that were given.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Whether addresses are replaced; secrets always are.
    addresses: bool,
    macs: BTreeMap<Vec<u8>, usize>,
    ipv4: BTreeMap<Ipv4Addr, usize>,
    ipv6: BTreeMap<Ipv6Addr, usize>,
}

impl Redactor {
    /// One that knows no address yet.
    pub fn new(addresses: bool) -> Self {
        Self { addresses, ..Self::default() }
    }

    /// Gives names to all that is in a text.
    pub fn learn(&mut self, text: &str) {
        let _ = self.redact(text);
    }

    /// The text without addresses and secrets.
    pub fn redact(&mut self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut out = String::with_capacity(text.len());
        let (mut at, mut copied) = (0, 0);
        while at < bytes.len() {
            match self.found(bytes.split_at(at)) {
                Some((len, name)) => {
                    // Both ends are next to a character of one byte.
                    out.push_str(&text[copied..at]);
                    out.push_str(&name);
                    at += len;
                    copied = at;
                }
                None => at += 1,
            }
        }
        out.push_str(&text[copied..]);
        out
    }

    /// What is done, in words.
    pub fn summary(&self) -> String {
        if !self.addresses {
            return "Addresses are in it as they are (--no-redact). Keys are not.".to_owned();
        }
        let (macs, ips) = (self.macs.len(), self.ipv4.len() + self.ipv6.len());
        format!(
            "{macs} MAC addresses and {ips} IP addresses were replaced by names such as mac-1, ipv4-1 and ipv6-1.\n\
             The same address has the same name everywhere. Keys are not in it."
        )
    }

    /// How long what begins here is, and what stands for it.
    fn found(&mut self, (before, rest): (&[u8], &[u8])) -> Option<(usize, String)> {
        // A secret is one whatever is before it.
        let digits = hex_digits(rest);
        if digits >= SECRET_DIGITS {
            return Some((digits, SECRET.to_owned()));
        }
        if !self.addresses || !begins(before) {
            return None;
        }
        self.ipv6_at(rest)
            .or_else(|| self.mac_at(rest))
            .or_else(|| self.ipv4_at(rest))
            .or_else(|| self.bare(before, rest))
    }

    fn ipv6_at(&mut self, rest: &[u8]) -> Option<(usize, String)> {
        let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.';
        let (len, ip) = address::<Ipv6Addr>(rest, is_part)?;
        let [first, middle @ .., last] = ip.segments();
        // Groups such as ff02::1, and networks such as fe80::.
        let is_group = first >> 8 == 0xff && middle == [0; 6];
        let is_network = first >= 0xfe80 && middle == [0; 6] && last == 0;
        let is_common = ip.is_unspecified() || ip.is_loopback() || is_group || is_network;
        Some((len, if is_common { kept(rest, len) } else { named(&mut self.ipv6, ip, "ipv6") }))
    }

    /// Six pieces or more, of one or two digits, as some programs leave out zeros.
    fn mac_at(&mut self, rest: &[u8]) -> Option<(usize, String)> {
        let (len, mac) = pieces(rest, b':', 1).or_else(|| pieces(rest, b'-', 2))?;
        let is_common = mac.iter().all(|byte| *byte == 0) || mac.iter().all(|byte| *byte == 0xff);
        Some((len, if is_common { kept(rest, len) } else { named(&mut self.macs, mac, "mac") }))
    }

    fn ipv4_at(&mut self, rest: &[u8]) -> Option<(usize, String)> {
        let (len, ip) = address::<Ipv4Addr>(rest, |byte| byte.is_ascii_digit() || byte == b'.')?;
        let is_common = ip.is_loopback() || ip.is_unspecified() || ip.is_broadcast() || ip.is_multicast();
        Some((len, if is_common { kept(rest, len) } else { named(&mut self.ipv4, ip, "ipv4") }))
    }

    /// A MAC without anything between its pieces: one that was found elsewhere, or that is part of an interface's name.
    /// Numbers of ports and of switches may be longer.
    fn bare(&mut self, before: &[u8], rest: &[u8]) -> Option<(usize, String)> {
        let is_number = BEFORE_NUMBER.iter().any(|word| before.ends_with(word.as_bytes()));
        let prefix =
            NAMED_BY_MAC.into_iter().find(|prefix| rest.starts_with(prefix.as_bytes())).unwrap_or_default();
        let more = if is_number { hex_digits(&rest[prefix.len()..]) } else { 0 };
        let len = prefix.len() + more.max(2 * MAC_LEN);
        let mac = rest.get(prefix.len()..len)?.chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
        let counts = is_number || !prefix.is_empty() || self.macs.contains_key(&mac);
        (counts && ends(rest, len)).then(|| (len, format!("{prefix}{}", named(&mut self.macs, mac, "mac"))))
    }
}

/// Whether something may begin after this: after no letter or digit, or after an escape that ends with one.
fn begins(before: &[u8]) -> bool {
    let Some((last, head)) = before.split_last() else { return true };
    let is_code = |mark: &[u8], digits: usize| {
        let (head, code) = before.split_at(before.len().saturating_sub(digits));
        head.ends_with(mark) && hex_digits(code) == digits
    };
    let is_parameter = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
    !last.is_ascii_alphanumeric()
        || matches!(before, [.., b'\\', b'b' | b'f' | b'n' | b'r' | b't'] | [.., b'0', b'x' | b'X'])
        || is_code(b"\\u", 4)
        || is_code(b"\\x", 2)
        // A colour, such as `ESC[1;32m`.
        || last.is_ascii_alphabetic() && head.iter().rev().find(|byte| !is_parameter(byte)) == Some(&b'[')
}

/// The address that begins here, and its length. A full stop or a colon may follow it, or the end of a range.
fn address<A: FromStr>(rest: &[u8], is_part: impl Fn(u8) -> bool) -> Option<(usize, A)> {
    let run = rest.iter().take(ADDRESS_LEN_MAX + 1).take_while(|byte| is_part(**byte)).count();
    let may_end = |len: &usize| *len + 1 >= run || rest[*len..].starts_with(b"..");
    (1..=run).rev().filter(may_end).find_map(|len| {
        let text = std::str::from_utf8(&rest[..len]).ok().filter(|_| ends(rest, len))?;
        Some((len, text.parse().ok()?))
    })
}

fn hex_digits(rest: &[u8]) -> usize {
    rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count()
}

/// What stays as it is.
fn kept(rest: &[u8], len: usize) -> String {
    String::from_utf8_lossy(&rest[..len]).into_owned()
}

/// Whether what has this length ends there.
fn ends(rest: &[u8], len: usize) -> bool {
    rest.get(len).is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

fn byte(digits: &[u8]) -> Option<u8> {
    let text =
        std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(text, 16).ok()
}

/// At least [`MAC_LEN`] pieces of at least so many digits, and at most two.
fn pieces(rest: &[u8], between: u8, digits_min: usize) -> Option<(usize, Vec<u8>)> {
    let (mut len, mut mac) = (0, Vec::new());
    loop {
        let digits = hex_digits(&rest[len..]);
        if !(digits_min..=2).contains(&digits) {
            break;
        }
        mac.push(byte(&rest[len..len + digits])?);
        len += digits;
        let next = rest.get(len + 1).is_some_and(u8::is_ascii_hexdigit);
        if rest.get(len) != Some(&between) || !next {
            return (mac.len() >= MAC_LEN && ends(rest, len)).then_some((len, mac));
        }
        len += 1;
    }
    None
}

/// The name of an address, a new one if it has none.
fn named<A: Ord>(names: &mut BTreeMap<A, usize>, address: A, kind: &str) -> String {
    let next = names.len() + 1;
    format!("{kind}-{}", names.entry(address).or_insert(next))
}

#[cfg(test)]
mod tests;
