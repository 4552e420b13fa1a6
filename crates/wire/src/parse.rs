//! Bytes to values. Every length is checked before the bytes are touched; nothing here can panic.

use crate::{
    Auth, CLASSES_MAX, Class, Extension, GUESTS_MAX, Guest, HostId, Kind, MESSAGE_LEN_MAX, MacAddr, Member,
    Message, Refusal, tlv,
};
use std::net::IpAddr;

/// A message, and what was skipped to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The parsed message.
    pub message: Message,
    /// TLVs of unknown type that were skipped.
    pub unknown_tlvs: u16,
    /// Bytes after the message that were ignored: Ethernet padding.
    pub trailing: u16,
}

/// A cursor over bytes: takes a prefix or says that there is none.
pub(crate) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }
}

impl Message {
    /// Reads one message from the bytes after the Ethernet header, padding included.
    ///
    /// # Errors
    /// Why it was refused; see `docs/arp-plus.md`, sections 2 and 3.
    pub fn parse(bytes: &[u8]) -> Result<Parsed, Refusal> {
        //= docs/arp-plus.md#2.8
        if bytes.len() > MESSAGE_LEN_MAX {
            return Err(Refusal::TooLong);
        }
        let mut bytes = Bytes(bytes);
        let (kind, address, hardware) = published(&mut bytes, Kind::from_number)?;
        let mut message = Message { kind, address, hardware, extension: None };
        let mut tlvs = Tlvs::default();
        //= docs/arp-plus.md#2.6
        if bytes.0.first() == Some(&tlv::VERSION) {
            tlvs.read(&mut bytes)?;
        }
        let Tlvs { unknown, digest, .. } = tlvs;
        message.extension = tlvs.finish()?;
        message.check()?;
        //= docs/arp-plus.md#3.7
        if digest.is_some_and(|digest| digest != message.sent_digest()) {
            return Err(Refusal::DigestMismatch);
        }
        Ok(Parsed { message, unknown_tlvs: unknown, trailing: bytes.0.len() as u16 })
    }
}

/// What stands in every message: TYPE, the IP address and the hardware addresses.
type Published<K> = (K, Option<IpAddr>, Vec<MacAddr>);

/// HLEN, PLEN, COUNT, TYPE, the IP address and the hardware addresses; `known` says which types are meant.
pub(crate) fn published<K>(
    bytes: &mut Bytes<'_>,
    known: impl Fn(u8) -> Option<K>,
) -> Result<Published<K>, Refusal> {
    let [hardware_len, protocol_len, count, kind] = bytes.array().ok_or(Refusal::Truncated)?;
    //= docs/arp-plus.md#2.2
    if hardware_len != 6 {
        return Err(Refusal::HardwareLength);
    }
    if usize::from(count) > crate::HARDWARE_MAX {
        return Err(Refusal::TooManyHardware);
    }
    //= docs/arp-plus.md#2.7
    let kind = known(kind).ok_or(Refusal::UnknownType)?;
    //= docs/arp-plus.md#2.3
    let address = match protocol_len {
        0 => None,
        4 => Some(IpAddr::from(bytes.array::<4>().ok_or(Refusal::Truncated)?)),
        16 => Some(IpAddr::from(bytes.array::<16>().ok_or(Refusal::Truncated)?)),
        _ => return Err(Refusal::ProtocolLength),
    };
    let mut hardware = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        hardware.push(MacAddr(bytes.array().ok_or(Refusal::Truncated)?));
    }
    Ok((kind, address, hardware))
}

/// What the TLVs said so far.
#[derive(Default)]
struct Tlvs {
    version: Option<u8>,
    host: Option<(HostId, u64)>,
    sequence: Option<u32>,
    members: Vec<Member>,
    classes: Vec<Class>,
    features: Option<u32>,
    guests: Vec<Guest>,
    addresses: Vec<IpAddr>,
    digest: Option<u64>,
    auth: Option<Auth>,
    unknown: u16,
}

impl Tlvs {
    /// Reads up to END or the end of the bytes.
    fn read(&mut self, bytes: &mut Bytes<'_>) -> Result<(), Refusal> {
        while let Some((kind, value)) = next_tlv(bytes, self.auth.is_some())? {
            self.one(kind, value)?;
        }
        Ok(())
    }

    fn one(&mut self, kind: u8, value: &[u8]) -> Result<(), Refusal> {
        match kind {
            tlv::VERSION => once(&mut self.version, exact::<1>(value)?[0]),
            tlv::HOST => once(&mut self.host, host(value)?),
            tlv::SEQUENCE => once(&mut self.sequence, u32::from_be_bytes(exact(value)?)),
            tlv::MEMBER => self.member(exact(value)?),
            tlv::CLASS => self.class(value),
            //= docs/arp-plus.md#3.10
            tlv::FEATURES => once(&mut self.features, u32::from_be_bytes(exact(value)?)),
            tlv::GUEST => self.guest(value),
            tlv::MORE_ADDRESSES => self.more_addresses(value),
            tlv::DIGEST => once(&mut self.digest, u64::from_be_bytes(exact(value)?)),
            tlv::AUTH => once(&mut self.auth, auth(value)?),
            //= docs/arp-plus.md#3.2
            _ => {
                self.unknown = self.unknown.saturating_add(1);
                Ok(())
            }
        }
    }

