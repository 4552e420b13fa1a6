//! Probes of plain hosts and their answers, in ARP or neighbour discovery: the address decides.

use crate::{MacAddr, Refusal, arp, solicitation};
use std::net::IpAddr;

/// The answer of a plain host to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainAnswer {
    /// The member that asked; the answer goes to its MAC.
    pub to: MacAddr,
    /// The host that answers: the Ethernet source, and in ARP the sender's hardware address.
    pub host: MacAddr,
    /// The address it answers for.
    pub ip: IpAddr,
}

/// A probe: does `dst` still answer for `ip`, over the member `src`?
///
/// # Errors
/// An address that is not one interface's.
pub fn emit_plain_probe(dst: MacAddr, src: MacAddr, ip: IpAddr) -> Result<Vec<u8>, Refusal> {
    match ip {
        IpAddr::V4(ip) => arp::emit_arp_probe(dst, src, ip),
        IpAddr::V6(ip) => solicitation::emit_solicitation(dst, src, ip),
    }
}

/// Reads a whole untagged frame with the answer to a probe, Ethernet header first, without checksum.
///
/// # Errors
/// Why it is none; see `docs/arp-plus.md`, clauses 12.3 and 12.7.
pub fn parse_plain_answer(bytes: &[u8]) -> Result<PlainAnswer, Refusal> {
    if solicitation::is_ipv6(bytes) {
        solicitation::parse_solicited(bytes)
    } else {
        arp::parse_arp_reply(bytes)
    }
}

/// Whether a frame is for the inspector: a good answer of a plain host to a probe. The kernel has no use for it.
pub fn is_plain_answer(bytes: &[u8]) -> bool {
    parse_plain_answer(bytes).is_ok()
}
