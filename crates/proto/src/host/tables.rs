//! From the members and from the protocols' tables to what the data path is to hold.

use super::{
    image::{BondRow, MacKind, MemberRow, PLAIN_PLAN, Plan, TableImage, plain_plan},
    lanes::{DEFAULT_CLASS, OwnSide, lane_index},
    member::Member,
    numbers::Numbers,
    rates::Rates,
    written::{Key, Write, Written},
};
use crate::{
    arp_plus::{ArpPlus, GuestAddress, Peer, PeerKey, Segment},
    limits,
    plan::Lane,
};
use linkbraid_wire::MacAddr;
use std::collections::{BTreeMap, BTreeSet, HashMap};

mod classes;
mod guests;
#[cfg(test)]
pub(super) mod tests;

use classes::{ClassPlans, Wanted};

/// Whether a lane may be used.
pub trait Usable {
    /// Whether frames may take the lane from the own member in that slot to the peer's member of that number.
    fn usable(&self, peer: &Peer, slot: u8, index: u8) -> bool;
}

/// What the tables follow from.
pub(super) struct Sources<'a, U> {
    pub members: &'a [Member],
    /// The same as plans see them.
    pub own: &'a OwnSide,
    pub arp_plus: &'a ArpPlus,
    pub usable: &'a U,
}

/// Where a lane begins and ends: the slot, and the peer's index of its member.
pub(super) type LaneAt = (u8, Option<u8>);

/// What one peer has in the tables.
#[derive(Debug)]
struct PeerRows {
    number: u32,
    macs: Vec<MacAddr>,
    /// Addresses of its guests.
    guests: Vec<GuestAddress>,
    /// In the order of the plan.
    lanes: Vec<LaneAt>,
}

/// The tables: what they are to be, what they are, and whose each row is.
#[derive(Debug)]
pub(super) struct Tables {
    image: TableImage,
    written: Written,
    peers: HashMap<PeerKey, PeerRows>,
    /// Whose each number is.
    keys: BTreeMap<u32, PeerKey>,
    numbers: Numbers,
    /// MACs that an earlier daemon wrote and whose peers have not been heard again, with their plans.
    inherited: HashMap<MacAddr, u32>,
    classes: ClassPlans,
    /// Addresses of peers' guests that an earlier daemon wrote.
    inherited_guests: BTreeSet<GuestAddress>,
    /// Peers know of guests here, and send what is for them by aliases.
    has_own_guests: bool,
    /// Members as an earlier daemon left them, until they have been asked for.
    former: Vec<(u8, MemberRow)>,
    /// Who was elected then, while the members have not proven themselves again.
    former_elected: BTreeSet<u8>,
    /// The interface that was in each slot then, while there are plans of then that nobody has made again.
    former_slots: Option<BTreeMap<u8, u32>>,
    /// Somebody found no number.
    wanting: bool,
    /// The image is whole: before it is made for the first time nothing is written.
    made: bool,
}

impl Tables {
    /// Takes over what an earlier daemon left, so that traffic to known peers goes on as it was.
    pub fn adopt(left: TableImage) -> Tables {
        let inherited: HashMap<MacAddr, u32> =
            left.peer_macs.iter().map(|(mac, row)| (*mac, row.plan)).collect();
        let numbers = inherited.values().chain(left.class_plans.values()).copied();
        let numbers = Numbers::new(numbers.collect());
        let former = left.members.iter().map(|(slot, row)| (*slot, *row)).collect();
        let former_slots = left.members.iter().map(|(slot, row)| (*slot, row.ifindex)).collect();
        let has_plans = !inherited.is_empty() || !left.class_plans.is_empty();
        let former_slots = has_plans.then_some(former_slots);
        let inherited_guests = left.guest_pairs.iter().filter(|(_, pair)| pair.plan != PLAIN_PLAN);
        let inherited_guests = inherited_guests.map(|(at, _)| *at).collect();
        let has_own_guests = left.guest_pairs.values().any(|pair| pair.plan == PLAIN_PLAN);
        let (classes, written) = (ClassPlans::adopt(&left), Written::adopt(&left));
        Tables {
            image: left,
            written,
            peers: HashMap::new(),
            keys: BTreeMap::new(),
            numbers,
            inherited,
            inherited_guests,
            has_own_guests,
            classes,
            former,
            former_elected: BTreeSet::new(),
            former_slots,
            wanting: false,
            made: false,
        }
    }

