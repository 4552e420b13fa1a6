//! The values an ARP+ message carries.

use crate::{Class, Guest, MacAddr, Refusal, class, guest};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

#[cfg(test)]
mod tests;

/// Identity of a host: stays the same while its addresses, NICs and epochs change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId(pub [u8; 16]);

impl std::fmt::Display for HostId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// What a message is for: the packet type of the published format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Kind {
    /// A host that joins announces its mapping to all, and requests theirs.
    Broadcast = 1,
    /// The answer to a BROADCAST, to its sender only.
    Reply = 2,
    /// A host announces its mapping to all: it changed, or a second has passed.
    Change = 3,
    /// A host leaves; its entry is to be deleted.
    Clear = 4,
}

impl Kind {
    /// The four kinds in the order of their numbers.
    pub const ALL: [Kind; 4] = [Kind::Broadcast, Kind::Reply, Kind::Change, Kind::Clear];

    /// The kind of that number, if there is one.
    pub const fn from_number(number: u8) -> Option<Kind> {
        match number {
            1 => Some(Kind::Broadcast),
            2 => Some(Kind::Reply),
            3 => Some(Kind::Change),
            4 => Some(Kind::Clear),
            _ => None,
        }
    }
}

/// One message: the sender's own mapping from an IP address to its hardware addresses, and why it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The type of the message, such as BROADCAST.
    pub kind: Kind,
    /// The sender's IP address; none while it has none.
    pub address: Option<IpAddr>,
    /// All hardware addresses behind it, the primary one first; 1 to [`crate::HARDWARE_MAX`], none twice.
    pub hardware: Vec<MacAddr>,
    /// The TLVs; none from a host that uses only the published format.
    pub extension: Option<Extension>,
}

/// The TLVs of an extended message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Version of the sender's extension, at least 1. Whoever reads a higher one skips what it does not know.
    pub version: u8,
    /// The id of the sending host.
    pub host: HostId,
    /// Grows each time the sender starts.
    pub epoch: u64,
    /// Grows with each change of the mapping within an epoch; compared as serial numbers (RFC 1982).
    pub sequence: u32,
    /// One for each hardware address, in the same order.
    pub members: Vec<Member>,
    /// Its classes, at most [`crate::CLASSES_MAX`], no number and no name twice.
    pub classes: Vec<Class>,
    /// What it is capable of, a bit each ([`crate::FEATURE_MIRROR`]); unknown bits say nothing.
    pub features: u32,
    /// The guests behind it, at most [`crate::GUESTS_MAX`], and no more than fit.
    pub guests: Vec<Guest>,
    /// Further IP addresses of the host, at most [`crate::MORE_ADDRESSES_MAX`].
    pub addresses: Vec<IpAddr>,
    /// [`Message::sent_digest`]; `emit` writes the right one where this is `Some`.
    pub digest: Option<u64>,
    /// Authentication, which [`crate::sealed`] looks at.
    pub auth: Option<Auth>,
}

/// Version [`crate::VERSION`], and nothing else.
impl Default for Extension {
    fn default() -> Self {
        Self {
            version: crate::VERSION,
            host: HostId([0; 16]),
            epoch: 0,
            sequence: 0,
            members: Vec::new(),
            classes: Vec::new(),
            features: 0,
            guests: Vec::new(),
            addresses: Vec::new(),
            digest: None,
            auth: None,
        }
    }
}

/// What a host announces of one of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The sender's own number of this member; stays while other members come and go.
    pub index: u8,
    /// Whether the sender takes traffic there.
    pub up: bool,
    /// Its weight in Mbit/s, by which lanes share the traffic.
    pub weight_mbit: u32,
    /// The class that has the member for itself, by the sender's number; 0: none. One that is not among
    /// [`Extension::classes`] is a class all the same.
    pub class: u8,
}

/// The AUTH TLV as it stands. [`crate::sealed`] says what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// The id of the key that made the tag.
    pub key_id: u32,
    /// The tag, at most [`crate::AUTH_TAG_MAX`] bytes.
    pub tag: Vec<u8>,
}

impl Message {
    /// The rules that bytes must keep and so must values: read and write both end here.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), Refusal> {
        //= docs/arp-plus.md#2.4
        if self.hardware.is_empty() {
            return Err(Refusal::NoHardware);
        }
        if self.hardware.len() > crate::HARDWARE_MAX {
            return Err(Refusal::TooManyHardware);
        }
        //= docs/arp-plus.md#2.5
        if self.hardware.iter().any(|mac| !mac.is_host()) {
            return Err(Refusal::HardwareNotHost);
        }
        if repeats(&self.hardware) {
            return Err(Refusal::HardwareTwice);
        }
        //= docs/arp-plus.md#2.3
        if self.address.is_some_and(|address| !is_host_address(address)) {
            return Err(Refusal::AddressNotHost);
        }
        self.extension.as_ref().map_or(Ok(()), |extension| extension.check(self.hardware.len()))
    }

    /// Every IP address of the sender, the first one first.
    pub fn all_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let more = self.extension.as_ref().map_or(&[][..], |extension| &extension.addresses);
        self.address.into_iter().chain(more.iter().copied())
    }
}

impl Extension {
    fn check(&self, hardware: usize) -> Result<(), Refusal> {
        if self.version == 0 {
            return Err(Refusal::VersionZero);
        }
        //= docs/arp-plus.md#3.5
        if self.members.len() != hardware {
            return Err(Refusal::MemberCount);
        }
        let indexes: Vec<u8> = self.members.iter().map(|member| member.index).collect();
        if repeats(&indexes) {
            return Err(Refusal::MemberTwice);
        }
        class::check(&self.classes)?;
        guest::check(&self.guests)?;
        //= docs/arp-plus.md#3.6
        if self.addresses.len() > crate::MORE_ADDRESSES_MAX {
            return Err(Refusal::TooManyAddresses);
        }
        if self.addresses.iter().any(|address| !is_host_address(*address)) {
            return Err(Refusal::AddressNotHost);
        }
        if self.auth.as_ref().is_some_and(|auth| auth.tag.len() > crate::AUTH_TAG_MAX) {
            return Err(Refusal::TlvLength);
        }
        Ok(())
    }
}

/// Whether one host can own it: not unspecified, a group, or the limited broadcast.
pub(crate) fn is_host_address(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || broadcast)
}

/// Whether a value stands twice in a list short enough (at most 16) to compare each with each.
fn repeats<T: PartialEq>(list: &[T]) -> bool {
    list.iter().enumerate().any(|(at, value)| list[..at].contains(value))
}
