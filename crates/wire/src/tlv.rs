//! Type, length, value: numbers and lengths of what follows the published part.

/// Padding: nothing follows. The only TLV without a length byte.
pub const END: u8 = 0;
/// u8; comes first and says that TLVs follow at all.
pub const VERSION: u8 = 1;
/// Host id (16 bytes), epoch (u64).
pub const HOST: u8 = 2;
/// A u32, compared as serial numbers (RFC 1982).
pub const SEQUENCE: u8 = 3;
/// Index, state, weight (u32), class.
pub const MEMBER: u8 = 4;
/// Length of an address (4 or 16), then addresses of that length. May repeat.
pub const MORE_ADDRESSES: u8 = 5;
/// A u64, FNV-1a over the mapping.
pub const DIGEST: u8 = 6;
/// Key id (u32), tag. Comes last.
pub const AUTH: u8 = 7;

/// Nonce (u64), echo (u64), number (u32), view, interval in microseconds (u32), multiplier. In probes only.
pub const PROBE: u8 = 8;

/// Number, flags, name. May repeat.
pub const CLASS: u8 = 9;
/// A u32 with one bit for each feature.
pub const FEATURES: u8 = 10;
/// VLAN (u16), MAC, number of IPv4 addresses, these, IPv6 addresses. May repeat.
pub const GUEST: u8 = 11;

/// Bytes of a HOST value.
pub const HOST_LEN: usize = 24;
/// Bytes of a MEMBER value.
pub const MEMBER_LEN: usize = 7;
/// Bytes of a CLASS value before the name.
pub const CLASS_HEAD_LEN: usize = 2;
/// Bytes of a FEATURES value.
pub const FEATURES_LEN: usize = 4;
/// Bytes of a GUEST value before the addresses.
pub const GUEST_HEAD_LEN: usize = 2 + 6 + 1;
/// Bytes of a PROBE value.
pub const PROBE_LEN: usize = 26;
/// Bytes of an AUTH value before the tag.
pub const AUTH_KEY_LEN: usize = 4;

/// CLASS flag: other traffic may use its members.
pub const FLAG_MAY_BORROW: u8 = 1;

/// MEMBER state: takes no traffic.
pub const STATE_DOWN: u8 = 0;
/// MEMBER state: takes traffic.
pub const STATE_UP: u8 = 1;

const _: () = assert!(HOST_LEN == 16 + 8);
const _: () = assert!(MEMBER_LEN == 1 + 1 + 4 + 1);
const _: () = assert!(PROBE_LEN == 8 + 8 + 4 + 1 + 4 + 1);

/// The longest message without guests that the limits allow: every list full, addresses of changing family (a TLV each).
const LONGEST: usize = 4
    + 16
    + crate::HARDWARE_MAX * 6
    + 3
    + (2 + HOST_LEN)
    + 6
    + crate::HARDWARE_MAX * (2 + MEMBER_LEN)
    + crate::CLASSES_MAX * (2 + CLASS_HEAD_LEN + crate::CLASS_NAME_MAX)
    + (2 + FEATURES_LEN)
    + crate::MORE_ADDRESSES_MAX * (2 + 1 + 16)
    + 10
    + (2 + AUTH_KEY_LEN + crate::AUTH_TAG_MAX);
const _: () = assert!(LONGEST <= crate::MESSAGE_LEN_MAX);

/// Bytes of a MEMBER value.
pub fn member_value(member: &crate::Member) -> [u8; MEMBER_LEN] {
    let [a, b, c, d] = member.weight_mbit.to_be_bytes();
    let state = if member.up { STATE_UP } else { STATE_DOWN };
    [member.index, state, a, b, c, d, member.class]
}

/// Bytes of a CLASS value.
pub fn class_value(class: &crate::Class) -> Vec<u8> {
    let flags = if class.may_borrow { FLAG_MAY_BORROW } else { 0 };
    [&[class.number, flags][..], class.name.as_bytes()].concat()
}

/// Bytes of a GUEST value.
pub fn guest_value(guest: &crate::Guest) -> Vec<u8> {
    let ipv4 = guest.addresses.iter().filter(|address| address.is_ipv4()).count();
    let mut value = [&guest.vlan.to_be_bytes()[..], &guest.mac.0, &[ipv4 as u8]].concat();
    guest.addresses.iter().for_each(|address| value.extend(address_bytes(address)));
    value
}

/// Bytes of an IP address in network order.
pub fn address_bytes(address: &std::net::IpAddr) -> Vec<u8> {
    match address {
        std::net::IpAddr::V4(v4) => v4.octets().to_vec(),
        std::net::IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}
