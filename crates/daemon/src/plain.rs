//! Plain hosts: who they are, and which of them are probed.
//!
//! The kernel's neighbour table says who they are: every host that the bond has spoken to lately and that is no peer.

use crate::{
    bond::Bond,
    clock::Clock,
    error::About as _,
    tables::{REST, plain_lanes},
};
use linkbraid_api::Error;
use linkbraid_dataplane::plain_plan;
use linkbraid_link::{Neighbour, NeighbourReader, NeighbourState};
use linkbraid_proto::{
    Time,
    arp_plus::{ArpPlus, PeerKey},
    inspector::{self, LaneId, LaneUse, PlainReport},
    limits::PLAIN_PROBED_MAX,
    plan::Lane,
};
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

/// One plain host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlainHost {
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
pub(crate) struct PlainHosts {
    /// By MAC.
    pub hosts: Vec<PlainHost>,
    probed: Vec<PlainReport>,
    stale: bool,
    /// The table was asked for last at that time...
    asked_at: Time,
    /// ...and has not come yet.
    awaited: bool,
}

impl PlainHosts {
    /// The neighbour table has changed.
    pub(crate) fn touch(&mut self) {
        self.stale = true;
    }

    /// Asks for the table of the bond's interface if that is due.
    pub(crate) fn ask(&mut self, now: Time, ifindex: u32, reader: &NeighbourReader) {
        let due = now.since(self.asked_at) >= if self.stale { SETTLE } else { REFRESH };
        if due && !self.awaited && reader.ask(ifindex) {
            (self.stale, self.asked_at, self.awaited) = (false, now, true);
        }
    }

    /// Those that are probed.
    pub(crate) fn probed(&self) -> &[PlainReport] {
        &self.probed
    }

    pub(crate) fn find(&self, mac: MacAddr) -> Option<&PlainHost> {
        self.hosts.binary_search_by_key(&mac, |host| host.mac).ok().map(|at| &self.hosts[at])
    }
}

impl Bond {
    /// Takes the neighbour table that was asked for: who the plain hosts are. Chooses whom to probe.
    pub(crate) fn take_neighbours(
        &mut self,
        neighbours: linkbraid_link::Result<Vec<Neighbour>>,
        clock: Clock,
    ) -> Result<(), Error> {
        let name = &self.saved.name;
        self.plain.awaited = false;
        let neighbours = neighbours.about(name, "cannot read its neighbours")?;
        let heard: HashMap<[u8; 6], u8> = match self.arp_plus.segments().len() {
            0 | 1 => HashMap::new(),
            _ => self.path.plain_hosts().about(name, "cannot read the plain hosts")?.into_iter().collect(),
        };
        self.plain.hosts = plain_hosts(&neighbours, &heard, &self.arp_plus);
        let probed = match self.saved.settings.inspector.probes {
            true => choose(&self.plain.hosts, &self.plain.probed),
            false => Vec::new(),
        };
        if probed != self.plain.probed {
            self.plain.probed.clone_from(&probed);
            self.inspector.handle(clock.now(), inspector::Input::Plain(probed));
            self.tell_plan(clock);
        }
        // The bond's addresses may be others, too.
        self.tell_answers(clock);
        self.tell_plain_hosts(clock);
        self.write_answers()
    }

    /// The plan that frames to a plain host follow: its number and lanes.
    pub(crate) fn plan_of_plain(&self, host: Option<&PlainHost>) -> (u32, Vec<Lane>) {
        let segments = self.arp_plus.segments();
        let slot = host.and_then(|host| host.heard_slot).filter(|_| segments.len() > 1);
        let segment = slot.and_then(|slot| segments.iter().find(|segment| segment.slots.contains(&slot)));
        match segment.and_then(|segment| segment.elected.map(|elected| (segment, elected))) {
            Some((segment, elected)) => (plain_plan(elected), self.plain_lanes(Some(&segment.slots))),
            None => (0, self.plain_lanes(None)),
        }
    }

    fn plain_lanes(&self, slots: Option<&[u8]>) -> Vec<Lane> {
        plain_lanes(&self.own_side(), &self.members, slots, REST).lanes
    }

    /// The lanes that plain hosts' plans use, for those that are probed.
    pub(crate) fn plain_lanes_in_use(&self) -> Vec<LaneUse> {
        let mut lanes = Vec::new();
        for report in self.plain.probed() {
            let (base, plan) = self.plan_of_plain(self.plain.find(report.mac));
            let mut used: BTreeMap<u8, bool> = BTreeMap::new();
            let mut add = |number: u32, slots: &mut dyn Iterator<Item = u8>| {
                let busy = self.activity.busy(number);
                for (i, slot) in slots.enumerate() {
                    *used.entry(slot).or_default() |= busy & 1 << i != 0;
                }
            };
            add(base, &mut plan.iter().map(|lane| lane.slot));
            for (_, number, lanes) in self.tables.class_plans_of(base) {
                add(number, &mut lanes.iter().map(|(slot, _)| *slot));
            }
            lanes.extend(used.into_iter().map(|(slot, busy)| LaneUse {
                lane: LaneId { peer: PeerKey::Plain(report.mac), slot, index: 0 },
                busy,
            }));
        }
        lanes
    }
}

/// The neighbours that are no peers, by MAC.
fn plain_hosts(neighbours: &[Neighbour], heard: &HashMap<[u8; 6], u8>, arp_plus: &ArpPlus) -> Vec<PlainHost> {
    let mut hosts: BTreeMap<MacAddr, PlainHost> = BTreeMap::new();
    for neighbour in neighbours {
        let mac = neighbour.mac;
        if !mac.is_host() || arp_plus.peer_by_mac(mac).is_some() {
            continue;
        }
        let host = hosts.entry(mac).or_insert_with(|| PlainHost {
            mac,
            ips: Vec::new(),
            active: false,
            heard_slot: heard.get(&mac.0).copied(),
        });
        host.ips.push(neighbour.ip);
        host.active |= matches!(
            neighbour.state,
            NeighbourState::Reachable | NeighbourState::Delay | NeighbourState::Probe
        );
    }
    hosts
        .into_values()
        .map(|mut host| {
            host.ips.sort_unstable();
            host
        })
        .collect()
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
