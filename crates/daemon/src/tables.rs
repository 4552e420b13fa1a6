//! From the protocol's table and the members to the tables that the data path follows, writing what differs.

use crate::bond::Member;
use linkbraid_dataplane::{
    self as dataplane, DataPath, MEMBERS_MAX, NO_SLOT, PeerMac, Plan, Result, plain_plan,
};
use linkbraid_proto::{
    arp_plus::{ArpPlus, Peer, PeerKey, Segment},
    plan::Lane,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

mod classes;
mod lanes;
mod numbers;
mod rows;
#[cfg(test)]
mod tests;

use classes::{ClassPlans, Wanted};
use lanes::all_macs;
pub(crate) use lanes::{OwnSide, REST, lane_index, peer_lanes, plain_lanes};
use numbers::Numbers;
use rows::Rows;

/// Whether a lane may be used.
pub(crate) trait Alive {
    fn usable(&self, peer: &Peer, slot: u8, index: u8) -> bool;
}

/// What is ready to carry traffic.
pub(crate) struct Ready<'a, A> {
    pub members: &'a [Member],
    /// The same as plans see them.
    pub own: &'a OwnSide,
    pub alive: &'a A,
}

/// Where a lane begins and ends: the slot, and the peer's index of its member.
pub(crate) type LaneAt = (u8, Option<u8>);

/// What one peer has in the tables.
#[derive(Debug)]
struct PeerRows {
    number: u32,
    macs: Vec<[u8; 6]>,
    /// In the order of the plan.
    lanes: Vec<LaneAt>,
}

/// What the data path has been told.
pub(crate) struct Tables {
    peers: HashMap<PeerKey, PeerRows>,
    /// Whose each number is.
    keys: BTreeMap<u32, PeerKey>,
    numbers: Numbers,
    macs: HashMap<[u8; 6], PeerMac>,
    /// The last plan written of each number, so that an unchanged one costs no system call.
    plans: HashMap<u32, Plan>,
    /// MACs that an earlier daemon wrote and whose peers have not been heard again.
    inherited: HashMap<[u8; 6], PeerMac>,
    classes: ClassPlans,
    /// The last row written of each slot.
    members: BTreeMap<u8, dataplane::Member>,
    /// The same as an earlier daemon left them, until they have been asked for.
    former: Vec<(u8, dataplane::Member)>,
    /// Who was elected then, while the members have not proven themselves anew.
    former_elected: BTreeSet<u8>,
    /// Elected members whose segments have a plan for plain hosts.
    plain: BTreeSet<u8>,
}

impl Tables {
    /// Takes over what an earlier daemon left, so that traffic to known peers goes on as it was.
    pub(crate) fn adopt(path: &DataPath) -> Result<Self> {
        let classes = ClassPlans::adopt(path)?;
        Ok(Self::new(path.peer_macs()?, path.members()?.into_iter().collect(), classes))
    }

    fn new(
        inherited: Vec<([u8; 6], PeerMac)>,
        members: BTreeMap<u8, dataplane::Member>,
        classes: ClassPlans,
    ) -> Self {
        let numbers = inherited.iter().map(|(_, row)| row.plan).chain(classes.numbers());
        Self {
            peers: HashMap::new(),
            keys: BTreeMap::new(),
            numbers: Numbers::new(numbers.collect()),
            classes,
            macs: HashMap::new(),
            plans: HashMap::new(),
            inherited: inherited.into_iter().collect(),
            former: members.iter().map(|(slot, row)| (*slot, *row)).collect(),
            former_elected: BTreeSet::new(),
            members,
            // Written anew, all of them.
            plain: (0..MEMBERS_MAX as u8).collect(),
        }
    }

    /// The plan number of a peer.
    pub(crate) fn plan_of(&self, peer: &PeerKey) -> Option<u32> {
        self.peers.get(peer).map(|rows| rows.number)
    }

    /// Whose plan that is.
    pub(crate) fn peer_of(&self, number: u32) -> Option<PeerKey> {
        self.keys.get(&number).copied()
    }

