//! What the machines report to each other: the inspector which peers there are and which lanes are in use, and the machine
//! that answers plain hosts who they are.

use super::{Host, PLAIN_PLAN, answering, plain_plan, tables::LaneAt};
use crate::{
    answers,
    arp_plus::PeerKey,
    inspector::{self, LaneId, LaneUse, PeerReport},
};
use linkbraid_wire::MacAddr;
use std::collections::{BTreeMap, BTreeSet};

impl Host {
    /// Takes counters of lanes, and says to the inspector where other lanes carry data than before.
    pub(super) fn take_lane_bytes(&mut self, plans: Vec<(u32, Vec<u64>)>) {
        let changed = plans.into_iter().filter(|(number, bytes)| self.activity.take(*number, bytes));
        let changed: Vec<u32> = changed.map(|(number, _)| number).collect();
        let plain = || self.plain.probed().iter().map(|report| PeerKey::Plain(report.mac));
        let peers = changed.into_iter().flat_map(|number| match self.tables.peer_of(number) {
            Some(peer) => vec![peer],
            None => plain().collect(),
        });
        peers.collect::<BTreeSet<_>>().into_iter().for_each(|peer| self.report_plan_of(peer));
    }

    /// Says to the inspector what these peers are now.
    pub(super) fn report_changed(&mut self, peers: &[PeerKey]) {
        for key in peers {
            let peer = self.arp_plus.peer(key);
            // Who is a peer is no plain host.
            self.plain.stale |= peer.is_some() != self.tables.plan_of(key).is_some();
            let report = peer.filter(|_| self.settings.probes).map(PeerReport::from);
            self.inspector.handle(self.now, inspector::Input::Peer(*key, report));
        }
    }

    /// Says to the inspector who the peers are.
    pub(super) fn report_peers(&mut self) {
        let reports = match self.settings.probes {
            true => self.arp_plus.peers().map(PeerReport::from).collect(),
            false => Vec::new(),
        };
        self.inspector.handle(self.now, inspector::Input::Peers(reports));
    }

    /// Says to the inspector which lanes the plans have now, and which of them carry data.
    pub(super) fn report_plans(&mut self) {
        let peers = self.arp_plus.peers().flat_map(|peer| self.lanes_in_use(peer.key));
        let lanes = peers.chain(self.plain_lanes_in_use()).collect();
        self.inspector.handle(self.now, inspector::Input::Plan(lanes));
    }

    /// The same of one peer or plain host.
    pub(super) fn report_plan_of(&mut self, peer: PeerKey) {
        let lanes = match peer {
            PeerKey::Plain(_) => {
                self.plain_lanes_in_use().into_iter().filter(|used| used.lane.peer == peer).collect()
            }
            PeerKey::Host(_) | PeerKey::Address(_) => self.lanes_in_use(peer),
        };
        self.inspector.handle(self.now, inspector::Input::PlanOf(peer, lanes));
    }

    /// Says which members plain hosts may send to.
    pub(super) fn report_answering_members(&mut self) {
        let members = answering::members_to_answer_with(&self.members, self.arp_plus.segments());
        self.answers.handle(self.now, answers::Input::Members(members));
    }

    /// Says who the plain hosts are.
    pub(super) fn report_plain_hosts(&mut self) {
        let members = answering::members_to_answer_with(&self.members, self.arp_plus.segments());
        let hosts = self.plain.hosts().iter().map(|host| answers::PlainHost {
            mac: host.mac,
            ips: host.ips.clone(),
            heard_slot: host.heard_slot.map(|slot| answering::in_place_of(slot, &members)),
        });
        let hosts = hosts.collect();
        self.answers.handle(self.now, answers::Input::Hosts(hosts));
    }

    /// The lanes of a peer's plans.
    fn lanes_in_use(&self, peer: PeerKey) -> Vec<LaneUse> {
        let Some((number, lanes)) = self.tables.lanes_of(&peer) else { return Vec::new() };
        // Classes may share lanes: one is busy if it is in any plan.
        let mut used: BTreeMap<LaneAt, bool> = BTreeMap::new();
        let classes = self.tables.class_plans_of(number).map(|(_, number, lanes)| (number, lanes));
        for (number, lanes) in std::iter::once((number, lanes)).chain(classes) {
            let busy = self.activity.busy(number);
            for (i, at) in lanes.iter().enumerate() {
                *used.entry(*at).or_default() |= busy & 1 << i != 0;
            }
        }
        let lane = |((slot, index), busy): (LaneAt, bool)| {
            Some(LaneUse { lane: LaneId { peer, slot, index: index? }, busy })
        };
        used.into_iter().filter_map(lane).collect()
    }

    /// The lanes that plain hosts' plans use, for those that are probed.
    fn plain_lanes_in_use(&self) -> Vec<LaneUse> {
        let mut lanes = Vec::new();
        for report in self.plain.probed() {
            let base = self.plan_of_plain(report.mac);
            let plan = self.tables.image().plans.get(&base);
            let mut used: BTreeMap<u8, bool> = BTreeMap::new();
            let mut add = |number: u32, slots: &mut dyn Iterator<Item = u8>| {
                let busy = self.activity.busy(number);
                for (i, slot) in slots.enumerate() {
                    *used.entry(slot).or_default() |= busy & 1 << i != 0;
                }
            };
            add(base, &mut plan.into_iter().flat_map(|plan| &plan.lanes).map(|lane| lane.slot));
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

    /// The number of the plan that frames to a plain host follow.
    pub(super) fn plan_of_plain(&self, mac: MacAddr) -> u32 {
        let segments = self.arp_plus.segments();
        let slot = self.plain.find(mac).and_then(|host| host.heard_slot).filter(|_| segments.len() > 1);
        let segment = slot.and_then(|slot| segments.iter().find(|segment| segment.slots.contains(&slot)));
        segment.and_then(|segment| segment.elected).map_or(PLAIN_PLAN, plain_plan)
    }
}
