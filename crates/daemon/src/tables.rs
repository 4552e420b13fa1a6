//! From the protocol's table and the members to the tables that the data path follows, writing what differs.

use crate::bond::Member;
use linkbraid_dataplane::{
    self as dataplane, DataPath, LANES_MAX, MEMBERS_MAX, NO_SLOT, PLAIN_PLAN_FIRST, PeerMac, Plan, Result, plain_plan,
};
use linkbraid_proto::{
    arp_plus::{ArpPlus, Peer, PeerKey, Segment},
    plan::{Lane, PlanMember, PlanPeerMember, plan},
};
use linkbraid_wire::MacAddr;
use std::collections::{BTreeSet, HashMap};

/// What a peer's member is taken for that speaks only the published part, in Mbit/s.
const WEIGHT_MBIT_UNTOLD: u32 = 1000;

/// Whether a lane may be used.
pub(crate) trait Alive {
    fn usable(&self, peer: &Peer, slot: u8, index: u8) -> bool;
}

/// What is ready to carry traffic.
pub(crate) struct Ready<'a, A> {
    pub members: &'a [Member],
    /// The same as plans to peers see them.
    pub own: &'a [PlanMember],
    pub alive: &'a A,
}

/// What the data path has been told.
pub(crate) struct Tables {
    macs: HashMap<[u8; 6], PeerMac>,
    plans: HashMap<PeerKey, u32>,
    /// MACs that an earlier daemon wrote and whose peers have not been heard again.
    inherited: HashMap<[u8; 6], PeerMac>,
    slots: BTreeSet<u8>,
    /// Elected members whose segments have a plan for plain hosts.
    plain: BTreeSet<u8>,
}

impl Tables {
    /// Takes over what an earlier daemon left, so that traffic to known peers goes on as it was.
    pub(crate) fn adopt(path: &DataPath) -> Result<Self> {
        let inherited = path.peer_macs()?;
        let slots = path.member_slots()?.into_iter().collect();
        Ok(Self {
            macs: HashMap::new(),
            plans: HashMap::new(),
            inherited: inherited.into_iter().collect(),
            slots,
            // Written anew, all of them.
            plain: (0..MEMBERS_MAX as u8).collect(),
        })
    }

    /// The plan number of a peer.
    pub(crate) fn plan_of(&self, peer: &PeerKey) -> Option<u32> {
        self.plans.get(peer).copied()
    }

    /// Peers that were inherited have had their time to be heard: forget them.
    pub(crate) fn drop_inherited(&mut self, path: &DataPath) -> Result<()> {
        for mac in std::mem::take(&mut self.inherited).into_keys() {
            if !self.macs.contains_key(&mac) {
                path.delete_peer_mac(mac)?;
            }
        }
        Ok(())
    }

    /// Writes members, bond, plans and peers, in an order in which no row points at one that is not there yet.
    pub(crate) fn write(
        &mut self,
        path: &DataPath,
        mut bond: dataplane::Bond,
        ready: &Ready<'_, impl Alive>,
        arp_plus: &ArpPlus,
    ) -> Result<()> {
        let members = ready.members;
        let segments = arp_plus.segments();
        let elected = |slot| {
            let segment = segments.iter().find(|segment| segment.slots.contains(&slot));
            segment.and_then(|segment| segment.elected).unwrap_or(NO_SLOT)
        };
        bond.elected = segments.iter().filter_map(|segment| segment.elected).collect();
        for member in members {
            path.set_member(
                member.slot,
                Some(&dataplane::Member {
                    ifindex: member.ifindex,
                    mac: member.mac.0,
                    live: member.live(),
                    elected: elected(member.slot),
                }),
            )?;
        }
        path.set_plan(0, &lanes_to_table(&plain_lanes(members, None)))?;
        self.write_plain(path, members, segments)?;
        path.set_bond(&bond)?;
        self.write_peers(path, ready, arp_plus)?;
        let slots: BTreeSet<u8> = members.iter().map(|member| member.slot).collect();
        for gone in self.slots.difference(&slots) {
            path.set_member(*gone, None)?;
            path.clear_member_counts(*gone)?;
        }
        self.slots = slots;
        Ok(())
    }

    /// The plans for plain hosts of one segment each; with one segment plan 0 does.
    fn write_plain(&mut self, path: &DataPath, members: &[Member], segments: &[Segment]) -> Result<()> {
        let mut elected = BTreeSet::new();
        for segment in segments.iter().filter(|_| segments.len() > 1) {
            if let Some(slot) = segment.elected {
                path.set_plan(plain_plan(slot), &lanes_to_table(&plain_lanes(members, Some(&segment.slots))))?;
                elected.insert(slot);
            }
        }
        for gone in self.plain.difference(&elected) {
            path.set_plan(plain_plan(*gone), &Plan::default())?;
        }
        self.plain = elected;
        Ok(())
    }

