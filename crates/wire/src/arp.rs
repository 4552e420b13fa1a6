//! ARP (RFC 826) for plain hosts: probes of RFC 5227, the replies to them, and unicast replies.
//!
//! A probe has the sender address 0.0.0.0, so no cache changes by it, and every host answers one for its own address: to
//! the sender's hardware address, which is that of the member that asks. Only this exact exchange is read here; the host's
//! ordinary ARP is the kernel's.

use crate::{
    FRAME_HEADER_LEN, FRAME_LEN_MIN, MacAddr, PlainAnswer, Refusal, frame, message::is_host_address,
};
use std::net::{IpAddr, Ipv4Addr};

#[cfg(test)]
mod tests;

const ETHERTYPE_ARP: u16 = 0x0806;

/// Ethernet, IPv4, lengths 6 and 4.
const FORMAT: [u8; 6] = [0, 1, 8, 0, 6, 4];

const REQUEST: u16 = 1;
const REPLY: u16 = 2;

/// Reads a whole untagged frame with a reply to a probe, Ethernet header first, without checksum. What follows the packet
/// is padding, whatever it is.
///
/// # Errors
/// Why it is none; see `docs/arp-plus.md`, clause 12.3.
pub(crate) fn parse_arp_reply(bytes: &[u8]) -> Result<PlainAnswer, Refusal> {
    //= docs/arp-plus.md#12.3
    let mut rest = bytes;
    let to = MacAddr(take(&mut rest)?);
    let host = MacAddr(take(&mut rest)?);
    if u16::from_be_bytes(take(&mut rest)?) != ETHERTYPE_ARP {
        return Err(Refusal::NotArp);
    }
    if !host.is_host() {
        return Err(Refusal::SourceNotHost);
    }
    if take(&mut rest)? != FORMAT {
        return Err(Refusal::ArpFormat);
    }
    if u16::from_be_bytes(take(&mut rest)?) != REPLY {
        return Err(Refusal::ArpNotReply);
    }
    let sender = MacAddr(take(&mut rest)?);
    let ip = Ipv4Addr::from(take::<4>(&mut rest)?);
    let target = MacAddr(take(&mut rest)?);
    let asked_from = Ipv4Addr::from(take::<4>(&mut rest)?);
    if sender != host {
        return Err(Refusal::ArpSender);
    }
    if !is_host_address(IpAddr::V4(ip)) {
        return Err(Refusal::AddressNotHost);
    }
    if target != to || !to.is_host() {
        return Err(Refusal::ArpTarget);
    }
    if !asked_from.is_unspecified() {
        return Err(Refusal::ArpNotForProbe);
    }
    Ok(PlainAnswer { to, host, ip: IpAddr::V4(ip) })
}

/// Whether a frame is ARP by its EtherType. It may still be a bad one.
pub fn is_arp(bytes: &[u8]) -> bool {
    bytes.get(FRAME_HEADER_LEN - 2..FRAME_HEADER_LEN) == Some(&ETHERTYPE_ARP.to_be_bytes()[..])
}

/// A probe (RFC 5227, section 1.1, but unicast): does `dst` still answer for `ip`, over the member `src`?
///
/// # Errors
/// An address that is not one interface's.
pub(crate) fn emit_arp_probe(dst: MacAddr, src: MacAddr, ip: Ipv4Addr) -> Result<Vec<u8>, Refusal> {
    //= docs/arp-plus.md#12.2
    packet(dst, src, REQUEST, (src, Ipv4Addr::UNSPECIFIED), (MacAddr::ZERO, ip), ip)
}

/// A unicast reply that announces to the host `dst`, which has the address `dst_ip`, that `ip` is at the member `src`.
///
/// # Errors
/// An address that is not one interface's.
pub fn emit_arp_reply(
    dst: MacAddr,
    dst_ip: Ipv4Addr,
    src: MacAddr,
    ip: Ipv4Addr,
) -> Result<Vec<u8>, Refusal> {
    packet(dst, src, REPLY, (src, ip), (dst, dst_ip), ip)
}

type Party = (MacAddr, Ipv4Addr);

fn packet(
    dst: MacAddr,
    src: MacAddr,
    operation: u16,
    sender: Party,
    target: Party,
    about: Ipv4Addr,
) -> Result<Vec<u8>, Refusal> {
    if !dst.is_host() {
        return Err(Refusal::ProbeNotUnicast);
    }
    if !src.is_host() {
        return Err(Refusal::SourceNotHost);
    }
    if !is_host_address(IpAddr::V4(about)) {
        return Err(Refusal::AddressNotHost);
    }
    let mut out = frame::begin_frame_of(ETHERTYPE_ARP, dst, src, FRAME_LEN_MIN);
    out.extend(FORMAT);
    out.extend(operation.to_be_bytes());
    for (mac, ip) in [sender, target] {
        out.extend(mac.0);
        out.extend(ip.octets());
    }
    frame::pad(&mut out);
    Ok(out)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Refusal> {
    let (taken, left) = rest.split_first_chunk().ok_or(Refusal::Truncated)?;
    *rest = left;
    Ok(*taken)
}
