//! Neighbour solicitations (RFC 4861) that probe plain hosts without IPv4, and the advertisements that answer them.
//!
//! A host answers to the address that asks, by what it has cached for that. So that the answer comes to the member that asks,
//! and nothing changes that it has cached of us, each member asks from a link-local address that only probes use.

use crate::{FRAME_HEADER_LEN, MacAddr, PlainAnswer, Refusal, advertisement, message::is_host_address};
use std::net::{IpAddr, Ipv6Addr};

#[cfg(test)]
mod tests;

/// The advertisement answers a solicitation.
const FLAG_SOLICITED: u8 = 0x40;
/// ICMPv6 header and target.
const BODY_LEN: usize = 24;
const IP_LEN: usize = 40;
const VERSION: u8 = 6;
const HOP_LIMIT: u8 = 255;

/// The address that a member with that MAC asks from. Its interface identifier is `LB` and the MAC.
pub fn probe_address(mac: MacAddr) -> Ipv6Addr {
    //= docs/arp-plus.md#12.7
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, b'L', b'B', a, b, c, d, e, f])
}

/// A solicitation: does `dst` still answer for `ip`, over the member `src`?
///
/// # Errors
/// An address that is not one interface's.
pub(crate) fn emit_solicitation(dst: MacAddr, src: MacAddr, ip: Ipv6Addr) -> Result<Vec<u8>, Refusal> {
    //= docs/arp-plus.md#12.7
    if !dst.is_host() {
        return Err(Refusal::ProbeNotUnicast);
    }
    advertisement::solicitation(dst, src, probe_address(src), ip)
}

/// Whether a frame is IPv6 by its EtherType. It may still be a bad one.
pub fn is_ipv6(bytes: &[u8]) -> bool {
    bytes.get(FRAME_HEADER_LEN - 2..FRAME_HEADER_LEN)
        == Some(&advertisement::ETHERTYPE_IPV6.to_be_bytes()[..])
}

/// Reads a whole untagged IPv6 frame with the answer to a solicitation. What follows the packet is padding.
///
/// # Errors
/// Why it is none; see `docs/arp-plus.md`, clause 12.7.
pub(crate) fn parse_solicited(bytes: &[u8]) -> Result<PlainAnswer, Refusal> {
    //= docs/arp-plus.md#12.7
    let (frame, rest) = bytes.split_at_checked(FRAME_HEADER_LEN).ok_or(Refusal::Truncated)?;
    let (ip, rest) = rest.split_at_checked(IP_LEN).ok_or(Refusal::Truncated)?;
    let body = rest.get(..usize::from(u16::from_be_bytes([ip[4], ip[5]]))).ok_or(Refusal::Truncated)?;
    let is_right = ip[0] >> 4 == VERSION && ip[6..8] == [advertisement::ICMPV6, HOP_LIMIT];
    if !is_right || !body.starts_with(&[advertisement::NEIGHBOUR_ADVERTISEMENT, 0]) {
        return Err(Refusal::NotAdvertisement);
    }
    if body.len() < BODY_LEN {
        return Err(Refusal::Truncated);
    }
    let (to, host) = (mac(&frame[..6]), mac(&frame[6..12]));
    let (from, asked_from, about) = (address(&ip[8..24]), address(&ip[24..40]), address(&body[8..24]));
    if !host.is_host() {
        return Err(Refusal::SourceNotHost);
    }
    if ![from, about].iter().all(|ip| is_host_address(IpAddr::V6(*ip))) {
        return Err(Refusal::AddressNotHost);
    }
    if !to.is_host() || asked_from != probe_address(to) || body[4] & FLAG_SOLICITED == 0 {
        return Err(Refusal::AdvertisementNotForProbe);
    }
    if advertisement::checksum(from, asked_from, body) != 0 {
        return Err(Refusal::AdvertisementChecksum);
    }
    Ok(PlainAnswer { to, host, ip: IpAddr::V6(about) })
}

fn mac(bytes: &[u8]) -> MacAddr {
    let mut mac = [0; 6];
    mac.copy_from_slice(bytes);
    MacAddr(mac)
}

fn address(bytes: &[u8]) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(bytes);
    Ipv6Addr::from(octets)
}