    /// What the data path is to hold.
    pub const fn image(&self) -> &TableImage {
        &self.image
    }

    /// Whether the data path may hold something else.
    pub fn is_behind(&self) -> bool {
        self.made && self.written.is_behind()
    }

    /// Writes the difference.
    pub fn write<E>(&mut self, write: impl FnMut(Write<'_>) -> Result<(), E>) -> Result<(), E> {
        if self.made { self.written.follow(&self.image, write) } else { Ok(()) }
    }

    /// Numbers whose plans are gone are free; whether anything follows from that.
    pub fn free_numbers(&mut self) -> bool {
        let freed = self.numbers.settle(|number| self.written.has_plan(number));
        let all_made_anew = self.inherited.is_empty() && self.numbers.are_settled();
        let forgotten = all_made_anew && self.former_slots.take().is_some();
        forgotten || freed && self.wanting
    }

    /// The plan number of a peer.
    pub fn plan_of(&self, peer: &PeerKey) -> Option<u32> {
        self.peers.get(peer).map(|rows| rows.number)
    }

    /// Whose plan that is.
    pub fn peer_of(&self, number: u32) -> Option<PeerKey> {
        self.keys.get(&number).copied()
    }

    /// A peer's plan: its number and its lanes.
    pub fn lanes_of(&self, peer: &PeerKey) -> Option<(u32, &[LaneAt])> {
        self.peers.get(peer).map(|rows| (rows.number, &rows.lanes[..]))
    }

    /// The segments of an earlier daemon as far as these members are still those that it had, once: nobody has been heard
    /// since, and taken for one on a switch of its own each member would send and take in what the others do.
    pub fn take_former_segments(&mut self, members: &[Member]) -> Vec<Vec<u8>> {
        let mut segments: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        for (slot, row) in std::mem::take(&mut self.former) {
            let same =
                |member: &Member| (member.slot, member.ifindex, member.mac) == (slot, row.ifindex, row.mac);
            if let Some(elected) = row.elected.filter(|_| members.iter().any(same)) {
                segments.entry(elected).or_default().push(slot);
            }
        }
        self.former_elected = segments.keys().copied().collect();
        segments.into_values().collect()
    }

    /// Who an earlier daemon had elected; nobody once what it left is forgotten.
    pub const fn former_elected(&self) -> &BTreeSet<u8> {
        &self.former_elected
    }

    /// Slots that plans of an earlier daemon may name though their member is gone, a bit each.
    pub fn abandoned_slots(&self, members: &[Member]) -> u32 {
        let Some(former) = &self.former_slots else { return 0 };
        let is_there = |slot: &u8| {
            let member = members.iter().find(|member| member.slot == *slot);
            member.is_some_and(|member| former.get(slot).is_none_or(|ifindex| *ifindex == member.ifindex))
        };
        let gone = (0..limits::MEMBERS_MAX as u8).filter(|slot| !is_there(slot));
        gone.fold(0, |mask, slot| mask | 1 << slot)
    }

    /// Peers that were inherited have had their time to be heard: forget them.
    pub fn drop_inherited(&mut self) {
        self.former_elected.clear();
        self.drop_inherited_classes();
        for (mac, number) in std::mem::take(&mut self.inherited) {
            self.delete_mac(mac, number);
        }
        self.drop_inherited_guests();
        for number in self.numbers.drop_inherited() {
            self.set_plan(number, None);
        }
    }

    /// The members that plain hosts are to send to.
    pub fn set_answers(&mut self, answers: BTreeMap<MacAddr, super::image::Answer>) {
        let (old, new) = (&self.image.answers, &answers);
        let macs = old.keys().chain(new.keys());
        let differ: Vec<MacAddr> = macs.filter(|mac| old.get(mac) != new.get(mac)).copied().collect();
        differ.into_iter().for_each(|mac| self.written.touch(Key::Answer(mac)));
        self.image.answers = answers;
    }

    /// The members and classes, the bond and the plans for plain hosts are to be these, and all peers' rows follow.
    pub fn remake(&mut self, mut bond: BondRow, sources: &Sources<'_, impl Usable>) {
        (self.made, self.wanting) = (true, false);
        let segments = sources.arp_plus.segments();
        bond.elected = segments.iter().filter_map(|segment| segment.elected).collect();
        self.set_bond(bond);
        self.set_members(sources.members, segments);
        self.set_classes(sources);
        self.set_plain_plans(sources, segments);
        let known = self.peers.keys().copied();
        let peers: BTreeSet<PeerKey> = known.chain(sources.arp_plus.peers().map(|peer| peer.key)).collect();
        self.update(sources, peers);
    }

    fn set_bond(&mut self, bond: BondRow) {
        if self.image.bond != bond {
            self.image.bond = bond;
            self.written.touch(Key::Bond);
        }
    }

    fn set_members(&mut self, members: &[Member], segments: &[Segment]) {
        let elected = |slot| {
            let segment = segments.iter().find(|segment| segment.slots.contains(&slot));
            segment.and_then(|segment| segment.elected)
        };
        let row = |member: &Member| MemberRow {
            ifindex: member.ifindex,
            mac: member.mac,
            live: member.live(),
            elected: elected(member.slot),
        };
        let rows: BTreeMap<u8, MemberRow> = members.iter().map(|member| (member.slot, row(member))).collect();
        let old = std::mem::replace(&mut self.image.members, rows);
        for slot in old.keys().chain(self.image.members.keys()) {
            if old.get(slot) != self.image.members.get(slot) {
                self.written.touch(Key::Member(*slot));
            }
        }
    }

    fn set_classes(&mut self, sources: &Sources<'_, impl Usable>) {
        for number in 1..=linkbraid_wire::CLASSES_MAX as u8 {
            let row = sources.own.class_row(number, sources.members);
            if self.image.classes.insert(number, row) != Some(row) {
                self.written.touch(Key::Class(number));
            }
        }
    }

    fn set_plan(&mut self, number: u32, plan: Option<Plan>) {
        match plan {
            plan if self.image.plans.get(&number) == plan.as_ref() && plan.is_some() => return,
            Some(plan) => _ = self.image.plans.insert(number, plan),
            None => _ = self.image.plans.remove(&number),
        }
        self.written.touch(Key::Plan(number));
    }

    /// What a plan is spread by.
    pub fn set_rates(&mut self, number: u32, rates: &Rates) {
        let Some(plan) = self.image.plans.get_mut(&number) else { return };
        let rates = rates.of(number, &plan.lanes);
        if plan.rates != rates {
            plan.rates = rates;
            self.written.touch(Key::Plan(number));
        }
    }

    /// The plan for all plain hosts, and those of one segment each, by the elected members; with one segment the first
    /// one does.
    fn set_plain_plans(&mut self, sources: &Sources<'_, impl Usable>, segments: &[Segment]) {
        self.set_plain_plan(sources, PLAIN_PLAN, None);
        let mut elected = BTreeSet::new();
        for segment in segments.iter().filter(|_| segments.len() > 1) {
            if let Some(slot) = segment.elected {
                self.set_plain_plan(sources, plain_plan(slot), Some(&segment.slots));
                elected.insert(plain_plan(slot));
            }
        }
        let of_segments = self.image.plans.range(plain_plan(0)..).map(|(number, _)| *number);
        for number in of_segments.filter(|number| !elected.contains(number)).collect::<Vec<_>>() {
            self.set_class_plans(number, None, Vec::new());
            self.set_plan(number, None);
        }
    }

    /// One plan for plain hosts, and those of the classes beside it.
    fn set_plain_plan(&mut self, sources: &Sources<'_, impl Usable>, number: u32, slots: Option<&[u8]>) {
        let own = sources.own;
        let lanes = own.plain_lanes(slots, DEFAULT_CLASS).lanes;
        self.set_plan(number, Some(own.to_plan(DEFAULT_CLASS, &lanes, false)));
        let wanted = own.class_numbers().map(|class| {
            let lanes = own.plain_lanes(slots, class).lanes;
            let plan = own.to_plan(class, &lanes, false);
            Wanted { class, plan, lanes: lanes.iter().map(|lane| (lane.slot, None)).collect() }
        });
        self.set_class_plans(number, None, wanted.collect());
    }

    /// Makes the rows of these peers, which came, changed or went.
    pub fn update(&mut self, sources: &Sources<'_, impl Usable>, peers: impl IntoIterator<Item = PeerKey>) {
        let (mut stale, mut gone) = (Vec::new(), Vec::new());
        for key in peers {
            match sources.arp_plus.peer(&key) {
                Some(peer) => stale.extend(self.set_peer(sources, key, peer)),
                None => gone.push(key),
            }
        }
        stale.into_iter().for_each(|(mac, number)| self.delete_mac(mac, number));
        for rows in gone.into_iter().filter_map(|key| self.peers.remove(&key)).collect::<Vec<_>>() {
            // Those too that an earlier daemon gave it: nothing is to point at a plan that is gone.
            let left = self.inherited.extract_if(|_, number| *number == rows.number).map(|(mac, _)| mac);
            let left: Vec<MacAddr> = left.collect();
            rows.macs.into_iter().chain(left).for_each(|mac| self.delete_mac(mac, rows.number));
            self.drop_guests_of(rows.number, |_| false);
            self.set_class_plans(rows.number, None, Vec::new());
            self.set_plan(rows.number, None);
            self.keys.remove(&rows.number);
            self.numbers.give_back(rows.number);
        }
    }

    /// Makes the rows of one peer; the MACs that it had before and has no more, with its number.
    fn set_peer(
        &mut self,
        sources: &Sources<'_, impl Usable>,
        key: PeerKey,
        peer: &Peer,
    ) -> Vec<(MacAddr, u32)> {
        let Some(number) = self.number_for(peer) else { return Vec::new() };
        let (own, arp_plus) = (sources.own, sources.arp_plus);
        let lanes_at = |lanes: &[Lane]| -> Vec<LaneAt> {
            lanes.iter().map(|lane| (lane.slot, lane_index(peer, lane))).collect()
        };
        let lanes = own.peer_lanes(peer, sources.usable, DEFAULT_CLASS).lanes;
        self.set_plan(number, Some(own.to_plan(DEFAULT_CLASS, &lanes, false)));
        let wanted = own.class_numbers().map(|class| {
            let lanes = own.peer_lanes(peer, sources.usable, class).lanes;
            let plan = own.to_plan(class, &lanes, peer.takes_mirrored());
            Wanted { class, plan, lanes: lanes_at(&lanes) }
        });
        self.set_class_plans(number, Some(key), wanted.collect());
        let guests = self.set_guests_of(number, arp_plus, peer);
        let rows = self.mac_rows(number, !guests.is_empty(), sources, peer);
        let macs: Vec<MacAddr> = rows.iter().map(|(mac, _)| *mac).collect();
        for (mac, row) in rows {
            // Where a former daemon had heard a member, the row goes with those of the others until there was time to speak again.
            let is_its = arp_plus.peer_by_mac(mac).is_some_and(|owner| owner.key == key);
            if is_its || !matches!(row.kind, MacKind::Member { .. }) {
                self.inherited.remove(&mac);
            }
            if self.image.peer_macs.insert(mac, row) != Some(row) {
                self.written.touch(Key::PeerMac(mac));
            }
        }
        let lanes = lanes_at(&lanes);
        let Some(old) = self.peers.insert(key, PeerRows { number, macs, guests, lanes }) else {
            return Vec::new();
        };
        let macs = &self.peers[&key].macs;
        old.macs.into_iter().filter(|mac| !macs.contains(mac)).map(|mac| (mac, number)).collect()
    }

    /// Deletes a MAC of the peer with that number, unless it is another one's by now.
    fn delete_mac(&mut self, mac: MacAddr, number: u32) {
        if self.image.peer_macs.get(&mac).is_some_and(|row| row.plan == number) {
            self.image.peer_macs.remove(&mac);
            self.written.touch(Key::PeerMac(mac));
        }
    }

    /// The peer's plan number: the one it has, the one an earlier daemon gave it, a free one, or one of a class.
    fn number_for(&mut self, peer: &Peer) -> Option<u32> {
        if let Some(number) = self.plan_of(&peer.key) {
            return Some(number);
        }
        let spoken = all_macs(peer).filter(|mac| peer.member(*mac).is_none_or(|member| member.spoke));
        let inherited = spoken.filter_map(|mac| self.inherited.get(&mac)).next().copied();
        let Some(number) = self.numbers.take(inherited).or_else(|| self.number_of_class()) else {
            self.wanting = true;
            return None;
        };
        self.keys.insert(number, peer.key);
        Some(number)
    }
}

/// Every MAC that leads to the peer: its members' and those it had lately.
fn all_macs(peer: &Peer) -> impl Iterator<Item = MacAddr> + '_ {
    peer.members.iter().map(|member| member.mac).chain(peer.aliases.iter().map(|alias| alias.mac))
}
