//! What the machines report to each other: the inspector which peers there are and which lanes are in use, and the machine
//! that answers plain hosts who they are.

use super::{
    Action, DEFAULT_CLASS, Host, LaneCount, OwnSide, PLAIN_PLAN, activity::Activity, answering,
    corrections::Corrections, lanes::WEIGHT_MBIT_UNKNOWN, plain_plan, rates::End, tables::LaneAt,
};
use crate::{
    answers,
    arp_plus::{self, PeerKey, PeerMember},
    inspector::{self, LaneId, LaneUse, PeerReport, Usage},
};
use linkbraid_wire::MacAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Lanes in use, by where they are. Classes may share lanes: what counts is the plan that uses one most.
#[derive(Default)]
struct Used(BTreeMap<LaneAt, Usage>);

impl Used {
    /// The lanes of a plan, in its order, used at least like that.
    fn add(&mut self, activity: &Activity, number: u32, least: Usage, lanes: impl Iterator<Item = LaneAt>) {
        for (place, at) in lanes.enumerate() {
            let usage = self.0.entry(at).or_insert(least);
            *usage = activity.usage(number, place).max(least).max(*usage);
        }
    }
}

impl Host {
    /// Takes counters of lanes: says to the inspector where other lanes carry data than before, and spreads by what they deliver.
    pub(super) fn take_lane_counts(&mut self, plans: &[(u32, Vec<LaneCount>)]) {
        let mut changed = Vec::new();
        for (number, counts) in plans {
            let bytes: Vec<u64> = counts.iter().map(|count| count.bytes).collect();
            if self.activity.take(self.now, *number, &bytes) {
                changed.push(*number);
            }
            if self.tables.peer_of(*number).is_none() && self.activity.carried(self.now, *number) {
                self.stall.sent(self.now);
            }
        }
        self.measure(plans);
        let plain = || self.plain.probed().iter().map(|report| PeerKey::Plain(report.mac));
        let peers = changed.into_iter().flat_map(|number| match self.tables.peer_of(number) {
            Some(peer) => vec![peer],
            None => plain().collect(),
        });
        peers.collect::<BTreeSet<_>>().into_iter().for_each(|peer| self.report_plan_of(peer));
    }

    /// Measures lanes by what they counted.
    fn measure(&mut self, plans: &[(u32, Vec<LaneCount>)]) {
        let image = self.tables.image();
        self.rates.retain(|number| image.plans.contains_key(&number));
        let fixed = |slot| self.members.iter().any(|member| member.slot == slot && member.weight_fixed);
        let mut changed = Vec::new();
        for (number, counts) in plans {
            let Some(plan) = image.plans.get(number) else { continue };
            if self.rates.take(self.now, *number, &plan.lanes, fixed, counts) {
                changed.push(*number);
            }
        }
        changed.into_iter().for_each(|number| self.tables.set_rates(number, &self.rates));
        let tables = &self.tables;
        self.learned.retain(|peer| tables.plan_of(peer).is_some());
        plans.iter().for_each(|(number, _)| self.correct(*number));
        self.written_or_not();
        let members = &self.members;
        let told = |slot| {
            let own = members.iter().find(|member| member.slot == slot && !member.weight_fixed);
            own.map_or(0, |member| member.weight_mbit)
        };
        if self.rates.follow_stripe(self.now, self.settings.damping, told) {
            self.actions.push_back(Action::Stripe);
        }
    }

    /// Corrects weights of members that told far more than they carry, where a round of the plan to a peer shows that.
    fn correct(&mut self, number: u32) {
        let Some(round) = self.rates.take_round(number) else { return };
        let key = self.tables.peer_of(number).filter(|key| self.tables.plan_of(key) == Some(number));
        let Some(peer) = key.and_then(|key| self.arp_plus.peer(&key)) else { return };
        let own = self.members.iter().map(|member| (End::Own(member.slot), member.weight_mbit));
        let weight = |member: &PeerMember| member.weight_mbit.unwrap_or(WEIGHT_MBIT_UNKNOWN);
        let theirs = peer.members.iter().map(|member| (End::Peer(member.mac), weight(member)));
        let told: BTreeMap<End, u32> = own.chain(theirs).collect();
        let lanes = |corrections: &Corrections| {
            let own = OwnSide::new(&self.members, &self.settings).corrected(corrections);
            own.peer_lanes(peer, &self.inspector, DEFAULT_CLASS).lanes
        };
        let members = &self.members;
        let fixed = |end| members.iter().any(|member| member.weight_fixed && end == End::Own(member.slot));
        if self.learned.take(peer.key, &round, &told, fixed, lanes) {
            self.differ.peers.insert(peer.key);
        }
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

    /// Says to ARP+ which MACs plain hosts have.
    pub(super) fn report_taken(&mut self) {
        let taken = self.plain.taken(&self.inspector);
        self.arp_plus.handle(self.now, arp_plus::Input::Taken(taken));
    }

    /// Says to the inspector who the peers are.
    pub(super) fn report_peers(&mut self) {
        let reports = match self.settings.probes {
            true => self.arp_plus.peers().map(PeerReport::from).collect(),
            false => Vec::new(),
        };
        self.inspector.handle(self.now, inspector::Input::Peers(reports));
    }

    /// Says to the inspector which lanes the plans have now, and how they use them.
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
        let mut used = Used::default();
        used.add(&self.activity, number, Usage::Idle, lanes.iter().copied());
        for (_, number, lanes) in self.tables.class_plans_of(number) {
            // What a class is for cannot wait until a failure is found.
            used.add(&self.activity, number, Usage::Light, lanes.iter().copied());
        }
        let lane = |((slot, index), usage): (LaneAt, Usage)| {
            Some(LaneUse { lane: LaneId { peer, slot, index: index? }, usage })
        };
        used.0.into_iter().filter_map(lane).collect()
    }

    /// The lanes that plain hosts' plans use, for those that are probed.
    fn plain_lanes_in_use(&self) -> Vec<LaneUse> {
        let mut lanes = Vec::new();
        for report in self.plain.probed() {
            let base = self.plan_of_plain(report.mac);
            let plan = self.tables.image().plans.get(&base);
            let mut used = Used::default();
            let slots = plan.into_iter().flat_map(|plan| &plan.lanes).map(|lane| (lane.slot, None));
            used.add(&self.activity, base, Usage::Idle, slots);
            for (_, number, lanes) in self.tables.class_plans_of(base) {
                used.add(&self.activity, number, Usage::Light, lanes.iter().copied());
            }
            lanes.extend(used.0.into_iter().map(|((slot, _), usage)| LaneUse {
                lane: LaneId { peer: PeerKey::Plain(report.mac), slot, index: 0 },
                usage,
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
