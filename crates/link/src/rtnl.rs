//! Route netlink messages as bytes, and their attributes.
//!
//! Addresses and routes must go back exactly as they were, and a kernel newer than this program must not make an
//! interface unreadable. So messages stay bytes: what is not understood is carried along, not lost.

use std::convert::Infallible;

use rtnetlink::packet_core::{NetlinkDeserializable, NetlinkHeader, NetlinkSerializable};

/// Length of `struct ifinfomsg`, which starts a link message.
pub(crate) const LINK_HEADER: usize = 16;
/// Length of `struct ifaddrmsg`, which starts an address message.
pub(crate) const ADDRESS_HEADER: usize = 8;
/// Length of `struct rtmsg`, which starts a route message.
pub(crate) const ROUTE_HEADER: usize = 12;
/// Length of `struct ndmsg`, which starts a neighbour message.
pub(crate) const NEIGHBOUR_HEADER: usize = 12;
/// Length of `struct tcmsg`, which starts a qdisc message.
pub(crate) const QDISC_HEADER: usize = 20;
/// Length of `struct nlattr`, which starts an attribute.
const ATTRIBUTE_HEADER: usize = 4;
/// The two flag bits on top of an attribute's type.
const ATTRIBUTE_FLAGS: u16 = 0xc000;

/// The payload of one message, with its type (`RTM_NEWLINK`, ...).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raw {
    pub kind: u16,
    pub payload: Vec<u8>,
}

impl NetlinkSerializable for Raw {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.payload.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.payload);
    }
}

impl NetlinkDeserializable for Raw {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Infallible> {
        Ok(Self { kind: header.message_type, payload: payload.to_vec() })
    }
}

/// Builds a message: a fixed header, then attributes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Builder(Vec<u8>);

impl Builder {
    /// A builder whose message starts with `header`.
    pub fn new(header: &[u8]) -> Self {
        Self(header.to_vec())
    }

    /// A link message about interface `index` (0: by name), setting the `change` bits of its flags to `flags`.
    pub fn link(family: u8, index: u32, flags: u32, change: u32) -> Self {
        let mut header = vec![family, 0, 0, 0];
        header.extend(index.to_ne_bytes());
        header.extend(flags.to_ne_bytes());
        header.extend(change.to_ne_bytes());
        Self(header)
    }

    pub fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        // Every value written here is shorter than an interface's route list; 64 KiB is the format's own limit.
        let length = u16::try_from(ATTRIBUTE_HEADER + value.len()).unwrap_or(u16::MAX);
        let value = &value[..usize::from(length) - ATTRIBUTE_HEADER];
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub fn u8(self, kind: u16, value: u8) -> Self {
        self.bytes(kind, &[value])
    }

    pub fn u32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    pub fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    pub fn nested(self, kind: u16, inner: Self) -> Self {
        self.bytes(kind | (nix::libc::NLA_F_NESTED as u16), &inner.0)
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// The attributes of a message behind its header of `skip` bytes: (type without flags, value). Ends at the first
/// attribute whose length is impossible.
pub(crate) fn attributes(message: &[u8], skip: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = message.get(skip..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(0..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(ATTRIBUTE_HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & !ATTRIBUTE_FLAGS, value))
    })
}

/// The value of the first attribute of type `wanted`.
pub(crate) fn attribute(message: &[u8], skip: usize, wanted: u16) -> Option<&[u8]> {
    attributes(message, skip).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// A number in host order; missing or short values read as nothing.
pub(crate) fn number(value: &[u8]) -> Option<u32> {
    match *value {
        [a] => Some(u32::from(a)),
        [a, b] => Some(u32::from(u16::from_ne_bytes([a, b]))),
        [a, b, c, d, ..] => Some(u32::from_ne_bytes([a, b, c, d])),
        _ => None,
    }
}

/// The number at `offset` of a header.
pub(crate) fn number_at(message: &[u8], offset: usize) -> u32 {
    message.get(offset..offset + 4).and_then(number).unwrap_or(0)
}

/// A string up to its terminating zero.
pub(crate) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

#[cfg(test)]
mod tests;
