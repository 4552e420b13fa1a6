//! Which member each plain host sends to: receive balancing without its help.
//!
//! A host sends to the MAC that it has cached for our address. The kernel names the bond's, so all hosts would send to one
//! member. The data path puts another member's MAC into the kernel's own unicast ARP and neighbour discovery by a table
//! {plain host's MAC: slot}; this machine decides the table ([`Action::Assign`]) and corrects what hosts have cached
//! ([`Action::Send`]). In: [`Input`], each with the time. It never reads a clock, opens a socket or logs.
//!
//! The contract is that of [`crate::inspector`]: after every [`Answers::handle`] poll all actions, then the timeout.
//!
//! Bonding's balance-alb does the same for IPv4. What goes wrong there, and why it does not here:
//! - *every broadcast ARP request collapses the balance to one member*, since all hosts that know us take the bond's MAC from
//!   it. Here [`Input::Broadcast`] corrects those that have heard otherwise, twice, each time later than the second in which
//!   Linux ignores a further change; alb sends at once, into that second.
//! - *corrections get lost while the switch does not forward yet* (how long that takes must be guessed). Here a member is usable once
//!   the inspector has proven it, and each correction is repeated.
//! - *it breaks under bridges and guests*: alb rewrites whatever ARP passes. Here only the bond's own addresses are advertised,
//!   and the data path rewrites the kernel's own frames.
//! - *it floods the LAN*: hosts go on sending to the MAC of a member that is idle or gone, which switches have forgotten. Here
//!   each member sends once a second (ARP+), hosts of a member that goes are corrected at once, and no NIC takes over
//!   another one's MAC.
//! - *only carrier is watched*, no ARP monitor. Here `usable` is what probes say.
//! - *IPv4 only*. Here IPv6 too, with the router flag, without which a correction would cost a router its hosts.
//! - *hosts are dealt out again in turn*, all of them, when a member comes or goes. Here as few move as balance needs.
//! - *the kernel's neighbour entries are the table*. Here the table is the data path's own, so it outlives them and the daemon.

use crate::{Time, limits};
use linkbraid_wire::MacAddr;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

mod balance;
mod correct;
mod counter;

#[cfg(test)]
mod tests;

pub use counter::{Counter, Counters};

/// An own member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its number.
    pub slot: u8,
    /// Its own MAC.
    pub mac: MacAddr,
    /// Whether hosts may send to it: up, and nothing speaks against it.
    pub usable: bool,
    /// Its share in Mbit/s; 0 counts as 1.
    pub weight_mbit: u32,
    /// The number of its segment ([`crate::arp_plus::Segment::number`]).
    pub segment: u32,
}

/// A plain host as the kernel's neighbour table and the data path know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlainHost {
    /// Its MAC.
    pub mac: MacAddr,
    /// Its IP addresses.
    pub ips: Vec<IpAddr>,
    /// The member it was last heard on; none if that is not known.
    pub heard_slot: Option<u8>,
}

/// What this host is to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The bond's MAC: what the kernel names.
    pub mac: MacAddr,
    /// The bond's addresses with prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Whether the kernel forwards IPv6 for others on the bond.
    pub router: bool,
}

/// An input of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The own members now, all of them.
    Members(Vec<Member>),
    /// The bond's MAC and addresses now.
    Own(Own),
    /// The plain hosts now, all of them; no peers.
    Hosts(Vec<PlainHost>),
    /// A broadcast ARP request or a multicast neighbour discovery frame of the kernel went out, with the bond's MAC.
    Broadcast,
    /// The time that `poll_timeout` named has come. Too early or once too often does no harm.
    Timeout,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    /// The plain host.
    pub host: MacAddr,
    /// The member that it is to send to; none: the row goes, the kernel's frames to it stay as they are.
    pub slot: Option<u8>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Change these rows of the table. Comes before frames that say the same.
    Assign(Vec<Assignment>),
    /// Send these bytes, a whole Ethernet frame, out of that member as they are.
    Send {
        /// The member.
        slot: u8,
        /// The frame.
        frame: Vec<u8>,
    },
}

/// What is kept of a host.
#[derive(Debug)]
struct Host {
    ips: Vec<IpAddr>,
    heard_slot: Option<u8>,
    /// Members of the segment that it was last heard on; empty if it was not heard on any.
    reach: BTreeSet<u8>,
    slot: Option<u8>,
    /// The MAC that it has cached, once all corrections that wait have left; none if that is not known.
    named: Option<MacAddr>,
    /// Corrections that are still to leave, and the place of the next one in the queue.
    left: u8,
    place: Option<(Time, u64)>,
}

