//! One frame of a flow: a TCP segment or datagram with some data, or an echo request.

use linkbraid_api::{Flow, FlowProtocol};
use linkbraid_wire::{MacAddr, checksum};
use std::net::IpAddr;

/// Protocol numbers (IANA).
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// EtherTypes.
const VLAN: u16 = 0x8100;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Bytes of data: more than what could be an ACK without any, and few enough for a mirrored frame.
const DATA: [u8; 128] = [0; 128];
/// Of the IP header: do not fragment, and how far it goes.
const DONT_FRAGMENT: u16 = 0x4000;
const HOPS: u8 = 64;
/// Of a TCP header without options: its length, ACK, and some window.
const TCP_HEADER: u8 = 5 << 4;
const TCP_ACK: u8 = 0x10;
const TCP_WINDOW: u16 = 512;
/// Echo requests (RFC 792, RFC 4443).
const ECHO: u8 = 8;
const ECHO_V6: u8 = 128;

/// Where a frame comes from and goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub source: MacAddr,
    pub destination: MacAddr,
    /// The VLAN that it carries the tag of; 0: none.
    pub vlan: u16,
}

/// The frame, with right checksums.
pub(super) fn of(flow: &Flow, dscp: u8, ends: Ends) -> Vec<u8> {
    let mut frame = [ends.destination.0, ends.source.0].concat();
    if ends.vlan != 0 {
        frame.extend(VLAN.to_be_bytes());
        frame.extend(ends.vlan.to_be_bytes());
    }
    let (protocol, check_at, mut payload) = payload(flow);
    let check = checksum(&[&pseudo(flow, protocol, payload.len()), &payload]);
    payload[check_at..check_at + 2].copy_from_slice(&check);
    match (flow.source, flow.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.extend(IPV4.to_be_bytes());
            let mut header = vec![0x45, dscp << 2];
            header.extend((20 + payload.len() as u16).to_be_bytes());
            header.extend([0, 0]);
            header.extend(DONT_FRAGMENT.to_be_bytes());
            header.extend([HOPS, protocol, 0, 0]);
            header.extend(source.octets());
            header.extend(destination.octets());
            let check = checksum(&[&header]);
            header[10..12].copy_from_slice(&check);
            frame.extend(header);
        }
        (source, destination) => {
            frame.extend(IPV6.to_be_bytes());
            frame.extend([0x60 | dscp >> 2, dscp << 6, 0, 0]);
            frame.extend((payload.len() as u16).to_be_bytes());
            frame.extend([protocol, HOPS]);
            frame.extend([octets(source), octets(destination)].concat());
        }
    }
    frame.extend(payload);
    frame
}

/// The protocol's number, where its checksum stands, and its header with the data.
fn payload(flow: &Flow) -> (u8, usize, Vec<u8>) {
    let ports = [flow.source_port.to_be_bytes(), flow.destination_port.to_be_bytes()].concat();
    let (protocol, check_at, header) = match flow.protocol {
        FlowProtocol::Tcp => {
            let numbers = [1u32.to_be_bytes(), 1u32.to_be_bytes()].concat();
            let window = TCP_WINDOW.to_be_bytes();
            let rest = vec![TCP_HEADER, TCP_ACK, window[0], window[1], 0, 0, 0, 0];
            (TCP, 16, [ports, numbers, rest].concat())
        }
        FlowProtocol::Udp => {
            let length = (8 + DATA.len() as u16).to_be_bytes();
            (UDP, 6, [ports, length.to_vec(), vec![0, 0]].concat())
        }
        FlowProtocol::Icmp if flow.source.is_ipv4() => (ICMP, 2, vec![ECHO, 0, 0, 0, 0, 1, 0, 1]),
        FlowProtocol::Icmp => (ICMP_V6, 2, vec![ECHO_V6, 0, 0, 0, 0, 1, 0, 1]),
    };
    (protocol, check_at, [header, DATA.to_vec()].concat())
}

/// What the checksum is over besides (RFC 9293, RFC 8200); ICMP has nothing of that.
fn pseudo(flow: &Flow, protocol: u8, length: usize) -> Vec<u8> {
    if protocol == ICMP {
        return Vec::new();
    }
    let length = (length as u32).to_be_bytes();
    [octets(flow.source), octets(flow.destination), length.to_vec(), vec![0, 0, 0, protocol]].concat()
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests;
