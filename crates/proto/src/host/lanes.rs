//! The lanes of a plan, from the members at both ends and what is known of the way between them.

use super::{
    Class, Policy, Settings,
    corrections::Corrections,
    image::{ClassRow, Plan},
    member::Member,
    rates::End,
    tables::Usable,
};
use crate::{
    arp_plus::Peer,
    limits::LANES_MAX,
    plan::{
        ClassLanes, ClassTerms, Lane, OwnEnd, PeerEnd, PlanMember, PlanPeerMember, class_lanes,
        default_lanes, peer_ends,
    },
};

/// What a peer's member is taken for that speaks only the published part, in Mbit/s.
pub(super) const WEIGHT_MBIT_UNKNOWN: u32 = 1000;
/// The number of the class of all traffic that no rule puts into another one.
pub const DEFAULT_CLASS: u8 = 0;

/// The own side of all plans.
#[derive(Debug, Clone)]
pub struct OwnSide {
    /// The members as plans to peers see them.
    ends: Vec<OwnEnd>,
    /// The same as plans to plain hosts see them.
    plain_ends: Vec<OwnEnd>,
    classes: Vec<Class>,
    /// How all other traffic spreads.
    policy: Policy,
    corrections: Corrections,
    /// Members whose weight is their rate, whatever is measured: a bit for each slot.
    fixed: u32,
}

impl OwnSide {
    pub(super) fn new(members: &[Member], settings: &Settings) -> OwnSide {
        let end = |member: &Member, up| {
            let plan = PlanMember { slot: member.slot, weight_mbit: member.weight_mbit, up };
            OwnEnd { member: plan, class: member.class }
        };
        let to_peers = |member: &Member| end(member, member.alive && !member.leaving);
        let to_plain = |member: &Member| end(member, member.live() && member.sound);
        OwnSide {
            ends: members.iter().map(to_peers).collect(),
            plain_ends: members.iter().map(to_plain).collect(),
            classes: settings.classes.clone(),
            policy: settings.policy,
            corrections: Corrections::default(),
            fixed: members
                .iter()
                .filter(|member| member.weight_fixed)
                .fold(0, |mask, member| mask | 1 << member.slot),
        }
    }

    /// The same, with other weights where members told far more than they carry.
    pub(super) fn corrected(self, corrections: &Corrections) -> OwnSide {
        OwnSide { corrections: corrections.clone(), ..self }
    }

    /// Whether the weight of the member in this slot is its rate.
    pub const fn is_fixed(&self, slot: u8) -> bool {
        self.fixed & 1 << slot != 0
    }

    /// The numbers of the classes.
    pub fn class_numbers(&self) -> impl Iterator<Item = u8> + '_ {
        self.classes.iter().map(|class| class.terms.number)
    }

    fn class(&self, number: u8) -> Option<&Class> {
        self.classes.iter().find(|class| class.terms.number == number)
    }

    fn lanes(
        &self,
        class: u8,
        ends: &[OwnEnd],
        peer: Option<&[PeerEnd]>,
        usable: impl Fn(u8, u8) -> bool,
    ) -> ClassLanes {
        match self.class(class) {
            Some(own) => class_lanes(&own.terms, ends, peer, usable),
            None => {
                let terms: Vec<ClassTerms> = self.classes.iter().map(|class| class.terms).collect();
                default_lanes(ends, peer, &terms, usable)
            }
        }
    }

    /// The lanes of a class to plain hosts, or to those of the segment with these slots.
    pub fn plain_lanes(&self, slots: Option<&[u8]>, class: u8) -> ClassLanes {
        let ends = self.plain_ends.iter().map(|end| {
            let here = slots.is_none_or(|slots| slots.contains(&end.member.slot));
            OwnEnd { member: PlanMember { up: end.member.up && here, ..end.member }, ..*end }
        });
        self.lanes(class, &ends.collect::<Vec<_>>(), None, |_, _| true)
    }

    /// The lanes of a class to a peer.
    pub fn peer_lanes(&self, peer: &Peer, usable: &impl Usable, class: u8) -> ClassLanes {
        let number_of =
            |name: &str| self.classes.iter().find(|class| class.name == name).map(|class| class.terms.number);
        let mut theirs = peer_ends(peer, number_of, WEIGHT_MBIT_UNKNOWN);
        let mut own = self.ends.clone();
        let free = own.iter_mut().map(|end| &mut end.member).filter(|member| !self.is_fixed(member.slot));
        for PlanMember { slot, weight_mbit, .. } in free {
            *weight_mbit = self.corrections.weight(&peer.key, End::Own(*slot), *weight_mbit);
        }
        for PlanPeerMember { mac, weight_mbit, .. } in theirs.iter_mut().map(|end| &mut end.member) {
            *weight_mbit = self.corrections.weight(&peer.key, End::Peer(*mac), *weight_mbit);
        }
        self.lanes(class, &own, Some(&theirs), |slot, index| usable.usable(peer, slot, index))
    }

    /// Those lanes as the data path has them. Mirrored is what the other end can put together again.
    pub(super) fn to_plan(&self, class: u8, lanes: &[Lane], mirrors: bool) -> Plan {
        let own = self.class(class);
        //= docs/arp-plus.md#16.4
        let policy = match own.map_or(self.policy, |own| own.policy) {
            Policy::Mirror if !mirrors => Policy::ActiveBackup,
            policy => policy,
        };
        let lanes = lanes.iter().take(LANES_MAX).copied().collect();
        Plan { lanes, rates: Vec::new(), policy, shares: own.is_some_and(|own| !own.terms.block) }
    }

    /// The members of a class.
    pub(super) fn class_row(&self, number: u8, members: &[Member]) -> ClassRow {
        let of_class = members.iter().filter(|member| member.class == number);
        ClassRow {
            slots: of_class.fold(0, |mask, member| mask | 1 << member.slot),
            lends: self.class(number).is_some_and(|class| class.terms.lends),
        }
    }

    /// The weights, in Mbit/s, of each group of live members that traffic of one kind is striped over, and by which policy.
    pub(super) fn spreads(&self, members: &[Member]) -> Vec<(Policy, Vec<u32>)> {
        let live = || members.iter().filter(|member| member.live());
        let has = |number: u8| live().any(|member| member.class == number);
        let lends = |number: u8| self.class(number).is_some_and(|class| class.terms.lends);
        let of = |number: u8| -> Vec<u32> {
            // Without members of its own it takes those of no class, and other traffic takes any.
            let own = if has(number) { number } else { DEFAULT_CLASS };
            let any = own == DEFAULT_CLASS && !has(DEFAULT_CLASS);
            let borrows = |member: &Member| number == DEFAULT_CLASS && lends(member.class);
            let taken = live().filter(|member| any || member.class == own || borrows(member));
            taken.map(|member| member.weight_mbit).collect()
        };
        let kinds = self.classes.iter().map(|class| (class.terms.number, class.policy));
        let all = std::iter::once((DEFAULT_CLASS, self.policy)).chain(kinds);
        all.filter(|(_, policy)| policy.spreads()).map(|(number, policy)| (policy, of(number))).collect()
    }
}

/// The peer's number of the member that a lane to it ends at.
pub fn lane_index(peer: &Peer, lane: &Lane) -> Option<u8> {
    peer.members.iter().find(|member| Some(member.mac) == lane.peer_mac).map(|member| member.index)
}

#[cfg(test)]
mod tests;
