//! Plain hosts: who they are, and which of them are probed.
//!
//! The kernel's neighbour table says who they are: every host that the bond has spoken to lately and that is no peer.

use crate::{Time, arp_plus::ArpPlus, inspector::PlainReport, limits::PLAIN_PROBED_MAX};
use linkbraid_wire::MacAddr;
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    time::Duration,
};

/// The table is read this long after a change at the latest...
const SETTLE: Duration = Duration::from_millis(100);
/// ...and this often in any case.
const REFRESH: Duration = Duration::from_secs(5);

/// One entry of the kernel's neighbour table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Its IP address.
    pub ip: IpAddr,
    /// Its hardware address.
    pub mac: MacAddr,
    /// Whether something was sent to it lately.
    pub active: bool,
}

/// One plain host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainHost {
    /// Its MAC.
    pub mac: MacAddr,
    /// Its addresses, ascending.
    pub ips: Vec<IpAddr>,
    /// Something was sent to it lately.
    pub active: bool,
    /// A slot of the segment it was heard on, where that matters.
    pub heard_slot: Option<u8>,
}

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct PlainHosts {
    /// By MAC.
    hosts: Vec<PlainHost>,
    probed: Vec<PlainReport>,
    /// The neighbour table has changed.
    pub stale: bool,
    /// The table was asked for last at that time...
    asked_at: Time,
    /// ...and has not come yet.
    awaited: bool,
}

impl PlainHosts {
    /// When the neighbour table is to be asked for next.
    pub fn next_ask(&self) -> Option<Time> {
        (!self.awaited).then(|| self.asked_at + if self.stale { SETTLE } else { REFRESH })
    }

    /// Whether the table is to be asked for now, which it is then.
    pub fn ask(&mut self, now: Time) -> bool {
        let due = self.next_ask().is_some_and(|at| at <= now);
        if due {
            (self.stale, self.asked_at, self.awaited) = (false, now, true);
        }
        due
    }

    /// The table could not be read.
    pub fn not_read(&mut self) {
        self.awaited = false;
    }

    /// Takes the neighbour table that was asked for, and the slots that plain hosts were heard on; whether other hosts are
    /// to be probed.
    pub fn take(
        &mut self,
        neighbours: &[Neighbour],
        heard: &[(MacAddr, u8)],
        arp_plus: &ArpPlus,
        probes: bool,
    ) -> bool {
        self.awaited = false;
        let heard: HashMap<MacAddr, u8> = heard.iter().copied().collect();
        self.hosts = plain_hosts(neighbours, &heard, arp_plus);
        let probed = if probes { choose(&self.hosts, &self.probed) } else { Vec::new() };
        let differ = probed != self.probed;
        self.probed = probed;
        differ
    }

    /// All of them, by MAC.
    pub fn hosts(&self) -> &[PlainHost] {
        &self.hosts
    }

    /// Those that are probed.
    pub fn probed(&self) -> &[PlainReport] {
        &self.probed
    }

    pub fn find(&self, mac: MacAddr) -> Option<&PlainHost> {
        self.hosts.binary_search_by_key(&mac, |host| host.mac).ok().map(|at| &self.hosts[at])
    }
}

/// The neighbours that are no peers, by MAC.
fn plain_hosts(neighbours: &[Neighbour], heard: &HashMap<MacAddr, u8>, arp_plus: &ArpPlus) -> Vec<PlainHost> {
    let mut hosts: BTreeMap<MacAddr, PlainHost> = BTreeMap::new();
    for neighbour in neighbours {
        let mac = neighbour.mac;
        if !mac.is_host() || arp_plus.peer_by_mac(mac).is_some() {
            continue;
        }
        let heard_slot = heard.get(&mac).copied();
        let host =
            hosts.entry(mac).or_insert_with(|| PlainHost { mac, ips: Vec::new(), active: false, heard_slot });
        host.ips.push(neighbour.ip);
        host.active |= neighbour.active;
    }
    hosts.values_mut().for_each(|host| host.ips.sort_unstable());
    hosts.into_values().collect()
}

/// Whom to probe: those that were, while they are there, and others that something is sent to; of these first.
fn choose(hosts: &[PlainHost], before: &[PlainReport]) -> Vec<PlainReport> {
    let mut candidates: Vec<(bool, bool, PlainReport)> = hosts
        .iter()
        .filter_map(|host| {
            let ip = host.ips.iter().find_map(|ip| match ip {
                IpAddr::V4(ip) => Some(*ip),
                IpAddr::V6(_) => None,
            })?;
            let was = before.iter().any(|report| report.mac == host.mac);
            (host.active || was).then_some((!host.active, !was, PlainReport { mac: host.mac, ip }))
        })
        .collect();
    candidates.sort_unstable_by_key(|(idle, new, report)| (*idle, *new, report.mac));
    candidates.truncate(PLAIN_PROBED_MAX);
    candidates.into_iter().map(|(.., report)| report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u8, active: bool) -> PlainHost {
        let ips = vec![IpAddr::from([198, 18, 0, n]), "2001:db8::1".parse().unwrap()];
        PlainHost { mac: MacAddr([2, 0, 0, 0, 0, n]), ips, active, heard_slot: None }
    }

    #[test]
    fn active_hosts_are_probed_first_and_idle_ones_are_kept() {
        let all: Vec<PlainHost> = (1..=9).map(|n| host(n, n > 2)).collect();
        let first = choose(&all[..3], &[]);
        assert_eq!(first.len(), 1);
        let idle: Vec<PlainHost> = (1..=3).map(|n| host(n, false)).collect();
        assert_eq!(choose(&idle, &first), first);
        let many = choose(&all, &first);
        assert_eq!(many.len(), PLAIN_PROBED_MAX);
        assert!(many.contains(&first[0]));
        assert!(choose(&[], &many).is_empty());
    }

    #[test]
    fn hosts_without_ipv4_are_not_probed() {
        let mut only_v6 = host(1, true);
        only_v6.ips.remove(0);
        assert!(choose(&[only_v6], &[]).is_empty());
    }
}