    fn member(&mut self, value: [u8; tlv::MEMBER_LEN]) -> Result<(), Refusal> {
        let [index, state, a, b, c, d, class] = value;
        let up = match state {
            tlv::STATE_DOWN => false,
            tlv::STATE_UP => true,
            _ => return Err(Refusal::TlvValue),
        };
        if self.members.len() == crate::HARDWARE_MAX {
            return Err(Refusal::MemberCount);
        }
        self.members.push(Member { index, up, weight_mbit: u32::from_be_bytes([a, b, c, d]), class });
        Ok(())
    }

    fn class(&mut self, value: &[u8]) -> Result<(), Refusal> {
        //= docs/arp-plus.md#3.9
        let ([number, flags], name) = value.split_first_chunk().ok_or(Refusal::TlvLength)?;
        // There are no more numbers than that.
        if self.classes.len() == CLASSES_MAX {
            return Err(Refusal::ClassTwice);
        }
        let name = std::str::from_utf8(name).map_err(|_| Refusal::ClassName)?.to_owned();
        self.classes.push(Class { number: *number, may_borrow: flags & tlv::FLAG_MAY_BORROW != 0, name });
        Ok(())
    }

    fn guest(&mut self, value: &[u8]) -> Result<(), Refusal> {
        //= docs/arp-plus.md#3.12
        let mut bytes = Bytes(value);
        let vlan = u16::from_be_bytes(bytes.array().ok_or(Refusal::TlvLength)?);
        let mac = MacAddr(bytes.array().ok_or(Refusal::TlvLength)?);
        let [ipv4] = bytes.array().ok_or(Refusal::TlvLength)?;
        if self.guests.len() == GUESTS_MAX {
            return Err(Refusal::TooManyGuests);
        }
        let mut addresses = Vec::new();
        for _ in 0..ipv4 {
            addresses.push(IpAddr::from(bytes.array::<4>().ok_or(Refusal::TlvLength)?));
        }
        while !bytes.0.is_empty() {
            addresses.push(IpAddr::from(bytes.array::<16>().ok_or(Refusal::TlvLength)?));
        }
        self.guests.push(Guest { vlan, mac, addresses });
        Ok(())
    }

    fn more_addresses(&mut self, value: &[u8]) -> Result<(), Refusal> {
        //= docs/arp-plus.md#3.6
        let (len, list) = value.split_first().ok_or(Refusal::TlvLength)?;
        if !matches!(len, 4 | 16) || list.len() % usize::from(*len) != 0 {
            return Err(Refusal::TlvLength);
        }
        let mut list = Bytes(list);
        while !list.0.is_empty() {
            let address = match len {
                4 => IpAddr::from(list.array::<4>().ok_or(Refusal::TlvLength)?),
                _ => IpAddr::from(list.array::<16>().ok_or(Refusal::TlvLength)?),
            };
            if self.addresses.len() == crate::MORE_ADDRESSES_MAX {
                return Err(Refusal::TooManyAddresses);
            }
            self.addresses.push(address);
        }
        Ok(())
    }

    /// The extension, if the message has one at all.
    fn finish(self) -> Result<Option<Extension>, Refusal> {
        let Some(version) = self.version else { return Ok(None) };
        //= docs/arp-plus.md#3.4
        let (Some((host, epoch)), Some(sequence)) = (self.host, self.sequence) else {
            return Err(Refusal::TlvMissing);
        };
        let Tlvs { members, classes, guests, addresses, digest, auth, .. } = self;
        let features = self.features.unwrap_or(0);
        Ok(Some(Extension {
            version,
            host,
            epoch,
            sequence,
            members,
            classes,
            features,
            guests,
            addresses,
            digest,
            auth,
        }))
    }
}

/// The next TLV; none at END or at the end of the bytes.
pub(crate) fn next_tlv<'a>(
    bytes: &mut Bytes<'a>,
    after_auth: bool,
) -> Result<Option<(u8, &'a [u8])>, Refusal> {
    //= docs/arp-plus.md#3.3
    let Some([kind]) = bytes.array().filter(|[kind]| *kind != tlv::END) else { return Ok(None) };
    //= docs/arp-plus.md#3.8
    if after_auth {
        return Err(Refusal::AuthNotLast);
    }
    let [len] = bytes.array().ok_or(Refusal::TlvTruncated)?;
    let value = bytes.take(usize::from(len)).ok_or(Refusal::TlvTruncated)?;
    Ok(Some((kind, value)))
}

/// Host id and epoch.
pub(crate) fn host(value: &[u8]) -> Result<(HostId, u64), Refusal> {
    let bytes = exact::<{ tlv::HOST_LEN }>(value)?;
    let mut bytes = Bytes(&bytes);
    let host = HostId(bytes.array().ok_or(Refusal::TlvLength)?);
    Ok((host, u64::from_be_bytes(bytes.array().ok_or(Refusal::TlvLength)?)))
}

/// Key and tag.
pub(crate) fn auth(value: &[u8]) -> Result<Auth, Refusal> {
    let mut bytes = Bytes(value);
    let key_id = u32::from_be_bytes(bytes.array().ok_or(Refusal::TlvLength)?);
    Ok(Auth { key_id, tag: bytes.0.to_vec() })
}

/// The value as an array, if it has just that length.
pub(crate) fn exact<const N: usize>(value: &[u8]) -> Result<[u8; N], Refusal> {
    value.try_into().map_err(|_| Refusal::TlvLength)
}

/// Fills an empty place.
pub(crate) fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Refusal> {
    if place.is_some() {
        return Err(Refusal::TlvTwice);
    }
    *place = Some(value);
    Ok(())
}