    fn write_peers(
        &mut self,
        path: &DataPath,
        ready: &Ready<'_, impl Alive>,
        arp_plus: &ArpPlus,
    ) -> Result<()> {
        let mut macs = HashMap::new();
        let mut present = BTreeSet::new();
        for peer in arp_plus.peers() {
            let Some(number) = self.number_for(peer) else { continue };
            present.insert(peer.key);
            let lanes = peer_lanes(ready.own, peer, ready.alive);
            path.set_plan(number, &lanes_to_table(&lanes))?;
            let row = PeerMac {
                plan: number,
                primary: peer.mac().0,
                broadcast_slot: arp_plus.broadcast_slot(&peer.key).unwrap_or(NO_SLOT),
            };
            macs.extend(all_macs(peer).map(|mac| (mac.0, row)));
        }
        // One row that finds no room must not keep the others out.
        let mut first = Ok(());
        for (mac, row) in &macs {
            if self.macs.get(mac) != Some(row) {
                let set = path.set_peer_mac(*mac, row);
                first = first.and(set);
                self.inherited.remove(mac);
            }
        }
        for gone in self.macs.keys().filter(|mac| !macs.contains_key(*mac)) {
            path.delete_peer_mac(*gone)?;
        }
        self.macs = macs;
        // After its MACs, so that no frame meets an empty plan.
        for gone in self.plans.extract_if(|key, _| !present.contains(key)) {
            path.set_plan(gone.1, &Plan::default())?;
        }
        first
    }

    /// The peer's plan number: the one it has, the one an earlier daemon gave it, or a free one.
    fn number_for(&mut self, peer: &Peer) -> Option<u32> {
        if let Some(number) = self.plans.get(&peer.key) {
            return Some(*number);
        }
        let taken: BTreeSet<u32> =
            self.plans.values().copied().chain(self.inherited.values().map(|row| row.plan)).collect();
        let inherited = all_macs(peer).find_map(|mac| self.inherited.get(&mac.0)).map(|row| row.plan);
        let number = inherited
            .filter(|number| !self.plans.values().any(|other| other == number))
            .or_else(|| (1..PLAIN_PLAN_FIRST).find(|number| !taken.contains(number)))?;
        self.plans.insert(peer.key, number);
        Some(number)
    }
}

/// The lanes to plain hosts, or to those of the segment with these slots.
pub(crate) fn plain_lanes(members: &[Member], slots: Option<&[u8]>) -> Vec<Lane> {
    let plan_member = |member: &Member| PlanMember {
        slot: member.slot,
        weight_mbit: member.weight_mbit(),
        up: member.live() && member.sound && slots.is_none_or(|slots| slots.contains(&member.slot)),
    };
    let own: Vec<PlanMember> = members.iter().map(plan_member).collect();
    plan(&own, None, |_, _| true)
}

/// The lanes to a peer.
pub(crate) fn peer_lanes(own: &[PlanMember], peer: &Peer, alive: &impl Alive) -> Vec<Lane> {
    let theirs: Vec<PlanPeerMember> = peer
        .members
        .iter()
        .map(|member| PlanPeerMember {
            index: member.index,
            mac: member.mac,
            weight_mbit: member.weight_mbit.unwrap_or(WEIGHT_MBIT_UNTOLD),
            up: member.up,
        })
        .collect();
    plan(own, Some(&theirs), |slot, index| alive.usable(peer, slot, index))
}

/// The peer's number of the member that a lane to it ends at.
pub(crate) fn lane_index(peer: &Peer, lane: &Lane) -> Option<u8> {
    peer.members.iter().find(|member| Some(member.mac) == lane.peer_mac).map(|member| member.index)
}

/// Every MAC that leads to the peer: its members' and those it had lately.
fn all_macs(peer: &Peer) -> impl Iterator<Item = MacAddr> + '_ {
    peer.members.iter().map(|member| member.mac).chain(peer.aliases.iter().map(|alias| alias.mac))
}

fn lanes_to_table(lanes: &[Lane]) -> Plan {
    let lanes = lanes.iter().take(LANES_MAX).map(|lane| dataplane::Lane {
        slot: lane.slot,
        peer_mac: lane.peer_mac.map(|mac| mac.0),
        weight: lane.weight,
    });
    Plan { lanes: lanes.collect() }
}
