//! Neighbour advertisements (RFC 4861), to one plain host or to all: what unicast and gratuitous ARP are to IPv4.

use crate::{MacAddr, Refusal, frame, message::is_host_address};
use std::net::{IpAddr, Ipv6Addr};

#[cfg(test)]
mod tests;

pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(crate) const ICMPV6: u8 = 58;
const NEIGHBOUR_SOLICITATION: u8 = 135;
pub(crate) const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// Options: the MAC of who sends, and of the address that the message is about.
const SOURCE_MAC: u8 = 1;
const TARGET_MAC: u8 = 2;

/// The sender forwards for others. Without it a host takes us out of its list of default routers (section 7.2.5).
const FLAG_ROUTER: u8 = 0x80;
/// What the host has cached is to be replaced.
const FLAG_OVERRIDE: u8 = 0x20;

/// Bytes of an advertisement with one target link-layer address option.
const LEN: u16 = 32;
const FRAME_LEN: usize = 14 + 40 + LEN as usize;

/// All nodes on the link, ff02::1, and the Ethernet address that it maps to (RFC 2464, section 7).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: MacAddr = MacAddr([0x33, 0x33, 0, 0, 0, 1]);

/// An unsolicited advertisement that announces to the host `dst`, which has the address `dst_ip`, that `ip` is at the member
/// `src`. `router`: whether this host forwards.
///
/// # Errors
/// An address that is not one interface's.
pub fn emit_advertisement(
    dst: MacAddr,
    dst_ip: Ipv6Addr,
    src: MacAddr,
    ip: Ipv6Addr,
    router: bool,
) -> Result<Vec<u8>, Refusal> {
    if !dst.is_host() {
        return Err(Refusal::ProbeNotUnicast);
    }
    if !is_host_address(IpAddr::V6(dst_ip)) {
        return Err(Refusal::AddressNotHost);
    }
    advertisement(dst, dst_ip, src, ip, router)
}

/// The same to all nodes (section 7.2.6).
///
/// # Errors
/// An address that is not one interface's.
pub fn emit_advertisement_to_all(src: MacAddr, ip: Ipv6Addr, router: bool) -> Result<Vec<u8>, Refusal> {
    advertisement(ALL_NODES_MAC, ALL_NODES, src, ip, router)
}

fn advertisement(
    dst: MacAddr,
    dst_ip: Ipv6Addr,
    src: MacAddr,
    ip: Ipv6Addr,
    router: bool,
) -> Result<Vec<u8>, Refusal> {
    if !src.is_host() {
        return Err(Refusal::SourceNotHost);
    }
    if !is_host_address(IpAddr::V6(ip)) {
        return Err(Refusal::AddressNotHost);
    }
    let flags = if router { FLAG_ROUTER | FLAG_OVERRIDE } else { FLAG_OVERRIDE };
    Ok(message((dst, dst_ip), (src, ip), [NEIGHBOUR_ADVERTISEMENT, flags, TARGET_MAC], ip))
}

/// A solicitation for `ip` to that address itself, at `dst`; the answer goes to `src_ip`, at `src`.
///
/// # Errors
/// An address that is not one interface's.
pub(crate) fn solicitation(
    dst: MacAddr,
    src: MacAddr,
    src_ip: Ipv6Addr,
    ip: Ipv6Addr,
) -> Result<Vec<u8>, Refusal> {
    if !src.is_host() {
        return Err(Refusal::SourceNotHost);
    }
    if !is_host_address(IpAddr::V6(ip)) {
        return Err(Refusal::AddressNotHost);
    }
    Ok(message((dst, ip), (src, src_ip), [NEIGHBOUR_SOLICITATION, 0, SOURCE_MAC], ip))
}

type Party = (MacAddr, Ipv6Addr);

/// A message of that kind, with those flags and an option that names the sender's MAC.
fn message(to: Party, from: Party, [kind, flags, option]: [u8; 3], about: Ipv6Addr) -> Vec<u8> {
    let mut body = vec![kind, 0, 0, 0, flags, 0, 0, 0];
    body.extend(about.octets());
    // One unit of eight bytes.
    body.extend([option, 1]);
    body.extend(from.0.0);
    let sum = checksum(from.1, to.1, &body).to_be_bytes();
    body[2..4].copy_from_slice(&sum);
    let mut out = frame::begin_frame_of(ETHERTYPE_IPV6, to.0, from.0, FRAME_LEN);
    out.extend([0x60, 0, 0, 0]);
    out.extend(LEN.to_be_bytes());
    // A hop limit of 255 proves to the receiver that no router passed it on (section 7.1.2).
    out.extend([ICMPV6, 255]);
    out.extend(from.1.octets());
    out.extend(to.1.octets());
    out.extend(body);
    out
}

/// The Internet checksum of an ICMPv6 message with its pseudo header (RFC 8200, section 8.1).
pub(crate) fn checksum(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> u16 {
    let [high, low] = u16::try_from(message.len()).unwrap_or(0).to_be_bytes();
    let pseudo = [0, 0, high, low, 0, 0, 0, ICMPV6];
    u16::from_be_bytes(crate::checksum(&[&from.octets(), &to.octets(), &pseudo, message]))
}
