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
    /// Whether it is the next hop of a route.
    pub gateway: bool,
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
    /// The one of its addresses that it is best asked for.
    asked_for: AskedFor,
}

/// An address to ask a plain host for; the least is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AskedFor {
    /// Fewest hosts answer neighbour discovery only...
    is_ipv6: bool,
    /// ...and many have several addresses then, some for a while only. The link-local one stays;
    is_routed: bool,
    /// of the others, one that something was sent to lately is still there.
    idle: bool,
    ip: IpAddr,
}

impl AskedFor {
    fn new(neighbour: &Neighbour) -> AskedFor {
        //= docs/arp-plus.md#12.7
        let is_routed = matches!(neighbour.ip, IpAddr::V6(ip) if !ip.is_unicast_link_local());
        AskedFor { is_ipv6: neighbour.ip.is_ipv6(), is_routed, idle: !neighbour.active, ip: neighbour.ip }
    }
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
        let asked_for = AskedFor::new(neighbour);
        let host = hosts.entry(mac).or_insert_with(|| PlainHost {
            mac,
            ips: Vec::new(),
            active: false,
            heard_slot,
            asked_for,
        });
        host.asked_for = host.asked_for.min(asked_for);
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
            let report = PlainReport { mac: host.mac, ip: host.asked_for.ip };
            let was = before.iter().any(|report| report.mac == host.mac);
            (host.active || was).then_some((!host.active, !was, report))
        })
        .collect();
    candidates.sort_unstable_by_key(|(idle, new, report)| (*idle, *new, report.mac));
    candidates.truncate(PLAIN_PROBED_MAX);
    candidates.into_iter().map(|(.., report)| report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arp_plus;
    use linkbraid_wire::HostId;

    fn mac(n: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, n])
    }

    fn host(n: u8, active: bool) -> PlainHost {
        let neighbour = Neighbour { ip: IpAddr::from([198, 18, 0, n]), mac: mac(n), active, gateway: false };
        PlainHost {
            mac: mac(n),
            ips: vec![neighbour.ip],
            active,
            heard_slot: None,
            asked_for: AskedFor::new(&neighbour),
        }
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

    //= docs/arp-plus.md#12.7 type=test
    #[test]
    fn a_host_is_asked_for_ipv4_then_for_the_address_that_stays_longest() {
        let addresses = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "fe80::3", "198.18.0.3"];
        let [idle, routed, other, link_local, ipv4] = addresses.map(|ip| ip.parse::<IpAddr>().unwrap());
        let asked_for = |ips: &[IpAddr]| {
            let neighbour =
                |ip: &IpAddr| Neighbour { ip: *ip, mac: mac(3), active: *ip != idle, gateway: false };
            let neighbours: Vec<Neighbour> = ips.iter().map(neighbour).collect();
            let silent = ArpPlus::new(arp_plus::Config::new(HostId([1; 16]), 1), 1);
            let hosts = plain_hosts(&neighbours, &HashMap::new(), &silent);
            choose(&hosts, &[]).iter().map(|report| report.ip).collect::<Vec<IpAddr>>()
        };
        assert_eq!(asked_for(&[idle, other, link_local, ipv4]), [ipv4]);
        assert_eq!(asked_for(&[idle, other, link_local]), [link_local]);
        assert_eq!(asked_for(&[idle, other, routed]), [routed]);
        assert!(asked_for(&[idle]).is_empty());
    }
}
