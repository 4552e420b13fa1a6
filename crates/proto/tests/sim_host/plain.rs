//! Plain hosts: one NIC each, no daemon. They answer ARP as RFC 826 says, and believe what they are told.

use super::{Frame, World, address, mac};
use crate::path::Taken;
use linkbraid_proto::host::{Input, Neighbour};
use linkbraid_wire::{MacAddr, is_arp, is_arp_reply_to_probe};
use std::{collections::BTreeMap, net::IpAddr};

#[derive(Debug)]
pub(super) struct PlainNeighbour {
    lives: bool,
    /// The MAC that it was told for each bond.
    cached: BTreeMap<usize, MacAddr>,
}

fn field(bytes: &[u8], at: usize) -> MacAddr {
    MacAddr(bytes[at..at + 6].try_into().expect("six bytes"))
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
        let neighbour = |host| Neighbour { ip: IpAddr::V4(address(host)), mac: mac(host, 0), active: true };
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
            Frame::Daemon(bytes) if is_arp(&bytes) && field(&bytes, 0) == own => {
                self.take_arp(host, &bytes);
            }
            Frame::Data { .. } | Frame::Daemon(_) => {}
        }
    }

    /// A probe is answered, a reply believed.
    fn take_arp(&mut self, host: usize, bytes: &[u8]) {
        let (own, sender, ip) = (mac(host, 0), field(bytes, 22), &bytes[28..32]);
        match &bytes[20..22] {
            [0, 1] if bytes[38..42] == address(host).octets() => {
                let head = [&sender.0[..], &own.0, &bytes[12..20], &[0, 2]].concat();
                let body = [&own.0[..], &bytes[38..42], &sender.0, ip, &[0; 18]].concat();
                self.carry((host, 0), Frame::Daemon([head, body].concat().into()));
            }
            [0, 2] => {
                let bond = (0..self.machines.len()).find(|bond| address(*bond).octets() == *ip);
                self.plain_mut(host).cached.extend(bond.map(|bond| (bond, sender)));
            }
            _ => {}
        }
    }

    /// ARP at a bond: the data path hands replies to probes to the daemon (`copy_probe_reply()`), the kernel the rest.
    pub(super) fn deliver_arp(&mut self, host: usize, slot: u8, bytes: &[u8]) {
        let (destination, source) = (field(bytes, 0), field(bytes, 6));
        let path = &mut self.machines[host].path;
        let is_here = path.rows.members.get(&slot).is_some_and(|member| member.mac == destination);
        let probed = path.rows.answers.get(&source).is_some_and(|answer| answer.probed);
        let taken = path.take(slot, source, destination);
        if is_here && probed && taken == Taken::Accepted && is_arp_reply_to_probe(bytes) {
            self.input(host, Input::Frame { slot, bytes });
        }
    }
}