/// The answers of one bond.
#[derive(Debug)]
pub struct Answers {
    members: Vec<Member>,
    own: Own,
    hosts: BTreeMap<MacAddr, Host>,
    /// Who is corrected when: by time, then in the order of arrival.
    queue: BTreeMap<(Time, u64), MacAddr>,
    ticket: u64,
    bucket: correct::Bucket,
    /// The rate limit puts off what is due until then.
    blocked: Option<Time>,
    assigned: BTreeMap<MacAddr, Option<u8>>,
    actions: VecDeque<Action>,
    counters: Counters,
}

impl Default for Answers {
    fn default() -> Self {
        Answers {
            members: Vec::new(),
            own: Own { mac: MacAddr::ZERO, addresses: Vec::new(), router: false },
            hosts: BTreeMap::new(),
            queue: BTreeMap::new(),
            ticket: 0,
            bucket: correct::Bucket::default(),
            blocked: None,
            assigned: BTreeMap::new(),
            actions: VecDeque::new(),
            counters: Counters::default(),
        }
    }
}

impl Answers {
    /// Takes one input. Poll actions and timeout afterwards.
    pub fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Members(members) => self.set_members(members),
            Input::Own(own) => self.set_own(now, own),
            Input::Hosts(hosts) => self.set_hosts(now, hosts),
            Input::Broadcast => self.broadcast(now),
            Input::Timeout => {}
        }
        self.correct_due(now);
    }

    /// When to hand in [`Input::Timeout`]; none while nothing is to be corrected. Changes with every `handle`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let ((due, _), _) = self.queue.first_key_value()?;
        Some(self.blocked.map_or(*due, |until| until.max(*due)))
    }

    /// What to do next; call it after every `handle` until it gives none.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        if !self.assigned.is_empty() {
            let rows = std::mem::take(&mut self.assigned).into_iter();
            return Some(Action::Assign(rows.map(|(host, slot)| Assignment { host, slot }).collect()));
        }
        self.actions.pop_front()
    }

    /// The table: every plain host that is given a member, by MAC.
    pub fn table(&self) -> impl Iterator<Item = (MacAddr, u8)> + '_ {
        self.hosts.iter().filter_map(|(mac, host)| Some((*mac, host.slot?)))
    }

    /// All counters.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn set_members(&mut self, mut members: Vec<Member>) {
        if members.len() > limits::MEMBERS_MAX {
            self.counters.add(Counter::LimitMembers, (members.len() - limits::MEMBERS_MAX) as u64);
            members.truncate(limits::MEMBERS_MAX);
        }
        if members != self.members {
            self.members = members;
            self.assign(true);
        }
    }

    fn set_own(&mut self, now: Time, mut own: Own) {
        if own.addresses.len() > limits::ADDRESSES_MAX {
            self.counters.add(Counter::LimitAddresses, (own.addresses.len() - limits::ADDRESSES_MAX) as u64);
            own.addresses.truncate(limits::ADDRESSES_MAX);
        }
        if own != self.own {
            self.own = own;
            // The kernel advertises to everyone of an address or MAC that is new, in the bond's name.
            self.broadcast(now);
        }
    }

    fn set_hosts(&mut self, now: Time, reported: Vec<PlainHost>) {
        let mut hosts: BTreeMap<MacAddr, PlainHost> = BTreeMap::new();
        let own = |mac: MacAddr| mac == self.own.mac || self.members.iter().any(|member| member.mac == mac);
        for mut host in reported.into_iter().filter(|host| host.mac.is_host() && !own(host.mac)) {
            host.ips.truncate(limits::ANSWER_HOST_IPS_MAX);
            hosts.entry(host.mac).or_insert(host);
        }
        let gone = self.hosts.keys().copied().filter(|mac| !hosts.contains_key(mac));
        gone.collect::<Vec<MacAddr>>().into_iter().for_each(|mac| self.forget(mac));
        for (mac, reported) in hosts {
            if let Some(host) = self.hosts.get_mut(&mac) {
                let knows_more = reported.ips.iter().any(|ip| !host.ips.contains(ip));
                (host.ips, host.heard_slot) = (reported.ips, reported.heard_slot);
                if knows_more {
                    self.renamed(now, mac);
                }
            } else if self.hosts.len() >= limits::ANSWER_HOSTS_MAX {
                self.counters.one(Counter::LimitHosts);
            } else {
                let PlainHost { ips, heard_slot, .. } = reported;
                let (reach, named) = (BTreeSet::new(), Some(self.own.mac));
                let host = Host { ips, heard_slot, reach, slot: None, named, left: 0, place: None };
                self.hosts.insert(mac, host);
            }
        }
        self.assign(false);
    }

    fn forget(&mut self, mac: MacAddr) {
        let Some(host) = self.hosts.remove(&mac) else { return };
        if let Some(place) = host.place {
            self.queue.remove(&place);
        }
        if host.slot.is_some() {
            self.assigned.insert(mac, None);
        }
    }
}
