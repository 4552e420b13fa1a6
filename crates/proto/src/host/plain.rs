//! Plain hosts: who they are, and which of them are probed.
//!
//! The kernel's neighbour table says who they are: every host that the bond has spoken to lately and that is no peer.

use crate::{
    Time,
    arp_plus::ArpPlus,
    inspector::{Inspector, PlainReport},
    limits::{PLAIN_CLAIMED_MAX, PLAIN_PROBED_MAX},
};
use linkbraid_wire::MacAddr;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
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
    /// MACs of neighbours, those of peers left out; and of these the ones that a peer says it has, though nothing was heard
    /// from it there.
    macs: BTreeSet<MacAddr>,
    claimed: BTreeSet<MacAddr>,
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
        self.hosts = plain_hosts(neighbours, &heard, |mac| arp_plus.peer_by_mac(mac).is_some());
        let silent = arp_plus.silent_primaries();
        let known = |mac| arp_plus.peer_by_mac(mac).is_some() && !silent.contains(&mac);
        let with_claimed = plain_hosts(neighbours, &heard, known);
        self.macs = with_claimed.iter().map(|host| host.mac).collect();
        self.claimed = self.macs.intersection(&silent).copied().collect();
        let probed = if probes { choose(&with_claimed, &self.probed, &self.claimed) } else { Vec::new() };
        let differ = probed != self.probed;
        self.probed = probed;
        differ
    }

    /// All of them, by MAC.
    pub fn hosts(&self) -> &[PlainHost] {
        &self.hosts
    }

    /// The MACs that no peer has for only saying so: all of neighbours, but for those that a peer claims and nobody answers
    /// from.
    pub fn taken(&self, inspector: &Inspector) -> BTreeSet<MacAddr> {
        //= docs/arp-plus.md#7.8
        let nobody =
            |mac: &MacAddr| self.claimed.contains(mac) && inspector.plain_answers(*mac) == Some(false);
        self.macs.iter().filter(|mac| !nobody(mac)).copied().collect()
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
fn plain_hosts(
    neighbours: &[Neighbour],
    heard: &HashMap<MacAddr, u8>,
    is_peer: impl Fn(MacAddr) -> bool,
) -> Vec<PlainHost> {
    let mut hosts: BTreeMap<MacAddr, PlainHost> = BTreeMap::new();
    for neighbour in neighbours {
        let mac = neighbour.mac;
        if !mac.is_host() || is_peer(mac) {
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

/// Whom to probe: a few whose MAC a peer claims, to find out whether they are there; those that were probed, while they are
/// there, and others that something is sent to; of these first.
fn choose(hosts: &[PlainHost], before: &[PlainReport], claimed: &BTreeSet<MacAddr>) -> Vec<PlainReport> {
    let report = |host: &PlainHost| PlainReport { mac: host.mac, ip: host.asked_for.ip };
    let asked = hosts.iter().filter(|host| claimed.contains(&host.mac)).map(report);
    let mut asked: Vec<PlainReport> = asked.collect();
    asked.sort_unstable_by_key(|asked| !before.iter().any(|before| before.mac == asked.mac));
    asked.truncate(PLAIN_CLAIMED_MAX);
    let mut candidates: Vec<(bool, bool, PlainReport)> = hosts
        .iter()
        .filter_map(|host| {
            let report = report(host);
            let was = before.iter().any(|report| report.mac == host.mac);
            let is_asked = asked.iter().any(|asked| asked.mac == host.mac);
            (!is_asked && (host.active || was)).then_some((!host.active, !was, report))
        })
        .collect();
    candidates.sort_unstable_by_key(|(idle, new, report)| (*idle, *new, report.mac));
    asked.extend(candidates.into_iter().map(|(.., report)| report));
    asked.truncate(PLAIN_PROBED_MAX);
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let none = BTreeSet::new();
        let first = choose(&all[..3], &[], &none);
        assert_eq!(first.len(), 1);
        let idle: Vec<PlainHost> = (1..=3).map(|n| host(n, false)).collect();
        assert_eq!(choose(&idle, &first, &none), first);
        let many = choose(&all, &first, &none);
        assert_eq!(many.len(), PLAIN_PROBED_MAX);
        assert!(many.contains(&first[0]));
        assert!(choose(&[], &many, &none).is_empty());
    }

    #[test]
    fn those_that_are_probed_stay_and_only_hosts_that_are_no_peers_count() {
        let all: Vec<PlainHost> = (1..=9).map(|n| host(n, true)).collect();
        let before = choose(&all[5..], &[], &BTreeSet::new());
        assert_eq!(choose(&all, &before, &BTreeSet::new()), before);
        let idle: Vec<PlainHost> = (1..=9).map(|n| host(n, n > 4)).collect();
        let before = choose(&all[..4], &[], &BTreeSet::new());
        let chosen = choose(&idle, &before, &BTreeSet::new());
        assert_eq!(chosen.iter().map(|report| report.mac).collect::<Vec<_>>(), [5, 6, 7, 8].map(mac));
        let neighbour = |mac| Neighbour { ip: [198, 18, 0, 1].into(), mac, active: true, gateway: false };
        let macs = [mac(1), mac(2), MacAddr::BROADCAST];
        let hosts = plain_hosts(&macs.map(neighbour), &HashMap::new(), |of| of == mac(2));
        assert_eq!(hosts.iter().map(|host| host.mac).collect::<Vec<_>>(), [mac(1)]);
    }

    //= docs/arp-plus.md#7.8 type=test
    #[test]
    fn macs_that_peers_claim_are_asked_first_but_never_instead_of_all_others() {
        let all: Vec<PlainHost> = (1..=9).map(|n| host(n, n < 5)).collect();
        let claimed: BTreeSet<MacAddr> = (6..=9).map(mac).collect();
        let probed: Vec<MacAddr> = choose(&all, &[], &claimed).iter().map(|report| report.mac).collect();
        assert_eq!(probed, [6, 7, 1, 2].map(mac), "idle ones, too");
        let before = choose(&all, &[], &[mac(9)].into());
        assert_eq!(choose(&all, &before, &claimed)[0].mac, mac(9), "whoever is asked stays");
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
            let hosts = plain_hosts(&neighbours, &HashMap::new(), |_| false);
            choose(&hosts, &[], &BTreeSet::new()).iter().map(|report| report.ip).collect::<Vec<IpAddr>>()
        };
        assert_eq!(asked_for(&[idle, other, link_local, ipv4]), [ipv4]);
        assert_eq!(asked_for(&[idle, other, link_local]), [link_local]);
        assert_eq!(asked_for(&[idle, other, routed]), [routed]);
        assert!(asked_for(&[idle]).is_empty());
    }
}
