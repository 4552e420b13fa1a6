//! Frames that announce to the LAN that an IP address is now at a hardware address.

use std::net::{IpAddr, Ipv4Addr};

use linkbraid_wire::{MacAddr, emit_advertisement_to_all};

/// Shortest Ethernet frame without its checksum, in bytes.
const FRAME_LEN_MIN: usize = 60;

/// The frames that announce `addresses` at `mac`: gratuitous ARP for IPv4, unsolicited neighbour advertisements for
/// IPv6. `router`: whether this host forwards IPv6 for others; hosts drop a router that says it does not. Addresses that are nobody's (unspecified, loopback, multicast) are left out.
#[must_use]
pub fn announcements(mac: MacAddr, addresses: &[IpAddr], router: bool) -> Vec<Vec<u8>> {
    let ours = |ip: &&IpAddr| !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast();
    let frame = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => Some(gratuitous_arp(mac, *ip)),
        IpAddr::V6(ip) => emit_advertisement_to_all(mac, *ip, router).ok(),
    };
    addresses.iter().filter(ours).filter_map(frame).collect()
}

/// An ARP announcement (RFC 5227, section 2.3): a request for the own address, to everyone.
#[must_use]
pub fn gratuitous_arp(mac: MacAddr, ip: Ipv4Addr) -> Vec<u8> {
    let mut frame = header(MacAddr::BROADCAST, mac, 0x0806);
    // Ethernet, IPv4, lengths 6 and 4, request.
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(mac.0);
    frame.extend(ip.octets());
    frame.extend([0; 6]);
    frame.extend(ip.octets());
    frame.resize(FRAME_LEN_MIN, 0);
    frame
}

/// Tells switches where the station with this MAC is now, whatever its addresses: a request of RARP (RFC 903), as virtual
/// machines send that have moved.
#[must_use]
pub fn station_here(mac: MacAddr) -> Vec<u8> {
    let mut frame = header(MacAddr::BROADCAST, mac, 0x8035);
    // Ethernet, IPv4, lengths 6 and 4, "which address have I".
    frame.extend([0, 1, 8, 0, 6, 4, 0, 3]);
    frame.extend(mac.0);
    frame.extend([0; 4]);
    frame.extend(mac.0);
    frame.resize(FRAME_LEN_MIN, 0);
    frame
}

fn header(to: MacAddr, from: MacAddr, ethertype: u16) -> Vec<u8> {
    [&to.0[..], &from.0, &ethertype.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests;
