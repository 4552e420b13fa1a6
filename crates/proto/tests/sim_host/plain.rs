//! Plain hosts: one NIC each, no daemon. They answer ARP (RFC 826), or neighbour solicitations (RFC 4861), and believe what they
//! are told.

use super::{Frame, World, addresses, answer, mac};
use crate::path::Taken;
use linkbraid_proto::host::{Input, Neighbour};
use linkbraid_wire::{MacAddr, is_arp, is_ipv6, is_plain_answer};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
};

#[derive(Debug)]
pub(super) struct PlainNeighbour {
    lives: bool,
    /// The MAC that it was told for each bond.
    cached: BTreeMap<usize, MacAddr>,
}

fn field(bytes: &[u8], at: usize) -> MacAddr {
    MacAddr(bytes[at..at + 6].try_into().expect("six bytes"))
}

/// Every other one has IPv6 only.
fn address(host: usize) -> IpAddr {
    addresses(host).nth(host % 2).expect("two addresses")
}

/// The MAC that a frame advertises, and for which address.
fn advertised(bytes: &[u8]) -> (MacAddr, IpAddr) {
    if is_arp(bytes) {
        return (field(bytes, 22), IpAddr::from([bytes[28], bytes[29], bytes[30], bytes[31]]));
    }
    let octets: [u8; 16] = bytes[62..78].try_into().expect("sixteen bytes");
    (field(bytes, 80), IpAddr::V6(Ipv6Addr::from(octets)))
}

impl World {
    pub(super) fn add_plain(&mut self, switch: u8) {
        self.cables.insert((self.hosts(), 0), switch);
        self.plain.push(PlainNeighbour { lives: true, cached: BTreeMap::new() });
    }

    fn plain_mut(&mut self, host: usize) -> &mut PlainNeighbour {
        let first = self.machines.len();
        &mut self.plain[host - first]
    }

    pub(super) fn plain_lives(&self, host: usize) -> bool {
        self.plain[host - self.machines.len()].lives
    }

    /// A plain host is switched off, or on again.
    pub fn switch_plain(&mut self, host: usize, lives: bool) {
        *self.plain_mut(host) = PlainNeighbour { lives, cached: BTreeMap::new() };
    }

    /// The neighbour table of each host: it has spoken to all plain hosts.
    pub(super) fn neighbours(&self) -> Vec<Neighbour> {
        let neighbour =
            |host| Neighbour { ip: address(host), mac: mac(host, 0), active: true, gateway: false };
        (self.machines.len()..self.hosts()).map(neighbour).collect()
    }

    /// Whom it has not been told of otherwise, it sends to by the MAC that the kernel answers with.
    pub(super) fn send_from_plain(&mut self, from: usize, to: Option<usize>, number: u64) {
        if !self.plain_lives(from) {
            return;
        }
        // Now and then it asks the bond again.
        if let Some(to) = to.filter(|to| *to < self.machines.len()).filter(|_| self.random(8) == 0) {
            self.plain_mut(from).cached.remove(&to);
        }
        let cached = to.and_then(|to| self.plain_mut(from).cached.get(&to).copied());
        let destination = to.map_or(MacAddr::BROADCAST, |to| cached.unwrap_or_else(|| self.mac_of(to)));
        self.carry((from, 0), Frame::Data { number, source: mac(from, 0), destination });
    }

    pub(super) fn deliver_to_plain(&mut self, host: usize, frame: Frame) {
        let own = mac(host, 0);
        if !self.plain_lives(host) {
            return;
        }
        match frame {
            Frame::Data { number, destination, .. } if destination == own || destination.is_multicast() => {
                self.accept(number, host, 0, destination);
            }
            Frame::Daemon(bytes) if (is_arp(&bytes) || is_ipv6(&bytes)) && field(&bytes, 0) == own => {
                self.take_plain(host, &bytes);
            }
            Frame::Data { .. } | Frame::Daemon(_) => {}
        }
    }

    /// A probe is answered, what else is advertised believed.
    fn take_plain(&mut self, host: usize, bytes: &[u8]) {
        if let Some(answer) = answer(bytes, address(host)) {
            return self.carry((host, 0), Frame::Daemon(answer));
        }
        let (mac, ip) = advertised(bytes);
        assert_eq!(ip.is_ipv4(), address(host).is_ipv4(), "host {host} is told of its own family");
        let bond = (0..self.machines.len()).find(|bond| addresses(*bond).any(|own| own == ip));
        self.plain_mut(host).cached.extend(bond.map(|bond| (bond, mac)));
    }

    /// ARP and IPv6 at a bond: the data path hands answers to probes to the daemon (`copy_probe_reply()`, `take_to_probe()`).
    pub(super) fn deliver_plain_answer(&mut self, host: usize, slot: u8, bytes: &[u8]) {
        let (destination, source) = (field(bytes, 0), field(bytes, 6));
        let now = self.clock(host);
        let path = &mut self.machines[host].path;
        let is_here = path.rows.members.get(&slot).is_some_and(|member| member.mac == destination);
        let probed = path.rows.answers.get(&source).is_some_and(|answer| answer.probed);
        let (taken, _) = path.take(now, slot, (source, destination), None);
        if is_here && probed && taken == Taken::Accepted && is_plain_answer(bytes) {
            self.input(host, Input::Frame { slot, bytes, heard_again: false });
        }
    }
}