    /// The numbers of all peers' plans, ascending.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.keys.keys().copied()
    }

    /// A peer's plan as it was written last: its number and its lanes.
    pub(crate) fn lanes_of(&self, peer: &PeerKey) -> Option<(u32, &[LaneAt])> {
        self.peers.get(peer).map(|rows| (rows.number, &rows.lanes[..]))
    }

    /// The segments of an earlier daemon as far as these members are still those that it had, once: nobody has been heard
    /// since, and taken for one on a switch of its own each member would send and take in what the others do.
    pub(crate) fn take_former_segments(&mut self, members: &[Member]) -> Vec<Vec<u8>> {
        let mut segments: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        for (slot, row) in std::mem::take(&mut self.former) {
            let same =
                |member: &Member| (member.slot, member.ifindex, member.mac.0) == (slot, row.ifindex, row.mac);
            if row.elected != NO_SLOT && members.iter().any(same) {
                segments.entry(row.elected).or_default().push(slot);
            }
        }
        self.former_elected = segments.keys().copied().collect();
        segments.into_values().collect()
    }

    /// Who an earlier daemon had elected; nobody once what it left is forgotten.
    pub(crate) const fn former_elected(&self) -> &BTreeSet<u8> {
        &self.former_elected
    }

    /// Peers that were inherited have had their time to be heard: forget them.
    pub(crate) fn drop_inherited(&mut self, path: &impl Rows) -> Result<()> {
        self.former_elected.clear();
        let mut first = self.drop_inherited_classes(path);
        self.numbers.drop_inherited();
        for mac in std::mem::take(&mut self.inherited).into_keys() {
            if !self.macs.contains_key(&mac) {
                keep(&mut first, path.delete_peer_mac(mac));
            }
        }
        first
    }

    /// Writes members, bond, plans and peers, in an order in which no row points at one that is not there yet.
    pub(crate) fn write(
        &mut self,
        path: &impl Rows,
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
        // A member names its segment's plan by who is elected there, and that plan names members: first the members of
        // no segment, then the plans, then who is elected, and at the end the plans that nobody names any more.
        for member in members {
            let is_there = self.members.get(&member.slot).is_some_and(|row| row.ifindex == member.ifindex);
            if !is_there {
                self.set_member(path, member, NO_SLOT)?;
            }
        }
        let plain = self.write_plain(path, ready, segments)?;
        for member in members {
            self.set_member(path, member, elected(member.slot))?;
        }
        let is_gone = |slot: u8| members.iter().all(|member| member.slot != slot);
        let gone: Vec<u8> = self.members.keys().copied().filter(|slot| is_gone(*slot)).collect();
        for slot in &gone {
            // It is in no segment, but its row stays until no plan names it.
            if let Some(row) = self.members.get_mut(slot).filter(|row| row.elected != NO_SLOT) {
                row.elected = NO_SLOT;
                path.set_member(*slot, Some(row))?;
            }
        }
        self.write_plain_plan(path, ready, 0, None)?;
        path.set_bond(&bond)?;
        for gone in std::mem::replace(&mut self.plain, plain) {
            if !self.plain.contains(&gone) {
                self.write_class_plans(path, plain_plan(gone), None, Vec::new())?;
                self.set_plan(path, plain_plan(gone), Plan::default())?;
            }
        }
        let known = self.peers.keys().copied();
        let peers: BTreeSet<PeerKey> = known.chain(arp_plus.peers().map(|peer| peer.key)).collect();
        self.write_peers(path, ready, arp_plus, peers)?;
        for gone in gone {
            path.set_member(gone, None)?;
            path.clear_member_counts(gone)?;
            path.forget_plain_hosts(gone)?;
            self.members.remove(&gone);
        }
        Ok(())
    }

    fn set_member(&mut self, path: &impl Rows, member: &Member, elected: u8) -> Result<()> {
        let row =
            dataplane::Member { ifindex: member.ifindex, mac: member.mac.0, live: member.live(), elected };
        if self.members.get(&member.slot) != Some(&row) {
            path.set_member(member.slot, Some(&row))?;
            self.members.insert(member.slot, row);
        }
        Ok(())
    }

    fn set_plan(&mut self, path: &impl Rows, number: u32, plan: Plan) -> Result<()> {
        if self.plans.get(&number) != Some(&plan) {
            path.set_plan(number, &plan)?;
            self.plans.insert(number, plan);
        }
        Ok(())
    }

    /// The plans for plain hosts of one segment each, by the elected members; with one segment plan 0 does.
    fn write_plain(
        &mut self,
        path: &impl Rows,
        ready: &Ready<'_, impl Alive>,
        segments: &[Segment],
    ) -> Result<BTreeSet<u8>> {
        let mut elected = BTreeSet::new();
        for segment in segments.iter().filter(|_| segments.len() > 1) {
            if let Some(slot) = segment.elected {
                // So that it is cleared one day even if what follows fails.
                self.plain.insert(slot);
                self.write_plain_plan(path, ready, plain_plan(slot), Some(&segment.slots))?;
                elected.insert(slot);
            }
        }
        Ok(elected)
    }

    /// One plan for plain hosts, and those of the classes beside it.
    fn write_plain_plan(
        &mut self,
        path: &impl Rows,
        ready: &Ready<'_, impl Alive>,
        number: u32,
        slots: Option<&[u8]>,
    ) -> Result<()> {
        let own = ready.own;
        let lanes = |class| plain_lanes(own, ready.members, slots, class).lanes;
        self.set_plan(path, number, own.to_table(REST, &lanes(REST), false))?;
        let wanted = own.classes.iter().map(|class| {
            let class = class.terms.number;
            let lanes = lanes(class);
            let plan = own.to_table(class, &lanes, false);
            Wanted { class, plan, lanes: lanes.iter().map(|lane| (lane.slot, None)).collect() }
        });
        self.write_class_plans(path, number, None, wanted.collect())
    }

    /// Writes the rows of these peers, which came, changed or went. One row that finds no room must not keep the others
    /// out: the first error is what comes back.
    pub(crate) fn write_peers(
        &mut self,
        path: &impl Rows,
        ready: &Ready<'_, impl Alive>,
        arp_plus: &ArpPlus,
        peers: impl IntoIterator<Item = PeerKey>,
    ) -> Result<()> {
        let mut first = Ok(());
        let (mut stale, mut gone) = (Vec::new(), Vec::new());
        for key in peers {
            let Some(peer) = arp_plus.peer(&key) else {
                gone.push(key);
                continue;
            };
            let Some(number) = self.number_for(peer) else { continue };
            let own = ready.own;
            let lanes = peer_lanes(own, peer, ready.alive, REST).lanes;
            keep(&mut first, self.set_plan(path, number, own.to_table(REST, &lanes, false)));
            let lanes_at =
                |lanes: &[Lane]| lanes.iter().map(|lane| (lane.slot, lane_index(peer, lane))).collect();
            let wanted = own.classes.iter().map(|class| {
                let class = class.terms.number;
                let lanes = peer_lanes(own, peer, ready.alive, class).lanes;
                Wanted {
                    class,
                    plan: own.to_table(class, &lanes, peer.takes_mirrored()),
                    lanes: lanes_at(&lanes),
                }
            });
            keep(&mut first, self.write_class_plans(path, number, Some(key), wanted.collect()));
            let row = PeerMac {
                plan: number,
                primary: peer.mac().0,
                broadcast_slot: arp_plus.broadcast_slot(&key).unwrap_or(NO_SLOT),
            };
            let is_its = |mac| arp_plus.peer_by_mac(mac).is_some_and(|owner| owner.key == key);
            let macs: Vec<[u8; 6]> = all_macs(peer).filter(|mac| is_its(*mac)).map(|mac| mac.0).collect();
            for mac in
                macs.iter().filter(|mac| self.macs.get(*mac) != Some(&row)).copied().collect::<Vec<_>>()
            {
                let set = path.set_peer_mac(mac, &row);
                if set.is_ok() {
                    self.macs.insert(mac, row);
                    self.inherited.remove(&mac);
                }
                keep(&mut first, set);
            }
            let lanes = lanes_at(&lanes);
            if let Some(old) = self.peers.insert(key, PeerRows { number, macs, lanes }) {
                let macs = &self.peers[&key].macs;
                stale.extend(old.macs.into_iter().filter(|mac| !macs.contains(mac)).map(|mac| (mac, number)));
            }
        }
        for (mac, number) in stale {
            keep(&mut first, self.delete_mac(path, mac, number));
        }
        for rows in gone.into_iter().filter_map(|key| self.peers.remove(&key)).collect::<Vec<_>>() {
            for mac in rows.macs {
                keep(&mut first, self.delete_mac(path, mac, rows.number));
            }
            // After its MACs, so that no frame meets an empty plan.
            keep(&mut first, self.write_class_plans(path, rows.number, None, Vec::new()));
            keep(&mut first, self.set_plan(path, rows.number, Plan::default()));
            self.keys.remove(&rows.number);
            self.numbers.give_back(rows.number);
        }
        first
    }

    /// Deletes a MAC of the peer with that number, unless it is another one's by now.
    fn delete_mac(&mut self, path: &impl Rows, mac: [u8; 6], number: u32) -> Result<()> {
        if self.macs.get(&mac).is_some_and(|row| row.plan == number) {
            path.delete_peer_mac(mac)?;
            self.macs.remove(&mac);
        }
        Ok(())
    }

    /// The peer's plan number: the one it has, the one an earlier daemon gave it, or a free one.
    fn number_for(&mut self, peer: &Peer) -> Option<u32> {
        if let Some(number) = self.plan_of(&peer.key) {
            return Some(number);
        }
        let inherited = all_macs(peer).find_map(|mac| self.inherited.get(&mac.0)).map(|row| row.plan);
        let number = self.numbers.take(inherited)?;
        self.keys.insert(number, peer.key);
        Some(number)
    }
}

/// Keeps the first error.
fn keep(first: &mut Result<()>, result: Result<()>) {
    if first.is_ok() {
        *first = result;
    }
}
