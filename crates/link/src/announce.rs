//! Frames that tell the LAN "this IP address is at this hardware address now".

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linkbraid_wire::MacAddr;

/// Shortest Ethernet frame without its checksum, in bytes.
const FRAME_LEN_MIN: usize = 60;
/// Length of a neighbour advertisement with one link-layer address option, in bytes.
const ADVERTISEMENT_LEN: u16 = 32;
const ICMPV6: u8 = 58;
/// All nodes on the link, ff02::1, and the Ethernet address that it maps to (RFC 2464, section 7).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: MacAddr = MacAddr([0x33, 0x33, 0, 0, 0, 1]);

/// The frames that announce `addresses` at `mac`: gratuitous ARP for IPv4, unsolicited neighbour advertisements for
/// IPv6. Addresses that are nobody's (unspecified, loopback, multicast) are left out.
#[must_use]
pub fn announcements(mac: MacAddr, addresses: &[IpAddr]) -> Vec<Vec<u8>> {
    let ours = |ip: &&IpAddr| !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast();
    let frame = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => gratuitous_arp(mac, *ip),
        IpAddr::V6(ip) => unsolicited_advertisement(mac, *ip),
    };
    addresses.iter().filter(ours).map(frame).collect()
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

/// An unsolicited neighbour advertisement with the override flag (RFC 4861, section 7.2.6), to all nodes.
#[must_use]
pub fn unsolicited_advertisement(mac: MacAddr, ip: Ipv6Addr) -> Vec<u8> {
    let mut body = vec![136, 0, 0, 0];
    // Flags: not a router's claim, not solicited, override.
    body.extend([0x20, 0, 0, 0]);
    body.extend(ip.octets());
    // Target link-layer address, one unit of eight bytes.
    body.extend([2, 1]);
    body.extend(mac.0);
    let sum = checksum(ip, ALL_NODES, &body).to_be_bytes();
    body[2..4].copy_from_slice(&sum);

    let mut frame = header(ALL_NODES_MAC, mac, 0x86dd);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(ADVERTISEMENT_LEN.to_be_bytes());
    // A hop limit of 255 proves to the receiver that no router passed it on.
    frame.extend([ICMPV6, 255]);
    frame.extend(ip.octets());
    frame.extend(ALL_NODES.octets());
    frame.extend(body);
    frame
}

fn header(to: MacAddr, from: MacAddr, ethertype: u16) -> Vec<u8> {
    [&to.0[..], &from.0, &ethertype.to_be_bytes()].concat()
}

/// The Internet checksum of an ICMPv6 message with its pseudo header (RFC 8200, section 8.1).
fn checksum(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> u16 {
    let length = u32::try_from(message.len()).unwrap_or(0).to_be_bytes();
    let all = [&from.octets()[..], &to.octets(), &length, &[0, 0, 0, ICMPV6], message].concat();
    let sum: u32 = all
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests;
